"""The page of small_app.py: it holds the file of its first place, and drops that of its second, which it has read."""

from __future__ import annotations

import time

import streamlit as st

from app import downloads, received


@st.cache_data
def computed() -> int:
    """The same for all who come, until the caches are cleared."""
    return time.monotonic_ns()


held = st.file_uploader("Held", key="held")
if held is not None:
    received.hold(held, "held")
read = st.file_uploader("Read", key="read")
if read is not None:
    received.drop(read)
st.markdown(f"computed at {computed()}")
downloads.button("Numbers", lambda: b"0123456789" * 100_000, "numbers.txt", "text/plain", key="numbers")
