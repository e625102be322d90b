"""What a report says in sentences: plain text, from the document alone. Escape it where it is shown."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence

from app.analysis import baselines, graph_paths, semantic_ids
from app.analysis import metrics as metrics_views
from app.bars import BARS, NO_BARS
from app.bars import bar as relative
from app.figures import graph_tree
from app.reports import walks
from app.reports.document import (
    Attention,
    Codes,
    Effect,
    Effects,
    Graph,
    Listing,
    Map,
    Metrics,
    Moves,
    Overlap,
    Position,
    Ranked,
    Report,
    Walks,
)
from app.text import clean, count, listed, ordinal, short
from app.views import splits
from engine.runtime import STILL_IMPROVING, judge
from engine.runtime import repeats as repeated_items

CHANGES = {"up": "up", "down": "down", "same": "stay", "new": "new", "dropped": "dropped"}
KINDS = ("same", "up", "down", "new", "dropped")


def titles(report: Report) -> dict[str, str]:
    """Name → title of every model; with the name behind it where another one is called the same."""
    found = [one.title for one in report.models]
    return {
        one.name: clean(one.title if found.count(one.title) == 1 else f"{one.title} ({one.name})", 80)
        for one in report.models
    }


def when(created: str) -> str:
    """20 November 2026, 17:55 UTC"""
    at = datetime.datetime.fromisoformat(created).astimezone(datetime.UTC)
    return f"{at.day} {at:%B %Y, %H:%M} UTC"


def head(report: Report) -> str:
    """Where the report is from, in a line."""
    data = report.dataset
    people = "simulated viewers" if data.simulated else "people"
    return (
        f"{clean(data.title, 100)} · {count(data.items, 'item')}, {count(data.users, 'person', people)}, "
        f"{count(data.events, 'event')} · {count(len(report.models), 'model')} · {when(report.created)}"
    )


def shared(lists: Sequence[Listing]) -> dict[str, int]:
    """item_id → how many of the lists it is in."""
    found: dict[str, int] = {}
    for one in lists:
        for item in one.items:
            found[item.item_id] = found.get(item.item_id, 0) + 1
    return found


def bars(report: Report) -> str:
    """What the bars of its lists show."""
    if report.schema_version == 1:
        return "Bars: the score within each model, from an item in the middle of the catalogue to its best one."
    return BARS


def bar(one: Listing, item: Ranked) -> float | None:
    """How long an item's bar is, 0 to 1; None where its model gives no probabilities."""
    first = one.items[0].share
    if item.strength is not None:
        return item.strength
    return None if item.share is None or first is None else relative(item.share, first)


def listing_note(one: Listing, report: Report) -> str:
    """How much of the history it read, or where what came next stands."""
    length = len(report.asked.history or [])
    words = "reads the last item" if one.read == 1 else f"reads the latest {one.read} of {length:,}"
    words = words if 0 < one.read < length else ""
    words = "the same for everybody" if report.model(one.model).family == "popularity" else words
    if any(item.share is None for item in one.items):
        words = f"{words}; {NO_BARS}" if words else NO_BARS
    if one.target_rank is not None:
        rank = f"what came next: rank {one.target_rank:,.10g}"
        words = f"{words}; {rank}" if words else rank
    return words


def moved(moves: Moves) -> dict[str, int]:
    """How many items stay, rise, fall, come and go."""
    return {kind: sum(item.change == kind for item in moves.items) for kind in KINDS}


def first_of(moves: Moves) -> str:
    return next((item.title for item in moves.items if item.after == 1), "–")


def change(before: int | None, after: int | None) -> str:
    """↑3, ↓1, =, new, dropped"""
    if before is None or after is None:
        return "new" if before is None else "dropped"
    return "=" if before == after else f"↑{before - after}" if before > after else f"↓{after - before}"


def effects(found: Effects, report: Report) -> str:
    ranks = listed([f"{titles(report)[one.model]} {ordinal(one.rank)}" for one in found.models if one.rank is not None])
    where = f" Its rank now: {ranks}." if ranks else ""
    return (
        f"Where “{clean(found.title, 120)}” would stand if one item of the history were left out. Bars to the right: it would "
        "fall, so that item speaks for it; to the left: it would rise. They are moves of its rank, on one log scale, "
        f"always among what could be recommended after the whole history.{where}"
    )


def moved_rank(one: Effect, at: int) -> str:
    """3rd → 41st, without the event at that place."""
    without = one.rank_without[at]
    return f"{ordinal(one.rank or 1)} → {'no answer' if without is None else ordinal(without)}"


def overlap(found: Overlap, k: int) -> str:
    models = "both models" if len(found.models) == 2 else f"all {len(found.models)} models"
    verb = "is" if found.by_all < 2 else "are"
    return (
        f"Of {count(found.different, 'item')} in these lists, {found.by_all or 'none'} {verb} recommended by {models} and "
        f"{found.by_one} by one alone. The figure counts the items that two models share among their first {k}. RBO: rank-biased "
        f"overlap, p = {found.rbo_p:g}; the places that there are carry {found.rbo_weight:.0%} of its weight."
    )


def attention(found: Attention, report: Report, names: dict[str, str]) -> str:
    """What drew the most attention. names: item_id → title."""
    title = titles(report)[found.model]
    positions, weights = found.looked
    order = sorted(range(len(weights)), key=lambda at: -weights[at])
    if not order:
        return ""
    what = [called(positions[at], names) for at in order[:2]]
    if found.written is not None:
        whole = sum(weights) or 1.0
        total = (
            f"While {title} wrote the codes of “{short(clean(found.written.title), 60)}”, it looked most at {what[0]} "
        )
        total += f"({weights[order[0]] / whole:.0%} of what it gave to the history)"
        total += f", then at {what[1]} ({weights[order[1]] / whole:.0%})" if len(order) > 1 else ""
        rolled = "rollout through all layers" if found.view == "rollout" else "mean over the heads of the last layer"
        return f"{total}. Mean over codes, heads and layers of its decoder. The map is that of what reads the history: {rolled}."
    total = f"{title} looked most at {what[0]} ({weights[order[0]]:.0%} of its weight)"
    total += f", then at {what[1]} ({weights[order[1]]:.0%})." if len(order) > 1 else "."
    if found.view == "rollout":
        how = "Rollout through all layers (Abnar & Zuidema 2020), each half residual: an approximation"
    else:
        how = "Mean over the heads of the last layer"
        how += ", and over all rows, as the model averages them" if found.pooled else ""
    grouped = "; an item's codes are taken together" if found.grouped else ""
    return f"{total} {how}{grouped}."


def graph(found: Graph, one: Walks, report: Report) -> str:
    """What leads to the item most."""
    if not one.branches:
        return "The paths begin at the history, which is not in this report."
    again = walks.drawn(found, one)
    return graph_paths.sentence(again.branches, again.item, again.titles, titles(report)[one.model], quoted)


def quoted(title: str, about: bool) -> str:
    return f"“{short(clean(title), 80)}”"


def graph_key(found: Graph, one: Walks) -> str:
    """What the tree of paths shows."""
    again = walks.drawn(found, one)
    return graph_paths.key(again.sums, len(graph_tree.drawn(again.branches)), len(again.branches))


def paths(found: Graph, one: Walks) -> list[graph_paths.Path]:
    """The strongest ones."""
    again = walks.drawn(found, one)
    return graph_paths.strongest(again.branches, again.titles)


def layers(found: Graph, one: Walks) -> tuple[str, str]:
    """(what the table of layers is, what the list without one is); of a model that has them."""
    assert one.layers is not None
    by_layer = walks.by_layer(one.layers)
    meeting, left_out = graph_paths.layers_words(by_layer)
    return (
        f"The score of “{short(clean(found.title), 80)}”, {by_layer.sum():.3f}, is the sum of these: {meeting}.",
        f"The list without a layer: where its first items would stand if one layer were {left_out}.",
    )


def layer_rows(one: Walks) -> tuple[list[str], list[list[str]]]:
    """(head, rows) of what each layer adds."""
    assert one.layers is not None
    names = graph_paths.layer_names(len(one.layers.adds) - 1)
    cells = [[f"{value:+.4f}" for value in row] for row in one.layers.adds]
    rows = [[f"{k}: {name}", *row] for k, (name, row) in enumerate(zip(names, cells, strict=True))]
    return ["layer of the history", *graph_paths.layer_columns(walks.by_layer(one.layers))], rows


def without_rows(one: Walks) -> tuple[list[str], list[list[str]]]:
    """(head, rows) of the list without a layer."""
    assert one.layers is not None
    rows = [[short(clean(item.title), 60), *map(str, item.ranks)] for item in one.layers.items]
    return ["item", "all layers", *(f"without {k}" for k in range(len(one.layers.adds)))], rows


def called(position: Position, names: dict[str, str], limit: int = 60) -> str:
    if position.place is None:
        return "the position of the next item"
    title = names.get(position.item_id or "")
    return f"“{short(clean(title), limit)}”" if title else f"place {position.place}"


def space(found: Map, report: Report) -> str:
    """Whose map it is."""
    title = titles(report)[found.model]
    return f"{title}: its tokenizer's latents" if found.latents else title


def place(found: Map) -> str:
    few = len(found.x) < found.total
    drawn = f"{len(found.x):,} of {found.total:,} items, drawn by lot" if few else f"{found.total:,} items"
    coloured = f", coloured by {found.column.lower()}" if found.column else ""
    return (
        f"{drawn}{coloured}. {clean(found.method, 100)}; trustworthiness {found.trustworthiness:.3f} over "
        f"{found.neighbours} neighbours. Filled numbers are the history in its order, rings the list, best first."
    )


Row = tuple[str, bool]
"""Of the metrics: a model, and whether with its vectors of training users."""


def judged_rows(report: Report) -> dict[Row, str]:
    """Row → what it is called, popularity and the Markov chain first, as tables and figures have them."""
    called = titles(report)
    rows = {views_row(*row): row for row in report.metrics.rows} if report.metrics is not None else {}
    found = metrics_views.titled(called, baselines.first(rows, families(report, rows)))
    return {rows[row]: title for row, title in found.items()}


def views_row(model: str, users: bool) -> str:
    """A row as the page Metrics names it."""
    return model + (metrics_views.USERS if users else "")


def families(report: Report, rows: Iterable[str]) -> dict[str, str]:
    """Row, as the page Metrics names it → the family of its model."""
    return {row: report.model(metrics_views.model_of(row)).family for row in rows}


def metrics(found: Metrics, report: Report) -> str:
    """Which model is best, who is level with it, who is below the floor, and what is missing."""
    name = f"{judge.HEADLINE}@{found.k}"
    part = [
        metrics_views.Judged(views_row(one.model, one.users), one.mean, one.low, one.high, one.people, one.mark)
        for one in found.estimates
        if one.metric == name
    ]
    rows = [views_row(*row) for row in found.rows]
    called_ = metrics_views.titled(titles(report), rows)
    beams = [f"{called_[views_row(*row)]} ({found.cannot(row[0])})" for row in found.rows if found.cannot(row[0])]
    said = [
        metrics_views.verdict(part, name, families(report, rows), called_),
        f"Left out, as nothing is known of places beyond the beam: {listed(beams)}." if beams else "",
        baselines.missing(families(report, rows), found.protocol).replace("`", ""),
    ]
    return " ".join(words for words in said if words)


def protocol(found: Metrics, report: Report) -> str:
    text = (
        f"{found.words} Split: {splits.words(report.dataset.split)}; {metrics_views.asked(found.people, found.protocol)}. "
        f"Intervals: 95 %, bootstrap over people, {found.samples:,} samples, seed {found.seed}; ≈: level with the best, by a "
        "paired bootstrap and Holm's correction."
    )
    text += metrics_views.left_out(found.left_out)
    if found.absent:
        text += f" Not evaluated so: {listed([titles(report)[name] for name in found.absent])}."
    early = [titles(report)[one.name] for one in report.models if one.improving]
    if early:
        text += f" {STILL_IMPROVING.capitalize()}: {listed(early)}."
    return text


def apart(found: Metrics, report: Report) -> str:
    """The metrics of held-out items that repeat one of the history, and of the others; "" where they are not told apart."""
    called, text = judged_rows(report), []
    shown = [one for one in found.repeats if one.metric.startswith(judge.HEADLINE)]
    for group in dict.fromkeys(one.words for one in shown):
        own = [one for one in shown if one.words == group]
        told = listed([f"{called[one.model, one.users]} {one.mean:.3f}" for one in own])
        text.append(
            f"{own[0].metric} where the held-out item {clean(group, 60)} ({count(own[0].people, 'person', 'people')}): {told}."
        )
    asked = sum({one.words: one.people for one in shown}.values())
    if text and asked < found.people:
        text.append(f"Not exported are the histories of {count(found.people - asked, 'other person', 'other people')}.")
    return " ".join(text)


def repeats(report: Report) -> str:
    """Whether items that users come back to count, and what that means for lists and metrics."""
    return repeated_items.meaning(report.dataset.repeats, report.dataset.measured)


def taken(report: Report) -> set[str]:
    """The item_ids of the history that the lists are made for; empty in a report without it."""
    return set() if report.history is None else {item.item_id for item in report.history.items}


def normalised(found: Codes, report: Report) -> tuple[str, str]:
    """(perplexity of each level as a share of its codes, the same of random codes): "90% · 71% · 40%" each."""
    own = [f"{level.perplexity / level.size:.0%}" for level in found.levels[:6]]
    random = [
        f"{semantic_ids.normalised_by_chance(report.dataset.items, level.size):.0%}" for level in found.levels[:6]
    ]
    return " · ".join(own), random[0] if len(set(random)) == 1 else " · ".join(random)
