"""The codes of a tokenizer on a map: where their vectors lie, who has them, and the figure."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go
import pyarrow as pa

from app.analysis.map_points import Points
from app.figures.map import COLOUR_BAR, Look, Range, add_line, lay_out, named_places, path_line
from app.styles import GREY, SCALE, SERIES
from app.text import label
from engine.writing import count

Ints = npt.NDArray[np.int64]
BY = ("level", "cluster", "items")
CALLED = {"level": "Level", "cluster": "Cluster", "items": "Number of items"}
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star")
SIGNS = ("●", "■", "◆", "▲", "✚", "★")
TOP = 3  # items of a code that its point names
NUMBERED, NUMBERED_SMALL = 130, 48
"""Codes up to which each has its number beside it, on a map with the page to itself or not."""
_NOBODY = GREY


@dataclass(frozen=True)
class Codes:
    """One row per code. level: from 0. cluster: from 0, −1 where there is none."""

    level: Ints
    code: Ints
    cluster: Ints
    points: Points
    items: Ints
    """How many items have it."""
    top: tuple[tuple[int, ...], ...]
    """Its items that are taken most, at most TOP."""
    own: npt.NDArray[np.int32]
    """[items, levels]: the codes of every item, −1 in trailing places."""

    @classmethod
    def read(
        cls, table: pa.Table, plane: pa.Table | None, codes: npt.NDArray[np.int32], popularity: npt.NDArray[np.int64]
    ) -> Codes:
        """table, plane: `Tokenization.codebooks_map()` and `.plane`; popularity: [items]."""
        level, code = (table[name].to_numpy().astype(np.int64) for name in ("level", "code"))
        clusters: dict[tuple[int, int], int] = {}
        if plane is not None:
            of = (plane[name].to_pylist() for name in ("level", "code", "cluster"))
            clusters = {(at, code_at): number for at, code_at, number in zip(*of, strict=True)}
        order = np.argsort(-popularity, kind="stable")
        members: dict[tuple[int, int], list[int]] = {}
        for item in order.tolist():
            for at, code_at in enumerate(codes[item].tolist()):
                members.setdefault((at, code_at), []).append(item)
        places = list(zip(level.tolist(), code.tolist(), strict=True))
        held = [members.get(place, []) for place in places]
        return cls(
            level,
            code,
            np.array([clusters.get(place, -1) for place in places], np.int64),
            Points(table["x"].to_numpy(), table["y"].to_numpy()),
            np.array([len(items) for items in held], np.int64),
            tuple(tuple(items[:TOP]) for items in held),
            codes,
        )

    def __len__(self) -> int:
        return len(self.code)

    @property
    def levels(self) -> int:
        return int(self.level.max(initial=-1)) + 1

    def name(self, row: int) -> str:
        """1-12: level from 1, code."""
        return f"{self.level[row] + 1}-{self.code[row]}"

    @functools.cached_property
    def rows(self) -> dict[str, int]:
        """Name → row."""
        return {self.name(row): row for row in range(len(self))}

    def having(self, rows: Iterable[int]) -> Ints:
        """The items that have any of these codes."""
        mask = np.zeros(len(self.own), bool)
        for row in rows:
            mask |= self.own[:, self.level[row]] == self.code[row]
        return np.flatnonzero(mask)

    def path(self, item: int) -> tuple[int, ...]:
        """The rows of an item's codes, level after level."""
        names = (f"{level + 1}-{code}" for level, code in enumerate(self.own[item].tolist()))
        rows = self.rows
        return tuple(rows[name] for name in names if name in rows)

    def held(self, items: Iterable[int]) -> tuple[int, ...]:
        """The rows of all codes of these items, ascending."""
        part, rows = self.own[list(items)], self.rows
        names = (f"{level + 1}-{code}" for level in range(part.shape[1]) for code in np.unique(part[:, level]).tolist())
        return tuple(sorted(rows[name] for name in names if name in rows))


@dataclass(frozen=True)
class Marks:
    """Rows of codes that stand out."""

    history: tuple[int, ...] = ()
    """The first codes of the history's items, oldest first."""
    hits: tuple[int, ...] = ()
    """Codes of items that the search found."""
    path: tuple[int, ...] = ()
    """The codes of the chosen item, level after level."""
    chosen: int | None = None
    selection: tuple[int, ...] = ()


def figure(
    codes: Codes,
    by: str,
    marks: Marks,
    look: Look,
    titles: Sequence[str],
    *,
    small: bool = False,
    view: Range | None = None,
    height: float | None = None,
) -> go.Figure:
    """by: one of BY. titles: of every item, not escaped. small: the map shares the page with another one."""
    fig = go.Figure()
    words = [_words(codes, row, titles) for row in range(len(codes))]
    numbered = len(codes) <= (NUMBERED_SMALL if small else NUMBERED)
    lit = np.zeros(len(codes), bool)
    lit[list(marks.selection)] = True
    for name, rows, colour in _groups(codes, by):
        _crowd(fig, codes, rows, name, colour, words, lit if marks.selection else None, look, numbered)
    _overlay(fig, codes, marks, look, words)
    return lay_out(fig, height, view, look, legend=by != "items")


def words_of(codes: Codes, row: int) -> str:
    """Level 1, code 12"""
    return f"Level {codes.level[row] + 1}, code {codes.code[row]}"


def alt(title: str, codes: Codes, by: str, marks: Marks) -> str:
    """The map in a sentence."""
    parts = [
        f"Map of {title}, {len(codes):,} codes of {count(codes.levels, 'level')}, coloured by {CALLED[by].lower()}"
    ]
    if marks.path:
        parts.append("the chosen item's codes joined by a line")
    if marks.chosen is not None:
        parts.append(f"{words_of(codes, marks.chosen).lower()} chosen")
    return "; ".join(parts) + "."


def table(codes: Codes, titles: Sequence[str]) -> pd.DataFrame:
    """The map's twin: every code, the most used first within its level."""
    order = np.lexsort((codes.code, -codes.items, codes.level)).tolist()
    return pd.DataFrame(
        {
            "Level": [int(codes.level[row]) + 1 for row in order],
            "Code": [int(codes.code[row]) for row in order],
            "Cluster": [int(codes.cluster[row]) + 1 if codes.cluster[row] >= 0 else None for row in order],
            "Items": [int(codes.items[row]) for row in order],
            "Most popular": ["; ".join(titles[item] for item in codes.top[row]) for row in order],
            "x": codes.points.x[order],
            "y": codes.points.y[order],
        }
    )


def signs(codes: Codes) -> str:
    """● level 1 · ■ level 2"""
    return " · ".join(f"{SIGNS[level % len(SIGNS)]} level {level + 1}" for level in range(codes.levels))


def _words(codes: Codes, row: int, titles: Sequence[str]) -> str:
    cluster = f", cluster {codes.cluster[row] + 1}" if codes.cluster[row] >= 0 else ""
    lines = [
        f"{words_of(codes, row)}{cluster}",
        count(int(codes.items[row]), "item") if codes.items[row] else "no item",
    ]
    lines += [label(titles[item], 60) for item in codes.top[row]]
    more = int(codes.items[row]) - len(codes.top[row])
    return "<br>".join(lines + ([f"and {more:,} more"] if more > 0 else []))


def _groups(codes: Codes, by: str) -> list[tuple[str, Ints, str | None]]:
    """(name, rows, colour; None: by the number of items)"""
    if by == "items":
        used = codes.items > 0
        return [("no item", np.flatnonzero(~used), _NOBODY), ("items", np.flatnonzero(used), None)]
    values = codes.level if by == "level" else codes.cluster
    return [
        (f"{by} {value + 1}" if value >= 0 else "no cluster", np.flatnonzero(values == value),
         SERIES[value % len(SERIES)] if value >= 0 else _NOBODY)
        for value in np.unique(values).tolist()
    ]  # fmt: skip


def _crowd(
    fig: go.Figure,
    codes: Codes,
    rows: Ints,
    name: str,
    colour: str | None,
    words: Sequence[str],
    lit: npt.NDArray[np.bool_] | None,
    look: Look,
    numbered: bool,
) -> None:
    if not len(rows):
        return
    items = codes.items[rows]
    symbols = [SYMBOLS[level % len(SYMBOLS)] for level in codes.level[rows].tolist()]
    marker: dict[str, Any] = {
        "symbol": [symbol if some else f"{symbol}-open" for symbol, some in zip(symbols, items, strict=True)],
        "size": 7 + 13 * np.sqrt(items / max(int(codes.items.max(initial=1)), 1)),
        "opacity": 0.85,
        "line": {"width": 1, "color": colour or look.paper},
    }
    if colour is None:
        marker |= {
            "color": items,
            "colorscale": SCALE,
            "colorbar": {**COLOUR_BAR, "title": {"text": "Items", "side": "top"}, "tickformat": "d"},
        }
    else:
        marker["color"] = colour
    fig.add_scattergl(
        x=codes.points.x[rows],
        y=codes.points.y[rows],
        mode="markers+text" if numbered else "markers",
        text=[str(code) for code in codes.code[rows].tolist()] if numbered else None,
        textposition="top center",
        textfont={"size": 10, "color": look.quiet},
        name=name,
        customdata=[codes.name(row) for row in rows.tolist()],
        hovertext=[words[row] for row in rows.tolist()],
        hoverinfo="text",
        marker=marker,
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 0.15}},
        **({} if lit is None else {"selectedpoints": np.flatnonzero(lit[rows])}),
    )


def _overlay(fig: go.Figure, codes: Codes, marks: Marks, look: Look, words: Sequence[str]) -> None:
    def add(rows: Sequence[int], name: str, marker: dict[str, Any], texts: list[str] | None = None) -> None:
        if rows:
            fig.add_scattergl(
                x=codes.points.x[list(rows)],
                y=codes.points.y[list(rows)],
                mode="markers+text" if texts else "markers",
                text=texts,
                textfont={"color": look.paper, "size": 11},
                textposition="middle center",
                hovertext=[words[row] for row in rows],
                hoverinfo="text",
                customdata=[codes.name(row) for row in rows],
                name=name,
                marker=marker,
                showlegend=False,
                unselected={"marker": {"opacity": 1}, "textfont": {"color": look.paper}},
            )

    add(marks.hits, "Found", {"size": 24, "symbol": "circle-open", "color": look.accent, "line": {"width": 2}})
    if len(marks.path) > 1:
        x, y, line = (
            codes.points.x[list(marks.path)],
            codes.points.y[list(marks.path)],
            {"color": look.accent, "width": 1.5},
        )
        add_line(fig, x, y, "Codes of the chosen item", line)
    add(marks.path, "Codes of the chosen item", {"size": 22, "symbol": "circle-open", "color": look.accent,
                                                 "line": {"width": 3}})  # fmt: skip
    path_line(fig, codes.points, list(marks.history), look)
    places = named_places(marks.history)
    add(
        list(places), "History", {"size": 20, "color": look.ink, "line": {"width": 1.5, "color": look.paper}},
        [places[row].split(", ")[-1] for row in places],
    )  # fmt: skip
    if marks.chosen is not None:
        add([marks.chosen], "Chosen", {"size": 18, "symbol": "star", "color": look.accent,
                                       "line": {"width": 1.5, "color": look.paper}})  # fmt: skip
