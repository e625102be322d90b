"""A map of items, as a model, their words or a tokenizer's latents arrange them."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from app import guard, spaces, state, zoo
from app.analysis import map_points, recommend
from app.figures import map as views
from app.parts.map_drawn import as_drawn, key, moved, show_drawn
from app.parts.map_page import Page, choose, draw_around, positions, select
from app.spaces import Place
from app.text import count, md
from engine.errors import SeqscopeError
from engine.runtime import Space

NEAR = 8


def show(page: Page, place: Place) -> None:
    now, models = state.get(), page.models
    points = spaces.points(models, place)
    history = state.numbers(models, now.current)
    following, trouble = _following(page, place, history)
    marks = map_points.Marks(
        history if "history" in page.layers else (), following, page.hits, page.item, _near(page, place)
    )
    dark = st.context.theme.type == "dark"
    name, colours = key(place), page.colours
    contents = (now.dataset, place.digest, colours.name if colours else None, marks, dark, page.beside, moved(name))
    drawn = as_drawn(name, contents, page.selection)
    fig = views.figure(
        points,
        colours,
        replace(marks, selection=drawn.selection),
        views.Look.of(dark, place.style.colour, place.style.marker),
        models.titles,
        models.item_ids,
        view=drawn.view,
        height=page.height,
    )
    if page.beside:
        st.markdown(f"**{place.style.sign} {md(place.title)}**")
    if len(points) > map_points.ALL:
        st.caption(
            f"{len(points):,} items as a density image; on it {map_points.SAMPLE:,} of them as points, the same share of "
            "every group, and everything that is marked. The search covers all."
        )
    learned = place.model is not None and place.model.cannot("identifiers") is not None
    arranged = f"as {place.model.manifest.title} arranges them" if learned and place.model else f"by {place.title}"
    show_drawn(
        fig,
        page,
        place,
        alt=views.alt(arranged, points, colours, marks),
        table=map_points.marks_table(marks, points, models.titles, models.item_ids),
        take=_take,
    )
    _legend(marks, place.style.sign, trouble)
    _trust(place, points, page)


def _following(page: Page, place: Place, history: tuple[int, ...]) -> tuple[tuple[int, ...], str | None]:
    """(what the model recommends next, why it cannot)"""
    if place.model is None or "next" not in page.layers:
        return (), None
    try:
        return tuple(recommend.top(page.models, place.key, history, state.get().k).items.tolist()), None
    except SeqscopeError as error:
        return (), guard.shown(error)


def _near(page: Page, place: Place) -> tuple[int, ...]:
    if page.item is None:
        return ()
    try:
        return tuple(spaces.near(page.models, place, page.item, NEAR).items.tolist())
    except SeqscopeError:
        return ()  # the lists of neighbours say why


def _legend(marks: map_points.Marks, sign: str, trouble: str | None) -> None:
    parts = []
    if marks.history:
        parts.append("**❶ …** history, oldest first")
    if marks.following:
        parts.append(f"**{sign}** recommended next")
    if marks.matches:
        parts.append("**○** found")
    if marks.chosen is not None:
        parts.append("**★** chosen, lines to its nearest neighbours")
    if parts:
        st.caption(" · ".join(parts))
    if trouble:
        st.caption(f"No next items: {md(trouble)}")


def _trust(place: Place, points: map_points.Points, page: Page) -> None:
    how = place.how
    if how is not None:
        missing = len(page.models) - len(points)
        also = f" {count(missing, 'item')} of the catalogue not on the map." if missing else ""
        settings = ", ".join(f"{name} {value}" for name, value in how.parameters.items())
        st.caption(
            md(
                f"Trustworthiness {how.trustworthiness:.2f} of 1: how far the {how.neighbours} items around each one on the "
                f"map are also near it in the space itself. {views.verdict(how.trustworthiness)}{also}",
                1_000,
            ),
            help=md(f"{how.method}, made once at export: {settings}", 600),
        )
    if place.model is not None and place.model.cannot("identifiers") is None:
        st.caption(
            "This model writes codes and has no vectors of items. Drawn is what its tokenizer made the codes of."
        )
    elif place.tokenizer is not None:
        st.caption("What the tokenizer makes codes of, before it is rounded to them. No model's history plays a part.")
    elif isinstance(place.owner, Space):
        about = place.owner.about
        st.caption(md(about.summary, 1_000), help=md(f"Vectors: {about.source}. Licence: {about.licence}", 1_000))


def _take(place: Place) -> None:
    """A click chooses an item, a box or a lasso selects some."""
    models, name = zoo.open_zoo(state.get().dataset), key(place)
    event = st.session_state.get(name)
    chosen = event.get("selection", {}) if isinstance(event, dict) else {}
    points = spaces.points(models, place)
    sampled = len(points) > map_points.ALL
    found = map_points.selected(chosen, points, positions(models), sampled=sampled)
    outlines = map_points.areas(chosen)
    if outlines:
        draw_around(models, place, name, outlines, found)
    elif len(found) == 1:
        choose(models.item_ids[found[0]])
    elif not found:
        select(None)
