"""What an evaluation leaves behind, from which everything else is computed: ranks.parquet, written and read as arrays over the
people that several models have in common; the metrics of parts of the held-out items; and what a list costs.

Needs no torch.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.dataset import Cases
from engine.evaluation import metrics
from engine.evaluation.protocols import parse
from engine.files import read_json, replacing


def write_tables(
    folder: Path, cases: Cases, ranks: Mapping[str, np.ndarray], exposures: Mapping[str, Mapping[int, np.ndarray]]
) -> None:
    """ranks.parquet and exposure.parquet. ranks: protocol → float64 [targets]; exposures: protocol → k → int64 [items]."""
    with replacing(folder / "ranks.parquet") as staged:
        pq.write_table(
            pa.concat_tables(
                pa.table(
                    {
                        "user": cases.users[cases.owner],
                        "target": cases.targets,
                        "history_length": cases.history.lengths[cases.owner].astype(np.int32),
                        "protocol": pa.array([protocol] * len(values)).dictionary_encode(),
                        "rank": values.astype(np.float32),
                    }
                )
                for protocol, values in ranks.items()
            ),
            staged,
            compression="zstd",
        )
    with replacing(folder / "exposure.parquet") as staged:
        rows = [(p, k, i, int(c[i])) for p, e in exposures.items() for k, c in e.items() for i in np.flatnonzero(c)]
        schema = pa.schema({"protocol": pa.string(), "k": pa.int32(), "item": pa.int32(), "count": pa.int64()})
        columns = list(zip(*rows, strict=True)) or [()] * len(schema)
        pq.write_table(pa.table(columns, schema=schema), staged, compression="zstd")


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
    if all(np.array_equal(shared, key) for key in keys.values()):
        return dict(rows), 0
    for key in keys.values():
        shared, everybody = np.intersect1d(shared, key), np.union1d(everybody, key)
    kept = {name: rows[name].take(np.searchsorted(key, shared)) for name, key in keys.items()}
    return kept, len(np.unique(np.setdiff1d(everybody, shared) >> 32))


def pair_keys(user: npt.NDArray[np.integer], target: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """One number for each held-out item of each person, in the order of (user, target)."""
    return user.astype(np.int64) << 32 | target


def accuracy_of_parts(
    ranks: Mapping[str, np.ndarray], cases: Cases, popularity: np.ndarray, beam: int | None = None
) -> dict[str, dict[str, float]]:
    """Protocol with its part ("full, cold") → metrics. ranks: protocol → float64 [targets]; popularity: int64 [items]; beam: the
    width of the search behind full rankings, beyond which there are no metrics.

    Full rankings apart for targets that nobody has in training (cold) and the rest (warm); where repeats count, every protocol
    apart for targets that repeat and for new ones. A part that is empty, or everything, is not shown.
    """
    cold = popularity[cases.targets] == 0
    measured: dict[str, dict[str, float]] = {}
    for name, values in ranks.items():
        protocol = parse(name)
        halves, searched = [], beam if protocol.full else None
        if protocol.full and protocol.history != "history kept":
            halves.append(("cold", "warm", cold))
        if protocol.history == "repeats":
            halves.append(("repeated", "new", cases.repeated))
        for inside, outside, rows in halves:
            if rows.any() and not rows.all():
                for part, within in ((inside, rows), (outside, ~rows)):
                    measured[f"{name}, {part}"] = metrics.accuracy(values[within], searched, name, cases.owner[within])
    return measured


EVALUATION = ("ranks.parquet", "exposure.parquet", "metrics.json")
"""In a run's folder, after `evaluate`: what a bundle takes along. metrics.json is written last."""
ELSEWHERE = "elsewhere"
"""The folder of a run that has, by name, what it was on datasets that it was not trained on."""
COST = "cost.json"
"""In a run's folder, after `evaluate`: milliseconds, and the device that they were measured on."""
HISTORIES = 20


def read_metrics(run: Path) -> dict[str, dict[str, float]]:
    """metrics.json of an evaluated run: protocol → metric → value; {} where it was not evaluated, or that is damaged."""
    measured = read_json(run / "metrics.json")
    figures = [list(of.values()) if isinstance(of, dict) else [None] for of in measured.values()]
    if not all(isinstance(figure, int | float) and math.isfinite(figure) for figure in itertools.chain(*figures)):
        return {}
    try:
        for table in EVALUATION[:2]:
            pq.read_schema(run / table)
    except (OSError, ValueError):
        return {}
    return measured


def milliseconds_per_list(answer: Callable[[np.ndarray], object], cases: Cases) -> float:
    """The median processor time (of all threads) that `answer` takes for one history, over HISTORIES of `cases` spread evenly,
    one after the other; the first is asked once before, unmeasured. Processor time, as it does not depend on what else is
    running. answer: a history (int32 [events]) → its list."""
    rows = np.unique(np.linspace(0, len(cases) - 1, HISTORIES).astype(int))
    answer(cases.history[rows[0]])
    taken = []
    for row in rows:
        start = time.process_time()
        answer(cases.history[row])
        taken.append(time.process_time() - start)
    return float(f"{1_000 * statistics.median(taken):.3g}")
