"""The history that a page looks at, as chips to edit, and where histories come from: a search, examples, held-out users."""

import random
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from app import examples, guard, styles, zoo
from app.components import item_picker, widgets
from app.session import history_edits, state
from app.text import clean, label, md
from engine.runtime import Zoo
from engine.writing import count


def show(beside: Callable[[], None] | None = None, on_add: Callable[[str], None] = state.add) -> None:
    """The history in its order, to be edited; of a what-if, the one that is looked at, and which that is.

    beside: draws what a page has beside the search. on_add: called with the item_id that was found and clicked.
    """
    now = state.get()
    models = zoo.open_zoo(now.dataset)
    with st.container(border=True, key="history_strip", gap="small"):
        sides()
        widgets.history(chips(models, now), key="history_chips", on_act=edit)
        with st.container(horizontal=True, vertical_alignment="top", gap="xsmall"):
            with st.container(width=240):
                item_picker.search(
                    "Add an item",
                    key="history",
                    act="add",
                    on_pick=on_add,
                    icon=":material/add:",
                    placeholder="Add an item …",
                    label_visibility="collapsed",
                )
            st.button("Clear", on_click=guard.callback(state.clear), disabled=not now.current, key="history_clear")
            if beside is not None:
                beside()


def chips(models: Zoo, now: state.State) -> dict[str, Any]:
    """The history that is looked at, for `widgets.history`."""
    return {
        "items": [
            {**styles.entry(models, item, 120), "event": label(zoo.titled(models, item), 200)}
            for item in state.numbers(models, now.current)
        ],
        "label": f"History {now.a_or_b}".strip(),
        "empty": "The history is empty: add an item, or choose an example.",
    }


def choose() -> None:
    """Histories to begin with: examples with what each shows, and held-out users."""
    models = zoo.open_zoo(state.get().dataset)
    chosen = examples.of(models)
    current = next((place for place, example in enumerate(chosen) if example.history == state.get().current), None)
    st.session_state["history_example"] = current
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="history_examples"):
        st.pills(
            "Examples",
            range(len(chosen)),
            format_func=lambda place: md(chosen[place].title) if 0 <= place < len(chosen) else "–",
            key="history_example",
            label_visibility="collapsed",
            wrap=True,
            width="content",
            on_change=guard.callback(_load_example),
        )
        _user(models)
    if current is not None:
        st.caption(md(chosen[current].why, 400))


def sides() -> None:
    """A and B as two states, one of which is looked at and edited; nothing where there is no edited history. Alone for pages that
    have no room for the items."""
    now = state.get()
    if now.variant is None:
        return
    st.session_state["history_side"] = now.a_or_b
    sizes = {"A": len(now.history), "B": len(now.variant or ())}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.segmented_control(
            "History",
            list(sizes),
            format_func=lambda side: (
                f"{side} · {'original' if side == 'A' else 'edited'}, {count(sizes.get(side, 0), 'item')}"
            ),
            key="history_side",
            required=True,
            label_visibility="collapsed",
            on_change=guard.callback(_choose_side),
        )
        st.caption(f"All pages show {now.a_or_b}, and edits change it.", width="content")
        st.button(
            "Keep B",
            key="history_keep",
            icon=":material/check:",
            on_click=guard.callback(_keep),
            help="B becomes the history, A is forgotten",
        )
        st.button(
            "Discard B",
            key="history_discard",
            icon=":material/undo:",
            on_click=guard.callback(state.update, variant=None),
            help="Back to A",
        )


def _user(models: Zoo) -> None:
    if not models.users.num_rows:
        return
    user = "simulated user" if models.info.simulated else "user"
    popover = st.popover("A user’s history …", key="history_user_open", on_change="rerun", icon=":material/person:")
    if not popover.open:
        return
    unseen = "the held-out items" if models.info.sets else "what came next"
    with popover:
        st.caption(f"The history of a {user} of the dataset. No model has seen {unseen}.")
        st.button(
            f"A random {user}",
            key="history_random",
            width="stretch",
            icon=":material/casino:",
            on_click=guard.callback(_random_user),
        )
        st.text_input(
            "Or by name or number",
            key="history_user",
            max_chars=200,
            placeholder=clean(models.users["user_id"][0].as_py(), 40),
            on_change=guard.callback(_named_user),
        )
        unknown = st.session_state.pop("history_unknown", None)
        if unknown:
            st.caption(f"There is no user “{md(unknown, 40)}”.")


# --- what a click does; nothing that comes from the browser is believed


def edit(act: Mapping[str, object]) -> None:
    """Does what was clicked on a chip, if the history still is what the visitor saw."""
    place, now = act.get("place"), state.get()
    after = history_edits.clicked(now.current, act)
    if after is not None:
        state.edit(after)
    elif act.get("do") == "select" and isinstance(place, int) and act.get("id") in now.current[place : place + 1]:
        state.select(now.current[place])


def _load_example() -> None:
    place, chosen = st.session_state.get("history_example"), examples.of(zoo.open_zoo(state.get().dataset))
    if isinstance(place, int) and 0 <= place < len(chosen):
        _tell_of_b(f"the example “{chosen[place].title}”")
        state.update(history=chosen[place].history, variant=None)


def _choose_side() -> None:
    side = st.session_state.get("history_side")
    if state.get().a_or_b and side in ("A", "B"):
        state.update(shows_a=side == "A")


def _keep() -> None:
    now = state.get()
    if now.variant is not None:
        state.update(history=now.variant, variant=None)


def _random_user() -> None:
    models = zoo.open_zoo(state.get().dataset)
    _take_user(models, models.users["user_id"][random.randrange(models.users.num_rows)].as_py())


def _named_user() -> None:
    models, text = zoo.open_zoo(state.get().dataset), str(st.session_state.get("history_user") or "")[:200]
    user_id = examples.find_user(models, text)
    if user_id is not None:
        _take_user(models, user_id)
    elif text.strip():
        st.session_state["history_unknown"] = text


def _take_user(models: Zoo, user_id: str) -> None:
    """Closes the popover, too: it would lie over the history that was asked for."""
    _tell_of_b(f"the history of {user_id}")
    state.choose_user(models, user_id)
    st.session_state["history_user_open"] = False


def _tell_of_b(history: str) -> None:
    """Before another history takes the place of both. history: what is shown from now on."""
    if state.get().variant is not None:
        st.toast(md(f"A is now {history}; B was discarded.", 200))
