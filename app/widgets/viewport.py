"""The part of a figure that a visitor looks at. Streamlit replaces a Plotly figure whenever its data change, and with it the
zoom; this keeps it: an invisible element hears of every move, and the next figure is drawn with the same view.

    before = viewport.of("map_sasrec")     # (x0, x1, y0, y1), None: the whole figure
    ... st.plotly_chart(fig, key="map_sasrec") ...
    viewport.watch("map_sasrec")
"""

from __future__ import annotations

import math
from pathlib import Path

import streamlit as st

_COMPONENT = st.components.v2.component(
    "seqscope_viewport", html="<span></span>", js=(Path(__file__).parent / "viewport.js").read_text("utf-8")
)

View = tuple[float, float, float, float]


def watch(chart: str) -> None:
    """chart: the key of the figure."""
    _COMPONENT(key=f"{chart}_viewport", data={"chart": chart}, on_view_change=lambda: None, height=1)


def of(chart: str) -> View | None:
    """(x0, x1, y0, y1) as last reported; None where the visitor has not moved the figure."""
    found = getattr(st.session_state.get(f"{chart}_viewport"), "view", None)
    return checked(found)


def checked(found: object) -> View | None:
    """Four finite numbers that span something, or None: they come from outside."""
    if not isinstance(found, (list, tuple)) or len(found) != 4:
        return None
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v) for v in found):
        return None
    x0, x1, y0, y1 = map(float, found)
    return (x0, x1, y0, y1) if x0 != x1 and y0 != y1 else None
