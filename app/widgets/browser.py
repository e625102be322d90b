"""What the whole page needs in the browser, for keyboards and fingers.

Streamlit draws a page anew after every step, and a control that is replaced or goes loses the focus: it is given back to the same
control, or to what stands nearest (`browser.js`). Enter in a search (`search.item`) takes its first result. Where there is no
pointer that hovers, Plotly's bar does not lie on the figures (`browser.css`).
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_HERE = Path(__file__).parent
_COMPONENT = st.components.v2.component(
    "seqscope_browser",
    html="<span></span>",
    css=(_HERE / "browser.css").read_text("utf-8"),
    js=(_HERE / "browser.js").read_text("utf-8"),
    isolate_styles=False,
)


def show() -> None:
    """Once per page, where it stays whatever else is drawn."""
    _COMPONENT(key="browser", height=1)
