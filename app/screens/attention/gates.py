"""Gates: how far a model lets each of the latest items through."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from app import export, zoo
from app.analysis import attention
from app.components import sections, widgets
from app.figures import attention as figures
from app.text import clean, count, md
from engine.runtime import Zoo

_GATE = st.column_config.NumberColumn(format="%.4f")


def show(models: Zoo, name: str, history: tuple[int, ...]) -> None:
    """A bar per item that has a gate, oldest on top."""
    sections.heading("How far items are let through")
    openings = attention.gates(models, name, history)
    titles = {history[place]: zoo.titled(models, history[place]) for place in openings}
    called = attention.names(list(openings), [history[place] for place in openings], titles)  # type: ignore[arg-type]
    values, title = np.array(list(openings.values())), models.bundles[name].manifest.title
    st.markdown(attention.gate_words(title, values, called))
    table = pd.DataFrame({"position": called.numbers, "title": called.titles, "gate": values})
    export.figure(
        figures.bars(table, zoo.style(models, name).colour, None, narrow=widgets.on_phone(), quantity="gate"),
        key=f"attention_gates_{name}",
        alt=f"Gates of {clean(title)} by position, oldest on top; furthest open at {called.titles[int(values.argmax())]}.",
        table=table,
        name=f"attention {name} gates",
        columns={"gate": _GATE},
    )
    read = (
        f"The latest {count(len(openings), 'item')} of {len(history)} have a gate. "
        if len(openings) < len(history)
        else ""
    )
    reason = models.bundles[name].cannot("attention") or ""
    st.caption(
        md(
            f"{read}0 is closed, 1 is open: by this much the item’s vector is multiplied before items are averaged, for this "
            f"user. {reason} Gates do not sum to 1, and are no explanation: how much each part of the model gives to an "
            "item’s score stands in its details."
        )
    )
