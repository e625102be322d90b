"""A search for one item by its title, with the results as buttons beneath it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from app import guard, state, zoo
from app.text import md

_FOUND = 6


@st.fragment
def item(label: str, *, key: str, act: str, on_pick: Callable[[str], None], icon: str, **more: Any) -> None:
    """on_pick: called with the item_id that was clicked. key, act: of the widgets' keys. more: for st.text_input."""
    with guard.watch("the search"):
        text = st.text_input(
            label,
            key=f"{key}_search",
            type="search",
            live="250ms",
            max_chars=100,
            placeholder="Type a title …",
            **more,
        )
        if not text or not text.strip():
            return
        now = state.get()
        hits = zoo.open_catalogue(now.dataset).search(text, _FOUND)
        models = zoo.open_zoo(now.dataset)
        if not hits:
            st.caption(f"Nothing like “{md(text, 40)}” among {len(models):,} titles.")
        with st.container(gap=None, key=f"{key}_hits"):
            for hit in hits:
                st.button(
                    md(zoo.titled(models, hit.item), 80),
                    key=f"{key}_{act}_{hit.item}",
                    icon=icon,
                    type="tertiary",
                    wrap=False,
                    on_click=guard.callback(_pick),
                    args=(f"{key}_search", on_pick, hit.item_id),
                )


def _pick(key: str, on_pick: Callable[[str], None], item_id: str) -> None:
    on_pick(item_id)
    st.session_state[key] = ""
    st.rerun()  # the search alone would be drawn anew otherwise
