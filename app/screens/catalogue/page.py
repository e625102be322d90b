"""Catalogue: search and filter the items, build a history. A click on an item opens its details beside the list."""

import pyarrow as pa
import streamlit as st

from app import export, guard, zoo
from app.analysis import facets as views
from app.analysis import item_card
from app.components import choice, item_picker, widgets
from app.screens.catalogue import MAX_VALUES, ROWS, chosen_filters, parameters_of
from app.session import state
from app.store.attributes import Among, Between, Facet, Filters, caption
from app.store.catalogue import Catalogue
from app.text import clean, md
from engine.runtime import Zoo
from engine.writing import count

BUTTONS = 8  # attributes with a button of their own; the others share one
LARGEST = 10_000  # rows of a file
_NO_FILTERS = {"only": None, "between": None, "page": None}


def show() -> None:
    st.title("Catalogue")
    browse()


# --- the list


@st.fragment
def browse() -> None:
    with guard.watch("the list of items"):
        now = state.get()
        models, catalogue = zoo.open_zoo(now.dataset), zoo.open_catalogue(now.dataset)
        usable = views.usable(catalogue.facets, len(models))
        text = choice.searched(
            "Search titles and attributes",
            key="catalogue_search",
            clears=("page",),
            live="250ms",
            placeholder="Titles, people, genres, descriptions …",
            label_visibility="collapsed",
        )
        conditions = filters(usable.facets)
        meant = catalogue.meant(text)
        if meant != text:
            st.caption(views.nearest(text, meant))
        facet_bar(catalogue, usable, meant, conditions)
        chips(conditions)
        results(models, catalogue, usable.facets, meant, conditions)


def results(models: Zoo, catalogue: Catalogue, facets: list[Facet], text: str, filters: Filters) -> None:
    orders = views.sorts(facets, models.has_log)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        headline = st.empty()
        titles = {key: words for key, (words, _, _) in orders.items()}
        order = choice.selected(
            "Order",
            "sort",
            titles,
            "relevance",
            key="catalogue_sort",
            clears=("page",),
            label_visibility="collapsed",
            width=250,
        )
    _, column, descending = orders[order]
    number = int(state.get().own.get("page", 1))
    page = catalogue.page(text, filters, sort=column, descending=descending, limit=ROWS, offset=(number - 1) * ROWS)
    pages = -(-page.total // ROWS)
    if number > pages > 0:  # of a link from before: the last one that there is
        number = pages
        page = catalogue.page(text, filters, sort=column, descending=descending, limit=ROWS, offset=(number - 1) * ROWS)
    total = views.headline(page.total, len(models), bool(text or filters))
    headline.markdown(md(total), width="content")
    widgets.announced(total, key="catalogue")
    if not page.total:
        nothing(models, text, filters)
        return
    rows(models, facets, page.rows.to_pylist(), text)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        choice.paged(pages, number, key="catalogue_page", width=380)
        export.table_buttons(
            lambda: views.table(every(catalogue, text, filters, column, descending)),
            f"{models.info.title} catalogue",
            key="catalogue",
            label="These items" if page.total <= LARGEST else f"The first {LARGEST:,}",
        )


def rows(models: Zoo, facets: list[Facet], hits: list[dict[str, object]], text: str) -> None:
    known, searched = set(state.get().current), zoo.open_catalogue(state.get().dataset).searched
    with item_picker.hits_of(text, key="catalogue", gap="xsmall"):
        for row in hits:
            item_id, title = str(row["item_id"]), zoo.titled(models, int(str(row["item"])))
            there = item_id in known
            with st.container(horizontal=True, vertical_alignment="center", gap="small", wrap=False):
                with st.container(gap=None):
                    st.button(
                        md(title, 120),
                        key=f"catalogue_open_{row['item']}",
                        type="tertiary",
                        wrap=False,
                        on_click=guard.callback(item_picker.choose, item_id),
                    )
                    words = [*views.matched(row, searched, text), *views.row_words(row, facets)]
                    if models.has_log:
                        place = item_card.standing(models.popularity, int(str(row["item"])))
                        words = [*words, f"popularity rank {place.rank:,}"]
                    st.caption(" · ".join(map(md, words)))
                st.button(
                    "In the history" if there else "Add",
                    key=f"catalogue_add_{row['item']}",
                    icon=":material/check:" if there else ":material/add:",
                    disabled=there,
                    help="Open its details to remove it or add it again"
                    if there
                    else "Put it at the end of the history",
                    on_click=guard.callback(add, item_id),
                )


def nothing(models: Zoo, text: str, filters: Filters) -> None:
    words = f"match “{clean(text, 60)}”" if text else "have these attributes"
    also = f"{' with these filters' if filters else ''}, not even roughly" if text else ""
    st.info(
        md(f"None of {count(len(models), 'item')} {words}{also}."),
        icon=":material/search_off:",
    )
    st.button(
        "Clear search and filters",
        on_click=guard.callback(state.choose, find=None, **_NO_FILTERS),
        key="catalogue_clear_nothing",
    )


def every(catalogue: Catalogue, text: str, filters: Filters, column: str, descending: bool) -> pa.Table:
    parts = []
    for offset in range(0, LARGEST, 1_000):
        part = catalogue.page(text, filters, sort=column, descending=descending, limit=1_000, offset=offset).rows
        parts.append(part)
        if part.num_rows < 1_000:
            break
    return pa.concat_tables(parts)


# --- filters: in the address, not in widgets, so that a folded one keeps its choice


def filters(facets: list[Facet]) -> dict[str, Among | Between]:
    """Those of the address that fit the attributes."""
    kinds = {facet.name: facet.kind for facet in facets}
    return {
        name: condition
        for name, condition in chosen_filters(state.get().own).items()
        if (kinds.get(name) == "range") == isinstance(condition, Between) and name in kinds
    }


def facet_bar(catalogue: Catalogue, usable: views.Usable, text: str, filters: Filters) -> None:
    with st.container(horizontal=True, gap="xsmall"):
        for facet in usable.facets[:BUTTONS]:
            # The chips say what is chosen: a label that does makes it another popover, a closed one.
            popover = st.popover(md(caption(facet.name)), key=f"catalogue_facet_{facet.name}", on_change="rerun")
            if popover.open:
                with popover:
                    facet_widget(catalogue, facet, text, filters)
        rest = usable.facets[BUTTONS:]
        if rest or usable.left_out:
            popover = st.popover("More", key="catalogue_facet_more", on_change="rerun", icon=":material/tune:")
            if popover.open:
                with popover:
                    for facet in rest:
                        facet_widget(catalogue, facet, text, filters)
                    for name, why in usable.left_out:
                        st.caption(f"**{md(name)}** cannot be filtered by: {md(why)}")


def facet_widget(catalogue: Catalogue, facet: Facet, text: str, filters: Filters) -> None:
    active = filters.get(facet.name)
    if facet.kind == "range":
        range_widget(catalogue, facet, text, filters, active if isinstance(active, Between) else None)
        return
    chosen = active.values if isinstance(active, Among) else ()
    options = views.counted(catalogue.counts(facet.name, text, filters), chosen)
    key = f"catalogue_values_{facet.name}"
    st.session_state[key] = list(chosen)
    if not options:
        st.caption("None of the items that match has a value.")
    elif len(facet.values) <= views.PILLS:
        st.pills(
            md(caption(facet.name)),
            list(options),
            selection_mode="multi",
            format_func=lambda value: md(options.get(value, value)),
            key=key,
            on_change=guard.callback(choose_values, facet.name, key),
        )
    else:
        st.multiselect(
            md(caption(facet.name)),
            list(options),
            format_func=lambda value: options.get(value, str(value)),
            key=key,
            placeholder=f"One or several of {len(options):,}",
            on_change=guard.callback(choose_values, facet.name, key),
        )
    if facet.missing:
        st.caption(md(f"{count(facet.missing, 'item')} without a value."))


def range_widget(catalogue: Catalogue, facet: Facet, text: str, filters: Filters, active: Between | None) -> None:
    cast = int if views.whole(facet) else float
    low, high = cast(facet.low or 0), cast(facet.high or 0)
    key = f"catalogue_range_{facet.name}"
    ends = (None, None) if active is None else (active.low, active.high)
    now = [
        usual if end is None else cast(min(max(end, low), high)) for end, usual in zip(ends, (low, high), strict=True)
    ]
    st.session_state[key] = (min(now), max(now))
    st.slider(
        md(caption(facet.name)),
        low,
        high,
        format="%d" if cast is int else None,
        key=key,
        on_change=guard.callback(choose_range, facet.name, key, low, high),
    )
    if views.years(facet):
        options = views.decades(catalogue.steps(facet.name, 10, text, filters))
        chosen = next((year for year in options if active and (active.low, active.high) == (year, year + 9)), None)
        decade = f"catalogue_decade_{facet.name}"
        st.session_state[decade] = chosen
        st.pills(
            "Decade",
            list(options),
            format_func=lambda year: options.get(year, str(year)),
            key=decade,
            on_change=guard.callback(choose_decade, facet.name, decade),
        )
    if facet.missing:
        st.caption(md(f"{count(facet.missing, 'item')} without a value are left out by this filter."))


def chips(filters: Filters) -> None:
    if not filters:
        return
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
        for name, condition in filters.items():
            st.button(
                md(views.filter_words(name, condition)),
                key=f"catalogue_chip_{name}",
                icon=":material/close:",
                icon_position="right",
                help="Remove this filter",
                on_click=guard.callback(set_filter, name, None),
            )
        st.button(
            "Clear all",
            type="tertiary",
            key="catalogue_clear_filters",
            on_click=guard.callback(state.choose, **_NO_FILTERS),
        )


def choose_values(name: str, key: str) -> None:
    values = tuple(map(str, st.session_state.get(key) or ()))
    set_filter(name, Among(values) if values else None)


def choose_range(name: str, key: str, low: float, high: float) -> None:
    chosen = st.session_state.get(key) or (low, high)
    set_filter(name, None if tuple(chosen) == (low, high) else Between(*chosen))


def choose_decade(name: str, key: str) -> None:
    year = st.session_state.get(key)
    set_filter(name, None if year is None else Between(year, year + 9))


def set_filter(name: str, condition: Among | Between | None) -> None:
    conditions = chosen_filters(state.get().own)
    conditions.pop(name, None)
    if condition is not None:
        conditions[name] = condition
    if sum(len(other.values) for other in conditions.values() if isinstance(other, Among)) > MAX_VALUES:
        st.toast(f"At most {MAX_VALUES} values can be chosen, of all attributes together.", icon=":material/info:")
        return
    state.choose(**parameters_of(conditions), page=None)


def add(item_id: str) -> None:
    if item_id not in state.get().current:  # a double click comes before the button has changed
        state.add(item_id)
    st.rerun()  # the list alone would be drawn anew otherwise, and the history is beside it


show()
