"""ranks.parquet as arrays, and the people that several models have in common. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.evaluation import metrics


@dataclass(frozen=True)
class Ranks:
    """One model under one protocol: arrays over people, of several held-out items over these, in the order of (user, target)."""

    user: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]
    length: npt.NDArray[np.int32]
    rank: npt.NDArray[np.float64]
    width: int | None = None
    """Of the beam that the ranks come from, which says nothing of places beyond it; None where all candidates were scored."""
    protocol: str = "full"

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def people(self) -> int:
        return len(np.unique(self.user))

    def take(self, rows: npt.NDArray[np.integer]) -> Ranks:
        user, target, length, rank = (column[rows] for column in (self.user, self.target, self.length, self.rank))
        return Ranks(user, target, length, rank, self.width, self.protocol)

    def values(self, metric: str) -> npt.NDArray[np.float64]:
        """Each person's share in a metric, float64 [people]."""
        return metrics.per_user(metric, self.rank, self.protocol, self.user)

    def lookup(
        self, user: npt.NDArray[np.integer], target: npt.NDArray[np.integer], values: npt.NDArray[np.int8]
    ) -> npt.NDArray[np.int8] | None:
        """Each row's value in a table of held-out items; None where it lacks one of them. All three: [held-out items]."""
        keys, known = pair_keys(self.user, self.target), pair_keys(user, target)
        order = np.argsort(known)
        places = np.searchsorted(known, keys, sorter=order)
        if not len(known) or places.max(initial=0) == len(known) or not np.array_equal(known[order[places]], keys):
            return None
        return values[order[places]]

    def beyond_beam(self, metric: str) -> str | None:
        """Why there is no figure for a metric, such as "beam of 20"; None where there is."""
        return metrics.beyond_beam(metrics.cutoff_of(metric), self.width)


def ranks(table: pa.Table, protocol: str, width: int | None = None) -> Ranks | None:
    """The rows of one protocol; None where there are none. table: ranks.parquet; width: as of `Ranks`."""
    rows = np.flatnonzero(table["protocol"].to_numpy() == protocol)
    if not len(rows):
        return None
    columns = [table[name].to_numpy()[rows] for name in ("user", "target", "history_length", "rank")]
    order = np.lexsort((columns[1], columns[0]))
    user, target, length, rank = (column[order] for column in columns)
    return Ranks(user, target, length, rank, width, protocol)


def common(rows: Mapping[str, Ranks]) -> tuple[dict[str, Ranks], int]:
    """(the same users with the same held-out items for every row, how many people lack one of theirs under some row)."""
    keys = {name: pair_keys(ranks.user, ranks.target) for name, ranks in rows.items()}
    if not keys:
        return {}, 0
    shared = everybody = next(iter(keys.values()))
    for key in keys.values():
        shared, everybody = np.intersect1d(shared, key), np.union1d(everybody, key)
    kept = {name: rows[name].take(np.searchsorted(key, shared)) for name, key in keys.items()}
    return kept, len(np.unique(np.setdiff1d(everybody, shared) >> 32))


def pair_keys(user: npt.NDArray[np.integer], target: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """One number for each held-out item of each person, in the order of (user, target)."""
    return user.astype(np.int64) << 32 | target
