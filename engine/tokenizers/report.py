"""What a tokenizer's report says of its identifiers: usage of codes, collisions, what they share with the log and with
categories; report.json, and its table for people."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from scipy import sparse

from engine.bundle.codes import Usage
from engine.bundle.codes import purity as purity_of_prefixes
from engine.bundle.codes import usage as usage_of_codes
from engine.bundle.index import mean_rank
from engine.data.dataset import Dataset
from engine.data.identifiers import NONE, Identifiers
from engine.data.ragged import Ragged
from engine.errors import SeqscopeError
from engine.evaluation.metrics import ndcg
from engine.evaluation.protocols import history_excluded
from engine.models import Recommender
from engine.tokenizers import teacher
from engine.tokenizers.base import Codes, Material, Tokenizer, Vectors, codes_of
from engine.tokenizers.recipe import TokenizerRecipe
from engine.writing import in_percent

Array = npt.NDArray[Any]
CHUNK = 1024
RIDGE, ROUNDS = 1.0, 200
"""Of the regression of vectors on codes, and of the conjugate gradients that solve it."""


def usage(codes: Array, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Per level: codes there are, used, dead; perplexity 2^H of their use, and as a share of the codes; Gini of their use."""
    return [
        {
            "codes": level.size,
            "used": level.used,
            "dead": level.dead,
            "perplexity": level.perplexity,
            "perplexity_share": level.normalised,
            "gini": level.gini,
        }
        for level in usage_of_codes(codes, sizes)
    ]


def collisions(codes: Array) -> dict[str, Any]:
    """excess: (items − different identifiers) / items, as LETTER's code has it; sharing: share of items whose identifier is
    another item's as well; groups of such items and the largest of them (1 where none collide)."""
    counts = np.unique(codes, axis=0, return_counts=True)[1]
    items = max(len(codes), 1)
    return {
        "items": len(codes),
        "different": len(counts),
        "excess": (len(codes) - len(counts)) / items,
        "sharing": int(counts[counts > 1].sum()) / items,
        "groups": int((counts > 1).sum()),
        "largest": int(counts.max(initial=1)),
    }


def neighbours(vectors: Array) -> npt.NDArray[np.int64]:
    """int64 [items]: the other item of the largest dot product; ties go to the first. Unit vectors give the nearest by cosine."""
    nearest = np.empty(len(vectors), np.int64)
    for start in range(0, len(vectors), CHUNK):
        scores = vectors[start : start + CHUNK] @ vectors.T
        rows = np.arange(len(scores))
        scores[rows, start + rows] = -np.inf
        nearest[rows + start] = scores.argmax(1)
    return nearest


def unit(vectors: Array) -> Array:
    """Each row at length 1; rows of zeros stay."""
    scaled: Array = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return scaled


def shared(codes: Array, of: Array) -> float:
    """Mean number of places at which an item and the item `of[i]` have the same code.

    With the item of the largest dot product of pre-trained collaborative vectors as `of`, this is LETTER's "code similarity"
    (.085 for TIGER, .276 for LETTER). The paper gives no formula; of the obvious ones (share of places, any place, prefixes;
    by cosine, distance or product), this is the one that gives .2760 for the codes and the vectors that its authors published
    for Instruments.
    """
    return float(((codes == codes[of]) & (codes != NONE)).sum(1).mean()) if len(codes) else 0.0


def shared_by_chance(codes: Array) -> float:
    """`shared` of an item with any of the others, at random: by the pairs of items that have the same code."""
    counts = [np.unique(column[column != NONE], return_counts=True)[1] for column in codes.T]
    return float(sum((count * (count - 1)).sum() for count in counts) / max(len(codes) * (len(codes) - 1), 1))


def cosine(vectors: Array, of: Array) -> float:
    """Mean cosine of an item's vector and that of the item `of[i]`, the catalogue's mean taken off first."""
    centred = unit(vectors - vectors.mean(0))
    return float((centred * centred[of]).sum(1).mean())


def expressed(codes: Array, vectors: Array) -> Array:
    """float32 [items, d]: `vectors` as far as codes can say them: the sum of one vector per (level, code), fitted by ridge
    regression. Identifiers of like numbers of codes can be compared so, whatever space they were made in; codes that are so many
    that each says which item it is (words of titles) express anything."""
    rows, levels = np.nonzero(codes != NONE)
    names = np.stack([levels, codes[rows, levels]], 1)
    columns = np.unique(names, axis=0, return_inverse=True)[1]
    design = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(codes), columns.max(initial=0) + 1))
    mean = vectors.mean(0, dtype=np.float64)
    right_side = design.T @ (vectors - mean)
    # conjugate gradients on (AᵀA + RIDGE) W = Aᵀ V, all columns of V at once
    weights = np.zeros_like(right_side)
    residual = right_side.copy()
    direction, square = residual.copy(), np.square(residual).sum(0)
    first = max(float(square.max(initial=0)), 1e-30)
    for _ in range(ROUNDS):
        if square.max(initial=0) < 1e-12 * first:
            break
        image = design.T @ (design @ direction) + RIDGE * direction
        step = square / np.maximum((direction * image).sum(0), 1e-30)
        weights += step * direction
        residual -= step * image
        before, square = square, np.square(residual).sum(0)
        direction = residual + direction * (square / np.maximum(before, 1e-30))
    reconstruction: Array = (design @ weights + mean).astype(np.float32)
    return reconstruction


def ndcg10(queries: Array, vectors: Array, left_out: Ragged, targets: Array) -> float:
    """NDCG@10 of ranking all items by query · vector but those left out (never the target); ties take the mean rank.

    queries: [cases, d]; vectors: [items, d]; left_out: items, one row per case; targets: int [cases].
    """
    gains = np.zeros(len(queries))
    for start in range(0, len(queries), CHUNK):
        part = slice(start, start + CHUNK)
        scores = queries[part] @ vectors.T
        rows = np.arange(len(scores))
        target_scores = scores[rows, targets[part]].copy()
        past = left_out.take(start + rows)
        scores[np.repeat(rows, past.lengths), past.values] = -np.inf
        scores[rows, targets[part]] = target_scores
        gains[part] = ndcg(mean_rank(scores, target_scores), 10)
    return float(gains.mean()) if len(gains) else 0.0


def purity(codes: Array, categories: Array, seed: int = 0) -> list[dict[str, Any]]:
    """As `engine.bundle.codes.purity`, 0 where there is nobody to compare with: JSON has no NaN."""
    depths = (depth._asdict() for depth in purity_of_prefixes(codes, categories, seed))
    return [depth if depth["items"] else depth | {"purity": 0.0, "chance": 0.0} for depth in depths]


def squeeze(codes: Array, popularity: Array) -> dict[str, Any]:
    """Whether rare items are squeezed into few codes: thirds of the catalogue by training events (most taken first), and for each
    the perplexity of its first codes, the share of items that share an identifier, and the events it has. `ratio` is the
    perplexity of the last third over that of the first: below 1, the tail has fewer codes to itself."""
    _, group, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    sharing = counts[group] > 1
    thirds = {}
    for name, rows in zip(
        ("head", "torso", "tail"), np.array_split(np.argsort(-popularity, kind="stable"), 3), strict=True
    ):
        thirds[name] = {
            "items": len(rows),
            "events": int(popularity[rows].sum()),
            "perplexity": Usage(np.unique(codes[rows, 0], return_counts=True)[1]).perplexity,
            "sharing": float(sharing[rows].mean()) if len(rows) else 0.0,
        }
    return {**thirds, "ratio": thirds["tail"]["perplexity"] / thirds["head"]["perplexity"]}


# --- the run against which collaborative figures are taken: which items are near each other, and what codes rank


RUNS = ("sasrec-bce", "sasrec", "sasrec-ce")
"""Looked for beside a tokenizer's run, in this order."""
BATCH = 512


@dataclass(frozen=True)
class Questions:
    """What a model asks for the held-out items of one split."""

    queries: Vectors
    """float32 [cases, d]"""
    left_out: Ragged
    """Items that are no candidates, a row per case: its history unless repeats count."""
    targets: np.ndarray
    """int [cases]"""

    @classmethod
    def of(cls, model: Recommender, dim: int, dataset: Dataset, split: str) -> Self:
        """dim: of the model's queries."""
        cases = dataset.cases(split)
        queries = np.empty((len(cases), dim), np.float32)
        order = np.argsort(cases.history.lengths, kind="stable")
        with torch.no_grad():
            for start in range(0, len(cases), BATCH):
                rows = order[start : start + BATCH]
                past = cases.history.take(rows)
                width = max(1, min(int(past.lengths.max(initial=1)), model.max_length))
                queries[rows] = model.query(torch.from_numpy(past.padded(width, model.pad))).numpy()
        excluded = np.full(len(cases.history.values), history_excluded(dataset.info.repeats))
        return cls(queries, cases.history.where(excluded), cases.targets)


class Judge:
    """vectors: float32 [items, d]; questions: split ("valid", for choosing settings, or "test") → what is asked there."""

    def __init__(self, name: str, vectors: Vectors, questions: Mapping[str, Questions]) -> None:
        self.name, self.vectors, self.questions = name, vectors, questions

    @classmethod
    def of(cls, folder: Path, dataset: Dataset) -> Judge:
        if dataset.info.sets:
            raise SeqscopeError(f"{dataset.path} holds out several items a user; a judge of identifiers ranks one")
        vectors, model, about = teacher.table(folder, dataset)
        dim = vectors.shape[1]
        questions = {split: Questions.of(model, dim, dataset, split) for split in ("valid", "test")}
        return cls(str(about["run"]), vectors, questions)

    @functools.cached_property
    def nearest(self) -> np.ndarray:
        """int64 [items]: the other item of the largest dot product, as LETTER has it."""
        return neighbours(self.vectors)

    @functools.cached_property
    def nearest_by_cosine(self) -> np.ndarray:
        """int64 [items]: the other item of the nearest direction; rare items are as often near to others as popular ones."""
        return neighbours(unit(self.vectors))

    def axes(self, dim: int) -> Vectors:
        """float32 [d, dim]: where LETTER's latents of `dim` dimensions lie in the space of `vectors`."""
        return teacher.fitted(self.vectors, dim)[1]

    def rank(self, vectors: Vectors, split: str = "test") -> float:
        """NDCG@10 of the run's own queries with `vectors`, float32 [items, d], in place of its item vectors."""
        questions = self.questions[split]
        return ndcg10(questions.queries, vectors, questions.left_out, questions.targets)


def find_judge(given: Path | None, recipe: TokenizerRecipe, dataset: Dataset, beside: Path) -> Judge | None:
    """The run `given`, else the recipe's teacher, else a SASRec run among the folders in `beside`; None where there is none, or
    where the dataset lets none judge."""
    if given is not None:
        return Judge.of(given, dataset)
    if dataset.info.sets:
        return None
    named = getattr(recipe.tokenizer, "teacher", None)
    folder = None if named is None else teacher.lookup(named, beside)
    folder = folder or next((beside / name for name in RUNS if (beside / name / "run.json").exists()), None)
    return None if folder is None else Judge.of(folder, dataset)


# --- the report


CATEGORIES = ("categories", "category", "genres", "genre")


def describe(
    tokenizer: Tokenizer, identifiers: Identifiers, material: Material, dataset: Dataset, judge: Judge | None
) -> dict[str, Any]:
    """What report.json holds. judge: the SASRec run that collaborative figures are taken against; None leaves them out."""
    codes = identifiers.codes[:, : len(tokenizer.sizes)]  # without a number that only counts
    codes = np.where(codes >= np.array(tokenizer.sizes), -1, codes)
    report = figures(codes, tokenizer.sizes, dataset.popularity, categories(material.items), judge)
    raw = codes_of(tokenizer, material)
    quantised = tokenizer.quantised(codes)
    report["before"] = collisions(raw)
    report["after"] = collisions(identifiers.codes)
    report["policy"] = identifiers.about.get("collisions")
    report["moved"] = int((codes != raw[:, : codes.shape[1]]).any(1).sum())
    report["reconstruction"] = tokenizer.lost(material, codes)
    if judge is not None and quantised is not None:
        report["neighbours"]["cosine"] = cosine(quantised, judge.nearest)
        if judge.name == identifiers.about.get("teacher", {}).get("run"):
            # LETTER's ẑ lives in the teacher's space, so it can stand in for the teacher's vectors as it is
            report["ranking"]["latents"] = judge.rank(quantised @ judge.axes(quantised.shape[1]).T)
    return report


def figures(
    codes: Codes,
    sizes: tuple[int, ...],
    popularity: np.ndarray,
    labels: tuple[str, np.ndarray] | None,
    judge: Judge | None,
) -> dict[str, Any]:
    """The figures that need nothing but codes; also of codes that somebody else published."""
    report: dict[str, Any] = {
        "items": len(codes),
        "levels": usage(codes, sizes),
        "collisions": collisions(codes),
        "squeeze": squeeze(codes, popularity),
    }
    if labels is not None:
        report["purity"] = {"column": labels[0], "depths": purity(codes, labels[1])}
    if judge is not None:
        report["neighbours"] = {
            "of": judge.name,
            "shared": shared(codes, judge.nearest),
            "shared_by_cosine": shared(codes, judge.nearest_by_cosine),
            "chance": shared_by_chance(codes),
        }
        fitted = expressed(codes, judge.vectors)
        report["ranking"] = {
            "of": judge.name,
            "own": judge.rank(judge.vectors),
            "quantised": judge.rank(fitted),
            "validation": judge.rank(fitted, "valid"),
        }
    return report


def categories(items: pa.Table) -> tuple[str, np.ndarray] | None:
    """A column of categories and the category of each item, int [items], −1 where it has none; None where there is no such
    column. Of a path the first element at which items differ; of a text the part before the first comma."""
    column = next((name for name in CATEGORIES if name in items.column_names), None)
    if column is None:
        return None
    paths = [
        value if isinstance(value, list) else [part.strip() for part in str(value).split(",") if part.strip()]
        for value in ("" if value is None else value for value in items[column].to_pylist())
    ]
    depth = 0
    if pa.types.is_list(items.schema.field(column).type):
        while depth < 8 and len({path[depth] if len(path) > depth else None for path in paths}) == 1:
            depth += 1
    names = [path[min(depth, len(path) - 1)] if path else None for path in paths]
    numbers = {name: number for number, name in enumerate(sorted({name for name in names if name is not None}))}
    return column, np.array([-1 if name is None else numbers[name] for name in names])


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    lines = ["level   codes    used    dead  perplexity   of codes    gini"]
    for number, level in enumerate(report["levels"], 1):
        lines.append(
            f"{number:<5} {level['codes']:>7} {level['used']:>7} {level['dead']:>7} {level['perplexity']:>11.1f} "
            f"{in_percent(level['perplexity_share'], 1):>9} {level['gini']:>7.3f}"
        )
    for name, title in (("before", "collisions as fitted"), ("after", f'collisions after "{report.get("policy")}"')):
        if name in report:
            collisions = report[name]
            lines.append(
                f"{title}: {in_percent(collisions['excess'], 2)} of items in excess of different identifiers, "
                f"{in_percent(collisions['sharing'], 2)} share theirs, largest group {collisions['largest']}"
            )
    if report.get("reconstruction") is not None:
        lines.append(
            f"reconstruction: {in_percent(report['reconstruction'], 1)} of the variance of item vectors is lost"
        )
    if "neighbours" in report:
        near, ranking = report["neighbours"], report["ranking"]
        lines.append(
            f"codes shared with the nearest item ({near['of']}): {near['shared']:.4f} by dot product, "
            f"{near['shared_by_cosine']:.4f} by cosine, {near['chance']:.4f} by chance"
        )
        letter = f", {ranking['latents']:.4f} with ẑ itself" if "latents" in ranking else ""
        lines.append(
            f"NDCG@10 of {ranking['of']}: {ranking['own']:.4f}, {ranking['quantised']:.4f} with vectors made of codes{letter}"
        )
        if "validation" in ranking:
            lines.append(
                f"on the validation items, to choose settings by: {ranking['validation']:.4f} with vectors made of codes"
            )
    if "purity" in report:
        depths = "; ".join(
            f"depth {entry['depth']} {entry['purity']:.3f} (chance {entry['chance']:.3f}, {entry['items']} items)"
            if entry["items"]
            else f"depth {entry['depth']} – (no two items share a prefix)"
            for entry in report["purity"]["depths"]
        )
        lines.append(f"purity of prefixes by {report['purity']['column']}: {depths}")
    squeeze = report["squeeze"]
    if not any(squeeze[third]["events"] for third in ("head", "torso", "tail")):
        return "\n".join(lines)  # without a log nothing is rare
    lines.append(
        f"first codes of the rarest third: perplexity {squeeze['tail']['perplexity']:.1f} "
        f"against {squeeze['head']['perplexity']:.1f} of the most popular ({squeeze['ratio']:.2f} times)"
    )
    return "\n".join(lines)
