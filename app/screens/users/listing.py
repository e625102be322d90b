"""Users: the list, a page at a time, with the ranks of the held-out item; who is listed, in which order: all in the address."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import streamlit as st

from app import export, guard, zoo
from app.analysis import model_card, users
from app.components import choice, widgets
from app.screens.users import MAX_TEXT, PER_PAGE, user
from app.session import state
from app.text import clean, md, whole_rank
from engine.runtime import Zoo
from engine.writing import count

_LISTED = 4  # models at most
_STEPS = (0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
_CALLED = {"both": "Both", "neither": "Neither"}


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
                "by": users.RANK + name, "title": title, "sign": look.sign, "colour": look.colour, "number": True,
                "help": f"Rank of the held-out item in {title}; ties share their mean rank",
                "wide": shown.pair is not None and name not in shown.pair,
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
    return {"text": whole_rank(rank), "shade": max(0.0, 1 - math.log(rank) / math.log(max(items, 2)))}


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
    before = chosen(models)
    falls_first = by in ("length", "difference")  # the longest, and those on whom models differ most
    falling = not before.falling if by == before.sort else falls_first
    state.choose(sort=by, order="down" if falling else "up", page=None, user=None)


# --- who is listed


def pair(models: Zoo) -> users.Pair | None:
    """The two models that are compared; None where there are no two."""
    choices, usual = state.get().own, users.usual_pair(models)
    if usual is None:
        return None
    first = choices.get("first", usual[0])
    others = [
        name for name in (choices.get("second"), *usual, *users.table(models).models) if name not in (None, first)
    ]
    return first, str(others[0])


def chosen(models: Zoo) -> users.UserFilter:
    now = state.get()
    compared = pair(models)
    sort = now.own.get("sort", users.SORTS[0])
    if sort == "difference" and compared is None:
        sort = users.SORTS[0]
    longest = int(users.table(models).length.max(initial=0))
    return users.UserFilter(
        text=now.own.get("find", ""),
        least=choice.number(now.own, "least", 0, longest),
        most=choice.number(now.own, "most", longest, longest),
        pair=compared,
        hits=now.own.get("hits", "") if compared is not None else "",
        k=now.k,
        sort=sort,
        falling=now.own.get("order") == "down",
    )


def controls(models: Zoo, selection: users.UserFilter) -> None:
    find, length = st.columns(2, gap="medium")
    with find:
        choice.searched(
            "Find a user", key="users_find", most=MAX_TEXT, clears=("page",), placeholder="Name or number …"
        )
    with length:
        _length(models, selection)
    if selection.pair is None:
        return
    table = users.table(models)
    titles = {name: clean(models.bundles[name].manifest.title) for name in table.models}
    first, second = selection.pair
    clears = ("hits", "page")
    with st.container(horizontal=True, gap="small"):  # in one row on a phone, too
        choice.selected(
            "Compare", "first", titles, first, key=f"users_first_{state.get().dataset}", clears=("second", *clears)
        )
        others = {name: title for name, title in titles.items() if name != first}
        choice.selected(
            "with", "second", others, second, key=f"users_second_{state.get().dataset}_{first}", clears=clears
        )
    _hits(models, selection)


def _length(models: Zoo, selection: users.UserFilter) -> None:
    lengths = users.table(models).length
    low, high = int(lengths.min()), int(lengths.max())
    if low == high:
        return
    most = high if selection.most is None else selection.most
    ends = {low, high, max(low, selection.least), max(low, most)}
    steps = sorted({step for step in _STEPS if low < step < high} | ends)
    key = f"users_length_{state.get().dataset}"
    bounds = sorted((max(low, selection.least), max(low, most)))
    st.session_state[key] = (bounds[0], bounds[1])
    bounded = guard.callback(_bounded, key, low, high)
    st.select_slider("Items in the history", steps, key=key, on_change=bounded, format_func="{:,}".format)


def _bounded(key: str, low: int, high: int) -> None:
    bounds = st.session_state.get(key)
    if isinstance(bounds, (tuple, list)) and len(bounds) == 2 and all(isinstance(bound, int) for bound in bounds):
        least, most = bounds
        state.choose(
            least=str(least) if low < least <= high else None,
            most=str(most) if low <= most < high else None,
            page=None,
        )


def _hits(models: Zoo, selection: users.UserFilter) -> None:
    """How many users' held-out items are in the top k of both models, of one alone, of neither; a click lists them."""
    assert selection.pair is not None
    listed = users.filtered(models, selection)
    parts = users.hits(users.table(models), selection.pair, selection.k)
    looks = [zoo.style(models, name).sign for name in selection.pair]
    titles = [md(models.bundles[name].manifest.title) for name in selection.pair]
    called = {
        **_CALLED,
        **{name: f"{look} {title} only" for name, look, title in zip(("first", "second"), looks, titles, strict=True)},
    }
    options = {"all": f"All {int(listed.sum()):,}"}
    options |= {name: f"{called[name]} {int((listed & parts[name]).sum()):,}" for name in users.HITS}
    key = f"users_hits_{state.get().dataset}"
    st.session_state[key] = selection.hits or "all"
    st.segmented_control(
        f"Users with the held-out item in the top {selection.k} of",
        list(options),
        format_func=lambda name: options.get(name, name),
        required=True,
        key=key,
        wrap=True,
        on_change=guard.callback(_take_hits, key),
    )
    unknown = listed & ~np.any(list(parts.values()), axis=0)
    if unknown.any():
        st.caption(
            f"{count(int(unknown.sum()), 'user')} in none of the groups: a model has no rank for them, or none within its "
            f"beam, which is narrower than {selection.k}."
        )


def _take_hits(key: str) -> None:
    part = st.session_state.get(key)
    state.choose(hits=part if part in users.HITS else None, page=None)
