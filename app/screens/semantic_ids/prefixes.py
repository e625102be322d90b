"""Semantic IDs: the tree of prefixes, a branch of it and the items of that; the path of one item, and who shares it."""

import functools

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import export, guard, zoo
from app.analysis import facets, prefix_tree, semantic_ids, tokenizers
from app.components import choice, item_picker, sections
from app.figures import semantic_ids as figures
from app.screens.semantic_ids import browsed, prefix_codes
from app.screens.semantic_ids.selection import Selection, choose_prefix
from app.session import state
from app.store.attributes import caption
from app.text import clean, md
from engine.runtime import Tokenization, Zoo
from engine.writing import count


def show(page: Selection) -> None:
    """The trees of all items, or one branch of one of them, and its items."""
    choices = state.get().own
    name = browsed(page.models, choices)
    name = name if name in page.names else page.names[0]
    prefix = prefix_codes(choices)
    column, kinds = _colour(page)
    if prefix:
        branch = page.models.tokenizations[name]
        _breadcrumb(page, branch, prefix)
    with st.container(key="semantic_trees"):  # browser.css knows by it what can be clicked
        if prefix:
            _tree(page, branch, column, prefix)
        else:
            for tokenization in page.shown:  # one below the other: a box of one code in a hundred needs all the width
                st.markdown(page.heading(tokenization))
                _tree(page, tokenization, column, ())
    words = "Each row adds a code; box width: number of items. Click a box to open its branch"
    words += ", the top one to go back." if prefix else "."
    if column in kinds:
        words += (
            " Colour: the most common value, paler for a smaller share of the items; as on the map, an item with several values "
            "counts as its most frequent one."
        )
    if any(tokenization.identifiers.codes.shape[1] > tokenization.learned.shape[1] for tokenization in page.shown):
        words += " Left out: the last number of a semantic ID, which only disambiguates items with the same codes."
    st.caption(md(words))
    with guard.watch("the items of the branch"):
        _items(page, name, prefix)
    if not prefix:
        with guard.watch("the prefix purity"):
            _purity(page, column if column in kinds else (kinds or [""])[0])


def _colour(page: Selection) -> tuple[str, list[str]]:
    """(what the trees are coloured by, the columns of categories)"""
    models, items = page.models, page.catalogue.items
    kinds = tokenizers.columns(models, items)
    options = {
        name: caption(name) for name in [*kinds, *([tokenizers.POPULARITY] if models.has_log or not kinds else [])]
    }
    column = choice.selected(
        "Colour by", "colour", options, next(iter(options)), key=f"semantic_colour_{models.info.name}", width=220
    )
    return column, kinds


def _breadcrumb(page: Selection, tokenization: Tokenization, prefix: tuple[int, ...]) -> None:
    """The way back, code by code."""
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center", key="semantic_crumbs"):
        st.markdown(page.heading(tokenization), width="content")
        for depth in range(len(prefix)):
            st.button(
                str(prefix[depth - 1]) if depth else "All items",
                type="tertiary",
                key=f"semantic_crumb_{depth}",
                on_click=guard.callback(choose_prefix, tokenization.name, prefix[:depth]),
            )
            st.markdown("›", width="content")
        st.markdown(f"**{prefix[-1]}**", width="content")


def _tree(page: Selection, tokenization: Tokenization, column: str, prefix: tuple[int, ...]) -> None:
    models, items = page.models, page.catalogue.items
    branch, colours = (
        tokenizers.tree(tokenization, prefix),
        tokenizers.colours(models, items, tokenization, column, prefix),
    )
    key = f"semantic_tree_{tokenization.name}_{column}_{'-'.join(map(str, prefix))}"
    about = (tokenization.digest, column, prefix, tokenizers.stamp(models))
    export.figure(
        export.shared_figure(_tree_figure, models, branch, colours, about=about),
        key=key,
        alt=f"Prefix tree of {clean(tokenization.about.title)}{f' from {semantic_ids.spelled(prefix)} on' if prefix else ''}: "
        f"branches as wide as they have items, coloured by {caption(column).lower()}.",
        table=lambda: tokenizers.tree_table(branch, colours),
        name=f"prefix tree {tokenization.name} {'-'.join(map(str, prefix))}",
        on_select=guard.callback(_clicked, key, tokenization.name, branch),
    )


def _clicked(key: str, name: str, tree: prefix_tree.Tree) -> None:
    """What comes from the browser is not believed: it must be a node."""
    points = getattr(getattr(st.session_state.get(key), "selection", None), "points", None) or [{}]
    node = points[0].get("point_index")
    if not isinstance(node, int) or not 0 <= node < len(tree):
        return
    choose_prefix(name, tree.prefix[node] if node else tree.prefix[0][:-1])


def _tree_figure(models: Zoo, tree: prefix_tree.Tree, colours: prefix_tree.Colours) -> go.Figure:
    titles = [zoo.titled(models, item) for item in range(len(models))] if len(models) <= 20_000 else models.titles
    return figures.tree(tree, colours, titles, models.popularity)


def _purity(page: Selection, column: str) -> None:
    if not column:
        st.caption("The catalogue has no categories to compare prefixes with.")
        return
    sections.heading("Prefix purity")
    purities = [
        (page.named(tokenization), tokenizers.purity(page.models, page.catalogue.items, tokenization, column))
        for tokenization in page.shown
    ]
    titled = [(named.title, depths) for named, depths in purities]
    export.figure(
        export.shared_figure(figures.purity, purities),
        key="semantic_purity",
        alt=f"Share of items with their prefix's most common value of {caption(column).lower()}, by depth, and by chance.",
        table=lambda: tokenizers.purity_table(titled),
        name=f"prefix purity by {column}",
    )
    st.caption(
        md(
            "Of the items that share their prefix with others, the share that has its most common value of "
            f"{caption(column).lower()} (an item's first). Small groups are pure by chance: "
            "dotted, the permutation baseline."
        )
    )


ROWS = 200
_ANY = -1


def _items(page: Selection, name: str, prefix: tuple[int, ...]) -> None:
    tokenization = page.models.tokenizations[name]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(page.names) > 1 and not prefix:
            options = {shown.name: f"{page.look(shown).sign} {md(shown.about.title)}" for shown in page.shown}
            choice.segmented("Items by the codes of", "of", options, name, key="semantic_of", clears=("prefix",))
        _next_code(tokenization, prefix)
    items = semantic_ids.with_prefix(tokenization.learned, prefix)
    order = items[np.lexsort((items, -page.models.popularity[items]))]
    _listed(page, tokenization, prefix, order)


def _next_code(tokenization: Tokenization, prefix: tuple[int, ...]) -> None:
    """The tree by keyboard."""
    items = dict(semantic_ids.following(tokenization.learned, prefix))
    if not items:
        return
    key = f"semantic_next_{tokenization.name}_{'-'.join(map(str, prefix))}"
    st.selectbox(
        f"Code of level {len(prefix) + 1}",
        [_ANY, *items],
        format_func=functools.partial(_called, items),
        key=key,
        width=220,
        on_change=guard.callback(_take, tokenization.name, key, prefix),
    )


def _called(items: dict[int, int], code: int) -> str:
    return f"{code} – {count(items[code], 'item')}" if code in items else "Any"


def _take(name: str, key: str, before: tuple[int, ...]) -> None:
    code = st.session_state.get(key)
    if isinstance(code, int) and code != _ANY:
        choose_prefix(name, (*before, code))


def _listed(page: Selection, tokenization: Tokenization, prefix: tuple[int, ...], order: np.ndarray) -> None:
    models = page.models
    if not len(order):
        st.info("No item has these codes. Choose others.", icon=":material/search_off:")
        return
    words = (
        f"{count(len(order), 'item')} with codes that begin with {semantic_ids.spelled(prefix)}"
        if prefix
        else "All items"
    )
    most = "most popular" if models.has_log else "first"
    more = f", the {ROWS} {most} listed" if len(order) > ROWS else ""
    st.caption(md(f"{words}{more}."))
    with st.container(horizontal=True, vertical_alignment="center"):
        item_picker.add_button(
            [models.item_ids[item] for item in order.tolist()],
            key="semantic_add",
            most=most,
            why_not=None if prefix else "Choose a code first",
        )
        if st.button(
            "Show on the map",
            icon=":material/scatter_plot:",
            key="semantic_map",
            disabled=not prefix,
            help=None if prefix else "Choose a code first",
        ):
            area = f"prefix.{tokenization.name}~{'-'.join(map(str, prefix))}"
            st.switch_page("screens/map/page.py", query_params=state.link_to("map", area=area))
        export.table_buttons(
            lambda: _items_table(page, tokenization, order),
            f"{tokenization.name} {'-'.join(map(str, prefix))}",
            key="semantic_browse",
        )
    key = f"semantic_items_{tokenization.name}_{'-'.join(map(str, prefix))}"
    listed = [models.item_ids[item] for item in order[:ROWS].tolist()]
    item_picker.table(
        _items_table(page, tokenization, order[:ROWS]),
        listed,
        height=min(420, 36 * (len(listed) + 1) + 2),
        alt="The items with these codes" + (", the most popular first" if models.has_log else ""),
        key=key,
    )


def _items_table(page: Selection, tokenization: Tokenization, order: np.ndarray) -> pd.DataFrame:
    table = facets.table(page.catalogue.rows(order.tolist()))
    paths = [
        (*semantic_ids.path(tokenization.learned, item), *tokenizers.disambiguating(tokenization, item))
        for item in order.tolist()
    ]
    table.insert(0, "Codes", [semantic_ids.spelled(path) for path in paths])
    return table


# --- one item


SIBLINGS = 3


def look_up(page: Selection) -> None:
    """The codes of one item by every tokenizer, and the items that share the first of them."""
    models, now = page.models, state.get()
    item_picker.search(
        "Look up an item",
        key="semantic_item",
        act="pick",
        on_pick=state.select,
        icon=":material/arrow_forward:",
        width=420,
    )
    item = _looked_up(page)
    if item is None:
        st.caption("No item yet. Type a title above.")
        return
    item_id = models.item_ids[item]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{md(zoo.titled(models, item), 200)}**", width="content")
        item_picker.add_button([item_id], key="semantic_item_add")
    if now.item is None:
        st.caption("The latest item of the history. Look up another one above.")
    for place, tokenization in zip(page.columns(), page.shown, strict=True):
        with place, guard.watch(f"the codes by {tokenization.about.title}"):
            _path(page, tokenization, item)
    table = _path_table(page, item)
    export.under(table, key="semantic_item", alt="The item's codes and who shares them", name=f"codes {item_id}")


def _looked_up(page: Selection) -> int | None:
    now = state.get()
    item = state.selected(page.models)
    if item is None and now.current:
        item = page.models.position(now.current[-1])
    return item


def _path(page: Selection, tokenization: Tokenization, item: int) -> None:
    codes, models = semantic_ids.path(tokenization.learned, item), page.models
    st.markdown(page.heading(tokenization))
    with st.container(
        horizontal=True, gap="xsmall", vertical_alignment="center", key=f"semantic_chips_{tokenization.name}"
    ):
        for depth, code in enumerate(codes, 1):
            st.button(
                str(code),
                key=f"semantic_chip_{tokenization.name}_{depth}",
                help=f"Level {depth}: list the items that begin with {semantic_ids.spelled(codes[:depth])}",
                on_click=guard.callback(choose_prefix, tokenization.name, codes[:depth]),
            )
        rest = tokenizers.disambiguating(tokenization, item)
        if rest:
            st.markdown(
                f":gray-badge[{md(semantic_ids.spelled(rest))}]",
                help="A further number that only disambiguates items with the same codes.",
                width="content",
            )
    for depth in range(len(codes), 0, -1):
        longer = semantic_ids.with_prefix(tokenization.learned, codes[: depth + 1]) if depth < len(codes) else [item]
        new = np.setdiff1d(semantic_ids.with_prefix(tokenization.learned, codes[:depth]), longer)
        with st.container(gap=None):
            st.caption(_sharing(len(new), depth, len(codes)))
            order = new[np.argsort(-models.popularity[new], kind="stable")][:SIBLINGS]
            for sibling in order.tolist():
                st.button(
                    md(zoo.titled(models, sibling), 80),
                    key=f"semantic_sibling_{tokenization.name}_{depth}_{sibling}",
                    type="tertiary",
                    wrap=False,
                    on_click=guard.callback(state.select, models.item_ids[sibling]),
                )
            if len(new) > len(order):
                st.caption(f"and {len(new) - len(order):,} more" + (", less popular" if models.has_log else ""))


def _sharing(number: int, depth: int, most: int) -> str:
    """How many items share so many codes, and no more than that."""
    if depth == most:
        return f"{count(number, 'other item')} with the same codes" if number else "No other item with the same codes"
    first = "the first code" if depth == 1 else f"the first {depth} of {most} codes"
    return f"{count(number, 'more item', 'more items')} with {first}" if number else f"No more with {first}"


def _path_table(page: Selection, item: int) -> pd.DataFrame:
    rows = []
    for tokenization in page.shown:
        codes = semantic_ids.path(tokenization.learned, item)
        for depth in range(1, len(codes) + 1):
            others = semantic_ids.with_prefix(tokenization.learned, codes[:depth])
            others = others[others != item]
            shown = others[np.argsort(-page.models.popularity[others], kind="stable")][:20]
            rows.append(
                {
                    "Tokenizer": clean(tokenization.about.title),
                    "Codes": semantic_ids.spelled(codes[:depth]),
                    "Other items": len(others),
                    "Most popular": "; ".join(clean(zoo.titled(page.models, other), 60) for other in shown.tolist()),
                }
            )
    return pd.DataFrame(rows)
