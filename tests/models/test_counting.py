"""The Markov chain and popularity against counting by hand."""

import numpy as np
import torch

from engine.models.markov import Markov, MarkovConfig
from engine.models.popularity import Popularity, PopularityConfig, RecentPopularity, RecentPopularityConfig
from tests.models.contract import ITEMS, build, log
from tests.training.tiny import flat

SEQUENCES = [[0, 1, 0, 1, 2], [], [3], [1, 2, 2], []]


def test_popularity_counts() -> None:
    model = Popularity(PopularityConfig(), 5, 5, torch.Generator())
    model.fit(*flat(SEQUENCES))
    assert model.scores(torch.tensor([[4], [0]])).tolist() == [[2, 3, 3, 1, 0]] * 2


def test_recent_popularity_counts_the_latest_events_of_all_people() -> None:
    """Nine events at times 8 … 0: a third of them are the first three, and those of the moment of the third."""
    items, offsets = flat(SEQUENCES)
    times = np.array([8, 7, 6, 6, 4, 3, 2, 1, 0])
    model = RecentPopularity(RecentPopularityConfig(latest=1 / 3), 5, 5, torch.Generator(), times=times)
    model.fit(items, offsets)
    assert model.scores(torch.tensor([[4], [0]])).tolist() == [[2, 2, 0, 0, 0]] * 2
    config = RecentPopularityConfig(search=True)
    model = RecentPopularity(config, 5, 5, torch.Generator(), times=times)
    tried = model.fit(
        items, offsets, lambda: float(model.counts[3] / model.counts.sum())
    )  # the fourth latest is of item 3
    assert model.chosen == {"latest": 1.0} and len(tried) == len(model.grid["latest"])


def test_what_follows_what() -> None:
    model = Markov(MarkovConfig(alpha=0.9), 5, 5, torch.Generator())
    model.fit(*flat(SEQUENCES))
    popular = torch.tensor([2, 3, 3, 1, 0]) * 0.9 / 9
    follows = {0: {1: 2}, 1: {0: 1, 2: 2}, 2: {2: 1}, 3: {}, 4: {}, 5: {}}  # no pair across people; 5 is padding
    for item, after in follows.items():
        expected = popular.clone()
        for successor, count in after.items():
            expected[successor] += count
        torch.testing.assert_close(model.scores(torch.tensor([[3, item]]))[0], expected)


def test_the_most_frequent_successors_are_kept() -> None:
    items, offsets = log(9)
    full, cut = build("markov"), Markov(MarkovConfig(alpha=0.0, successors=2), ITEMS, 9, torch.Generator())
    full.fit(items, offsets)  # type: ignore[operator]
    cut.fit(items, offsets)
    for item in range(ITEMS):
        kept = sorted(full.query(torch.tensor([[item]]))[0].tolist(), reverse=True)[:2]
        found = sorted(cut.query(torch.tensor([[item]]))[0].tolist(), reverse=True)[:2]
        assert found == kept
