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
    """early, late: float64 [viewers, n], log-odds of each film for each viewer when the log begins and when it ends."""

    early: np.ndarray
    late: np.ndarray

    def at(self, viewers: np.ndarray, moment: np.ndarray) -> np.ndarray:
        """float64 [rows, n]: log-odds for `viewers` (int [rows]) at `moment` (float [rows], 0 to 1 through the log)."""
        moment = moment[:, None]
        return (1 - moment) * self.early[viewers] + moment * self.late[viewers]


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
    # Rounded, so that the last bits of a matrix product, which differ between machines, decide nothing.
    return Tastes(*(np.round(steady + story.genre_weight * (genres @ world.genres.T), 9) for genres in (early, late)))


def _draw_distinct(weights: np.ndarray, rows: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """int64 [rows, count]: `count` different numbers a row, drawn one after another with chances as `weights`."""
    keys = rng.exponential(size=(rows, len(weights))) / weights
    return np.argsort(keys, axis=1)[:, :count]
