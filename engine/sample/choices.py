"""Which films simulated viewers choose, one step at a time for all viewers at once, and why."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from engine.sample.story import Story
from engine.sample.timeline import Timeline
from engine.sample.viewers import Tastes
from engine.sample.world import World


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
