"""Semantic IDs: the codes of one item by every tokenizer, and the items that share the first of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from app import export, guard, zoo
from app.analysis import semantic_ids, tokenizers
from app.components import item_picker
from app.screens.semantic_ids.selection import Selection, choose_prefix
from app.session import state
from app.text import clean, count, md
from engine.runtime import Tokenization

SIBLINGS = 3


def show(page: Selection) -> None:
    models, now = page.models, state.get()
    item_picker.search(
        "Look up an item",
        key="semantic_item",
        act="pick",
        on_pick=state.select,
        icon=":material/arrow_forward:",
        width=420,
    )
    item = _looked_up(page)
    if item is None:
        st.caption("No item yet. Type a title above.")
        return
    item_id = models.item_ids[item]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{md(zoo.titled(models, item), 200)}**", width="content")
        item_picker.add_button([item_id], key="semantic_item_add")
    if now.item is None:
        st.caption("The latest item of the history. Look up another one above.")
    for place, tokenization in zip(page.columns(), page.shown, strict=True):
        with place, guard.watch(f"the codes by {tokenization.about.title}"):
            _path(page, tokenization, item)
    table = _path_table(page, item)
    export.under(table, key="semantic_item", alt="The item's codes and who shares them", name=f"codes {item_id}")


def _looked_up(page: Selection) -> int | None:
    now = state.get()
    item = state.selected(page.models)
    if item is None and now.current:
        item = page.models.position(now.current[-1])
    return item


def _path(page: Selection, tokenization: Tokenization, item: int) -> None:
    codes, models = semantic_ids.path(tokenization.learned, item), page.models
    st.markdown(page.heading(tokenization))
    with st.container(
        horizontal=True, gap="xsmall", vertical_alignment="center", key=f"semantic_chips_{tokenization.name}"
    ):
        for depth, code in enumerate(codes, 1):
            st.button(
                str(code),
                key=f"semantic_chip_{tokenization.name}_{depth}",
                help=f"Level {depth}: list the items that begin with {semantic_ids.spelled(codes[:depth])}",
                on_click=guard.callback(choose_prefix, tokenization.name, codes[:depth]),
            )
        rest = tokenizers.disambiguating(tokenization, item)
        if rest:
            st.markdown(
                f":gray-badge[{md(semantic_ids.spelled(rest))}]",
                help="A further number that only disambiguates items with the same codes.",
                width="content",
            )
    for depth in range(len(codes), 0, -1):
        longer = semantic_ids.with_prefix(tokenization.learned, codes[: depth + 1]) if depth < len(codes) else [item]
        new = np.setdiff1d(semantic_ids.with_prefix(tokenization.learned, codes[:depth]), longer)
        with st.container(gap=None):
            st.caption(_sharing(len(new), depth, len(codes)))
            order = new[np.argsort(-models.popularity[new], kind="stable")][:SIBLINGS]
            for sibling in order.tolist():
                st.button(
                    md(zoo.titled(models, sibling), 80),
                    key=f"semantic_sibling_{tokenization.name}_{depth}_{sibling}",
                    type="tertiary",
                    wrap=False,
                    on_click=guard.callback(state.select, models.item_ids[sibling]),
                )
            if len(new) > len(order):
                st.caption(f"and {len(new) - len(order):,} more" + (", less popular" if models.has_log else ""))


def _sharing(number: int, depth: int, most: int) -> str:
    """How many items share so many codes, and no more than that."""
    if depth == most:
        return f"{count(number, 'other item')} with the same codes" if number else "No other item with the same codes"
    first = "the first code" if depth == 1 else f"the first {depth} of {most} codes"
    return f"{count(number, 'more item', 'more items')} with {first}" if number else f"No more with {first}"


def _path_table(page: Selection, item: int) -> pd.DataFrame:
    rows = []
    for tokenization in page.shown:
        codes = semantic_ids.path(tokenization.learned, item)
        for depth in range(1, len(codes) + 1):
            others = semantic_ids.with_prefix(tokenization.learned, codes[:depth])
            others = others[others != item]
            shown = others[np.argsort(-page.models.popularity[others], kind="stable")][:20]
            rows.append(
                {
                    "Tokenizer": clean(tokenization.about.title),
                    "Codes": semantic_ids.spelled(codes[:depth]),
                    "Other items": len(others),
                    "Most popular": "; ".join(clean(zoo.titled(page.models, other), 60) for other in shown.tolist()),
                }
            )
    return pd.DataFrame(rows)
