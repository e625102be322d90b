"""A choice that a page has for itself: what the address says is chosen, and what is chosen is put into the address.

A label that names a term of the glossary has its meaning as a tooltip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app import glossary, guard
from app.session import state
from app.session.pages import Own
from app.text import clean


def segmented(
    label: str,
    name: str,
    options: Mapping[str, str],
    default: str,
    *,
    key: str,
    clears: tuple[str, ...] = (),
    **more: Any,
) -> str:
    """One of a few. name: the parameter. options: its text in the address → what it is called, as Markdown.

    clears: parameters that mean nothing any more once this one changes. more: for st.segmented_control.
    """
    chosen = state.get().own.get(name, default)
    st.session_state[key] = chosen = chosen if chosen in options else default
    st.segmented_control(
        label,
        list(options),
        format_func=lambda text: options.get(text, text),
        required=True,
        key=key,
        on_change=guard.callback(_take),
        args=(name, key, tuple(options), clears),
        **{"help": glossary.tooltip(label)} | more,
    )
    return chosen


def selected(
    label: str,
    name: str,
    options: Mapping[str, str],
    default: str,
    *,
    key: str,
    clears: tuple[str, ...] = (),
    **more: Any,
) -> str:
    """One of many. As `segmented`, but options are called by plain texts, not escaped."""
    chosen = state.get().own.get(name, default)
    st.session_state[key] = chosen = chosen if chosen in options else default
    st.selectbox(
        label,
        list(options),
        format_func=lambda text: clean(options.get(text, text)),
        key=key,
        on_change=guard.callback(_take),
        args=(name, key, tuple(options), clears),
        **{"help": glossary.tooltip(label)} | more,
    )
    return chosen


def stepped(label: str, name: str, options: Sequence[str], default: str, *, key: str, **more: Any) -> str:
    """One of a row, on a slider. options: their texts in the address."""
    chosen = state.get().own.get(name, default)
    st.session_state[key] = chosen = chosen if chosen in options else default
    st.select_slider(
        label,
        options,
        key=key,
        on_change=guard.callback(_take),
        args=(name, key, tuple(options), ()),
        **{"help": glossary.tooltip(label)} | more,
    )
    return chosen


def numbered(label: str, name: str, many: int, default: int, *, key: str) -> int:
    """One of `many` things that are counted from 1; 1 without asking where there is no other."""
    if many < 2:
        return 1
    chosen = state.get().own.get(name, "")
    number = int(chosen) if chosen.isdigit() and 1 <= int(chosen) <= many else default
    if many <= 6:
        return int(segmented(label, name, {str(at): str(at) for at in range(1, many + 1)}, str(number), key=key))
    st.session_state[key] = number
    options = range(1, many + 1)
    st.selectbox(
        label, options, key=key, on_change=guard.callback(_take), args=(name, key, tuple(map(str, options)), ())
    )
    return number


def number(own: Own, name: str, default: int, most: int) -> int:
    """A number that was chosen, at most `most`: a link may have been made with a longer history."""
    return min(int(own.get(name, default)), most)


def _take(name: str, key: str, allowed: tuple[str, ...], clears: tuple[str, ...]) -> None:
    """What comes from the browser is not believed: it must be one of the options."""
    value = str(st.session_state.get(key))
    if value in allowed:
        state.choose(**{**dict.fromkeys(clears), name: value})
