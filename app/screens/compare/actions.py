"""What clicks on the page Compare do. Nothing that comes from the browser is believed."""

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from app import zoo
from app.analysis import model_card
from app.components import widgets
from app.session import history_edits, state
from app.session.address import Ids

EXPERIMENTS: dict[str, tuple[str, int, Callable[[Ids], Ids]]] = {
    "drop_last": ("Remove last", 1, lambda history: history[:-1]),
    "swap_last": ("Swap last two", 2, lambda history: (*history[:-2], history[-1], history[-2])),
    "shuffle": ("Shuffle", 2, lambda history: history_edits.shuffled(history, random.Random())),
    "nothing": ("Empty history", 1, lambda history: ()),
}
"""What a click does to the history: name → (what it is called, how many items it needs, the edit)."""
_ACTED = "compare_acted"
"""When the history was last edited from above the lists."""


def experiment(name: str) -> None:
    """Makes the edited history, or edits it further; the history itself stays as it is. name: of `EXPERIMENTS`, or chosen: the
    one that is described."""
    now = state.get()
    before = now.current
    if name == "chosen":
        settings = {
            part: st.session_state.get(f"compare_{part}") for part in ("kind", "first", "second", "count", "space")
        }
        after = history_edits.edited(before, zoo.open_zoo(now.dataset), settings)
    else:
        _, least, edit = EXPERIMENTS[name]
        after = edit(before) if len(before) >= least else before
    state.update(variant=after, shows_a=False)
    _show_answers()


def add_found(item_id: str) -> None:
    """Adds what was found by the search."""
    state.add(item_id)
    _show_answers()


def _show_answers() -> None:
    """On a phone the lists are far below what was touched: `reveal_answers` brings them into view."""
    st.session_state[_ACTED] = time.time()


def reveal_answers(around: str) -> None:
    """Once for each such act, on a phone alone. around: the key of the container of the lists."""
    if _ACTED in st.session_state and widgets.on_phone():
        widgets.reveal(around, key="answers", once=f"{around} {st.session_state[_ACTED]}")


def choose_models(key: str, offered: tuple[str, ...]) -> None:
    """Which of the offered models are shown, beside those that are and were not offered; the usual ones where none is left."""
    models = zoo.open_zoo(state.get().dataset)
    pressed = st.session_state.get(key) or []
    others = [name for name in model_card.shown(models, state.get().models) if name not in offered]
    chosen = tuple(name for name in models.bundles if name in pressed or name in others)
    state.update(models=None if list(chosen) in ([], model_card.usual(models)) else chosen)


def act(click: Mapping[str, Any]) -> None:
    """Adds an item to the history that is shown, if the visitor saw this history, or selects it."""
    now, item_id = state.get(), click.get("id")
    if not isinstance(item_id, str) or zoo.open_zoo(now.dataset).position(item_id) is None:
        return
    if click.get("do") == "explain":
        state.select(item_id)
    elif click.get("do") == "add" and history_edits.clicked(now.current, click) is not None:
        state.add(item_id)
