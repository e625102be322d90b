"""Users: the list, a page at a time, with the ranks of the held-out item."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import streamlit as st

from app import export, zoo
from app.analysis import model_card, users
from app.components import choice, widgets
from app.screens.users import PER_PAGE, selection, user
from app.session import state
from app.text import clean
from engine.runtime import Zoo

_LISTED = 4  # models at most


def model_names(models: Zoo, shown: users.UserFilter, most: int) -> tuple[str, ...]:
    """The models whose ranks are shown: the two that are compared, then those of Compare."""
    evaluated = users.table(models).models
    pair = shown.pair or ()
    others = [name for name in model_card.shown(models, state.get().models) if name in evaluated and name not in pair]
    return (*pair, *others)[:most]


def on_page(rows: users.Ints) -> tuple[users.Ints, int, int]:
    """(those of the rows that are on the page of now, its number, how many pages there are)"""
    pages = -(-len(rows) // PER_PAGE)
    page_number = max(min(int(state.get().own.get("page", 1)), pages), 1)
    return rows[(page_number - 1) * PER_PAGE :][:PER_PAGE], page_number, pages


def show(models: Zoo, shown: users.UserFilter, rows: users.Ints, row: int | None) -> None:
    if not len(rows):
        st.info("No user matches. Change the length, the top-k filter or the search.")
        return
    part, page_number, pages = on_page(rows)
    table = users.table(models)
    widgets.rank_table(
        _columns(models, shown),
        [_line(models, table, shown, int(listed)) for listed in part],
        key=f"users_table_{state.get().dataset}",
        on_act=act,
        label="Users with a held-out item, and its rank in each model",
        sort=shown.sort,
        falling=shown.falling,
        chosen=None if row is None else models.users["user_id"][row].as_py(),
        action="Open in Compare",
        opens="users_user",
    )
    if st.session_state.pop("users_open", False):
        st.switch_page("screens/compare/page.py", query_params=state.link_params())
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        choice.paged(pages, page_number, key="users_page", clears=("user",), max_visible_pages=5)
        export.table_buttons(lambda: users.as_frame(models, rows), "users", key="users")


def _columns(models: Zoo, shown: users.UserFilter) -> list[dict[str, object]]:
    columns: list[dict[str, object]] = [
        {"by": "user", "title": "User"},
        {"by": "length", "title": "Items", "help": "Items in the history", "number": True},
        {"title": "Held-out item", "text": True, "wide": True},
    ]
    for name in model_names(models, shown, _LISTED):
        look, title = zoo.style(models, name), clean(models.bundles[name].manifest.title, 40)
        columns.append(
            {
                "by": users.RANK + name, "title": title, "help": f"Rank of the held-out item in {title}", "sign": look.sign,
                "colour": look.colour, "number": True, "wide": shown.pair is not None and name not in shown.pair,
            }
        )  # fmt: skip
    if shown.pair is not None:
        first, second = (clean(models.bundles[name].manifest.title, 40) for name in shown.pair)
        help_ = f"Worse rank ÷ better rank of {first} and {second}, and the sign of the better model"
        columns.append({"by": "difference", "title": "Ratio", "help": help_, "number": True, "wide": True})
    return columns


def _line(models: Zoo, table: users.UserTable, shown: users.UserFilter, row: int) -> dict[str, object]:
    user_id = models.users["user_id"][row].as_py()
    held_out = user.held_out(models, row)
    cells: list[dict[str, object]] = [
        {"text": clean(user_id, 60)},
        {"text": f"{table.length[row]:,}"},
        {"text": held_out, "help": held_out},
    ]
    cells += [_rank(table, name, row, len(models)) for name in model_names(models, shown, _LISTED)]
    if shown.pair is not None:
        ratio = float(users.difference(table, shown.pair)[row])
        times, beyond = 2 ** abs(ratio), any(math.isinf(table.of(name)[row]) for name in shown.pair)
        known = not math.isnan(ratio) and bool(ratio or not beyond)
        text = f"{'≥ ' * beyond}{times:,.{int(times < 10)}f}×" if known else "–"
        cell: dict[str, object] = {"text": text}
        if ratio and not math.isnan(ratio):
            look = zoo.style(models, shown.pair[ratio < 0])
            cell |= {"sign": look.sign, "colour": look.colour}
        cells.append(cell)
    return {"id": user_id, "detail": held_out, "cells": cells}


def _rank(table: users.UserTable, name: str, row: int, items: int) -> dict[str, object]:
    rank = float(table.of(name)[row])
    if math.isnan(rank):
        return {"text": "–", "help": "not evaluated on this user"}
    if math.isinf(rank):
        return {"text": f"> {table.width(name):,}", "help": "beyond the beam, where no rank is known"}
    return {"text": user.rank_words(rank), "shade": max(0.0, 1 - math.log(rank) / math.log(max(items, 2)))}


def act(click: Mapping[str, Any]) -> None:
    """Sorts, chooses a user, or takes over a user's history. What comes from the browser is not believed."""
    models = zoo.open_zoo(state.get().dataset)
    user_id, by = click.get("id"), click.get("by")
    if click.get("do") == "sort" and isinstance(by, str):
        _sort_by(by, models)
    elif click.get("do") == "choose" and isinstance(user_id, str):
        user.choose(user_id)
    elif click.get("do") == "open" and isinstance(user_id, str):
        state.choose_user(models, user_id)
        st.session_state["users_open"] = state.get().user == user_id


def _sort_by(by: str, models: Zoo) -> None:
    if by not in users.SORTS and by.removeprefix(users.RANK) not in users.table(models).models:
        return
    before = selection.chosen(models)
    falls_first = by in ("length", "difference")  # the longest, and those on whom models differ most
    falling = not before.falling if by == before.sort else falls_first
    state.choose(sort=by, order="down" if falling else "up", page=None, user=None)
