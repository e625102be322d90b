"""Lasting tastes of simulated viewers, and how they drift over the years."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.sample.story import Story
from engine.sample.world import World

LOVED_GENRES = 3
LOVED_DIRECTORS = 2
ERA_YEARS = 12.0
"""Standard deviation, in years, of a favourite era."""


@dataclass(frozen=True)
class Tastes:
    """early, late: float64 [viewers, n], log-odds of each film for each viewer when the log begins and when it ends.

    In between they change evenly.
    """

    early: np.ndarray
    late: np.ndarray

    def averaged(self, groups: np.ndarray) -> Tastes:
        """The same over groups of films: the average log-odds of each; groups: 0 or 1 [n, groups]."""
        shares = groups / groups.sum(axis=0)
        return Tastes(rounded(self.early @ shares), rounded(self.late @ shares))


def draw_tastes(viewers: int, world: World, story: Story, rng: np.random.Generator) -> Tastes:
    """Tastes of `viewers` viewers: three genres, of which one changes over the years, an era and two directors."""
    # Common genres are loved by more people, but less than in proportion.
    loved = _draw_distinct(np.sqrt(world.genres.sum(axis=0)), viewers, LOVED_GENRES + 1, rng)
    early, late = (np.zeros((viewers, world.genres.shape[1])) for _ in range(2))
    np.put_along_axis(early, loved[:, :LOVED_GENRES], 1.0, axis=1)
    np.put_along_axis(late, loved[:, 1:], 1.0, axis=1)

    era = world.years[rng.integers(world.num_films, size=viewers)][:, None]
    steady = story.era_weight * np.exp(-0.5 * ((world.years - era) / ERA_YEARS) ** 2)
    films_of = np.bincount(world.directors)
    directors = _draw_distinct(np.maximum(films_of - 1, 0) + 1e-9, viewers, LOVED_DIRECTORS, rng)
    for column in directors.T:
        steady += story.director_weight * (world.directors == column[:, None])
    return Tastes(*(rounded(steady + story.genre_weight * (genres @ world.genres.T)) for genres in (early, late)))


def rounded(odds: np.ndarray) -> np.ndarray:
    """`odds` without the last bits of a matrix product: they differ between machines and must decide nothing."""
    return np.round(odds, 9)


def _draw_distinct(weights: np.ndarray, rows: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """int64 [rows, count]: `count` different numbers a row, drawn one after another with chances as `weights`."""
    keys = rng.exponential(size=(rows, len(weights))) / weights
    return np.argsort(keys, axis=1)[:, :count]
