"""Prefixes of codes: their tree, the path of one item through it, and the items that begin alike."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import export, guard, zoo
from app.analysis import facets, prefix_tree, semantic_ids, semantic_ids_tables, tokenizers
from app.components import choice, item_picker
from app.figures import semantic_ids as figures
from app.screens.semantic_ids import browsed, prefix_codes
from app.screens.semantic_ids.selection import Selection, choose_prefix
from app.session import state
from app.store.attributes import caption
from app.text import clean, count, md
from engine.runtime import Tokenization, Zoo


def code_tree(page: Selection) -> None:
    st.subheader("The tree of codes", anchor=False)
    models, items = page.models, page.found.items
    kinds = tokenizers.columns(models, items)
    options = {
        name: caption(name) for name in [*kinds, *([tokenizers.POPULARITY] if models.has_log or not kinds else [])]
    }
    column = choice.selected(
        "Colour by", "colour", options, next(iter(options)), key=f"semantic_colour_{models.info.name}", width=220
    )
    dark = st.context.theme.type == "dark"
    for place, tokenization in zip(page.columns(), page.shown, strict=True):
        with place:
            st.markdown(page.heading(tokenization))
            tree, colours = tokenizers.tree(tokenization), tokenizers.colours(models, items, tokenization, column)
            export.figure(
                export.shared_figure(
                    _tree_figure,
                    models,
                    tree,
                    colours,
                    dark,
                    about=(tokenization.digest, column, dark, tokenizers.stamp(models)),
                ),
                key=f"semantic_tree_{tokenization.name}_{column}",
                alt=f"Tree of the codes of {clean(tokenization.about.title)}, as wide as a branch has items, coloured by "
                f"{caption(column).lower()}.",
                table=lambda tree=tree, colours=colours: semantic_ids_tables.tree_table(tree, colours),  # type: ignore[misc]
                name=f"code tree {tokenization.name}",
            )
    words = "Each row is one more code, a box as wide as it has items. Click a box to open its branch, the bar on top to go back."
    if column in kinds:
        words += " The colour is the commonest value of the box's items (of several the first); the paler, the smaller its share."
    st.caption(md(words))
    _purity(page, column if column in kinds else (kinds or [""])[0])


def _tree_figure(models: Zoo, tree: prefix_tree.Tree, colours: prefix_tree.Colours, dark: bool) -> go.Figure:
    titles = [zoo.titled(models, item) for item in range(len(models))] if len(models) <= 20_000 else models.titles
    return figures.tree(tree, colours, titles, models.popularity, dark)


def _purity(page: Selection, column: str) -> None:
    if not column:
        st.caption("The catalogue has no categories to compare prefixes with.")
        return
    st.subheader("Do prefixes mean something?", anchor=False)
    purities = [
        (page.named(tokenization), tokenizers.purity(page.models, page.found.items, tokenization, column))
        for tokenization in page.shown
    ]
    titled = [(named.title, depths) for named, depths in purities]
    export.figure(
        export.shared_figure(figures.purity, purities),
        key="semantic_purity",
        alt=f"Share of items with their prefix's commonest value of {caption(column).lower()}, by depth, beside that by chance.",
        table=lambda: semantic_ids_tables.purity_table(titled),
        name=f"prefix purity by {column}",
    )
    st.caption(
        md(
            "Of the items that have company at their prefix, the share that has its commonest value of "
            f"{caption(column).lower()} (of several the first). Small groups are pure by themselves: compare with the dotted "
            "line, the same with values dealt out anew."
        )
    )


SIBLINGS = 3


def item_codes(page: Selection) -> None:
    st.subheader("An item's codes", anchor=False)
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
        st.button(
            "Add to history",
            icon=":material/add:",
            key="semantic_item_add",
            on_click=guard.callback(state.add),
            args=(item_id,),
        )
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


def _path(page: Selection, one: Tokenization, item: int) -> None:
    codes, models = semantic_ids.path(one.own, item), page.models
    st.markdown(page.heading(one))
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center", key=f"semantic_chips_{one.name}"):
        for depth, code in enumerate(codes, 1):
            st.button(
                str(code),
                key=f"semantic_chip_{one.name}_{depth}",
                help=f"Level {depth}: list the items that begin with {semantic_ids.spelled(codes[:depth])}",
                on_click=guard.callback(choose_prefix),
                args=(one.name, codes[:depth]),
            )
        rest = semantic_ids.path(one.identifiers.codes, item)[len(codes) :]
        if rest:
            st.markdown(
                f":gray-badge[{md(semantic_ids.spelled(rest))}]",
                help="A further number that only tells apart items with the same codes.",
                width="content",
            )
    for depth in range(len(codes), 0, -1):
        others = semantic_ids.with_prefix(one.own, codes[:depth])
        others = others[others != item]
        longer = semantic_ids.with_prefix(one.own, codes[: depth + 1]) if depth < len(codes) else np.empty(0, np.int64)
        new = others[~np.isin(others, longer)]
        with st.container(gap=None):
            st.caption(_sharing(len(new), depth, len(codes)))
            order = new[np.argsort(-models.popularity[new], kind="stable")][:SIBLINGS]
            for sibling in order.tolist():
                st.button(
                    md(zoo.titled(models, sibling), 80),
                    key=f"semantic_sibling_{one.name}_{depth}_{sibling}",
                    type="tertiary",
                    wrap=False,
                    on_click=guard.callback(state.select),
                    args=(models.item_ids[sibling],),
                )
            if len(new) > len(order):
                st.caption(f"and {len(new) - len(order):,} more" + (", less taken" if models.has_log else ""))


def _sharing(number: int, depth: int, most: int) -> str:
    """How many items share so many codes, and no more than that."""
    if depth == most:
        return f"{count(number, 'other item')} with the same codes" if number else "No other item with the same codes"
    first = "the first code" if depth == 1 else f"the first {depth} of {most} codes"
    return f"{count(number, 'more item', 'more items')} with {first}" if number else f"No more with {first}"


def _path_table(page: Selection, item: int) -> pd.DataFrame:
    rows = []
    for tokenization in page.shown:
        codes = semantic_ids.path(tokenization.own, item)
        for depth in range(1, len(codes) + 1):
            others = semantic_ids.with_prefix(tokenization.own, codes[:depth])
            others = others[others != item]
            shown = others[np.argsort(-page.models.popularity[others], kind="stable")][:20]
            rows.append(
                {
                    "Tokenizer": clean(tokenization.about.title),
                    "Codes": semantic_ids.spelled(codes[:depth]),
                    "Other items": len(others),
                    "Most taken": "; ".join(clean(zoo.titled(page.models, other), 60) for other in shown.tolist()),
                }
            )
    return pd.DataFrame(rows)


ROWS = 200
_ANY = -1


def items_by_codes(page: Selection) -> None:
    st.subheader("Items by their codes", anchor=False)
    parameters = state.get().own
    name = browsed(page.models, parameters)
    name = name if name in page.names else page.names[0]
    if len(page.names) > 1:
        options = {
            tokenization.name: f"{page.look(tokenization).sign} {md(tokenization.about.title)}"
            for tokenization in page.shown
        }
        name = choice.segmented("Codes by", "of", options, name, key="semantic_of", clears=("prefix",))
    tokenization = page.models.tokenizations[name]
    prefix = prefix_codes(parameters)
    _levels(tokenization, prefix)
    items = semantic_ids.with_prefix(tokenization.own, prefix)
    order = items[np.lexsort((items, -page.models.popularity[items]))]
    _listed(page, tokenization, prefix, order)


def _levels(one: Tokenization, prefix: tuple[int, ...]) -> None:
    """A list of codes for every level chosen so far, and the next one."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for depth in range(min(len(prefix) + 1, len(one.about.shape.own))):
            possible = semantic_ids.following(one.own, prefix[:depth])
            if not possible:
                break
            items = dict(possible)
            key = f"semantic_prefix_{one.name}_{depth}"
            chosen = prefix[depth] if depth < len(prefix) else _ANY
            st.session_state[key] = chosen if chosen in items else _ANY
            st.selectbox(
                f"Level {depth + 1}",
                [_ANY, *items],
                format_func=functools.partial(_called, items),
                key=key,
                width=170,
                on_change=guard.callback(_take),
                args=(one.name, key, prefix[:depth]),
            )
        if prefix:
            st.button(
                "All items", type="tertiary", key="semantic_prefix_clear", on_click=guard.callback(choose_prefix),
                args=(one.name, ()),
            )  # fmt: skip


def _called(items: dict[int, int], code: int) -> str:
    return f"{code} – {count(items[code], 'item')}" if code in items else "Any"


def _take(name: str, key: str, before: tuple[int, ...]) -> None:
    code = st.session_state.get(key)
    if isinstance(code, int):
        choose_prefix(name, before if code == _ANY else (*before, code))


def _listed(page: Selection, one: Tokenization, prefix: tuple[int, ...], order: np.ndarray) -> None:
    models = page.models
    if not len(order):
        st.info("No item has these codes. Choose others.", icon=":material/search_off:")
        return
    words = (
        f"{count(len(order), 'item')} with codes that begin {semantic_ids.spelled(prefix)}" if prefix else "All items"
    )
    most = "most taken" if models.has_log else "first"
    more = f", the {ROWS} {most} listed" if len(order) > ROWS else ""
    st.caption(md(f"{words}{more}."))
    with st.container(horizontal=True, vertical_alignment="center"):
        item_picker.add_button(
            [models.item_ids[item] for item in order.tolist()],
            key="semantic_add",
            most=most,
            on_add=_add,
            why_not=None if prefix else "Choose a code first",
        )
        if st.button(
            "Show on the map",
            icon=":material/scatter_plot:",
            key="semantic_map",
            disabled=not prefix,
            help=None if prefix else "Choose a code first",
        ):
            area = f"prefix.{one.name}~{'-'.join(map(str, prefix))}"
            st.switch_page("screens/map/page.py", query_params=state.link_to("map", area=area))
        export.csv_button(
            lambda: _items_table(page, one, order), f"{one.name} {'-'.join(map(str, prefix))}", key="semantic_browse"
        )
    st.dataframe(
        _items_table(page, one, order[:ROWS]),
        hide_index=True,
        height=min(420, 36 * (min(len(order), ROWS) + 1) + 2),
        alt="The items with these codes" + (", the most taken first" if models.has_log else ""),
        key="semantic_browse_table",
    )


def _items_table(page: Selection, one: Tokenization, order: np.ndarray) -> pd.DataFrame:
    table = facets.table(page.found.rows(order.tolist()))
    table.insert(0, "Codes", [semantic_ids.spelled(semantic_ids.path(one.own, item)) for item in order.tolist()])
    return table


def _add(ids: tuple[str, ...]) -> None:
    for item_id in ids:
        state.add(item_id)
