"""What the models looked at in the history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from app.analysis import attention as analysis
from app.analysis import beam_search
from app.figures import attention as drawing
from app.reports import charts
from app.reports.blocks import Block, Figure, Table, figures, grid, h3, p, quiet, sign
from app.reports.fields import Item, ItemId, Name, ReportModel, check_square, number, numbers
from app.reports.part import ByModel, Source
from app.text import clean
from engine.errors import SeqscopeError
from engine.runtime import last_row
from engine.writing import in_percent

if TYPE_CHECKING:
    from app.reports.document import Report

SHOWN = 40  # the latest positions of an attention map


class Position(ReportModel):
    place: int | None
    """In the history, from 1; None: the position of the next item."""
    item_id: ItemId | None


class Written(Item):
    """What a model that writes codes looked at in the history while it wrote those of one item."""

    positions: list[Position]
    weights: list[float]
    """Per position; means over codes, heads and layers. What is missing from 1 went to codes already written."""


class Gates(ReportModel):
    """How far a model lets each of its latest items through, before it averages them."""

    positions: list[Position]
    openings: list[Annotated[float, Field(ge=0, le=1)]]
    """Per position, 0 closed, 1 open."""


class Attention(ReportModel):
    LATER: ClassVar[tuple[str, ...]] = ("written", "gates")

    model: Name
    cannot: str | None = None
    view: Literal["mean", "rollout"] = "mean"
    layers: int = 0
    heads: int = 0
    causal: bool = False
    pooled: bool = False
    grouped: bool = False
    """True: the model reads codes; they are taken together by item."""
    positions: list[Position] = []
    last: list[float] = []
    """What the last position looked at, or all where they are pooled, per position: in a model that writes codes with attention
    to the history, not what the prediction looked at, which is `written`."""
    written: Written | None = None
    """In place of `last`, where the codes that are written look at the history; None in reports of before."""
    gates: Gates | None = None
    """Of a model that has them in place of attention weights; None in reports of before."""
    matrix: list[list[float | None]] = []
    """Rows look, columns are looked at; None where looking is impossible. The latest positions alone, `positions` has all."""

    @property
    def of_prediction(self) -> tuple[list[Position], list[float]]:
        """(positions, weights): what the prediction looked at."""
        return (self.positions, self.last) if self.written is None else (self.written.positions, self.written.weights)


class AttentionPart(ByModel[list[Attention]]):
    name, title, heading, busy, order = "attention", "Attention", "Attention weights", "Reading attention", 60
    content, called = list[Attention], "attention of"
    always = True
    note = (
        "Attention shows what a model mixed into its answer; by itself it explains nothing. What leaving an event out really "
        "changes stands under “Why this item?”."
    )

    def make(self, source: Source) -> list[Attention]:
        """Of the models that were asked for, else of those that attend or have gates."""
        models = source.asked.attention
        if models is None:
            bundles = source.models.bundles
            views = ("attention", "gates")
            models = [name for name in source.names if any(bundles[name].cannot(view) is None for view in views)]
        return [_attention(source, model) for model in models]

    def check(self, content: list[Attention], report: Report) -> None:
        for entry in content:
            weights = [(entry.last, entry.positions)]
            weights += [] if entry.written is None else [(entry.written.weights, entry.written.positions)]
            weights += [] if entry.gates is None else [(entry.gates.openings, entry.gates.positions)]
            if any(len(values) != len(of) for values, of in weights) or len(entry.matrix) > len(entry.positions):
                raise ValueError("attention has more or fewer weights than positions")
            check_square("attention", entry.matrix, len(entry.matrix))

    def tables(self, content: list[Attention], report: Report) -> dict[str, Table]:
        titles, names = report.titles, report.item_titles

        def rows(entry: Attention, positions: list[Position], values: list[float]) -> list[tuple[Any, ...]]:
            return [
                (titles[entry.model], _place(at), at.item_id, names.get(at.item_id or "", ""), value)
                for at, value in zip(positions, values, strict=True)
            ]

        looked = [row for entry in content for row in rows(entry, *entry.of_prediction)]
        cells = [
            (titles[entry.model], str(_place(row)), str(_place(column)), weight)
            for entry in content
            for shown in [entry.positions[len(entry.positions) - len(entry.matrix) :]]
            for row, weights in zip(shown, entry.matrix, strict=True)
            for column, weight in zip(shown, weights, strict=True)
            if weight is not None
        ]
        columns = ("model", "place", "item_id", "title")
        gated = [(entry, entry.gates) for entry in content if entry.gates is not None]
        openings = [row for entry, gates in gated for row in rows(entry, gates.positions, gates.openings)]
        return {
            "gates": Table("How far items are let through", (*columns, "gate"), openings),
            "attention": Table("What the prediction looked at", (*columns, "weight"), looked),
            "attention-matrix": Table(
                "Attention position by position", ("model", "looking", "looked at", "weight"), cells
            ),
        }

    def blocks(self, content: list[Attention], report: Report) -> list[Block]:
        blocks: list[Block] = []
        for entry in content:
            blocks.append(h3(sign(report, entry.model)))
            if entry.gates is not None:
                openings, names = np.array(entry.gates.openings), _names(entry.gates.positions, report)
                blocks += [
                    p(analysis.gate_words(report.titles[entry.model], openings, names, plain=True)),
                    figures(_gate_bars(entry.gates, entry.model, report)),
                ]
            if entry.cannot is not None:
                blocks.append(quiet(clean(entry.cannot)))
            else:
                blocks += [p(words(entry, report)), figures(_bars(entry, report), _map(entry, report))]
        return [*blocks, *(block for table in self.tables(content, report).values() for block in grid(table))]


PART = AttentionPart()


def _position(source: Source, place: int | None, item: int | None) -> Position:
    """place: from 0."""
    item_id = None if item is None or not source.tells_history else source.models.item_ids[item]
    return Position(place=None if place is None else place + 1, item_id=item_id)


def _written(source: Source, model: str) -> Written | None:
    """Of the item that is explained, else the model's first one; None where no written code looks at the history."""
    bundle = source.models.bundles[model]
    if bundle.cannot("cross_attention") is not None:
        return None
    if source.asked.item is not None:
        item = source.explained
    else:
        item = next(iter(bundle.recommend_one(source.history, 1).items.tolist()), None)
    if item is None:
        return None
    weights = beam_search.by_event(beam_search.cross_attention(source.models, model, source.history, item))
    positions, values = _by_event(source, weights)
    return Written(**source.item(item).model_dump(), positions=positions, weights=values)


def _gates(source: Source, model: str) -> Gates | None:
    if not source.history or source.models.bundles[model].cannot("gates") is not None:
        return None
    positions, openings = _by_event(source, analysis.gates(source.models, model, source.history))
    return Gates(positions=positions, openings=openings)


def _by_event(source: Source, values: Mapping[int, float]) -> tuple[list[Position], list[float]]:
    """values: by their event's place in the history, from 0."""
    positions = [_position(source, place, source.history[place]) for place in values]
    return positions, [number(value) for value in values.values()]


def _attention(source: Source, model: str) -> Attention:
    bundle, view = source.models.bundles[model], source.asked.view
    try:
        if not source.history:
            raise SeqscopeError("There is no history to look at.")
        if view == "rollout" and (reason := bundle.cannot("rollout")) is not None:
            raise SeqscopeError(reason)
        raw = analysis.attention(source.models, model, source.history)
    except SeqscopeError as reason:
        cannot = bundle.cannot("attention") or str(reason)
        return Attention(model=model, cannot=cannot, gates=_gates(source, model))
    by_item = analysis.by_item(raw)  # codes taken together by item; where positions are items, the same
    last = last_row(by_item)
    if view == "rollout":
        matrix = analysis.matrix(raw, "rollout", 0, 0)
        matrix = analysis.by_item_of(raw, matrix) if raw.levels else matrix
        filled = np.nan_to_num(matrix)
        last = filled.mean(axis=0) if by_item.pooled else filled[-1]
    else:
        matrix = analysis.matrix(by_item, "mean", by_item.layers - 1, 0)
    return Attention(
        written=_written(source, model),
        model=model,
        view=view,
        **{name: getattr(by_item, name) for name in ("layers", "heads", "causal", "pooled")},
        grouped=bool(raw.levels),
        positions=[
            _position(source, place, item) for place, item in zip(by_item.positions, by_item.items, strict=True)
        ],
        last=[number(value) for value in last.tolist()],
        matrix=[numbers(row) for row in matrix[-SHOWN:, -SHOWN:].astype(float).tolist()],
    )


def _place(position: Position) -> int | str:
    return "next" if position.place is None else position.place


def words(entry: Attention, report: Report) -> str:
    """What drew the most attention, and how it was summed up."""
    title, (positions, weights) = report.titles[entry.model], entry.of_prediction
    if not weights:
        return ""
    names, rollout = _names(positions, report), entry.view == "rollout"
    drawn, whole = len(entry.matrix), len(entry.positions)
    latest = f" The map has the latest {drawn} of {whole} positions." if drawn < whole else ""
    if entry.written is not None:
        most = beam_search.sentence(title, entry.written.title, np.array([weights]), names, plain=True)
        rolled = "rollout through all layers" if rollout else "mean over the heads of the last layer"
        how = "Mean over codes, heads and layers of its decoder."
        return f"{most} {how} The map is that of what reads the history: {rolled}.{latest}"
    how = "Mean over the heads of the last layer" + (
        ", and over all rows, as the model averages them" if entry.pooled else ""
    )
    if rollout:
        how = "Rollout through all layers (Abnar & Zuidema 2020), each half residual: an approximation"
    grouped = "; an item's codes are taken together" if entry.grouped else ""
    return f"{analysis.sentence(title, np.array(weights), names, entry.pooled, plain=True)} {how}{grouped}.{latest}"


def _names(positions: list[Position], report: Report) -> analysis.Names:
    known = report.item_titles
    titles = [known.get(position.item_id or "") for position in positions]
    return analysis.Names(
        tuple(str(_place(position)) for position in positions),
        tuple(
            "the next item" if position.place is None else clean(title or f"place {position.place}", 120)
            for position, title in zip(positions, titles, strict=True)
        ),
    )


def _labels(names: analysis.Names) -> list[str]:
    pairs = zip(names.numbers, names.titles, strict=True)
    return [
        number if title == f"place {number}" else f"{number} · {title}".removeprefix(" · ") for number, title in pairs
    ]


def _bars(attention: Attention, report: Report) -> Figure:
    colour, (positions, weights) = report.model(attention.model).colour, attention.of_prediction
    alt = f"What {report.titles[attention.model]} looked at, by position, oldest on top"
    shown, _ = analysis.strongest(np.array(weights), _names(positions, report))

    def draw(font: str) -> Any:
        labels = _labels(analysis.Names(tuple(shown["position"]), tuple(shown["title"])))
        rows = [
            charts.Bar(text, weight, in_percent(weight, 1))
            for text, weight in zip(labels, shown["weight"], strict=True)
        ]
        return charts.bars(rows, colour, alt, even=sum(weights) / max(len(weights), 1), font=font)

    def live() -> Any:
        return drawing.bars(shown, colour, float(np.mean(weights)))

    return Figure(f"attention-{attention.model}", alt, draw, live)


def _gate_bars(gates: Gates, model: str, report: Report) -> Figure:
    colour, names = report.model(model).colour, _names(gates.positions, report)
    alt = f"How far {report.titles[model]} lets its latest items through, by position, oldest on top"

    def draw(font: str) -> Any:
        rows = zip(_labels(names), gates.openings, strict=True)
        return charts.bars(
            [charts.Bar(text, opening, f"{opening:.3f}") for text, opening in rows], colour, alt, font=font
        )

    def live() -> Any:
        shown = pd.DataFrame({"position": names.numbers, "title": names.titles, "gate": gates.openings})
        return drawing.bars(shown, colour, None, quantity="gate")

    return Figure(f"gates-{model}", alt, draw, live)


def _map(attention: Attention, report: Report) -> Figure:
    names = _names(attention.positions[len(attention.positions) - len(attention.matrix) :], report)
    alt = f"Attention of {report.titles[attention.model]}, position by position: rows look, columns are looked at, oldest first"
    top = max((value for row in attention.matrix for value in row if value is not None), default=1.0)

    def draw(font: str) -> Any:
        return charts.heatmap(_labels(names), list(names.numbers), attention.matrix, alt, top=top, font=font)

    def live() -> Any:
        weights = np.array([[np.nan if value is None else value for value in row] for row in attention.matrix])
        return drawing.heatmap(weights, names, max(top, 1e-6), "weight", narrow=True)  # beside the bars

    return Figure(f"attention-{attention.model}-map", alt, draw, live)
