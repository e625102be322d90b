"""How the codes of a level are used: evenly or not, by items of which popularity, and where their vectors lie."""

from __future__ import annotations

import streamlit as st

from app import export
from app.analysis import semantic_ids, semantic_ids_tables, tokenizers
from app.figures import semantic_ids as figures
from app.parts.semantic_ids import Page
from app.text import clean, listed, md


def show(page: Page) -> None:
    st.subheader("How the codes are used", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        level = page.level()
        log = st.toggle("Logarithmic", key="semantic_log", persist_state="session")
    there = page.at(level)
    for one in page.shown:
        if one not in there:
            st.caption(f"{page.heading(one)} has no level {level + 1}.")
    found = [(page.named(one), tokenizers.usage(one)[level]) for one in there]
    titled = [(one.about.title, tokenizers.usage(one)[level]) for one in there]
    names = listed([clean(title) for title, _ in titled])
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Items per code**")
        export.figure(
            export.drawn(figures.usage, found, log),
            key="semantic_usage",
            alt=f"Items per code of level {level + 1}, the most used first, for {names}, beside even use.",
            table=lambda: semantic_ids_tables.counts_table(titled),
            name=f"code usage level {level + 1}",
        )
    with right:
        st.markdown("**Inequality**")
        export.figure(
            export.drawn(figures.lorenz, found),
            key="semantic_lorenz",
            alt=f"Lorenz curves of the codes of level {level + 1} for {names}; the diagonal is even use.",
            table=lambda: semantic_ids_tables.lorenz_table(titled),
            name=f"lorenz level {level + 1}",
        )
    words = [
        f"{clean(title)}: {one.used:,} of {one.size:,} codes used, perplexity {one.perplexity:.1f}, Gini {one.gini:.2f}"
        for title, one in titled
    ]
    st.caption(md(". ".join(words) + ".", 1_000))
    if page.models.has_log:
        _popularity(page, level)
    _plane(page, level)


def _popularity(page: Page, level: int) -> None:
    st.subheader(f"Popularity by code, level {level + 1}", anchor=False)
    events = page.models.popularity
    there = page.at(level)
    found = [(page.named(one), semantic_ids.popularity(one.own, level, events)) for one in there]
    titled = [(named.title, one) for named, one in found]
    export.figure(
        export.drawn(figures.popularity, found),
        key="semantic_popularity",
        alt=f"Each code of level {level + 1} by its items and how often an item of it is taken.",
        table=lambda: semantic_ids_tables.popularity_table(titled),
        name=f"popularity by code level {level + 1}",
    )
    words = []
    for one in there:
        head, _, tail = semantic_ids.thirds(one.own, events)
        ratio = tail.perplexity / max(head.perplexity, 1e-9)
        verdict = "squeezed into fewer first codes" if ratio < 0.9 else "not squeezed"
        words.append(
            f"{clean(one.about.title)}: the rarest third of items is {verdict} (perplexity {tail.perplexity:.1f} against "
            f"{head.perplexity:.1f} of the most taken third)"
        )
    st.caption(md(". ".join(words) + ".", 1_000))


def _plane(page: Page, level: int) -> None:
    st.subheader(f"Where the codes lie, level {level + 1}", anchor=False)
    there = page.at(level)
    for place, one in zip(page.places(), page.shown, strict=True):
        with place:
            st.markdown(page.heading(one))
            table, how = one.plane, one.about.plane
            if one not in there:
                st.caption(f"It has no level {level + 1}.")
                continue
            if table is None or how is None:
                st.info("Its codes have no vectors: they are names, not places in a space.", icon=":material/block:")
                continue
            counts = tokenizers.usage(one)
            export.figure(
                export.drawn(
                    figures.plane, table, level, counts[level].counts, page.named(one), st.context.theme.type == "dark"
                ),
                key=f"semantic_plane_{one.name}",
                alt=f"Vectors of the codes of level {level + 1} of {clean(one.about.title)} on a plane, coloured by cluster.",
                table=lambda table=table, counts=counts: semantic_ids_tables.plane_table(table, counts),  # type: ignore[misc]
                name=f"code vectors {one.name} level {level + 1}",
            )
            st.caption(
                md(
                    f"{how.method.capitalize()}; the plane shows {how.shares[level]:.0%} of the variance. Clusters: {how.source} "
                    "in the full space. Larger marks have more items, hollow ones none."
                )
            )
