"""The sidebar's tray, on every page: which data, which history, how long the lists, and the link to all of it."""

from __future__ import annotations

import random

import streamlit as st

from app import examples, guard, zoo
from app.components import item_picker, widgets
from app.limits import MAX_K
from app.session import state
from app.text import clean, count, md
from engine.runtime import Zoo


def show(datasets: dict[str, str]) -> None:
    """datasets: name → title."""
    now = state.get()
    st.session_state["tray_dataset"] = now.dataset
    st.selectbox(
        "Dataset",
        list(datasets),
        format_func=lambda name: clean(datasets.get(name, name), 60),
        key="tray_dataset",
        on_change=_choose_dataset,
        args=(tuple(datasets),),
    )
    models = zoo.open_zoo(now.dataset)
    info = models.info
    people = "simulated viewers" if info.simulated else "people"
    parts = [count(info.counts["users"], "person", people)] if models.has_log else []
    parts += [count(len(models), "item"), count(len(models.bundles), "model")]
    st.caption(", ".join(parts) + ("" if models.has_log else "; a catalogue without a log"))
    _history(models)
    widgets.copy(
        "Copy link",
        state.link(st.context.url or ""),
        key="tray_link",
        help="Opens exactly this: dataset, history, models and list length",
    )


def _history(models: Zoo) -> None:
    now = state.get()
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown("**History**" if now.variant is None else "**History B**, edited", width="content")
        st.caption(f"{count(len(now.current), 'item')}, newest last" if now.current else "empty", width="content")
    if now.variant is not None:
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            st.caption(f"Every page looks at B. A, with {count(len(now.history), 'item')}, is pinned.", width="stretch")
            st.button("Back to A", key="tray_back", type="tertiary", on_click=guard.callback(_back))
    items = [_entry(models, item) for item in state.numbers(models, now.current)]
    widgets.history(
        items,
        key="tray_history",
        on_act=guard.callback(_edit),
        empty="No history yet: search for an item below, or load an example.",
    )
    item_picker.search(
        "Add an item",
        key="tray",
        act="add",
        on_pick=state.add,
        icon=":material/add:",
        label_visibility="collapsed",
    )
    with st.container(horizontal=True, gap="xsmall"):
        _load(models)
        st.button("Clear", on_click=guard.callback(state.clear), disabled=not now.current, key="tray_clear")
        st.button("Reset", on_click=guard.callback(state.reset), key="tray_reset", help="Back to how the dataset opens")
    st.session_state["tray_k"] = now.k
    st.number_input(
        "Length of the lists",
        1,
        MAX_K,
        key="tray_k",
        on_change=guard.callback(_choose_k),
        help="How many items each model recommends.",
    )


def _load(models: Zoo) -> None:
    popover = st.popover("Load …", key="tray_load", on_change="rerun", icon=":material/history:")
    if not popover.open:
        return
    person = "simulated viewer" if models.info.simulated else "real person"
    with popover:
        st.caption("An example")
        for place, example in enumerate(examples.of(models)):
            st.button(
                md(example.title),
                key=f"tray_example_{place}",
                help=md(example.why),
                width="stretch",
                on_click=guard.callback(_load_example),
                args=(place,),
            )
        people = models.users.num_rows
        if not people:
            st.caption(
                "This dataset was exported without its people."
                if models.has_log
                else "There is no log, so there are no people."
            )
            return
        unseen = "the held-out items" if models.info.sets else "what comes next"
        st.caption(f"The held-out data of a {person}: the models never saw {unseen}")
        st.button(
            f"A random {person}",
            key="tray_random",
            width="stretch",
            icon=":material/casino:",
            on_click=guard.callback(_random_user),
        )
        st.text_input(
            "Or by name or number",
            key="tray_user",
            max_chars=200,
            placeholder=clean(models.users["user_id"][0].as_py(), 40),
            on_change=guard.callback(_named_user),
        )
        unknown = st.session_state.pop("tray_unknown", None)
        if unknown:
            st.caption(f"Nobody here is called “{md(unknown, 40)}”.")


def _entry(models: Zoo, item: int) -> dict[str, str]:
    title, full = models.titles[item], zoo.titled(models, item)
    return {"id": models.item_ids[item], "title": clean(title, 120), "detail": full.removeprefix(title).strip()}


# --- what a click does; nothing that comes from the browser is believed


def _choose_dataset(allowed: tuple[str, ...]) -> None:
    dataset = st.session_state.get("tray_dataset")
    if dataset in allowed and dataset != state.get().dataset:
        state.choose_dataset(str(dataset))


def _choose_k() -> None:
    k = st.session_state.get("tray_k")
    if isinstance(k, int) and 1 <= k <= MAX_K:
        state.update(k=k)


def _edit() -> None:
    edit(widgets.act("tray_history"))


def edit(act: dict[str, object]) -> None:
    """Does what was clicked in the list, if the list still is what the visitor saw."""
    place, history = act.get("place"), state.get().current
    if not isinstance(place, int) or not 0 <= place < len(history) or history[place] != act.get("id"):
        return
    if act.get("do") == "remove":
        state.remove(place)
    elif act.get("do") in ("up", "down"):
        state.move(place, -1 if act["do"] == "up" else 1)


def _back() -> None:
    """Back to the history as it was."""
    state.update(variant=None)


def _load_example(number: int) -> None:
    state.update(history=examples.of(zoo.open_zoo(state.get().dataset))[number].history)


def _random_user() -> None:
    models = zoo.open_zoo(state.get().dataset)
    state.choose_user(models, models.users["user_id"][random.randrange(models.users.num_rows)].as_py())


def _named_user() -> None:
    models, text = zoo.open_zoo(state.get().dataset), str(st.session_state.get("tray_user") or "")[:200]
    user_id = examples.find_user(models, text)
    if user_id is not None:
        state.choose_user(models, user_id)
    elif text.strip():
        st.session_state["tray_unknown"] = text
