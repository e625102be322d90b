"""Tables of rows: without an index, and a cell that has no value stays empty instead of reading None."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler


def show(table: pd.DataFrame | Styler, *, alt: str, **more: Any) -> None:
    """alt: what it is, for those who do not see it. more: as of st.dataframe."""
    st.dataframe(table, hide_index=True, placeholder="", alt=alt, **more)
