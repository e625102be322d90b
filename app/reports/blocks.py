"""What stands on the pages of a report, said once for HTML and PDF: plain data, which both escape.

A block is a dict with its kind: h3, p, quiet, path, lists, table, figures, key, narrow, grid, terms, link, notes. A cell of
a table or a heading is a text, a number with its interval (`interval`), or a model with its sign (`sign`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from app.reports.document import Report

Block = dict[str, Any]
Cell = str | dict[str, Any]


class Figure(NamedTuple):
    """One figure. key: unique in the report."""

    key: str
    alt: str
    draw: Callable[[str], Markup]
    """font → SVG; "" takes the page's."""
    live: Callable[[], go.Figure | dict[str, Any]]
    """For Plotly."""
    wide: bool = False
    """A phone scrolls it rather than making it small."""


class Table(NamedTuple):
    """Texts are as the data has them; spreadsheets get them neutralised."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def p(text: str) -> Block:
    return {"kind": "p", "text": text}


def quiet(text: str) -> Block:
    return {"kind": "quiet", "text": text}


def h3(cell: Cell) -> Block:
    return {"kind": "h3", "cell": cell}


def figures(*drawn: Figure, width: float = 100, named: bool = False) -> Block:
    """Side by side. width: percent of the sheet. named: each says what it shows beneath it, where no sentence above does."""
    return {"kind": "figures", "figures": drawn, "width": width, "named": named}


def table(label: str, head: Sequence[str], rows: Sequence[Sequence[Cell]], widths: Sequence[int], **more: Any) -> Block:
    """label: what a screen reader calls it. widths: 0 takes what the content needs. Columns of numbers stand to the right."""
    aligns = ["left" if width else "right" for width in widths]
    return {"kind": "table", "label": label, "head": head, "rows": rows, "widths": widths, "aligns": aligns, **more}


def grid(numbers: Table) -> list[Block]:
    """A table to unfold, on a screen alone; nothing where it is empty."""
    return [{"kind": "grid", "table": numbers}] if numbers.rows else []


def key(cells: Iterable[Cell], *, drawn: bool = False) -> Block:
    """What signs and colours stand for. drawn: Plotly draws it, too, where it draws the figure."""
    return {"kind": "key", "cells": list(cells), "drawn": drawn}


def sign(report: Report, model: str, title: str = "") -> Cell:
    """A model with its sign. title: in place of its own."""
    known = report.model(model)
    return {
        "sign": known.sign, "marker": known.marker, "colour": known.colour, "words": title or report.titles[model]
    }  # fmt: skip


def interval(mean: float, low: float, high: float, mark: str = "") -> Cell:
    """mark: "best", "level", or ""."""
    sign = {"best": " *", "level": " ≈", "": ""}[mark]
    return {"number": f"{mean:.3f}{sign}", "small": f"({low:.3f} – {high:.3f})", "strong": mark == "best"}
