"""The tree of prefixes, and whether items of the same prefix are of one kind."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from app import export, zoo
from app.analysis import prefix_tree, semantic_ids_tables, tokenizers
from app.figures import semantic_ids as figures
from app.parts.semantic_ids import Page
from app.store.attributes import caption
from app.text import clean, md
from app.widgets import choice
from engine.runtime import Zoo


def show(page: Page) -> None:
    st.subheader("The tree of codes", anchor=False)
    models, items = page.models, page.found.items
    kinds = tokenizers.columns(models, items)
    options = {
        name: caption(name) for name in [*kinds, *([tokenizers.POPULARITY] if models.has_log or not kinds else [])]
    }
    column = choice.selected(
        "Colour by", "colour", options, next(iter(options)), key=f"semantic_colour_{models.info.name}", width=220
    )
    dark = st.context.theme.type == "dark"
    for place, one in zip(page.places(), page.shown, strict=True):
        with place:
            st.markdown(page.heading(one))
            tree, colours = tokenizers.tree(one), tokenizers.colours(models, items, one, column)
            export.figure(
                export.drawn(
                    _tree, models, tree, colours, dark, about=(one.digest, column, dark, tokenizers.stamp(models))
                ),
                key=f"semantic_tree_{one.name}_{column}",
                alt=f"Tree of the codes of {clean(one.about.title)}, as wide as a branch has items, coloured by "
                f"{caption(column).lower()}.",
                table=lambda tree=tree, colours=colours: semantic_ids_tables.tree_table(tree, colours),  # type: ignore[misc]
                name=f"code tree {one.name}",
            )
    words = "Each row is one more code, a box as wide as it has items. Click a box to open its branch, the bar on top to go back."
    if column in kinds:
        words += " The colour is the commonest value of the box's items (of several the first); the paler, the smaller its share."
    st.caption(md(words))
    _purity(page, column if column in kinds else (kinds or [""])[0])


def _tree(models: Zoo, tree: prefix_tree.Tree, colours: prefix_tree.Colours, dark: bool) -> go.Figure:
    titles = [zoo.titled(models, item) for item in range(len(models))] if len(models) <= 20_000 else models.titles
    return figures.tree(tree, colours, titles, models.popularity, dark)


def _purity(page: Page, column: str) -> None:
    if not column:
        st.caption("The catalogue has no categories to compare prefixes with.")
        return
    st.subheader("Do prefixes mean something?", anchor=False)
    found = [(page.named(one), tokenizers.purity(page.models, page.found.items, one, column)) for one in page.shown]
    titled = [(named.title, depths) for named, depths in found]
    export.figure(
        export.drawn(figures.purity, found),
        key="semantic_purity",
        alt=f"Share of items with their prefix's commonest value of {caption(column).lower()}, by depth, beside that by chance.",
        table=lambda: semantic_ids_tables.purity_table(titled),
        name=f"prefix purity by {column}",
    )
    st.caption(
        md(
            "Of the items that have company at their prefix, the share that has its commonest value of "
            f"{caption(column).lower()} (of several the first). Small groups are pure by themselves: compare with the dotted "
            "line, the same with values dealt out anew."
        )
    )
