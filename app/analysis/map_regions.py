"""Regions of a map, named after what their items have in common that others have not.

Around every cell of a grid, near items count more (a Gaussian), and each term — a value of an attribute, a word of titles — has a
TF-IDF: the share of the items around that have it, times ln(all items / items that have it). Cells that touch and have the same
first term are a region. So regions are as stable as the density of the items, whatever the projection's noise. Bars beside the
map count the same values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import ndimage, sparse

from app.analysis.map_points import Points
from app.store.attributes import caption, is_place, is_year, names_items, numbers, prose
from app.text import clean, grouped, spaced
from engine.bundle.tables import is_number

SMOOTHED = (0.045, 0.018)
"""Standard deviation of the Gaussian as a share of the map's longer side: for the whole map, and for whoever zooms in."""
_CELLS = 72  # along the longer side
_FEWEST = 5  # items of a region that have its term
_MORE = 1.5  # times its share of all items that a term must have in a region
_DOUBT = 6.0  # items without any term that stand around every cell: what few items share by chance is no name
_SECOND = 0.6  # of the first term's TF-IDF from which a region is named after a second one, too
_BLOCK = 64  # terms smoothed at a time


@dataclass(frozen=True)
class Region:
    terms: tuple[str, ...]
    """One or two, the most telling first; not escaped."""
    x: float
    y: float
    items: int
    """How many lie in it."""
    level: int
    """A place in `SMOOTHED`."""

    @property
    def name(self) -> str:
        return " · ".join(self.terms)


def regions(points: Points, attributes: Sequence[Attribute]) -> list[Region]:
    """The named regions of a map, coarse ones first, then the largest. No name stands twice."""
    items = points.items
    xy = np.stack([points.x[items], points.y[items]], 1).astype(np.float64)
    if len(items) < 2 * _FEWEST or not attributes or not np.ptp(xy, axis=0).max() > 0:
        return []
    members = sparse.csr_array(sparse.hstack([attribute.members for attribute in attributes]))[items]
    called = [(attribute.name, value) for attribute in attributes for value in attribute.values]
    enough = np.flatnonzero(np.asarray(members.sum(0)).ravel() >= _FEWEST)
    terms = _Terms(sparse.csc_array(members)[:, enough], [called[term] for term in enough.tolist()])
    named: dict[frozenset[str], Region] = {}
    for level, smoothed in enumerate(SMOOTHED):
        for region in sorted(_of_level(xy, terms, smoothed, level), key=lambda region: (-region.items, region.name)):
            named.setdefault(frozenset(region.terms), region)
    return list(named.values())


@dataclass(frozen=True)
class _Terms:
    members: sparse.csc_array
    """int [items, terms]."""
    called: Sequence[tuple[str, str]]
    """(attribute, value) of each."""

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """[terms], of all items."""
        return np.asarray(self.members.sum(0)).ravel() / self.members.shape[0]


def _of_level(xy: npt.NDArray[np.float64], terms: _Terms, smoothed: float, level: int) -> list[Region]:
    cells = np.rint((xy - xy.min(0)) / np.ptp(xy, axis=0).max() * (_CELLS - 1)).astype(np.int64)
    cell = cells[:, 0] * _CELLS + cells[:, 1]
    first = _first_terms(cell, terms, smoothed * _CELLS)
    regions = []
    for term in np.unique(first[first >= 0]).tolist():
        parts, many = ndimage.label(first == term)
        part_of = parts.ravel()[cell]
        has = terms.members[:, [term]].toarray().ravel() > 0
        for part in range(1, many + 1):
            inside = part_of == part
            if (inside & has).sum() >= _FEWEST:
                x, y = np.median(xy[inside & has], axis=0).tolist()
                regions.append(Region(_named_after(terms, inside, term), x, y, int(inside.sum()), level))
    return regions


def _first_terms(cell: npt.NDArray[np.int64], terms: _Terms, sigma: float) -> npt.NDArray[np.int64]:
    """int64 [cells, cells]: the term of the largest TF-IDF around each cell, −1 where there is none. cell: [items]; sigma: in
    cells."""
    along = np.arange(_CELLS)
    gaussian = np.exp(-((along[:, None] - along) ** 2) / (2 * sigma**2)).astype(np.float32)

    def around(counts: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """[…, cells, cells] → the same, smoothed; a lone item counts 1 in its own cell."""
        return np.asarray(gaussian @ counts @ gaussian, np.float32)

    where = sparse.csr_array((np.ones(len(cell), np.float32), (cell, np.arange(len(cell)))), (_CELLS**2, len(cell)))
    every = around(np.asarray(where.sum(1), np.float32).reshape(_CELLS, _CELLS))
    shares = terms.shares
    best = np.zeros((_CELLS, _CELLS), np.float32)
    first = np.full((_CELLS, _CELLS), -1, np.int64)
    for start in range(0, len(shares), _BLOCK):
        general = shares[start : start + _BLOCK, None, None].astype(np.float32)
        counts = (where @ terms.members[:, start : start + _BLOCK]).toarray().T.reshape(-1, _CELLS, _CELLS)
        share = around(counts.astype(np.float32)) / (every + _DOUBT)
        score = np.where(share >= _MORE * general, share * -np.log(general), 0)
        term = score.argmax(0)
        highest = np.take_along_axis(score, term[None], 0)[0]
        better = highest > best
        best[better], first[better] = highest[better], term[better] + start
    return first


def _named_after(terms: _Terms, inside: npt.NDArray[np.bool_], first: int) -> tuple[str, ...]:
    """The first term and, where another attribute tells nearly as much, a second one. inside: bool [items]."""
    counts = np.asarray(terms.members[inside].sum(0)).ravel()
    share = counts / (inside.sum() + _DOUBT)
    scores = np.where((counts >= _FEWEST) & (share >= _MORE * terms.shares), share * -np.log(terms.shares), 0)
    attribute, value = terms.called[first]
    for term in np.argsort(-scores, kind="stable").tolist():
        if scores[term] < _SECOND * scores[first] or not scores[term] > 0:
            break
        other, more = terms.called[term]
        if other != attribute and more.casefold() not in value.casefold():
            return value, more
    return (value,)


# --- the values that items have


MOST = 1_000  # values of an attribute that are told apart, the most frequent ones
_FREQUENT = 0.02  # share of titles from which a word says nothing of an item
BINS = 5  # parts of equal size that numbers are cut into
TITLE = "title"


@dataclass(frozen=True)
class Attribute:
    """The values of one column, and who has them."""

    name: str
    values: tuple[str, ...]
    """Plain texts, not escaped; numbers and years in their order, others by how many items have them."""
    members: sparse.csr_array
    """int64 [items, values], 1: has it."""
    ranges: bool = False
    """Its values are ranges of numbers, which name nothing."""

    @property
    def title(self) -> str:
        return caption(self.name)

    def counts(self, items: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """int64 [values]: how many of `items`, bool [items], have each."""
        return np.asarray(items.astype(np.int64) @ self.members, np.int64)

    def having(self, values: Iterable[str]) -> npt.NDArray[np.bool_]:
        """bool [items]: who has any of these values."""
        chosen = np.isin(self.values, list(values)).astype(np.int64)
        return np.asarray(self.members @ chosen > 0)


def attributes(items: pa.Table) -> list[Attribute]:
    """Of the columns whose values items have in common: texts, lists, years by decade, other numbers by quantile."""
    described = prose(items)
    shared = []
    for name in items.column_names:
        if name in ("item", "item_id", TITLE, described) or names_items(name) or is_place(name):
            continue
        kind = items[name].type
        if is_number(kind):
            attribute = _of_numbers(name, numbers(items[name]))
        else:
            attribute = _of_texts(name, items[name].to_pylist())
        if len(attribute.values) > 1:
            shared.append(attribute)
    return shared


def title_words(titles: Sequence[str]) -> Attribute:
    """The words of titles that some titles have and most have not, so no "the"; of three letters and more."""
    words = [
        {word.capitalize() for word in spaced(title).split() if len(word) > 2 and not word.isdigit()}
        for title in titles
    ]
    counts = Counter(word for title in words for word in title)
    rare = {word for word, titled in counts.items() if titled <= max(_FREQUENT * len(titles), 10)}
    return _of_texts(TITLE, [sorted(title & rare) for title in words])


def _of_texts(name: str, column: Sequence[object]) -> Attribute:
    """Of values that at least two items have."""
    values = [_texts(value) for value in column]
    counts = Counter(text for texts in values for text in texts)
    frequent = sorted((text for text, n in counts.items() if n > 1), key=lambda text: (-counts[text], text))[:MOST]
    at = {text: place for place, text in enumerate(frequent)}
    pairs = [(item, at[text]) for item, texts in enumerate(values) for text in texts if text in at]
    return Attribute(name, tuple(frequent), _table(pairs, len(values), len(frequent)))


def _texts(value: object) -> set[str]:
    several = value if isinstance(value, list) else [value]
    return {text for entry in several if entry is not None and (text := clean(entry, 60))}


def _of_numbers(name: str, values: npt.NDArray[np.float64]) -> Attribute:
    """Years by decade; other numbers by quantile, or one by one where there are few."""
    finite = np.isfinite(values)
    known, ranges = values[finite], True
    if not len(known):
        return Attribute(name, (), _table([], len(values), 0))
    if is_year(name, float(known.min()), float(known.max())):
        edges = np.arange(known.min() // 10 * 10, known.max() + 1, 10)
        called, ranges = [f"{start:.0f}s" for start in edges], False
    elif len(different := np.unique(known)) <= BINS:
        edges, called = different, _labels(different)
    else:
        edges = np.unique(np.quantile(known, np.arange(BINS) / BINS, method="higher"))
        tops = [known[known < edge].max() for edge in edges[1:]] + [known.max()]
        ends = np.unique([*edges, *tops])
        words = dict(zip(ends.tolist(), _labels(ends), strict=True))
        called = [
            words[low] if low == high else f"{words[low]}–{words[high]}"
            for low, high in zip(edges.tolist(), map(float, tops), strict=True)
        ]
    items = np.flatnonzero(finite)
    places = np.searchsorted(edges, known, side="right") - 1
    used = np.unique(places)
    table = _table(list(zip(items.tolist(), places.tolist(), strict=True)), len(values), len(edges))[:, used]
    return Attribute(name, tuple(called[place] for place in used), sparse.csr_array(table), ranges)


def _labels(different: npt.NDArray[np.float64]) -> list[str]:
    """Numbers as texts, with as many digits as tell them apart, four at least."""
    for digits in (4, 6, 9, 12, 17):
        texts = [grouped(value, digits) for value in different.tolist()]
        if len(set(texts)) == len(texts):
            break
    return texts


def _table(pairs: list[tuple[int, int]], items: int, values: int) -> sparse.csr_array:
    rows, columns = np.array(pairs, np.int64).reshape(-1, 2).T
    return sparse.csr_array((np.ones(len(rows), np.int64), (rows, columns)), shape=(items, values))
