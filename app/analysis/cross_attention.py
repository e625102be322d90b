"""What a generator looked at in the history while it wrote one item's codes, as small tables and sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from app.analysis.attention import Float, Names, names
from app.text import count, md, short
from engine.runtime import CrossAttention


def weights(
    found: CrossAttention, titles: Sequence[str], layer: int | None, by_code: bool
) -> tuple[Float, Names, list[int]]:
    """(weights [steps, positions], what these are called, the place in the history of each), the mean over heads.

    layer: from 0; None is the mean over layers. by_code: every code of an item is a position; else an item is one, with the sum
    over its codes. titles: of the catalogue, or of the items in question by number.
    """
    of = found.weights if layer is None else found.weights[:, layer : layer + 1]
    mean = of.mean(axis=(1, 2), dtype=np.float64)
    if by_code:
        return mean, names(found.positions, found.items, titles, found.levels), list(found.positions)
    places = list(dict.fromkeys(found.positions))
    member = np.array(found.positions)[:, None] == np.array(places)
    items = [found.items[found.positions.index(place)] for place in places]
    return mean @ member.astype(float), names(places, items, titles), places


def by_event(found: CrossAttention) -> dict[int, float]:
    """What a model looked at while it wrote an item: place in the history → mean over codes, layers and heads."""
    whole, _, places = weights(found, dict.fromkeys(found.items, ""), None, False)  # type: ignore[arg-type]
    return dict(zip(places, whole.mean(axis=0).tolist(), strict=True))


def steps(found: CrossAttention, level_names: Sequence[str]) -> list[str]:
    """What the steps are called, plain text: code 1: 17."""
    called = [level_names[at] if at < len(level_names) else f"code {at + 1}" for at in range(len(found.codes))]
    return [f"{name}: {'end' if code < 0 else code}" for name, code in zip(called, found.codes.tolist(), strict=True)]


def sentence(model: str, item: str, shares: Float, called: Names) -> str:
    """What drew the most attention while the item was written, in words; shares: [steps, positions]."""
    mean = shares.mean(axis=0)
    total = float(mean.sum())
    text = f"While {md(model)} wrote the codes of **{md(item, 80)}**, it looked "
    if len(mean) == 1:
        text += f"at {_at(called, 0)}, the only one there is."
    else:
        first, second = np.argsort(-mean, kind="stable")[:2]
        if mean[first] < 1.5 * total / len(mean):
            text += (
                f"almost evenly at {count(len(mean), 'item')}: the most at {_at(called, int(first))}, "
                f"{mean[first] / max(total, 1e-12):.0%} of what it gave to the history."
            )
            return text + _rest(total)
        text += (
            f"most at {_at(called, int(first))} ({mean[first] / max(total, 1e-12):.0%} of what it gave to the history), "
            f"then at {_at(called, int(second))} ({mean[second] / max(total, 1e-12):.0%})."
        )
    return text + _rest(total)


def _rest(total: float) -> str:
    if total >= 0.98:
        return ""
    return f" {1 - total:.0%} of its attention went to the codes that it had already written."


def _at(called: Names, place: int) -> str:
    return f"**{md(short(called.titles[place], 60))}**"


def wide(shares: Float, called: Names, rows: Sequence[str]) -> pd.DataFrame:
    """One row per position, one column per written code, and their mean."""
    found = pd.DataFrame({"position": called.numbers, "title": called.titles})
    values = pd.DataFrame(shares.T, columns=[f"{at + 1}. {row}" for at, row in enumerate(rows)])
    return pd.concat([found, values, pd.Series(shares.mean(axis=0), name="mean")], axis=1)
