"""The tables of a report: for its pages, and one CSV each. Texts are as the data has them; spreadsheets get them neutralised."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from app.analysis import graph_paths as graph
from app.analysis.semantic_ids import normalised_by_chance
from app.reports import walks, words
from app.reports.document import Effect, Graph, Item, Report
from app.text import cell
from engine.runtime import judge


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
    if report.graph is not None:
        found |= {item.item_id: item.title for item in _of_graph(report.graph)}
    for one in report.codes or []:
        found |= {item.item_id: item.title for item in one.items}
    for row in report.lists or []:
        found |= {item.item_id: item.title for item in row.items}
    if report.history is not None:
        found |= {item.item_id: item.title for item in (*report.history.items, *(report.history.edited or ()))}
    return found


def _of_graph(graph: Graph) -> list[Item]:
    listed = [item for one in graph.models if one.layers is not None for item in one.layers.items]
    branches = [branch for one in graph.models for branch in one.branches]
    return [graph, *listed, *branches, *(end for branch in branches for end in branch.ends)]


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


def _paths(report: Report) -> Table | None:
    part, called = report.graph, words.titles(report)
    if part is None:
        return None
    rows: list[tuple[Any, ...]] = []
    for one in part.models:
        again = walks.drawn(part, one)
        table = graph.table(again.branches, again.titles).astype(object)
        rows += [(called[one.model], *row) for row in table.where(table.notna(), None).itertuples(index=False)]
    return Table(f"Paths to {part.title}", ("model", "from", "through", "to", "weight", "adds"), rows)


def _layers(report: Report) -> Table | None:
    called, rows = words.titles(report), []
    for one in report.graph.models if report.graph is not None else ():
        if one.layers is None:
            continue
        names = graph.layer_names(len(one.layers.adds) - 1)
        for k, row in enumerate(one.layers.adds):
            rows += [
                (called[one.model], k, names[k], k if len(row) == 1 else at, value) for at, value in enumerate(row)
            ]
    columns = ("model", "layer of the history", "ends in", "layer of the item", "adds")
    return Table("What each layer adds", columns, rows)


def _without(report: Report) -> Table | None:
    by_model = [
        (one.model, one.layers) for one in (report.graph.models if report.graph is not None else ()) if one.layers
    ]
    most = max((len(layers.adds) for _, layers in by_model), default=0)
    called = words.titles(report)
    rows = [
        (called[model], item.item_id, item.title, *item.ranks, *[None] * (most + 1 - len(item.ranks)))
        for model, layers in by_model
        for item in layers.items
    ]
    columns = ("model", "item_id", "title", "all layers", *(f"without {k}" for k in range(most)))
    return Table("The list without a layer", columns, rows)


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
        (title, found.k, *(own[row].value(metric.field) for metric in judge.BEYOND.values()), own[row].note)
        for row, title in words.judged_rows(report).items()
    ]
    return Table("Beyond accuracy", ("model", "k", *(metric.head for metric in judge.BEYOND.values()), "note"), rows)


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
    "graph": _paths,
    "graph-layers": _layers,
    "graph-without": _without,
    "map-marks": _map,
    "map-points": _points,
    "metrics": _metrics,
    "metrics-beyond": _beyond,
    "metrics-repeats": _repeats,
    "models": _models,
}
