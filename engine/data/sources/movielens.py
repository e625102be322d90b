"""MovieLens in its three layouts: ``ml-100k`` (u.data, u.item), ``ml-1m`` (ratings.dat, movies.dat), ``ml-20m`` (ratings.csv,
movies.csv; also 10M's successors 25M, 32M and the "latest" sets). ``movietweetings`` has the second one in UTF-8."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from engine.data.catalogue import ItemFile
from engine.data.log import LogFiles
from engine.data.options import ImportOptions
from engine.data.problems import Problems
from engine.data.rows import Layout, Mapping, records
from engine.data.sources.base import Reading, Source, Workshop
from engine.data.sources.files import beside, only_file
from engine.data.text import inspect

LICENCE = "GroupLens: research use, no redistribution without permission, cite Harper and Konstan (2015)"
GENRES_100K = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir",
    "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
"""u.genre: the flags of u.item in their order."""
_YEAR = re.compile(r"\((\d{4})(?:\s*[-–]\s*\d{0,4})?\)\s*$")


def movies_dat(path: Path, encoding: str | None, problems: Problems) -> ItemFile:
    """MovieLens 1M's catalogue: id::title::genre|genre, in latin-1."""

    def records() -> Iterator[tuple[int | None, dict[str, Any]]]:
        layout = Layout("delimited", "::", fields=3, quoting=False, encoding=encoding or "latin-1")
        for line, (item_id, title, genres) in _rows(path, layout, problems):
            yield line, {"id": item_id, "title": title, "year": year(title), "genres": genre_list(genres)}

    return ItemFile(path, records, ("id",), "title")


def u_item(path: Path, encoding: str | None, problems: Problems) -> ItemFile:
    """MovieLens 100K's catalogue: id|title|release date|video release|URL|19 flags, in latin-1."""

    def records() -> Iterator[tuple[int | None, dict[str, Any]]]:
        layout = Layout("delimited", "|", fields=5 + len(GENRES_100K), quoting=False, encoding=encoding or "latin-1")
        for line, (item_id, title, released, _, _, *flags) in _rows(path, layout, problems):
            genres = [
                genre for genre, flag in zip(GENRES_100K, flags, strict=True) if flag == "1" and genre != "unknown"
            ]
            made = year(title) or (int(released[-4:]) if released[-4:].isdecimal() else None)
            yield line, {"id": item_id, "title": title, "year": made, "genres": genres}

    return ItemFile(path, records, ("id",), "title")


def movies_csv(path: Path, encoding: str | None, problems: Problems) -> ItemFile:
    """MovieLens 20M's catalogue: movieId,title,genres in UTF-8, quoted where needed."""

    def records() -> Iterator[tuple[int | None, dict[str, Any]]]:
        layout = Layout("delimited", ",", fields=3, encoding=encoding)
        for line, (item_id, title, genres) in _rows(path, layout, problems):
            if (line, item_id) != (1, "movieId"):
                yield line, {"id": item_id, "title": title, "year": year(title), "genres": genre_list(genres)}

    return ItemFile(path, records, ("id",), "title")


def year(title: str) -> int | None:
    """The year that MovieLens writes behind a title."""
    match = _YEAR.search(title)
    return int(match[1]) if match else None


def genre_list(text: str) -> list[str]:
    return [] if text == "(no genres listed)" else [genre for genre in text.strip().split("|") if genre]


def _rows(path: Path, layout: Layout, problems: Problems) -> Iterator[tuple[int, list[str]]]:
    """(line, fields) of every row with the right number of fields; the others become problems."""
    for line, fields, _ in records(inspect(path, layout.encoding), layout, layout.fields):
        if isinstance(fields, str):
            problems.add(path, line, "row", "", fields)
        elif len(fields) != layout.fields:
            fault = "too few fields" if len(fields) < layout.fields else "too many fields"
            problems.add(path, line, "row", layout.delimiter.join(fields), fault)
        else:
            yield line, fields


def _open(
    options: ImportOptions,
    workshop: Workshop,
    *,
    log_name: str,
    layout: Layout,
    mapping: Mapping,
    encoding: str | None = None,
) -> Reading:
    """encoding: of the catalogue, where the options name none; None takes the one of its MovieLens file."""
    log = only_file(options.paths, log_name, options.source or "MovieLens")
    catalogues = {
        "ratings.dat": ("movies.dat", movies_dat),
        "u.data": ("u.item", u_item),
        "ratings.csv": ("movies.csv", movies_csv),
    }
    name, reader = catalogues[log_name]
    catalogue = beside(log, name)
    items = (
        reader(catalogue, options.encoding or encoding, workshop.problems)
        if catalogue and options.items is None
        else None
    )
    return Reading(LogFiles((log,), layout, mapping), items)


ML_100K = Source(
    "ml-100k", "MovieLens 100K", "GroupLens MovieLens 100K: ratings of 1997 and 1998, grouplens.org/datasets/movielens/100k",
    LICENCE, 0,
    partial(_open, log_name="u.data", layout=Layout("delimited", "\t", fields=4, quoting=False), mapping=Mapping(0, 1, 3, 2)),
)  # fmt: skip
ML_1M = Source(
    "ml-1m", "MovieLens 1M", "GroupLens MovieLens 1M: ratings of 2000 to 2003, grouplens.org/datasets/movielens/1m",
    LICENCE, 5,
    partial(
        _open, log_name="ratings.dat", layout=Layout("delimited", "::", fields=4, quoting=False), mapping=Mapping(0, 1, 3, 2)
    ),
)  # fmt: skip
MOVIETWEETINGS = Source(
    "movietweetings", "MovieTweetings",
    "MovieTweetings: film ratings that people posted from the IMDb app as public tweets, github.com/sidooms/MovieTweetings",
    "MIT, © 2013 Simon Dooms; cite Dooms, De Pessemier and Martens (CrowdRec at RecSys 2013)", 10,
    partial(
        _open, log_name="ratings.dat", layout=Layout("delimited", "::", fields=4, quoting=False), mapping=Mapping(0, 1, 3, 2),
        encoding="utf-8",
    ),
)  # fmt: skip
ML_20M = Source(
    "ml-20m", "MovieLens 20M", "GroupLens MovieLens 20M: ratings of 1995 to 2015, grouplens.org/datasets/movielens/20m",
    LICENCE, 0,
    partial(
        _open, log_name="ratings.csv", layout=Layout("delimited", ",", header=True),
        mapping=Mapping("userId", "movieId", "timestamp", "rating"),
    ),
)  # fmt: skip
