"""Codes of the items, and how well every tokenizer uses them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from app.analysis import semantic_ids, tokenizers
from app.figures import semantic_ids as drawing
from app.reports import charts
from app.reports.blocks import Block, Cell, Figure, Table, figures, grid, h3, quiet, table
from app.reports.fields import Item, Name, ReportModel, Sha256, number, number_or_none
from app.reports.part import Checked, Part, Source, as_told, each
from app.styles import DASHES, SERIES, Style
from app.text import clean, short
from engine.writing import in_percent

if TYPE_CHECKING:
    from app.reports.document import Report

COUNTS = 512  # codes of a level
CODED = 60  # items whose codes are told
_ON_PAPER = 40  # items of a table there
_FIRST = "These are the codes of the first {} items of the history and the lists."


class Level(ReportModel):
    size: int = Field(ge=1, le=2**24)
    used: int = Field(ge=0)
    perplexity: float
    gini: float
    counts: list[Annotated[int, Field(ge=0)]]
    """Items per code, the most used first."""


class Coded(Item):
    codes: list[int]
    shared_with: int
    """Other items with the same codes."""


class Codes(ReportModel):
    tokenizer: Name
    title: str
    digest: Sha256
    kind: str
    levels: list[Level]
    excess: float
    """(items − different identifiers) / items, as the tokenizer gave them."""
    sharing: float
    """Share of items whose identifier is another one's as well, as the tokenizer gave them."""
    excess_in_use: float
    sharing_in_use: float
    reconstruction: float | None
    items: list[Coded]
    """Of the history and the lists, each once."""


class CodesPart(Part[list[Codes]]):
    name, title, heading, busy, order = "codes", "Semantic IDs", "Semantic IDs", "Reading codes", 70
    content = list[Codes]
    always = True

    def make(self, source: Source) -> list[Codes]:
        """Of the tokenizers that were asked for, else of all."""
        items = [*source.shown_history, *(item for answer in source.answers for item in answer.items)]
        shown = list(dict.fromkeys(items))[:CODED]
        chosen = source.asked.codes if source.asked.codes is not None else list(source.models.tokenizations)
        return [_codes(source, name, shown) for name in chosen]

    def named(self, content: list[Codes]) -> list[str]:
        return []

    def items(self, content: list[Codes]) -> list[Coded]:
        return [item for codes in content for item in codes.items]

    def tables(self, content: list[Codes], report: Report) -> dict[str, Table]:
        levels = [
            (
                *(codes.title, at, level.size, level.used, level.size - level.used, level.perplexity, level.gini),
                level.perplexity / level.size,
                _by_chance(level, report),
            )
            for codes in content
            for at, level in enumerate(codes.levels, 1)
        ]
        of_levels = ("tokenizer", "level", "codes", "used", "dead", "perplexity", "Gini", "normalised perplexity")
        collisions = [
            (codes.title, codes.excess, codes.sharing, codes.excess_in_use, codes.sharing_in_use, codes.reconstruction)
            for codes in content
        ]
        of_collisions = (
            "tokenizer", "collision rate", "items in collision", "collision rate in use", "items in collision in use",
            "reconstruction error",
        )  # fmt: skip
        coded = [
            (codes.title, item.item_id, item.title, " · ".join(map(str, item.codes)), item.shared_with)
            for codes in content
            for item in codes.items
        ]
        of_items = ("tokenizer", "item_id", "title", "codes", "shared with")
        return {
            "codes": Table("Codes by level", (*of_levels, "normalised perplexity, random codes"), levels),
            "codes-collisions": Table("Collisions", of_collisions, collisions),
            "codes-items": Table("Semantic IDs", of_items, coded),
        }

    def blocks(self, content: list[Codes], report: Report) -> list[Block]:
        rows = [
            [
                clean(codes.title, 60),
                _sizes(codes),
                " · ".join(str(level.used) for level in codes.levels[:6]),
                *_normalised(codes, report),
                f"{in_percent(codes.excess, 1)} → {in_percent(codes.excess_in_use, 1)}",
                f"{in_percent(codes.sharing, 1)} → {in_percent(codes.sharing_in_use, 1)}",
            ]
            for codes in content
        ]
        head = [
            "Tokenizer",
            "levels × codes",
            "used",
            "normalised perplexity",
            "of random codes",
            "collision rate",
            "items in collision",
        ]
        drawn = [usage(codes) for codes in content if codes.levels]
        pairs = [drawn[at : at + 2] for at in range(0, len(drawn), 2)]
        tables = self.tables(content, report)
        return [
            table("Codes of every tokenizer", head, rows, [1, 0, 0, 0, 0, 0, 0]),
            quiet(
                "Collision rate: 1 − unique IDs / items. Items in collision: share of items whose ID is another one's as well. "
                "Both as learned → in use; one level more makes collisions rarer by chance alone. Normalised perplexity: the "
                "effective number of codes in use, as a share of the codes of the level."
            ),
            *(figures(*pair, width=100 if len(pair) == 2 else 50, named=True) for pair in pairs),
            *_by_item(content),
            *grid(tables["codes"]),
            *([quiet(_FIRST.format(CODED)) | {"only": "html"}] if _cut(content, report) else []),
            *grid(tables["codes-items"]),
        ]

    def compare(self, report: Report, then: list[Codes], now: list[Codes]) -> Iterator[Checked]:
        yield from each(
            "codes", then, now,
            lambda codes: codes.tokenizer,
            lambda codes: f"codes of {clean(codes.title, 60)}",
            lambda words, codes, other: as_told(report, words, codes, other, "the same, numbers within the tolerance"),
        )  # fmt: skip


PART = CodesPart()


def _codes(source: Source, name: str, shown: list[int]) -> Codes:
    tokenizer = source.models.tokenizations[name]
    figures, table = tokenizer.about.figures, tokenizer.identifiers.codes
    return Codes(
        tokenizer=name,
        title=tokenizer.about.title,
        digest=tokenizer.digest,
        kind=tokenizer.about.tokenizer,
        levels=[
            Level(
                size=level.size,
                used=level.used,
                perplexity=number(level.perplexity),
                gini=number(level.gini),
                counts=level.ordered[:COUNTS].tolist(),
            )
            for level in tokenizers.usage(tokenizer)
        ],
        excess=number(figures.before.excess),
        sharing=number(figures.before.sharing),
        excess_in_use=number(figures.after.excess),
        sharing_in_use=number(figures.after.sharing),
        reconstruction=number_or_none(figures.reconstruction),
        items=[
            Coded(
                **source.item(item).model_dump(),
                codes=list(semantic_ids.path(table, item)),
                shared_with=int((table == table[item]).all(axis=1).sum()) - 1,
            )
            for item in shown
        ],
    )


def _cut(content: list[Codes], report: Report) -> bool:
    """Whether the report tells of items without their codes."""
    listed = {item.item_id for listing in report.lists or [] for item in listing.items}
    return any(listed - {item.item_id for item in codes.items} for codes in content)


def _by_chance(level: Level, report: Report) -> float:
    """Normalised perplexity of random codes, as many as the level has; of all items where not every count is known."""
    items = sum(level.counts) if level.used <= len(level.counts) else report.dataset.items
    return semantic_ids.normalised_by_chance(items, level.size)


def _sizes(codes: Codes) -> str:
    """3 × 256; the codes of each level where these differ, 9 · 40 · 7."""
    sizes = [level.size for level in codes.levels]
    return f"{len(sizes)} × {sizes[0]}" if len(set(sizes)) == 1 else " · ".join(map(str, sizes[:6]))


def _normalised(codes: Codes, report: Report) -> tuple[str, str]:
    """(perplexity of each level as a share of its codes, the same of random codes): "90% · 71% · 40%" each."""
    shares = [in_percent(level.perplexity / level.size) for level in codes.levels[:6]]
    random = [in_percent(_by_chance(level, report)) for level in codes.levels[:6]]
    return " · ".join(shares), random[0] if len(set(random)) == 1 else " · ".join(random)


def _by_item(content: list[Codes]) -> list[Block]:
    """On paper, where no table can be unfolded: a row per item, a column per tokenizer."""
    by_item: dict[str, list[Cell]] = {}
    for column, codes in enumerate(content, 1):
        for item in codes.items[:_ON_PAPER]:
            row = by_item.setdefault(item.item_id, [short(clean(item.title), 60), *[""] * len(content)])
            row[column] = " · ".join(map(str, item.codes)) + (f" (+{item.shared_with})" if item.shared_with else "")
    if not by_item:
        return []
    head = ["item", *(short(clean(codes.title), 24) for codes in content)]
    blocks = [
        h3("Codes of these items"),
        table("Codes of these items", head, list(by_item.values()), [1, *[0] * len(content)]),
        quiet("(+n): n other items have the same codes."),
        *([quiet(_FIRST.format(_ON_PAPER))] if any(len(codes.items) > _ON_PAPER for codes in content) else []),
    ]
    return [block | {"only": "pdf"} for block in blocks]


def usage(codes: Codes) -> Figure:
    """Items per code, a line a level."""
    levels = codes.levels[: len(DASHES)]
    alt = f"Items per code of {clean(codes.title, 60)}, the most used first, a line per level"
    styles = [Style(SERIES[at % len(SERIES)], "circle", "●", DASHES[at]) for at in range(len(levels))]
    names = [f"level {at}" for at in range(1, len(levels) + 1)]
    whole = all(level.size == len(level.counts) for level in levels)  # else those of the rest are not known

    def draw(font: str) -> Any:
        series = [
            charts.Series(name, style.colour, style.dash, level.counts)
            for name, style, level in zip(names, styles, levels, strict=True)
        ]
        even = sorted({(sum(level.counts) / level.size, level.size) for level in levels}) if whole else []
        return charts.lines(series, "codes, the most used first", "items", alt, even=even, font=font)

    def live() -> Any:
        return drawing.usage(
            [
                (drawing.Named(name, style), semantic_ids.Usage(np.array(level.counts, np.int64)))
                for name, style, level in zip(names, styles, levels, strict=True)
            ],
            even=whole,
        )

    return Figure(f"codes-{codes.tokenizer}", alt, draw, live)
