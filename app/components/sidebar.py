"""The sidebar's tray, on every page: which dataset, how long the lists, and the link to all that is shown."""

from __future__ import annotations

import streamlit as st

from app import guard
from app.components import widgets
from app.limits import MAX_K
from app.session import state
from app.text import clean, count
from engine.runtime import Zoo


def show(datasets: dict[str, str], models: Zoo | None) -> None:
    """datasets: name → title; models: of the one that is shown, None where it cannot be opened."""
    now = state.get()
    st.session_state["tray_dataset"], st.session_state["tray_k"] = now.dataset, now.k
    st.selectbox(
        "Dataset",
        list(datasets),
        format_func=lambda name: clean(datasets.get(name, name), 60),
        key="tray_dataset",
        on_change=_choose_dataset,
        args=(tuple(datasets),),
    )
    if models is None:
        return
    info = models.info
    users = "simulated user" if info.simulated else "user"
    parts = [count(info.counts["users"], users)] if models.has_log else []
    parts += [count(len(models), "item"), count(len(models.bundles), "model")]
    st.caption(", ".join(parts) + ("" if models.has_log else "; a catalogue without a log"))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.number_input(
            "Top-k",
            1,
            MAX_K,
            key="tray_k",
            on_change=guard.callback(_choose_k),
            help="How many items each model recommends.",
            width=115,
        )
        widgets.copy(
            "Copy link",
            state.link(st.context.url or ""),
            key="tray_link",
            help="Opens exactly this: dataset, history, models and list length",
        )


# --- what a click does; nothing that comes from the browser is believed


def _choose_dataset(allowed: tuple[str, ...]) -> None:
    dataset = st.session_state.get("tray_dataset")
    if dataset in allowed and dataset != state.get().dataset:
        state.choose_dataset(str(dataset))


def _choose_k() -> None:
    k = st.session_state.get("tray_k")
    if isinstance(k, int) and 1 <= k <= MAX_K:
        state.update(k=k)
