"""What the Semantic IDs page asks of tokenizers and models, computed once for all visitors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from app import zoo
from app.kept import until_deleted
from app.views import map_colour
from app.views import semantic_ids as views
from app.views import semantic_ids_tree as trees
from engine.runtime import Bundle, Tokenization, Zoo, judge

POPULARITY = "popularity"
_PREFERRED = ("categories", "category", "genres", "genre")


def usage(one: Tokenization) -> list[views.Usage]:
    """One entry per level of the tokenizer's own codes."""
    return _usage(one, one.digest)


def groups(one: Tokenization) -> list[npt.NDArray[np.int64]]:
    return _groups(one, one.digest)


def tree(one: Tokenization) -> trees.Tree:
    return _tree(one, one.digest)


def colours(models: Zoo, items: pa.Table, one: Tokenization, column: str) -> trees.Colours:
    """Of the nodes of `tree`, by a column of categories or by POPULARITY."""
    return _colours(models, items, one, column, one.digest, str(models.path))


def purity(models: Zoo, items: pa.Table, one: Tokenization, column: str) -> list[views.Depth]:
    return _purity(models, items, one, column, one.digest, str(models.path))


def labels(models: Zoo, items: pa.Table, column: str) -> views.Labels:
    return _labels(items, column, stamp(models))


def columns(models: Zoo, items: pa.Table) -> list[str]:
    """Columns of categories, the one that matters most first."""
    return _columns(items, stamp(models))


def stamp(models: Zoo) -> str:
    """Another one where anything of the dataset is another."""
    return f"{models.path} {models.info.fingerprint} {Zoo.stamp(models.path)}"


class Written(NamedTuple):
    """What a model wrote for people, and what they took."""

    taken: npt.NDArray[np.int64]
    """[items]: held-out events."""
    written: npt.NDArray[np.int64]
    """[items]: places in first k."""
    k: int
    people: int


def writers(models: Zoo) -> Mapping[str, Bundle]:
    """Models that write identifiers, with both tables that generation bias is read from."""
    return {name: bundle for name, bundle in models.bundles.items() if bundle.cannot("identifiers") is None}


def written(bundle: Bundle, k: int) -> Written | None:
    """None where the bundle was exported without its evaluation. k: the longest evaluated list of at most that many is taken, the
    shortest where there is none."""
    return _written(bundle, bundle.digest, k)


@until_deleted
@st.cache_resource(max_entries=64, show_spinner=False)
def _usage(_one: Tokenization, digest: str) -> list[views.Usage]:
    return views.usage(_one.own, _one.about.shape.own)


@until_deleted
@st.cache_resource(max_entries=64, show_spinner=False)
def _groups(_one: Tokenization, digest: str) -> list[npt.NDArray[np.int64]]:
    return views.groups(_one.own)


@until_deleted
@st.cache_resource(max_entries=32, show_spinner=False)
def _tree(_one: Tokenization, digest: str) -> trees.Tree:
    return trees.build(_one.own)


@until_deleted
@st.cache_resource(max_entries=64, show_spinner=False)
def _colours(_models: Zoo, _items: pa.Table, _one: Tokenization, column: str, digest: str, path: str) -> trees.Colours:
    if column == POPULARITY:
        return trees.by_popularity(tree(_one), _models.popularity)
    return trees.by_category(tree(_one), labels(_models, _items, column))


@until_deleted
@st.cache_resource(max_entries=64, show_spinner=False)
def _purity(
    _models: Zoo, _items: pa.Table, _one: Tokenization, column: str, digest: str, path: str
) -> list[views.Depth]:
    return views.purity(_one.own, labels(_models, _items, column).of)


@until_deleted
@st.cache_resource(max_entries=32, show_spinner=False)
def _labels(_items: pa.Table, column: str, stamp: str) -> views.Labels:
    return views.labels(_items, column)


@until_deleted
@st.cache_resource(max_entries=8, show_spinner=False)
def _columns(_items: pa.Table, stamp: str) -> list[str]:
    possible, _ = map_colour.possible(_items)
    found = [name for name in possible if name != POPULARITY and map_colour.colouring(_items, name).group is not None]
    return sorted(found, key=lambda name: _PREFERRED.index(name) if name in _PREFERRED else len(_PREFERRED))


@until_deleted
@st.cache_resource(max_entries=16, show_spinner=False)
def _written(_bundle: Bundle, digest: str, k: int) -> Written | None:
    exposure, ranks = _bundle.exposure_table(), _bundle.ranks_table()
    if exposure is None or ranks is None:
        return None
    exposure = exposure.filter(pc.equal(exposure["protocol"], _bundle.protocol))
    ranks = ranks.filter(pc.equal(ranks["protocol"], _bundle.protocol))
    width = judge.beam_width(_bundle.manifest.metrics, _bundle.protocol)
    lengths = sorted(at for at in set(exposure["k"].to_pylist()) if judge.beyond_beam(at, width) is None)
    if not lengths or not len(ranks):
        return None
    chosen = max((length for length in lengths if length <= k), default=lengths[0])
    exposure = exposure.filter(pc.equal(exposure["k"], chosen))
    items = _bundle.manifest.num_items
    taken = np.bincount(ranks["target"].to_numpy(), minlength=items)
    shown = np.zeros(items, np.int64)
    np.add.at(shown, exposure["item"].to_numpy(), exposure["count"].to_numpy())
    return Written(taken, shown, int(chosen), len(ranks))


def titles(models: Zoo) -> list[str]:
    """Of every item, not escaped."""
    return [zoo.titled(models, item) for item in range(len(models))]
