"""What clicks on the page Compare do. Nothing that comes from the browser is believed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import streamlit as st

from app import zoo
from app.analysis import model_card
from app.components import widgets
from app.session import history_edits, state


def experiment(what: str) -> None:
    """Makes the edited history, or edits it further; the history itself stays as it is."""
    now = state.get()
    before = now.current
    if what == "chosen":
        said = {name: st.session_state.get(f"compare_{name}") for name in ("kind", "first", "second", "count", "space")}
        after = history_edits.edited(before, zoo.open_zoo(now.dataset), said)
    elif what == "drop_last":
        after = before[:-1]
    elif what == "swap_last" and len(before) > 1:
        after = history_edits.swapped(before, len(before) - 2, len(before) - 1)
    elif what == "shuffle":
        after = history_edits.shuffled(before, random.Random())
    elif what == "nothing":
        after = ()
    else:
        after = before
    state.update(variant=after, shows_a=False)


def choose_models(key: str, offered: tuple[str, ...]) -> None:
    """Which of the offered models are shown, beside those that are and were not offered; the usual ones where none is left."""
    models = zoo.open_zoo(state.get().dataset)
    pressed = st.session_state.get(key) or []
    others = [name for name in model_card.shown(models, state.get().models) if name not in offered]
    chosen = tuple(name for name in models.bundles if name in pressed or name in others)
    state.update(models=None if list(chosen) in ([], model_card.usual(models)) else chosen)


def clicked(key: str) -> None:
    """A click in the lists, or in the table of ranks. key: of the widget."""
    act(widgets.act(key))


def act(said: Mapping[str, Any]) -> None:
    """Adds an item to the history that is shown, or selects it."""
    now, item_id = state.get(), said.get("id")
    if not isinstance(item_id, str) or zoo.open_zoo(now.dataset).position(item_id) is None:
        return
    if said.get("do") == "explain":
        state.select(item_id)
    elif said.get("do") == "add":
        state.add(item_id)
