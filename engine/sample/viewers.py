"""Simulated viewers: what is true of the catalogue for all of them (series, moods, what is popular in which quarter), the lasting
tastes of each and how they drift over the years, and which films they choose, one step at a time for all at once, and why.
"""

from __future__ import annotations

import datetime
import enum
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.sample.films import GENRES, Film
from engine.sample.story import Story, Timeline

SIZES = (6, 24)
"""Films that a mood holds, at least and at most: wide enough for a choice, narrow enough to be felt."""


@dataclass(frozen=True)
class Moods:
    """names: what the films of each mood share; members: int64 [moods, widest], padded with the number of films."""

    names: list[str]
    members: np.ndarray

    def __len__(self) -> int:
        return len(self.names)


def find_moods(films: Sequence[Film]) -> Moods:
    """Every group of films with a theme in common that has a suitable size; groups of the same films count once."""
    groups: dict[str, list[int]] = defaultdict(list)
    for number, film in enumerate(films):
        for name in themes(film):
            groups[name].append(number)
    chosen: dict[tuple[int, ...], str] = {}
    for name, members in sorted(groups.items()):
        if SIZES[0] <= len(members) <= SIZES[1]:
            chosen.setdefault(tuple(members), name)
    table = np.full((len(chosen), SIZES[1]), len(films), np.int64)
    for row, group in enumerate(chosen):
        table[row, : len(group)] = group
    return Moods(list(chosen.values()), table)


def themes(film: Film) -> Iterator[str]:
    """What an evening with this film could be about."""
    decade = film.year // 10 * 10
    yield f"by {film.director}"
    for keyword in film.keywords:
        yield f"about {keyword}"
    for genre in film.genres[:2]:
        yield f"{genre} from {film.country}"
        yield f"{genre} of the {decade}s"
    if len(film.genres) > 1:
        yield " and ".join(sorted(film.genres[:2]))
    yield f"{film.country} in the {decade}s"


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


class Reason(enum.IntEnum):
    """Why a simulated viewer watched a film: the planted truth."""

    SEQUEL = 0
    MOOD = 1
    TASTE = 2
    POPULAR = 3
    NOISE = 4


@dataclass(frozen=True)
class Choices:
    """items: int32 [events]; reasons: int8 [events], `Reason`; moods: int16 [events], the mood of the event's session."""

    items: np.ndarray
    reasons: np.ndarray
    moods: np.ndarray


def choose(world: World, tastes: Tastes, timeline: Timeline, story: Story, rng: np.random.Generator) -> Choices:
    """Fill every place of `timeline`. Row v of `tastes` is viewer v."""
    crowd = _Crowd(world, tastes, story, rng)
    lengths = np.diff(timeline.offsets)
    total = int(timeline.offsets[-1])
    items, reasons, moods = np.empty(total, np.int32), np.empty(total, np.int8), np.empty(total, np.int16)
    for step in range(int(lengths.max())):
        rows = np.flatnonzero(lengths > step)
        at = timeline.offsets[rows] + step
        seconds = timeline.timestamps[at] - story.start
        crowd.enter(rows, seconds)
        crowd.change_mood(rows[timeline.opens[at]])
        items[at], reasons[at] = crowd.watch(rows, step)
        moods[at] = crowd.mood[rows]
    return Choices(items, reasons, moods)


def pick(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """int64 [rows]: one column per row of `weights` (float64 [rows, columns]), or -1 where a row is all zero."""
    reach = np.cumsum(weights, axis=1)
    chosen = (reach <= rng.random(len(weights))[:, None] * reach[:, -1:]).sum(axis=1)
    return np.where(reach[:, -1] > 0, np.minimum(chosen, weights.shape[1] - 1), -1)


class _Crowd:
    """The state of many viewers on their way through the log.

    open: bool [viewers, n], not seen, and every earlier part of its series seen; left: int16 [viewers, moods], how many
    films of each mood are open; suits: a viewer's average log-odds of the films of each mood.
    due: int64 [viewers, follows], the next part of each followed series, -1 for none; turn: the step it was last watched.
    """

    def __init__(self, world: World, tastes: Tastes, story: Story, rng: np.random.Generator) -> None:
        self.world, self.tastes, self.story, self.rng = world, tastes, story, rng
        viewers = len(tastes.early)
        self.open = np.tile(world.open, (viewers, 1))
        self.left = np.tile(world.in_mood[world.open].sum(axis=0, dtype=np.int16), (viewers, 1))
        self.suits = tastes.averaged(world.in_mood)
        self.due = np.full((viewers, story.follows), -1)
        self.turn = np.zeros((viewers, story.follows), np.int64)
        self.mood = np.zeros(viewers, np.int64)
        self.moment = np.zeros(viewers)
        self.quarter = np.zeros(viewers, np.int64)
        self.others = np.cumsum([story.mood, story.taste, story.popular])

    def enter(self, rows: np.ndarray, seconds: np.ndarray) -> None:
        """The viewers `rows` come back, `seconds` after the beginning of the log."""
        self.moment[rows] = seconds / (self.story.days * 86_400)
        self.quarter[rows] = self.world.quarter(seconds)

    def change_mood(self, rows: np.ndarray) -> None:
        """A session begins: a mood that suits the viewer's taste and has enough films left."""
        if not len(rows):
            return
        moment = self.moment[rows, None]
        suits = (1 - moment) * self.suits.early[rows] + moment * self.suits.late[rows]
        weights = np.exp(self.story.mood_taste * suits) * (self.left[rows] >= 3)
        drawn = pick(weights, self.rng)
        self.mood[rows] = np.where(drawn >= 0, drawn, self.mood[rows])

    def watch(self, rows: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Every viewer in `rows` watches one film: (items, reasons), each [rows]."""
        reasons = self.reasons(rows)
        items = np.full(len(rows), -1)
        ways = {
            Reason.SEQUEL: self.sequel,
            Reason.MOOD: self.by_mood,
            Reason.TASTE: self.by_taste,
            Reason.POPULAR: self.by_fashion,
        }
        for reason, way in ways.items():
            at = np.flatnonzero(reasons == reason)
            items[at] = way(rows[at])
            reasons[at[items[at] < 0]] = Reason.NOISE  # nothing of that kind is left
        at = np.flatnonzero(items < 0)
        items[at] = pick(self.available(rows[at]).astype(np.float64), self.rng)
        if np.any(items < 0):
            raise ValueError(
                f"a catalogue of {self.world.num_films} films is too small for histories of {step + 1} films"
            )
        self.remember(rows, items, step)
        return items, reasons

    def available(self, rows: np.ndarray) -> np.ndarray:
        """bool [rows, n]: films that each viewer may watch next."""
        return self.open[rows] & (self.world.weights[self.quarter[rows]] > 0)

    def reasons(self, rows: np.ndarray) -> np.ndarray:
        """int8 [rows]: a `Reason` each; SEQUEL only where a followed series has a next part that is out."""
        others = np.searchsorted(self.others, self.rng.random(len(rows)), side="right") + int(Reason.MOOD)
        calling = self.ready(rows) & (self.rng.random((len(rows), self.story.follows)) < self.story.sequel)
        go_on = calling.any(axis=1)
        return np.where(go_on, int(Reason.SEQUEL), others).astype(np.int8)

    def ready(self, rows: np.ndarray) -> np.ndarray:
        """bool [rows, follows]: the series that could go on now."""
        due = self.due[rows]
        return (due >= 0) & (self.world.weights[self.quarter[rows][:, None], due] > 0)

    def sequel(self, rows: np.ndarray) -> np.ndarray:
        """The next part of the followed series that has waited longest; now and then of another one."""
        waited = self.turn[rows] + self.rng.random(self.turn[rows].shape)
        anyhow = self.rng.random(len(rows)) >= self.story.alternate
        waited[anyhow] = self.rng.random((int(anyhow.sum()), waited.shape[1]))
        waited[~self.ready(rows)] = np.inf
        return self.due[rows, waited.argmin(axis=1)]

    def by_mood(self, rows: np.ndarray) -> np.ndarray:
        """A film of the session's mood, by taste and popularity."""
        members = self.world.moods.members[self.mood[rows]]
        real = members < self.world.num_films
        films = np.where(real, members, 0)
        chosen = pick(self.wish(rows, films) * real, self.rng)
        return np.where(chosen >= 0, films[np.arange(len(rows)), chosen], -1)

    def by_taste(self, rows: np.ndarray) -> np.ndarray:
        """A film of the whole catalogue, by taste and popularity."""
        return pick(self.wish(rows, np.arange(self.world.num_films)[None]), self.rng)

    def by_fashion(self, rows: np.ndarray) -> np.ndarray:
        """A film that is popular now."""
        return pick(self.world.weights[self.quarter[rows]] * self.open[rows], self.rng)

    def wish(self, rows: np.ndarray, films: np.ndarray) -> np.ndarray:
        """float64 [rows, k]: how much each viewer would like to see each of `films` now (int [rows or 1, k]), 0 for never."""
        row = rows[:, None]
        moment = self.moment[row]
        odds = (1 - moment) * self.tastes.early[row, films] + moment * self.tastes.late[row, films]
        odds += self.story.start_weight * ((self.due[rows] < 0).any(axis=1)[:, None] & self.world.first_part[films])
        return np.exp(odds) * self.world.weights[self.quarter[row], films] * self.open[row, films]

    def remember(self, rows: np.ndarray, items: np.ndarray, step: int) -> None:
        """What watching changes: the film is seen, its next part opens, and the viewer follows the series or gives it up."""
        self.open[rows, items] = False
        self.left[rows] -= self.world.in_mood[items]
        parts = self.world.following[items]
        some = parts >= 0
        self.open[rows[some], parts[some]] = True
        self.left[rows[some]] += self.world.in_mood[parts[some]]

        due, turn = self.due[rows], self.turn[rows]
        known = due == items[:, None]
        has_slot = known.any(axis=1)
        free = due < 0
        slot = np.where(has_slot, known.argmax(axis=1), free.argmax(axis=1))
        likes = (parts >= 0) & (self.rng.random(len(rows)) < self.story.like)
        changes = np.flatnonzero(has_slot | (likes & free.any(axis=1)))
        due[changes, slot[changes]] = np.where(likes, parts, -1)[changes]
        turn[changes, slot[changes]] = step
        self.due[rows], self.turn[rows] = due, turn
