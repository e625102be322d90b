"""Items that a tokenizer cannot tell apart."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import export, zoo
from app.analysis import semantic_ids_tables, tokenizers
from app.parts.semantic_ids import Page
from app.text import clean, count, md
from engine.runtime import Tokenization

SHOWN = 30


def show(page: Page) -> None:
    st.subheader("Items with the same codes", anchor=False)
    for place, one in zip(page.places(), page.shown, strict=True):
        with place:
            st.markdown(page.heading(one))
            _groups(page, one)


def _groups(page: Page, one: Tokenization) -> None:
    found, said = tokenizers.groups(one), one.about.figures
    if not found:
        moved = f" {count(said.moved, 'item')} had to be given other codes for that." if said.moved else ""
        st.success(f"Every item has codes of its own.{moved}", icon=":material/check:")
        return
    together = sum(len(part) for part in found)
    held = said.after.groups == 0
    words = f"{count(len(found), 'group')} of {count(together, 'item')} in all, the largest of {len(found[0]):,}"
    words += (
        ". A further number tells them apart, which says nothing of the items."
        if held
        else ". A model that writes one of "
    )
    words += "" if held else "their identifiers means all of them: they are tied."
    st.caption(md(words))
    export_name = f"collisions {one.name}"
    whole = _table(page, one, len(found))
    st.dataframe(
        whole.head(SHOWN),
        hide_index=True,
        height=320,
        alt=f"Items with the same codes by {clean(one.about.title)}, the largest group first",
        key=f"semantic_groups_{one.name}",
    )
    more = f"The {SHOWN} largest groups; " if len(found) > SHOWN else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        export.csv_button(whole, export_name, key=f"semantic_groups_{one.name}", label="All groups as CSV")
        if more:
            st.caption(f"{more}the file has all.", width="content")


def _table(page: Page, one: Tokenization, many: int) -> pd.DataFrame:
    kinds = tokenizers.columns(page.models, page.found.items)
    of = tokenizers.labels(page.models, page.found.items, kinds[0]) if kinds else None
    names = None if of is None else [of.names[place] if place >= 0 else "" for place in of.of.tolist()]
    titles = [zoo.titled(page.models, item) for item in range(len(page.models))]
    return semantic_ids_tables.groups_table(one, tokenizers.groups(one)[:many], titles, names)
