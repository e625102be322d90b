"""The embedded real log: MovieTweetings (ratings that people posted as public tweets), imported as the dataset ``data/films``.

The importer does the work (bad rows, k-core, split, fingerprint). Here the table gets names that say nothing of their source:
people are numbered in an order drawn by lot, films are called by title and year, and how often a film was rated, which counts
held-out events as well, stays behind.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.dataset import DatasetInfo
from engine.data.options import ImportOptions
from engine.data.order import core
from engine.data.prepare import import_dataset
from engine.data.staging import staging
from engine.errors import SeqscopeError

K_CORE = 10
RECENT = 2013
"""The year in which the log begins."""
RATINGS, ITEMS, LICENCE = "ratings.parquet", "items.parquet", "LICENSE"
"""Files of the raw table's folder."""
COLUMNS = {RATINGS: ("user_id", "item_id", "rating", "timestamp", "pos"), ITEMS: ("item_id", "title", "year", "genres")}
TITLE = "Films, real ratings"
ABOUT = (
    "MovieTweetings: ratings that people posted from the IMDb app as public tweets, from February 2013 to September 2016 "
    "(S. Dooms, T. De Pessemier, L. Martens: “MovieTweetings: a Movie Rating Dataset Collected From Twitter”, CrowdRec at RecSys "
    "2013). A rating is dated when it was posted, to the day, and need not tell when the film was watched; the order within a "
    "day is that of posting. People chose themselves by tweeting, and rate mostly what they like: the median is {median:g} of 10, "
    "and every rating is an event here, also a low one. New releases dominate: films of {year} and later have {recent:.0%} of "
    "the events."
)
LICENCE_IN_WORDS = (
    "MIT, © 2013 Simon Dooms (the licence is in the dataset's folder); cite the paper named as the source. Pseudonymous, not "
    "anonymous: make no attempt to find out who somebody is."
)


def build_films(raw: Path, out: Path, seed: int = 0) -> DatasetInfo:
    """Import the raw table in the folder `raw` as the dataset `out`, replaced as a whole or not at all; its README stays.

    raw: ratings.parquet (user_id, item_id, rating 0–10, timestamp: unix seconds of a midnight, pos: the order within the user),
    items.parquet (item_id, title, year, genres separated by |) and LICENSE. seed: of the order in which people are numbered.
    Raises SeqscopeError where a file or a column is missing.
    """
    ratings, items = (_read(raw / name) for name in (RATINGS, ITEMS))
    licence = raw / LICENCE
    if not licence.is_file():
        raise SeqscopeError(f"{licence} is missing. The ratings may be passed on with their licence only.")
    ratings = ratings.sort_by([("user_id", "ascending"), ("pos", "ascending")])
    user, item = (ratings[name].to_numpy() for name in ("user_id", "item_id"))
    inside = core(user, item, K_CORE, K_CORE)
    names = dict(zip(items["item_id"].to_pylist(), film_ids(items.to_pylist()), strict=True))
    years = dict(zip(items["item_id"].to_pylist(), items["year"].to_pylist(), strict=True))
    about = ABOUT.format(
        median=np.median(ratings["rating"].to_numpy()[inside]),
        year=RECENT,
        recent=np.mean([years.get(number, 0) >= RECENT for number in item[inside].tolist()]),
    )
    with staging(out, overwrite=True) as folder:
        work = folder / "raw"
        work.mkdir()
        log = ratings.select(["rating", "timestamp"])
        log = log.append_column("item_id", pa.array([names.get(number, str(number)) for number in item.tolist()]))
        pq.write_table(log.append_column("user_id", people(user, inside, seed)), work / RATINGS)
        pq.write_table(film_table(items, names), work / ITEMS)
        made = import_dataset(
            ImportOptions(
                paths=(work / RATINGS,), items=work / ITEMS, out=work / "films", source="table", k_core=K_CORE, ties="known",
                strict=True, name="films", title=TITLE, about=about, licence=LICENCE_IN_WORDS,
            ),
        ).info  # fmt: skip
        for path in (work / "films").iterdir():
            path.rename(folder / path.name)
        shutil.rmtree(work)
        shutil.copyfile(licence, folder / LICENCE)
        if (out / "README.md").is_file():
            shutil.copyfile(out / "README.md", folder / "README.md")
        info = dataclasses.replace(made, options={"command": "sample films", "people_seed": seed, **made.options})
        (folder / "dataset.json").write_text(info.to_json(), "utf-8")
    return info


def people(user: np.ndarray, inside: np.ndarray, seed: int) -> pa.Array:
    """A name for the user of each event (string [events]): person-0001 … for those in the k-core, in an order drawn with `seed`;
    the others, whom the import leaves out, follow.

    user: int [events]; inside: bool [events], in the k-core.
    """
    raw, user = np.unique(user, return_inverse=True)
    stays = np.bincount(user[inside], minlength=len(raw)) > 0
    drawn = np.random.default_rng(seed).permutation(len(raw))
    number = np.empty(len(raw), np.int64)
    number[np.concatenate([drawn[stays[drawn]], drawn[~stays[drawn]]])] = np.arange(1, len(raw) + 1)
    width = len(str(np.count_nonzero(stays)))
    return pa.array([f"person-{value:0{width}}" for value in number.tolist()]).take(pa.array(user))


def film_ids(films: Sequence[dict[str, object]]) -> list[str]:
    """An id for each film: title and year in lowercase ASCII; of films that share both, the later ones by genres get a number."""
    count: dict[str, int] = {}
    ids = [""] * len(films)
    for row in sorted(
        range(len(films)), key=lambda row: tuple(str(films[row][n]) for n in ("title", "year", "genres"))
    ):
        title, year = films[row]["title"], films[row]["year"]
        name = f"{'-'.join(plain_words(str(title))) or 'film'}-{year}"
        count[name] = count.get(name, 0) + 1
        ids[row] = name if count[name] == 1 else f"{name}-{count[name]}"
    return ids


def plain_words(text: str) -> list[str]:
    """The words of a title without accents, apostrophes, case and punctuation; & reads "and"."""
    text = text.casefold().replace("&", " and ").translate(_LETTERS)
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.findall(r"[a-z0-9]+", text)


_LETTERS = str.maketrans(
    {"ø": "o", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th", "ł": "l", "đ": "d", "ı": "i", "·": " ", "'": "", "’": ""}
)
"""What Unicode does not take apart into a letter and an accent, and what is no border between words."""


def film_table(items: pa.Table, names: dict[int, str]) -> pa.Table:
    """The catalogue for the import: item_id, title, year, genres (list of text)."""
    return pa.table(
        {
            "item_id": [names[item] for item in items["item_id"].to_pylist()],
            "title": items["title"],
            "year": items["year"],
            "genres": [
                [genre for genre in (text or "").split("|") if genre] or None for text in items["genres"].to_pylist()
            ],
        }
    )


def _read(path: Path) -> pa.Table:
    try:
        return pq.read_table(path, columns=list(COLUMNS[path.name]))
    except (OSError, pa.ArrowException) as error:
        raise SeqscopeError(
            f"{path} cannot be read ({error}). It needs the columns {', '.join(COLUMNS[path.name])}; data/films/README.md tells "
            "where the table comes from."
        )
