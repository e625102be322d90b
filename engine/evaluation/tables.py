"""What an evaluation leaves behind, from which everything else is computed, the metrics of parts of the held-out items,
and what a list costs.

Needs no torch.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
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
