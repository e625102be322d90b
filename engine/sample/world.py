"""What is true of the catalogue for all simulated viewers: series, moods, and what is popular in which quarter."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.sample.films import GENRES, Film
from engine.sample.moods import Moods, find_moods
from engine.sample.story import Story

QUARTER = 91 * 86_400


@dataclass(frozen=True)
class World:
    """The catalogue as arrays; n films.

    genres: float64 [n, genres], each film's genres with equal shares that sum to 1;
    years: int64 [n]; directors: int64 [n], the number of each film's director;
    following: int64 [n], the next part of the film's series, or -1;
    first_part: bool [n], begins a series of several parts; open: bool [n], may be watched without having seen anything;
    moods: groups of films; in_mood: int16 [n, moods], 1 where a film belongs to a mood;
    weights: float64 [quarters, n], popularity, 0 until the film is out.
    """

    genres: np.ndarray
    years: np.ndarray
    directors: np.ndarray
    following: np.ndarray
    first_part: np.ndarray
    open: np.ndarray
    moods: Moods
    in_mood: np.ndarray
    weights: np.ndarray

    @property
    def num_films(self) -> int:
        return len(self.years)

    def quarter(self, seconds: np.ndarray) -> np.ndarray:
        """int64: the quarter of the log that each moment, in seconds since its beginning, falls into."""
        return np.minimum(seconds // QUARTER, len(self.weights) - 1)


def build_world(films: Sequence[Film], story: Story, rng: np.random.Generator) -> World:
    """The world of `films`; only popularity is random."""
    n = len(films)
    genres = np.zeros((n, len(GENRES)))
    for number, film in enumerate(films):
        genres[number, [GENRES.index(genre) for genre in film.genres]] = 1 / len(film.genres)
    film_numbers = {(film.franchise, film.franchise_order): number for number, film in enumerate(films)}
    following = np.array([film_numbers.get((film.franchise, (film.franchise_order or 0) + 1), -1) for film in films])
    opens = np.ones(n, bool)
    opens[following[following >= 0]] = False
    moods = find_moods(films)
    in_mood = np.zeros((n + 1, len(moods)), np.int16)
    in_mood[moods.members, np.arange(len(moods))[:, None]] = 1
    return World(
        genres=genres,
        years=np.array([film.year for film in films]),
        directors=np.unique([film.director for film in films], return_inverse=True)[1],
        following=following,
        first_part=opens & (following >= 0),
        open=opens,
        moods=moods,
        in_mood=in_mood[:n],
        weights=draw_popularity(films, story, rng),
    )


def draw_popularity(films: Sequence[Film], story: Story, rng: np.random.Generator) -> np.ndarray:
    """float64 [quarters, films]: fame, a heavy tail, and a random walk from quarter to quarter; 0 before release.

    Only the year of a film is known, so it is taken to be out when that year is over.
    """
    quarters = -(-story.days * 86_400 // QUARTER)
    fame = np.array([film.fame for film in films])
    lasting = story.fame_weight * (fame - 3) + story.tail * rng.standard_normal(len(films))
    walk = np.cumsum(story.trend * rng.standard_normal((quarters, len(films))), axis=0)
    released = [datetime.datetime(film.year + 1, 1, 1, tzinfo=datetime.UTC).timestamp() for film in films]
    begins = story.start + QUARTER * np.arange(quarters)
    return np.exp(lasting + walk - walk.mean(axis=0)) * (np.array(released) <= begins[:, None])
