"""A prepared dataset in words."""

from __future__ import annotations

import datetime

from engine.data import held_out
from engine.data.dataset import DatasetInfo
from engine.data.repeats import in_words


def describe(info: DatasetInfo) -> str:
    """What a person wants to know before training on it; several lines."""
    counts, lengths = info.counts, info.lengths
    rows = [
        ("dataset", f"{info.name}: {info.title}" + (" (SIMULATED)" if info.simulated else "")),
        ("source", info.source),
        ("licence", info.licence),
        ("size", f"{counts['users']:,} users, {counts['items']:,} items, {counts['events']:,} events"),
        (
            "history",
            f"min {lengths['min']:g}, median {lengths['median']:g}, mean {lengths['mean']:.2f}, max {lengths['max']:g} events",
        ),
        ("sparsity", f"{info.sparsity:.4%}"),
        ("time", _time(info)),
        ("attributes", ", ".join(info.attributes) or "none"),
        ("split", _split(info)),
        *([("repeats", in_words(info.measured, info.repeats))] if info.repeats and info.measured else []),
        ("held out", _held_out(info)),
        ("left out", "; ".join(f"{count:,} {reason}" for reason, count in info.left_out.items()) or "nothing"),
        ("fingerprint", info.fingerprint),
    ]
    if not counts["events"]:  # what would be said of events is said of nothing
        rows = [row for row in rows if row[0] not in ("history", "sparsity", "time", "held out")]
    return "\n".join(f"{name:<12} {text}".replace("\n", "\n" + " " * 13) for name, text in rows)


def _held_out(info: DatasetInfo) -> str:
    if info.sets:
        return (
            f"{info.split['test_items']:,} items test, {info.split['valid_items']:,} validate; a user may have several"
        )
    return " ".join(held_out.about(info.held_out, info.counts["test"], info.options)) or "not counted"


def _time(info: DatasetInfo) -> str:
    if not info.ordered:
        return "none, and no order: a user's items are a set"
    if info.time["unit"] == "order":
        return "none; events are in order"
    first, last = (_moment(info.time[end]) for end in ("first", "last"))
    return f"{first} to {last}, by {info.time['unit']}; {info.time['ties']:,} ties (order kept from the import)"


def _split(info: DatasetInfo) -> str:
    counts, kind = info.counts, info.split["kind"]
    if not counts["events"]:
        return "none: there is no log"
    if kind == "time":
        kind = (
            f"time, validation from {_moment(info.split['valid_from'])}, test from {_moment(info.split['test_from'])}"
        )
    held = f"{counts['train']:,} events train, {counts['valid']:,} users validate, {counts['test']:,} test"
    return f"{kind}: {held}"


def _moment(seconds: int) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.strftime("%Y-%m-%d" if seconds % 86_400 == 0 else "%Y-%m-%d %H:%M:%S")
