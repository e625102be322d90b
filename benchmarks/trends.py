"""What the day of a history's last event would add to a model: its scores plus a function of what that day says of every item,
how popular it was in the days before and how long ago its first event was. The function is learnt on the validation items and
judged on the test items; the time of a held-out item is never used.

    python -m benchmarks.trends data/films exports/films sasrec
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.bundle.ranks import mean_rank
from engine.data.dataset import Dataset, Role
from engine.evaluation import metrics
from engine.runtime import Bundle, Zoo

WINDOWS = (3, 7, 14, 30, 90)
"""Days before the last event within which events of an item are counted."""
AGES = (0, 1, 3, 7, 14, 30, 60, 120, 240, 480)
"""Days since an item's first event, which part the ages into groups. Below 0 it has none yet; when it will have is not read."""
EPOCHS, PARTS, RATE, HIDDEN = 6, 40, 0.01, 32
SCALES = 2.0 ** np.arange(-8, 5)
"""What scores are multiplied by at first: the one of these that makes the best probabilities of them."""
EXCLUDED = -1e9
"""A score that no softmax sees, and finite, so that its gradient is 0."""


@dataclass(frozen=True)
class Cases:
    """scores: float32 [cases, items], EXCLUDED for items of the history; targets, day (of the last event): int64 [cases]."""

    scores: Tensor
    targets: Tensor
    day: np.ndarray

    @classmethod
    def of(cls, bundle: Bundle, data: Dataset, split: str) -> Cases:
        cases = data.cases(split)
        assert cases.times is not None
        scores = np.empty((len(cases), data.num_items), np.float32)
        for row, target in enumerate(cases.targets):
            history = cases.history.values[cases.history.offsets[row] : cases.history.offsets[row + 1]]
            scores[row] = bundle.scores(history.tolist())
            scores[row, np.setdiff1d(history, target)] = EXCLUDED
        last = cases.times.values[cases.times.offsets[1:] - 1]
        return cls(torch.from_numpy(scores), torch.from_numpy(cases.targets).long(), last // 86_400)

    def print(self, name: str, scores: Tensor, warm: np.ndarray) -> None:
        ranks = np.array(
            [mean_rank(row, row[target]) for row, target in zip(scores.numpy(), self.targets, strict=True)]
        )
        for group, part in (("all", ranks), ("warm", ranks[warm[self.targets.numpy()]])):
            hit, ndcg = metrics.hit(part, 10).mean(), metrics.ndcg(part, 10).mean()
            print(f"| {name} | {group} | {hit:.4f} | {ndcg:.4f} |", flush=True)


class Days:
    """What the training events say of every item on every day."""

    def __init__(self, data: Dataset) -> None:
        assert data.timestamps is not None
        train = data.roles == Role.TRAIN
        day, item = data.timestamps[train] // 86_400, data.events.values[train]
        self.first_day = int(day.min())
        taken = np.zeros((int(data.timestamps.max()) // 86_400 - self.first_day + 1, data.num_items), np.float32)
        np.add.at(taken, (day - self.first_day, item), 1)
        self.until = np.concatenate([np.zeros((1, data.num_items), np.float32), taken.cumsum(0)])
        self.first = np.where(taken.any(0), taken.argmax(0), len(taken))

    def of(self, day: np.ndarray) -> tuple[Tensor, Tensor]:
        """Logarithms of counts, float32 [cases, items, windows + 1], the last of all days; ages, int64 [cases, items]."""
        end = day - self.first_day + 1
        counts = [self.until[end] - self.until[np.maximum(end - days, 0)] for days in WINDOWS] + [self.until[end]]
        ages = np.digitize((end - 1)[:, None] - self.first, AGES)
        return torch.from_numpy(np.log1p(np.stack(counts, -1))), torch.from_numpy(ages)


class Trend(nn.Module):
    """hidden: units between what the day says and what is added; 0: a weighted sum of it."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(()))
        self.counts, self.ages = (
            nn.Linear(len(WINDOWS) + 1, max(hidden, 1)),
            nn.Embedding(len(AGES) + 1, max(hidden, 1)),
        )
        self.out = nn.Linear(hidden, 1) if hidden else None
        for weight in (self.ages.weight, self.counts.weight if self.out is None else self.out.weight):
            nn.init.zeros_(weight)

    def forward(self, scores: Tensor, counts: Tensor, ages: Tensor) -> Tensor:
        added = self.counts(counts) + self.ages(ages)
        added = added if self.out is None else self.out(F.relu(added))
        return self.log_scale.exp() * scores + added[..., 0]


def learn(cases: Cases, days: Days, hidden: int) -> Trend:
    torch.manual_seed(0)
    trend = Trend(hidden)
    likeliest = min(SCALES, key=lambda scale: float(F.cross_entropy(float(scale) * cases.scores, cases.targets)))
    nn.init.constant_(trend.log_scale, math.log(likeliest))
    optimiser = torch.optim.Adam(trend.parameters(), RATE)
    order = torch.randperm(len(cases.targets))
    for _ in range(EPOCHS):
        for rows in order.chunk(PARTS):
            loss = F.cross_entropy(trend(cases.scores[rows], *days.of(cases.day[rows])), cases.targets[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return trend


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("exports", type=Path)
    parser.add_argument("model")
    args = parser.parse_args()
    data = Dataset(args.dataset)
    bundle, days, warm = Zoo.open(args.exports).bundles[args.model], Days(data), data.popularity > 0
    valid, test = (Cases.of(bundle, data, split) for split in ("valid", "test"))
    print("| test, full ranking | users | HR@10 | NDCG@10 |\n|---|---|---|---|")
    test.print(args.model, test.scores, warm)
    for name, hidden in (("and a weighted sum", 0), (f"and a network of {HIDDEN} hidden units", HIDDEN)):
        trend = learn(valid, days, hidden)
        with torch.no_grad():
            rows = torch.arange(len(test.targets)).chunk(PARTS)
            test.print(name, torch.cat([trend(test.scores[part], *days.of(test.day[part])) for part in rows]), warm)


if __name__ == "__main__":
    main()
