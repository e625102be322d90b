"""Map: items as each model, their words or a tokenizer arranges them, with the history on top; and the codes of tokenizers."""

import streamlit as st

from app import guard, spaces, zoo
from app.components import history
from app.screens.map import code_map, controls, filters, item_map
from app.screens.map.chart import MapChoices
from app.session import state
from app.text import md
from engine.runtime import Zoo
from engine.writing import count


@st.fragment
def page() -> None:
    with guard.watch("the map"), st.container(key="map_page", gap="small"):
        now = state.get()
        models, catalogue = zoo.open_zoo(now.dataset), zoo.open_catalogue(now.dataset)
        if not spaces.able(models):
            st.title("Map")
            st.info("Nothing of this dataset has a map.", icon=":material/scatter_plot:")
            unable(models)
            st.page_link(
                "screens/compare/page.py", label="Compare what they recommend", icon=":material/compare_arrows:"
            )
            return
        history.sides()
        this = controls.show(models, catalogue)
        maps(this)
        if this.colours is not None and this.colours.note:
            st.caption(md(this.colours.note))
        unable(models)
        for words, part in (
            ("the chosen code", code_map.about),
            ("the selected items", item_map.selected_items),
        ):
            with guard.watch(words):
                part(this)


def maps(this: MapChoices) -> None:
    with st.container(key="map_maps"):
        shown = st.columns(len(this.places), gap="small") if this.beside else [st.container()]
        for where, place in zip(shown, this.places, strict=True):
            with where, guard.watch(f"the map of {place.title}"):
                part = code_map if place.of_codes else item_map
                part.show(this, place)
        with guard.watch("the attributes"):
            filters.show(this)


def unable(models: Zoo) -> None:
    without = [place for place in spaces.every(models) if place.cannot is not None]
    if not without:
        return
    with st.expander(f"{count(len(without), 'space')} without a map", type="compact"):
        for place in without:
            st.caption(f":material/block: **{md(place.title)}**: no map. {md(place.cannot, 400)}")


page()
