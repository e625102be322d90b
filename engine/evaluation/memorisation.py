"""Which held-out items follow from counts of the training log, and which ask for more. Needs no torch.

Ding et al., How Well Does Generative Recommendation Generalize? (arXiv 2603.19809), call a held-out item memorised where training
has it right after the last item of the history. Counting models read further back and count further ahead, so a second kind is
told apart here: it came within PLACES after some item of the history.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.dataset import Cases, Dataset
from engine.data.ragged import Ragged
from engine.files import replacing

FILE = "held_out.parquet"
"""Beside bundles: user, target and what `memorised` says of them."""
PLACES = 3
UNSEEN, NEXT, NEAR = 0, 1, 2
"""Training has the held-out item after no item of the history; right after its last one; otherwise within PLACES after one."""
_ROWS = 1 << 22  # pairs of an item of a history and a held-out item that are looked up at a time


def memorised(training: Ragged, cases: Cases, items: int) -> npt.NDArray[np.int8]:
    """UNSEEN, NEXT or NEAR of each held-out item: int8 [targets]. training: of each user, oldest first; items: how many."""
    pairs = [_pairs(training, distance, items) for distance in range(1, PLACES + 1)]
    kinds = np.full(len(cases.targets), UNSEEN, np.int8)
    lengths = cases.history.lengths[cases.owner]
    for part in _parts(lengths):
        histories = cases.history.take(cases.owner[part])
        target = np.repeat(cases.targets[part].astype(np.int64), histories.lengths)
        transitions = histories.values * np.int64(items) + target
        near = np.zeros(len(transitions), bool)
        for seen in pairs:
            near |= _among(transitions, seen)
        kinds[part[np.bincount(histories.owners, near, len(part)) > 0]] = NEAR
        known = np.flatnonzero(histories.lengths)
        last = transitions[histories.offsets[1:][known] - 1]
        kinds[part[known[_among(last, pairs[0])]]] = NEXT
    return kinds


def of_test(dataset: Dataset) -> npt.NDArray[np.int8] | None:
    """`memorised` of the test's held-out items; None where there are none, or no order to follow from."""
    if dataset.info.sets or not dataset.info.ordered or not dataset.info.counts["test"]:
        return None
    return memorised(dataset.training, dataset.cases("test"), dataset.num_items)


def write(dataset: Dataset, path: Path) -> None:
    """The file FILE at `path`, of the test's held-out items; none where they have no order."""
    kinds = of_test(dataset)
    if kinds is None:
        path.unlink(missing_ok=True)
        return
    cases = dataset.cases("test")
    with replacing(path) as staged:
        columns = {"user": cases.users[cases.owner], "target": cases.targets, "memorised": kinds}
        pq.write_table(pa.table(columns), staged, compression="zstd")


def _pairs(training: Ragged, distance: int, items: int) -> npt.NDArray[np.int64]:
    """Which item came how many places after which, as numbers before · items + after, ascending."""
    owner = training.owners
    same = owner[distance:] == owner[:-distance]
    before, after = training.values[:-distance][same], training.values[distance:][same]
    return np.sort(before * np.int64(items) + after)


def _among(values: npt.NDArray[np.int64], ascending: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    if not len(ascending):
        return np.zeros(len(values), bool)
    places = np.searchsorted(ascending, values)
    return np.asarray(ascending[np.minimum(places, len(ascending) - 1)] == values)


def _parts(lengths: npt.NDArray[np.integer]) -> Iterator[npt.NDArray[np.intp]]:
    """Rows that together have at most _ROWS entries (or one row)."""
    group = np.cumsum(lengths) // _ROWS
    for rows in np.split(np.arange(len(lengths)), np.flatnonzero(np.diff(group)) + 1):
        if len(rows):
            yield rows
