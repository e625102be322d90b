"""Write a trained model as a bundle, exports/<dataset>/<name>/, and the dataset's side tables beside it."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from engine import __version__
from engine.bundle.curve import improving, refitted, validated
from engine.bundle.manifest import Attention, Capabilities, Encoder, Manifest, Training
from engine.console import stage
from engine.data.dataset import Dataset
from engine.errors import SeqscopeError, UsageError
from engine.evaluation.run_verdict import other_seeds
from engine.evaluation.tables import EVALUATION, milliseconds_per_list, read_metrics
from engine.export import umap_map, vectors, weights
from engine.export.generator import write_generator
from engine.export.staging import TITLE, USERS, Draft, check_bundle_name, exported, provenance, read_back
from engine.export.text import write_sentence, write_text
from engine.models import Recommender
from engine.runtime.bundle import Bundle
from engine.training.recipe import Recipe
from engine.training.run import open_run
from engine.writing import count

PARTS: dict[str, Callable[[Any, Draft], None]] = {
    "vectors": vectors.write_vectors,
    "generator": write_generator,
    "text": write_text,
    "sentence": write_sentence,
    "graph": vectors.write_graph,
    "item-to-item": vectors.write_item_to_item,
    "constant": vectors.write_constant,
}
"""What `Recommender.exports` names: each writes its files into the draft."""
CURVE = {
    "step": pa.int64(), "epoch": pa.int32(), "seconds": pa.float32(), "loss": pa.float32(), "valid_ndcg": pa.float32()
}  # fmt: skip
"""The columns of curve.parquet: those of a run's curve."""
REFIT = ", refit"
"""Behind the title of a model that was fitted on validation events, too."""
UNWRITTEN = "It generates only semantic IDs of this catalogue."
DESCRIBED = "It knows items by their words, but its bundle holds vectors of those alone that it was trained on."
UNSEEN = "It knows items by their numbers, so an item that was not in training has no vector. Train again with the new items."


def export_run(
    run: Path,
    out: Path,
    *,
    name: str | None = None,
    title: str | None = None,
    dataset: Path | None = None,
    users: int = USERS,
) -> Path:
    """Write the best model of `run` as the bundle `out`/<name>; returns its folder. The run must have been evaluated.

    Raises SeqscopeError where the run is unfinished or not evaluated, where `out` belongs to other data, or where the exported
    graph does not answer as PyTorch does.
    """
    model, recipe, record, data = open_run(run, dataset)
    name = name or run.name
    check_bundle_name(name, title)
    if users < 1:
        raise UsageError(f"--users {users}: offer at least one user")
    measured = read_metrics(run)
    if data.info.counts["test"] and not measured:
        raise SeqscopeError(
            f"{run} was not evaluated yet, or {', '.join(EVALUATION)} in it are damaged, so its bundle would have no metrics. "
            f"Run `seqscope evaluate {run}` first."
        )
    with exported(out / name, data, out, users) as folder:
        manifest = _fill(folder, title, model, recipe, record, data, run, out, measured)
        bundle = read_back(Bundle, folder, manifest, data)
        cases = data.cases("test")
        if len(cases):
            took = milliseconds_per_list(lambda history: bundle.recommend_one(history, 10), cases)
            timed = manifest.model_copy(update={"check": manifest.check.model_copy(update={"milliseconds": took})})
            (folder / "manifest.json").write_text(timed.model_dump_json(indent=1) + "\n", "utf-8")
    return out / name


def _fill(
    folder: Path,
    title: str | None,
    model: Recommender,
    recipe: Recipe,
    record: dict[str, Any],
    data: Dataset,
    run: Path,
    out: Path,
    measured: dict[str, Any],
) -> Manifest:
    """Write every file of a bundle but its manifest, and return that."""
    stage("writing the graphs")
    seed = recipe.training.seed
    if not model.exports:
        raise SeqscopeError(
            f"{run} is {model.card.title}, which is too large for a bundle. Its ranks are in the run folder."
        )
    if unknown := [part for part in model.exports if part not in PARTS]:
        raise SeqscopeError(f"{recipe.family} exports {unknown[0]!r}, which is none; there are {', '.join(PARTS)}")
    cases = data.cases("test") if data.info.counts["test"] else data.cases("valid")
    if not len(cases):
        if model.needs_log:
            raise SeqscopeError(f"{data.path} has nobody with a held-out item, so the exported graph cannot be checked")
        cases = vectors.made_up(data.num_items, seed)
    draft = Draft(folder, run, out, recipe, data, cases)
    for part in model.exports:
        PARTS[part](model, draft)
    shared = weights.share(folder)
    compared = [check() for check in draft.checks]
    rows, geometry, shape = draft.rows, draft.index.geometry, model.attention
    placed = None
    if geometry != "none" and rows is not None and len(rows) > umap_map.NEIGHBOURS:
        stage("drawing the map")
        shown, xy, placed = umap_map.umap_map(rows, geometry, model.card.centred)
        umap_map.write_map(folder / "map.parquet", xy, item=shown)
    for table in EVALUATION[:2] if measured else ():
        shutil.copyfile(run / table, folder / table)
    seeds = other_seeds(run) if measured else None
    if seeds is not None:
        pq.write_table(seeds, folder / "seeds.parquet", compression="zstd")
    curve = record["curve"]
    if curve:
        columns = {name: pa.array([entry[name] for entry in curve], kind) for name, kind in CURVE.items()}
        pq.write_table(pa.table(columns), folder / "curve.parquet", compression="zstd")
    reasons = dict(model.card.reasons)
    if placed is None and geometry != "none" and rows is not None:
        reasons["map"] = f"{count(len(rows), 'item is', 'items are')} too few to draw a map of."
    reads_words = draft.text is not None or draft.sentence is not None
    if not reads_words:
        reasons["unseen_items"] = DESCRIBED if model.unseen_items else UNSEEN if draft.generator is None else UNWRITTEN
    if not model.trained_users:
        reasons["trained_users"] = "It has no user vectors: a user is represented by the history."
    versions: tuple[tuple[Literal[1, 2, 3, 4, 5, 7], object], ...] = (
        (7, draft.item_to_item), (5, shared), (4, draft.graph), (3, draft.sentence), (2, draft.generator or draft.text),
        (1, True),
    )  # fmt: skip
    called = recipe.title or model.card.title
    return Manifest(
        **provenance(folder, data, f"seqscope {__version__}, torch {torch.__version__}"),
        schema_version=next(version for version, needed in versions if needed),
        title=title or (f"{called[: TITLE - len(REFIT)]}{REFIT}" if refitted(record) else called),
        family=model.name,
        summary=model.card.summary,
        paper=model.card.paper + draft.paper,
        order=model.card.order + draft.order,
        encoder=Encoder(
            dim=draft.dim,
            max_length=model.max_length,
            min_history=model.min_history,
            gates=model.gated,
            filters=None if model.place_weights is None else model.place_weights.tolist(),
            matches=model.filter_window,
        ),
        attention=None
        if shape is None
        else Attention(
            **dataclasses.asdict(shape),
            unit="items" if draft.generator is None else "codes",
            whole_items=draft.generator is not None and shape.causal and draft.generator.kind == "encoder-decoder",
        ),
        generator=draft.generator,
        text=draft.text,
        sentence=draft.sentence,
        graph=draft.graph,
        item_to_item=draft.item_to_item,
        index=draft.index,
        capabilities=Capabilities(
            attention=shape is not None,
            neighbours=geometry != "none" and rows is not None,
            map=placed is not None,
            unseen_items=reads_words,
            trained_users=model.trained_users,
            reads_order=model.reads_order,
            reasons=reasons,
        ),
        training=Training.model_validate(
            record
            | {
                "recipe": recipe.identity(),
                "seed": seed,
                "improving": improving(record["best_epoch"], validated(curve)),
                "versions": {key: str(value) for key, value in record["versions"].items()},
            },
            extra="ignore",
        ),
        metrics=measured,
        projection=placed,
        check=next(check for check in compared if check is not None),
    )
