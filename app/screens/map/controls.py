"""What the page Map is asked for: which maps, their colours, a search, what is drawn on top. All of it is in the address."""

import streamlit as st

from app import glossary, guard, spaces, zoo
from app.analysis import facets, map_colouring
from app.analysis.cache import cached, stamp
from app.components import choice, item_picker
from app.figures import map_codes
from app.screens.map import CODE, LAYERS, NEXT, NOTHING, chosen_code, filters, shown_layers, shown_places
from app.screens.map.chart import MapChoices, selected, zoom_to
from app.session import state
from app.store.attributes import caption
from app.store.catalogue import Catalogue
from app.store.search import Hit
from app.text import clean, md
from engine.runtime import Zoo
from engine.writing import count

MATCHES = 500  # items that a search marks
_OFFERED = 6  # of them, to choose from
_PROJECTIONS = {"umap": "UMAP", "pca": "PCA"}
_LAYERS = dict(zip(LAYERS, ("History", "Next items"), strict=True))


def show(models: Zoo, catalogue: Catalogue) -> MapChoices:
    page_parameters = state.get().own
    able = spaces.able(models)
    possible = _colourable(catalogue, stamp(models))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall", key="map_controls"):
        st.title("Map", anchor=False, width="content", help=glossary.tooltip("Map"))
        titles = {key: place.title for key, place in able.items()}
        places = shown_places(models, page_parameters)
        first = choice.selected("Space", "space", titles, places[0].key, key="map_space", width=180)
        others = {NOTHING: "None", **{key: title for key, title in titles.items() if key != first}}
        second = places[1].key if len(places) > 1 else NOTHING
        choice.selected(
            "Compare with", "beside", others, second, key="map_second", width=160, disabled=len(others) == 1
        )
        choice.segmented("Projection", "projection", _PROJECTIONS, "umap", key="map_projection")
        colour = _colour(models, possible) if any(not place.of_codes for place in places) else NOTHING
        by = "level"
        if any(place.of_codes for place in places):
            by = choice.selected("Colour codes by", "by", map_codes.CALLED, "level", key="map_by", width=150)
        text = choice.searched("Find on the map", key="map_search", placeholder="Title, genre …", width=160)
        colours = filters.recoloured(models, _colouring_of(models, catalogue, colour))
        with st.popover("Display", type="tertiary", icon=":material/tune:"):
            layers = _layers(any(place.model is not None for place in places))
            if colours is not None and colours.numbers is not None:
                _scale(colours)
        st.button(
            "Reset view",
            icon=":material/zoom_out_map:",
            type="tertiary",
            key="map_whole",
            on_click=guard.callback(zoom_to, None),
        )
    meant = catalogue.meant(text)
    hits = catalogue.search(meant, MATCHES, everywhere=True)
    _told(models, catalogue, text, meant, hits)
    selection = selected(models)
    return MapChoices(
        models,
        catalogue,
        places,
        colours,
        by,
        tuple(hit.item for hit in hits),
        state.selected(models),
        chosen_code(models, page_parameters),
        layers,
        selection,
        bool(selection) and filters.isolated(),
        filters.shown(models, selection),
    )


def _scale(colours: map_colouring.Colouring) -> None:
    words: dict[str, str] = {scale: scale.capitalize() for scale in map_colouring.SCALES if colours.can(scale)}
    choice.segmented(
        "Colour scale",
        "scale",
        words,
        colours.scale,
        key="map_scale",
        help="Quantile: colours follow the rank, so that each has as many items.",
    )


def _colour(models: Zoo, possible: list[str]) -> str:
    coded = {
        f"{CODE}{name}": f"First code by {tokenization.about.title}"
        for name, tokenization in models.tokenizations.items()
    }
    options = {NOTHING: "None", **{name: caption(name) for name in possible}, **coded}
    preferred = ("genres", "genre", "categories", "category", "popularity")
    usual = next((name for name in preferred if name in possible), NOTHING)
    return choice.selected("Colour by", "colour", options, usual, key="map_colour", width=140)


def _layers(of_models: bool) -> frozenset[str]:
    """of_models: whether a model's space is shown; others recommend nothing, so there is nothing to offer."""
    layers, key = shown_layers(state.get().own), "map_layers"
    offered = LAYERS if of_models else tuple(name for name in LAYERS if name != NEXT)
    st.session_state[key] = [name for name in offered if name in layers]
    st.pills(
        "Show",
        offered,
        selection_mode="multi",
        format_func=_LAYERS.__getitem__,
        key=key,
        on_change=guard.callback(_layered, key, offered),
    )
    return layers


def _layered(key: str, offered: tuple[str, ...]) -> None:
    """What was not offered stays as it was."""
    before, chosen = shown_layers(state.get().own), st.session_state.get(key) or ()
    layers = [name for name in LAYERS if name in (chosen if name in offered else before)]
    state.choose(top=None if len(layers) == len(LAYERS) else "~".join(layers) or NOTHING)


def _told(models: Zoo, catalogue: Catalogue, text: str, meant: str, hits: list[Hit]) -> None:
    if not text:
        return
    if not hits:
        st.caption(md(f"Nothing like “{clean(text, 60)}” among {count(len(models), 'item')}. Try fewer letters."))
        return
    if meant != text:
        st.caption(facets.nearest(text, meant))
    with item_picker.hits_of(text, key="map", horizontal=True, gap="xsmall", vertical_alignment="center"):
        more = "at least " if len(hits) == MATCHES else ""
        which = f"one of the first {_OFFERED}" if len(hits) > _OFFERED else "one"
        st.caption(f"{more}{count(len(hits), 'item')} ringed. Choose {which}:", width="content")
        for hit in hits[:_OFFERED]:
            st.button(
                md(zoo.titled(models, hit.item), 50) + item_picker.reason(catalogue, hit, meant),
                key=f"map_hit_{hit.item}",
                type="tertiary",
                on_click=guard.callback(_choose_found, hit.item, hit.item_id),
            )
        st.button(
            "Zoom to all",
            key="map_found_zoom",
            type="tertiary",
            icon=":material/center_focus_strong:",
            on_click=guard.callback(zoom_to, tuple(hit.item for hit in hits)),
        )


def _choose_found(item: int, item_id: str) -> None:
    zoom_to((item,))
    item_picker.choose(item_id)


# --- kept


def _colouring_of(models: Zoo, catalogue: Catalogue, colour: str) -> map_colouring.Colouring | None:
    if colour == NOTHING:
        return None
    if colour in catalogue.items.column_names:
        scale = next((scale for scale in map_colouring.SCALES if scale == state.get().own.get("scale")), None)
        return _colouring(catalogue, colour, scale, stamp(models))
    return _coding(models, colour.removeprefix(CODE))


@cached(64, by=lambda catalogue, name, scale, stamp: (name, scale, stamp))
def _colouring(
    catalogue: Catalogue, name: str, scale: map_colouring.Scale | None, stamp: str
) -> map_colouring.Colouring:
    return map_colouring.colouring(catalogue.items, name, scale)


@cached(16, by=lambda models, name: (name, stamp(models)))
def _coding(models: Zoo, name: str) -> map_colouring.Colouring:
    tokenization = models.tokenizations[name]
    return map_colouring.by_code(
        tokenization.learned[:, 0], f"{CODE}{name}", f"First code by {tokenization.about.title}"
    )


@cached(8, by=lambda catalogue, stamp: stamp)
def _colourable(catalogue: Catalogue, stamp: str) -> list[str]:
    return map_colouring.possible(catalogue.items)
