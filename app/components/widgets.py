"""What Streamlit has no widget for: a history that can be edited, recommendations side by side, an address to be copied, a link
to a file, tables.

Each list is one element however long it is, so that a rerun stays quick. Titles are put into the page as text, never as HTML.
What was clicked goes to `on_act` as a dictionary. Whoever handles it checks it, since it comes from outside.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from app import guard
from engine.runtime import judge

_RUNS = itertools.count()
"""So that each run of a page calls what draws anew, though its data are those of the run before: since then an edit may have been
drawn (app/server/early.py) that came too late to be one."""
OnAct = Callable[[Mapping[str, Any]], None]
_HERE = Path(__file__).parent


def _read(*files: str) -> str:
    return "".join((_HERE / file).read_text("utf-8") for file in files)


def _component(name: str, *styles: str, html: str = '<div class="root"></div>') -> Any:
    css, js = _read("base.css", *styles, "touch.css"), _read(f"{name}.js", "dom.js")
    mount = st.components.v2.component(f"seqscope_{name}", html=html, css=css, js=js)
    return lambda *, key, **more: mount(key=_key(key), **more)


def _key(key: str) -> str:
    """What Streamlit takes for the key of a component: without two underscores in a row, which names of models and columns may
    have, and a name that is empty leaves."""
    return key.replace("__", "_·")


_HISTORY = _component("history", "lists.css")
_ANNOUNCED = '<div class="root"></div><p class="unseen" role="status"></p>'  # the second says what changed
_RECOMMENDATIONS = _component("recommendations", "lists.css", html=_ANNOUNCED)
_SPOKEN = _component("announced", html='<p role="status"></p>')
_RANK_TABLE = _component("rank_table", "rank_table.css")
_ITEM_RANKS = _component("item_ranks", "lists.css", html=_ANNOUNCED)
_ITEM_PANEL = _component("item_panel", "item_panel.css", html=_ANNOUNCED)
_PREVIEW = _component("preview")
_REVEAL = _component("reveal")
_MODEL_FLOW = _component("model_flow", "model_flow.css")
_BARS = _component("attribute_bars", "attribute_bars.css")
_COPY = _component(
    "copy",
    "button.css",
    "copy.css",
    html="""<div class="copy"><button type="button">
<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M10 7H7a5 5 0 0 0 0 10h3M14 7h3a5 5 0 0 1 0 10h-3M8 12h8"/></svg>
<span></span></button><p role="status"></p><input readonly hidden></div>""",
)
_DOWNLOAD = _component(
    "download",
    "button.css",
    "download.css",
    html="""<div class="download"><a download>
<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M12 4v12m-5-5 5 5 5-5M5 20h14"/></svg>
<span><span class="unseen">Download </span><span class="label"></span></span></a><p role="status"></p></div>""",
)


FOUR_DIGITS = st.column_config.NumberColumn(format="%.4f")
SIGNED = st.column_config.NumberColumn(format="%+.4f")
"""Of columns of numbers, four digits behind the point."""


def table(
    rows: pd.DataFrame | Styler, *, alt: str, column_config: Mapping[str, Any] | None = None, **more: Any
) -> None:
    """Without an index; a cell that has no value stays empty instead of reading None. alt: what it is, for those who do not see
    it. column_config, more: as of st.dataframe; numbers whose format begins with %+ have a true minus, and sort as numbers."""
    columns = dict(column_config or {})
    styler = rows if isinstance(rows, Styler) else None
    for name, form in _signed_columns(columns).items():
        if name in (rows.columns if styler is None else styler.columns):
            styler = (rows.style if styler is None else styler).format(partial(_signed, form), subset=[name], na_rep="")
            # Streamlit's own format would be drawn in place of this
            columns[name] = {**columns[name], "type_config": {**columns[name]["type_config"], "format": None}}
    shown = rows if styler is None else styler
    st.dataframe(shown, hide_index=True, placeholder="", alt=alt, column_config=columns, **more)


def _signed_columns(columns: Mapping[str, Any]) -> dict[str, str]:
    """Column → its format, of those that show the sign of numbers."""
    forms = {
        name: str((column.get("type_config") or {}).get("format"))
        for name, column in columns.items()
        if isinstance(column, dict)
    }
    return {name: form for name, form in forms.items() if form.startswith("%+")}


def _signed(form: str, value: float) -> str:
    return judge.signed(value, form.removeprefix("%").removesuffix("%%")) + ("%" if form.endswith("%%") else "")


def terms(words: Mapping[str, str], *, alt: str) -> None:
    """A table of two columns that wraps on a phone (browser.css). words: term → what there is to say of it, both Markdown."""
    st.table({f"**{term}**": text for term, text in words.items()}, border="horizontal", hide_header=True, alt=alt)


def history(chips: dict[str, Any], *, key: str, on_act: OnAct) -> None:
    """A history as chips: each can be moved (by dragging or the arrow keys), removed and looked at.

    chips: {"items", "label" (what it is, for those who do not see it), "empty" (words where it is)}; items: {"id", "title",
    "detail", "event" (as figures call it, `events_of`)} oldest first.
    Acts: {"do": "remove" | "select", "place", "id"} and {"do": "move", "place", "to", "id"}.
    """
    _HISTORY(key=key, data={**chips, "run": next(_RUNS)}, on_act_change=_hands(key, on_act))


def recommendations(models: list[dict[str, Any]], *, key: str, on_act: OnAct, early: str = "") -> None:
    """Lists of several models side by side. early: the address that answers edits of the history (`app.server.early`).

    models: {"name", "title", "sign", "colour", "note", "can" (term → words, of what it can and cannot do), "cannot" (why there
    are no rows, or None), "rows", "before" (the rows of A in a what-if, or None): {"id", "rank", "title", "detail", "dropped" (B
    does not have it)}}; rows: {"id", "rank", "title", "detail", "share" (its
    percentage, in words), "bar" (0 to 1; both absent where a model gives no probabilities), "badge", "badge_help", "tie",
    "tie_help" (it shares its codes with others), "change" ("up", "down", "new"), "moved" (its words), "truth" (it is what came
    next), "chosen" (it is explained), "known" (how often it is in the history), "beyond" (after a gap)}.
    Acts: {"do": "explain", "id", "model"}, {"do": "add", "id", "model", "known"}.
    """
    _RECOMMENDATIONS(
        key=key, data={"models": models, "early": early, "run": next(_RUNS)}, on_act_change=_hands(key, on_act)
    )


def rank_table(
    columns: list[dict[str, Any]],
    rows: list[dict[str, Any]],
    *,
    key: str,
    on_act: OnAct,
    label: str,
    sort: str,
    falling: bool,
    chosen: str | None,
    action: str,
    opens: str,
) -> None:
    """A table with a model's rank in each column, sorted by a click on a head; Python sorts and pages.

    columns: {"by" (what it is sorted by, or absent), "title", "help", "sign", "colour", "number" (right, shaded), "text" (gets
    the room that is left), "wide" (left out on a phone)}, the first one names the row. rows: {"id", "detail" (below the name on
    a phone), "cells": {"text", "shade" (0 to 1), "sign", "colour", "help"} by column}. label: for those who do not see it.
    chosen: id of a row. action: what the button of each row does. opens: the key of the container that shows a chosen row.
    Acts: {"do": "sort", "by"}, {"do": "choose" | "open", "id"}.
    """
    data = {"columns": columns, "rows": rows, "label": label, "sort": sort, "falling": falling}
    _RANK_TABLE(
        key=key, data={**data, "chosen": chosen, "action": action, "opens": opens}, on_act_change=_hands(key, on_act)
    )


def item_ranks(table: dict[str, Any], *, key: str, on_act: OnAct, early: str = "") -> None:
    """The rank of each item in each model, sorted by any of them in the browser. early: as of `recommendations`.

    table: {"k", "mean" (what the mean rank is, in words), "models": [{"title", "sign", "colour", "note"}], "rows"}; rows: {"id",
    "title", "detail", "mean", "truth", "chosen", "known", "cells"}; cells, one a model: None where its rank is not known, else
    {"rank", "words", "exact", and of a what-if "change" ("up", "down", "new") and "moved"}.
    Acts: {"do": "explain", "id"}, {"do": "add", "id", "known"}.
    """
    _ITEM_RANKS(key=key, data={**table, "early": early, "run": next(_RUNS)}, on_act_change=_hands(key, on_act))


def item_panel(data: dict[str, Any], *, key: str, on_act: OnAct) -> None:
    """The details of one item: see `app.figures.item_panel`. Acts: {"do", "id" (of the item that the panel showed), "to" (what
    it is done with)}; see `app.components.item_panel`."""
    _ITEM_PANEL(key=key, data=data, on_act_change=_hands(key, on_act))


def announced(words: str, *, key: str) -> None:
    """Words that a screen reader says when they change; they are not seen. It must be there before they change."""
    _SPOKEN(key=f"announced_{key}", data={"words": words}, height=1)


def preview(around: str, *, key: str, on_act: OnAct) -> None:
    """Listens to the titles of a framed report. around: the key of the container of its frame. Acts: {"do": "select", "id"}."""
    _PREVIEW(key=key, data={"around": around}, on_act_change=_hands(key, on_act), height=1)


def reveal(around: str, *, key: str, once: str) -> None:
    """Scrolls the page to a container, which may be drawn later. around: its key. once: as long as a visitor stays on the pages,
    no two calls with the same text scroll."""
    _REVEAL(key=f"reveal_{key}", data={"around": around, "tab": None, "once": once}, height=1)


def reveal_tab(around: str, *, key: str, tab: str) -> None:
    """Scrolls a row of tabs to the open one; the page does not move. around: the key of the tabs."""
    _REVEAL(key=f"reveal_{key}", data={"around": around, "tab": tab, "once": None}, height=1)


def model_flow(models: list[dict[str, Any]], *, key: str) -> None:
    """Boxes from the history to the list, a row per model. models: {"title", "sign", "colour", "steps": {"title", "detail"}}."""
    _MODEL_FLOW(key=key, data={"models": models})


def copy(label: str, address: str, *, key: str, help: str = "", opened: bool = False) -> None:
    """A button that puts an address into the clipboard. opened: the address is shown, and copied as soon as it is there."""
    _COPY(key=key, data={"label": label, "address": address, "help": help, "open": opened})


def download(label: str, address: str, *, key: str, type: str = "secondary", help: str = "") -> None:
    """A link to a file that looks like a button, and says while the file is made and why it cannot be had. type: "secondary" with
    a frame, "tertiary" without."""
    _DOWNLOAD(key=key, data={"label": label, "address": address, "type": type, "help": help}, width="content")


def attribute_bars(data: dict[str, Any], *, key: str, on_act: OnAct) -> None:
    """How many items have each value of some attributes, as bars to filter by, and what is selected above them.

    data: {"attributes": [{"name", "title", "values": [{"value", "items", "of" (all of the map), "pressed", "colour" (or None),
    "legend" (the colour is of this value alone)}], "more" (values without a bar)}], "filtered", "maps" (how many stand side by
    side), "aspect" (width by height of the points), "selection" (None, or {"words", "items": [{"id", "title"}], "more",
    "isolated", "held" (no link can say it)})}. Acts: {"do": "filter", "name", "value"},
    {"do": "item", "id"}, {"do": "clear" | "isolate" | "zoom" | "deselect"}.
    """
    _BARS(key=key, data=data, on_act_change=_hands(key, on_act))


def _hands(key: str, on_act: OnAct) -> Callable[[], None]:
    """The callback of a widget: hands on what was clicked; {} where it is nothing that can be understood."""

    def taken() -> None:
        clicked = getattr(st.session_state.get(_key(key)), "act", None)
        on_act(clicked if isinstance(clicked, Mapping) else {})

    return guard.callback(taken)


def on_phone() -> bool:
    """Whether the window is as narrow as a phone's. Until its width is known: whether the browser says that it is a phone's."""
    narrow = getattr(st.session_state.get("browser"), "narrow", None)
    return narrow if isinstance(narrow, bool) else "Mobi" in (st.context.headers.get("User-Agent") or "")


def dark() -> bool:
    """Whether the page is light on dark."""
    return st.context.theme.type == "dark"


_BROWSER = st.components.v2.component(
    "seqscope_browser",
    html="<span></span>",
    css=_read("browser.css", "touch.css"),
    js=_read("browser.js"),
    isolate_styles=False,
)


def browser() -> None:
    """Once per page, where it stays whatever else is drawn. Where the page was drawn for another width, or by a server that
    began anew, it is drawn anew."""
    data = {"narrow": on_phone()}
    _BROWSER(key="browser", height=1, data=data, on_narrow_change=lambda: None, on_connected_change=lambda: None)


_MAP = _component("map", "map.css")
_RATIO, _WEBGL = "pixel_ratio", "webgl"

Viewport = tuple[float, float, float, float, float]
"""x0, x1, y0, y1 and the figure's height in pixels: drawn at another height first, it would come to another view."""


def over_map(chart: str, names: list[tuple[float, float, int, str]], width: float, *, linked: bool = False) -> None:
    """What lies over a map: the names of its regions, as many as there is room for. It watches the map's view, too.

    chart: the key of the figure. names: x, y, level (fine ones, above 0, come where one has zoomed in), text; where names
    would overlap, the first one is shown. width: of the whole map, in its units. linked: another map is shown that has points of
    the same customdata: what is pointed at on one is ringed on the other, which zooms to what the one shows.
    """
    key = f"{chart}_over"
    data = {"chart": chart, "names": names, "width": width, "linked": linked, "ratio": pixel_ratio()}
    _MAP(
        key=key, data=data | {"webgl": has_webgl()}, height=1, on_view_change=lambda: None,
        on_ratio_change=lambda: _take_ratio(key), on_webgl_change=lambda: _take_webgl(key),
    )  # fmt: skip


def pixel_ratio() -> int:
    """Pixels that a map draws in each direction per pixel of CSS: 1, or 2 where the visitor's screen is that fine.
    Plotly's default of 2 draws four times what most screens show."""
    return int(st.session_state.get(_RATIO, 1))


def _take_ratio(key: str) -> None:
    ratio = getattr(st.session_state.get(_key(key)), "ratio", None)
    st.session_state[_RATIO] = 2 if isinstance(ratio, (int, float)) and ratio > 1 else 1


def has_webgl() -> bool:
    """Whether the visitor's browser draws with WebGL, as most do: it says so once a map is there."""
    return bool(st.session_state.get(_WEBGL, True))


def _take_webgl(key: str) -> None:
    st.session_state[_WEBGL] = getattr(st.session_state.get(_key(key)), "webgl", None) is not False


def viewport(chart: str) -> Viewport | None:
    """As last reported; None where the visitor has not moved the figure."""
    view = getattr(st.session_state.get(_key(f"{chart}_over")), "view", None)
    return checked_viewport(view)


def checked_viewport(view: object) -> Viewport | None:
    """Five finite numbers that span something, or None: they come from outside."""
    if not isinstance(view, (list, tuple)) or len(view) != 5:
        return None
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v) for v in view):
        return None
    x0, x1, y0, y1, height = map(float, view)
    return (x0, x1, y0, y1, height) if x0 != x1 and y0 != y1 and 10 <= height < 1e5 else None


_WORDS = _component("words", "words.css")


def shaded_words(items: list[dict[str, Any]], colour: str, *, key: str, label: str) -> None:
    """items: {"number", "title", "share", "lines", "unread" (words of it that are not read)}; lines: {"attribute", "share",
    "name", "value", "cut" (a note after the last word, or None)}; names and values are lists of words: {"text", "share",
    "strength" (0 to 1, how dark it is), "label"}."""
    _WORDS(key=key, data={"items": items, "colour": colour, "label": label})
