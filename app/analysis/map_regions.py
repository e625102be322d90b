"""Regions of a map, named after what their items have in common that others have not.

Around every cell of a grid, near items count more (a Gaussian), and each term — a value of an attribute, a word of titles — has a
TF-IDF: the share of the items around that have it, times ln(all items / items that have it). Cells that touch and have the same
first term are a region. So regions are as stable as the density of the items, whatever the projection's noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import ndimage, sparse

from app.analysis.map_attributes import Attribute
from app.analysis.map_points import Points

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
