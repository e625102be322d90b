"""One item: how popular it is, what is known of it, its series, and who its neighbours are in each model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from app.analysis.facets import value_words
from app.store.attributes import OWN, caption, is_place, names_items, prose, series
from engine.runtime import jaccard, overlap

_SIBLINGS = 60


class Standing(NamedTuple):
    """How popular an item is."""

    events: int
    rank: int
    """1 is the most popular; equals share the better rank."""
    percentile: float
    """Share of all other items that are less popular, in percent."""


def standing(popularity: npt.NDArray[np.int64], item: int) -> Standing:
    events = popularity[item]
    below = int((popularity < events).sum())
    others = max(1, len(popularity) - 1)
    return Standing(int(events), 1 + int((popularity > events).sum()), 100 * below / others)


def percentile_words(percentile: float) -> str:
    """Never 100 % for an item that is not above all others."""
    if percentile >= 100:
        return "100 %"
    return f"{min(percentile, 99.9):.1f} %" if percentile >= 99 else f"{percentile:.0f} %"


def attributes(items: pa.Table, item: int) -> list[tuple[str, str, list[str]]]:
    """(column, what it is called, its values in words) of what an item has; without the description."""
    described = prose(items)
    rows = []
    for name in items.column_names:
        if name in OWN or name == described or is_place(name):
            continue
        value = items[name][item].as_py()
        values = [str(element) for element in value] if isinstance(value, list) else [value_words(value)]
        if any(values):
            rows.append((name, caption(name), values))
    return sorted(rows, key=lambda entry: names_items(entry[0]))


def description(items: pa.Table, item: int) -> str:
    name = prose(items)
    return (items[name][item].as_py() or "") if name else ""


class Series(NamedTuple):
    """The items of one series."""

    column: str
    name: str
    members: list[tuple[int, str]]
    """(item, its place in words or ""), in order."""


def series_of(items: pa.Table, item: int) -> Series | None:
    """The series an item belongs to, in order; None where the catalogue has no such column or the item stands alone."""
    groups = series(items)
    if groups is None:
        return None
    column, order = groups
    name = items[column][item].as_py()
    if not name:
        return None
    members = np.flatnonzero(pc.fill_null(pc.equal(items[column], name), False).to_numpy()).tolist()
    if len(members) < 2:
        return None
    by = order or ("year" if "year" in items.column_names else None)
    places = {member: items[by][member].as_py() if by else None for member in members}
    members.sort(key=lambda member: (places[member] is None, places[member] or 0, member))
    return Series(column, name, [(m, value_words(places[m]) if order else "") for m in members[:_SIBLINGS]])


class Near(NamedTuple):
    """The neighbours of an item in one model."""

    items: list[int]
    similarity: list[float]
    measure: str

    def words(self, place: int) -> str:
        """The similarity of the neighbour at a place: 0.83, or a distance."""
        value = self.similarity[place]
        return f"{value:.2f}" if self.measure == "cosine" else f"{-value:.3g} away"


def shared(near: Mapping[str, Near]) -> dict[int, int]:
    """Neighbour → how many models have it; only those that several have."""
    counts = Counter(item for nearest in near.values() for item in nearest.items)
    return {item: models for item, models in counts.items() if models > 1}


def overlap_words(near: Mapping[str, Near], titles: Mapping[str, str], k: int) -> str:
    """One sentence on how far the models agree, not escaped."""
    if len(near) < 2:
        return ""
    names = [titles[model] for model in near]
    both = overlap([nearest.items for nearest in near.values()], k)
    a, b = max(combinations(range(len(near)), 2), key=lambda pair: both[pair])
    most = int(both[a, b])
    if len(near) == 2:
        return f"{names[0]} and {names[1]} share {most or 'none'} of {k} neighbours."
    every = set.intersection(*(set(nearest.items) for nearest in near.values()))
    together = "no neighbour" if not every else f"{len(every)} of {k} neighbours"
    if most == 0:
        return f"No two of the {len(near)} models share a neighbour."
    return f"All {len(near)} models share {together}; {names[a]} and {names[b]} agree most, on {most}."


def overlap_table(near: Mapping[str, Near], titles: Mapping[str, str]) -> pd.DataFrame:
    """How many neighbours each two models share, and the Jaccard index."""
    lists = [nearest.items for nearest in near.values()]
    k = max(map(len, lists), default=1)
    both, index, names = overlap(lists, k), jaccard(lists, k), [titles[model] for model in near]
    rows = [
        (names[a], names[b], int(both[a, b]), round(float(index[a, b]), 3))
        for a, b in combinations(range(len(names)), 2)
    ]
    return pd.DataFrame(rows, columns=["Model", "Other model", "Shared neighbours", "Jaccard"])


def neighbour_table(
    near: Mapping[str, Near], titles: Mapping[str, str], names: Sequence[str], ids: Sequence[str]
) -> pd.DataFrame:
    """All neighbours of all models, one row each. names, ids: title and item_id of every item."""
    common = shared(near)
    rows = [
        (
            titles[model],
            place + 1,
            names[item],
            nearest.similarity[place],
            nearest.measure,
            common.get(item, 1),
            ids[item],
        )
        for model, nearest in near.items()
        for place, item in enumerate(nearest.items)
    ]
    return pd.DataFrame(
        rows, columns=["Model", "Rank", "Neighbour", "Similarity", "Measure", "Models that have it", "Item id"]
    )
