"""Map: the items as each model arranges them, with the history on top. ?item=item_id chooses an item."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from app import export, guard, state, zoo
from app.store.attributes import caption
from app.store.catalogue import MAX_QUERY, Catalogue
from app.text import clean, count, md
from app.views import catalogue as listing
from app.views import map as views
from app.views import map_colour, map_points
from app.widgets import neighbours, viewport
from engine.errors import SeqscopeError
from engine.runtime import Bundle, Zoo

SHOWN = 200  # rows of the table of selected items
ADDED = 20  # selected items that are added at once
MATCHES = 500  # items that a search marks
NEAR = 8
NONE = "None"
HISTORY, NEXT = "History path", "Next items"


def show() -> None:
    st.title("Map")
    page()


@st.fragment
def page() -> None:
    with guard.watch("the map"):
        now = state.get()
        models, found = zoo.open_zoo(now.dataset), zoo.open_catalogue(now.dataset)
        able = [name for name, bundle in models.bundles.items() if bundle.cannot("map") is None]
        if not able:
            st.info("None of this dataset's models has a map.", icon=":material/scatter_plot:")
            unable(models)
            st.page_link("screens/compare.py", label="Compare what they recommend", icon=":material/compare_arrows:")
            return
        st.caption("Items that a model treats alike lie close together. Every model has a map of its own.")
        first, second, colour, text, layers = controls(models, found, able)
        item = chosen(models)
        hits = tuple(hit.item for hit in found.search(text, MATCHES)) if text else ()
        told(models, text, hits)
        colours = None if colour is None else colouring(now.dataset, models, found, colour)
        shown = [first] if second is None else [first, second]
        places = st.columns(len(shown), gap="medium") if second else [st.container()]
        for place, name in zip(places, shown, strict=True):
            with place, guard.watch(f"the map of {models.bundles[name].manifest.title}"):
                one_map(models, models.bundles[name], colours, hits, item, layers, second is not None)
        note = f" {md(colours.note)}" if colours is not None else ""
        st.caption(
            "Distances between far clusters are not meaningful, and the axes have no units: read who is next to whom, "
            f"not how far apart groups are.{note}"
        )
        unable(models)
        with guard.watch("the selected items"):
            selection(models, found)
        with guard.watch("the chosen item"):
            about(models, item)


# --- controls


def controls(models: Zoo, found: Catalogue, able: list[str]) -> tuple[str, str | None, str | None, str, frozenset[str]]:
    """(model, model beside it, column to colour by, search, what is drawn on top)"""
    titles = {name: models.bundles[name].manifest.title for name in able}
    possible, left_out = colourable(found)
    if st.session_state.get("map_model") not in able:
        st.session_state["map_model"] = able[0]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        first = st.segmented_control(
            "Model",
            able,
            format_func=lambda name: md(titles.get(name, name)),
            key="map_model",
            required=True,
            persist_state="session",
        )
        others = [NONE, *(name for name in able if name != first)]
        if st.session_state.get("map_second") not in others:
            st.session_state["map_second"] = NONE
        second = st.selectbox(
            "Beside it",
            others,
            format_func=lambda name: clean(titles.get(name, name)),
            key="map_second",
            width=150,
            persist_state="session",
            disabled=len(others) == 1,
        )
        if st.session_state.get("map_colour") not in [NONE, *possible]:
            st.session_state["map_colour"] = preferred(possible)
        colour = st.selectbox(
            "Colour by",
            [NONE, *possible],
            format_func=caption,
            key="map_colour",
            width=180,
            persist_state="session",
        )
        text = st.text_input(
            "Find on the map",
            key="map_search",
            type="search",
            live="300ms",
            max_chars=MAX_QUERY,
            placeholder="Type a title …",
            width=240,
            persist_state="session",
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        layers = st.pills(
            "On top",
            [HISTORY, NEXT],
            selection_mode="multi",
            default=[HISTORY, NEXT],
            key="map_layers",
            label_visibility="collapsed",
            persist_state="session",
        )
        st.button(
            "Whole map",
            icon=":material/zoom_out_map:",
            type="tertiary",
            key="map_whole",
            on_click=guard.callback(look_at),
            args=(None,),
        )
        with st.popover("Columns without colours", type="tertiary", key="map_left_out", on_change="rerun") as folded:
            if folded.open:
                for name, why in left_out:
                    st.caption(f"**{md(name)}** – {md(why)}")
    return (
        first if first in able else able[0],
        second if second in others and second != NONE else None,
        colour if colour in possible else None,
        (text or "").strip()[:MAX_QUERY],
        frozenset(layers or ()),
    )


def preferred(possible: list[str]) -> str:
    return next(
        (name for name in ("genres", "genre", "categories", "category", "popularity") if name in possible), NONE
    )


def told(models: Zoo, text: str, hits: tuple[int, ...]) -> None:
    if not text:
        return
    if not hits:
        st.caption(md(f"Nothing like “{clean(text, 60)}” among {len(models):,} titles. Try fewer letters."))
        return
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
        more = "at least " if len(hits) == MATCHES else ""
        st.caption(f"{more}{count(len(hits), 'item')} ringed. Choose one:", width="content")
        for item in hits[:6]:
            st.button(
                md(zoo.titled(models, item), 50),
                key=f"map_hit_{item}",
                on_click=guard.callback(choose),
                args=(models.item_ids[item],),
            )


def unable(models: Zoo) -> None:
    for bundle in models.bundles.values():
        reason = bundle.cannot("map")
        if reason is not None:
            st.caption(f":material/block: **{md(bundle.manifest.title)}** has no map. {md(reason, 400)}")


# --- a map


@dataclass(frozen=True)
class Drawn:
    """What a figure on the screen shows. While nothing else changes it stays the very same, and the browser keeps it."""

    contents: tuple[object, ...]
    view: viewport.View | None
    selection: tuple[int, ...]


def one_map(
    models: Zoo,
    bundle: Bundle,
    colours: map_colour.Colouring | None,
    hits: tuple[int, ...],
    item: int | None,
    layers: frozenset[str],
    beside: bool,
) -> None:
    now = state.get()
    table = bundle.map_table()
    if table is None:
        st.info("This export has no map. Export the model again.")
        return
    points = coordinates(models, bundle)
    history = state.numbers(models, now.history)
    following: tuple[int, ...] = ()
    trouble = None
    if NEXT in layers:
        try:
            following = tuple(zoo.top(models, bundle.name, history, now.k).items.tolist())
        except SeqscopeError as error:
            trouble = str(error)
    near: tuple[int, ...] = ()
    if item is not None and bundle.cannot("neighbours") is None:
        near = tuple(zoo.neighbours(models, bundle.name, item, NEAR).items.tolist())
    marks = map_points.Marks(history if HISTORY in layers else (), following, hits, item, near)
    dark = st.context.theme.type == "dark"
    style = zoo.style(models, bundle.name)
    key = f"map_{bundle.name}"
    contents = (now.dataset, bundle.digest, colours.name if colours else None, marks, dark, beside, moved(key))
    drawn = as_drawn(key, contents)
    fig = views.figure(
        points,
        colours,
        replace(marks, selection=drawn.selection),
        views.Look.of(dark, style.colour, style.marker),
        models.titles,
        models.item_ids,
        view=drawn.view,
        height=460 if beside else 560,
    )
    if beside:
        st.markdown(f"**{style.sign} {md(bundle.manifest.title)}**")
    if len(points) > map_points.ALL:
        st.caption(
            f"{len(points):,} items as a density image; on it {map_points.SAMPLE:,} of them as points, the same share of "
            "every group, and everything that is marked. The search covers all."
        )
    export.figure(
        fig,
        key=key,
        alt=views.alt(bundle.manifest.title, points, colours, marks),
        table=map_points.marks_table(marks, points, models.titles, models.item_ids),
        name=f"map {bundle.name}",
        height=460 if beside else 560,
        on_select=guard.callback(lambda: take(key, bundle.name)),
        selection_mode=("points", "box", "lasso"),
        plotly={"scrollZoom": True, "modeBarButtonsToRemove": ["autoScale2d"]},
    )
    viewport.watch(key)
    legend(marks, style.sign, trouble)
    trust(bundle, points, models)


def legend(marks: map_points.Marks, sign: str, trouble: str | None) -> None:
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


def trust(bundle: Bundle, points: map_points.Points, models: Zoo) -> None:
    how = bundle.manifest.projection
    if how is None:
        return
    settings = ", ".join(f"{name} {value}" for name, value in how.parameters.items())
    missing = len(models) - len(points)
    also = f" {count(missing, 'item')} of the catalogue not on the map." if missing else ""
    st.caption(
        md(
            f"Trustworthiness {how.trustworthiness:.2f} of 1: how far the {how.neighbours} items around each one on the map "
            f"are also near it in the model's own space. {views.verdict(how.trustworthiness)}{also}",
            1_000,
        ),
        help=md(f"{how.method}, made once at export: {settings}", 600),
    )
    if bundle.cannot("identifiers") is None:
        st.caption("This model writes codes. Its space is that of the vectors that the codes were made from.")


def as_drawn(key: str, contents: tuple[object, ...]) -> Drawn:
    wanted: tuple[int, ...] = chosen_area()
    before = st.session_state.get(f"{key}_drawn")
    # What was just drawn around in this figure its browser shows already; drawing it anew would only make it flicker.
    known = st.session_state.get("map_area_of") == key
    if isinstance(before, Drawn) and before.contents == contents and (known or before.selection == wanted):
        return before
    seen = viewport.of(key)
    asked, then = st.session_state.get(f"{key}_view", (None, None))
    view = asked if asked is not None and then == seen else seen
    if isinstance(before, Drawn) and before.contents[:2] != contents[:2]:
        view = None
    drawn = Drawn(contents, view, wanted)
    st.session_state[f"{key}_drawn"] = drawn
    return drawn


def moved(key: str) -> int:
    """How often the view was set from a button."""
    number = st.session_state.get(f"{key}_moved", 0)
    return number if isinstance(number, int) else 0


def take(key: str, model: str) -> None:
    """A click chooses an item, a box or a lasso selects some."""
    models = zoo.open_zoo(state.get().dataset)
    event = st.session_state.get(key)
    chosen_now = event.get("selection", {}) if isinstance(event, dict) else {}
    points = coordinates(models, models.bundles[model])
    sampled = len(points) > map_points.ALL
    found = map_points.selected(chosen_now, points, positions(models), sampled=sampled)
    if not chosen_now.get("box") and not chosen_now.get("lasso"):
        if len(found) == 1:
            choose(models.item_ids[found[0]])
        elif not found:
            clear_area()
        return
    st.session_state["map_area"] = (state.get().dataset, tuple(found))
    st.session_state["map_area_of"] = key


def positions(models: Zoo) -> views.Positions:
    return views.Positions(models.position)


def chosen_area() -> tuple[int, ...]:
    dataset, items = st.session_state.get("map_area", (None, ()))
    return items if dataset == state.get().dataset else ()


def clear_area() -> None:
    st.session_state.pop("map_area", None)
    st.session_state.pop("map_area_of", None)


def look_at(items: tuple[int, ...] | None) -> None:
    """Shows these items on every map; None: the whole maps."""
    models = zoo.open_zoo(state.get().dataset)
    for name, bundle in models.bundles.items():
        if bundle.cannot("map") is not None:
            continue
        points = coordinates(models, bundle)
        everything = tuple(points.items.tolist())
        view = points.view(items or everything, 0.35 if items else 0.06)
        st.session_state[f"map_{name}_view"] = (view, viewport.of(f"map_{name}"))
        st.session_state[f"map_{name}_moved"] = moved(f"map_{name}") + 1


# --- what was selected, what was chosen


def selection(models: Zoo, found: Catalogue) -> None:
    items = chosen_area()
    st.subheader("Selected items", anchor=False)
    if not items:
        st.caption(
            "Nothing is selected. Draw around items with the lasso or the box from the bar above the map, and they are listed "
            "here, to add or to take away."
        )
        return
    order = sorted(items, key=lambda item: -int(models.popularity[item]))
    rows = found.items.take(order[:SHOWN])
    more = f", the {SHOWN} most popular listed" if len(items) > SHOWN else ""
    st.caption(f"{count(len(items), 'item')}{more}.")
    some = order[:ADDED]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            f"Add {'all' if len(items) <= ADDED else 'the most popular'} {len(some)} to the history",
            icon=":material/add:",
            key="map_area_add",
            on_click=guard.callback(add),
            args=(tuple(models.item_ids[item] for item in some),),
        )
        export.csv_button(
            lambda: listing.table(found.items.take(order)), f"{models.info.name} selected", key="map_area"
        )
        st.button("Zoom to them", key="map_area_zoom", on_click=guard.callback(look_at), args=(tuple(items),))
        st.button("Clear selection", key="map_area_clear", type="tertiary", on_click=guard.callback(clear_area))
    table = listing.table(rows)
    table.insert(0, "Add", "Add")
    st.dataframe(
        table,
        hide_index=True,
        alt="The items selected on the map, the most popular first",
        column_config={
            "Add": st.column_config.ButtonColumn(
                "",
                key="map_row",
                type="tertiary",
                on_click=guard.callback(add_row),
                args=(tuple(order[:SHOWN]),),
            )
        },
    )


def about(models: Zoo, item: int | None) -> None:
    st.subheader("An item and its neighbours", anchor=False)
    if item is None:
        st.caption(
            "No item is chosen. Click a point or find a title above: its nearest items in every model's own space appear here."
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
            query_params={**st.query_params.to_dict(), "item": item_id},
        )
        st.button("Zoom to it", key="map_item_zoom", on_click=guard.callback(look_at), args=((item,),))
        st.button("Let go", key="map_item_clear", type="tertiary", on_click=guard.callback(unchoose))
    neighbours.show(models, item, key="map_item", on_open=choose, k=NEAR)


def chosen(models: Zoo) -> int | None:
    asked = st.query_params.get("item")
    item = None if asked is None else models.position(asked)
    if asked is not None and item is None:
        st.warning(md(f"This dataset has no item “{clean(asked, 80)}”."), icon=":material/link_off:")
    return item


def choose(item_id: str) -> None:
    st.query_params["item"] = item_id


def unchoose() -> None:
    st.query_params.pop("item", None)


def add(ids: tuple[str, ...]) -> None:
    for item_id in ids:
        state.add(item_id)
    st.rerun()  # the map alone would be drawn anew otherwise, and the history is beside it


def add_row(order: tuple[int, ...]) -> None:
    click = st.session_state.get("map_row")
    row = click["row"] if click else None
    if isinstance(row, int) and 0 <= row < len(order):
        add((zoo.open_zoo(state.get().dataset).item_ids[order[row]],))


# --- kept


@st.cache_resource(max_entries=16, show_spinner=False)
def _coordinates(_models: Zoo, _bundle: Bundle, digest: str) -> map_points.Points:
    table = _bundle.map_table()
    if table is None:
        raise SeqscopeError("This export has no map. Export the model again.")
    return map_points.Points.read(table, len(_models))


def coordinates(models: Zoo, bundle: Bundle) -> map_points.Points:
    return _coordinates(models, bundle, f"{models.path} {bundle.digest}")


@st.cache_resource(max_entries=64, show_spinner=False)
def _colouring(_found: Catalogue, name: str, stamp: str) -> map_colour.Colouring:
    return map_colour.colouring(_found.items, name)


def colouring(dataset: str, models: Zoo, found: Catalogue, name: str) -> map_colour.Colouring:
    return _colouring(found, name, f"{models.path} {models.info.fingerprint} {Zoo.stamp(models.path)}")


@st.cache_resource(max_entries=8, show_spinner=False)
def _colourable(_found: Catalogue, stamp: int) -> tuple[list[str], list[tuple[str, str]]]:
    return map_colour.possible(_found.items)


def colourable(found: Catalogue) -> tuple[list[str], list[tuple[str, str]]]:
    return _colourable(found, id(found))


show()
