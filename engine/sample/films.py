"""The sample's catalogue: real films in ``films.jsonl``, read strictly and as columns.

One film per line, a JSON object with the fields of `Film`. The facts are public; the descriptions were written for this project.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import SeqscopeError

GENRES = (
    "Action", "Adventure", "Animation", "Biography", "Comedy", "Crime", "Documentary", "Drama", "Family", "Fantasy",
    "History", "Horror", "Music", "Musical", "Mystery", "Romance", "Science Fiction", "Sport", "Thriller", "War", "Western",
)  # fmt: skip

DESCRIPTION_LENGTH = (50, 240)
YEARS = (1890, 2026)


@dataclass(frozen=True)
class Film:
    """One line of films.jsonl."""

    item_id: str
    """Lowercase letters, digits and dashes; unique."""
    title: str
    year: int
    """Of first release."""
    genres: list[str]
    """One to four of `GENRES`, the most telling first."""
    director: str
    country: str
    franchise: str | None
    """Name of the series that this film belongs to."""
    franchise_order: int | None
    """Its place among the parts of the series that are in this catalogue, in order of release, without gaps from 1."""
    keywords: list[str]
    description: str
    """One sentence about what happens, without praise."""
    fame: int
    """1 (known to few) to 5 (known to nearly everybody)."""


def read_films(path: Path) -> list[Film]:
    """The films of `path`, sorted by year and title; raises `SeqscopeError` naming every fault found."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise SeqscopeError(
            f"{path} cannot be read ({error.strerror}). It is the source of the sample's catalogue."
        ) from error
    films, faults = [], []
    for number, line in enumerate(lines, start=1):
        try:
            films.append(parse_film(json.loads(line)))
        except ValueError as error:
            faults.append(f"line {number}: {error}")
    faults += check_films(films)
    if faults:
        shown = "\n  ".join(faults[:20])
        raise SeqscopeError(f"{path}: {len(faults)} faults; mend these first:\n  {shown}")
    return sorted(films, key=lambda film: (film.year, film.title))


def write_films(films: Iterable[Film], path: Path) -> None:
    """One JSON object per line, sorted by year and title."""
    ordered = sorted(films, key=lambda film: (film.year, film.title))
    lines = [json.dumps(dataclasses.asdict(film), ensure_ascii=False, separators=(",", ":")) + "\n" for film in ordered]
    path.write_text("".join(lines), "utf-8")


def parse_film(raw: Any) -> Film:
    """A `Film` from a decoded line; raises ValueError when a field is missing, unknown or of the wrong type."""
    names = [f.name for f in dataclasses.fields(Film)]
    if not isinstance(raw, dict) or set(raw) != set(names):
        raise ValueError(f"expected exactly the fields {', '.join(names)}")
    for name in ("item_id", "title", "director", "country", "description"):
        if not isinstance(raw[name], str) or raw[name] != raw[name].strip() or not raw[name]:
            raise ValueError(f"{name} must be text without blanks at its ends, not {raw[name]!r}")
    for name in ("year", "fame"):
        if type(raw[name]) is not int:
            raise ValueError(f"{name} must be a whole number, not {raw[name]!r}")
    for name in ("genres", "keywords"):
        if not isinstance(raw[name], list) or not all(isinstance(word, str) and word.strip() for word in raw[name]):
            raise ValueError(f"{name} must be a list of words, not {raw[name]!r}")
    series, order = raw["franchise"], raw["franchise_order"]
    if not ((series is None and order is None) or (isinstance(series, str) and series and type(order) is int)):
        raise ValueError(
            f"franchise and franchise_order must be a name and a number, or both null, not {series!r}, {order!r}"
        )
    return Film(**raw)


def check_films(films: Sequence[Film]) -> list[str]:
    """Everything that is wrong with these films, one sentence each; empty when all is well."""
    faults = [f"{film.item_id}: {fault}" for film in films for fault in _faults(film)]
    for name, key in (
        ("item_id", lambda film: film.item_id),
        ("title and year", lambda film: (film.title.casefold(), film.year)),
        ("description", lambda film: film.description.casefold()),
    ):
        groups = defaultdict(list)
        for film in films:
            groups[key(film)].append(film.item_id)
        faults += [f"same {name}: {', '.join(ids)}" for ids in groups.values() if len(ids) > 1]
    series: dict[str, list[Film]] = defaultdict(list)
    for film in films:
        if film.franchise is not None:
            series[film.franchise].append(film)
    for name, parts in series.items():
        parts.sort(key=lambda film: film.franchise_order or 0)
        if [film.franchise_order for film in parts] != list(range(1, len(parts) + 1)):
            faults.append(
                f"franchise {name}: orders {[film.franchise_order for film in parts]} are not 1 to {len(parts)}"
            )
        elif any(a.year > b.year for a, b in itertools.pairwise(parts)):
            faults.append(f"franchise {name}: a part is older than the one before it")
    return faults


def _faults(film: Film) -> Iterable[str]:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", film.item_id):
        yield "item_id must be lowercase letters, digits and single dashes"
    if not YEARS[0] <= film.year <= YEARS[1]:
        yield f"year {film.year} is not within {YEARS[0]} to {YEARS[1]}"
    if not 1 <= film.fame <= 5:
        yield f"fame {film.fame} is not within 1 to 5"
    if not 1 <= len(film.genres) <= 4 or len(set(film.genres)) != len(film.genres):
        yield f"genres must be one to four different ones, not {film.genres}"
    if unknown := [genre for genre in film.genres if genre not in GENRES]:
        yield f"unknown genres {unknown}"
    if not 3 <= len(film.keywords) <= 8 or len(set(film.keywords)) != len(film.keywords):
        yield f"keywords must be three to eight different ones, not {film.keywords}"
    if not DESCRIPTION_LENGTH[0] <= len(film.description) <= DESCRIPTION_LENGTH[1]:
        yield f"description has {len(film.description)} characters, not {DESCRIPTION_LENGTH[0]} to {DESCRIPTION_LENGTH[1]}"
    if not film.description.endswith((".", "!", "?")):
        yield "description must end like a sentence"
