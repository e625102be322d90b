"""The sections of a page as tabs that stay in view: one is open, the address says which, and no other is computed.

    SECTIONS = {"slices": "Slices", "users": "Per user"}  # name in the address → its tab; the first is open unless chosen
    PAGE = Page(…, parameters=(section(SECTIONS), …))     # app.session.pages.section

    with sections.opened(SECTIONS, key="metrics") as name:
        {"slices": slices, "users": users}[name](models)

A link to one of them: `state.link_to("metrics", section="users")`. Headings within them: `sections.heading("Prefix purity")`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

import streamlit as st

from app import glossary, guard
from app.components import widgets
from app.session import state


@contextmanager
def opened(titles: Mapping[str, str], *, key: str, default: str = "") -> Iterator[str]:
    """Draws the tabs, and under them what the block draws. Yields the name of the open section.

    titles: name → its tab, of those that have something to show; one that the address names and that has nothing gives way to
    the first. key: the page's name. default: the one that is open where the address names none.
    """
    key = f"sections_{key}"
    chosen = state.get().own.get("section", default)
    chosen = chosen if chosen in titles else next(iter(titles))
    st.session_state[key] = titles[chosen]
    # browser.css and browser.js hold the row in view, as they do every st.tabs
    tabs = st.tabs(list(titles.values()), key=key, on_change=guard.callback(_take, key, dict(titles)))
    with tabs[list(titles).index(chosen)]:
        widgets.reveal_tab(key, key=key, tab=chosen)
        yield chosen


def heading(
    title: str, *, anchor: str | Literal[False] = False, width: Literal["stretch", "content"] = "stretch"
) -> None:
    """A heading of the second level, with the meaning of the term that it names. title: Markdown."""
    st.header(title, anchor=anchor, help=glossary.tooltip(title), width=width)


def folded_on_phone(title: str, draw: Callable[[], None], *, key: str) -> None:
    """A part under its heading. On a phone, where one figure at a time has room, it is folded, and drawn once it is opened."""
    if not widgets.on_phone():
        heading(title)
        draw()
        return
    folded = st.expander(title, key=key, on_change="rerun")
    if folded.open:
        with folded:
            draw()


def _take(key: str, titles: dict[str, str]) -> None:
    """What comes from the browser is not believed: it must be one of the tabs."""
    for name, title in titles.items():
        if title == st.session_state.get(key):
            state.choose(section=name)
