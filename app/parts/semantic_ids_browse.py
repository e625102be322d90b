"""The items of some codes: chosen level by level, to look at, to send to the map or to the history."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import streamlit as st

from app import choices, export, guard, state
from app.analysis import facets, semantic_ids
from app.parts.semantic_ids import Page, choose_prefix
from app.text import count, md
from app.widgets import adding, choice
from engine.runtime import Tokenization

ROWS = 200
_ANY = -1


def show(page: Page) -> None:
    st.subheader("Items by their codes", anchor=False)
    own = state.get().own
    name = choices.browsed(page.models, own)
    name = name if name in page.names else page.names[0]
    if len(page.names) > 1:
        options = {one.name: f"{page.look(one).sign} {md(one.about.title)}" for one in page.shown}
        name = choice.segmented("Codes by", "of", options, name, key="semantic_of", clears=("prefix",))
    one = page.models.tokenizations[name]
    prefix = choices.codes(own)
    _levels(one, prefix)
    items = semantic_ids.with_prefix(one.own, prefix)
    order = items[np.lexsort((items, -page.models.popularity[items]))]
    _found(page, one, prefix, order)


def _levels(one: Tokenization, prefix: tuple[int, ...]) -> None:
    """A list of codes for every level chosen so far, and the next one."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for depth in range(min(len(prefix) + 1, len(one.about.shape.own))):
            possible = semantic_ids.following(one.own, prefix[:depth])
            if not possible:
                break
            items = dict(possible)
            key = f"semantic_prefix_{one.name}_{depth}"
            chosen = prefix[depth] if depth < len(prefix) else _ANY
            st.session_state[key] = chosen if chosen in items else _ANY
            st.selectbox(
                f"Level {depth + 1}",
                [_ANY, *items],
                format_func=functools.partial(_called, items),
                key=key,
                width=170,
                on_change=guard.callback(_take),
                args=(one.name, key, prefix[:depth]),
            )
        if prefix:
            st.button(
                "All items", type="tertiary", key="semantic_prefix_clear", on_click=guard.callback(choose_prefix),
                args=(one.name, ()),
            )  # fmt: skip


def _called(items: dict[int, int], code: int) -> str:
    return f"{code} – {count(items[code], 'item')}" if code in items else "Any"


def _take(name: str, key: str, before: tuple[int, ...]) -> None:
    code = st.session_state.get(key)
    if isinstance(code, int):
        choose_prefix(name, before if code == _ANY else (*before, code))


def _found(page: Page, one: Tokenization, prefix: tuple[int, ...], order: np.ndarray) -> None:
    models = page.models
    if not len(order):
        st.info("No item has these codes. Choose others.", icon=":material/search_off:")
        return
    words = (
        f"{count(len(order), 'item')} with codes that begin {semantic_ids.spelled(prefix)}" if prefix else "All items"
    )
    most = "most taken" if models.has_log else "first"
    more = f", the {ROWS} {most} listed" if len(order) > ROWS else ""
    st.caption(md(f"{words}{more}."))
    with st.container(horizontal=True, vertical_alignment="center"):
        adding.several(
            [models.item_ids[item] for item in order.tolist()],
            key="semantic_add",
            most=most,
            on_add=_add,
            why_not=None if prefix else "Choose a code first",
        )
        if st.button(
            "Show on the map",
            icon=":material/scatter_plot:",
            key="semantic_map",
            disabled=not prefix,
            help=None if prefix else "Choose a code first",
        ):
            area = f"prefix.{one.name}~{'-'.join(map(str, prefix))}"
            st.switch_page("screens/map.py", query_params=state.link_to("map", area=area))
        export.csv_button(
            lambda: _table(page, one, order), f"{one.name} {'-'.join(map(str, prefix))}", key="semantic_browse"
        )
    st.dataframe(
        _table(page, one, order[:ROWS]),
        hide_index=True,
        height=min(420, 36 * (min(len(order), ROWS) + 1) + 2),
        alt="The items with these codes" + (", the most taken first" if models.has_log else ""),
        key="semantic_browse_table",
    )


def _table(page: Page, one: Tokenization, order: np.ndarray) -> pd.DataFrame:
    table = facets.table(page.found.rows(order.tolist()))
    table.insert(0, "Codes", [semantic_ids.spelled(semantic_ids.path(one.own, item)) for item in order.tolist()])
    return table


def _add(ids: tuple[str, ...]) -> None:
    for item_id in ids:
        state.add(item_id)
