"""What a generator does while it writes: the beam search that came to its identifiers, and its cross-attention to the history."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from app import styles
from app.analysis.attention import Float, Names, almost_even, names, quoted
from app.analysis.cache import cached, of_model
from app.text import clean, md, percent
from engine.runtime import Agreement, CrossAttention, Trace, Zoo
from engine.writing import count, in_percent

LISTED = 20  # prefixes per step in the table that were not followed
WIDTHS = (1, 5, 10, 20, 50)
CELLS = 5_000  # items to score times histories to ask about that one page may cost without being asked for
EXAMPLES = 3  # titles under a prefix, the best known ones


@dataclass(frozen=True)
class BeamTree:
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
        mask = np.zeros(len(self.trace), bool)
        for row in self.ends:
            mask[self.trace.path(row)] = True
        return mask

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
) -> BeamTree:
    """below: codes → the items whose identifiers begin so; dropped: how many that were not followed are drawn per step."""
    paths: list[tuple[str, ...]] = []
    codes: list[tuple[int, ...]] = []
    titles: list[list[str]] = []
    for row, parent in enumerate(trace.parents.tolist()):
        before, known = ((), ()) if parent < 0 else (paths[parent], codes[parent])
        code, level, depth = int(trace.codes[row]), int(trace.levels[row]), int(trace.depths[row])
        spelled = "end" if code < 0 else str(code) if level == depth - 1 else f"{code} of level {level + 1}"
        paths.append((*before, spelled))
        codes.append((*known, code))
        below_items = np.asarray(below(codes[row]) if trace.below[row] else trace.items[row], np.int64)
        known_best = below_items[np.argsort(-models.popularity[below_items], kind="stable")[:EXAMPLES]].tolist()
        titles.append([clean(styles.titled(models, item), 80) for item in known_best])
    drawn = _drawn(trace, dropped)
    heights, height = _heights(trace, drawn)
    known = np.array([np.isin(items, history).any() for items in trace.items], bool)
    return BeamTree(trace, paths, titles, drawn, known, heights, height)


def _drawn(trace: Trace, dropped: int) -> npt.NDArray[np.bool_]:
    mask = trace.kept.copy()
    for depth in np.unique(trace.depths):
        rest = np.flatnonzero((trace.depths == depth) & ~trace.kept)
        mask[rest[np.argsort(-trace.scores[rest], kind="stable")[:dropped]]] = True
    return mask


def _heights(trace: Trace, drawn: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.float64], float]:
    """A line for each prefix that nothing follows, the likely ones on top; the others stand before the middle of what follows."""
    below: dict[int, list[int]] = {}
    order = np.lexsort((-trace.scores, ~trace.kept))  # kept ones first, then by probability
    for row in order[drawn[order]].tolist():
        below.setdefault(int(trace.parents[row]), []).append(row)
    heights = np.full(len(trace), np.nan)
    at = 0.0
    waiting = [(row, False) for row in reversed(below.get(-1, []))]
    while waiting:  # children before parents, without recursion
        row, done = waiting.pop()
        children = below.get(row, [])
        if not children:
            step = 1.0 if trace.kept[row] else 0.8
            heights[row] = at + step / 2
            at += step
        elif done:
            alive = [child for child in children if trace.kept[child]] or children
            heights[row] = float(np.mean(heights[alive]))
        else:
            waiting.append((row, True))
            waiting.extend((child, False) for child in reversed(children))
    return heights, at


def table(tree: BeamTree) -> pd.DataFrame:
    """One row per prefix, step by step."""
    trace = tree.trace
    fate = np.where(trace.places >= 0, "generated", np.where(trace.kept, "kept", "dropped"))
    return pd.DataFrame(
        {
            "step": trace.depths,
            "codes": [" · ".join(path) for path in tree.paths],
            "probability of the last code": trace.probabilities.astype(float),
            "probability of all codes": np.exp(trace.scores.astype(float)),
            "fate": fate,
            "place": pd.array([place + 1 if place >= 0 else None for place in trace.places.tolist()], "Int64"),
            "items": [len(items) if len(items) else int(n) for items, n in zip(trace.items, trace.below, strict=True)],
            "such as": ["; ".join(titles) for titles in tree.titles],
            "in the history": tree.known,
        }
    )


def words(tree: BeamTree, title: str, width: int, constrained: bool) -> str:
    """What happened, in two or three sentences of Markdown."""
    trace, ends = tree.trace, tree.ends
    kept = [int(np.count_nonzero((trace.depths == step + 1) & trace.kept)) for step in range(len(trace.considered))]
    weighed = sum(trace.considered)
    text = (
        f"{md(title)} scored **{count(weighed, 'prefix', 'prefixes')}** in {count(len(kept), 'step')} and kept at most {width} "
        "at each."
    )
    if not constrained and trace.considered[:1] == (width,):  # fewer: every code there is was weighed
        text += (
            f" Of the codes after a prefix, only the {width} likeliest are scored: no other can be among the "
            f"{width} that are kept."
        )
    if constrained and trace.mass:
        text += f" Pruned prefixes hold {in_percent(1 - trace.mass[-1])} of the probability mass."
    if ends:
        first = ends[0]
        share = float(np.exp(trace.scores[first]))
        path = " · ".join(tree.paths[first])
        names = " and ".join(f"**{md(name, 80)}**" for name in tree.titles[first])
        text += f" The likeliest semantic ID, {path}, has {percent(share)}: {names or 'no item has it'}."
    if not constrained:
        text += (
            f" Unconstrained, **{tree.invalid} of its {count(len(ends), 'semantic ID')}** "
            f"{'belongs' if tree.invalid == 1 else 'belong'} to no item."
        )
    return text


def known_words(tree: BeamTree, constrained: bool, excluded: bool) -> str:
    """What the sign † means in this figure; "" where no identifier has it. excluded: items of the history are not recommended."""
    if not tree.known[tree.ends].any():
        return ""
    if not excluded:
        return "†: in the history already; repeats count here, so it may be recommended again."
    if constrained:
        return "†: the ID of an item of the history, which is not recommended again; other items with this ID may be."
    return "†: in the history already. Constrained search leaves these out; unconstrained, they may be generated again."


def agreement_words(agreements: Sequence[Agreement], width: int, k: int) -> str:
    """How much of the exact list beams of several widths find for this history."""
    exact = next((beam for beam in agreements if beam.width == width), None)
    text = (
        ""
        if exact is None
        else f"Against exact scores of all items, this beam finds {exact.overlap * k:.0f} of the first {k}."
    )
    others = ", ".join(f"{beam.width} → {beam.overlap * k:.0f}" for beam in agreements)
    return f"{text} By beam width: {others} of {k}."


# --- asked of the models


def generators(models: Zoo) -> list[str]:
    return [name for name, bundle in models.bundles.items() if bundle.cannot("identifiers") is None]


def slow(models: Zoo, model: str, histories: int) -> bool:
    """Whether exact scores after so many histories would keep a visitor waiting: a generator must write every item's codes."""
    return models.bundles[model].manifest.generator is not None and len(models) * histories > CELLS


@cached(100, by=of_model)
def trace(
    models: Zoo, model: str, history: tuple[int, ...], width: int, constrained: bool, temperature: float = 1.0
) -> Trace:
    """Raises SeqscopeError where the model cannot answer."""
    bundle = models.bundles[model]
    return bundle.trace(history, width, constrained=constrained, dropped=LISTED, temperature=temperature)


@cached(200, by=of_model)
def agreement(
    models: Zoo, model: str, history: tuple[int, ...], widths: tuple[int, ...], k: int, temperature: float
) -> list[Agreement]:
    return models.bundles[model].agreement([history], widths, k, temperature=temperature)


@cached(200, by=of_model)
def cross_attention(models: Zoo, model: str, history: tuple[int, ...], item: int) -> CrossAttention:
    return models.bundles[model].cross_attention(history, item)


# --- cross-attention


def weights(
    attention: CrossAttention, titles: Sequence[str], layer: int | None, by_code: bool
) -> tuple[Float, Names, list[int]]:
    """(weights [steps, positions], what these are called, the place in the history of each), the mean over heads.

    layer: from 0; None is the mean over layers. by_code: every code of an item is a position; else an item is one, with the sum
    over its codes. titles: of the catalogue, or of the items in question by number.
    """
    of = attention.weights if layer is None else attention.weights[:, layer : layer + 1]
    mean = of.mean(axis=(1, 2), dtype=np.float64)
    if by_code:
        return mean, names(attention.positions, attention.items, titles, attention.levels), list(attention.positions)
    places = list(dict.fromkeys(attention.positions))
    member = np.array(attention.positions)[:, None] == np.array(places)
    items = [attention.items[attention.positions.index(place)] for place in places]
    return mean @ member.astype(float), names(places, items, titles), places


def by_event(attention: CrossAttention, layer: int | None = None) -> dict[int, float]:
    """What a model looked at while it wrote an item: place in the history → mean over codes and heads. layer: as of `weights`."""
    whole, _, places = weights(attention, dict.fromkeys(attention.items, ""), layer, False)  # type: ignore[arg-type]
    return dict(zip(places, whole.mean(axis=0).tolist(), strict=True))


def steps(attention: CrossAttention, level_names: Sequence[str]) -> list[str]:
    """What the steps are called, plain text: code 1: 17."""
    called = [level_names[at] if at < len(level_names) else f"code {at + 1}" for at in range(len(attention.codes))]
    return [
        f"{name}: {'end' if code < 0 else code}" for name, code in zip(called, attention.codes.tolist(), strict=True)
    ]


def sentence(model: str, item: str, shares: Float, called: Names, *, plain: bool = False) -> str:
    """What drew the most attention while the item was written, in words: Markdown, or plain text. shares: [steps, positions]"""
    mean = shares.mean(axis=0)
    total = float(mean.sum())
    names = [quoted(title, plain=plain) for title in called.titles]
    text = f"While {clean(model) if plain else md(model)} generated the codes of {quoted(item, 80, plain=plain)}, it looked "
    if len(mean) == 1:
        text += f"at {names[0]}, the only one there is."
    else:
        first, second = np.argsort(-mean, kind="stable")[:2]
        most, next_most = (in_percent(mean[at] / max(total, 1e-12)) for at in (first, second))
        text += (
            f"almost evenly at {count(len(mean), 'item')}: the most at {names[first]}, {most} of what it gave to the history."
            if almost_even(mean)
            else f"most at {names[first]} ({most} of what it gave to the history), then at {names[second]} ({next_most})."
        )
    if total < 0.98:
        text += f" {in_percent(1 - total)} of its attention went to the codes that it had already generated."
    return text


def wide(shares: Float, called: Names, rows: Sequence[str]) -> pd.DataFrame:
    """One row per position, one column per written code, and their mean."""
    labels = pd.DataFrame({"position": called.numbers, "title": called.titles})
    values = pd.DataFrame(shares.T, columns=[f"{at + 1}. {row}" for at, row in enumerate(rows)])
    return pd.concat([labels, values, pd.Series(shares.mean(axis=0), name="mean")], axis=1)
