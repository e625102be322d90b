"""The figures of the page Map on the screen: what they show, which part of it is looked at, and which items are selected."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import export, guard, spaces, zoo
from app.analysis import map_points, semantic_ids
from app.analysis.map_colouring import Colouring
from app.analysis.map_regions import Region
from app.components import widgets
from app.figures import map as figures
from app.figures.map import Range
from app.screens.map import shown_places
from app.session import state
from app.session.address import decode, encode
from app.spaces import Place
from app.store.catalogue import Catalogue
from app.text import clean, md, percent
from engine.bundle.manifest import SAMPLE
from engine.runtime import Zoo
from engine.writing import count

_HEIGHT = (
    700  # pixels of a figure, about, until its browser names them: drawn first at another height, it would show more
)
_HELD_SELECTION = "map_area"  # (dataset, items): a selection that no address can say
_DRAWN_ON = "map_area_of"  # the key of the figure that was just drawn around in


@dataclass(frozen=True)
class MapChoices:
    models: Zoo
    catalogue: Catalogue
    places: tuple[Place, ...]
    """One, or two side by side."""
    colours: Colouring | None
    """Of items."""
    by: str
    """What colours codes."""
    hits: tuple[int, ...]
    """Items that the search found."""
    item: int | None
    code: tuple[str, str] | None
    """(tokenizer, level-code) that is chosen."""
    layers: frozenset[str]
    selection: tuple[int, ...]
    isolated: bool = False
    """Of items, the selection alone is shown."""
    shown: npt.NDArray[np.bool_] | None = None
    """[items]; None: all."""

    @property
    def counted(self) -> bool:
        """Whether bars beside the map count the groups that it is coloured by, and so are its legend."""
        counted = spaces.attributes(self.models)
        return self.colours is not None and any(attribute.name == self.colours.name for attribute in counted)

    @property
    def beside(self) -> bool:
        return len(self.places) > 1


# --- the selection


def selected(models: Zoo) -> tuple[int, ...]:
    """The items that are selected, ascending."""
    now = state.get()
    area = now.own.get("area")
    if area is None:
        dataset, items = st.session_state.get(_HELD_SELECTION, (None, ()))
        return items if dataset == now.dataset else ()
    return tuple(items_within(models, area).tolist())


def items_within(models: Zoo, area: str) -> np.ndarray:
    """The items that an area of the address selects, by number, ascending."""
    where, selection = map_points.split(area)
    if where == map_points.IDS:
        return np.array(sorted(set(state.numbers(models, decode(selection)))), np.int64)
    if where.startswith("prefix."):
        tokenization = models.tokenizations.get(where.removeprefix("prefix."))
        return (
            semantic_ids.with_prefix(tokenization.learned, map_points.prefix(selection) or ())
            if tokenization is not None
            else np.empty(0, np.int64)
        )
    place, outlines = spaces.mapped(models, where), map_points.outlines(selection)
    if place is None or outlines is None:
        return np.empty(0, np.int64)
    inside = map_points.within(spaces.points(models, place), outlines)
    return spaces.codes(models, place).having(inside.tolist()) if place.of_codes else inside


def is_held() -> bool:
    """Whether the selection is one that no address says."""
    return "area" not in state.get().own and _HELD_SELECTION in st.session_state


def drawn_on(key: str) -> bool:
    """Whether the selection was drawn in this figure, so that its browser shows it already."""
    return bool(st.session_state.get(_DRAWN_ON) == key)


def select(area: str | None) -> None:
    """Selects what the text says; None: nothing."""
    st.session_state.pop(_HELD_SELECTION, None)
    st.session_state.pop(_DRAWN_ON, None)
    state.choose(area=area, **({} if area else {"isolate": None}))


def draw_around(models: Zoo, place: Place, outlines: list[map_points.Outline], carried: list[int]) -> None:
    """Selects what was drawn around in the figure of a place. carried: the points that the browser says are inside, which may be
    fewer than those inside the outlines where some were hidden."""
    points = spaces.points(models, place)
    text = map_points.outline_text(points, outlines)
    if text is not None and map_points.within(points, outlines).tolist() == carried:
        select(f"{place.area}~{text}")
    else:
        items = spaces.codes(models, place).having(carried).tolist() if place.of_codes else carried
        named = f"{map_points.IDS}~{encode(models.item_ids[item] for item in items)}"
        if not items or (len(items) <= map_points.LISTED and len(named) <= map_points.LONGEST):
            select(named if items else None)
        else:
            select(None)
            st.session_state[_HELD_SELECTION] = (state.get().dataset, tuple(items))
    st.session_state[_DRAWN_ON] = chart_key(place)


# --- what is chosen


@dataclass(frozen=True)
class Shown:
    """What a figure on the screen shows. While nothing else changes it stays the very same, and the browser keeps it."""

    contents: tuple[object, ...]
    view: Range | None
    height: float
    """Of the figure, in pixels."""
    selection: tuple[int, ...]


def chart_key(place: Place) -> str:
    return f"map_{place.slug}"


def as_shown(name: str, contents: tuple[object, ...], selection: tuple[int, ...]) -> Shown:
    """name: the figure's key. contents: all that decides how it looks, but view and selection; dataset and digest first."""
    before = st.session_state.get(f"{name}_drawn")
    # What was just drawn around in this figure its browser shows already; drawing it anew would only make it flicker.
    if isinstance(before, Shown) and before.contents == contents and (drawn_on(name) or before.selection == selection):
        return before
    seen = widgets.viewport(name)
    if isinstance(before, Shown) and before.contents[:2] != contents[:2]:
        st.session_state[f"{name}_view"] = (None, seen)  # which is a part of another map
    view_set, view_before = st.session_state.get(f"{name}_view", (None, None))
    view: Range | None = view_set if view_before == seen else seen and seen[:4]
    drawn = Shown(contents, view, seen[4] if seen else _HEIGHT, selection)
    st.session_state[f"{name}_drawn"] = drawn
    return drawn


def show_figure(
    fig: export.Figure,
    page: MapChoices,
    place: Place,
    *,
    alt: str,
    table: export.Table,
    take: Callable[[Place], None],
    regions: Sequence[Region] = (),
) -> DeltaGenerator:
    """Draws a place with the names of its regions; returns where words about it stand. take: called on a selection."""
    name = chart_key(place)
    with st.container(key=f"map_frame_{1 + page.places.index(place)}"):
        if page.beside:
            st.markdown(f"**{place.style.sign} {md(place.title)}**")
        export.figure(
            fig if widgets.has_webgl() else figures.as_svg(fig),
            key=name,
            alt=alt,
            table=table,
            name=f"map {place.slug}",
            height="stretch",
            on_select=guard.callback(take, place),
            selection_mode=("points", "box", "lasso"),
            plotly={
                "scrollZoom": True,
                "plotGlPixelRatio": widgets.pixel_ratio(),
                "modeBarButtonsToRemove": ["autoScale2d"],
            },
        )
        points = spaces.points(page.models, place)
        names = [(region.x, region.y, region.level, clean(region.name, 40)) for region in regions]
        width = float(np.nanmax(points.x) - np.nanmin(points.x))
        widgets.over_map(name, names, width, linked=page.beside)
        return st.container(gap="xxsmall")


def quality(models: Zoo, place: Place, drawn: int, every: int, singular: str) -> None:
    """How far a map can be believed. drawn: points on it, of `every`; singular: what a point is."""
    if place.projection == "pca":
        first, second = spaces.plane(models, place).shares
        words = (
            f"PCA of {count(drawn, 'vector')}{' at length 1' * (place.geometry == 'cosine')}: the axes explain "
            f"{percent(first)} and {percent(second)} of their variance. "
            "What is far apart here is far apart in the space; what is close here need not be close there."
        )
        st.caption(md(words, 1_000))
    elif (how := place.how) is not None:
        missing = f" {count(every - drawn, singular)} of the catalogue not on the map." if every > drawn else ""
        words = (
            f"UMAP, trustworthiness {how.trustworthiness:.2f} of 1: {figures.verdict(how.trustworthiness)} Distances between far "
            f"clusters are not meaningful, and the axes have no units.{missing}"
        )
        settings = ", ".join(f"{name} {value}" for name, value in how.parameters.items())
        each = f"of {SAMPLE:,} drawn at random" if drawn > SAMPLE else "one"
        meaning = (
            f"How far the {how.neighbours} {singular}s around each {each} on the map are also near it in the space itself. "
            f"{how.method}, made once at export: {settings}"
        )
        st.caption(md(words, 1_000), help=md(meaning, 600))


def clicked(place: Place) -> dict[str, Any]:
    """What the browser says is selected in the figure of a place."""
    event = st.session_state.get(chart_key(place))
    return event.get("selection", {}) if isinstance(event, dict) else {}


def times_moved(name: str) -> int:
    """How often the view was set from a button."""
    number = st.session_state.get(f"{name}_moved", 0)
    return number if isinstance(number, int) else 0


def zoom_to(items: tuple[int, ...] | None) -> None:
    """Shows these items, or their codes, on the maps of now; None: the whole maps."""
    models = zoo.open_zoo(state.get().dataset)
    for place in shown_places(models, state.get().own):
        points, name = spaces.points(models, place), chart_key(place)
        shown = items
        if items is not None and place.of_codes:
            shown = spaces.codes(models, place).held(items)
        view, seen = points.view(shown or tuple(points.items.tolist()), 0.35 if shown else 0.06), widgets.viewport(name)
        st.session_state[f"{name}_view"] = (view or (seen and seen[:4]), seen)
        st.session_state[f"{name}_moved"] = times_moved(name) + 1
