"""What a list costs. Needs no torch."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from engine.data.dataset import Cases

FILE = "cost.json"
"""In a run's folder, after `evaluate`: milliseconds, and the device that they were measured on."""
HISTORIES = 20


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
