"""Quick numpy recommenders that ask a log what can be known from popularity, from the last film, and from the whole story.

All rank the whole catalogue without the films of the history, on each viewer's last film, as the engine's evaluation does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.bundle.index import mean_rank
from engine.data.ragged import Ragged
from engine.sample.viewers import World

Scorer = Callable[[Ragged], np.ndarray]
"""Histories [rows] to scores, float [rows, n]."""


@dataclass(frozen=True)
class Held:
    """A log without each viewer's last two films (`training`), the histories before the last one, and the last ones."""

    training: Ragged
    histories: Ragged
    targets: np.ndarray

    @classmethod
    def of(cls, events: Ragged) -> Held:
        ends = events.offsets[1:]
        last, late = np.zeros(len(events.values), bool), np.zeros(len(events.values), bool)
        last[ends - 1] = True
        late[ends - 2] = True
        return cls(events.where(~last & ~late), events.where(~last), events.values[ends - 1])

    def take(self, rows: np.ndarray) -> Held:
        """The same training, asked about the viewers `rows` alone."""
        return Held(self.training, self.histories.take(rows), self.targets[rows])


def ranks(held: Held, score: Scorer) -> np.ndarray:
    """float64 [rows]: rank of each target from 1, the mean rank under ties, the history left out."""
    parts = []
    for start in range(0, len(held.targets), 1_000):
        rows = np.arange(start, min(start + 1_000, len(held.targets)))
        histories = held.histories.take(rows)
        scores = score(histories).astype(np.float64)
        scores[np.repeat(np.arange(len(rows)), histories.lengths), histories.values] = -np.inf
        parts.append(mean_rank(scores, scores[np.arange(len(rows)), held.targets[rows]]))
    return np.concatenate(parts)


def popularity(training: Ragged, n: int) -> Scorer:
    """Training events per film."""
    counts = np.bincount(training.values, minlength=n)
    return lambda histories: np.tile(counts.astype(np.float64), (len(histories), 1))


def markov(training: Ragged, n: int, alpha: float = 0.01) -> Scorer:
    """Transition counts of the last film, and popularity where there are none: a first-order Markov chain."""
    inner = np.ones(len(training.values), bool)
    inner[training.offsets[1:][training.lengths > 0] - 1] = False
    source = np.flatnonzero(inner)
    counts = np.zeros((n, n))
    np.add.at(counts, (training.values[source], training.values[source + 1]), 1.0)
    counts += alpha * np.bincount(training.values, minlength=n) / len(training.values) * n
    return lambda histories: counts[histories.padded(1, 0)[:, 0]]


def companions(training: Ragged, n: int) -> Scorer:
    """Films that were watched by the same viewers as those of the history, in any order: what is left without order.

    The cosine between two films' viewers, summed over the whole history.
    """
    seen = np.zeros((len(training), n), np.float32)
    seen[np.repeat(np.arange(len(training)), training.lengths), training.values] = 1
    together = seen.T @ seen
    size = np.sqrt(np.maximum(np.diag(together), 1))
    cosine = together / size / size[:, None]
    np.fill_diagonal(cosine, 0)

    def score(histories: Ragged) -> np.ndarray:
        history = np.zeros((len(histories), n), np.float32)
        history[np.repeat(np.arange(len(histories)), histories.lengths), histories.values] = 1
        return history @ cosine

    return score


def storyteller(training: Ragged, world: World) -> Scorer:
    """A reader who knows how the story goes (series in turns, moods, tastes), but not what any viewer thought.

    Progress of each series comes from the whole history, mood from the last three films, taste from all.
    """
    n = world.num_films
    counts = np.bincount(training.values, minlength=n) + 1.0
    popular = counts / counts.sum()
    member = world.in_mood.astype(np.float64)
    given = member * popular[:, None] / (member * popular[:, None]).sum(axis=0)  # chances of a film within a mood
    chance = np.vstack([given + 0.02 * popular[:, None], np.ones(len(world.moods))])  # the last row is for no film

    def score(histories: Ragged) -> np.ndarray:
        rows, last = np.arange(len(histories)), np.maximum(histories.lengths - 1, 0)
        genres = np.add.reduceat(world.genres[histories.values], histories.offsets[:-1]) / histories.lengths[:, None]
        taste = np.exp(2.5 * (genres @ world.genres.T))
        recent = histories.padded(3, n)
        likely = np.prod(chance[recent], axis=1)
        scores = (0.7 * (likely / likely.sum(axis=1, keepdims=True)) @ given.T + 0.3 * popular) * taste
        scores[:, ~world.open] *= 0.05  # later parts whose earlier ones were not seen; those in turn are raised below
        scores /= scores.max(axis=1, keepdims=True)

        viewer = np.repeat(rows, histories.lengths)
        age = last[viewer] - (np.arange(len(viewer)) - histories.offsets[viewer])
        parts = world.following[histories.values]
        seen = np.zeros((len(histories), n), bool)
        seen[viewer, histories.values] = True
        waits = np.flatnonzero((parts >= 0) & (age < 12) & ~seen[viewer, parts])
        # Nobody follows more than two series. Of the last two in progress, the one that waits longer has its turn.
        waits = waits[np.lexsort((age[waits], viewer[waits]))]
        turn = np.arange(len(waits)) - np.searchsorted(viewer[waits], viewer[waits])
        due, turn = waits[turn < 2], turn[turn < 2]
        scores[viewer[due], parts[due]] = 2.0 + turn
        return scores

    return score
