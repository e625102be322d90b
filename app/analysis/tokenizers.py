"""What the Semantic IDs page asks of tokenizers and models, computed once for all visitors."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app import styles
from app.analysis import map_colouring, prefix_tree, semantic_ids
from app.analysis.cache import cached, of_digest, stamp
from engine.bundle import codes
from engine.runtime import Bundle, Tokenization, Zoo, judge

POPULARITY = "popularity"
_PREFERRED = ("categories", "category", "genres", "genre")


def _of_column(models: Zoo, items: pa.Table, one: Tokenization, column: str) -> Hashable:
    return (str(models.path), one.digest, column)


@cached(64, by=of_digest)
def usage(one: Tokenization) -> list[codes.Usage]:
    """One entry per level of the tokenizer's own codes."""
    return codes.usage(one.own, one.about.shape.own)


@cached(64, by=of_digest)
def groups(one: Tokenization) -> list[npt.NDArray[np.int64]]:
    return semantic_ids.groups(one.own)


@cached(64, by=lambda one, prefix: (one.digest, prefix))
def tree(one: Tokenization, prefix: tuple[int, ...]) -> prefix_tree.Tree:
    return prefix_tree.build(one.own, prefix)


@cached(64, by=lambda models, items, one, column, prefix: (_of_column(models, items, one, column), prefix))
def colours(
    models: Zoo, items: pa.Table, one: Tokenization, column: str, prefix: tuple[int, ...]
) -> prefix_tree.Colours:
    """Of the nodes of `tree`, by a column of categories or by POPULARITY."""
    if column == POPULARITY:
        return prefix_tree.by_popularity(tree(one, prefix), models.popularity)
    return prefix_tree.by_category(tree(one, prefix), labels(models, items, column))


@cached(64, by=_of_column)
def purity(models: Zoo, items: pa.Table, one: Tokenization, column: str) -> list[codes.Depth]:
    return codes.purity(one.own, labels(models, items, column).of)


@cached(32, by=lambda models, items, column: (stamp(models), column))
def labels(models: Zoo, items: pa.Table, column: str) -> semantic_ids.Labels:
    return semantic_ids.labels(items, column)


@cached(8, by=lambda models, items: stamp(models))
def columns(models: Zoo, items: pa.Table) -> list[str]:
    """Columns of categories, the one that matters most first."""
    possible = map_colouring.possible(items)
    names = [name for name in possible if name != POPULARITY and map_colouring.colouring(items, name).group is not None]
    return sorted(names, key=lambda name: _PREFERRED.index(name) if name in _PREFERRED else len(_PREFERRED))


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


@cached(16, by=of_digest)
def written(bundle: Bundle, k: int) -> Written | None:
    """None where the bundle was exported without its evaluation. k: the longest evaluated list of at most that many is taken, the
    shortest where there is none."""
    exposure, ranks = bundle.exposure_table(), bundle.ranks_table()
    if exposure is None or ranks is None:
        return None
    exposure = exposure.filter(pc.equal(exposure["protocol"], bundle.protocol))
    ranks = ranks.filter(pc.equal(ranks["protocol"], bundle.protocol))
    width = judge.beam_width(bundle.manifest.metrics, bundle.protocol)
    lengths = sorted(at for at in set(exposure["k"].to_pylist()) if judge.beyond_beam(at, width) is None)
    if not lengths or not len(ranks):
        return None
    chosen = max((length for length in lengths if length <= k), default=lengths[0])
    exposure = exposure.filter(pc.equal(exposure["k"], chosen))
    items = bundle.manifest.num_items
    taken = np.bincount(ranks["target"].to_numpy(), minlength=items)
    shown = np.zeros(items, np.int64)
    np.add.at(shown, exposure["item"].to_numpy(), exposure["count"].to_numpy())
    return Written(taken, shown, int(chosen), len(ranks))


def titles(models: Zoo) -> list[str]:
    """Of every item, not escaped."""
    return [styles.titled(models, item) for item in range(len(models))]
