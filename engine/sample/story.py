"""The settings of the simulation: what is planted into the log, how strongly, and when viewers watch: in sessions of a few films
on one evening or weekend, spread over the years of the log.
"""

import datetime
from dataclasses import dataclass

import numpy as np

from engine.data.ragged import offsets_of
from engine.errors import UsageError


@dataclass(frozen=True)
class Story:
    """How simulated viewers choose films. docs/sample.md tells the story in words."""

    viewers: int = 4_500
    """Number of simulated viewers."""
    first_day: str = "2023-07-01"
    """ISO date on which the log begins."""
    days: int = 1_096
    """Length of the log: three years."""

    mean_events: float = 32.0
    """Films per viewer on average; lengths are skewed, as in real logs."""
    min_events: int = 5
    """No viewer watches fewer films."""
    max_events: int = 150
    """No viewer watches more films."""
    session_films: float = 3.0
    """Films per session (one evening or weekend) on average."""

    sequel: float = 0.45
    """Probability that one followed series, whose next part is out, makes the viewer go on with a series next; two call more."""
    like: float = 0.92
    """Probability that a viewer wants to go on with a series after seeing a part of it."""
    follows: int = 2
    """Series that a viewer follows at a time; more than one means that they alternate."""
    alternate: float = 0.92
    """Probability that the series not watched for longest has its turn (otherwise any followed one)."""

    mood: float = 0.66
    """Probability that a film which continues no series comes from the mood of the session."""
    taste: float = 0.20
    """The same for a film from the viewer's lasting taste, over the whole catalogue."""
    popular: float = 0.09
    """The same for what is popular at the time, whatever the viewer likes."""
    noise: float = 0.05
    """The same for any film at all, with equal chances. These four sum to 1."""

    genre_weight: float = 1.6
    """Log-odds of a film all of whose genres a viewer loves, against a film with none of them."""
    era_weight: float = 0.8
    """Log-odds of a film from the middle of the viewer's favourite era, against one from far away."""
    director_weight: float = 1.0
    """Log-odds of a film by a director whom the viewer loves."""
    start_weight: float = 2.0
    """Added log-odds of a series' first part for a viewer who follows fewer than `follows` series."""
    mood_taste: float = 1.5
    """How much a viewer's taste decides which moods they get into."""

    fame_weight: float = 0.7
    """Log-odds per step of a film's fame (1 to 5)."""
    tail: float = 0.9
    """Standard deviation of a film's lasting log-popularity beyond its fame: the heavy tail."""
    trend: float = 0.15
    """Standard deviation of the change of a film's log-popularity from one quarter to the next."""

    def __post_init__(self) -> None:
        shares = self.mood + self.taste + self.popular + self.noise
        if abs(shares - 1) > 1e-9:
            raise UsageError(f"mood, taste, popular and noise must sum to 1, not {shares:g}")
        if not 1 <= self.min_events <= self.mean_events <= self.max_events or self.viewers < 1:
            raise UsageError("a story needs viewers, and min_events <= mean_events <= max_events")

    @property
    def start(self) -> int:
        """Unix seconds at which the log begins (midnight, UTC)."""
        return int(datetime.datetime.fromisoformat(self.first_day).replace(tzinfo=datetime.UTC).timestamp())


DAY = 86_400
HOUR = 3_600
SPACING = 4
"""Days between the first days of two sessions of one viewer, at least; a session never reaches its next one."""


@dataclass(frozen=True)
class Timeline:
    """Every event's place in time, before anything is chosen.

    offsets: int64 [viewers + 1]; timestamps: int64 [events], strictly ascending within a viewer;
    opens: bool [events], whether the event begins a session.
    """

    offsets: np.ndarray
    timestamps: np.ndarray
    opens: np.ndarray


def draw_timeline(viewers: int, story: Story, rng: np.random.Generator) -> Timeline:
    """Lengths, sessions and moments of `viewers` simulated viewers."""
    lengths = draw_lengths(viewers, story, rng)
    offsets = offsets_of(lengths)
    first = np.zeros(offsets[-1], bool)
    first[offsets[:-1]] = True
    # Session lengths are geometric: after every film the session ends with the same chance.
    opens = first | (rng.random(offsets[-1]) < 1 / story.session_films)
    # ... but nobody watches more than four films in one session.
    index = np.arange(offsets[-1])
    started = np.maximum.accumulate(np.where(opens, index, 0))
    opens |= (index - started) % 4 == 0
    started = np.maximum.accumulate(np.where(opens, index, 0))

    viewer = np.repeat(np.arange(viewers), lengths)
    session_viewer = viewer[opens]
    sessions = np.bincount(session_viewer, minlength=viewers)
    days = draw_days(session_viewer, sessions, story.days, rng)
    begins = days * DAY + draw_start(days + story.start // DAY, rng)

    # Film after film: running time and a break; what would begin after half past midnight waits for the day that follows.
    times = begins[np.cumsum(opens) - 1]
    position = index - started
    lasts = rng.integers(100 * 60, 185 * 60, offsets[-1])
    for step in range(1, int(position.max(initial=0)) + 1):
        at = np.flatnonzero(position == step)
        soon = times[at - 1] + lasts[at]
        today = soon // DAY
        late = today * DAY + draw_start(today + story.start // DAY, rng)
        night = (soon % DAY > HOUR // 2) & (soon % DAY < 12 * HOUR)
        times[at] = np.where(night, late, soon)
    return Timeline(offsets, times + story.start, opens)


def draw_lengths(viewers: int, story: Story, rng: np.random.Generator) -> np.ndarray:
    """int64 [viewers]: films per viewer, gamma-distributed above the least, with about the asked mean."""
    shape = 1.1
    extra = rng.gamma(shape, (story.mean_events - story.min_events) / shape, viewers)
    return np.minimum(story.min_events + extra.round().astype(np.int64), story.max_events)


def draw_days(viewer: np.ndarray, sessions: np.ndarray, days: int, rng: np.random.Generator) -> np.ndarray:
    """int64 [sessions in all]: the day each session begins, ascending and at least `SPACING` apart within a viewer.

    A viewer joins at some time, stays for a while and leaves; busy viewers stay longer.
    viewer: int64 [sessions in all], sorted; sessions: int64 [viewers].
    """
    need = SPACING * sessions + 1
    stays = np.minimum(need + sessions * rng.uniform(4, 16, len(sessions)), days - SPACING)
    if np.any(need > days - SPACING):
        raise ValueError(f"a log of {days} days is too short for {sessions.max()} sessions of one viewer")
    joins = rng.random(len(sessions)) * (days - SPACING - stays)
    spots = rng.random(len(viewer))
    spots = spots[np.lexsort((spots, viewer))] * (stays - need)[viewer]
    nth = np.arange(len(viewer)) - (np.cumsum(sessions) - sessions)[viewer]
    return (joins[viewer] + spots).astype(np.int64) + SPACING * nth


def draw_start(epoch_day: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """int64 seconds after midnight: evenings on working days, from the afternoon on at weekends."""
    weekend = (epoch_day + 3) % 7 >= 5  # day 0 of the epoch was a Thursday
    earliest = np.where(weekend, 14.0, 18.0)
    return ((earliest + rng.random(len(epoch_day)) * (22.0 - earliest)) * HOUR).astype(np.int64)
