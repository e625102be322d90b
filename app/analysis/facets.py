"""The list of a catalogue: which filters there are, what a row says, what a filter is called."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from app.store.attributes import PROSE, Among, Between, Facet, caption, is_place, is_year, names_items
from app.text import clean, distinct, md, title_words, words_and_numbers, words_of
from engine.tabular.columns import RESERVED
from engine.writing import count

PILLS = 24  # values of an attribute that are all shown; of more, people choose from a list
_FIRST = ("genres", "genre", "categories", "year", "decade", "country", "franchise", "series", "director", "brand")
_ALL_DIFFERENT = 0.8  # share of items with a value of their own from which an attribute groups nothing
_AROUND = 5  # words shown on either side of one that matches
_ON_ROW = 3  # attributes that a row tells


class Usable(NamedTuple):
    """The attributes, sorted into those worth a filter and the others."""

    facets: list[Facet]
    left_out: list[tuple[str, str]]
    """(attribute, why it cannot be filtered by)"""


def usable(facets: Sequence[Facet], items: int) -> Usable:
    """What can be filtered by, the familiar attributes first."""
    kept, left_out = [], []
    for facet in facets:
        why = _useless(facet, items)
        if why is None:
            kept.append(facet)
        else:
            left_out.append((caption(facet.name), why))
    places = {name: place for place, name in enumerate(_FIRST)}
    kept.sort(key=lambda facet: places.get(facet.name.casefold(), len(_FIRST)))
    return Usable(kept, left_out)


def _useless(facet: Facet, items: int) -> str | None:
    if facet.kind == "none":
        return facet.reason or "It has no values to choose from."
    if names_items(facet.name):
        return "It only names the items."
    if is_place(facet.name):
        return "It is the place within a series."
    if facet.kind == "range":
        return "It has one value alone." if facet.low == facet.high else None
    valued = items - facet.missing
    if len(facet.values) > _ALL_DIFFERENT * valued and items > PILLS:
        return f"{len(facet.values):,} different values for {count(valued, 'item')}: it groups nothing."
    return "It has one value alone." if len(facet.values) == 1 and not facet.missing else None


def whole(facet: Facet) -> bool:
    """Whether a range is one of whole numbers."""
    return not any(type(end) is float for end in (facet.low, facet.high))


def years(facet: Facet) -> bool:
    return facet.kind == "range" and is_year(facet.name, facet.low or 0, facet.high or 0)


def decades(steps: Sequence[tuple[float, int]]) -> dict[int, str]:
    """First year → "1990s · 312", the latest first."""
    return {int(start): f"{int(start)}s · {items:,}" for start, items in reversed(steps)}


def counted(values: Sequence[tuple[str, int]], chosen: Sequence[str]) -> dict[str, str]:
    """Value → "Drama · 725", the most frequent first; chosen ones are there even where nothing matches any more."""
    counts = dict(values)
    counts.update({value: 0 for value in chosen if value not in counts})
    return distinct({value: f"{clean(value, 60)} · {items:,}" for value, items in counts.items()})


def filter_words(name: str, condition: Among | Between) -> str:
    """A filter in words, not escaped: Year 1970–1990."""
    if isinstance(condition, Among):
        shown = ", ".join(clean(value, 40) for value in condition.values[:3])
        more = f" and {len(condition.values) - 3} more" if len(condition.values) > 3 else ""
        return f"{caption(name)}: {shown}{more}"
    return f"{caption(name)}: {number(condition.low)}–{number(condition.high)}"


def number(value: Any) -> str:
    """A number without needless digits; years are not grouped."""
    if value is None:
        return ""
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.4g}" if abs(value) < 1_000 else f"{value:,.2f}"
    return str(int(value)) if abs(value) < 10_000 else f"{int(value):,}"


def sorts(facets: Sequence[Facet], log: bool = True) -> dict[str, tuple[str, str, bool]]:
    """Key → (words, column, descending) of every order the list can have. log: somebody has taken something."""
    orders = {
        "relevance": ("Best match, then popular" if log else "Best match", "relevance", True),
        "title": ("Title, A to Z", "title", False),
    }
    if log:
        orders["popularity-down"] = ("Most popular", "popularity", True)
        orders["popularity-up"] = ("Least popular", "popularity", False)
    for facet in facets:
        if facet.kind == "range" and not is_place(facet.name):
            newest, oldest = ("newest", "oldest") if years(facet) else ("highest", "lowest")
            orders[f"{facet.name}-down"] = (f"{caption(facet.name)}, {newest} first", facet.name, True)
            orders[f"{facet.name}-up"] = (f"{caption(facet.name)}, {oldest} first", facet.name, False)
    return orders


def row_words(row: Mapping[str, Any], facets: Sequence[Facet]) -> list[str]:
    """What a row says about its item beside the title, not escaped."""
    shown_words = []
    for facet in facets[: 2 * _ON_ROW]:
        words = value_words(row.get(facet.name), 3)
        if words and words not in str(row.get("title", "")):
            shown_words.append(clean(words, 60))
    return shown_words[:_ON_ROW]


def matched(row: Mapping[str, Any], searched: Sequence[str], text: str) -> list[str]:
    """By what an item matches words that are not in its title, its id or attributes: "Director: Ridley Scott"; not escaped."""
    if text.strip().lower() == str(row["item_id"]).lower() != str(row["title"]).lower():
        return [f"{caption('item_id')}: {row['item_id']}"]
    title = title_words(str(row["title"]), row.get("year"))
    left = [word for word in words_of(text) if f" {word}" not in title]
    passages = []
    for name in sorted(searched, key=lambda name: name in PROSE):  # short ones first, as the search ranks them
        value = row.get(name)
        for entry in value if isinstance(value, list) else [value]:
            hits = [word for word in left if entry is not None and _holds(str(entry), word)]
            if hits:
                passages.append(f"{caption(name)}: {_around(str(entry), hits[0])}")
                left = [word for word in left if word not in hits]
    return passages


def _holds(text: str, start: str) -> bool:
    return f" {start}" in words_and_numbers(text)


def _around(text: str, start: str) -> str:
    """A few words of the text, among them the first one that begins so."""
    words = clean(text, 10_000).split()
    place = next((at for at, word in enumerate(words) if _holds(word, start)), 0)
    first = max(0, place - _AROUND)
    shown = words[first : place + _AROUND + 1]
    return f"{'… ' if first else ''}{' '.join(shown)}{' …' if place + _AROUND + 1 < len(words) else ''}"


def value_words(value: Any, limit: int = 100) -> str:
    """An attribute's value in words, not escaped; empty where there is none."""
    if value is None or value == "" or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, (list, tuple)):
        more = f" +{len(value) - limit}" if len(value) > limit else ""
        return ", ".join(map(str, value[:limit])) + more
    return number(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def table(rows: pa.Table) -> pd.DataFrame:
    """Matches as a table to look at or to take away; values as they are."""
    names = ["title", *(name for name in rows.column_names if name not in RESERVED), "popularity", "item_id"]
    columns = {}
    for name in names:
        values = rows[name].to_pylist()
        called = caption(name) if caption(name) not in columns else name  # kind_of, kind of
        columns[called] = ["; ".join(map(str, entry)) if isinstance(entry, list) else entry for entry in values]
    return pd.DataFrame(columns)


def nearest(text: str, meant: str) -> str:
    """That nothing matches the text of a search, and what was searched for instead; as Markdown."""
    return f"No item matches “{md(text, 60)}”. Nearest: **{md(meant, 60)}**"


def headline(total: int, items: int, filtered: bool) -> str:
    """How many there are, not escaped."""
    return f"{total:,} of {count(items, 'item')}" if filtered else count(items, "item")
