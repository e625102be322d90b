"""Users: who is listed, and in which order. All of it is in the address."""

from __future__ import annotations

import numpy as np
import streamlit as st

from app import guard, zoo
from app.analysis import users
from app.components import choice
from app.screens.users import MAX_TEXT
from app.session import state
from app.text import clean, count, md
from engine.runtime import Zoo

_STEPS = (0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
_CALLED = {"both": "Both", "neither": "Neither"}


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
    st.select_slider("Items in the history", steps, key=key, on_change=guard.callback(_bounded, key, low, high))


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
