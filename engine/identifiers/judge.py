"""The SASRec run against which a tokenizer's collaborative figures are taken: who is near whom, and who ranks what."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import torch

from engine.data.dataset import Dataset
from engine.data.ragged import Ragged
from engine.evaluation.protocols import history_excluded
from engine.identifiers import measures, teacher
from engine.identifiers.base import Vectors
from engine.identifiers.recipe import TokenizerRecipe

RUNS = ("sasrec-bce", "sasrec", "sasrec-ce")
"""Looked for beside a tokenizer's run, in this order."""
BATCH = 512


class Judge:
    """vectors: float32 [items, d]; queries: float32 [cases, d] of the test cases; targets: theirs; left_out: items
    that are no candidates for a case, its history unless repeats count."""

    def __init__(self, name: str, vectors: Vectors, queries: Vectors, left_out: Ragged, targets: np.ndarray) -> None:
        self.name, self.vectors, self.queries, self.left_out, self.targets = name, vectors, queries, left_out, targets

    @classmethod
    def of(cls, folder: Path, dataset: Dataset) -> Judge:
        vectors, model, about = teacher.table(folder, dataset)
        cases = dataset.cases("test")
        queries = np.empty((len(cases), vectors.shape[1]), np.float32)
        order = np.argsort(cases.history.lengths, kind="stable")
        with torch.no_grad():
            for start in range(0, len(cases), BATCH):
                rows = order[start : start + BATCH]
                past = cases.history.take(rows)
                width = max(1, min(int(past.lengths.max(initial=1)), model.max_length))
                queries[rows] = model.query(torch.from_numpy(past.padded(width, model.pad))).numpy()
        excluded = np.full(len(cases.history.values), history_excluded(dataset.info.repeats))
        return cls(str(about["run"]), vectors, queries, cases.history.where(excluded), cases.targets)

    @functools.cached_property
    def nearest(self) -> np.ndarray:
        """int64 [items]: the other item of the largest dot product, as LETTER has it."""
        return measures.neighbours(self.vectors)

    @functools.cached_property
    def nearest_by_cosine(self) -> np.ndarray:
        """int64 [items]: the other item of the nearest direction; rare items are as often near to others as popular ones."""
        return measures.neighbours(measures.unit(self.vectors))

    def axes(self, dim: int) -> Vectors:
        """float32 [d, dim]: where LETTER's latents of `dim` dimensions lie in the space of `vectors`."""
        return teacher.fitted(self.vectors, dim)[1]

    def rank(self, vectors: Vectors) -> float:
        """NDCG@10 of the run's own queries with `vectors`, float32 [items, d], in place of its item vectors."""
        return measures.ndcg10(self.queries, vectors, self.left_out, self.targets)


def find_judge(given: Path | None, recipe: TokenizerRecipe, dataset: Dataset, beside: Path) -> Judge | None:
    """The run `given`, else the recipe's teacher, else a SASRec run among the folders in `beside`; None where there is none."""
    if given is not None:
        return Judge.of(given, dataset)
    named = getattr(recipe.tokenizer, "teacher", None)
    if named is not None:
        return Judge.of(teacher.find(named, beside), dataset)
    folder = next((beside / name for name in RUNS if (beside / name / "run.json").exists()), None)
    return None if folder is None else Judge.of(folder, dataset)
