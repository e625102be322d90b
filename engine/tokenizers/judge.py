"""The run against which a tokenizer's collaborative figures are taken: which items are near each other, and what codes rank."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch

from engine.data.dataset import Dataset
from engine.data.ragged import Ragged
from engine.errors import SeqscopeError
from engine.evaluation.protocols import history_excluded
from engine.models import Recommender
from engine.tokenizers import measures, teacher
from engine.tokenizers.base import Vectors
from engine.tokenizers.recipe import TokenizerRecipe

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
        return measures.neighbours(self.vectors)

    @functools.cached_property
    def nearest_by_cosine(self) -> np.ndarray:
        """int64 [items]: the other item of the nearest direction; rare items are as often near to others as popular ones."""
        return measures.neighbours(measures.unit(self.vectors))

    def axes(self, dim: int) -> Vectors:
        """float32 [d, dim]: where LETTER's latents of `dim` dimensions lie in the space of `vectors`."""
        return teacher.fitted(self.vectors, dim)[1]

    def rank(self, vectors: Vectors, split: str = "test") -> float:
        """NDCG@10 of the run's own queries with `vectors`, float32 [items, d], in place of its item vectors."""
        questions = self.questions[split]
        return measures.ndcg10(questions.queries, vectors, questions.left_out, questions.targets)


def find_judge(given: Path | None, recipe: TokenizerRecipe, dataset: Dataset, beside: Path) -> Judge | None:
    """The run `given`, else the recipe's teacher, else a SASRec run among the folders in `beside`; None where there is none."""
    if given is not None:
        return Judge.of(given, dataset)
    named = getattr(recipe.tokenizer, "teacher", None)
    if named is not None:
        return Judge.of(teacher.find(named, beside), dataset)
    folder = next((beside / name for name in RUNS if (beside / name / "run.json").exists()), None)
    return None if folder is None else Judge.of(folder, dataset)
