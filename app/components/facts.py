"""Terms and what there is to say of them, as a table of two columns that wraps on a phone."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st


def show(facts: Mapping[str, str], *, key: str, alt: str) -> None:
    """facts: term → words, both Markdown. key: unique on the page."""
    with st.container(key=f"facts_{key}"):  # browser.css knows it by this: Streamlit's tables do not wrap
        st.table(
            {f"**{term}**": words for term, words in facts.items()}, border="horizontal", hide_header=True, alt=alt
        )
