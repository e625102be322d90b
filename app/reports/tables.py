"""The tables of a report: for its pages, and one CSV each. Texts are as the data has them; spreadsheets get them neutralised."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from app.reports import words
from app.reports.document import Effect, Report
from app.text import cell
from app.views.semantic_ids import normalised_by_chance


class Table(NamedTuple):
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def tables(report: Report) -> dict[str, Table]:
    """Name → table, those alone whose part is in the report."""
    found = {name: make(report) for name, make in _MAKERS.items()}
    return {name: table for name, table in found.items() if table is not None and table.rows}


def csv_bytes(table: Table) -> bytes:
    """CSV in UTF-8 with a byte-order mark (spreadsheets ask for it); texts that a spreadsheet would run are neutralised."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(table.columns)
    for row in table.rows:
        writer.writerow([_plain(value) for value in row])
    return text.getvalue().encode("utf-8-sig")


def titled(report: Report) -> dict[str, str]:
    """item_id → title of every item that the report tells of."""
    found: dict[str, str] = {}
    for one in report.codes or []:
        found |= {item.item_id: item.title for item in one.items}
    for row in report.lists or []:
        found |= {item.item_id: item.title for item in row.items}
    if report.history is not None:
        found |= {item.item_id: item.title for item in (*report.history.items, *(report.history.edited or ()))}
    return found


def _plain(value: Any) -> Any:
    if value is None:
        return ""
    return cell("; ".join(map(str, value)) if isinstance(value, (list, tuple)) else value)


def _history(report: Report) -> Table | None:
    if report.history is None:
        return None
    rows = [("history", place, item.item_id, item.title) for place, item in enumerate(report.history.items, 1)]
    edited = report.history.edited or []
    rows += [("edited", place, item.item_id, item.title) for place, item in enumerate(edited, 1)]
    return Table("History", ("which", "place", "item_id", "title"), rows)


def _lists(report: Report) -> Table | None:
    if report.lists is None:
        return None
    times, called = words.shared(report.lists), words.titles(report)
    rows = [
        (called[one.model], i.place, i.item_id, i.title, i.score, i.share, times[i.item_id], i.ties)
        for one in report.lists
        for i in one.items
    ]
    return Table("Lists", ("model", "place", "item_id", "title", "score", "share", "in lists", "tied with"), rows)


def _what_ifs(report: Report) -> Table | None:
    if report.what_ifs is None:
        return None
    called = words.titles(report)
    rows = [
        (one.words, called[own.model], i.item_id, i.title, i.before, i.after, i.change, i.score_before, i.score_after)
        for one in report.what_ifs
        for own in one.models
        for i in own.items
    ]
    columns = ("what if", "model", "item_id", "title", "before", "after", "change", "score before", "score after")
    return Table("What if", columns, rows)


_LOG = "log-probability with − without"
_EFFECTS = ("rank", "rank without", _LOG, "score with − without")


def _effects(report: Report) -> Table | None:
    if report.effects is None:
        return None
    able, called, names = [one for one in report.effects.models if one.effect], words.titles(report), titled(report)
    history = report.asked.history
    events = history if history is not None else [""] * max((len(one.effect) for one in able), default=0)
    columns = [
        f"{called[one.model]}: {what}" for one in able for what in _EFFECTS if what != _LOG or one.log_probability
    ]

    def values(one: Effect, at: int) -> list[float | None]:
        return [one.rank, one.rank_without[at], *one.log_probability[at : at + 1], one.effect[at]]

    rows = [
        (at + 1, item_id, names.get(item_id, ""), *(value for one in able for value in values(one, at)))
        for at, item_id in enumerate(events)
    ]
    return Table(f"Leaving events out: {report.effects.title}", ("place", "item_id", "title", *columns), rows)


def _overlap(report: Report) -> Table | None:
    found = report.overlap
    if found is None:
        return None
    called = words.titles(report)
    pairs = [(i, j) for i in range(len(found.models)) for j in range(i)]
    rows = [
        (called[found.models[j]], called[found.models[i]], found.shared[i][j], found.jaccard[i][j], found.rbo[i][j])
        for i, j in pairs
    ]
    return Table("Agreement", ("first", "second", "shared", "Jaccard", "RBO"), rows)


def _attention(report: Report) -> Table | None:
    called, names = words.titles(report), titled(report)
    rows = [
        (
            called[one.model],
            "next" if at.place is None else at.place,
            at.item_id,
            names.get(at.item_id or "", ""),
            weight,
        )
        for one in report.attention or []
        for at, weight in zip(*one.looked, strict=True)
    ]
    return Table("What the prediction looked at", ("model", "place", "item_id", "title", "weight"), rows)


def _matrices(report: Report) -> Table | None:
    called = words.titles(report)
    rows = []
    for one in report.attention or []:
        places = ["next" if at.place is None else str(at.place) for at in one.positions][-len(one.matrix) :]
        rows += [
            (called[one.model], places[i], places[j], weight)
            for i, row in enumerate(one.matrix)
            for j, weight in enumerate(row)
            if weight is not None
        ]
    return Table("Attention position by position", ("model", "looking", "looked at", "weight"), rows)


def _levels(report: Report) -> Table | None:
    rows = [
        (
            *(one.title, at, level.size, level.used, level.size - level.used, level.perplexity, level.gini),
            level.perplexity / level.size,
            normalised_by_chance(report.dataset.items, level.size),
        )
        for one in report.codes or []
        for at, level in enumerate(one.levels, 1)
    ]
    columns = ("tokenizer", "level", "codes", "used", "dead", "perplexity", "Gini", "normalised perplexity")
    return Table("Codes by level", (*columns, "normalised perplexity, random codes"), rows)


def _collisions(report: Report) -> Table | None:
    rows = [
        (one.title, one.excess, one.sharing, one.excess_in_use, one.sharing_in_use, one.reconstruction)
        for one in report.codes or []
    ]
    columns = ("tokenizer", "excess", "sharing", "excess in use", "sharing in use", "reconstruction error")
    return Table("Collisions", columns, rows)


def _coded(report: Report) -> Table | None:
    rows = [
        (one.title, item.item_id, item.title, " · ".join(map(str, item.codes)), item.shared_with)
        for one in report.codes or []
        for item in one.items
    ]
    return Table("Codes of the items", ("tokenizer", "item_id", "title", "codes", "shared with"), rows)


def _map(report: Report) -> Table | None:
    found = report.map
    if found is None:
        return None
    rows: list[tuple[Any, ...]] = [("history", at.place, at.item_id, at.title, at.x, at.y) for at in found.history]
    rows += [("list", at.place, at.item_id, at.title, at.x, at.y) for at in found.following]
    return Table("Marked on the map", ("mark", "place", "item_id", "title", "x", "y"), rows)


def _points(report: Report) -> Table | None:
    found = report.map
    if found is None:
        return None
    groups: Sequence[str | None] = [found.groups[at] for at in found.group] if found.group else [None] * len(found.x)
    titles: Sequence[str | None] = found.titles or [None] * len(found.x)
    return Table(
        "Points of the map", ("x", "y", "group", "title"), list(zip(found.x, found.y, groups, titles, strict=True))
    )


def _metrics(report: Report) -> Table | None:
    found = report.metrics
    if found is None:
        return None
    kinds = list(dict.fromkeys(one.metric for one in found.estimates))
    rows: list[tuple[Any, ...]] = []
    for row, title in words.judged_rows(report).items():
        own = [one for one in found.estimates if (one.model, one.users) == row]
        rows += [(title, found.protocol, o.metric, o.mean, o.low, o.high, o.people, o.mark, o.p, "") for o in own]
        why = found.cannot(row[0])
        rows += [(title, found.protocol, kind, *[None] * 3, found.people, "", None, why) for kind in kinds if why]
    columns = ("model", "protocol", "metric", "mean", "low", "high", "people", "mark", "p (Holm)", "note")
    return Table("Metrics", columns, rows)


def _beyond(report: Report) -> Table | None:
    found = report.metrics
    if found is None:
        return None
    own = {(one.model, one.users): one for one in found.beyond}
    rows = [
        (title, found.k, own[row].coverage, own[row].gini, own[row].novelty, own[row].note)
        for row, title in words.judged_rows(report).items()
    ]
    return Table("Beyond accuracy", ("model", "k", "coverage", "Gini", "novelty, bits", "note"), rows)


def _repeats(report: Report) -> Table | None:
    found = report.metrics
    if found is None or not found.repeats:
        return None
    called = words.judged_rows(report)
    rows = [(o.words, called[o.model, o.users], o.metric, o.mean, o.low, o.high, o.people) for o in found.repeats]
    return Table("Repeats apart", ("held-out item", "model", "metric", "mean", "low", "high", "people"), rows)


def _models(report: Report) -> Table:
    rows = [
        (
            *(o.name, o.title, o.family, o.digest, o.seed, o.commit, o.command, o.device, o.created, o.provider),
            words.STILL_IMPROVING if o.improving else "",
        )
        for o in report.models
    ]
    columns = (
        "name",
        "title",
        "family",
        "digest",
        "seed",
        "commit",
        "command",
        "device",
        "created",
        "provider",
        "note",
    )
    return Table("Models", columns, rows)


_MAKERS: dict[str, Callable[[Report], Table | None]] = {
    "history": _history,
    "lists": _lists,
    "what-ifs": _what_ifs,
    "effects": _effects,
    "overlap": _overlap,
    "attention": _attention,
    "attention-matrix": _matrices,
    "codes": _levels,
    "codes-collisions": _collisions,
    "codes-items": _coded,
    "map-marks": _map,
    "map-points": _points,
    "metrics": _metrics,
    "metrics-beyond": _beyond,
    "metrics-repeats": _repeats,
    "models": _models,
}
