"""The values that items have, as sparse tables: what bars beside the map count, and what its regions are named after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse

from app.store.attributes import caption, is_place, is_year, names_items, prose
from app.text import clean, spaced

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
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            attribute = _of_numbers(name, items[name].cast(pa.float64()).to_numpy())
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


def _of_numbers(name: str, numbers: npt.NDArray[np.float64]) -> Attribute:
    """Years by decade; other numbers by quantile, or one by one where there are few."""
    finite = np.isfinite(numbers)
    known, ranges = numbers[finite], True
    if not len(known):
        return Attribute(name, (), _table([], len(numbers), 0))
    if is_year(name, float(known.min()), float(known.max())):
        edges = np.arange(known.min() // 10 * 10, known.max() + 1, 10)
        called, ranges = [f"{start:.0f}s" for start in edges], False
    elif len(different := np.unique(known)) <= BINS:
        edges, called = different, [f"{value:,.4g}" for value in different]
    else:
        edges = np.unique(np.quantile(known, np.arange(BINS) / BINS, method="higher"))
        tops = [known[known < edge].max() for edge in edges[1:]] + [known.max()]
        called = [
            f"{low:,.4g}" if low == high else f"{low:,.4g}–{high:,.4g}" for low, high in zip(edges, tops, strict=True)
        ]
    items = np.flatnonzero(finite)
    places = np.searchsorted(edges, known, side="right") - 1
    used = np.unique(places)
    table = _table(list(zip(items.tolist(), places.tolist(), strict=True)), len(numbers), len(edges))[:, used]
    return Attribute(name, tuple(called[place] for place in used), sparse.csr_array(table), ranges)


def _table(pairs: list[tuple[int, int]], items: int, values: int) -> sparse.csr_array:
    rows, columns = np.array(pairs, np.int64).reshape(-1, 2).T
    return sparse.csr_array((np.ones(len(rows), np.int64), (rows, columns)), shape=(items, values))
