"""How good the models are, as small tables and sentences, from the ranks in their bundles: pure functions on arrays. What counts
without training is in floor.py, the verdict on it in engine/evaluation/verdict.py.

A row of a table is a model, or a model that was told more than the history (`ranked`); families: row → its model's family.
"""

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from app.text import listed, md
from engine.machine import cores
from engine.runtime import DatasetInfo, judge, repeats
from engine.runtime import protocols as naming
from engine.writing import count, in_percent

LEVEL = 0.05
USERS, TIMES = "+user", "+times"
"""Behind a model's name: the row in which its users are known by vectors of their own, and that in which it was told when the
items of the histories were."""
_TITLES = {"": "", USERS: ", user vectors", TIMES: ", told the times"}
ONE_SEED = (
    "Metrics are of one seed per model: intervals are over users and do not cover the variance between trainings."
)
FEW = 30  # people in a slice below which it says little
TRIVIAL = 0.2  # what a random order reaches where a metric says little
SEED = 0
SAMPLES = 2_000
ENOUGH = int(2 / LEVEL)
"""Samples for each of many comparisons: p is 2 / samples at least, which Holm would raise above LEVEL with fewer."""

INTERVALS = f"95%, bootstrap over users, {SAMPLES:,} samples, seed {SEED}."
SIGNIFICANCE = (
    f"Paired bootstrap over the same users, p-values adjusted by Holm. Not significantly different: adjusted p > {LEVEL}, or an "
    "interval of the difference that contains 0. The best is chosen on the same users, which Holm does not correct."
)
SELECTION = "By validation NDCG; the test set is used once."


def metrics_of(protocol: str) -> tuple[str, ...]:
    """The metrics over people that a protocol has, the one that models are compared by first."""
    return tuple(sorted(judge.names(protocol), key=lambda name: name != judge.HEADLINE))


def cutoffs(items: int) -> list[int]:
    """The ks that say something of so many items: where there are no more than k, each is a hit."""
    return [k for k in judge.CUTOFFS if k < items] or [min(judge.CUTOFFS)]


def usual_cutoff(items: int, protocol: str) -> int:
    """The one that tables open with: 10, of sets 20, or the largest that a small catalogue has."""
    usual, possible = 20 if naming.parse(protocol).sets else 10, cutoffs(items)
    return usual if usual in possible else possible[-1]


def protocols(tables: Mapping[str, pa.Table | None]) -> list[str]:
    """Every protocol that some model was evaluated under, full rankings first. What a model reaches that is told more is no
    protocol of its own, but a row (`ranked`)."""
    evaluated = {
        name for table in tables.values() if table is not None for name in table["protocol"].unique().to_pylist()
    }
    return naming.in_order(map(variant, evaluated))


def variant(protocol: str, more: str = "") -> str:
    """The protocol with what a model was told beside the history: USERS, TIMES or "", in whose tables all stand."""
    return str(dataclasses.replace(naming.parse(protocol), trained_users=more == USERS, with_times=more == TIMES))


def more_of(row: str) -> str:
    """What the model was told beside the history: USERS, TIMES or "" for nothing."""
    return next((more for more in (USERS, TIMES) if row.endswith(more)), "")


def model_of(row: str) -> str:
    """The model that a row is of."""
    return row.removesuffix(more_of(row))


def rows_of(model: str) -> list[str]:
    """The rows that a model may have."""
    return [model + more for more in _TITLES]


def ranked(
    tables: Mapping[str, pa.Table | None], measured: Mapping[str, Mapping[str, Mapping[str, float]]], protocol: str
) -> dict[str, judge.Ranks]:
    """Row → its ranks under `protocol`. A row is a model by its name; one that was also asked with its vectors of training users,
    or with the times of the histories, has a second row, its name with USERS or TIMES behind it. measured: model → its manifest's
    metrics."""
    rows: dict[str, judge.Ranks] = {}
    for name, table in tables.items():
        for row in rows_of(name):
            under = variant(protocol, more_of(row))
            width = judge.beam_width(measured[name], under)
            of_row = None if table is None else judge.ranks(table, under, width)
            if of_row is not None:
                rows[row] = dataclasses.replace(of_row, protocol=protocol)
    return rows


def models_of(rows: Iterable[str]) -> list[str]:
    """The models that rows are of, each once."""
    return list(dict.fromkeys(map(model_of, rows)))


def each_once(rows: Sequence[str]) -> list[str]:
    """The same rows, without the second one of a model of which both are there."""
    return [row for row in rows if row == model_of(row) or model_of(row) not in rows]


def titled(titles: Mapping[str, str], rows: Iterable[str]) -> dict[str, str]:
    """Row → what it is called. titles: of the models."""
    return {row: titles[model_of(row)] + _TITLES[more_of(row)] for row in rows}


def users_words(people: int, protocol: str) -> str:
    """30 users with held-out items, 1 user with a held-out item."""
    items = "held-out items" if naming.parse(protocol).sets else "a held-out item"
    return f"{count(people, 'user')} with {items}"


def by_chance(ranks: judge.Ranks, metric: str, items: int) -> float:
    """The metric of a random order of the candidates. ranks: of one model; items: of the catalogue."""
    protocol = naming.parse(ranks.protocol)
    candidates = np.full(len(ranks), items) if protocol.history else np.maximum(items - ranks.length, 1)
    if protocol.sampled:
        candidates[:] = protocol.sampled + 1
    return judge.by_chance(metric, candidates, ranks.protocol, ranks.user)


def chance_words(chance: float, metric: str) -> str:
    """A sentence below a table of the metric. chance: of `by_chance`."""
    little = ", with so few candidates that the figures say little" if chance >= TRIVIAL else ""
    return f"A random order would have {metric} {chance:.4f}{little}."


def left_out(people: int) -> str:
    """A sentence after others about those whom `shared` leaves out; "" where there are none."""
    if not people:
        return ""
    were = "was" if people == 1 else "were"
    return f" {count(people, 'user')} that not every model was evaluated on {were} left out."


def held_out_words(info: DatasetInfo) -> list[str]:
    """How many held-out items tie in time, repeat or are cancellations, then what that means for a verdict; empty where the
    dataset was imported before they were counted."""
    return repeats.about_held_out(info.held_out, info.held_out_items, info.options)


def beam_words(protocol: str, metrics: Mapping[str, Mapping[str, float]], items: int) -> str:
    """Where the ranks of a model that writes codes come from, in a sentence; metrics: its manifest's."""
    if naming.parse(protocol).sampled:
        return "exact scores of the sampled items’ semantic IDs."
    width = judge.beam_width(metrics, protocol)
    if width is None:
        return f"exact ranks by the probability of the semantic ID, over all {count(items, 'item')}."
    words = f"ranks from a beam that keeps {count(width, 'prefix', 'prefixes')} at each step."
    share = metrics.get(protocol, {}).get(f"outside@{width}")
    if share is not None:
        outside = in_percent(share)
        words += f" {outside} of the held-out items were not generated; they share the mean of the remaining ranks."
    return words + f" Ranks beyond {width} are unknown."


# --- models × metrics


Values = npt.NDArray[np.floating[Any]]


class Compared(NamedTuple):
    """Two models, over the same users."""

    test: judge.Difference
    holm: float
    """p, adjusted for all comparisons beside this one."""

    @property
    def level(self) -> bool:
        """Not significantly different."""
        return self.test.low <= 0 <= self.test.high or self.holm > LEVEL

    @property
    def verdict(self) -> str:
        """level, better or worse."""
        return "level" if self.level else "better" if self.test.mean > 0 else "worse"


def compared(pairs: Mapping[str, tuple[Values, Values]], with_intervals: bool = True) -> dict[str, Compared]:
    """By the paired bootstrap, of the first minus the second. pairs: values of the same users in the same order, [users] or
    [seeds, users]. with_intervals: False where verdicts and p alone are needed, which most differences have without a draw
    (`judge.paired`)."""
    samples = _samples(len(pairs))
    with ThreadPoolExecutor(cores()) as pool:  # numpy draws without holding Python's lock
        test = functools.partial(judge.paired, seed=SEED, samples=samples, with_interval=with_intervals)
        tests = list(pool.map(lambda pair: test(*pair), pairs.values()))
    adjusted = judge.holm([test.p for test in tests])
    return {name: Compared(test, p) for name, test, p in zip(pairs, tests, adjusted, strict=True)}


def _samples(comparisons: int) -> int:
    return max(SAMPLES, ENOUGH * comparisons)


def adjusted(comparisons: int) -> str:
    """What the adjusted p of so many comparisons is, in words: p of one is 2 / (samples + 1) at least."""
    samples = _samples(comparisons)
    least = min(1.0, 2 * comparisons / (samples + 1))
    return f"p adjusted by Holm for {count(comparisons, 'comparison')}, with {samples:,} samples {least:.3f} at least"


def standing(people: Mapping[str, judge.Ranks], metrics: Sequence[str]) -> pd.DataFrame:
    """model, metric, mean, low, high, n, mark ("best", "level" with it or ""), holm (p against the best, adjusted), note.

    People must be the same for every model (`judge.common`). A model is level with the best where the paired interval of their
    difference contains 0 or the adjusted p is above 0.05; one model alone is not called the best. note: why there is no figure.
    """
    rows = []
    for metric in metrics:
        reasons = {name: ranks.beyond_beam(metric) for name, ranks in people.items()}
        values = {name: ranks.values(metric) for name, ranks in people.items() if reasons[name] is None}
        rows += [
            (name, metric, *[float("nan")] * 3, people[name].people, "", float("nan"), why)
            for name, why in reasons.items()
            if why is not None
        ]
        if not values:
            continue
        best = max(values, key=lambda name: float(values[name].mean()) if len(values[name]) else -1.0)
        alone = len({model_of(name) for name in values}) == 1
        others = compared({name: (values[best], values[name]) for name in values if name != best}, with_intervals=False)
        for name, shares in values.items():
            estimate = judge.interval(shares, seed=SEED, samples=SAMPLES)
            mark, holm = "" if alone else "best", float("nan")
            if name != best:
                holm = others[name].holm
                mark = "level" if not alone and others[name].level else ""
            rows.append((name, metric, estimate.mean, estimate.low, estimate.high, len(shares), mark, holm, ""))
    columns = ["model", "metric", "mean", "low", "high", "n", "mark", "holm", "note"]
    order = {name: place for place, name in enumerate(people)}
    table = pd.DataFrame(rows, columns=columns)
    return table.sort_values("model", key=lambda names: names.map(order), kind="stable", ignore_index=True)


def bold(titles: Mapping[str, str]) -> dict[str, str]:
    """As Markdown."""
    return {row: f"**{md(title)}**" for row, title in titles.items()}


def grid(
    table: pd.DataFrame, notes: Mapping[str, str], titles: Mapping[str, str], signs: Mapping[str, str]
) -> pd.DataFrame:
    """One row per entry of `titles` and one column per metric, as texts that sort like their numbers: "0.122 (0.117 – 0.128) ≈",
    where ≈ is not significantly different from the best. titles: not Markdown. notes: row → what has to be known of it."""
    metrics = list(dict.fromkeys(table["metric"]))
    cells = {(row.model, row.metric): _cell(row) for row in table.itertuples()}
    rows = [
        {
            "Model": f"{signs[name]}\u00a0{title}",
            **{metric: cells.get((name, metric), "n/a") for metric in metrics},
            "Note": notes.get(name, ""),
        }
        for name, title in titles.items()
    ]
    frame = pd.DataFrame(rows)
    return frame if notes else frame.drop(columns="Note")


def _cell(row: Any) -> str:
    if row.note:
        return f"n/a ({row.note})"
    return f"{row.mean:.3f} ({row.low:.3f}\u2009–\u2009{row.high:.3f})" + (" ≈" if row.mark == "level" else "")


def against(people: Mapping[str, judge.Ranks], baseline: str, metric: str) -> pd.DataFrame:
    """model, difference, low, high, p, holm, verdict: every model against the baseline, over the same users; those alone that
    have a figure, and none where the baseline has none."""
    values = {name: ranks.values(metric) for name, ranks in people.items() if ranks.beyond_beam(metric) is None}
    others = [name for name in values if name != baseline and baseline in values]
    rows = [
        (name, other.test.mean, other.test.low, other.test.high, other.test.p, other.holm, other.verdict)
        for name, other in compared({name: (values[name], values[baseline]) for name in others}).items()
    ]
    return pd.DataFrame(rows, columns=["model", "difference", "low", "high", "p", "holm", "verdict"])


def better_words(table: pd.DataFrame, baseline: str, called: Mapping[str, str]) -> str:
    """How many of the other models are better than the baseline, and which. table: of `against`; called: row → its title, escaped
    for where it is shown. A model counts once, as better where any of its rows is; not the baseline's own second row.
    """
    verdicts = dict(zip(table["model"], table["verdict"], strict=True))
    second = [row for row in verdicts if model_of(row) == model_of(baseline)]
    others = [row for row in verdicts if row not in second]
    better = [row for row in others if verdicts[row] == "better"]
    sentences = []
    if others:
        many, total = len(models_of(better)), len(models_of(others))
        which = f": {listed([called[row] for row in each_once(better)])}" if better else ""
        verb = "is" if 1 in (many, total) else "are"
        sentences.append(
            f"{many} of {count(total, 'other model')} {verb} significantly better than {called[baseline]}{which}."
        )
    how = {"better": "better than", "worse": "worse than", "level": "not significantly different from"}
    sentences += [f"{called[row]} is {how[verdicts[row]]} {called[baseline]}." for row in second]
    return " ".join(sentences)


# --- beyond accuracy


def exposure(table: pa.Table | None, protocol: str, k: int, items: int) -> npt.NDArray[np.int64] | None:
    """int64 [items]: in how many people's first k each item is; None where the bundle does not say."""
    if table is None:
        return None
    rows = np.flatnonzero((table["protocol"].to_numpy() == protocol) & (table["k"].to_numpy() == k))
    if not len(rows):
        return None
    return np.bincount(table["item"].to_numpy()[rows], table["count"].to_numpy()[rows], items).astype(np.int64)


def beyond(
    tables: Mapping[str, pa.Table | None],
    people: Mapping[str, judge.Ranks],
    protocol: str,
    k: int,
    popularity: npt.NDArray[np.int64],
) -> pd.DataFrame:
    """model, a column per `judge.BEYOND` (its `field`), note: why there are no lists, so that they are NaN. tables: of models."""
    rows: list[tuple[object, ...]] = []
    for row, ranks in people.items():
        under, beam = variant(protocol, more_of(row)), judge.beyond_beam(k, ranks.width)
        counts = None if beam else exposure(tables[model_of(row)], under, k, len(popularity))
        if counts is None or not counts.sum():
            why = beam or f"the bundle keeps no lists for “{under}” at {k}"
            rows.append((row, *[np.nan] * len(judge.BEYOND), why))
        else:
            rows.append((row, *(metric.of_lists(counts, popularity) for metric in judge.BEYOND.values()), ""))
    return pd.DataFrame(rows, columns=["model", *(metric.field for metric in judge.BEYOND.values()), "note"])


# --- training


def curves(tables: Mapping[str, pa.Table | None]) -> pd.DataFrame:
    """model, step, epoch, seconds, loss, ndcg of every model that was trained step by step."""
    columns = {"step": "step", "epoch": "epoch", "seconds": "seconds", "loss": "loss", "valid_ndcg": "ndcg"}
    frames = [
        table.select(list(columns)).to_pandas().rename(columns=columns).assign(model=name)
        for name, table in tables.items()
        if table is not None and table.num_rows
    ]
    every = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return every.reindex(columns=["model", *columns.values()])
