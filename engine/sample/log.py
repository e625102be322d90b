"""The simulated log with its planted truth, and the same log with its order or all of its structure destroyed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.data.ragged import Ragged
from engine.sample.films import Film
from engine.sample.story import Story, draw_timeline
from engine.sample.viewers import World, build_world, choose, draw_tastes

BLOCK = 1_500
"""Viewers simulated together; bounds the memory, whatever the number of viewers."""


@dataclass(frozen=True)
class Log:
    """What simulated viewers watched.

    events: Ragged int32, item per event, one row per viewer, oldest first; timestamps: int64 [events], unix seconds.
    reasons (int8 [events], `Reason`) and moods (int16 [events]) are the planted truth: for tests, never for training.
    """

    events: Ragged
    timestamps: np.ndarray
    reasons: np.ndarray
    moods: np.ndarray

    @property
    def viewers(self) -> np.ndarray:
        """int32 [events]: the viewer of each event."""
        return np.repeat(np.arange(len(self.events), dtype=np.int32), self.events.lengths)


def simulate(films: Sequence[Film], story: Story, rng: np.random.Generator) -> tuple[Log, World]:
    """A log of simulated viewers of `films`, and the world it was simulated in."""
    world = build_world(films, story, rng)
    sizes = [min(BLOCK, story.viewers - start) for start in range(0, story.viewers, BLOCK)]
    blocks = []
    for size, child in zip(sizes, rng.spawn(len(sizes)), strict=True):
        timeline = draw_timeline(size, story, child)
        blocks.append((timeline, choose(world, draw_tastes(size, world, story, child), timeline, story, child)))
    lengths = np.concatenate([np.diff(timeline.offsets) for timeline, _ in blocks])
    log = Log(
        events=Ragged(
            np.concatenate([choices.items for _, choices in blocks]),
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        ),
        timestamps=np.concatenate([timeline.timestamps for timeline, _ in blocks]),
        reasons=np.concatenate([choices.reasons for _, choices in blocks]),
        moods=np.concatenate([choices.moods for _, choices in blocks]),
    )
    return log, world


def shuffled(log: Log, rng: np.random.Generator) -> Log:
    """Control 1: each viewer's films in random order, at the old moments. Tastes stay, order is gone."""
    order = np.lexsort((rng.random(len(log.timestamps)), log.viewers))
    return _rearranged(log, order)


def scattered(log: Log, rng: np.random.Generator) -> Log:
    """Control 2: all films dealt out anew over all events. Popularity and lengths stay, tastes and order are gone.

    No viewer gets a film twice: repeats are swapped with random other events until none is left.
    """
    viewers = log.viewers.astype(np.int64)
    width = int(log.events.values.max()) + 1
    order = rng.permutation(len(viewers))
    for _ in range(1_000):
        pairs = viewers * width + log.events.values[order]
        ranked = np.argsort(pairs, kind="stable")
        repeats = ranked[1:][np.diff(pairs[ranked]) == 0]
        if not len(repeats):
            return _rearranged(log, order)
        others = rng.choice(len(order), len(repeats), replace=False)
        apart = ~np.isin(others, repeats)
        here, there = repeats[apart], others[apart]
        order[here], order[there] = order[there], order[here]
    raise ValueError("a film was watched by nearly every viewer; its events cannot be dealt out without repeats")


def _rearranged(log: Log, order: np.ndarray) -> Log:
    return dataclasses.replace(
        log,
        events=Ragged(log.events.values[order], log.events.offsets),
        reasons=log.reasons[order],
        moods=log.moods[order],
    )
