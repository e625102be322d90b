"""Texts whose words are shaded by a weight, a card per item: words are put into the page as text, never as HTML.

Numbers stand beneath the words, so that nothing is told by colour alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

_HERE = Path(__file__).parent
_COMPONENT = st.components.v2.component(
    "seqscope_words",
    html='<div class="root"></div>',
    css=(_HERE / "words.css").read_text("utf-8"),
    js=(_HERE / "words.js").read_text("utf-8"),
)


def show(items: list[dict[str, Any]], colour: str, *, key: str, label: str) -> None:
    """items: {"number", "title", "share", "lines", "unread" (words of it that are not read)}; lines: {"attribute", "share",
    "name", "value", "cut" (a note after the last word, or None)}; names and values are lists of words: {"text", "share",
    "strength" (0 to 1, how dark it is), "label"}."""
    _COMPONENT(key=key, data={"items": items, "colour": colour, "label": label})
