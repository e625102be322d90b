"""The parts of the held-out items that metrics are also shown for. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.data.dataset import Cases
from engine.evaluation import metrics, protocols


def accuracy_of_parts(
    ranks: Mapping[str, np.ndarray], cases: Cases, popularity: np.ndarray, beam: int | None = None
) -> dict[str, dict[str, float]]:
    """Protocol with its part ("full, cold") → metrics. ranks: protocol → float64 [targets]; popularity: int64 [items]; beam: the
    width of the search behind full rankings, beyond which there are no metrics.

    Full rankings apart for targets that nobody has in training (cold) and the rest (warm); where repeats count, every protocol
    apart for targets that repeat and for new ones. A part that is empty, or everything, is not shown.
    """
    cold = popularity[cases.targets] == 0
    found: dict[str, dict[str, float]] = {}
    for name, values in ranks.items():
        protocol = protocols.parse(name)
        halves, searched = [], beam if protocol.full else None
        if protocol.full and protocol.history != "history kept":
            halves.append(("cold", "warm", cold))
        if protocol.history == "repeats":
            halves.append(("repeated", "new", cases.repeated))
        for inside, outside, rows in halves:
            if rows.any() and not rows.all():
                for part, within in ((inside, rows), (outside, ~rows)):
                    found[f"{name}, {part}"] = metrics.accuracy(values[within], searched, name, cases.owner[within])
    return found
