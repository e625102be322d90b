"""A page with links: to what is made of the visitor's own name, to a file of the disk, and to what cannot be made."""

from __future__ import annotations

import os
from pathlib import Path

import streamlit as st

from app import downloads
from engine.errors import SeqscopeError
from tests.taken.contents import content


def broken() -> bytes:
    raise SeqscopeError("There is no ink.")


name = str(st.query_params.get("name", ""))
downloads.button("Made", lambda: content(name), "made.bin", "application/octet-stream", key="made")
downloads.button("Large", Path(os.environ["LARGE"]), "large.csv", "text/csv", key="large")
downloads.button("Broken", broken, "broken.txt", "text/plain", key="broken")
