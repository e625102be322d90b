"""What a zoo answers to a few questions, how good its models are and what addresses of it mean: in a form that can be kept."""

import dataclasses
import json
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np
import numpy.typing as npt

from app.analysis import metrics
from app.screens import PAGES
from app.session import state
from app.zoo import open_zoo
from engine.runtime import Bundle, Zoo, judge, protocols
from tests.runtime.generators import ended, written

HISTORY = ("i1", "a~b", "i9", "ключ", "i21")
QUESTIONS = ((9,), (1, 3, 9, 5, 21), tuple(range(0, 44, 4)))
"""Histories: one item, some, and more than most models read."""
Arrays = dict[str, npt.NDArray[np.generic]]


def answers(zoo: Zoo) -> Arrays:
    """NAME/what → its answer. Scores and weights are float32, items and codes int32."""
    found: Arrays = {}
    for name, bundle in zoo.bundles.items():
        found |= {f"{name}/{what}": np.asarray(values) for what, values in _of_bundle(bundle).items()}
    for name, tokenization in zoo.tokenizations.items():
        found[f"identifiers/{name}"] = tokenization.identifiers.codes
    for name, space in zoo.spaces.items():
        found[f"spaces/{name}"] = np.stack([space.neighbours(item, 5).items for item in (0, 5, 17)])
    for study in zoo.studies.found.values():
        found[f"studies/{study.name}"] = np.array(
            [[variant.figure(figure) for figure in study.figures] for variant in study.variants]
        )
    return found


def _of_bundle(bundle: Bundle) -> Arrays:
    found: Arrays = {}
    for number, history in enumerate(QUESTIONS):
        top = bundle.recommend_one(history, 10)
        found |= {f"scores {number}": bundle.scores(history), f"items {number}": top.items}
    history = QUESTIONS[1]
    if bundle.cannot("attention") is None:
        found["attention"] = bundle.attention(history).weights
    if bundle.cannot("neighbours") is None:
        found["neighbours"] = bundle.neighbours(17, 5).items
    if bundle.cannot("identifiers") is None:
        trace = bundle.trace(history, 5)
        tokens = np.full((len(ended(trace)), bundle.identifiers.levels), -1)
        for row, identifier in enumerate(written(trace)):
            tokens[row, : len(identifier)] = identifier
        found |= {"beam": tokens, "beam scores": trace.scores[ended(trace)]}
    if bundle.manifest.graph is not None and bundle.layers is not None:
        found["layers"] = bundle.layers.by_layer(history, 17)
    ranks = bundle.ranks_table()
    assert ranks is not None
    found["ranks"] = ranks["rank"].to_numpy()
    return found


def printed(zoo: Zoo) -> dict[str, dict[str, dict[str, str]]]:
    """Protocol → row → figure → its text, as the page Metrics has them: of all rows over the people whom all were evaluated on.
    At 10 of a full ranking with interval and verdict. Of the metrics that every report has: one that is added changes nothing
    here."""
    tables = {name: bundle.ranks_table() for name, bundle in zoo.bundles.items()}
    measured = {name: bundle.manifest.metrics for name, bundle in zoo.bundles.items()}
    shown = {name: bundle.exposure_table() for name, bundle in zoo.bundles.items()}
    found: dict[str, dict[str, dict[str, str]]] = {}
    for protocol in metrics.protocols(tables):
        people, _ = judge.common(metrics.ranked(tables, measured, protocol))
        rows: dict[str, dict[str, str]] = {row: {} for row in people}
        original = [name for name in metrics.metrics_of(protocol) if not judge.ACCURACY[name].later]
        for k in judge.CUTOFFS:
            for metric in (f"{name}@{k}" for name in original):
                for row, ranks in people.items():
                    if ranks.beyond_beam(metric) is None:
                        rows[row][metric] = f"{ranks.values(metric).mean():.3f}"
            for line in metrics.beyond(shown, people, protocol, k, zoo.popularity).itertuples():
                if not line.note:
                    for metric in judge.BEYOND.values():
                        if not metric.later:
                            rows[line.model][f"{metric.name}@{k}"] = metric.text(getattr(line, metric.field))
        if protocols.parse(protocol).full:
            for line in metrics.standing(people, [f"{name}@10" for name in original]).itertuples():
                if not line.note:
                    rows[line.model][f"{line.metric}, interval"] = (
                        f"{line.low:.3f} – {line.high:.3f} {line.mark}".strip()
                    )
        found[protocol] = rows
    return found


def decoded(page: str, address: str) -> dict[str, Any]:
    """What an address of the zoo golden means: the state as JSON, the address that it gives, and how much of it could not be
    had. The zoo lies in SEQSCOPE_EXPORTS."""
    now = state.parse(dict(parse_qsl(address, keep_blank_values=True)), ["golden"], open_zoo, PAGES[page or "compare"])
    again = urlencode(state.params(now))
    meaning: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(now)))
    del meaning["looked_up"]  # when the zoo's files were written
    return {**meaning, "problems": len(now.problems), "address": again}
