"""Files without a header that many people have, told by their shape: MovieLens 100K and 1M.

What is recognised is said like every other guess, and can be changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.uploads.reading import FileKind, Role
from app.uploads.roles import Values

_GENRES = (
    "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy", "Film-Noir",
    "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
"""The flags of u.item in their order, after the first, which stands for "unknown"."""
_NUMBER = re.compile(r"\d{1,10}")


@dataclass(frozen=True)
class Known:
    """A layout: what each column is, and what it is called."""

    title: str
    roles: tuple[Role, ...]
    called: dict[int, str] = field(default_factory=dict)
    flags: str = "tags"


_U_ITEM = Known(
    "u.item of MovieLens 100K",
    ("item_id", "title", "text", "skip", "skip", "skip", *("flag",) * len(_GENRES)),  # type: ignore[arg-type]
    {2: "released", **{6 + number: name for number, name in enumerate(_GENRES)}},
    flags="genres",
)
_MOVIES = Known("movies.dat of MovieLens 1M", ("item_id", "title", "list"), {2: "genres"})
_RATINGS = Known("ratings of MovieLens", ("user", "item", "weight", "time"))


def recognise(kind: FileKind, delimiter: str, columns: Sequence[Values]) -> Known | None:
    """The layout of a file without a header, if it is a known one."""
    if kind == "catalogue":
        if delimiter == "|" and len(columns) == len(_U_ITEM.roles) and _flags(columns[5:]) and _ids(columns[0]):
            return _U_ITEM
        if delimiter == "::" and len(columns) == 3 and _ids(columns[0]) and _any(columns[2], "|"):
            return _MOVIES
        return None
    if delimiter not in ("\t", "::") or len(columns) != 4:
        return None
    stars = columns[2].distinct <= {"1", "2", "3", "4", "5"}
    moments = columns[3].share(lambda value: bool(re.fullmatch(r"(8|9)\d{8}|1[0-6]\d{8}", value))) > 0.99
    return _RATINGS if stars and moments and _ids(columns[0]) and _ids(columns[1]) else None


def _ids(column: Values) -> bool:
    return bool(column.filled) and column.share(lambda value: bool(_NUMBER.fullmatch(value))) > 0.99


def _flags(columns: Sequence[Values]) -> bool:
    return all(column.distinct and column.distinct <= {"0", "1"} for column in columns)


def _any(column: Values, sign: str) -> bool:
    return any(sign in value for value in column.values)
