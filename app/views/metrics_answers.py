"""The Metrics page's figures, computed once and kept: by the content of the bundles, so a new export is judged anew."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
import pyarrow as pa
import streamlit as st

from app.kept import until_deleted
from app.store.attributes import tidied
from app.views import floor
from app.views import metrics as views
from engine.runtime import Zoo
from engine.runtime.protocols import history_excluded

NUMBERS = {
    "popularity-3": "Popularity of the held-out item, thirds",
    "popularity-10": "Popularity of the held-out item, tenths",
}
COLD = "cold"
REPEATED = "repeated"
_PARTS = {
    REPEATED: "Whether the held-out item repeats one of the history",
    COLD: "Whether the held-out item is in anybody's training",
}


def protocols(models: Zoo) -> list[str]:
    """Every protocol that some model was evaluated under, full rankings first."""
    return _protocols(models, _content(models))


def people(models: Zoo, protocol: str) -> tuple[dict[str, views.Ranks], int]:
    """(the ranks of every row that has them (`views.ranked`), over the same people in the same order, the floor first; how many
    people some row lacks)."""
    return _people(models, _content(models), protocol)


def standing(models: Zoo, protocol: str, k: int) -> pd.DataFrame:
    """`views.standing` of all metrics at k."""
    return _standing(models, _content(models), protocol, k)


def families(models: Zoo, rows: Iterable[str]) -> dict[str, str]:
    """Row → the family of its model."""
    return {row: models.bundles[views.model_of(row)].manifest.family for row in rows}


def against(models: Zoo, protocol: str, baseline: str, metric: str) -> pd.DataFrame:
    return _against(models, _content(models), protocol, baseline, metric)


def beyond(models: Zoo, protocol: str, k: int) -> pd.DataFrame:
    return _beyond(models, _content(models), protocol, k)


def slices(models: Zoo, protocol: str, by: str, metric: str) -> pd.DataFrame:
    """by: one of `sliceable`."""
    return _slices(models, _content(models), protocol, by, metric)


def sliceable(models: Zoo, protocol: str | None = None) -> dict[str, str]:
    """What people can be grouped by → in words: whether the held-out item repeats one of the history, and whether it is in
    anybody's training, where people of this protocol were asked for both kinds; its popularity and attributes; the length of the
    history. Where repeats count, they come first."""
    attributes = [name for name in models.items.column_names if name not in ("item", "item_id", "title", "popularity")]
    parts = {by: words for by, words in _PARTS.items() if _has_both(models, protocol, by)}
    both = NUMBERS | parts if history_excluded(models.info.repeats) else parts | NUMBERS
    return {
        **both,
        "length": "Length of the history, fifths",
        **{f"attribute:{name}": f"{name.replace('_', ' ').capitalize()} of the held-out item" for name in attributes},
    }


def _has_both(models: Zoo, protocol: str | None, by: str) -> bool:
    if by == REPEATED and models.info.sets:
        return False
    found = {} if protocol is None else people(models, protocol)[0]
    return any(len(_slicing(models, one, by).groups) > 1 for one in [*found.values()][:1])


def _content(models: Zoo) -> tuple[str, ...]:
    return (str(models.path), models.info.fingerprint, *(bundle.digest for bundle in models.bundles.values()))


@until_deleted
@st.cache_data(max_entries=20, show_spinner=False)
def _protocols(_zoo: Zoo, content: tuple[str, ...]) -> list[str]:
    return views.protocols({name: bundle.ranks_table() for name, bundle in _zoo.bundles.items()})


@until_deleted
@st.cache_resource(max_entries=20, show_spinner=False)  # arrays that nobody changes
def _people(_zoo: Zoo, content: tuple[str, ...], protocol: str) -> tuple[dict[str, views.Ranks], int]:
    tables = {name: bundle.ranks_table() for name, bundle in _zoo.bundles.items()}
    measured = {name: bundle.manifest.metrics for name, bundle in _zoo.bundles.items()}
    found = views.ranked(tables, measured, protocol)
    return views.common({row: found[row] for row in floor.first(found, families(_zoo, found))})


@until_deleted
@st.cache_data(max_entries=100, show_spinner="Drawing people anew, 2,000 times …")
def _standing(_zoo: Zoo, content: tuple[str, ...], protocol: str, k: int) -> pd.DataFrame:
    return views.standing(people(_zoo, protocol)[0], [f"{name}@{k}" for name in views.metrics_of(protocol)])


@until_deleted
@st.cache_data(max_entries=200, show_spinner=False)
def _against(_zoo: Zoo, content: tuple[str, ...], protocol: str, baseline: str, metric: str) -> pd.DataFrame:
    return views.against(people(_zoo, protocol)[0], baseline, metric)


@until_deleted
@st.cache_data(max_entries=100, show_spinner=False)
def _beyond(_zoo: Zoo, content: tuple[str, ...], protocol: str, k: int) -> pd.DataFrame:
    tables = {name: bundle.exposure_table() for name, bundle in _zoo.bundles.items()}
    shown, why = views.exposures(tables, people(_zoo, protocol)[0], protocol, k, len(_zoo))
    return views.beyond(shown, _zoo.popularity, why)


@until_deleted
@st.cache_data(max_entries=200, show_spinner="Looking at each group …")
def _slices(_zoo: Zoo, content: tuple[str, ...], protocol: str, by: str, metric: str) -> pd.DataFrame:
    found = people(_zoo, protocol)[0]
    return views.slices(found, _slicing(_zoo, next(iter(found.values())), by), metric)


def _slicing(models: Zoo, one: views.Ranks, by: str) -> views.Slicing:
    if by in NUMBERS:
        return views.by_number(models.popularity[one.target], int(by.rpartition("-")[2]), "event", "events")
    if by == COLD:
        return views.by_training(models.popularity[one.target])
    if by == REPEATED:
        return views.by_repeat(one, models.users)
    if by == "length":
        return views.by_number(one.length, 5, "item", "items")
    return views.by_attribute(_attribute(models, by), one.target)


def overlap(models: Zoo, by: str) -> bool:
    """Whether a user may be in several slices, because the held-out item may have several values."""
    return by.startswith("attribute:") and pa.types.is_list(_attribute(models, by).type)


def _attribute(models: Zoo, by: str) -> pa.ChunkedArray:
    """As pages have it: texts that are lists as lists."""
    name = by.partition(":")[2]
    return tidied(models.items.select([name]))[name]
