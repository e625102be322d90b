"""Whether a model writes the codes that people take."""

from __future__ import annotations

import streamlit as st

from app import export, state
from app.analysis import semantic_ids, semantic_ids_tables, tokenizers
from app.figures import semantic_ids as figures
from app.parts.semantic_ids import Page
from app.text import clean, count, md
from app.widgets import choice


def show(page: Page) -> None:
    st.subheader("What models write", anchor=False)
    able = tokenizers.writers(page.models)
    if not able:
        st.caption(
            "None of this dataset's models writes identifiers, so there is nothing to compare with what people took."
        )
        return
    name = choice.selected(
        "Model", "model", {key: bundle.manifest.title for key, bundle in able.items()}, next(iter(able)),
        key=f"semantic_model_{page.models.info.name}", width=260,
    )  # fmt: skip
    bundle = able[name]
    found = tokenizers.written(bundle, state.get().k)
    if found is None:
        st.caption(md(f"{bundle.manifest.title} was exported without its evaluation, so nobody knows what it wrote."))
        return
    codes = bundle.identifiers
    level = min(int(state.get().own.get("level", "1")), codes.levels) - 1
    shares = semantic_ids.bias(codes.codes, level, codes.sizes[level], found.taken, found.written)
    title = bundle.manifest.title
    export.figure(
        export.drawn(figures.bias, shares, title),
        key="semantic_bias",
        alt=f"Shares of the codes of level {level + 1}: what people took, and what {clean(title)} wrote.",
        table=lambda: semantic_ids_tables.bias_table(shares),
        name=f"generation bias {name} level {level + 1}",
    )
    st.caption(
        md(
            f"Level {level + 1} of the model's own identifiers. Bars: the held-out items of "
            f"{count(found.people, 'person', 'people')}. Line: what stood in their first {found.k}. "
            f"{shares.distance:.0%} of what is written would have to move to be alike.",
            600,
        )
    )
