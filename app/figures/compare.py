"""What the page Compare shows: the lists as plain data for the widget, and its figures. Titles are escaped here."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from app import styles
from app.analysis import model_card, model_flow
from app.analysis.recommend import Answer, RankTable, bar, moves, shared, tie_words
from app.figures.attention import beside as lines
from app.figures.style import NAMED_TICKS
from app.text import clean, label, md, ordinal, percent, short, whole_rank, wide
from engine.runtime import LeaveOneOut, Zoo

_COLUMN = 2.3  # of one model, whose bars are drawn from −1 to 1


def cards(
    models: Zoo,
    answers: Sequence[Answer],
    history: tuple[int, ...],
    *,
    target: int | None = None,
    chosen: int | None = None,
) -> list[dict[str, Any]]:
    """The lists for `widgets.recommendations`."""
    counts = shared(answers)
    able = sum(answer.top is not None for answer in answers)
    shown_cards = []
    for answer in answers:
        changes = moves(answer)
        rows = [] if answer.top is None else [_row(models, item, rank) for rank, item in enumerate(answer.items, 1)]
        shares = None if answer.top is None else answer.top.share
        for place, row in enumerate(rows):
            times = counts[row["item"]]
            if shares is not None:
                row.update(bar=round(bar(shares[place], shares[0]), 3), share=percent(shares[place]))
            others = answer.ties.get(row["item"])
            if others:
                row.update(tie=f"tied with {len(others):,}", tie_help=tie_words(models, others))
            if times > 1 and able > 1:
                row.update(badge=f"{times} of {able}", badge_help=f"Recommended by {times} of the {able} models")
            if row["item"] in changes:
                change, words = changes[row["item"]]
                if change != "same":
                    row.update(change=change, moved=words)
        if target is not None and answer.target_rank is not None and answer.top is not None:
            target_row = next((row for row in rows if row["item"] == target), None)
            if target_row is None:
                target_row = _row(models, target, _rank(answer.target_rank), beyond=True)
                rows.append(target_row)
            target_row["truth"] = True
        for row in rows:
            item = row.pop("item")
            row.update(chosen=item == chosen, known=history.count(item))
        shown_cards.append(
            {
                "name": answer.name,
                **styles.named(answer.title, answer.style),
                "note": answer.note,
                "repeats": not models.bundles[answer.name].excludes_history,
                "can": {term: clean(words) for term, words in model_card.in_short(models.bundles[answer.name]).items()},
                "cannot": None if answer.cannot is None else clean(answer.cannot),
                "rows": rows,
                "before": _before(models, answer),
            }
        )
    return shown_cards


def _before(models: Zoo, answer: Answer) -> list[dict[str, Any]] | None:
    """The list of A beside that of B."""
    if answer.before is None:
        return None
    rows = [_row(models, item, rank) for rank, item in enumerate(answer.before.items.tolist(), 1)]
    return [row | {"dropped": row.pop("item") not in answer.items} for row in rows]


def rank_table(
    models: Zoo,
    table: RankTable,
    history: tuple[int, ...],
    k: int,
    *,
    target: int | None = None,
    chosen: int | None = None,
) -> dict[str, Any]:
    """The ranks for `widgets.item_ranks`."""
    rows = []
    for place, item in enumerate(table.items):
        row = _row(models, item, place + 1)
        del row["item"], row["rank"]
        before = [None] * len(table.answers) if table.before is None else table.before[place].tolist()
        cells = [_cell(rank, was) for rank, was in zip(table.ranks[place].tolist(), before, strict=True)]
        rows.append(
            row
            | {"mean": float(table.mean[place]), "cells": cells, "truth": item == target, "chosen": item == chosen}
            | {"known": history.count(item)}
        )
    heads = [{**styles.named(answer.title, answer.style), "note": answer.note} for answer in table.answers]
    return {"k": k, "mean": f"Mean over the models; a rank beyond {k} counts as {k + 1}", "models": heads, "rows": rows}


def _cell(rank: float, before: float | None) -> dict[str, Any] | None:
    if math.isnan(rank):
        return None
    cell: dict[str, Any] = {"rank": rank, "words": whole_rank(rank), "exact": f"rank {_rank(rank)}"}
    if before is not None and not math.isnan(before) and before != rank:
        sign, change = ("↑", "up") if rank < before else ("↓", "down")
        cell |= {"change": change, "moved": sign + whole_rank(abs(before - rank))}
        cell["exact"] += f", with A {_rank(before)}"
    return cell


def _row(models: Zoo, item: int, rank: int | str, **more: Any) -> dict[str, Any]:
    return {"item": item, "rank": str(rank), **styles.entry(models, item, 160), **more}


def flows(models: Zoo, answers: Sequence[Answer], history: tuple[int, ...]) -> list[dict[str, Any]]:
    """How each model came to its list, for `widgets.model_flow`."""
    return [
        {
            **styles.named(answer.title, answer.style),
            "steps": [
                {"title": step.title, "detail": clean(step.detail, 300)}
                for step in model_flow.steps(models, answer.name, history, answer.top)
            ],
        }
        for answer in answers
        if answer.top is not None
    ]


def truth_words(models: Zoo, answers: Sequence[Answer], target: int, side: str = "") -> str:
    """What truly came next, and where each model ranks it, as Markdown. side: of a what-if, the history of these ranks."""
    ranks = [f"{md(answer.title)} {_rank(answer.target_rank)}" for answer in answers if answer.target_rank is not None]
    sentence = f"What came next: **{md(styles.titled(models, target))}**."
    return f"{sentence} Its rank{f' given {side}' if side else ''}: {' · '.join(ranks)}." if ranks else sentence


def _rank(rank: float | None) -> str:
    return "–" if rank is None else whole_rank(rank)


# --- figures

# Viridis as far as white numbers on it keep a contrast of 4.5.
_UNDER_WHITE = ((0.0, "#440154"), (0.5, "#3b528b"), (1.0, "#26738e"))
_MEASURES = {"shared": ("shared items", ".0f"), "jaccard": ("Jaccard", ".2f"), "rbo": ("RBO", ".2f")}


def agreement(names: Sequence[str], values: np.ndarray, measure: str, k: int) -> dict[str, Any]:
    """A figure: how much each pair of lists agrees. values: [names, names], of one of `recommend.MEASURES`."""
    text, form = _MEASURES[measure]
    shown = [clean(name, 30) for name in names]
    labels = [label(name, 30) for name in names]
    rows = values[1:].astype(float).tolist()
    pairs = [[row[x] if x <= y else None for x in range(len(names) - 1)] for y, row in enumerate(rows)]
    axis = {**NAMED_TICKS, "tickvals": list(range(len(names) - 1))}
    longest = max(map(wide, shown[:-1]), default=0)
    # the names below the figure, and the pixels that they take: upright, many have room side by side on a phone
    angle, below = ("auto", 0) if len(names) <= 4 else (-30, longest // 2) if len(names) <= 12 else (-90, longest)
    return {
        "data": [
            {
                "type": "heatmap",
                "z": pairs,
                "customdata": [[[row_name, other] for other in labels[:-1]] for row_name in labels[1:]],
                "zmin": 0,
                "zmax": float(k) if measure == "shared" else 1.0,
                "colorscale": _UNDER_WHITE,
                "textfont": {"color": "#ffffff"},
                "showscale": False,
                "xgap": 3,
                "ygap": 3,
                "texttemplate": f"%{{z:{form}}}",
                "hovertemplate": f"%{{customdata[0]}} and %{{customdata[1]}}<br>{text}: %{{z:{form}}}<extra></extra>",
                "hoverongaps": False,
            }
        ],
        "layout": {
            "xaxis": {
                **axis,
                "ticktext": labels[:-1],
                "side": "bottom",
                "tickangle": angle,
            },
            "yaxis": {**axis, "ticktext": labels[1:], "autorange": "reversed"},
            "height": 50 + 46 * (len(names) - 1),
            # With room for its labels from the start, a figure is not drawn a second time.
            "margin": {
                "l": 28 + max(map(wide, shown[1:]), default=0),
                "r": 10,
                "t": 10,
                "b": 45 + below,
            },
        },
    }


def effect_bars(
    columns: Sequence[tuple[str, styles.Style, LeaveOneOut]], titles: Sequence[str], places: Sequence[int]
) -> dict[str, Any]:
    """Bars of how far an item would fall without each event, one column per model; all share one scale, that of
    `LeaveOneOut.move`. columns: (title, look, answer) of each model; titles: of all events; places: those that are drawn."""
    drawn = list(places)
    moves = np.array([effect.move for _, _, effect in columns])[:, drawn]
    reach = float(np.nan_to_num(np.abs(moves)).max(initial=0.0)) or 1.0
    hovers = [label(titles[place]) for place in places]
    names = [short(clean(titles[place]), 22) for place in places]
    traces: list[dict[str, Any]] = []
    for column, (model, style, effect) in enumerate(columns):
        name = label(model)
        ranks = [ordinal(float(rank)) if rank == rank else "no answer" for rank in effect.rank_without[drawn]]
        beside = lines(effect.log_probability_effect[drawn], effect.effect[drawn])
        traces.append(
            {
                "type": "bar",
                "x": [None if move != move else move / reach for move in moves[column].tolist()],
                "y": list(range(len(places))),
                "base": column * _COLUMN,
                "orientation": "h",
                "name": name,
                "marker": {"color": style.colour, "line": {"width": 0}},
                "customdata": [list(entry) for entry in zip(hovers, ranks, beside, strict=True)],
                "hovertemplate": f"<b>{name}</b><br>{ordinal(effect.rank)} → %{{customdata[1]}} without %{{customdata[0]}}"
                "%{customdata[2]}<extra></extra>",
            }
        )
    figure: dict[str, Any] = {
        "data": traces,
        "layout": {
            # One axis for all models: Plotly takes longer for every axis than for everything drawn along it.
            "xaxis": {
                **NAMED_TICKS,
                "range": [-_COLUMN / 2, (len(traces) - 0.5) * _COLUMN],
                "tickvals": [column * _COLUMN for column in range(len(traces))],
                "ticktext": [
                    f'<span style="color:{style.colour}">{label(style.sign)}</span>' for _, style, _ in columns
                ],
                "tickfont": {"size": 14},
                "tickangle": 0,
                "ticks": "outside",
                "ticklen": 16,
                "tickcolor": "rgba(0,0,0,0)",
                "side": "top",
                "showgrid": True,
                "gridwidth": 1,
            },
            "yaxis": {
                **NAMED_TICKS,
                "tickvals": list(range(len(places))),
                "ticktext": [f"{place + 1}  {label(name)}" for place, name in zip(places, names, strict=True)],
                "autorange": "reversed",
            },
            "height": 85 + 30 * len(places),
            # With room for its labels from the start, a figure is not drawn a second time.
            "margin": {"l": 25 + max(map(wide, names), default=0), "r": 10, "t": 55, "b": 10},
            "showlegend": False,
            "barmode": "overlay",
            "bargap": 0.35,
            "hoverlabel": {"align": "left"},
        },
    }
    return figure
