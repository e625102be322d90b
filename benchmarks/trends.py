"""What the day of a history's last event would add to a model: its scores plus how popular each item was in the days before. How
many days, and with what weight, is chosen on the validation items; the test items are ranked once. The time of a held-out item is
never used, nor what happened after the last event.

    python -m benchmarks.trends data/films exports/films counting
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.bundle.index import mean_rank
from engine.data.dataset import Dataset, Role
from engine.evaluation import metrics
from engine.runtime import Bundle, Zoo

DAYS = (3, 7, 14, 30, 60, 120)
"""Before the last event, its own day included."""
WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8)
"""Of the logarithm of the count, in standard deviations of a history's scores."""
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Cases:
    """scores: [cases, items], in standard deviations, −inf for items of the history; targets, day (of the last event): int64."""

    scores: Floats
    targets: npt.NDArray[np.int64]
    day: npt.NDArray[np.int64]

    @classmethod
    def of(cls, bundle: Bundle, data: Dataset, split: str) -> Cases:
        cases = data.cases(split)
        assert cases.times is not None
        scores = np.empty((len(cases), data.num_items), np.float32)
        for row, target in enumerate(cases.targets):
            history = cases.history[row]
            scores[row] = bundle.scores(history.tolist())
            scores[row] /= scores[row].std() or 1
            scores[row, np.setdiff1d(history, target)] = -np.inf
        last = cases.times.values[cases.times.offsets[1:] - 1]
        return cls(scores, cases.targets.astype(np.int64), last // 86_400)

    def ranks(self, trends: Trends, days: int, weight: float) -> npt.NDArray[np.float64]:
        ranks = np.empty(len(self.targets))
        for row, (target, day) in enumerate(zip(self.targets, self.day, strict=True)):
            scores = self.scores[row] + weight * trends.before(day, days)
            ranks[row] = mean_rank(scores, scores[target])
        return ranks


class Trends:
    """How often training events had each item, by day."""

    def __init__(self, data: Dataset) -> None:
        assert data.timestamps is not None
        train = data.roles == Role.TRAIN
        day, item = data.timestamps[train] // 86_400, data.events.values[train]
        self.first_day = int(day.min())
        taken = np.zeros((int(data.timestamps.max()) // 86_400 - self.first_day + 1, data.num_items), np.int32)
        np.add.at(taken, (day - self.first_day, item), 1)
        self.until = np.concatenate([np.zeros((1, data.num_items), np.int32), taken.cumsum(0, dtype=np.int32)])

    def before(self, day: int, days: int) -> Floats:
        """Logarithms of 1 + the counts in so many days up to this one, float32 [items]."""
        end = day - self.first_day + 1
        return np.log1p((self.until[end] - self.until[max(end - days, 0)]).astype(np.float32))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("exports", type=Path)
    parser.add_argument("model")
    args = parser.parse_args()
    data = Dataset(args.dataset)
    bundle, trends, warm = Zoo.open(args.exports).bundles[args.model], Trends(data), data.popularity > 0
    valid = Cases.of(bundle, data, "valid")

    def of_validation(choice: tuple[int, float]) -> float:
        return float(metrics.ndcg(valid.ranks(trends, *choice), 10).mean())

    days, weight = max(product(DAYS, WEIGHTS), key=of_validation)
    test = Cases.of(bundle, data, "test")
    print("| test, full ranking | users | HR@10 | NDCG@10 |\n|---|---|---|---|")
    for name, choice in ((args.model, (1, 0.0)), (f"and {weight} · ln(1 + count of {days} days)", (days, weight))):
        ranks = test.ranks(trends, *choice)
        for group, some in (("all", ranks), ("warm", ranks[warm[test.targets]])):
            print(f"| {name} | {group} | {metrics.hit(some, 10).mean():.4f} | {metrics.ndcg(some, 10).mean():.4f} |")


if __name__ == "__main__":
    main()
