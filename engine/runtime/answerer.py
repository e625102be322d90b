"""What a bundle asks of its model, however that finds its answers: by an index of item vectors or by writing identifiers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.runtime.index import Float32, Int32

Events = npt.NDArray[np.int64]


class Answerer(Protocol):
    """Histories come checked, uncut and as int64 [length]; the model reads the latest `max_length` events of each."""

    @property
    def provider(self) -> str:
        """ONNX Runtime's execution provider that the model really runs on."""

    def warm(self) -> None:
        """Reads what is read on first use, makes the sessions and asks them once."""

    def top(self, events: Events, k: int, left_out: npt.NDArray[np.int64]) -> tuple[Int32, Float32]:
        """The k best items but those left out (fewer where there are fewer), best first, equal ones by number; their scores."""

    def top_many(
        self, histories: Sequence[Events], k: int, left_out: Sequence[npt.NDArray[np.int64]]
    ) -> Iterator[tuple[int, Int32, Float32]]:
        """As `top`, for each history once, in any order: (its place, items, scores). Many are encoded together."""

    def scores(self, events: Events) -> Float32:
        """float32 [items], a new array, finite."""

    def scores_near(self, histories: Sequence[Events], items: npt.NDArray[np.int64]) -> Iterator[Float32]:
        """For each history the score of every item; of those that score lower than all of `items`, −inf will do."""

    def near(self, item: int) -> Float32:
        """How near each item is to `item`, float32 [items]: cosine or minus distance, as the index's geometry says."""


def padded(histories: Sequence[Events], longest: int, padding: int) -> Events:
    """int64 [histories, length], cut to the latest `longest` events and filled up on the left; at least one column, as graphs
    do not take none."""
    histories = [history[-longest:] for history in histories]
    width = max(1, *(len(history) for history in histories))
    found = np.full((len(histories), width), padding, np.int64)
    for row, history in enumerate(histories):
        found[row, width - len(history) :] = history
    return found
