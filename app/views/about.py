"""What every metric and view means, in two sentences each, and the cards of data and models: Markdown, foreign text escaped."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, NamedTuple

from app.text import count, md
from engine.runtime import Bundle, DatasetInfo


class Entry(NamedTuple):
    """A term, its meaning in two sentences, and where it comes from."""

    term: str
    meaning: str
    source: str


METRICS = (
    Entry(
        "HR@k, hit rate",
        "The share of people whose held-out item is among the first k. With one held-out item per person it "
        "equals recall@k.",
        "Deshpande & Karypis, TOIS 2004",
    ),
    Entry(
        "NDCG@k",
        "A hit counts 1 at the top and less further down, 1 / log₂(rank + 1). The mean over people, with 0 "
        "beyond rank k.",
        "Järvelin & Kekäläinen, TOIS 2002",
    ),
    Entry(
        "MRR@k",
        "A hit counts 1 / rank, so the second place is worth half of the first. The mean over people, with 0 "
        "beyond rank k.",
        "Voorhees, TREC-8 1999",
    ),
    Entry(
        "Rank",
        "The place of the held-out item among the candidates, 1 is best. Equal scores share the mean of their places.",
        "Krichene & Rendle, KDD 2020, on why the candidates are the whole catalogue",
    ),
    Entry(
        "Coverage@k",
        "The share of the catalogue that is in the first k of at least one person. A model that shows "
        "everybody the same has k of n.",
        "Ge, Delgado-Battenfeld & Jannach, RecSys 2010",
    ),
    Entry(
        "Gini@k",
        "How unequally the items are shown: 0 where all appear equally often, towards 1 where one takes "
        "every place. Items that "
        "nobody sees count.",
        "Gini 1912; Fleder & Hosanagar, Management Science 2009",
    ),
    Entry(
        "Novelty@k",
        "The mean of −log₂ of an item's share of all training events over everything shown, in bits. One bit "
        "more means half as well known.",
        "Zhou et al., PNAS 2010",
    ),
    Entry(
        "95 % interval",
        "People are drawn anew, with replacement, 2,000 times, and the middle 95 % of the results is kept. "
        "It covers the choice of people, "
        "not the luck of one training run.",
        "Efron & Tibshirani 1993, chapter 13",
    ),
    Entry(
        "Paired comparison",
        "The difference of two models is taken for each person, then drawn anew in the same way. That is "
        "much sharper than comparing two "
        "intervals by eye.",
        "Efron & Tibshirani 1993",
    ),
    Entry(
        "Holm's correction",
        "With several comparisons at once, some look significant by chance; p-values are raised so that any "
        "false alarm stays below 5 %. "
        "It needs no assumption about how the comparisons depend on each other.",
        "Holm 1979",
    ),
)

VIEWS = (
    Entry(
        "Lists side by side",
        "Each model's best items for the same history; bars show an item's place within its own model. "
        "Scores of different models have "
        "different units and are never put on one scale.",
        "Pin and compare, after LIT: Tenney et al., EMNLP 2020",
    ),
    Entry(
        "Rank-biased overlap",
        "How much two lists agree, the top counting more. At p = 0.9 the first ten places carry 86 % of the weight.",
        "Webber, Moffat & Zobel, TOIS 2010",
    ),
    Entry(
        "Attention",
        "The shares in which a position mixes the others into itself; every row of the map sums to 1. It "
        "shows what was mixed, "
        "and does not prove why an item was recommended.",
        "Vaswani et al. 2017; Jain & Wallace 2019; Wiegreffe & Pinter 2019",
    ),
    Entry(
        "Rollout",
        "Attention followed through all layers, each taken as half residual and half attention, and "
        "multiplied. An approximation that "
        "leaves out the feed-forward layers and drifts towards early positions in causal models.",
        "Abnar & Zuidema, ACL 2020",
    ),
    Entry(
        "Leave-one-out",
        "An event is removed, the model is asked again, and the change of the item's score is the event's "
        "effect. It is what the model "
        "really does, one event at a time; events that only matter together stay hidden.",
        "Li, Monroe & Jurafsky 2016",
    ),
    Entry(
        "Map",
        "The model's item vectors drawn in two dimensions so that near ones stay near. Distances between far "
        "groups and the axes "
        "mean nothing.",
        "McInnes, Healy & Melville 2018 (UMAP); trustworthiness: Venna & Kaski 2001",
    ),
    Entry(
        "Neighbours",
        "The nearest items by exact comparison in the model's own space, not on the map. Cosine or distance, "
        "as the model itself compares.",
        "the model's paper",
    ),
)

LIMITS = (
    "The test asks for one held-out item per person. A list that would have pleased but missed this item "
    "counts as a miss.",
    "Logs hold what people did under another system and its own recommendations; none of the numbers is "
    "the outcome of an experiment.",
    "Intervals cover the choice of people alone. Another seed of the same training would move the numbers, too.",
    "Models know only the items they were trained on, unless their card says otherwise.",
    "Softmax shares are a way to show distances within one list; they are probabilities only where a "
    "model was trained to give them.",
    "Answers are computed on the server with the exported graphs, which agree with the trained model up "
    "to rounding (see the cards).",
)

_ABLE = {
    "attention": "attention",
    "neighbours": "neighbours",
    "map": "map",
    "unseen_items": "items it has never seen",
    "trained_users": "vectors of trained people",
}


def data_card(info: DatasetInfo) -> dict[str, str]:
    """Term → Markdown."""
    counts, lengths = info.counts, info.lengths
    card = {
        "Source": md(info.source, 2_000),
        "Licence": md(info.licence, 2_000),
        "People": f"{counts.get('users', 0):,}{', **simulated**' if info.simulated else ', real'}",
        "Items": f"{counts.get('items', 0):,}",
        "Events": f"{counts.get('events', 0):,}, of which {counts.get('train', 0):,} for training",
        "Held out": f"{counts.get('valid', 0):,} to validate, {counts.get('test', 0):,} to test",
        "Per person": (
            f"{lengths.get('min', 0):,.0f} to {lengths.get('max', 0):,.0f} events, median {lengths.get('median', 0):,.0f}, "
            f"mean {lengths.get('mean', 0):,.1f}"
        ),
        "Sparsity": f"{info.sparsity:.2%} of all pairs of person and item never met",
        "Time": _time(info.time),
        "Split": md(", ".join(f"{key}: {value}" for key, value in info.split.items() if value is not None)),
        "Left out": md(", ".join(f"{number:,} {reason}" for reason, number in info.left_out.items()) or "nothing"),
        "Attributes": md(", ".join(info.attributes) or "none", 1_000),
        "Made": md(f"{info.created[:10]} by {info.created_by}"),
        "Fingerprint": f"`{info.fingerprint}`",
    }
    return card


def model_card(bundle: Bundle) -> dict[str, str]:
    """Term → Markdown."""
    said = bundle.manifest
    made, check = said.training, said.check
    can = [words for name, words in _ABLE.items() if bundle.cannot(name) is None]
    read = said.encoder.max_length
    return {
        "From": md(said.paper, 2_000),
        "Reads": f"the latest {count(read, 'item')}"
        + ("" if said.encoder.min_history else ", and answers without any"),
        "Size": f"{count(made.parameters, 'parameter')}, {said.encoder.dim:,} numbers per query",
        "Trained": md(
            f"{count(made.epochs, 'epoch')} (best: {made.best_epoch:,}), seed {made.seed}, {made.seconds:,.0f} s on {made.device}"
            if made.epochs
            else f"counted once over the log, on {made.device}"
        ),
        "Can show": md(", ".join(can) or "its recommendations"),
        "Exact to": (
            f"{check.max_abs_difference:.0e} between the exported graph and the trained model, "
            f"on {count(check.histories, 'history', 'histories')}"
        ),
        "Made": md(f"{said.created[:10]} by {said.created_by}, commit {(made.commit or 'unknown')[:10]}"),
    }


def cannot(bundle: Bundle) -> list[str]:
    """What the model cannot do and why, as Markdown."""
    reasons: Mapping[str, str | None] = {words: bundle.cannot(name) for name, words in _ABLE.items()}
    return [f"**{words.capitalize()}** — {md(reason, 1_000)}" for words, reason in reasons.items() if reason]


def listing(entries: Mapping[str, str]) -> str:
    """A description list."""
    return "\n".join(f"- **{term}**: {meaning}" for term, meaning in entries.items())


def _time(found: Mapping[str, Any]) -> str:
    if found.get("unit") == "order" or found.get("first") is None or found.get("last") is None:
        return "the order of events alone"
    first, last = (_day(found[end]) for end in ("first", "last"))
    ties, unit = found.get("ties", 0), found.get("unit", "time")
    return md(f"{first} to {last}; {ties:,} events share their {unit} with another one of the same person")


def _day(seconds: float) -> str:
    start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    try:
        return (start + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%d")
    except (OverflowError, ValueError):
        return "unknown"
