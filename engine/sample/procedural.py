"""Procedural catalogues and simulated logs of any size, for load tests; same ideas as the sample, nothing real in them.

Items fall into groups. A viewer loves a few groups, stays in one for a session, moves to a neighbouring one now and then, and
goes on with a series that the last item belongs to. Within a group a few items get most of the attention (a power law).
Everything is drawn for a block of viewers at once, so that the time is linear in events and little more than the finished
log (17 bytes an event) is held in memory.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from engine.data.ragged import offsets_of
from engine.errors import UsageError

SERIES = 5
"""Items in a series; every third run of so many neighbours in a group is one."""
BLOCK = 50_000
"""Viewers simulated together."""
MOST = 1_000_000_000
"""Items, and events: numbers of items are int32."""


@dataclass(frozen=True)
class ProceduralStory:
    """What a procedural log contains."""

    items: int
    """Items in the catalogue; at least 100."""
    events: int
    """Events in the log, exactly; at least `min_events`."""
    mean_events: float = 32.0
    """Events per viewer on average, about."""
    min_events: int = 5
    """No viewer has fewer."""
    max_events: int = 200
    """No viewer has more (nor more than a quarter of the catalogue)."""
    stay: float = 0.75
    """Probability that the session goes on in its group."""
    follow: float = 0.5
    """Probability that a series goes on with its next item."""
    loved: int = 3
    """Groups that a viewer loves."""
    skew: float = 3.0
    """Power of the attention within a group: item r of s gets a share of about (r / s) ** (1 / skew − 1)."""
    start: int = 1_688_169_600
    """Unix seconds at which the log begins (2023-07-01)."""
    days: int = 1_096
    """Length of the log."""

    def __post_init__(self) -> None:
        if self.items < 100:
            raise UsageError(f"a procedural catalogue needs at least 100 items, not {self.items}")
        if self.events < self.min_events:
            raise UsageError(f"a procedural log needs at least {self.min_events} events, not {self.events}")
        if max(self.items, self.events) > MOST:
            raise UsageError(f"a procedural dataset has at most {MOST:,} items and as many events")

    @property
    def groups(self) -> int:
        """About the square root of the number of items."""
        return max(4, math.isqrt(self.items))

    @property
    def longest(self) -> int:
        """No viewer has more events than this."""
        return min(self.max_events, self.items // 4)


def procedural_items(story: ProceduralStory) -> pa.Table:
    """The catalogue: item_id, a title that says it is procedural, group, and place in a series (null for none)."""
    places = np.empty(story.items, np.int64)
    places[_number(np.arange(story.items), story)] = np.arange(story.items)
    group, within, series = _position(places, story)
    width = len(str(story.items - 1))
    return pa.table(
        {
            "item_id": pa.array([f"procedural-{number:0{width}}" for number in range(story.items)]),
            "title": pa.array(
                [f"Procedural item {number:0{width}} of group {of}" for number, of in enumerate(group.tolist())]
            ),
            "group": pa.array(group, pa.int32()),
            "series_order": pa.array(within % SERIES + 1, pa.int8(), mask=~series),
        }
    )


def procedural_log(
    story: ProceduralStory, rng: np.random.Generator, progress: Callable[[int], None] = lambda done: None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(user, item, timestamp): int32, int32 and int64 [events], sorted by user and time; no user has an item twice.

    progress: called with the number of events that are ready.
    """
    lengths = draw_lengths(story, rng)
    offsets = offsets_of(lengths)
    item, timestamp = np.empty(story.events, np.int32), np.empty(story.events, np.int64)
    starts = range(0, len(lengths), BLOCK)
    for start, child in zip(starts, rng.spawn(len(starts)), strict=True):
        part = lengths[start : start + BLOCK]
        at = slice(offsets[start], offsets[start] + int(part.sum()))
        places, groups = _walk(part, story, child)
        _replace_repeats(places, groups, part, story, child)
        item[at] = _number(places, story)
        timestamp[at] = _moments(part, story, child)
        progress(at.stop)
    return np.repeat(np.arange(len(lengths), dtype=np.int32), lengths), item, timestamp


def draw_lengths(story: ProceduralStory, rng: np.random.Generator) -> np.ndarray:
    """int64 [viewers], summing to `story.events` exactly."""
    mean = min(story.mean_events, (story.min_events + story.longest) / 2)
    viewers = max(round(story.events / mean), -(-story.events // story.longest))
    viewers = min(viewers, story.events // story.min_events)
    extra = rng.gamma(1.1, (mean - story.min_events) / 1.1, viewers).round().astype(np.int64)
    lengths = np.minimum(story.min_events + extra, story.longest)
    while gap := story.events - int(lengths.sum()):
        able = np.flatnonzero(lengths < story.longest if gap > 0 else lengths > story.min_events)
        lengths[rng.choice(able, min(abs(gap), len(able)), replace=False)] += np.sign(gap)
    return lengths


def _number(places: np.ndarray, story: ProceduralStory) -> np.ndarray:
    """Item numbers of `places` (place p lies in group p // size): a fixed one-to-one mixing, so that groups are not ranges."""
    step = next(k for k in range(int(story.items * 0.618), story.items) if math.gcd(k, story.items) == 1)
    return places.astype(np.int64) * step % story.items


def _position(places: np.ndarray, story: ProceduralStory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(group, place within the group, whether it belongs to a series), each [places]. The last group takes what is left."""
    size = story.items // story.groups
    group = np.minimum(places // size, story.groups - 1)
    within = places - group * size
    series = (within // SERIES % 3 == 0) & (within // SERIES * SERIES + SERIES <= size)
    return group, within, series


def _draw_place(groups: np.ndarray, story: ProceduralStory, rng: np.random.Generator, skew: float) -> np.ndarray:
    """A place in each of `groups`."""
    size = story.items // story.groups
    sizes = np.where(groups == story.groups - 1, story.items - size * (story.groups - 1), size)
    return groups * size + (sizes * rng.random(len(groups)) ** skew).astype(np.int64)


def _walk(lengths: np.ndarray, story: ProceduralStory, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(places, groups), int64 [events] of viewers with `lengths`, in their order; repeats are still in them."""
    offsets = offsets_of(lengths)
    places, groups = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    # A few groups are loved by many.
    loved = (story.groups * rng.random((len(lengths), story.loved)) ** 2).astype(np.int64)
    rows = np.arange(len(lengths))
    group = loved[rows, rng.integers(story.loved, size=len(rows))]
    place = _draw_place(group, story, rng, story.skew)
    for step in range(int(lengths.max())):
        if step:
            keep = lengths[rows] > step
            rows, group, place = rows[keep], group[keep], place[keep]
            luck = rng.random(len(rows))
            choice = loved[rows, rng.integers(story.loved, size=len(rows))]
            neighbour = (group + 1) % story.groups
            left = (1 - luck) / (1 - story.stay)  # uniform on 0..1 where the session ends
            group = np.where(luck < story.stay, group, np.where(left < 0.7, choice, neighbour))
            _, within, series = _position(place, story)
            goes_on = series & (within % SERIES < SERIES - 1) & (rng.random(len(rows)) < story.follow)
            place = np.where(goes_on, place + 1, _draw_place(group, story, rng, story.skew))
        at = offsets[rows] + step
        places[at], groups[at] = place, group
    return places, groups


def _replace_repeats(
    places: np.ndarray, groups: np.ndarray, lengths: np.ndarray, story: ProceduralStory, rng: np.random.Generator
) -> None:
    """Draw anew, in place, whatever a viewer already has: from the same group at first, from anywhere if that does not help."""
    viewer = np.repeat(np.arange(len(lengths)), lengths)
    suspects = np.arange(len(places))
    for attempt in range(1_000):
        keys = viewer[suspects] * story.items + places[suspects]
        order = np.argsort(keys, kind="stable")
        again = np.zeros(len(suspects), bool)
        again[order[1:]] = np.diff(keys[order]) == 0
        repeats = suspects[again]
        if not len(repeats):
            return
        few = attempt < 20
        places[repeats] = (
            _draw_place(groups[repeats], story, rng, 1.0) if few else rng.integers(story.items, size=len(repeats))
        )
        # Only viewers who had repeats can have some again.
        troubled = np.zeros(len(lengths), bool)
        troubled[viewer[repeats]] = True
        suspects = suspects[troubled[viewer[suspects]]]
    raise AssertionError("a quarter of the catalogue is the longest history: repeats cannot persist")


def _moments(lengths: np.ndarray, story: ProceduralStory, rng: np.random.Generator) -> np.ndarray:
    """int64 [events]: unix seconds, ascending within a viewer, who joins and leaves some time during the log."""
    offsets = offsets_of(lengths)
    seconds = story.days * 86_400
    gaps = rng.exponential(size=offsets[-1])
    reach = np.cumsum(gaps)
    before = np.repeat(reach[offsets[:-1]] - gaps[offsets[:-1]], lengths)
    share = (reach - before) / np.repeat(reach[offsets[1:] - 1] - before[offsets[:-1]], lengths)
    join = rng.random(len(lengths)) * 0.8
    stay = (1 - join) * rng.uniform(0.1, 1.0, len(lengths))
    return story.start + ((np.repeat(join, lengths) + np.repeat(stay, lengths) * share) * (seconds - 1)).astype(
        np.int64
    )
