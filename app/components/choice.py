"""A choice that a page has for itself: what the address says is chosen, and what is chosen is put into the address.

A label that names a term of the glossary has its meaning as a tooltip.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from app import glossary, guard
from app.session import state
from app.session.pages import Own
from app.text import MAX_QUERY, clean, distinct


def segmented(label: str, name: str, options: Mapping[str, str], default: str, *, key: str, **more: Any) -> str:
    """One of a few. name: the parameter. options: its text in the address → what it is called, as Markdown.

    more: clears, the parameters that mean nothing any more once this one changes; the rest for st.segmented_control.
    """
    more = {"required": True, "format_func": lambda text: options.get(text, text), **more}
    return _one_of(st.segmented_control, label, name, list(options), default, key=key, **more)


def selected(label: str, name: str, options: Mapping[str, str], default: str, *, key: str, **more: Any) -> str:
    """One of many. As `segmented`, but options are called by plain texts, not escaped; their names follow where two are the same,
    since Streamlit takes the last of these whichever is clicked."""
    called = distinct({text: clean(title) for text, title in options.items()})
    more["format_func"] = lambda text: called.get(text, clean(text))
    return _one_of(st.selectbox, label, name, list(options), default, key=key, **more)


def stepped(label: str, name: str, options: Sequence[str], default: str, *, key: str, **more: Any) -> str:
    """One of a row, on a slider. options: their texts in the address."""
    return _one_of(st.select_slider, label, name, options, default, key=key, **more)


def _one_of(
    widget: Callable[..., object],
    label: str,
    name: str,
    options: Sequence[str],
    default: str,
    *,
    key: str,
    clears: tuple[str, ...] = (),
    **more: Any,
) -> str:
    chosen = state.get().own.get(name, default)
    st.session_state[key] = chosen = chosen if chosen in options else default
    more = {"help": glossary.tooltip(label), **more}
    widget(label, options, key=key, on_change=guard.callback(_take, name, key, tuple(options), clears), **more)
    return chosen


def _take(name: str, key: str, allowed: tuple[str, ...], clears: tuple[str, ...]) -> None:
    """What comes from the browser is not believed: it must be one of the options."""
    value = str(st.session_state.get(key))
    if value in allowed:
        state.choose(**{**dict.fromkeys(clears), name: value})


def numbered(label: str, name: str, many: int, default: int, *, key: str) -> int:
    """One of `many` things that are counted from 1; 1 without asking where there is no other."""
    if many < 2:
        return 1
    chosen = state.get().own.get(name, "")
    number = int(chosen) if chosen.isdigit() and 1 <= int(chosen) <= many else default
    ask = segmented if many <= 6 else selected
    return int(ask(label, name, {str(at): str(at) for at in range(1, many + 1)}, str(number), key=key))


def mean_or_numbered(label: str, name: str, many: int, default: str, *, key: str) -> int | None:
    """As `numbered`, from 0; None for the mean over all of them. default: mean, or a number from 1."""
    if many > 1:
        options = {"mean": "Mean", **{str(at): str(at) for at in range(1, many + 1)}}
        (segmented if many <= 6 else selected)(label, name, options, default, key=key)
    return mean_or_number(name, many, default)


def mean_or_number(name: str, many: int, default: str) -> int | None:
    """What `mean_or_numbered` has, where the choice is drawn elsewhere."""
    chosen = state.get().own.get(name, default)
    return 0 if many < 2 else None if chosen == "mean" else min(int(chosen), many) - 1


def number(choices: Own, name: str, default: int, most: int) -> int:
    """A number that was chosen, at most `most`: a link may have been made with a longer history."""
    return min(int(choices.get(name, default)), most)


def searched(label: str, *, key: str, most: int = MAX_QUERY, clears: tuple[str, ...] = (), **more: Any) -> str:
    """A text that is searched for, of at most `most` characters: the parameter find. more: for st.text_input."""
    text = state.get().own.get("find", "")
    if str(st.session_state.get(key) or "").strip() != text:
        st.session_state[key] = text  # only then: it would undo what was typed meanwhile
    more = {"live": "300ms", **more}
    take = guard.callback(_take_search, key, most, clears)
    st.text_input(label, key=key, type="search", max_chars=most, on_change=take, **more)
    return text


def _take_search(key: str, most: int, clears: tuple[str, ...]) -> None:
    text = str(st.session_state.get(key) or "").strip()[:most]
    state.choose(**{**dict.fromkeys(clears), "find": text or None})


def paged(pages: int, number: int, *, key: str, clears: tuple[str, ...] = (), **more: Any) -> None:
    """The pages of a list, where there are several: the parameter page. number: of the one that is shown. more: for
    st.pagination."""
    if pages < 2:
        return
    if st.session_state.get(key, 1) != number:  # Streamlit warns of a value beside the default
        st.session_state[key] = number
    st.pagination(pages, key=key, on_change=guard.callback(_turn, key, pages, clears), **more)


def _turn(key: str, pages: int, clears: tuple[str, ...]) -> None:
    number = st.session_state.get(key)
    if isinstance(number, int) and 1 <= number <= pages:
        state.choose(**{**dict.fromkeys(clears), "page": str(number)})
