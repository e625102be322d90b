"""What is measured of the tokenizers side by side: figures, use of the codes, collisions, and what models write."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import export, zoo
from app.analysis import semantic_ids, semantic_ids_tables, tokenizers
from app.components import choice
from app.figures import semantic_ids as figures
from app.screens.semantic_ids.selection import Selection
from app.session import state
from app.text import clean, count, listed, md
from engine.runtime import Tokenization


def figures_of_each(page: Selection) -> None:
    for place, tokenization in zip(page.columns(), page.shown, strict=True):
        with place:
            _card(page, tokenization)
    judges = {name: bundle.manifest.title for name, bundle in page.models.bundles.items()}
    lines = [
        semantic_ids_tables.figures(tokenization, tokenizers.usage(tokenization), judges) for tokenization in page.shown
    ]
    rows: dict[str, list[str]] = {}
    for at, line in enumerate(lines[0]):
        rows[f"**{md(line.name)}**  \n:small[:gray[{md(line.meaning)}]]"] = [md(part[at].of) for part in lines]
    titles = [page.heading(tokenization) for tokenization in page.shown]
    frame = pd.DataFrame([[name, *values] for name, values in rows.items()], columns=["Figure", *_distinct(titles)])
    st.table(frame, border="horizontal", hide_index=True, alt="Figures of the tokenizers and what they mean")
    plain = pd.DataFrame(
        [[line.name, line.meaning, *[part[at].of for part in lines]] for at, line in enumerate(lines[0])],
        columns=["Figure", "Meaning", *_distinct(_plain(page))],
    )
    by_level = semantic_ids_tables.levels_table(
        [
            (title, tokenization, tokenizers.usage(tokenization))
            for title, tokenization in zip(_distinct(_plain(page)), page.shown, strict=True)
        ]
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


def _plain(page: Selection) -> list[str]:
    return [clean(tokenization.about.title) for tokenization in page.shown]


def _distinct(titles: list[str]) -> list[str]:
    return titles if len(set(titles)) == len(titles) else [f"{title} ({at})" for at, title in enumerate(titles, 1)]


def _card(page: Selection, one: Tokenization) -> None:
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


def usage(page: Selection) -> None:
    st.subheader("How the codes are used", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        level = page.level()
        log = st.toggle("Logarithmic", key="semantic_log", persist_state="session")
    there = page.at(level)
    for tokenization in page.shown:
        if tokenization not in there:
            st.caption(f"{page.heading(tokenization)} has no level {level + 1}.")
    usages = [(page.named(tokenization), tokenizers.usage(tokenization)[level]) for tokenization in there]
    titled = [(tokenization.about.title, tokenizers.usage(tokenization)[level]) for tokenization in there]
    names = listed([clean(title) for title, _ in titled])
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Items per code**")
        export.figure(
            export.shared_figure(figures.usage, usages, log),
            key="semantic_usage",
            alt=f"Items per code of level {level + 1}, the most used first, for {names}, beside even use.",
            table=lambda: semantic_ids_tables.counts_table(titled),
            name=f"code usage level {level + 1}",
        )
    with right:
        st.markdown("**Inequality**")
        export.figure(
            export.shared_figure(figures.lorenz, usages),
            key="semantic_lorenz",
            alt=f"Lorenz curves of the codes of level {level + 1} for {names}; the diagonal is even use.",
            table=lambda: semantic_ids_tables.lorenz_table(titled),
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
    st.subheader(f"Popularity by code, level {level + 1}", anchor=False)
    events = page.models.popularity
    there = page.at(level)
    popularities = [
        (page.named(tokenization), semantic_ids.popularity(tokenization.own, level, events)) for tokenization in there
    ]
    titled = [(named.title, popularity) for named, popularity in popularities]
    export.figure(
        export.shared_figure(figures.popularity, popularities),
        key="semantic_popularity",
        alt=f"Each code of level {level + 1} by its items and how often an item of it is taken.",
        table=lambda: semantic_ids_tables.popularity_table(titled),
        name=f"popularity by code level {level + 1}",
    )
    words = []
    for tokenization in there:
        head, _, tail = semantic_ids.thirds(tokenization.own, events)
        ratio = tail.perplexity / max(head.perplexity, 1e-9)
        verdict = "squeezed into fewer first codes" if ratio < 0.9 else "not squeezed"
        words.append(
            f"{clean(tokenization.about.title)}: the rarest third of items is {verdict} (perplexity {tail.perplexity:.1f} "
            f"against {head.perplexity:.1f} of the most taken third)"
        )
    st.caption(md(". ".join(words) + ".", 1_000))


def _plane(page: Selection, level: int) -> None:
    st.subheader(f"Where the codes lie, level {level + 1}", anchor=False)
    there = page.at(level)
    for place, tokenization in zip(page.columns(), page.shown, strict=True):
        with place:
            st.markdown(page.heading(tokenization))
            table, how = tokenization.plane, tokenization.about.plane
            if tokenization not in there:
                st.caption(f"It has no level {level + 1}.")
                continue
            if table is None or how is None:
                st.info("Its codes have no vectors: they are names, not places in a space.", icon=":material/block:")
                continue
            counts = tokenizers.usage(tokenization)
            export.figure(
                export.shared_figure(
                    figures.plane,
                    table,
                    level,
                    counts[level].counts,
                    page.named(tokenization),
                    st.context.theme.type == "dark",
                ),
                key=f"semantic_plane_{tokenization.name}",
                alt=f"Vectors of the codes of level {level + 1} of {clean(tokenization.about.title)} on a plane, "
                "coloured by cluster.",
                table=lambda table=table, counts=counts: semantic_ids_tables.plane_table(table, counts),  # type: ignore[misc]
                name=f"code vectors {tokenization.name} level {level + 1}",
            )
            st.caption(
                md(
                    f"{how.method.capitalize()}; the plane shows {how.shares[level]:.0%} of the variance. Clusters: {how.source} "
                    "in the full space. Larger marks have more items, hollow ones none."
                )
            )


_GROUPS = 30


def collisions(page: Selection) -> None:
    st.subheader("Items with the same codes", anchor=False)
    for place, tokenization in zip(page.columns(), page.shown, strict=True):
        with place:
            st.markdown(page.heading(tokenization))
            _groups(page, tokenization)


def _groups(page: Selection, one: Tokenization) -> None:
    groups, said = tokenizers.groups(one), one.about.figures
    if not groups:
        moved = f" {count(said.moved, 'item')} had to be given other codes for that." if said.moved else ""
        st.success(f"Every item has codes of its own.{moved}", icon=":material/check:")
        return
    together = sum(len(part) for part in groups)
    held = said.after.groups == 0
    words = f"{count(len(groups), 'group')} of {count(together, 'item')} in all, the largest of {len(groups[0]):,}"
    words += (
        ". A further number tells them apart, which says nothing of the items."
        if held
        else ". A model that writes one of "
    )
    words += "" if held else "their identifiers means all of them: they are tied."
    st.caption(md(words))
    export_name = f"collisions {one.name}"
    whole = _groups_table(page, one, len(groups))
    st.dataframe(
        whole.head(_GROUPS),
        hide_index=True,
        height=320,
        alt=f"Items with the same codes by {clean(one.about.title)}, the largest group first",
        key=f"semantic_groups_{one.name}",
    )
    more = f"The {_GROUPS} largest groups; " if len(groups) > _GROUPS else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        export.csv_button(whole, export_name, key=f"semantic_groups_{one.name}", label="All groups as CSV")
        if more:
            st.caption(f"{more}the file has all.", width="content")


def _groups_table(page: Selection, one: Tokenization, many: int) -> pd.DataFrame:
    kinds = tokenizers.columns(page.models, page.found.items)
    of = tokenizers.labels(page.models, page.found.items, kinds[0]) if kinds else None
    names = None if of is None else [of.names[place] if place >= 0 else "" for place in of.of.tolist()]
    titles = [zoo.titled(page.models, item) for item in range(len(page.models))]
    return semantic_ids_tables.groups_table(one, tokenizers.groups(one)[:many], titles, names)


def written(page: Selection) -> None:
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
    item_counts = tokenizers.written(bundle, state.get().k)
    if item_counts is None:
        st.caption(md(f"{bundle.manifest.title} was exported without its evaluation, so nobody knows what it wrote."))
        return
    codes = bundle.identifiers
    level = min(int(state.get().own.get("level", "1")), codes.levels) - 1
    shares = semantic_ids.bias(codes.codes, level, codes.sizes[level], item_counts.taken, item_counts.written)
    title = bundle.manifest.title
    export.figure(
        export.shared_figure(figures.bias, shares, title),
        key="semantic_bias",
        alt=f"Shares of the codes of level {level + 1}: what people took, and what {clean(title)} wrote.",
        table=lambda: semantic_ids_tables.bias_table(shares),
        name=f"generation bias {name} level {level + 1}",
    )
    st.caption(
        md(
            f"Level {level + 1} of the model's own identifiers. Bars: the held-out items of "
            f"{count(item_counts.people, 'person', 'people')}. Line: what stood in their first {item_counts.k}. "
            f"{shares.distance:.0%} of what is written would have to move to be alike.",
            600,
        )
    )
