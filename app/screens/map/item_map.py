"""A map of items, as a model, their words or a tokenizer's latents arrange them; below it what is selected and what is chosen."""

from dataclasses import replace

import streamlit as st

from app import export, guard, spaces, zoo
from app.analysis import facets, map_points, recommend
from app.components import item_picker, sections, widgets
from app.figures import map as views
from app.screens.map import filters
from app.screens.map.chart import (
    MapChoices,
    as_shown,
    chart_key,
    clicked,
    draw_around,
    is_held,
    quality,
    select,
    selected,
    show_figure,
    times_moved,
    zoom_to,
)
from app.session import state
from app.spaces import Place
from app.styles import OPEN
from app.text import md
from engine.errors import SeqscopeError
from engine.runtime import Space
from engine.writing import count

NEAR = 8


def show(page: MapChoices, place: Place) -> None:
    now, models = state.get(), page.models
    points = spaces.points(models, place)
    history = state.numbers(models, now.current)
    following, trouble = _following(page, place, history)
    marks = map_points.Marks(
        history if "history" in page.layers else (), following, page.hits, page.item, _near(page, place)
    )
    dark = widgets.dark()
    name, colours = chart_key(place), page.colours
    contents = (
        now.dataset,
        place.digest,
        (colours.name, colours.scale) if colours else None,
        marks,
        dark,
        page.beside,
        times_moved(name),
        None if page.shown is None else page.shown.tobytes(),
    )
    drawn = as_shown(name, contents, () if page.isolated else page.selection)
    core = points.core()
    fig = views.figure(
        points,
        colours,
        replace(marks, selection=drawn.selection),
        views.Look.of(dark, place.style.colour, place.style.marker),
        models.titles,
        models.item_ids,
        view=drawn.view or core,
        shown=page.shown,
        backdrop=not page.isolated,
        legend=not page.counted,
        height=drawn.height,
    )
    if len(points) > map_points.ALL:
        st.caption(
            f"{len(points):,} items as a density image; on it {map_points.SAMPLE:,} of them as points, the same share of "
            "every group, and everything that is marked. The search covers all."
        )
    learned = place.model is not None and place.model.cannot("identifiers") is not None
    arranged = f"as {place.model.manifest.title} arranges them" if learned and place.model else f"by {place.title}"
    words = show_figure(
        fig,
        page,
        place,
        alt=views.alt(arranged, points, colours, marks),
        table=map_points.marks_table(marks, points, models.titles, models.item_ids),
        take=_take,
        regions=spaces.regions(models, place, page.shown if page.isolated else None),
    )
    with words:
        quality(models, place, len(points), len(models), "item")
        if drawn.view is None and core is not None:
            (x0, x1, y0, y1) = core
            beyond = len(points) - len(map_points.within(points, [([x0, x1], [y0, y1])]))
            st.caption(f"{count(beyond, 'item')} far out beyond the view: Reset view shows all.")
        _legend(marks, OPEN.get(place.style.marker, place.style.sign), trouble, models.info.ordered)
        _source(place)


def _following(page: MapChoices, place: Place, history: tuple[int, ...]) -> tuple[tuple[int, ...], str | None]:
    """(what the model recommends next, why it cannot)"""
    if place.model is None or "next" not in page.layers:
        return (), None
    try:
        return tuple(recommend.top_k(page.models, place.key, history, state.get().k).items.tolist()), None
    except SeqscopeError as error:
        return (), guard.shown(error)


def _near(page: MapChoices, place: Place) -> tuple[int, ...]:
    if page.item is None:
        return ()
    try:
        return tuple(spaces.near(place, page.item, NEAR).items.tolist())
    except SeqscopeError:
        return ()  # the lists of neighbours say why


def _legend(marks: map_points.Marks, sign: str, trouble: str | None, ordered: bool) -> None:
    parts = []
    if marks.history:
        parts.append("**❶ …** history" + ", oldest first" * ordered)
    if marks.following:
        parts.append(f"**{sign} 1, 2 …** recommended next")
    if marks.matches:
        parts.append("**○** found")
    if marks.chosen is not None:
        parts.append("**★** chosen, lines to its nearest neighbours")
    if parts:
        st.caption(" · ".join(parts))
    if trouble:
        st.caption(f"No next items: {md(trouble)}")


def _source(place: Place) -> None:
    """What the vectors are, where they are no model's item rows."""
    if place.model is not None and place.model.cannot("identifiers") is None:
        st.caption("This model generates semantic IDs and has no item vectors: the map shows its tokenizer’s latents.")
    elif place.tokenizer is not None:
        st.caption("Latents of the tokenizer before quantisation to codes. They depend on no history.")
    elif isinstance(place.owner, Space):
        about = place.owner.about
        st.caption(md(about.summary, 1_000), help=md(f"Vectors: {about.source}. Licence: {about.licence}", 1_000))


def _take(place: Place) -> None:
    """A click chooses an item, a box or a lasso selects some."""
    models, chosen = zoo.open_zoo(state.get().dataset), clicked(place)
    points = spaces.points(models, place)
    sampled = len(points) > map_points.ALL
    items = map_points.selected(chosen, points, models.position, sampled=sampled)
    if sampled and (shown := filters.shown(models, selected(models))) is not None:
        items = [item for item in items if shown[item]]
    outlines = map_points.areas(chosen)
    if outlines:
        draw_around(models, place, outlines, items)
    elif len(items) == 1:
        item_picker.choose(models.item_ids[items[0]])
    elif not items:
        select(None)


SHOWN = 200  # rows of a table of items


def selected_items(page: MapChoices) -> None:
    items = page.selection
    sections.heading("Selected items")
    if not items:
        st.caption(
            "Nothing is selected. Select items with the lasso or box tool above the map to list them "
            "here and add or remove them."
        )
        return
    if is_held():
        st.caption("This selection is too long for a link: a reload forgets it.")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Zoom to them", key="map_area_zoom", on_click=guard.callback(zoom_to, tuple(items)))
        st.button("Clear selection", key="map_area_clear", type="tertiary", on_click=guard.callback(select, None))
    item_table(page, list(items), key="map_area", name=f"{page.models.info.title} selected")


def item_table(page: MapChoices, items: list[int], *, key: str, name: str) -> None:
    """A table of items, the most popular first, to add to the history or to download. name: of the file."""
    models = page.models
    order = sorted(items, key=lambda item: -int(models.popularity[item]))
    most = "most popular" if models.has_log else "first"
    more = f", the {SHOWN} {most} listed" if len(order) > SHOWN else ""
    st.caption(f"{count(len(order), 'item')}{more}.")
    with st.container(horizontal=True, vertical_alignment="center"):
        item_picker.add_button([models.item_ids[item] for item in order], key=f"{key}_add", most=most, alone=True)
        export.table_buttons(lambda: facets.table(page.catalogue.rows(order)), name, key=key)
    table = facets.table(page.catalogue.rows(order[:SHOWN]))
    table.insert(0, "Add", "Add")
    widgets.table(
        table,
        alt="These items, the most popular first" if models.has_log else "These items",
        key=f"{key}_table",
        column_config={
            "Add": st.column_config.ButtonColumn(
                "",
                key=f"{key}_row",
                type="tertiary",
                on_click=guard.callback(_add_row, f"{key}_row", tuple(order[:SHOWN])),
            )
        },
    )


def _add_row(key: str, order: tuple[int, ...]) -> None:
    click = st.session_state.get(key)
    row = click["row"] if click else None
    if isinstance(row, int) and 0 <= row < len(order):
        item_picker.add((zoo.open_zoo(state.get().dataset).item_ids[order[row]],), alone=True)
