"""Report: what was seen, chosen, looked at as it will be, and taken away; and lists for many histories at once."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

import streamlit as st

from app import guard, zoo
from app.components import history, widgets
from app.reports import address, html
from app.reports import build as building
from app.reports.address import SAVED
from app.reports.document import Asked, Report, sealed
from app.screens.report import batch, choices, files, saved
from app.session import state
from engine.runtime import Zoo

_HEIGHT = 900  # pixels of the preview
_FRESH = 60  # seconds that a report keeps its time while nothing else is chosen


def page() -> None:
    st.title("Report")
    models = zoo.open_zoo(state.get().dataset)
    st.markdown(
        "What you see here as a file that opens offline, and as data that a program can verify. "
        "Only what you choose is included."
    )
    with guard.watch("the saved report"):
        kept = saved.opened()
        if kept is not None:
            _shown(kept)
            return
    if not models.bundles:
        st.info(
            "No model of this dataset can be opened, so there is nothing to report. Export one with `seqscope export`."
        )
        return
    history.show()
    chosen = choices.show(models)
    with guard.watch("the report"):
        report = _built(models, chosen, _link(chosen))
        _shown(report, live=True)
    with guard.watch("the batch"):
        batch.show(models)


def _shown(report: Report, live: bool = False) -> None:
    """What can be had of it, and how it looks. live: of what is chosen now, so that it can be saved."""
    files.show(report)
    if live:
        with guard.watch("what you saved"):
            saved.show(report)
    with st.container(border=True, key="report_preview"):
        st.iframe(
            html.render(
                report, scheme=_scheme(), framed=True
            ).decode(),  # without a script, and its own rules allow none
            height=_HEIGHT,
            alt="The report as it will be exported, with drawn figures",
        )
        widgets.preview("report_preview", key="report_titles", on_act=_select)
    st.caption(
        "This is the exported page itself. With its JSON, `seqscope report --verify "
        f"{report.stem}.json` asks the models again and says whether its lists, facts and figures still hold."
    )


def _select(click: Mapping[str, Any]) -> None:
    """Selects the item whose title was clicked. What comes from the browser is not believed."""
    item_id = click.get("id")
    if isinstance(item_id, str) and zoo.open_zoo(state.get().dataset).position(item_id) is not None:
        state.select(item_id)


def _scheme() -> Literal["", "light", "dark"]:
    """The app's, which need not be that of the visitor's machine."""
    scheme = st.context.theme.type
    return "dark" if scheme == "dark" else "light" if scheme == "light" else ""


def _link(request: Asked) -> str:
    """The address of this very page; a person is named in it only where rows of the data may go in."""
    now = state.get()
    query = address.query(request, now.dataset, {name: text for name, text in now.own.items() if name != SAVED})
    parts = urlsplit(st.context.url or "")
    return f"{parts.scheme}://{parts.netloc}{parts.path}?{query}" if parts.netloc else f"?{query}"


def _built(models: Zoo, request: Asked, link: str) -> Report:
    """What models answered is kept for all visitors; the time on it is when this one asked, to the minute or so."""
    choices = building.content(models, request, link)
    report = building.shared(models, request, link)
    made, created = st.session_state.get("report_made", (None, ""))
    if made != choices or _age(created) > _FRESH:
        created = building.now()
        st.session_state["report_made"] = (choices, created)
    return sealed(report.model_copy(update={"created": created}))


def _age(created: str) -> float:
    """Seconds."""
    moments = (datetime.datetime.fromisoformat(at) for at in (building.now(), created))
    return (next(moments) - next(moments)).total_seconds()


page()
