"""A map of codes: the vectors of all levels of a tokenizer, who has each code, and the items of the one that is chosen."""

from dataclasses import replace

import numpy as np
import streamlit as st

from app import guard, spaces, zoo
from app.analysis import map_points
from app.components import sections, widgets
from app.figures import map as figures
from app.figures import map_codes as views
from app.screens.map import item_map
from app.screens.map.chart import (
    MapChoices,
    as_shown,
    chart_key,
    clicked,
    draw_around,
    quality,
    select,
    show_figure,
    times_moved,
    zoom_to,
)
from app.session import state
from app.spaces import Place
from app.text import md


def show(page: MapChoices, place: Place) -> None:
    now, models = state.get(), page.models
    codes = spaces.codes(models, place)
    marks = _marks(page, place, codes)
    dark = widgets.dark()
    name = chart_key(place)
    contents = (now.dataset, place.digest, page.by, marks, dark, page.beside, times_moved(name))
    drawn = as_shown(name, contents, codes.held(page.selection) if page.selection else ())
    fig = views.figure(
        codes,
        page.by,
        replace(marks, selection=drawn.selection),
        figures.Look.of(dark, place.style.colour, place.style.marker),
        models.titles,
        small=page.beside,
        view=drawn.view,
        height=drawn.height,
    )
    words = show_figure(
        fig,
        page,
        place,
        alt=views.alt(place.title, codes, page.by, marks),
        table=lambda: views.table(codes, models.titles),
        take=_take,
    )
    with words:
        quality(models, place, len(codes), len(codes), "code")
        _legend(page, codes, marks)


def about(page: MapChoices) -> None:
    """The code that is chosen, and its items, below the maps that it is on."""
    shown = {place.owner.name: place for place in page.places if place.of_codes}
    if not shown:
        return
    sections.heading("A code and its items")
    place = shown.get(page.code[0]) if page.code is not None else None
    if place is None or page.code is None or place.tokenizer is None:
        st.caption("No code is chosen. Click one on the map: the items that have it appear here.")
        return
    tokenization, codes = place.tokenizer, spaces.codes(page.models, place)
    row = codes.rows[page.code[1]]
    level, code = int(codes.level[row]), int(codes.code[row])
    cluster = f" · cluster {codes.cluster[row] + 1}" if codes.cluster[row] >= 0 else ""
    st.markdown(f"**{place.style.sign} {md(tokenization.about.title)} · level {level + 1} · code {code}**{cluster}")
    items = codes.having([row])
    prefix = "-".join([*["x"] * level, str(code)])
    with st.container(horizontal=True, vertical_alignment="center"):
        if level == 0:
            st.page_link(
                "screens/semantic_ids/page.py",
                label="Open in Semantic IDs",
                icon=":material/account_tree:",
                query_params=state.link_params(left=tokenization.name, of=tokenization.name, prefix=str(code)),
            )
        st.button(
            "Select its items", key="map_code_select", icon=":material/select_all:", disabled=not len(items),
            on_click=guard.callback(select, f"prefix.{tokenization.name}~{prefix}"),
        )  # fmt: skip
        st.button(
            "Zoom to them", key="map_code_zoom", disabled=not len(items), on_click=guard.callback(zoom_to, tuple(items.tolist())),
        )  # fmt: skip
        st.button(
            "Deselect", key="map_code_clear", type="tertiary", on_click=guard.callback(state.choose, code=None),
        )  # fmt: skip
    if level:
        st.caption(
            f"A code of level {level + 1} encodes the residual after the earlier codes, so its meaning depends on them."
        )
    if not len(items):
        st.info("No item has this code: it is a dead code.")
        return
    item_map.item_table(page, items.tolist(), key="map_code", name=f"{tokenization.name} level {level + 1} code {code}")


def _marks(page: MapChoices, place: Place, codes: views.Codes) -> views.Marks:
    firsts = {int(codes.code[row]): row for row in np.flatnonzero(codes.level == 0).tolist()}
    history = state.numbers(page.models, state.get().current) if "history" in page.layers else ()
    first = codes.own[:, 0]
    chosen = page.code if page.code is not None and page.code[0] == place.owner.name else None
    return views.Marks(
        history=tuple(firsts[code] for code in first[list(history)].tolist() if code in firsts),
        hits=codes.held(page.hits) if page.hits else (),
        path=codes.path(page.item) if page.item is not None else (),
        chosen=codes.rows.get(chosen[1]) if chosen is not None else None,
    )


def _legend(page: MapChoices, codes: views.Codes, marks: views.Marks) -> None:
    parts = [views.signs(codes), "hollow: no item has it", "the larger, the more items"]
    if marks.history:
        parts.append("**❶ …** first codes of the history's items")
    if marks.hits:
        parts.append("**○** has an item that was found")
    if marks.path:
        parts.append("rings and line: the chosen item's codes, level after level")
    if marks.chosen is not None:
        parts.append("**★** chosen")
    st.caption(" · ".join(parts))
    if page.by == "cluster":
        st.caption(
            "Clusters are formed within a level: those of the same number at other levels have nothing in common."
        )


def _take(place: Place) -> None:
    """A click chooses a code, a box or a lasso selects the items of some."""
    models, chosen = zoo.open_zoo(state.get().dataset), clicked(place)
    codes = spaces.codes(models, place)
    rows = map_points.selected(chosen, codes.points, codes.rows.get, sampled=False)
    outlines: list[map_points.Outline] = map_points.areas(chosen)
    if outlines:
        draw_around(models, place, outlines, rows)
    elif len(rows) == 1:
        state.choose(code=f"{place.owner.name}.{codes.name(rows[0])}")
    elif not rows:
        select(None)
