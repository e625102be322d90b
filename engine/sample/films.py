"""The sample's catalogue: real films in ``films.jsonl``, read strictly and as columns; and which of them a rating table has.

One film per line, a JSON object with the fields of `Film`. The facts are public; the descriptions were written for this project.
`match` finds films by title and year.
"""

from __future__ import annotations

import itertools
import re
import tomllib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, model_validator

from engine.bundle.errors import complaints
from engine.bundle.manifest import Strict
from engine.errors import SeqscopeError

GENRES = (
    "Action", "Adventure", "Animation", "Biography", "Comedy", "Crime", "Documentary", "Drama", "Family", "Fantasy",
    "History", "Horror", "Music", "Musical", "Mystery", "Romance", "Science Fiction", "Sport", "Thriller", "War", "Western",
)  # fmt: skip

Words = Annotated[str, Field(pattern=r"^\S(.*\S)?$")]
"""Text without blanks at its ends."""


class Film(Strict):
    """One line of films.jsonl."""

    item_id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    title: Words
    year: int = Field(ge=1890, le=2026)
    """Of first release."""
    genres: list[Words] = Field(min_length=1, max_length=4)
    """Of `GENRES`, the most telling first."""
    director: Words
    country: Words
    franchise: Words | None
    """Name of the series that this film belongs to."""
    franchise_order: int | None
    """Its place among the parts of the series that are in this catalogue, in order of release, without gaps from 1."""
    keywords: list[Words] = Field(min_length=3, max_length=8)
    description: Words = Field(min_length=50, max_length=240)
    """One sentence about what happens, without praise."""
    fame: int = Field(ge=1, le=5)
    """1 (known to few) to 5 (known to nearly everybody)."""

    @model_validator(mode="after")
    def _agrees(self) -> Film:
        if unknown := [genre for genre in self.genres if genre not in GENRES]:
            raise ValueError(f"unknown genres {unknown}")
        if any(len(set(words)) < len(words) for words in (self.genres, self.keywords)):
            raise ValueError("a genre or a keyword stands twice")
        if not self.description.endswith((".", "!", "?")):
            raise ValueError("the description must end like a sentence")
        if (self.franchise is None) != (self.franchise_order is None):
            raise ValueError("franchise and franchise_order belong together")
        return self


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
            films.append(Film.model_validate_json(line))
        except ValidationError as error:
            faults.append(f"line {number}: {complaints(error)}")
    faults += check_films(films)
    if faults:
        shown = "\n  ".join(faults[:20])
        raise SeqscopeError(f"{path}: {len(faults)} faults; mend these first:\n  {shown}")
    return sorted(films, key=lambda film: (film.year, film.title))


def check_films(films: Sequence[Film]) -> list[str]:
    """What is wrong between these films, one sentence each; empty when all is well."""
    faults = []
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


OTHER_TITLES: dict[str, str] = tomllib.loads(Path(__file__).with_name("other_titles.toml").read_text("utf-8"))
"""item_id → the title that MovieTweetings has, where that is another."""


def plain_words(text: str) -> list[str]:
    """The words of a title without accents, apostrophes, case and punctuation; & reads "and"."""
    text = text.casefold().replace("&", " and ").translate(_LETTERS)
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.findall(r"[a-z0-9]+", text)


_LETTERS = str.maketrans(
    {"ø": "o", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th", "ł": "l", "đ": "d", "ı": "i", "·": " ", "'": "", "’": ""}
)
"""What Unicode does not take apart into a letter and an accent, and what is no border between words."""


def match(rows: Iterable[tuple[str, int]], films: Sequence[Film]) -> dict[int, Film]:
    """Row number → its film, where title (or other title) and year agree; each film once.

    The year of first release is that of a festival to some and of the cinemas to others, so a year apart is the same film, after
    those of the same year have been given away. Where a row could be two films, or a film two rows, it is none: a wrong
    description is worse than none.

    rows: (title, year).
    """
    titled: dict[str, list[Film]] = defaultdict(list)
    for film in films:
        titled[_key(OTHER_TITLES.get(film.item_id, film.title))].append(film)
    candidates = [
        (row, film, abs(film.year - year)) for row, (title, year) in enumerate(rows) for film in titled[_key(title)]
    ]
    matched: dict[int, Film] = {}
    for years_apart in (0, 1):
        used_ids = {film.item_id for film in matched.values()}
        pairs = [
            (row, film)
            for row, film, apart in candidates
            if apart == years_apart and row not in matched and film.item_id not in used_ids
        ]
        per_row, per_film = Counter(row for row, _ in pairs), Counter(film.item_id for _, film in pairs)
        matched |= {row: film for row, film in pairs if per_row[row] == per_film[film.item_id] == 1}
    return matched


def _key(title: str) -> str:
    return " ".join(plain_words(title))
