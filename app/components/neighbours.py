"""An item's neighbours in every model's own space, side by side, with what the models have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from app import export, guard, spaces, styles, zoo
from app.analysis import item_card, recommend
from app.text import listed, md
from engine.errors import SeqscopeError
from engine.runtime import Zoo

LENGTH = 8


def show(
    models: Zoo,
    item: int,
    *,
    key: str,
    on_open: Callable[[str], None],
    k: int = LENGTH,
    also: Sequence[spaces.Place] = (),
) -> None:
    """on_open: called with the item_id that was clicked. also: spaces besides the models'."""
    near, reasons = ask(models, item, k)
    titles = {name: styles.space(bundle) for name, bundle in models.bundles.items()}
    if near:
        st.caption(
            "The nearest items by each model's own measure; similarities of different models cannot be compared. "
            + f"{md(item_card.overlap_words(near, titles, k), 400)}"
        )
        common = item_card.shared(near)
        grid = st.grid(min(4, len(near)), min_column_width=230, gap="medium", key=f"{key}_neighbours")
        for model, nearest in near.items():
            with grid.cell(), guard.watch(f"the neighbours in {titles[model]}"):
                heading = f"{zoo.style(models, model).sign} {md(titles[model])}"
                column(models, heading, model, nearest, common, len(near), key, on_open)
        table = item_card.neighbour_table(near, titles, _names(models), models.item_ids)
        export.under(
            table,
            key=f"{key}_neighbours",
            alt=f"the {k} nearest items of each model",
            name=f"neighbours {models.item_ids[item]}",
        )
        if len(near) > 1:
            folded = st.expander("Overlap of the models", key=f"{key}_overlap", on_change="rerun", type="compact")
            if folded.open:
                folded.dataframe(
                    item_card.overlap_table(near, titles), hide_index=True, alt="Shared neighbours of each two models"
                )
    if also:
        elsewhere(models, item, key, on_open, k, also)
    for title, reason in reasons:
        st.caption(f":material/block: **{md(title)}** {md(reason, 400)}")


def elsewhere(
    models: Zoo, item: int, key: str, on_open: Callable[[str], None], k: int, places: Sequence[spaces.Place]
) -> None:
    """The neighbours in spaces that are no model's."""
    near: dict[str, item_card.Near] = {}
    st.caption("In other spaces, by exact comparison there:")
    grid = st.grid(min(4, len(places)), min_column_width=230, gap="medium", key=f"{key}_elsewhere")
    for place in places:
        with grid.cell(), guard.watch(f"the neighbours in {place.title}"):
            heading = f"{place.style.sign} {md(place.title)}"
            try:
                nearest = spaces.near(models, place, item, k)
            except SeqscopeError as error:
                st.markdown(f"**{heading}**")
                st.caption(md(error, 400))
                continue
            near[place.key] = item_card.Near(nearest.items.tolist(), nearest.similarity.tolist(), nearest.measure)
            column(models, heading, place.slug, near[place.key], {}, 0, key, on_open)
    if near:
        titles = {place.key: place.title for place in places}
        export.under(
            item_card.neighbour_table(near, titles, _names(models), models.item_ids),
            key=f"{key}_elsewhere",
            alt=f"the {k} nearest items in other spaces",
            name=f"neighbours elsewhere {models.item_ids[item]}",
        )


def _names(models: Zoo) -> Sequence[str]:
    return [zoo.titled(models, item) for item in range(len(models))] if len(models) <= 2_000 else models.titles


def ask(models: Zoo, item: int, k: int) -> tuple[dict[str, item_card.Near], list[tuple[str, str]]]:
    """(neighbours by model, (title, reason) of the models that have none)"""
    near: dict[str, item_card.Near] = {}
    reasons = []
    for name, bundle in models.bundles.items():
        reason = bundle.cannot("neighbours")
        if reason is None:
            try:
                nearest = recommend.neighbours(models, name, item, k)
                near[name] = item_card.Near(nearest.items.tolist(), nearest.similarity.tolist(), nearest.measure)
                continue
            except SeqscopeError as error:
                reason = guard.shown(error)
        reasons.append((bundle.manifest.title, reason))
    return near, reasons


def column(
    models: Zoo,
    heading: str,
    slug: str,
    found: item_card.Near,
    common: dict[int, int],
    asked: int,
    key: str,
    on_open: Callable[[str], None],
) -> None:
    """heading: Markdown. slug: of the widgets' keys. common: neighbour → how many of the `asked` models have it."""
    st.markdown(f"**{heading}**")
    with st.container(gap="xxsmall"):
        for place, item in enumerate(found.items):
            with st.container(gap=None):
                st.button(
                    md(f"{place + 1}. {zoo.titled(models, item)}", 100),
                    key=f"{key}_near_{slug}_{item}",
                    type="tertiary",
                    wrap=False,
                    on_click=guard.callback(on_open),
                    args=(models.item_ids[item],),
                )
                also = f" · in {listed([str(common[item])])} of {asked} models" if item in common else ""
                st.caption(md(found.words(place) + also))
