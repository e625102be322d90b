"""Beam search: the tree of codes that a generator considered, as a table and sentences, and what beams miss.

Sentences are Markdown, tables hold plain text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from app import looks
from app.analysis.cache import cached, of_model
from app.text import clean, count, md
from engine.runtime import Agreement, CrossAttention, Trace, Zoo

LISTED = 20  # prefixes per step in the table that were not followed
WIDTHS = (1, 5, 10, 20, 50)
CELLS = 5_000  # items to score times histories to ask about that one page may cost without being asked for
EXAMPLES = 3  # titles under a prefix, the best known ones


@dataclass(frozen=True)
class Tree:
    """A trace with what its rows are called, and where they are drawn."""

    trace: Trace
    paths: list[tuple[str, ...]]
    """[rows]: the codes of the prefix as they are written."""
    titles: list[list[str]]
    """[rows]: some titles below the prefix, plain text."""
    drawn: npt.NDArray[np.bool_]
    """[rows]: those dropped that are left out of the figure are False."""
    known: npt.NDArray[np.bool_]
    """[rows]: whole identifiers that an item of the history has."""
    heights: npt.NDArray[np.float64]
    """[rows]: from the top; 1 is a line of text. NaN where it is not drawn."""
    height: float
    """Of the whole."""

    @property
    def ends(self) -> list[int]:
        """The rows of the identifiers that the search ended with, best first."""
        rows = np.flatnonzero(self.trace.places >= 0)
        return rows[np.argsort(self.trace.places[rows])].tolist()

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """bool [rows]: whether an identifier that the search ended with begins so."""
        found = np.zeros(len(self.trace), bool)
        for row in self.ends:
            found[self.trace.path(row)] = True
        return found

    @property
    def invalid(self) -> int:
        """How many of them no item has."""
        return sum(not len(self.trace.items[row]) for row in self.ends)


def tree(
    models: Zoo,
    trace: Trace,
    below: Callable[[tuple[int, ...]], npt.ArrayLike],
    dropped: int,
    history: Sequence[int] = (),
) -> Tree:
    """below: codes → the items whose identifiers begin so; dropped: how many that were not followed are drawn per step."""
    paths: list[tuple[str, ...]] = []
    codes: list[tuple[int, ...]] = []
    titles: list[list[str]] = []
    for row, parent in enumerate(trace.parents.tolist()):
        before, known = ((), ()) if parent < 0 else (paths[parent], codes[parent])
        code, level, depth = int(trace.codes[row]), int(trace.levels[row]), int(trace.depths[row])
        own = "end" if code < 0 else str(code) if level == depth - 1 else f"{code} of level {level + 1}"
        paths.append((*before, own))
        codes.append((*known, code))
        found = np.asarray(below(codes[row]) if trace.below[row] else trace.items[row], np.int64)
        known_best = found[np.argsort(-models.popularity[found], kind="stable")[:EXAMPLES]].tolist()
        titles.append([clean(looks.titled(models, item), 80) for item in known_best])
    drawn = _drawn(trace, dropped)
    heights, height = _heights(trace, drawn)
    known = np.array([np.isin(items, history).any() for items in trace.items], bool)
    return Tree(trace, paths, titles, drawn, known, heights, height)


def _drawn(trace: Trace, dropped: int) -> npt.NDArray[np.bool_]:
    found = trace.kept.copy()
    for depth in np.unique(trace.depths):
        rest = np.flatnonzero((trace.depths == depth) & ~trace.kept)
        found[rest[np.argsort(-trace.scores[rest], kind="stable")[:dropped]]] = True
    return found


def _heights(trace: Trace, drawn: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.float64], float]:
    """A line for each prefix that nothing follows, the likely ones on top; the others stand before the middle of what follows."""
    below: dict[int, list[int]] = {}
    order = np.lexsort((-trace.scores, ~trace.kept))  # kept ones first, then by probability
    for row in order[drawn[order]].tolist():
        below.setdefault(int(trace.parents[row]), []).append(row)
    found = np.full(len(trace), np.nan)
    at = 0.0
    waiting = [(row, False) for row in reversed(below.get(-1, []))]
    while waiting:  # children before parents, without recursion
        row, done = waiting.pop()
        own = below.get(row, [])
        if not own:
            step = 1.0 if trace.kept[row] else 0.8
            found[row] = at + step / 2
            at += step
        elif done:
            alive = [child for child in own if trace.kept[child]] or own
            found[row] = float(np.mean(found[alive]))
        else:
            waiting.append((row, True))
            waiting.extend((child, False) for child in reversed(own))
    return found, at


def table(found: Tree) -> pd.DataFrame:
    """One row per prefix, step by step."""
    trace = found.trace
    fate = np.where(trace.places >= 0, "written", np.where(trace.kept, "kept", "dropped"))
    return pd.DataFrame(
        {
            "step": trace.depths,
            "codes": [" ".join(path) for path in found.paths],
            "probability of the last code": trace.probabilities.astype(float),
            "probability of all codes": np.exp(trace.scores.astype(float)),
            "fate": fate,
            "place": pd.array([place + 1 if place >= 0 else None for place in trace.places.tolist()], "Int64"),
            "items": [len(items) if len(items) else int(n) for items, n in zip(trace.items, trace.below, strict=True)],
            "such as": ["; ".join(titles) for titles in found.titles],
            "in the history": found.known,
        }
    )


def words(found: Tree, title: str, width: int, constrained: bool) -> str:
    """What happened, in two or three sentences of Markdown."""
    trace, ends = found.trace, found.ends
    kept = [int(np.count_nonzero((trace.depths == step + 1) & trace.kept)) for step in range(len(trace.considered))]
    weighed = sum(trace.considered)
    text = (
        f"{md(title)} weighed **{count(weighed, 'prefix', 'prefixes')}** in {count(len(kept), 'step')} and went on with "
        f"at most {width} at each."
    )
    if not constrained and trace.considered[:1] == (width,):  # fewer: every code there is was weighed
        text += (
            f" Of all codes that may follow a prefix only the {width} likeliest are weighed: the others cannot be among the "
            f"{width} that go on."
        )
    if constrained and trace.mass:
        text += f" What it gave up holds {1 - trace.mass[-1]:.0%} of the probability."
    if ends:
        first = ends[0]
        share = float(np.exp(trace.scores[first]))
        path = " · ".join(found.paths[first])
        names = " and ".join(f"**{md(name, 80)}**" for name in found.titles[first])
        text += f" The best identifier, {path}, has {share:.1%}: {names or 'no item has it'}."
    if not constrained:
        text += (
            f" Free to write anything, **{found.invalid} of its {count(len(ends), 'identifier')}** "
            f"{'belongs' if found.invalid == 1 else 'belong'} to no item."
        )
    return text


def known_words(found: Tree, constrained: bool, excluded: bool) -> str:
    """What the sign † means in this figure; "" where no identifier has it. excluded: items of the history are not recommended."""
    if not found.known[found.ends].any():
        return ""
    if not excluded:
        return "†: in the history already; repeats count here, so it may be recommended again."
    if constrained:
        return "†: an item of the history has this identifier, too; it is not recommended again, those that share it may be."
    return (
        "†: in the history already. Held to existing items the search leaves these out; free to write anything, it may write "
        "them again."
    )


def agreement_words(found: Sequence[Agreement], width: int, k: int) -> str:
    """How much of the exact list beams of several widths find for this history."""
    own = next((one for one in found if one.width == width), None)
    text = (
        ""
        if own is None
        else f"Against exact scores of all items, this beam finds {own.overlap * k:.0f} of the first {k}."
    )
    others = ", ".join(f"{one.width} → {one.overlap * k:.0f}" for one in found)
    return f"{text} By beam width: {others} of {k}."


# --- asked of the models


def generators(models: Zoo) -> list[str]:
    return [name for name, bundle in models.bundles.items() if bundle.cannot("identifiers") is None]


def slow(models: Zoo, model: str, histories: int) -> bool:
    """Whether exact scores after so many histories would keep a visitor waiting: a generator must write every item's codes."""
    return models.bundles[model].manifest.generator is not None and len(models) * histories > CELLS


@cached(100, by=of_model)
def trace(models: Zoo, model: str, history: tuple[int, ...], width: int, constrained: bool) -> Trace:
    """Raises SeqscopeError where the model cannot answer."""
    return models.bundles[model].trace(history, width, constrained=constrained, dropped=LISTED)


@cached(200, by=of_model)
def agreement(models: Zoo, model: str, history: tuple[int, ...], widths: tuple[int, ...], k: int) -> list[Agreement]:
    return models.bundles[model].agreement([history], widths, k)


@cached(200, by=of_model)
def cross_attention(models: Zoo, model: str, history: tuple[int, ...], item: int) -> CrossAttention:
    return models.bundles[model].cross_attention(history, item)
