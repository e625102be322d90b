"""MovieLens in its three layouts: ``ml-100k`` (u.data, u.item), ``ml-1m`` (ratings.dat, movies.dat), ``ml-20m`` (ratings.csv,
movies.csv; also 10M's successors 25M, 32M and the "latest" sets). ``movietweetings`` has the second one in UTF-8."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from engine.data.catalogue import ItemFile, Record
from engine.data.log import LogFiles
from engine.data.options import ImportOptions
from engine.data.sources.base import Opened, Source, Workshop, beside, fixed_reading, only_file, table_records
from engine.data.sources.table import delimited_reading
from engine.errors import SeqscopeError
from engine.tabular.columns import GENRES
from engine.tabular.reading import Role, UploadColumn

LICENCE = "GroupLens: research use, no redistribution without permission, cite Harper and Konstan (2015)"
_COLUMNS: dict[str, Role] = {"user": "user", "item": "item", "rating": "weight", "time": "time"}
_HEADER: dict[str, Role] = {"userId": "user", "movieId": "item", "rating": "weight", "timestamp": "time"}
_YEAR = re.compile(r"\((\d{4})(?:\s*[-–]\s*\d{0,4})?\)\s*$")


def movies_dat(path: Path, encoding: str | None, workshop: Workshop) -> ItemFile:
    """MovieLens 1M's catalogue: id::title::genre|genre, in latin-1; in UTF-8 where it is that, as MovieLens 10M's."""
    return _item_file(workshop, path, "::", 3, encoding or ("utf-8" if _is_utf8(path) else "latin-1"), _film)


def _is_utf8(path: Path) -> bool:
    try:
        path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return True


def u_item(path: Path, encoding: str | None, workshop: Workshop) -> ItemFile:
    """MovieLens 100K's catalogue: id|title|release date|video release|URL|19 flags, in latin-1. The first flag is "unknown"."""

    def film(line: int | None, item_id: str, title: str, released: str, _: str, url: str, *flags: str) -> Record:
        genres = [genre for genre, flag in zip(GENRES, flags[1:], strict=True) if flag == "1"]
        made = year(title) or (int(released[-4:]) if released[-4:].isdecimal() else None)
        return {"id": item_id, "title": title, "year": made, "genres": genres}

    return _item_file(workshop, path, "|", 6 + len(GENRES), encoding or "latin-1", film)


def movies_csv(path: Path, encoding: str | None, workshop: Workshop) -> ItemFile:
    """MovieLens 20M's catalogue: movieId,title,genres in UTF-8, quoted where needed."""

    def film(line: int | None, item_id: str, title: str, genres: str) -> Record | None:
        return None if (line, item_id) == (1, "movieId") else _film(line, item_id, title, genres)

    return _item_file(workshop, path, ",", 3, encoding, film, quote='"')


def _film(line: int | None, item_id: str, title: str, genres: str) -> Record:
    return {"id": item_id, "title": title, "year": year(title), "genres": genre_list(genres)}


def year(title: str) -> int | None:
    """The year that MovieLens writes behind a title."""
    match = _YEAR.search(title)
    return int(match[1]) if match else None


def genre_list(text: str) -> list[str]:
    return [] if text == "(no genres listed)" else [genre for genre in text.strip().split("|") if genre]


def _item_file(
    workshop: Workshop,
    path: Path,
    delimiter: str,
    width: int,
    encoding: str | None,
    film: Callable[..., Record | None],
    quote: str = "",
) -> ItemFile:
    """film: makes a record of the line and the fields of every row with the right number of them, None of what is no film; the
    other rows are reported."""
    names: dict[str, Role] = {str(number): "text" for number in range(width)}
    rows = table_records(workshop, path, fixed_reading(path, delimiter, names, quote=quote, encoding=encoding), set())

    def records() -> Iterator[tuple[int | None, Record]]:
        for line, row in rows():
            if (made := film(line, *row.values())) is not None:
                yield line, made

    return ItemFile(path, records, ("id",), "title")


def _open(
    options: ImportOptions, workshop: Workshop, *, log_name: str, delimiter: str, encoding: str | None = None
) -> Opened:
    """encoding: of the catalogue, where the options name none; None takes the one of its MovieLens file."""
    log = only_file(options.paths, log_name, options.source or "MovieLens")
    if delimiter == ",":
        with_header = delimited_reading(log, options, workshop, delimiter=delimiter)
        names = [column.name for column in with_header.columns]
        if missing := [name for name in _HEADER if name not in names]:
            raise SeqscopeError(
                f"{log} has no column {missing[0]!r}; it has {', '.join(names)}. Name the format with --source."
            )
        columns = tuple(UploadColumn(name=name, role=_HEADER.get(name, "skip")) for name in names)
        reading = with_header.model_copy(update={"columns": columns})
    else:
        reading = fixed_reading(log, delimiter, _COLUMNS, encoding=options.encoding)
    catalogues = {
        "ratings.dat": ("movies.dat", movies_dat),
        "u.data": ("u.item", u_item),
        "ratings.csv": ("movies.csv", movies_csv),
    }
    name, reader = catalogues[log_name]
    catalogue = beside(log, name)
    items = reader(catalogue, options.encoding or encoding, workshop) if catalogue and options.items is None else None
    return Opened(LogFiles((log,), (reading,)), items)


ML_100K = Source(
    "ml-100k", "MovieLens 100K", "GroupLens MovieLens 100K: ratings of 1997 and 1998, grouplens.org/datasets/movielens/100k",
    LICENCE, 0,
    partial(_open, log_name="u.data", delimiter="\t"),
)  # fmt: skip
ML_1M = Source(
    "ml-1m", "MovieLens 1M", "GroupLens MovieLens 1M: ratings of 2000 to 2003, grouplens.org/datasets/movielens/1m",
    LICENCE, 5,
    partial(_open, log_name="ratings.dat", delimiter="::"),
)  # fmt: skip
MOVIETWEETINGS = Source(
    "movietweetings", "MovieTweetings",
    "MovieTweetings: film ratings that people posted from the IMDb app as public tweets, github.com/sidooms/MovieTweetings",
    "MIT, © 2013 Simon Dooms; cite Dooms, De Pessemier and Martens (CrowdRec at RecSys 2013)", 10,
    partial(_open, log_name="ratings.dat", delimiter="::", encoding="utf-8"),
)  # fmt: skip
ML_20M = Source(
    "ml-20m", "MovieLens 20M", "GroupLens MovieLens 20M: ratings of 1995 to 2015, grouplens.org/datasets/movielens/20m",
    LICENCE, 0,
    partial(_open, log_name="ratings.csv", delimiter=","),
)  # fmt: skip
