"""Figures and tables that can be taken away: every figure has a description, a table that says the same, and downloads.

    figure(views.bars(frame), key="loo", alt="What each film contributes …", table=frame, name="leave-one-out")

Figures come from app.figures with data alone; how they look in light and dark is decided here.
"""

import functools
import itertools
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal, TypeAlias

import joblib
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from plotly.basedatatypes import BaseFigure

from app import glossary
from app.analysis.cache import cached
from app.components import widgets
from app.server import downloads
from app.text import csv_bytes, md, slug
from engine.writing import count

Table: TypeAlias = "pd.DataFrame | Callable[[], pd.DataFrame]"  # a function is called when somebody looks
Figure: TypeAlias = (
    "BaseFigure | dict[str, Any]"  # a dictionary goes to the browser as it is: tests hold it against Plotly
)
_CLEAR = "rgba(0,0,0,0)"
_LAYOUT: dict[str, Any] = {
    "paper_bgcolor": _CLEAR, "plot_bgcolor": _CLEAR,
    "modebar": {"bgcolor": _CLEAR, "color": "#767f80", "activecolor": "#1f9e89"},  # 3 : 1 on the paper of both themes
}  # fmt: skip
"""Of every figure: the page's own ground."""
_READ = 12
"""Rows of a table that are read at once, and need no filter."""
_LISTED = 100
"""Values of a column that are chosen from a list; of more, those are that contain a text."""


def file_name(*words: str, ending: str) -> str:
    """A `slug` with its ending."""
    return f"{slug(*words)}.{ending}"


def table_buttons(table: Table, name: str, *, key: str, label: str = "") -> None:
    """Links that download a table as CSV and as JSON; made when they are asked for. label: what is in it."""
    as_form = f"{label} as " if label else ""
    with st.container(horizontal=True, gap="small", width="content"):
        for form, mime, make in (("CSV", "text/csv", _csv), ("JSON", "application/json", json_rows)):
            ending = form.lower()
            file = file_name("seqscope", name, ending=ending)
            downloads.button(as_form + form, functools.partial(_made, table, make), file, mime, key=f"{key}_{ending}")


def _made(table: Table, make: Callable[[pd.DataFrame], bytes]) -> bytes:
    return make(table() if callable(table) else table)


def _csv(table: pd.DataFrame) -> bytes:
    filled = table.astype(object).where(table.notna(), None)  # pandas has more values than one for what is missing
    return csv_bytes(table.columns, filled.itertuples(index=False, name=None))


def json_rows(table: pd.DataFrame) -> bytes:
    """A list of objects, one per row; of columns called alike the later ones are numbered. What is missing is null."""
    names: list[str] = []
    for name in map(str, table.columns):
        numbered = (f"{name} ({number})" for number in itertools.count(2))
        names.append(name if name not in names else next(other for other in numbered if other not in names))
    return (
        table.set_axis(names, axis=1)
        .to_json(orient="records", force_ascii=False, double_precision=15, date_format="iso")
        .encode()
    )


def config(name: str, picture: Literal["svg", "png"] = "svg", **more: Any) -> dict[str, Any]:
    """Plotly's configuration for every figure: nothing that sends data away, and the camera saves a picture."""
    return {
        "displaylogo": False,
        "showSendToCloud": False,
        "typesetMath": False,
        "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
        "toImageButtonOptions": {
            "format": picture,
            "filename": file_name("seqscope", name, ending="")[:-1],
            "scale": 2,
        },
        **more,
    }


class _AsItIs(BaseFigure):
    """A figure that was written as a dictionary. Plotly checks any other and copies it twice, which took a seventh of a run of
    Compare."""

    def __init__(self, written: dict[str, Any], **layout: Any) -> None:
        self._written = {"data": written["data"], "layout": {"template": _template(), **written["layout"], **layout}}

    def to_dict(self) -> dict[str, Any]:
        return self._written


def shared_figure(make: Callable[..., go.Figure], *data: Any, about: Hashable = None) -> BaseFigure:
    """What `make` draws of the data, drawn once for all who look at the same.

    For figures that depend on the models and not on the history: Plotly checks and copies every value that it is given, most of
    what a run of Metrics would do. about: what the data are known by, where there are too many to compare.
    """
    key = (make.__module__, make.__qualname__, joblib.hash(data) if about is None else about)
    return _AsItIs(_written(key, make, data), **_LAYOUT)


@cached(100, by=lambda key, make, data: key)
def _written(key: Hashable, make: Callable[..., go.Figure], data: tuple[Any, ...]) -> dict[str, Any]:
    written: dict[str, Any] = make(*data).to_dict()
    return written


@functools.cache
def _template() -> dict[str, Any]:
    """What Streamlit has Plotly put into every figure: the theme's look."""
    template: dict[str, Any] = go.Figure().to_dict()["layout"]["template"]
    return template


def figure(
    fig: Figure,
    *,
    key: str,
    alt: str,
    table: Table,
    name: str,
    columns: dict[str, Any] | None = None,
    height: int | Literal["stretch"] | None = None,
    on_select: Callable[[], None] | Literal["rerun", "ignore"] = "ignore",
    selection_mode: tuple[str, ...] = ("points",),
    plotly: dict[str, Any] | None = None,
) -> Any:
    """Draws a figure, and under it, folded away, its table and downloads. Returns what st.plotly_chart returns.

    key: unique on the page. alt: one sentence for those who do not see it. table: the figure's data, for the eye (it may hold
    any text; keep it below some thousand rows). name: words for file names. columns: st.column_config by column.
    plotly: more of Plotly's configuration.
    """
    picture: Literal["svg", "png"] = "png" if st.session_state.get(f"{key}_picture") == "PNG" else "svg"
    if isinstance(fig, dict):
        fig = _AsItIs(fig, **_LAYOUT)
    elif not isinstance(fig, _AsItIs):
        fig.update_layout(**_LAYOUT)
    event = st.plotly_chart(
        fig,
        key=key,
        alt=alt,
        height=height or "content",
        config=config(name, picture, **(plotly or {})),
        on_select=on_select,  # type: ignore[arg-type]
        selection_mode=selection_mode,  # type: ignore[arg-type]
    )
    under(table, key=key, alt=alt, name=name, columns=columns, picture=True)
    return event


def under(
    table: Table,
    *,
    key: str,
    alt: str,
    name: str,
    columns: dict[str, Any] | None = None,
    picture: bool = False,
) -> None:
    """A figure's twin as a table with its downloads, folded away; drawn only when it is opened."""
    folded = st.expander("Table and downloads", key=f"{key}_twin", on_change="rerun", type="compact")
    if not folded.open:
        return
    with folded:
        table = table() if callable(table) else table
        columns = {**(columns or {}), **_defined(table, columns or {})}
        table = _filtered(table, key)
        widgets.table(table, column_config=columns, alt=f"Table: {alt}", key=f"{key}_table")
        with st.container(horizontal=True, vertical_alignment="center"):
            table_buttons(table, name, key=key)
            if picture:
                st.segmented_control(
                    "Picture format",
                    ["SVG", "PNG"],
                    default="SVG",
                    required=True,
                    key=f"{key}_picture",
                    label_visibility="collapsed",
                )
                st.caption(md("The camera above the figure saves it in this format."), width="content")


def _filtered(table: pd.DataFrame, key: str) -> pd.DataFrame:
    """The rows that the values of a column are chosen by, where there are more than are read at once."""
    if len(table) <= _READ:
        return table
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = [name for name in table.columns if list(table.columns).count(name) == 1]
        name = st.selectbox(
            "Filter by column", names, index=None, placeholder="All rows", key=f"{key}_filter", width=230
        )
        if name is None:
            return table
        values, words = table[name], table[name].astype("string")
        numeric = pd.api.types.is_numeric_dtype(values)
        if numeric and values.nunique() > _READ:
            ends = values.min().item(), values.max().item()
            fine = {"step": (ends[1] - ends[0]) / 200, "format": "%.3g"} if isinstance(ends[0], float) else {}
            low, high = st.slider(str(name), *ends, ends, key=f"{key}_filter_{name}", width=330, **fine)
            slack = 1e-9 * (ends[1] - ends[0])  # in the browser a step may end just beside a value
            part = table[values.between(low - slack, high + slack)]
        elif words.nunique() <= _LISTED:
            options = words.iloc[(values if numeric else words).argsort()].dropna().unique()
            chosen = st.multiselect(str(name), options, key=f"{key}_filter_{name}", width=330)
            part = table[words.isin(chosen)] if chosen else table
        else:
            text = st.text_input(f"{name} contains", key=f"{key}_filter_{name}", width=330).strip()
            part = table[words.str.contains(text, case=False, regex=False, na=False)]
        st.caption(f"{len(part):,} of {count(len(table), 'row')}", width="content")
    return part


def _defined(table: pd.DataFrame, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns with the meanings of the terms that they are called by."""
    helps = {name: glossary.tooltip(str(name)) for name in table.columns}
    given = {name: columns.get(name) or {} for name in helps}
    return {name: {**given[name], "help": given[name].get("help") or help_} for name, help_ in helps.items() if help_}
