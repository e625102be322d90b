"""Below the maps: the items that are selected, and the one that is chosen with its neighbours."""

from __future__ import annotations

import streamlit as st

from app import export, guard, spaces, state, zoo
from app.analysis import facets
from app.parts.map_drawn import look_at
from app.parts.map_items import NEAR
from app.parts.map_page import Page, add, choose, is_held, select
from app.text import count, md
from app.widgets import adding, neighbours

SHOWN = 200  # rows of a table of items


def selection(page: Page) -> None:
    items = page.selection
    st.subheader("Selected items", anchor=False)
    if not items:
        st.caption(
            "Nothing is selected. Draw around items with the lasso or the box from the bar above the map, and they are listed "
            "here, to add or to take away."
        )
        return
    if is_held():
        st.caption("This selection is too long for a link: a reload forgets it.")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Zoom to them", key="map_area_zoom", on_click=guard.callback(look_at), args=(tuple(items),))
        st.button(
            "Clear selection", key="map_area_clear", type="tertiary", on_click=guard.callback(select), args=(None,)
        )
    listed(page, list(items), key="map_area", name=f"{page.models.info.name} selected")


def listed(page: Page, items: list[int], *, key: str, name: str) -> None:
    """A table of items, the most popular first, to add to the history or to download. name: of the file."""
    models = page.models
    order = sorted(items, key=lambda item: -int(models.popularity[item]))
    most = "most popular" if models.has_log else "first"
    more = f", the {SHOWN} {most} listed" if len(order) > SHOWN else ""
    st.caption(f"{count(len(order), 'item')}{more}.")
    with st.container(horizontal=True, vertical_alignment="center"):
        adding.several([models.item_ids[item] for item in order], key=f"{key}_add", most=most, on_add=add)
        export.csv_button(lambda: facets.table(page.found.rows(order)), name, key=key)
    table = facets.table(page.found.rows(order[:SHOWN]))
    table.insert(0, "Add", "Add")
    st.dataframe(
        table,
        hide_index=True,
        alt="These items, the most popular first" if models.has_log else "These items",
        key=f"{key}_table",
        column_config={
            "Add": st.column_config.ButtonColumn(
                "",
                key=f"{key}_row",
                type="tertiary",
                on_click=guard.callback(_add_row),
                args=(f"{key}_row", tuple(order[:SHOWN])),
            )
        },
    )


def item(page: Page) -> None:
    models, item = page.models, page.item
    st.subheader("An item and its neighbours", anchor=False)
    if item is None:
        st.caption(
            "No item is chosen. Click a point or find a title above: its nearest items in every space appear here, computed in "
            "that space and not on the map."
        )
        return
    item_id = models.item_ids[item]
    st.markdown(f"**{md(zoo.titled(models, item), 200)}**")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Add to history",
            icon=":material/add:",
            key="map_item_add",
            on_click=guard.callback(add),
            args=((item_id,),),
        )
        st.page_link(
            "screens/catalogue.py",
            label="Its card",
            icon=":material/badge:",
            query_params={**state.link_params(), "item": item_id},
        )
        st.button("Zoom to it", key="map_item_zoom", on_click=guard.callback(look_at), args=((item,),))
        st.button("Let go", key="map_item_clear", type="tertiary", on_click=guard.callback(_let_go))
    others = [place for place in spaces.able(models).values() if place.model is None and not place.of_codes]
    neighbours.show(models, item, key="map_item", on_open=choose, k=NEAR, also=others)


def _let_go() -> None:
    state.choose(item=None)


def _add_row(key: str, order: tuple[int, ...]) -> None:
    click = st.session_state.get(key)
    row = click["row"] if click else None
    if isinstance(row, int) and 0 <= row < len(order):
        add((zoo.open_zoo(state.get().dataset).item_ids[order[row]],))
