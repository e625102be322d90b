"""Sequences of different lengths, kept flat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LONGEST = 10_000
"""Items of a history that a model reads, at most."""


def offsets_of(lengths: np.ndarray | Sequence[int]) -> np.ndarray:
    """int64 [rows + 1]: where sequences of these lengths begin that stand one after the other, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def spread(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """int64: starts[r], starts[r] + 1, …, as many as lengths[r] says, of one r after the other."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(lengths.sum())


@dataclass(frozen=True)
class Ragged:
    """Many sequences in one array: sequence r is ``values[offsets[r]:offsets[r + 1]]``.

    values: any dtype, shape [total]; offsets: int64, shape [rows + 1], ascending from 0 to total.
    """

    values: np.ndarray
    offsets: np.ndarray

    def __post_init__(self) -> None:
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.values):
            raise ValueError(
                f"offsets must run from 0 to {len(self.values)}, not {self.offsets[0]} to {self.offsets[-1]}"
            )

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]], dtype: type = np.int32) -> Ragged:
        lengths = [len(sequence) for sequence in sequences]
        values = np.concatenate([np.asarray(s, dtype) for s in sequences]) if sum(lengths) else np.empty(0, dtype)
        return cls(values, offsets_of(lengths))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """int64 [rows]"""
        return np.diff(self.offsets)

    @property
    def owners(self) -> np.ndarray:
        """int64 [total]: the sequence of each value."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def where(self, keep: np.ndarray) -> Ragged:
        """The values for which `keep` (bool [total]) holds, still in their sequences."""
        return Ragged(self.values[keep], offsets_of(keep)[self.offsets])

    def take(self, rows: np.ndarray) -> Ragged:
        """The sequences `rows` (int [m]), in that order."""
        return Ragged(self.values[self.positions(rows)], offsets_of(self.lengths[rows]))

    def positions(self, rows: np.ndarray) -> np.ndarray:
        """int64: where the values of the sequences `rows` (int [m]) stand in `values`, in that order."""
        return spread(self.offsets[rows], self.lengths[rows])

    def padded(self, width: int, pad: int) -> np.ndarray:
        """int64 [rows, width]: the last `width` values of each sequence, `pad` on the left of shorter ones."""
        column = self.offsets[1:, None] - width + np.arange(width)
        real = column >= self.offsets[:-1, None]
        out = np.full(column.shape, pad, np.int64)
        out[real] = self.values[column[real]]
        return out
