"""The embedded real log: MovieTweetings (ratings that people posted as public tweets), imported as the dataset ``data/films``.

The importer does the work (bad rows, k-core, split, fingerprint). Here the table gets names that say nothing of their source:
people are numbered in an order drawn by lot, films are called by title and year, and how often a film was rated, which counts
held-out events as well, stays behind.
"""

import dataclasses
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.dataset import DatasetInfo, Reference
from engine.data.log import core
from engine.data.options import ImportOptions
from engine.data.prepare import import_dataset
from engine.data.write import staging
from engine.errors import SeqscopeError
from engine.sample.films import OTHER_TITLES, Film, match, plain_words, read_films

K_CORE = 10
RECENT = 2013
"""The year in which the log begins."""
RATINGS, ITEMS, LICENCE = "ratings.parquet", "items.parquet", "LICENSE"
"""Files of the raw table's folder."""
COLUMNS = {RATINGS: ("user_id", "item_id", "rating", "timestamp", "pos"), ITEMS: ("item_id", "title", "year", "genres")}
TITLE = "Films, real ratings"
ABOUT = "\n".join(
    (
        "MovieTweetings: ratings that people posted from the IMDb app as public tweets, from February 2013 to September 2016. "
        "S. Dooms, T. De Pessemier, L. Martens: “MovieTweetings: a Movie Rating Dataset Collected From Twitter”, CrowdRec at "
        "RecSys 2013.",
        "Rating is not viewing: an event is dated when it was posted, to the day, and nobody knows when the film was watched. "
        "The order within a day is that of posting.",
        "Users are self-selected: they use the IMDb app, and tweet.",
        "Ratings are high, the median is {median:g} of 10, and every rating is an event here, also a low one.",
        "New releases dominate: films of {year} and later have {recent:.0%} of the events.",
        "{known:,} films, with {known_events:.0%} of the events, are in the catalogue that was written for this project and have "
        "their director, country and description from there, as well as the better known of two titles. The others have title, "
        "year and genres alone.",
    )
)
"""The source, and in lines of their own what to bear in mind (`DatasetInfo.source`)."""
LICENCE_IN_WORDS = (
    "MIT, © 2013 Simon Dooms (the licence is in the dataset's folder); cite the paper named as the source. Descriptions: "
    "Apache-2.0, written for this project. Pseudonymous, not anonymous: make no attempt to find out who somebody is."
)

_MEASURED = "measured outside this project on the same events and split"
REFERENCES = [
    Reference(model, title, "full, warm", {"HR@10": hits, "NDCG@10": gain}, _MEASURED)
    for model, title, hits, gain in (
        ("popularity", "Popularity", 0.0441, 0.0202),
        ("markov", "First-order Markov chain", 0.1665, 0.0996),
        ("counting", "Counting transitions, with a small search", 0.2100, 0.1233),
        ("sasrec", "SASRec, cross-entropy, 64 dimensions", 0.2449, 0.1410),
        ("sasrec", "SASRec, cross-entropy, 128 dimensions", 0.2471, 0.1433),
    )
]


def build_films(raw: Path, catalogue: Path, out: Path, seed: int = 0) -> DatasetInfo:
    """Import the raw table in the folder `raw` as the dataset `out`, replaced as a whole or not at all.

    raw: ratings.parquet (user_id, item_id, rating 0–10, timestamp: unix seconds of a midnight, pos: the order within the user),
    items.parquet (item_id, title, year, genres separated by |) and LICENSE. catalogue: films.jsonl, which knows more about some
    of the films. seed: of the order in which people are numbered.
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
    known = match(zip(items["title"].to_pylist(), items["year"].to_pylist(), strict=True), read_films(catalogue))
    with_text = {items["item_id"][row].as_py() for row in known}
    rated = item[inside].tolist()
    about = ABOUT.format(
        median=np.median(ratings["rating"].to_numpy()[inside]),
        year=RECENT,
        recent=np.mean([years.get(number, 0) >= RECENT for number in rated]),
        known=len(with_text.intersection(rated)),
        known_events=np.mean([number in with_text for number in rated]),
    )
    with staging(out, overwrite=True) as folder:
        work = folder / "raw"
        work.mkdir()
        log = ratings.select(["rating", "timestamp"])
        log = log.append_column("item_id", pa.array([names.get(number, str(number)) for number in item.tolist()]))
        pq.write_table(log.append_column("user_id", people(user, inside, seed)), work / RATINGS)
        pq.write_table(film_table(items, names, known), work / ITEMS)
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
        options = {"command": "sample films", "people_seed": seed, **made.options}
        info = dataclasses.replace(made, options=options, references=REFERENCES)
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


def film_table(items: pa.Table, names: Mapping[int, str], known: Mapping[int, Film]) -> pa.Table:
    """The catalogue for the import: item_id, title, year, genres (list of text) of every row of `items`, and of those that are
    known also_known_as (the table's title, where the catalogue has a better known one), director, country, description.

    names: item number in the table → item_id; known: row → film.
    """
    films = [known.get(row) for row in range(items.num_rows)]
    titles = items["title"].to_pylist()
    better = [film.title if film and film.item_id in OTHER_TITLES else None for film in films]
    return pa.table(
        {
            "item_id": [names[item] for item in items["item_id"].to_pylist()],
            "title": [new or title for new, title in zip(better, titles, strict=True)],
            "year": items["year"],
            "genres": [
                [genre for genre in (text or "").split("|") if genre] or None for text in items["genres"].to_pylist()
            ],
            "also_known_as": pa.array(
                [title if new else None for new, title in zip(better, titles, strict=True)], pa.string()
            ),
            **{
                name: pa.array([getattr(film, name) if film else None for film in films], pa.string())
                for name in ("director", "country", "description")
            },
        }
    )


def _read(path: Path) -> pa.Table:
    if not path.is_file():
        raise SeqscopeError(f"There is no {path}; data/films/README.md tells where the table comes from.")
    try:
        return pq.read_table(path, columns=list(COLUMNS[path.name]))
    except (OSError, pa.ArrowException) as error:
        raise SeqscopeError(
            f"{path} cannot be read ({error}). It needs the columns {', '.join(COLUMNS[path.name])}; data/films/README.md tells "
            "where the table comes from."
        )
