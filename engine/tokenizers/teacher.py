"""Collaborative item vectors: those that a run of ours scores with, so that their origin is known and can be had again.

The run saw training events alone and was chosen on validation. Row i is item i: our tables keep padding behind the items and
not before them, so there is nothing to shift (LETTER's exports once were off by that one row).
"""

from pathlib import Path
from typing import Any

import numpy as np

from engine.bundle.curve import LEAKS, refitted
from engine.data.dataset import Dataset
from engine.errors import SeqscopeError
from engine.files import digest_of
from engine.models import Recommender
from engine.tokenizers.base import Vectors
from engine.training.run import open_run


def lookup(name: str, beside: Path) -> Path | None:
    """The run folder that `name` means: a folder in `beside`, or a path; None where there is no such run."""
    return next((folder for folder in (beside / name, Path(name)) if (folder / "run.json").exists()), None)


def find(name: str, beside: Path) -> Path:
    """As `lookup`. Raises SeqscopeError where there is no such run."""
    if (folder := lookup(name, beside)) is not None:
        return folder
    raise SeqscopeError(
        f"there is no run {beside / name} to learn from. Train it first (`seqscope train {name} --dataset …`), "
        "or name another with --set tokenizer.teacher=…"
    )


def table(folder: Path, dataset: Dataset) -> tuple[Vectors, Recommender, dict[str, Any]]:
    """The item vectors float32 [items, d] of the run `folder`, its model, and where they come from.

    Raises SeqscopeError where it is a refit, or where its scores are not dot products with vectors that were learnt of users: dot
    products of items are what LETTER compares.
    """
    model, recipe, record, trained_on = open_run(folder, dataset.path)
    if refitted(record):
        raise SeqscopeError(f"{folder} {LEAKS}")
    rows, bias = model.index()
    if rows is None or bias.any() or set(model.needs) - {"graph"}:
        raise SeqscopeError(
            f"{folder} is a run of {recipe.family}; collaborative vectors come from a model that scores by a dot product with a "
            "vector learnt of each item: SASRec, LightGCN or NGCF"
        )
    if len(rows) != trained_on.num_items:
        raise SeqscopeError(f"{folder} has {len(rows)} item vectors for {trained_on.num_items} items")
    about = {
        "run": folder.name,
        "recipe": record["recipe"],
        "commit": record.get("commit"),
        "fingerprint": record["fingerprint"],
        "best_epoch": record.get("best_epoch"),
        "valid_ndcg": record.get("valid_ndcg"),
        "digest": digest_of(folder / "best.safetensors"),
    }
    return rows.detach().numpy().astype(np.float32), model, about


def fitted(vectors: Vectors, dim: int, length: float = 0.0, unit: bool = False) -> tuple[Vectors, Vectors, float]:
    """`vectors` in `dim` dimensions, the axes float32 [d, dim] they stand on, and the share of squared length that is left.

    Fewer dimensions: the projection whose dot products are nearest to the old ones (leading right singular vectors, not
    centred). unit: all vectors get the same length; length: what the mean length becomes, 0 leaves it. Raises ValueError where
    more dimensions are asked for.
    """
    width = vectors.shape[1]
    if dim > width:
        raise ValueError(f"the teacher's vectors have {width} dimensions; tokenizer.dim is {dim}")
    axes = np.eye(width)
    if dim < width:
        eigenvectors = np.linalg.eigh(vectors.T.astype(np.float64) @ vectors)[1]
        axes = eigenvectors[:, ::-1][:, :dim]
        axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(dim)])
    short = vectors @ axes
    explained = float(np.square(short).sum() / max(float(np.square(vectors, dtype=np.float64).sum()), 1e-12))
    if unit:
        short = short / np.maximum(np.linalg.norm(short, axis=1, keepdims=True), 1e-12)
    if length:
        short = short * (length / max(float(np.linalg.norm(short, axis=1).mean()), 1e-12))
    return short.astype(np.float32), axes.astype(np.float32), explained
