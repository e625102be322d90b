"""What is measured of the tokenizers side by side: as a whole and by level, collisions, and generation bias."""

from typing import Any

import pandas as pd
import streamlit as st

from app import export, glossary, zoo
from app.analysis import beam_search, semantic_ids, tokenizers
from app.components import choice, sections, widgets
from app.figures import semantic_ids as figures
from app.screens.semantic_ids.selection import Selection
from app.session import state
from app.text import clean, listed, md, share_of_all
from engine.runtime import Tokenization
from engine.writing import count, in_percent

_SHARES = {
    "Utilisation": glossary.tooltip("Codebook utilisation"),
    "Normalised perplexity": glossary.tooltip("Normalised perplexity"),
    "Perplexity by chance": None,
    "Shared prefix": "The share of items whose codes up to this level are another item's as well.",
    "Shared prefix by chance": None,
}


def _columns(by_level: pd.DataFrame) -> dict[str, Any]:
    """by_level: of `tokenizers.levels_table`."""
    shares = {
        name: st.column_config.NumberColumn(format=f"%.{tokenizers.digits_of_shares(by_level[name])}f%%", help=help)
        for name, help in _SHARES.items()
    }
    gini = st.column_config.NumberColumn(format="%.2f", help=glossary.tooltip("Lorenz curve and Gini of codes"))
    return shares | {"Gini": gini}


def overview(page: Selection) -> None:
    """Each tokenizer as a whole, then level by level beside random codes."""
    for place, tokenization in zip(page.columns(), page.shown, strict=True):
        with place:
            _card(page, tokenization)
    titles = _distinct([clean(tokenization.about.title) for tokenization in page.shown])
    sections.heading("Level by level")
    by_level = tokenizers.levels_table(
        [(title, shown, tokenizers.usage(shown)) for title, shown in zip(titles, page.shown, strict=True)]
    )
    widgets.table(
        by_level,
        column_config=_columns(by_level),
        height="content",
        alt="Use and collisions of the codes of every level, beside random codes",
        key="semantic_levels",
    )
    st.caption("By chance: random codes, as many of each level.")
    sections.heading("As a whole")
    judges = {name: bundle.manifest.title for name, bundle in page.models.bundles.items()}
    lines = [tokenizers.figures(shown, tokenizers.usage(shown), judges) for shown in page.shown]
    headings = _distinct([page.heading(shown).replace("-", "\u2011").replace(" ", "\u00a0", 1) for shown in page.shown])
    measures = [[f"**{md(line.name)}**  \n:small[:gray[{md(line.meaning)}]]"] for line in lines[0]]
    st.table(
        pd.DataFrame(
            [[*name, *[md(part[at].of) for part in lines]] for at, name in enumerate(measures)],
            columns=["Measure", *headings],
        ),
        border="horizontal",
        hide_index=True,
        alt="Measures of the tokenizers and what they mean",
    )
    plain = pd.DataFrame(
        [[line.name, line.meaning, *[part[at].of for part in lines]] for at, line in enumerate(lines[0])],
        columns=["Measure", "Meaning", *titles],
    )
    with st.container(horizontal=True):
        export.table_buttons(by_level, f"levels {' '.join(page.names)}", key="semantic_levels", label="Levels")
        export.table_buttons(plain, f"tokenizers {' '.join(page.names)}", key="semantic_head", label="Measures")


def _distinct(titles: list[str]) -> list[str]:
    return titles if len(set(titles)) == len(titles) else [f"{title} ({at})" for at, title in enumerate(titles, 1)]


def _card(page: Selection, tokenization: Tokenization) -> None:
    measured, levels = tokenization.about.figures, tokenizers.usage(tokenization)
    near = measured.neighbours
    used = sum(level.used for level in levels) / max(sum(level.size for level in levels), 1)
    chance = "" if near is None else f" By chance here {in_percent(near.chance / len(levels))}."
    with st.container(border=True):
        st.markdown(page.heading(tokenization))
        st.caption(f"{md(tokenizers.shape_words(tokenization))}. {md(tokenizers.summary(tokenization), 600)}")
        grid = st.grid(3, min_column_width=140, gap="small", key=f"semantic_card_{tokenization.name}")
        for label, value, term, more in (
            ("Utilisation", share_of_all(used), "Codebook utilisation", ""),
            (
                "In collision",
                in_percent(measured.before.sharing, 1),
                "Items in collision",
                " As learned, before resolution.",
            ),
            (
                "Shared codes (CF)",
                "–" if near is None else in_percent(near.shared_by_cosine / len(levels)),
                "Shared codes with nearest CF neighbour",
                chance,
            ),
        ):
            with grid.cell():
                st.metric(label, value, help=glossary.tooltip(term) + more)
        dead = [f"level {at}" for at, level in enumerate(levels, 1) if level.dead]
        if dead:
            st.caption(f"Dead codes at {md(listed(dead[:6]))}.")


_GROUPS = 30


def collisions(page: Selection) -> None:
    for place, tokenization in zip(page.columns(), page.shown, strict=True):
        with place:
            st.markdown(page.heading(tokenization))
            _groups(page, tokenization)


def _groups(page: Selection, tokenization: Tokenization) -> None:
    groups, report = tokenizers.groups(tokenization), tokenization.about.figures
    if not groups:
        moved = f" {count(report.moved, 'item')} got other codes to avoid collisions." if report.moved else ""
        st.success(f"Unique IDs: no two items have the same codes.{moved}", icon=":material/check:")
        return
    together = sum(len(part) for part in groups)
    held = report.after.groups == 0
    words = f"{count(len(groups), 'group')} of {count(together, 'item')} in all, the largest of {len(groups[0]):,}"
    words += (
        ". A further number disambiguates them; it carries no meaning."
        if held
        else ". A model that generates their ID recommends all of them, tied."
    )
    category = next(iter(tokenizers.columns(page.models, page.catalogue.items)), None)
    if category is not None:
        words += f" Categories compares the first value of {category}."
    st.caption(md(words))
    of = None if category is None else tokenizers.labels(page.models, page.catalogue.items, category)
    names = None if of is None else [of.names[place] if place >= 0 else "" for place in of.of.tolist()]
    titles = [zoo.titled(page.models, item) for item in range(len(page.models))]
    whole = tokenizers.groups_table(tokenization, groups, titles, names)
    widgets.table(
        whole.head(_GROUPS),
        height=320,
        alt=f"Items with the same codes by {clean(tokenization.about.title)}, the largest group first",
        key=f"semantic_groups_{tokenization.name}",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        name = f"collisions {tokenization.name}"
        export.table_buttons(whole, name, key=f"semantic_groups_{tokenization.name}", label="All groups")
        if len(groups) > _GROUPS:
            st.caption(f"The {_GROUPS} largest groups; the file has all.", width="content")


def generation_bias(page: Selection) -> None:
    bundles, able = page.models.bundles, beam_search.generators(page.models)
    if not able:
        st.caption(
            "None of this dataset's models generates semantic IDs, so there is nothing to compare with held-out items."
        )
        return
    name = choice.selected(
        "Model", "model", {key: bundles[key].manifest.title for key in able}, able[0],
        key=f"semantic_model_{page.models.info.name}", width=260,
    )  # fmt: skip
    bundle = bundles[name]
    item_counts = tokenizers.written(bundle, state.get().k)
    if item_counts is None:
        st.caption(md(f"{bundle.manifest.title} was exported without its evaluation: what it generated is unknown."))
        return
    codes = bundle.identifiers
    level = min(int(state.get().own.get("level", "1")), codes.levels) - 1
    shares = semantic_ids.bias(codes.codes, level, codes.sizes[level], item_counts.taken, item_counts.written)
    title = bundle.manifest.title
    export.figure(
        export.shared_figure(figures.bias, shares, title),
        key="semantic_bias",
        alt=f"Shares of the codes of level {level + 1} among held-out items and among those that {clean(title)} generated.",
        table=lambda: tokenizers.bias_table(shares),
        name=f"generation bias {name} level {level + 1}",
    )
    st.caption(
        md(
            f"Level {level + 1} of the model's own IDs. Bars: held-out items of {count(item_counts.people, 'user')}. Line: their "
            f"top {item_counts.k}. Total variation distance {shares.distance:.2f}.",
            600,
        ),
        help=glossary.tooltip("Generation bias"),
    )
