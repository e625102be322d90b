"""Searches as SQL: the texts that they look into, what matches and how well, and what a mistyped one means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from app.store.attributes import PROSE, Values, column, is_year, names_items
from app.text import MAX_QUERY, fold, spaced, title_words, words_and_numbers, words_of
from engine.bundle.tables import is_list, is_text
from engine.tabular.columns import RESERVED
from engine.writing import WORD

_NEAR = 4  # words that a mistyped one is taken for
_READINGS = 8  # of a mistyped text that are tried
_READ = 4_000  # characters of an attribute that are searched
How = Literal["prefix", "id", "word", "inside", "words", "facts", "prose"]
KINDS: tuple[How, ...] = ("prefix", "id", "word", "inside", "words", "facts", "prose")
Ask = Callable[[str, Values], list[tuple[Any, ...]]]
"""The database's answer to a question."""


class Hit(NamedTuple):
    """An item that a search found."""

    item: int
    item_id: str
    title: str
    how: How
    """How it matches: the title begins so, the text is its id, a word does, it stands inside, all words are there; with short
    attributes, or with prose, they are."""


@dataclass(frozen=True)
class Query:
    """A search, as SQL: what matches to the letter, and how well."""

    title: str
    anything: str
    """The title or the id, or every word in the title or an attribute."""
    kind: str
    """A place in `KINDS`."""
    order: str
    """Sorts the better matches first: those of a kind that are the whole title before others."""
    values: Values
    tokens: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> Query | None:
        """None where there is nothing to look for."""
        whole = fold(text[:MAX_QUERY])
        tokens = words_of(text)
        if not whole:
            return None
        values: Values = {
            "id": text[:MAX_QUERY].strip().lower(),
            "whole": whole,
            "phrase": f" {' '.join(WORD.findall(whole)) or whole}",
        }
        values.update({f"t{number}": f" {token}" for number, token in enumerate(tokens)})

        def every(*columns: str) -> str:
            conditions = (
                " or ".join(f"contains({column}, $t{number})" for column in columns) for number in range(len(tokens))
            )
            return " and ".join(f"({words})" for words in conditions) or "false"

        kind = f"""case when starts_with(folded, $whole) then 0 when lower(c_item_id) = $id then 1
                   when contains(words, $phrase) then 2 when contains(folded, $whole) then 3
                   when {every("words")} then 4 when {every("words", "facts")} then 5 else 6 end"""
        title = f"lower(c_item_id) = $id or contains(folded, $whole) or contains(words, $phrase) or ({every('words')})"
        return cls(
            f"({title})",
            f"({title} or ({every('words', 'facts', 'prose')}))",
            kind,
            f"{kind}, folded <> $whole",
            values,
            tokens,
        )


def texts(part: pa.RecordBatch) -> pa.RecordBatch:
    """The columns as the database calls them, then folded, words (of the title), facts, prose (of attributes)."""
    names = searched(part)
    folded = [fold(title) for title in part["title"].to_pylist()]
    years = part["year"].to_pylist() if "year" in part.schema.names else [None] * len(folded)
    columns = {
        "folded": folded,
        "words": [title_words(title, year) for title, year in zip(folded, years, strict=True)],
        "facts": _words(part, [name for name in names if name not in PROSE], words_and_numbers),
        "prose": _words(part, [name for name in names if name in PROSE], spaced),
    }
    part = part.rename_columns([column(name) for name in part.schema.names])
    for name, values in columns.items():
        part = part.append_column(name, pa.array(values, pa.string()))
    return part


def searched(items: pa.Table | pa.RecordBatch) -> list[str]:
    """The attributes that a search looks into: texts, lists of texts and years, but for ids and links."""
    return [
        field.name
        for field in items.schema
        if field.name not in RESERVED and not names_items(field.name) and _is_words(field.type, field.name)
    ]


def _is_words(kind: pa.DataType, name: str) -> bool:
    inner = kind.value_type if is_list(kind) else kind
    return is_text(inner) or (pa.types.is_integer(kind) and is_year(name, 1_000, 1_000))


def _words(items: pa.RecordBatch, names: Sequence[str], words_in: Callable[[str], str]) -> list[str]:
    """Per item the words of these attributes, each with a blank before it."""
    words = [""] * len(items)
    for name in names:
        for item, value in enumerate(items[name].to_pylist()):
            if value:
                words[item] += words_in((" ".join(map(str, value)) if isinstance(value, list) else str(value))[:_READ])
    return words


# A word that others begin with stands for itself; words that are as near are told apart by how many titles have them.
_NEAR_WORDS = f"""
    select case when starts_with(word, $token) then $token else word end as near,
           min(case when starts_with(word, $token) then 0 else damerau_levenshtein(word, $token) end)::int as distance
    from vocabulary
    where starts_with(word, $token)
       or (abs(length(word) - length($token)) <= $wrong and damerau_levenshtein(word, $token) <= $wrong)
    group by near order by distance, sum(titles) desc, sum(times) desc, near limit {_NEAR}"""


def meant(text: str, ask: Ask) -> str:
    """See `app.store.catalogue.Catalogue.meant`."""
    query = Query.read(text)
    if query is None or _match(query, ask) is not None:
        return text
    return _spaced_otherwise("".join(query.tokens), ask) or _corrected(query.tokens, ask) or text


def _match(query: Query, ask: Ask) -> Literal["title", "attributes"] | None:
    """By what an item matches, by its title where one does."""
    for condition, by in ((query.title, "title"), (query.anything, "attributes")):
        if ask(f"select 1 from catalogue where {condition} limit 1", query.values):
            return by  # type: ignore[return-value]
    return None


def _spaced_otherwise(letters: str, ask: Ask) -> str | None:
    """The beginning of a title, or of some of its words, that has these letters: "star wars"."""
    if len(letters) < 4:
        return None
    titles = ask(
        """select words from catalogue where contains(replace(words, ' ', ''), $letters)
        order by c_popularity desc, c_item limit 20""",
        {"letters": letters},
    )
    for (title,) in titles:
        words = title.split()
        for first in range(len(words)):
            for end in range(first + 1, len(words) + 1):
                if "".join(words[first:end]).startswith(letters):
                    return " ".join(words[first:end])
    return None


def _corrected(tokens: Sequence[str], ask: Ask) -> str | None:
    """The text with its mistyped words replaced."""
    near = [ask(_NEAR_WORDS, {"token": token, "wrong": min(2, len(token) // 3)}) for token in tokens]
    readings = sorted(product(*near), key=lambda words: sum(distance for _, distance in words))
    of_attributes: tuple[int, str] | None = None
    for words in readings[:_READINGS]:
        wrong, text = sum(distance for _, distance in words), " ".join(word for word, _ in words)
        if of_attributes is not None and wrong > of_attributes[0]:
            break
        query = Query.read(text)
        by = _match(query, ask) if wrong and query is not None else None
        if by == "title":
            return text
        if by is not None and of_attributes is None:
            of_attributes = wrong, text
    return of_attributes[1] if of_attributes is not None else None
