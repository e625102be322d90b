"""The floor of every comparison: models that need no training. Which these are is what they declare (engine/cards.py).

families: row of a table (app/analysis/metrics.py) → its model's family.
"""

import functools
import math
from collections.abc import Iterable, Mapping

from app.analysis import metrics
from app.text import listed
from engine.cards import Declaration, declarations, untrained
from engine.runtime import protocols as naming


@functools.cache
def _places() -> dict[str, int]:
    """Family → its place among those with which tables begin."""
    return {family: place for place, family in enumerate(untrained(declarations().models))}


_NAMED = 6
"""More models below the floor are counted and not named."""


def needs_training(family: str) -> bool:
    """A family that is not declared here counts as one that does."""
    return family not in _places()


def first(rows: Iterable[str], families: Mapping[str, str]) -> list[str]:
    """The same rows, those that need no training before all others; else in their order."""
    return sorted(rows, key=lambda row: needs_training(families[row]))


def plainest_first(rows: Iterable[str], families: Mapping[str, str]) -> list[str]:
    """As `first`, and the plainest of those that need no training before the others: how reports keep metrics."""
    places = _places()
    return sorted(rows, key=lambda row: places.get(families[row], len(places)))


def learned(rows: Iterable[str], families: Mapping[str, str]) -> list[str]:
    """The rows that are not part of the floor."""
    return [row for row in rows if needs_training(families[row])]


def missing(families: Mapping[str, str], protocol: str = "full") -> str:
    """What to say where models that need no training and that a log gets at once are not among the rows, and how to get them; ""
    where all are. Of sets of items those alone that read no order."""
    sets = naming.parse(protocol).sets
    absent = [
        name
        for name, model in _unasked().items()
        if name not in families.values() and (not sets or "reads_order" in model.card.reasons)
    ]
    if not absent:
        return ""
    titles = listed([_unasked()[name].card.title for name in absent])
    refit, named = naming.parse(protocol).refit, listed([f"`{name}`" for name in absent])
    steps = (
        f"`seqscope train … --refit`, `seqscope evaluate` and `seqscope export` with {named} take seconds."
        if refit
        else f"`seqscope baselines {' '.join(absent)}` takes seconds; for a dataset of your own, train it on Your data."
    )
    verb = "is" if len(absent) == 1 else "are"
    if any(not needs_training(family) for family in families.values()):
        return f"Of the models that need no training, {titles} {verb} missing. {steps}"
    return f"No baseline: {titles} {verb} missing, so it is unknown what models without training reach. {steps}"


@functools.cache
def _unasked() -> dict[str, Declaration]:
    models = declarations().models
    at_once = {
        name
        for name, model in models.items()
        if any(variant.page is not None and variant.page.at_once for variant in model.card.variants)
    }
    return {name: models[name] for name in untrained(models) if name in at_once}


def best(means: Mapping[str, float], families: Mapping[str, str]) -> tuple[str, float] | None:
    """(the row of the floor with the highest mean, that mean); None where there is none. Means may be NaN."""
    counted = {row: mean for row, mean in means.items() if not needs_training(families[row]) and not math.isnan(mean)}
    return max(counted.items(), key=lambda entry: entry[1]) if counted else None


def below(means: Mapping[str, float], families: Mapping[str, str], called: Mapping[str, str]) -> str:
    """Which models are below the floor, in a sentence with a blank before it; "" where none is. One with users' vectors
    is below in both of its rows, else that row alone is named. called: row → its title, escaped for where it is shown."""
    counted = best(means, families)
    if counted is None:
        return ""
    trained = learned(means, families)
    lower = [row for row in trained if means[row] < counted[1]]
    if not lower:
        return ""
    names = [called[row] for row in metrics.each_once(lower)]
    verb = "has" if len(names) == 1 else "both have" if len(names) == 2 else "have"
    subject = listed(names)
    if len(names) > _NAMED:
        above = {metrics.model_of(row) for row in trained if row not in lower}
        models = metrics.models_of(trained)
        subject = f"{len([model for model in models if model not in above])} of {len(models)} trained models"
    return f" {subject} {verb} a lower mean than {called[counted[0]]} ({counted[1]:.3f}), which needs no training."
