"""Write a trained model as a bundle, exports/<dataset>/<name>/, and the dataset's side tables beside it."""

from __future__ import annotations

import dataclasses
import datetime
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from engine import __version__
from engine.console import stage
from engine.data.dataset import Dataset
from engine.data.words import ItemWords, parse
from engine.errors import SeqscopeError, UsageError
from engine.evaluation.settled import improving, validated
from engine.export import check, generator, graphs, interactions, places, projection, sentence, text, tokenization
from engine.export.side import USERS, check_name_and_title, exported, file_of
from engine.generation import Generator
from engine.models import Recformer, Recommender, TextNeighbours
from engine.models.graph import GraphRecommender
from engine.runtime.bundle import Bundle, Catalogue
from engine.runtime.manifest import Attention, Capabilities, Check, Encoder, Index, Manifest, Training
from engine.runtime.sentences import WORDS
from engine.runtime.studies import STUDIES
from engine.runtime.zoo import IDENTIFIERS, SPACES
from engine.training import texts
from engine.training.recipe import Recipe
from engine.training.run import open_run

ORDER = {
    "sasrec": 10,
    "bert4rec": 20,
    "attrec": 30,
    "lightgcn": 34,
    "ngcf": 35,
    "mult-vae": 37,
    "recformer": 40,
    "text-neighbours": 70,
    "encoder-decoder": 50,
    "decoder-only": 60,
    "markov": 80,
    "popularity": 90,
}

EVALUATION = ("ranks.parquet", "exposure.parquet", "metrics.json")
UNORDERED = "It reads a history as a set: in any order its list is the same."
UNWRITTEN = "It writes the identifiers of this catalogue alone."
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
    check_name_and_title(name, title)
    reserved = {IDENTIFIERS: "tokenizers", SPACES: "vectors of items", STUDIES: "studies", WORDS: "text encoders"}
    if name in reserved:
        raise UsageError(f"--name {name}: that folder is for {reserved[name]}; give another name")
    if users < 1:
        raise UsageError(f"--users {users}: offer at least one person")
    measured = all((run / file).exists() for file in EVALUATION)
    if data.info.counts["test"] and not measured:
        raise SeqscopeError(
            f"{run} was not evaluated yet, so its bundle would have no metrics. Run `seqscope evaluate {run}` first."
        )
    with exported(out / name, data, out, users) as folder:
        manifest = _fill(folder, name, title, model, recipe, record, data, run, out)
        (folder / "manifest.json").write_text(manifest.model_dump_json(indent=1) + "\n", "utf-8")
        # the reader has the last word
        Bundle.open(folder, Catalogue(data.info.name, data.info.fingerprint, data.num_items)).warm()
    return out / name


def _fill(
    folder: Path,
    name: str,
    title: str | None,
    model: Recommender,
    recipe: Recipe,
    record: dict[str, Any],
    data: Dataset,
    run: Path,
    out: Path,
) -> Manifest:
    """Write every file of a bundle but its manifest, and return that."""
    stage("writing the graphs")
    seed = recipe.training.seed
    shape, described, read, asks, walked = model.attention, None, None, None, None
    cases = data.cases("test") if data.info.counts["test"] else data.cases("valid")
    if not len(cases):
        if model.needs_log:
            raise SeqscopeError(f"{data.path} has nobody with a held-out item, so the exported graph cannot be checked")
        cases = check.made_up(data.num_items, seed)
    if isinstance(model, Generator):
        if shape is None:
            raise SeqscopeError(
                f"{run} is a large language model; bundles hold small ones. Its ranks are in the run folder."
            )
        generator.write(model, folder)
        rows = generator.copy_tables(run, folder)
        described = generator.describe(model, folder)
        kind, geometry, dim = "generated", "none" if rows is None else "euclidean", model.dim
        compared, lengths, difference = generator.compare(folder, model, cases, seed)
    else:
        if isinstance(model, Recformer):
            text.widen(model, ItemWords.read(run))
        rows = _write_vectors(model, folder)
        if isinstance(model, Recformer):
            words = ItemWords.read(run)
            share = texts.understood(recipe.model, data, parse(words.tokenizer)).share
            read = text.write(model, folder, words, round(share, 4))
        if isinstance(model, TextNeighbours):
            asks = sentence.write(model, folder, run, out)
        if isinstance(model, GraphRecommender):
            walked = interactions.write(model, folder)
        kind, geometry = "identity" if rows is None else "dense", model.card.geometry
        dim = data.num_items if rows is None else rows.shape[1]
        compared, lengths, difference = check.compare(folder, model, cases, seed)
    placed = None
    if geometry != "none" and rows is not None and len(rows) > projection.NEIGHBOURS:
        stage("drawing the map")
        shown, xy, placed = places.found(rows, geometry, model.card.centred)
        places.write(folder / "map.parquet", xy, item=shown)
    measured = all((run / file).exists() for file in EVALUATION)
    for table in EVALUATION[:2] if measured else ():
        shutil.copyfile(run / table, folder / table)
    curve = record["curve"]
    if curve:
        _write(
            folder / "curve.parquet",
            {
                "step": np.array([c["step"] for c in curve], np.int64),
                "epoch": np.array([c["epoch"] for c in curve], np.int32),
                "seconds": np.array([c["seconds"] for c in curve], np.float32),
                "loss": np.array([c["loss"] for c in curve], np.float32),
                "valid_ndcg": pa.array([c["valid_ndcg"] for c in curve], pa.float32()),
            },
        )
    reasons = dict(model.card.reasons)
    if placed is None and geometry != "none" and rows is not None:
        reasons["map"] = f"{len(rows):,} items are too few to draw a map of."
    if read is None and asks is None:
        reasons["unseen_items"] = UNSEEN if described is None else UNWRITTEN
    if not model.trained_users:
        reasons["trained_users"] = "It has no vectors for people; it knows them by their histories."
    if not model.reads_order:
        reasons.setdefault("reads_order", UNORDERED)
    paper, order = model.card.paper, ORDER.get(model.name, 50)
    if isinstance(model, Generator):
        made = tokenization.card(
            str(model.identifiers.about.get("tokenizer")), str(model.identifiers.about.get("family"))
        )
        order += made.order // 10
        if made.paper and not made.paper.startswith(paper):
            paper += f"; its identifiers: {made.paper}"
    return Manifest(
        schema_version=4 if walked else 3 if asks else 2 if described or read else 1,
        name=name,
        title=title or recipe.title or model.card.title,
        family=model.name,
        summary=model.card.summary,
        paper=paper,
        order=order,
        dataset=data.info.name,
        fingerprint=data.info.fingerprint,
        num_items=data.num_items,
        encoder=Encoder(
            dim=dim,
            max_length=model.max_length,
            min_history=model.min_history,
        ),
        attention=None
        if shape is None
        else Attention(
            **dataclasses.asdict(shape),
            unit="items" if described is None else "codes",
            whole_items=described is not None and shape.causal and described.kind == "encoder-decoder",
        ),
        generator=described,
        text=read,
        sentence=asks,
        graph=walked,
        index=Index(kind=kind, geometry=geometry, centred=model.card.centred or None),  # type: ignore[arg-type]
        capabilities=Capabilities(
            attention=shape is not None,
            neighbours=geometry != "none" and rows is not None,
            map=placed is not None,
            unseen_items=read is not None or asks is not None,
            trained_users=model.trained_users,
            reads_order=model.reads_order,
            reasons=reasons,
        ),
        training=Training(
            recipe=recipe.to_dict(),
            command=record["command"],
            commit=record["commit"],
            device=record["device"],
            seconds=float(record["seconds"]),
            seed=seed,
            epochs=record["epochs"],
            best_epoch=record["best_epoch"],
            improving=improving(record["best_epoch"], validated(curve)),
            parameters=record["parameters"],
            versions={key: str(value) for key, value in record["versions"].items()},
            started=record["started"],
        ),
        metrics=json.loads((run / "metrics.json").read_text("utf-8")) if measured else {},
        projection=placed,
        check=Check(histories=compared, lengths=lengths, max_abs_difference=difference),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        created_by=f"seqscope {__version__}, torch {torch.__version__}",
        files={path.name: file_of(path) for path in sorted(folder.iterdir())},
    )


def _write_vectors(model: Recommender, folder: Path) -> np.ndarray | None:
    """encoder.onnx, attention.onnx where it attends, and index.npy; returns the item rows, None for an identity index."""
    graphs.write_encoder(model, folder / "encoder.onnx")
    if model.attention is not None and not isinstance(model, Recformer):
        graphs.write_attention(model, folder / "attention.onnx")
    index = model.index()
    bias = index.bias.detach().numpy().astype(np.float32)[:, None]
    rows = None if index.rows is None else index.rows.detach().numpy().astype(np.float32)
    np.save(folder / "index.npy", bias if rows is None else np.concatenate([rows, bias], axis=1), allow_pickle=False)
    return rows


def _write(path: Path, columns: dict[str, Any]) -> None:
    pq.write_table(pa.table(columns), path, compression="zstd")
