"""The figures of each tokenizer, and what they mean."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import export
from app.analysis import semantic_ids_tables, tokenizers
from app.parts.semantic_ids import Page
from app.text import clean, listed, md
from engine.runtime import Tokenization


def show(page: Page) -> None:
    for place, one in zip(page.places(), page.shown, strict=True):
        with place:
            _card(page, one)
    judges = {name: bundle.manifest.title for name, bundle in page.models.bundles.items()}
    lines = [semantic_ids_tables.figures(one, tokenizers.usage(one), judges) for one in page.shown]
    rows: dict[str, list[str]] = {}
    for at, line in enumerate(lines[0]):
        rows[f"**{md(line.name)}**  \n:small[:gray[{md(line.meaning)}]]"] = [md(part[at].of) for part in lines]
    titles = [page.heading(one) for one in page.shown]
    frame = pd.DataFrame([[name, *values] for name, values in rows.items()], columns=["Figure", *_distinct(titles)])
    st.table(frame, border="horizontal", hide_index=True, alt="Figures of the tokenizers and what they mean")
    plain = pd.DataFrame(
        [[line.name, line.meaning, *[part[at].of for part in lines]] for at, line in enumerate(lines[0])],
        columns=["Figure", "Meaning", *_distinct(_plain(page))],
    )
    by_level = semantic_ids_tables.levels_table(
        [(title, one, tokenizers.usage(one)) for title, one in zip(_distinct(_plain(page)), page.shown, strict=True)]
    )
    st.table(
        by_level.set_axis([md(column) for column in by_level.columns], axis=1),
        border="horizontal",
        hide_index=True,
        alt="Normalised perplexity and collisions of the tokenizers, level by level",
    )
    st.caption(
        "In brackets: random codes, as many of each level. Tokenizers of different depth are compared level by level: with one "
        "level more, fewer items have the same codes by chance alone."
    )
    export.csv_button(plain, f"tokenizers {' '.join(page.names)}", key="semantic_head", label="These figures as CSV")


def _plain(page: Page) -> list[str]:
    return [clean(one.about.title) for one in page.shown]


def _distinct(titles: list[str]) -> list[str]:
    return titles if len(set(titles)) == len(titles) else [f"{title} ({at})" for at, title in enumerate(titles, 1)]


def _card(page: Page, one: Tokenization) -> None:
    said, levels = one.about.figures, tokenizers.usage(one)
    with st.container(border=True):
        st.markdown(page.heading(one))
        st.caption(f"{md(semantic_ids_tables.shape_words(one))}. {md(one.about.summary, 600)}")
        grid = st.grid(2, min_column_width=120, gap="small", key=f"semantic_card_{one.name}")
        used = sum(level.used for level in levels) / max(sum(level.size for level in levels), 1)
        with grid.cell():
            st.metric("Codes used", f"{used:.0%}", help="Of the codes of all levels, those that some item has.")
        with grid.cell():
            st.metric(
                "Items that share",
                f"{said.before.sharing:.1%}",
                help="Items whose own codes are another one's as well, before they were told apart.",
            )
        with grid.cell():
            near = said.neighbours
            st.metric(
                "Neighbours alike",
                "–" if near is None else f"{near.shared_by_cosine / len(levels):.0%}",
                help="The share of its codes that an item has in common with the one that the same people take (by cosine), on "
                "average" + (f"; by chance {near.chance / len(levels):.0%}." if near is not None else "."),
            )
        st.markdown(
            f"**Normalised perplexity**, level by level: {md(semantic_ids_tables.normalised_words(one, levels))}",
            help="Perplexity of each level as a share of its codes: 100 % where all are used alike. In brackets: random codes.",
        )
        places = [f"level {at}" for at, level in enumerate(levels, 1) if level.dead]
        if places:
            st.caption(f"Dead codes at {md(listed(places[:6]))}.")
