"""A button that puts several items at the end of the history, those that are not in it yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from app import guard, state
from app.text import count

MOST = 20  # items that are added at once


def several(
    ids: Sequence[str], *, key: str, most: str, on_add: Callable[[tuple[str, ...]], None], why_not: str | None = None
) -> None:
    """ids: by item_id, the first ones are taken where there are too many; most: what those are called. why_not: why it waits."""
    known = set(state.get().current)
    new = [item_id for item_id in ids if item_id not in known]
    some, there = tuple(new[:MOST]), len(ids) - len(new)
    words = f"{count(there, 'item')} {'is' if there == 1 else 'are'} in it already" if there else None
    st.button(
        called(len(some), len(new), there, most),
        icon=":material/add:",
        key=key,
        disabled=not some or why_not is not None,
        help=why_not or words,
        on_click=guard.callback(on_add),
        args=(some,),
    )


def called(added: int, new: int, there: int, most: str) -> str:
    """added: how many a click adds; new: how many are not in the history yet; there: how many are."""
    if not added:
        return "All in the history already"
    if new + there == 1:
        return "Add it to the history"
    if added < new:
        which = f"the {most} {added} of the others" if there else f"the {most} {added}"
    else:
        which = f"the other {added}" if there else f"all {added}"
    return f"Add {which} to the history"
