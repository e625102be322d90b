"""Write a trained model as a bundle, exports/<dataset>/<name>/, and the dataset's side tables beside it."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from engine import __version__
from engine.data.dataset import Dataset
from engine.data.words import ItemWords
from engine.errors import SeqscopeError, UsageError
from engine.export import check, generator, graphs, projection, text
from engine.files import replacing
from engine.generation import Generator
from engine.models import Recformer, Recommender
from engine.runtime import Zoo
from engine.runtime.bundle import Bundle, Catalogue
from engine.runtime.manifest import Attention, Capabilities, Check, Encoder, File, Index, Manifest, Projection, Training
from engine.runtime.tokenizations import ABOUT
from engine.runtime.zoo import IDENTIFIERS
from engine.training.recipe import Recipe
from engine.training.run import open_run

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
ORDER = {
    "sasrec": 10,
    "bert4rec": 20,
    "attrec": 30,
    "recformer": 40,
    "encoder-decoder": 50,
    "decoder-only": 60,
    "markov": 80,
    "popularity": 90,
}
TITLE = 60
"""Characters of a title that pages have room for."""
USERS = 2_000
"""People with a held-out item that an export offers to try models on, where the dataset has more."""

UNWRITTEN = "It writes the identifiers of this catalogue alone. Give the new items identifiers and export it again."
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
    if not NAME.fullmatch(name):
        raise UsageError(f"--name {name}: use lowercase letters, digits, dashes and underscores")
    if name == IDENTIFIERS:
        raise UsageError(f"--name {name}: that folder is for tokenizers; give another name")
    if title and len(title) > TITLE:
        raise UsageError(f"--title: {len(title)} characters; pages have room for {TITLE}")
    if users < 1:
        raise UsageError(f"--users {users}: offer at least one person")
    if not all((run / file).exists() for file in ("ranks.parquet", "exposure.parquet", "metrics.json")):
        raise SeqscopeError(
            f"{run} was not evaluated yet, so its bundle would have no metrics. Run `seqscope evaluate {run}` first."
        )
    try:
        write_dataset_side(data, out, users)
        return _write_bundle(run, out, name, title, model, recipe, record, data)
    except OSError as error:
        raise SeqscopeError(f"{error.filename or out}: {error.strerror or error}. Nothing was exported.")


def _write_bundle(
    run: Path,
    out: Path,
    name: str,
    title: str | None,
    model: Recommender,
    recipe: Recipe,
    record: dict[str, Any],
    data: Dataset,
) -> Path:
    """Everything in a staging folder, then in its place."""
    staged = Path(tempfile.mkdtemp(dir=out, prefix=".staging-"))
    try:
        folder = staged / name
        folder.mkdir()
        manifest = _fill(folder, name, title, model, recipe, record, data, run)
        (folder / "manifest.json").write_text(manifest.model_dump_json(indent=1) + "\n", "utf-8")
        # the reader has the last word
        bundle = Bundle.open(folder, Catalogue(data.info.name, data.info.fingerprint, data.num_items))
        bundle.warm()
        target = out / name
        if target.exists():
            target.rename(staged / "old")
        try:
            folder.rename(target)
        except OSError:
            if (staged / "old").exists():
                (staged / "old").rename(target)
            raise
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return target


def write_dataset_side(data: Dataset, out: Path, users: int) -> None:
    """dataset.json, items.parquet and users.parquet of an export folder; they are left alone where they are this dataset's."""
    info = out / "dataset.json"
    if out.is_dir():
        try:
            found = json.loads(info.read_text("utf-8")).get("fingerprint")
        except (FileNotFoundError, ValueError, AttributeError):
            found = None
        others = [child.name for child in out.iterdir() if (child / "manifest.json").exists()]
        others += [f"{IDENTIFIERS}/{path.parent.name}" for path in out.glob(f"{IDENTIFIERS}/*/{ABOUT}")]
        if found != data.info.fingerprint and others:
            raise SeqscopeError(
                f"{out} holds bundles ({', '.join(sorted(others))}) of other data or another state of it. "
                "Export to another folder, or delete it."
            )
    out.mkdir(parents=True, exist_ok=True)
    items = pq.read_table(data.path / "items.parquet").sort_by("item")
    items = items.append_column("popularity", pa.array(data.popularity, pa.int64()))
    with replacing(out / "items.parquet") as staged:
        pq.write_table(items, staged, compression="zstd")
    cases = data.cases("test")
    rows = np.arange(len(cases))
    if len(rows) > users:
        rows = np.sort(np.random.default_rng(0).choice(len(rows), users, replace=False))
    part = cases.take(rows)
    names = pq.read_table(data.path / "users.parquet", columns=["user_id"])["user_id"].take(pa.array(part.users))
    history = pa.ListArray.from_arrays(
        pa.array(part.history.offsets, pa.int32()), pa.array(part.history.values, pa.int32())
    )
    with replacing(out / "users.parquet") as staged:
        pq.write_table(
            pa.table({"user": part.users, "user_id": names, "history": history, "target": part.targets}),
            staged,
            compression="zstd",
        )
    with replacing(info) as staged:
        shutil.copyfile(data.path / "dataset.json", staged)
    Zoo.open(out)


def _fill(
    folder: Path,
    name: str,
    title: str | None,
    model: Recommender,
    recipe: Recipe,
    record: dict[str, Any],
    data: Dataset,
    run: Path,
) -> Manifest:
    """Write every file of a bundle but its manifest, and return that."""
    seed = recipe.training.seed
    shape, described, read = model.attention, None, None
    cases = data.cases("test") if data.info.counts["test"] else data.cases("valid")
    if not len(cases):
        raise SeqscopeError(f"{data.path} has nobody with a held-out item, so the exported graph cannot be checked")
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
        rows = _write_vectors(model, folder)
        if isinstance(model, Recformer):
            read = text.write(model, folder, ItemWords.read(run))
        kind, geometry = "identity" if rows is None else "dense", model.card.geometry
        dim = data.num_items if rows is None else rows.shape[1]
        compared, lengths, difference = check.compare(folder, model, cases, seed)
    placed = None
    if geometry != "none" and rows is not None and len(rows) > projection.NEIGHBOURS:
        xy, parameters = projection.umap(rows, geometry, seed=42)
        _write(folder / "map.parquet", {"item": np.arange(len(xy), dtype=np.int32), "x": xy[:, 0], "y": xy[:, 1]})
        trust = projection.trustworthiness(rows, xy, geometry, projection.NEIGHBOURS, seed)
        placed = Projection(
            method="UMAP", parameters=parameters, trustworthiness=trust, neighbours=projection.NEIGHBOURS
        )
    for table in ("ranks.parquet", "exposure.parquet"):
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
    if read is None:
        reasons["unseen_items"] = UNSEEN if described is None else UNWRITTEN
    if not model.trained_users:
        reasons["trained_users"] = "It has no vectors for people; it knows them by their histories."
    return Manifest(
        schema_version=1 if described is None and read is None else 2,
        name=name,
        title=title or recipe.title or model.card.title,
        family=model.name,
        summary=model.card.summary,
        paper=model.card.paper,
        order=ORDER.get(model.name, 50),
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
        index=Index(kind=kind, geometry=geometry),  # type: ignore[arg-type]
        capabilities=Capabilities(
            attention=shape is not None,
            neighbours=geometry != "none" and rows is not None,
            map=placed is not None,
            unseen_items=read is not None,
            trained_users=model.trained_users,
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
            parameters=record["parameters"],
            versions={key: str(value) for key, value in record["versions"].items()},
            started=record["started"],
        ),
        metrics=json.loads((run / "metrics.json").read_text("utf-8")),
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


def file_of(path: Path) -> File:
    """How a manifest names a file."""
    with path.open("rb") as file:
        return File(sha256=hashlib.file_digest(file, "sha256").hexdigest(), bytes=path.stat().st_size)


def _write(path: Path, columns: dict[str, Any]) -> None:
    pq.write_table(pa.table(columns), path, compression="zstd")
