"""The floor of every comparison: popularity and the first-order Markov chain, which count and learn nothing else.

A row of a table is a model, or a model with its users' vectors (`metrics.ranked`); families: row → its model's family.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from app.text import listed
from engine.runtime import protocols

FLOOR = {"popularity": "popularity", "markov": "the Markov chain"}
"""Families, in the order in which tables begin with them → what to call them."""


def first(rows: Iterable[str], families: Mapping[str, str]) -> list[str]:
    """The same rows, popularity and the Markov chain before all others, which stay in their order."""
    order = list(FLOOR)
    return sorted(rows, key=lambda row: order.index(families[row]) if families[row] in order else len(order))


def learned(rows: Iterable[str], families: Mapping[str, str]) -> list[str]:
    """The rows that are not part of the floor."""
    return [row for row in rows if families[row] not in FLOOR]


def missing(families: Mapping[str, str], protocol: str = "full") -> str:
    """What to say where popularity or the Markov chain is not among the rows, and how to get it; "" where both are. Of sets of
    items popularity is enough: a chain reads an order."""
    needed = ("popularity",) if protocols.parse(protocol).sets else FLOOR
    absent = [name for name in needed if name not in families.values()]
    if not absent:
        return ""
    steps = "`seqscope train`, `seqscope evaluate` and `seqscope export`"
    return (
        f"The floor is missing: {listed([FLOOR[name] for name in absent])} {'is' if len(absent) == 1 else 'are'} not among these "
        f"models, so nothing says what counting alone reaches. {steps} with {listed([f'`{name}`' for name in absent])} "
        "take seconds; for a dataset of your own, train it on Your data."
    )


def best(means: Mapping[str, float], families: Mapping[str, str]) -> tuple[str, float] | None:
    """(the row of the floor with the highest mean, that mean); None where there is none. Means may be NaN."""
    found = {row: mean for row, mean in means.items() if families[row] in FLOOR and not math.isnan(mean)}
    return max(found.items(), key=lambda entry: entry[1]) if found else None


def below(means: Mapping[str, float], families: Mapping[str, str], called: Mapping[str, str]) -> str:
    """Which rows are below the floor, in a sentence that ends with a blank before it; "" where none is. called: row → its title,
    escaped for where it is shown."""
    floor = best(means, families)
    if floor is None:
        return ""
    lower = [called[row] for row in learned(means, families) if means[row] < floor[1]]
    if not lower:
        return ""
    verb = "is" if len(lower) == 1 else "are both" if len(lower) == 2 else "are"
    return f" {listed(lower)} {verb} below {FLOOR[families[floor[0]]]} ({floor[1]:.3f})."
