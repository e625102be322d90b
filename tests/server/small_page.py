"""The page of small_app.py: it holds the file of its first place, and drops that of its second, which it has read. Its links lead
to what is made of the visitor's own name, to a file of the disk, and to what cannot be made."""

import os
import time
from pathlib import Path

import streamlit as st

from app import guard
from app.server import downloads, received
from engine.errors import SeqscopeError
from tests.server.contents import content


@st.cache_data
def computed() -> int:
    """The same for all who come, until the caches are cleared."""
    return time.monotonic_ns()


def broken() -> bytes:
    raise SeqscopeError("There is no ink.")


guard.pending()
held = st.file_uploader("Held", key="held")
if held is not None:
    received.hold(held, "held")
read = st.file_uploader("Read", key="read")
if read is not None:
    received.drop(read)
st.markdown(f"computed at {computed()}")
st.text(f"for {st.context.ip_address}")
name = str(st.query_params.get("name", ""))
downloads.button("Made", lambda: content(name), "made.bin", "application/octet-stream", key="made")
downloads.button("Large", Path(os.environ["LARGE"]), "large.csv", "text/csv", key="large")
downloads.button("Broken", broken, "broken.txt", "text/plain", key="broken")
