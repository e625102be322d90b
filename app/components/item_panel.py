"""The detail panel: the item that is selected, beside every page (below it on a phone).

Sections that are closed compute nothing. Nothing that comes from the browser is believed.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from app import glossary, guard, spaces, zoo
from app.analysis import graph_paths, model_card
from app.components import widgets
from app.figures import item_panel as contents
from app.limits import MAX_ID
from app.session import state
from app.session.address import encode
from app.text import clean
from engine.errors import SeqscopeError
from engine.runtime import Zoo, protocols

SECTIONS = {
    "ranks": "Who recommends it",
    "why": "Why? Leave-one-out effect",
    "codes": "Semantic IDs",
    "near": "Nearest items",
}
_KEY = "item_panel"
_ACT = "item_panel_act"
_CLOSED, _SPACE, _SLOW = "item_panel_closed", "item_panel_space", "item_panel_slow"
_PAGES = {"catalogue": "Catalogue", "attention": "Attention", "graph": "Graph", "map": "Map"}


def show(page: str) -> None:
    """One element, there or empty, so that none of the page moves; a panel that is there stays until it is drawn anew, with what
    has the focus in it. page: the name of the page beside it."""
    if state.selected(zoo.open_zoo(state.get().dataset)) is None:
        st.empty()
        return
    with st.container(key=_KEY):
        _panel(page)


@st.fragment
def _panel(page: str) -> None:
    with guard.watch("the details of the item"):
        now = state.get()
        models, item = zoo.open_zoo(now.dataset), state.selected(zoo.open_zoo(now.dataset))
        if item is None:
            return
        known = contents.card(models, zoo.open_catalogue(now.dataset), item)
        without = set() if models.bundles else {"ranks", "why"}
        without |= set() if models.tokenizations else {"codes"}
        without |= set() if spaces.with_neighbours(models) else {"near"}
        data = {
            **known,
            "added": now.current.count(known["id"]),
            "page": page,
            "links": _links(models, page),
            "sections": {
                name: {"title": title, "help": glossary.tooltip(title), **_section(name, models, now, item)}
                for name, title in SECTIONS.items()
                if name not in without
            },
        }
        widgets.item_panel(data, key=_ACT, on_act=act)


def _section(name: str, models: Zoo, now: state.State, item: int) -> dict[str, Any]:
    """{"open", and what it shows where it is open}; {"open", "failed"} where it cannot be had."""
    if name in st.session_state.get(_CLOSED, ()):
        return {"open": False}
    try:
        return {"open": True, "content": _content(name, models, now, item)}
    except Exception as error:  # the others go on
        return {"open": True, "failed": " ".join(guard.noted(error, "this section"))}


def _content(name: str, models: Zoo, now: state.State, item: int) -> dict[str, Any]:
    history, shown = state.numbers(models, now.current), model_card.shown(models, now.models)
    if name == "ranks":
        among = protocols.history_excluded(models.info.repeats)
        rule = "ranked among the items left to recommend" if among else "repeats count here, so it may come again"
        note = f"In the history; {rule}." if item in history else ""
        if item == state.target(models):
            note = "The held-out item: what this user chose next."
        return {"rows": contents.ranks(models, shown, history, item, now.k), "note": note}
    if name == "why":
        if not history:
            return {"empty": "With a history: the leave-one-out effect of each of its items."}
        slow = st.session_state.get(_SLOW) == (now.dataset, history, item)
        return contents.why(models, shown, history, item, slow=slow)
    if name == "codes":
        return {"rows": contents.codes(models, item)}
    return _near(models, shown, item)


def _near(models: Zoo, shown: list[str], item: int) -> dict[str, Any]:
    places = spaces.with_neighbours(models)
    first = [key for key in shown if key in places]
    ordered = [*first, *(key for key in places if key not in first)]
    chosen = st.session_state.get(_SPACE)
    chosen = chosen if chosen in places else ordered[0]
    answer: dict[str, Any] = {
        "spaces": [{"key": key, "title": clean(places[key].title, 60)} for key in ordered],
        "space": chosen,
    }
    try:
        return {**answer, "rows": contents.near(models, spaces.near(places[chosen], item, contents.NEAR))}
    except SeqscopeError as reason:
        return {**answer, "empty": clean(guard.shown(reason))}


def _links(models: Zoo, page: str) -> list[dict[str, str]]:
    """Pages that look at the item, but the one that is shown."""
    return [
        {"page": name, "title": title, "href": f"{name}?{urlencode(state.link_to(name))}"}
        for name, title in _PAGES.items()
        if name != page and _shows(models, name)
    ]


def _shows(models: Zoo, page: str) -> bool:
    if page == "graph":
        return bool(graph_paths.carriers(models))
    return page == "catalogue" or (bool(spaces.able(models)) if page == "map" else bool(models.bundles))


# --- what a click does


def act(clicked: Mapping[str, Any]) -> None:
    """Does what was clicked, where the panel still shows what the visitor saw."""
    now, models = state.get(), zoo.open_zoo(state.get().dataset)
    if now.item is None or clicked.get("id") != now.item:
        return
    name, to = clicked.get("do"), clicked.get("to")
    if name == "close":
        state.select(None)
    elif name == "select" and isinstance(to, str) and models.position(to) is not None:
        state.select(to)
    elif name == "add":
        if clicked.get("added") == now.current.count(now.item):  # a second click would add it twice
            state.add(now.item)
    elif name == "remove" and now.item in now.current:
        state.remove(len(now.current) - 1 - now.current[::-1].index(now.item))
    elif name == "value" and to in models.items.column_names and isinstance(clicked.get("value"), str):
        only = encode((str(to), clicked["value"][:MAX_ID]))
        st.switch_page("screens/catalogue/page.py", query_params=state.link_params(only=only))
    elif name == "page" and to in _PAGES and _shows(models, to):
        st.switch_page(f"screens/{to}/page.py", query_params=state.link_to(to))
    elif name == "prefix" and to in models.tokenizations and isinstance(clicked.get("prefix"), str):
        prefix = clicked["prefix"][:200]
        st.switch_page(
            "screens/semantic_ids/page.py",
            query_params=state.link_to("semantic_ids", section="tree", left=to, of=to, prefix=prefix),
        )
    else:
        _arrange(name, to, models, now)
        return
    st.rerun()  # the page, too: the panel alone would be drawn anew otherwise


def _arrange(name: object, to: object, models: Zoo, now: state.State) -> None:
    """What concerns the panel alone."""
    if name == "toggle" and to in tuple(SECTIONS):
        st.session_state[_CLOSED] = set(st.session_state.get(_CLOSED, ())) ^ {to}
    elif name == "space" and to in spaces.with_neighbours(models):
        st.session_state[_SPACE] = to
    elif name == "slow":
        st.session_state[_SLOW] = (now.dataset, state.numbers(models, now.current), state.selected(models))
