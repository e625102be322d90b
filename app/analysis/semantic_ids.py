"""What codes say of a catalogue, as functions of small arrays. codes: int [items, levels], −1 in trailing places, everywhere."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.analysis.map_colouring import by_frequency, categories
from engine.bundle.codes import Float, Ints, Usage

NONE = -1


def normalised_by_chance(items: int, size: int) -> float:
    """`Usage.normalised` of random codes: `items` of them drawn evenly from `size`, mean of 20 draws with a fixed seed."""
    draws = np.random.default_rng(0).multinomial(items, np.full(size, 1 / size), 20)
    return float(np.mean([Usage(draw.astype(np.int64)).normalised for draw in draws]))


def alike(codes: Ints) -> list[float]:
    """Per level: the share of items whose codes up to this level are another item's as well; see `alike_by_chance`."""
    if not len(codes):
        return [0.0] * codes.shape[1]
    return [float(_shared(codes[:, :depth]).mean()) for depth in range(1, codes.shape[1] + 1)]


def _shared(codes: Ints) -> npt.NDArray[np.bool_]:
    """bool [items]: whether the codes are another item's as well."""
    _, inverse, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse.reshape(-1)] > 1)


def alike_by_chance(items: int, sizes: Sequence[int]) -> list[float]:
    """`alike` of random codes: per level, the chance that one of the other items draws the same codes up to this level."""
    prefixes = np.cumprod(np.array(sizes, np.float64))
    return [float(-np.expm1((items - 1) * np.log1p(-1 / many))) if many > 1 else float(items > 1) for many in prefixes]


def groups(codes: Ints) -> list[npt.NDArray[np.int64]]:
    """The items that share all their codes with others, one array per group, the largest group first, equal ones by their first
    item."""
    _, inverse, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(inverse.reshape(-1), kind="stable")
    parts = np.split(order, np.cumsum(counts)[:-1])
    return sorted((part for part in parts if len(part) > 1), key=lambda part: (-len(part), part[0]))


def with_prefix(codes: Ints, prefix: Sequence[int | None]) -> npt.NDArray[np.int64]:
    """The items whose codes begin so, by number; None: any code. All for an empty prefix, none for one that is too long."""
    mask = np.full(len(codes), len(prefix) <= codes.shape[1])
    for level, code in enumerate(prefix[: codes.shape[1]]):
        if code is not None:
            mask &= codes[:, level] == code
    return np.flatnonzero(mask)


def following(codes: Ints, prefix: Sequence[int]) -> list[tuple[int, int]]:
    """(code, items) of what can come after a prefix, the most frequent first; nothing where the codes end."""
    if len(prefix) >= codes.shape[1]:
        return []
    part = codes[with_prefix(codes, prefix), len(prefix)]
    next_codes, counts = np.unique(part[part != NONE], return_counts=True)
    return sorted(zip(next_codes.tolist(), counts.tolist(), strict=True), key=lambda entry: (-entry[1], entry[0]))


def path(codes: Ints, item: int) -> tuple[int, ...]:
    """The codes of one item, without what stands in trailing places."""
    return tuple(code for code in codes[item].tolist() if code != NONE)


class Labels(NamedTuple):
    """A column of a catalogue as one category per item."""

    names: tuple[str, ...]
    """Not escaped; the most frequent first."""
    of: npt.NDArray[np.int32]
    """[items]: a place in `names`, −1 where an item has none."""


def labels(items: pa.Table, column: str) -> Labels:
    """The category of every item: of a list its first value."""
    texts = [next(iter(categories(value)), None) for value in items[column].to_pylist()]
    counts = Counter(text for text in texts if text is not None)
    names = sorted(counts, key=lambda name: (-counts[name], name))
    place = {name: number for number, name in enumerate(names)}
    return Labels(tuple(names), np.array([-1 if text is None else place[text] for text in texts], np.int32))


def coloured(items: pa.Table, column: str) -> Labels:
    """The category of every item as the map colours it: of a list its most frequent value."""
    names, of = by_frequency(items, column)
    return Labels(tuple(names), of)


class Popular(NamedTuple):
    """What the items of each used code of a level have in common: how often they are taken."""

    code: npt.NDArray[np.int64]
    items: npt.NDArray[np.int64]
    events: Float
    """Mean training events of an item with that code."""


def popularity(codes: Ints, level: int, events: Ints) -> Popular:
    column = codes[:, level]
    known = column != NONE
    counts = np.bincount(column[known])
    sums = np.bincount(column[known], weights=events[known].astype(np.float64))
    used = np.flatnonzero(counts)
    return Popular(used, counts[used], sums[used] / counts[used])


def perplexities_by_popularity(codes: Ints, events: Ints) -> list[float]:
    """Whether rarely taken items are squeezed into few codes: the perplexity of the first codes of the most taken third of the
    items, of the middle one and of the rarest."""
    thirds = np.array_split(np.argsort(-events, kind="stable"), 3)
    return [Usage(np.bincount(codes[rows, 0]).astype(np.int64)).perplexity for rows in thirds]


class Bias(NamedTuple):
    """The codes of a level in what users interacted with and in what a model wrote; each sums to 1 where there is anything."""

    code: npt.NDArray[np.int64]
    """Those with a share in either, the most taken first."""
    taken: Float
    written: Float

    @property
    def distance(self) -> float:
        """Total variation: the share of what was written that stands at other codes than what was taken."""
        return float(np.abs(self.taken - self.written).sum() / 2)


def bias(codes: Ints, level: int, size: int, taken: Ints, written: Ints) -> Bias:
    """taken, written: [items], how often each item was taken by people (held out) and written by the model."""
    column = codes[:, level]
    known = column != NONE
    shares = []
    for times in (taken, written):
        sums = np.bincount(column[known], weights=times[known].astype(np.float64), minlength=size)
        shares.append(sums / max(float(sums.sum()), 1.0))
    some = np.flatnonzero((shares[0] > 0) | (shares[1] > 0))
    order = some[np.lexsort((some, -shares[0][some]))]
    return Bias(order, shares[0][order], shares[1][order])


def spelled(codes: Sequence[int]) -> str:
    """12 · 200 · 7"""
    return " · ".join(map(str, codes))
