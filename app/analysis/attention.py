"""What a model looked at: of one history, and the mean over many people's; as small tables and sentences.

Sentences are Markdown, with titles escaped; tables hold plain text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from app.analysis.cache import cached, of_model, of_model_and_tables
from app.text import clean, label, md, ordinal, short
from engine.runtime import (
    AttentionMap,
    Bundle,
    LeaveOneOut,
    Zoo,
    entropy,
    judge,
    last_row,
    mean_distance,
    mean_over_heads,
    rank_move,
    rollout,
    spearman,
)
from engine.writing import count, in_percent

Float = npt.NDArray[np.floating]
View = Literal["mean", "head", "rollout"]

MAX_POSITIONS = 200
NEXT = "the next item"
_STRONGEST = 15
SIZE = 15  # positions of the mean, as in SASRec's paper
PEOPLE = 200
_ALIKE = 0.05  # gates that differ by less are called equally open
_NUMBERS = 20_000_000  # weights to compute for one profile, at most


@dataclass(frozen=True)
class Names:
    """What the positions of a map are called."""

    numbers: tuple[str, ...]
    """Place in the history, 1 is the oldest; "next" for the position of the next item."""
    titles: tuple[str, ...]
    """Whole titles, as plain text."""

    def __len__(self) -> int:
        return len(self.numbers)

    def hovers(self) -> list[str]:
        return [
            label(title, 120) if number == "next" else f"{number} · {label(title, 120)}"
            for number, title in zip(self.numbers, self.titles, strict=True)
        ]

    def latest(self, many: int) -> Names:
        return Names(self.numbers[-many:], self.titles[-many:])


def names(
    positions: Sequence[int | None],
    items: Sequence[int | None],
    titles: Sequence[str],
    levels: Sequence[int | None] = (),
) -> Names:
    """positions, items: of an AttentionMap; titles: of the catalogue, or of the items in question by number; levels: which code
    of its item a position is, where it is one: the first is 3a, and what stands before it is 3."""
    numbers = tuple("next" if place is None else str(place + 1) for place in positions)
    if levels:
        letters = ("" if level is None or level < 0 else _letter(level) for level in levels)
        numbers = tuple(number + letter for number, letter in zip(numbers, letters, strict=True))
    return Names(numbers, tuple(NEXT if item is None else clean(titles[item], 200) for item in items))


def sees_whole_items(seen: AttentionMap) -> bool:
    """Whether the codes of one item see each other in a model where no code sees later items."""
    above = np.triu_indices(len(seen), 1)
    return bool(seen.levels) and bool(np.isfinite(seen.weights[:, :, *above]).any())


def _letter(level: int) -> str:
    return "abcdefghijklmnopqrstuvwxyz"[level] if level < 26 else f".{level + 1}"


# --- codes, grouped by their items


def by_item(attention: AttentionMap) -> AttentionMap:
    """As if every item were one position: what its codes gave on average, to all codes of another item together.

    Means over heads and layers may be taken before or after; what is of the order of layers (rollout) must be taken before.
    """
    if not attention.levels:
        return attention
    group, firsts = _groups(attention)
    return replace(
        attention,
        weights=grouped(attention.weights, group).astype(np.float32),
        positions=tuple(attention.positions[at] for at in firsts),
        items=tuple(attention.items[at] for at in firsts),
        levels=(),
    )


def by_item_of(attention: AttentionMap, weights: Float) -> Float:
    """Weights between the codes of `attention`, [p, p], as weights between its items."""
    return grouped(weights, _groups(attention)[0])


def grouped(weights: Float, group: npt.NDArray[np.intp]) -> Float:
    """[…, p, p] → […, g, g]: sums over the columns of a group, means over its rows, NaN where all cells are. group: [p]"""
    size = int(group.max()) + 1
    member = (group[:, None] == np.arange(size)).astype(float)  # [p, g]
    known = np.isfinite(weights)
    sums = np.nan_to_num(weights, nan=0.0) @ member
    some = (known.astype(float) @ member) > 0
    rows = member.T / member.sum(0)[:, None]
    return np.where(member.T @ some.astype(float) > 0, rows @ sums, np.nan)


def _groups(attention: AttentionMap) -> tuple[npt.NDArray[np.intp], list[int]]:
    """(the group of each position, the first position of each group): one group per event."""
    firsts = [at for at, place in enumerate(attention.positions) if at == 0 or place != attention.positions[at - 1]]
    group = np.zeros(len(attention), np.intp)
    group[firsts[1:]] = 1
    return group.cumsum(), firsts


# --- the last row, or the mean over rows


def strongest(weights: Float, called: Names, many: int = _STRONGEST) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(what to draw: the strongest positions in the order of time, the rest together above them; all of them).

    Columns: position, title, weight.
    """
    whole = pd.DataFrame({"position": called.numbers, "title": called.titles, "weight": weights.astype(float)})
    if len(whole) <= many + 1:
        return whole, whole
    kept = np.sort(np.argsort(-weights, kind="stable")[:many])
    others = whole.drop(index=kept)
    rest = {"position": "", "title": f"the other {count(len(others), 'position')}", "weight": others["weight"].sum()}
    return pd.concat([pd.DataFrame([rest]), whole.loc[kept]], ignore_index=True), whole


def quoted(title: str, limit: int = 60, *, plain: bool = False) -> str:
    """A title within a sentence: bold in Markdown, or plain text in quotes."""
    return f"“{short(clean(title), limit)}”" if plain else f"**{md(short(title, limit))}**"


def gate_words(model: str, openings: Float, called: Names, *, plain: bool = False) -> str:
    """Whose gate is open furthest and least: Markdown, or plain text. openings: 0 to 1, of each of `called`."""
    most, least = int(np.argmax(openings)), int(np.argmin(openings))
    model = clean(model) if plain else md(model)
    words = [f"{quoted(called.titles[at], plain=plain)} ({openings[at]:.2f})" for at in (most, least)]
    if most == least:
        return f"{model} has one gate here, that of {words[0]}."
    if openings[most] - openings[least] < _ALIKE:
        return f"The gates of {model} are about equally open, {openings[least]:.3f} to {openings[most]:.3f}."
    return f"The gates of {model} are furthest open for {words[0]} and least for {words[1]}."


def filter_words(model: str, weights: Float, called: Names) -> str:
    """Which filter weighs which item most, and which item all of them weigh most together, as Markdown. weights: [filters, p]."""
    number, at = np.unravel_index(int(np.abs(weights).argmax()), weights.shape)
    weight = judge.signed(weights[number, at], "+.2f")
    words = [f"{md(model)} weighs {quoted(called.titles[at])} most, by {weight} in filter {number + 1}."]
    together = np.abs(weights).sum(0)
    if len(weights) > 1 and (most := int(together.argmax())) != at:
        words.append(f"All filters together weigh {quoted(called.titles[most])} most.")
    return " ".join(words)


def best_rows(matches: Sequence[Float]) -> Float:
    """Of what filters over 1, 2, … items in a row keep, each its best match, the share from the row that ends with each of the
    latest items: float64 [heights, items], the latest item last; NaN where no row ends, or no filter matches at all.

    matches: of each height [rows, filters], as `Bundle.matches` gives them (max pooling: Tang & Wang, WSDM 2018, 3.2.1)."""
    shares = np.full((len(matches), len(matches[0])), np.nan)
    for at, rows in enumerate(matches):
        best = rows.max(0)
        if best.sum() > 0:
            shares[at, -len(rows) :] = np.bincount(rows.argmax(0), best, len(rows)) / best.sum()
    return shares


def row_words(model: str, shares: Float, called: Names) -> str:
    """Which items in a row the filters match most, as Markdown; "" where each has one row to choose from. shares: `best_rows`."""
    choice = np.where(np.isfinite(shares).sum(1, keepdims=True) > 1, shares, -1.0)
    height, at = np.unravel_index(int(np.nan_to_num(choice, nan=-1.0).argmax()), shares.shape)
    if choice[height, at] < 0:
        return ""
    over = count(int(height) + 1, "item") + (" in a row" if height else "")
    return (
        f"Of what the filters of {md(model)} over {over} keep, {in_percent(shares[height, at])} comes from "
        f"{'the row that ends with ' if height else ''}{quoted(called.titles[at])}."
    )


def almost_even(weights: Float) -> bool:
    """Whether the largest is less than half as much again as the smallest."""
    return bool(weights.max() < 1.5 * weights.min())


def sentence(model: str, weights: Float, called: Names, pooled: bool, *, plain: bool = False) -> str:
    """What drew the most attention, in words: Markdown, or plain text."""
    total, model = float(weights.sum()), clean(model) if plain else md(model)
    names = [
        f"the position of {NEXT} itself" if number == "next" else quoted(title, plain=plain)
        for number, title in zip(called.numbers, called.titles, strict=True)
    ]
    if len(weights) == 1:
        return f"{model} had one position to look at, {names[0]}: all of its weight is there."
    first, second = np.argsort(-weights, kind="stable")[:2]
    even = total / len(weights)
    how = "On average over all positions, " if pooled else ""
    who = f"{how}{model}"
    if almost_even(weights):
        return (
            f"{who} spread its attention almost evenly over {count(len(weights), 'position')}: the most went to "
            f"{names[first]}, {weights[first]:.1%} where an even share is {even:.1%}."
        )
    text = (
        f"{who} looked most at {names[first]} ({in_percent(weights[first])} of its weight), "
        f"then at {names[second]} ({in_percent(weights[second])})."
    )
    latest = [place for place, number in enumerate(called.numbers) if number != "next"][-3:]
    if len(called) > 6 and len(latest) == 3:
        text += f" The latest three items hold {in_percent(weights[latest].sum())} together."
    return text


# --- the map


def matrix(attention: AttentionMap, view: View, layer: int, head: int) -> Float:
    """float [p, p], NaN where looking is impossible."""
    if view == "rollout":
        weights = rollout(attention).copy()
        if attention.causal:  # a layer of its own leaves the same cells blank
            weights[np.isnan(attention.weights[0, 0]) & ~np.eye(len(attention), dtype=bool)] = np.nan
        return weights
    return attention.weights[layer, head] if view == "head" else mean_over_heads(attention, layer)


def sums(weights: Float, shown: int) -> str:
    """What the rows sum to, measured, and how much of it lies outside the latest `shown` columns."""
    rows = np.nansum(weights, axis=1)
    low, high = float(rows.min()), float(rows.max())
    if high - low < 0.005:
        text = f"Every row sums to {high:.0%}."
    else:
        text = f"Rows sum to {low:.0%} … {high:.0%}: the model drops what a position gives to itself."
    if shown < len(weights):
        outside = float(np.nansum(weights[-shown:, :-shown], axis=1).mean())
        text += (
            f" Shown are the latest {shown} of {count(len(weights), 'position')}; "
            f"{in_percent(outside)} of the weight lies on earlier ones, outside the picture."
        )
    return text


def scaled(weights: Float, scale: str) -> tuple[Float, float]:
    """(what to draw, the upper end of the colours). scale: "fit", "unit" (0 to 1) or "rows" (each row by its largest)."""
    if scale == "rows":
        filled = np.nan_to_num(weights, nan=0.0)
        return weights / np.maximum(filled.max(axis=1, keepdims=True), 1e-12), 1.0
    return weights, 1.0 if scale == "unit" else max(float(np.nanmax(np.nan_to_num(weights))), 1e-6)


def wide(weights: Float, called: Names) -> pd.DataFrame:
    """One row per looking position, one column per position looked at; empty where looking is impossible."""
    labels = pd.DataFrame({"position": called.numbers, "title": called.titles})
    values = pd.DataFrame(weights.astype(float), columns=[f"→ {number}" for number in called.numbers])
    return pd.concat([labels, values], axis=1)


def by_head(attention: AttentionMap) -> pd.DataFrame:
    """How widely and how far each head looks. spread: 0 is one position, 1 is all alike; distance in positions."""
    bits, far = entropy(attention), mean_distance(attention)
    visible = np.isfinite(attention.weights[0, 0]).sum(axis=-1)
    most = np.log2(np.maximum(visible, 1))
    choice = most > 0  # a position that can look at one place alone says nothing
    rows = []
    for layer in range(attention.layers):
        for head in range(attention.heads):
            bits_of_head = bits[layer, head]
            rows.append(
                {
                    "layer": layer + 1,
                    "head": head + 1,
                    "entropy": float(bits_of_head[choice].mean()) if choice.any() else 0.0,
                    "spread": float((bits_of_head[choice] / most[choice]).mean()) if choice.any() else float("nan"),
                    "distance": float(far[layer, head][choice].mean()) if choice.any() else 0.0,
                    "last": float(bits_of_head[-1]),
                }
            )
    return pd.DataFrame(rows)


# --- beside attention: what an item really does


def beside(
    attention: AttentionMap | None,
    effects: LeaveOneOut,
    titles: Sequence[str],
    history: Sequence[int],
    looked_at: Mapping[int, float] | None = None,
) -> pd.DataFrame:
    """One row per event that the model reads. position, title, weight (NaN where there is none), rank, rank_without,
    log_probability (NaN where the model gives none) and score: each with the event minus without it.

    attention: of items. looked_at: place in the history → weight, in place of the attention's last row.
    """
    weight = dict(looked_at or {})
    if attention is not None and looked_at is None:
        looked = last_row(attention)
        weight = {place: float(looked[at]) for at, place in enumerate(attention.positions) if place is not None}
    places = list(effects.read)
    return pd.DataFrame(
        {
            "position": [str(place + 1) for place in places],
            "title": [clean(titles[history[place]], 200) for place in places],
            "weight": [weight.get(place, float("nan")) for place in places],
            "rank": effects.rank,
            "rank_without": effects.rank_without[places].astype(float),
            "log_probability": effects.log_probability_effect[places].astype(float),
            "score": effects.effect[places].astype(float),
        }
    )


def moves(table: pd.DataFrame) -> Float:
    """How far the item would fall without each event, as `rank_move`. table: of `beside`."""
    return rank_move(float(table["rank"].iloc[0]), table["rank_without"]) if len(table) else np.empty(0)


def agreement(table: pd.DataFrame) -> tuple[float, int]:
    """(Spearman's correlation of weight and of how far the rank moves, up or down, since no weight is negative; over how many
    events); NaN where it cannot be computed."""
    both = table.dropna(subset=["weight", "rank_without"])
    if len(both) < 3:
        return float("nan"), len(both)
    return spearman(both["weight"].to_numpy(), np.abs(moves(both))), len(both)


def agreement_words(table: pd.DataFrame) -> str:
    rho, n = agreement(table)
    if n < 3:
        return "Fewer than three events have both a weight and a rank without them, too few to compare their order."
    if np.isnan(rho):
        return "One of the two is the same for every event, so their order cannot be compared."
    strength = "strongly" if abs(rho) >= 0.7 else "moderately" if abs(rho) >= 0.4 else "hardly"
    way = "agree" if rho >= 0 else "disagree"
    words = f"{strength} {way}" if strength != "hardly" else "are hardly related"
    few = " So few events leave much to chance." if n < 10 else ""
    return (
        f"Attention and the sizes of these effects {words}: Spearman’s ρ **{judge.signed(rho, '+.2f')}**, n = {n}.{few}"
    )


def effect_words(table: pd.DataFrame, item: str) -> str:
    """What the events do to one item, in a sentence. table: of `beside`."""
    valid = table.dropna(subset=["rank_without"])
    if valid.empty:
        return "The model has no answer without its only event."
    name, now = quoted(item), ordinal(float(valid["rank"].iloc[0]))
    changes = moves(valid)
    if not changes.any():
        if not valid["score"].any():
            return f"Removing any one event changes nothing for {name}, neither its rank nor its score."
        text = f"{name} stays {now} without any one event."
        beside = "log_probability" if valid["log_probability"].notna().all() else "score"
        most = valid.loc[valid[beside].idxmax()]
        if most[beside] > 0:
            fall = "It becomes least probable" if beside == "log_probability" else "Its score falls most"
            text += f" {fall} without {quoted(most['title'])}."
        return text

    def title_and_change(at: int) -> tuple[str, str]:
        row = valid.iloc[at]
        return quoted(row["title"]), f"{now} → {ordinal(float(row['rank_without']))} without it"

    parts = []
    if changes.max() > 0:
        title, change = title_and_change(int(changes.argmax()))
        parts.append(f"{title} raises {name} the most: {change}")
    if changes.min() < 0:
        title, change = title_and_change(int(changes.argmin()))
        parts.append(f"{title} lowers it the most: {change}" if parts else f"{title} lowers {name}: {change}")
    return f"{'; '.join(parts)}."


# --- over many people


@dataclass(frozen=True)
class Profile:
    """The mean attention of many people's histories, all with at least `size` positions. Small arrays: it is kept."""

    people: int
    asked: int
    """How many histories were looked at; those that are too short were left out."""
    back: tuple[int, ...]
    """[size]: items back from the one to predict, oldest first: 1 is the latest item, 0 the position of the next item."""
    last: npt.NDArray[np.float64]
    """[layers, heads, size]: what the prediction looked at."""
    rows: npt.NDArray[np.float64]
    """[layers, size, size]: mean over heads of the latest rows and columns; NaN where looking is impossible."""
    even: npt.NDArray[np.float64]
    """[size]: what an even spread would give."""


def distance_words(profile: Profile, model: str) -> str:
    """What the mean over many people says, in a sentence."""
    last = profile.last[-1].mean(axis=0)
    preceding = [at for at, back in enumerate(profile.back) if back > 0]
    near = [at for at in preceding if profile.back[at] <= 3]
    ratio = last[near].mean() / max(profile.even[near].mean(), 1e-12)
    who = f"Over {count(profile.people, 'user')}, the last layer of {md(model)}"
    latest = {1: "the latest item", 2: "the latest two items"}.get(len(near), "the latest three items")
    share = in_percent(last[near].sum())
    if 0.8 <= ratio <= 1.25:
        return f"{who} gives {latest} about as much as an even spread would ({share}{' together' * (len(near) > 1)})."
    more = "more" if ratio > 1 else "less"
    return f"{who} gives {latest} {share} of its weight, {more} than an even spread would ({profile.even[near].sum():.0%})."


def distances(profile: Profile) -> pd.DataFrame:
    """layer, items back, weight (mean over heads), even."""
    layers = [
        {"layer": layer, "back": profile.back, "weight": weights.mean(axis=0), "even": profile.even}
        for layer, weights in enumerate(profile.last, 1)
    ]
    return pd.concat(map(pd.DataFrame, layers), ignore_index=True)


# --- asked of the model


@cached(100, by=of_model)
def attention(models: Zoo, model: str, history: tuple[int, ...]) -> AttentionMap:
    """What the model looked at. Raises SeqscopeError where it cannot say."""
    return models.bundles[model].attention(history)


@cached(100, by=of_model)
def gates(models: Zoo, model: str, history: tuple[int, ...]) -> dict[int, float]:
    """Place in the history → how far its gate is open, 0 to 1. Raises SeqscopeError where there are none."""
    return models.bundles[model].gates(history)


@cached(100, by=of_model)
def matches(models: Zoo, model: str, history: tuple[int, ...]) -> list[Float]:
    """As `Bundle.matches`. Raises SeqscopeError where no filters slide."""
    return [*models.bundles[model].matches(history)]


@cached(50, by=of_model_and_tables, spinner="Reading the histories of a sample of users …")
def profile(models: Zoo, model: str) -> Profile | None:
    """The mean over a sample of the zoo's people; None where nobody has a history that is long enough."""
    return measure(models, models.bundles[model])


def measure(models: Zoo, bundle: Bundle, people: int = PEOPLE, seed: int = 0) -> Profile | None:
    """The mean over at most `people` of the zoo's people, drawn at random with a fixed seed."""
    shape = bundle.manifest.attention
    if shape is None or not models.users.num_rows:
        return None
    window = shape.window + shape.next_token
    codes = bundle.identifiers.levels if shape.unit == "codes" else 1
    many = max(10, min(people, _NUMBERS // (shape.layers * shape.heads * (codes * window) ** 2)))
    order = np.random.default_rng(seed).permutation(models.users.num_rows)[:many]
    histories = [models.users["history"][int(row)].as_py()[-bundle.manifest.encoder.max_length :] for row in order]
    lengths = [min(len(history), shape.window) + shape.next_token for history in histories]
    size = _size(lengths, window)
    if size < 2:
        return None
    last = np.zeros((shape.layers, shape.heads, size))
    rows = np.zeros((shape.layers, size, size))
    even = np.zeros(size)
    read = 0
    for history, length in zip(histories, lengths, strict=True):
        if length < size:
            continue
        seen = by_item(bundle.attention(history))
        for layer in range(shape.layers):
            for head in range(shape.heads):
                last[layer, head] += last_row(seen, layer, head)[-size:]
        rows += seen.weights.mean(axis=1)[:, -size:, -size:]
        even += 1 / length
        read += 1
    back = tuple(range(size - shape.next_token, -shape.next_token, -1))
    return Profile(read, len(histories), back, last / read, rows / read, even / read)


def _size(lengths: list[int], window: int) -> int:
    """How many positions to look at: as many as the paper did, fewer where most people have fewer."""
    return int(min(SIZE, window, np.median(lengths))) if lengths else 0
