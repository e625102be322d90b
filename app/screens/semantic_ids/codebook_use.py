"""Semantic IDs: how the codes of a level are used: items and popularity by code, inequality, and where the vectors lie."""

import streamlit as st

from app import export
from app.analysis import semantic_ids, tokenizers
from app.components import sections
from app.figures import semantic_ids as figures
from app.screens.semantic_ids.selection import Selection
from app.text import clean, listed, md
from engine.writing import in_percent


def show(page: Selection) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        level = page.level()
        log = st.toggle("Logarithmic", key="semantic_log", persist_state="session")
    there = page.at(level)
    for tokenization in page.shown:
        if tokenization not in there:
            st.caption(f"{page.heading(tokenization)} has no level {level + 1}.")
    usages = [(page.named(tokenization), tokenizers.usage(tokenization)[level]) for tokenization in there]
    titled = [(named.title, usage) for named, usage in usages]
    names = listed([clean(title) for title, _ in titled])
    left, right = st.columns(2, gap="medium")
    with left:
        sections.heading("Items per code")
        export.figure(
            export.shared_figure(figures.usage, usages, log),
            key="semantic_usage",
            alt=f"Items per code of level {level + 1}, the most used first, for {names}, beside even use.",
            table=lambda: tokenizers.counts_table(titled),
            name=f"code usage level {level + 1}",
        )
    with right:
        sections.heading("Inequality")
        export.figure(
            export.shared_figure(figures.lorenz, usages),
            key="semantic_lorenz",
            alt=f"Lorenz curves of the codes of level {level + 1} for {names}; the diagonal is even use.",
            table=lambda: tokenizers.lorenz_table(titled),
            name=f"lorenz level {level + 1}",
        )
    words = [
        f"{clean(title)}: {level_usage.used:,} of {level_usage.size:,} codes used, "
        f"perplexity {level_usage.perplexity:.1f}, Gini {level_usage.gini:.2f}"
        for title, level_usage in titled
    ]
    st.caption(md(". ".join(words) + ".", 1_000))
    if page.models.has_log:
        _popularity(page, level)
    _plane(page, level)


def _popularity(page: Selection, level: int) -> None:
    sections.heading(f"Popularity by code, level {level + 1}")
    events = page.models.popularity
    there = page.at(level)
    popularities = [
        (page.named(tokenization), semantic_ids.popularity(tokenization.learned, level, events))
        for tokenization in there
    ]
    titled = [(named.title, popularity) for named, popularity in popularities]
    export.figure(
        export.shared_figure(figures.popularity, popularities),
        key="semantic_popularity",
        alt=f"Each code of level {level + 1} by its items and their mean training events.",
        table=lambda: tokenizers.popularity_table(titled),
        name=f"popularity by code level {level + 1}",
    )
    words = []
    for tokenization in there:
        head, _, tail = semantic_ids.perplexities_by_popularity(tokenization.learned, events)
        verdict = (
            "concentrated in fewer first codes" if tail < 0.9 * max(head, 1e-9) else "not concentrated in few codes"
        )
        words.append(
            f"{clean(tokenization.about.title)}: long-tail items are {verdict} (perplexity of the first "
            f"code {tail:.1f} in the least popular third, {head:.1f} in the most popular)"
        )
    st.caption(md(". ".join(words) + ".", 1_000))


def _plane(page: Selection, level: int) -> None:
    sections.heading(f"Codebook vectors, level {level + 1}")
    there = page.at(level)
    for place, tokenization in zip(page.columns(), page.shown, strict=True):
        with place:
            st.markdown(page.heading(tokenization))
            table, how = tokenization.plane, tokenization.about.plane
            if tokenization not in there:
                st.caption(f"It has no level {level + 1}.")
                continue
            if table is None or how is None:
                st.info("Its codes are labels without vectors, so there is nothing to plot.", icon=":material/block:")
                continue
            counts = tokenizers.usage(tokenization)
            export.figure(
                export.shared_figure(figures.plane, table, level, counts[level].counts),
                key=f"semantic_plane_{tokenization.name}",
                alt=f"Vectors of the codes of level {level + 1} of {clean(tokenization.about.title)} on a plane, "
                "coloured by cluster.",
                table=lambda table=table, counts=counts: tokenizers.plane_table(table, counts),  # type: ignore[misc]
                name=f"code vectors {tokenization.name} level {level + 1}",
            )
            st.caption(
                md(
                    f"{how.method.capitalize()}; the plane shows {in_percent(how.shares[level])} of the variance. "
                    f"Clusters: {how.source} in the full space. Larger marks have more items, hollow ones none."
                )
            )
