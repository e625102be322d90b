"""The Metrics page's figures, computed once and kept: by the content of the bundles, so a new export is judged anew."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
import pyarrow as pa

from app.analysis import baselines, metrics
from app.analysis.cache import cached, of_content
from app.store.attributes import tidied
from engine.runtime import Zoo, judge
from engine.runtime import protocols as naming

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


@cached(20, by=of_content)
def protocols(models: Zoo, names: tuple[str, ...] | None = None) -> list[str]:
    """Every protocol that some of the models was evaluated under, full rankings first. names: None: all."""
    return metrics.protocols({name: models.bundles[name].ranks_table() for name in names or models.bundles})


@cached(20, by=of_content)
def people(models: Zoo, protocol: str, names: tuple[str, ...] | None = None) -> tuple[dict[str, metrics.Ranks], int]:
    """(the ranks of every row that has them (`metrics.ranked`), over the same people in the same order, the floor first; how many
    people some row lacks). names: of the models; None: all."""
    tables = {name: models.bundles[name].ranks_table() for name in names or models.bundles}
    measured = {name: models.bundles[name].manifest.metrics for name in tables}
    found = metrics.ranked(tables, measured, protocol)
    return metrics.common({row: found[row] for row in baselines.first(found, families(models, found))})


@cached(100, by=of_content, spinner="Drawing people anew, 2,000 times …")
def standing(models: Zoo, protocol: str, k: int) -> pd.DataFrame:
    """`metrics.standing` of all metrics at k."""
    return metrics.standing(people(models, protocol)[0], [judge.key(name, k) for name in metrics.metrics_of(protocol)])


def families(models: Zoo, rows: Iterable[str]) -> dict[str, str]:
    """Row → the family of its model."""
    return {row: models.bundles[metrics.model_of(row)].manifest.family for row in rows}


@cached(200, by=of_content)
def against(models: Zoo, protocol: str, baseline: str, metric: str) -> pd.DataFrame:
    return metrics.against(people(models, protocol)[0], baseline, metric)


@cached(100, by=of_content)
def beyond(models: Zoo, protocol: str, k: int) -> pd.DataFrame:
    tables = {name: bundle.exposure_table() for name, bundle in models.bundles.items()}
    shown, why = metrics.exposures(tables, people(models, protocol)[0], protocol, k, len(models))
    return metrics.beyond(shown, models.popularity, why)


@cached(200, by=of_content, spinner="Looking at each group …")
def slices(models: Zoo, protocol: str, by: str, metric: str) -> pd.DataFrame:
    """by: one of `sliceable`."""
    found = people(models, protocol)[0]
    return metrics.slices(found, _slicing(models, next(iter(found.values())), by), metric)


def sliceable(models: Zoo, protocol: str | None = None) -> dict[str, str]:
    """What people can be grouped by → in words: whether the held-out item repeats one of the history, and whether it is in
    anybody's training, where people of this protocol were asked for both kinds; its popularity and attributes; the length of the
    history. Where repeats count, they come first."""
    attributes = [name for name in models.items.column_names if name not in ("item", "item_id", "title", "popularity")]
    parts = {by: words for by, words in _PARTS.items() if _has_both(models, protocol, by)}
    both = NUMBERS | parts if naming.history_excluded(models.info.repeats) else parts | NUMBERS
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


def _slicing(models: Zoo, one: metrics.Ranks, by: str) -> metrics.Slicing:
    if by in NUMBERS:
        return metrics.by_number(models.popularity[one.target], int(by.rpartition("-")[2]), "event", "events")
    if by == COLD:
        return metrics.by_training(models.popularity[one.target])
    if by == REPEATED:
        return metrics.by_repeat(one, models.users)
    if by == "length":
        return metrics.by_number(one.length, 5, "item", "items")
    return metrics.by_attribute(_attribute(models, by), one.target)


def overlap(models: Zoo, by: str) -> bool:
    """Whether a user may be in several slices, because the held-out item may have several values."""
    return by.startswith("attribute:") and pa.types.is_list(_attribute(models, by).type)


def _attribute(models: Zoo, by: str) -> pa.ChunkedArray:
    """As pages have it: texts that are lists as lists."""
    name = by.partition(":")[2]
    return tidied(models.items.select([name]))[name]
