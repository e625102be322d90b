"""Report: what was seen, chosen, looked at as it will be, and taken away; and lists for many histories at once."""

import datetime
import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal
from urllib.parse import urlsplit

import streamlit as st

from app import guard, zoo
from app.components import choice, history, saved, widgets
from app.reports import address, files, html, pdf
from app.reports import build as building
from app.reports.address import SAVED
from app.reports.document import Asked, Report, read, sealed
from app.reports.html import Kind
from app.screens.report import batch, choices
from app.server import downloads, owner
from app.session import state
from app.store import records
from app.store.database import Store
from app.store.records import MAX_NAME, NotFound
from app.store.server import open_store
from app.text import clean, csv_bytes, md, short
from engine.errors import SeqscopeError
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
        kept = _opened()
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
        report = _built(models, chosen, _link(models, chosen))
        _shown(report, live=True)
    with guard.watch("the batch"):
        batch.show(models)


def _shown(report: Report, live: bool = False) -> None:
    """What can be had of it, and how it looks. live: of what is chosen now, so that it can be saved."""
    _files(report)
    if live:
        with guard.watch("what you saved"):
            _saved(report)
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


def _link(models: Zoo, request: Asked) -> str:
    """The address of this very page; a person is named in it only where rows of the data may go in."""
    now = state.get()
    choices = {name: text for name, text in now.own.items() if name != SAVED}
    query = address.query(request, now.dataset, choices, models)
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


# --- its files: each is made when it is asked for


def _files(report: Report) -> None:
    """Buttons; how figures are in HTML; what a PDF would lack."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        chosen = choice.segmented(
            "Figures in HTML",
            "figures",
            {"static": "Static", "interactive": "Interactive"},
            "static",
            key="report_figures",
            help="Static: small and without any script. Interactive: to point at and zoom, with plotly.js inside (5 MB). Neither "
            "needs the network.",
        )
        figures: Kind = "interactive" if chosen == "interactive" else "static"
        forms: dict[files.Form, str] = {"html": "HTML", "pdf": "PDF", "json": "JSON", "zip": "All, as a zip"}
        for form, label in forms.items():
            make = partial(_file, report, form, figures)
            downloads.button(label, make, f"{report.stem}.{form}", files.MIME[form], key=f"report_{form}")
        popover = st.popover("CSV", key="report_csv", on_change="rerun", icon=":material/table:")
        if popover.open:
            with popover:
                _tables(report)
    with guard.watch("what a PDF would lack"):
        missing = pdf.lacks(report)
        if missing:
            words = (
                f"PDF: no font on this server has letters of {missing}; they would show as empty boxes. HTML has them."
            )
            st.caption(md(f"{words} Whoever runs this server can name a folder of fonts in SEQSCOPE_FONTS.", 1_000))


def _file(report: Report, form: files.Form, figures: Kind) -> bytes:
    return next(iter(files.files(report, [form], figures).values()))


def _tables(report: Report) -> None:
    for name, table in files.tables(report).items():
        downloads.button(
            f"{short(table.title, 100)} ({len(table.rows):,})",
            partial(csv_bytes, table.columns, table.rows),
            f"{report.stem}-{name}.csv",
            "text/csv",
            key=f"report_csv_{name}",
            type="tertiary",
        )


# --- those that the visitor keeps under a name: the document as it was, from which every form is made anew


_NAME, _TAKEN = "report_save_name", "report_save_taken"
"""Keys of the text field, and of what is to be replaced if the visitor says so."""


def _opened() -> Report | None:
    """The saved report that the address names, with a word on what it is; None where it names none, or none of this visitor's."""
    id = state.get().own.get(SAVED)
    if id is None:
        return None
    try:
        entry = open_store().reports.get(owner.required().id, id)
        if entry.dataset != state.get().dataset:
            raise NotFound(f"The report “{entry.name}” is of another dataset.")
    except SeqscopeError as error:
        state.choose(**{SAVED: None})
        st.warning(md(guard.shown(error), 1_000), icon=":material/link_off:")
        return None
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="report_opened"):
        st.info(
            f"“{md(entry.name, 100)}”, as it was saved on {entry.changed:%-d %B %Y, %H:%M} UTC. The models were not asked again.",
            icon=":material/bookmark:",
        )
        st.button(
            "Close it", key="report_close", icon=":material/close:", on_click=guard.callback(state.choose, **{SAVED: None}),
        )  # fmt: skip
    return read(json.dumps(entry.document).encode(), f"The saved report “{clean(entry.name, 60)}”")


def _saved(report: Report) -> None:
    """Saves what is shown; lists what was saved of this dataset."""
    who = owner.get()
    if who is None:
        st.caption("Sign in to save reports under a name.")
        return
    store = open_store()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input("Save as", key=_NAME, max_chars=MAX_NAME, placeholder=clean(report.title, 60), width=320)
        st.button(
            "Save this report",
            key="report_save",
            icon=":material/bookmark_add:",
            help="As it is now: it stays the same when models or data change",
            on_click=guard.callback(_save, store, who.id, report, False),
        )
    saved.ask_to_replace(_TAKEN, _save_name(report), _save, store, who.id, report, True, key="report_save_replace")
    saved.show_outcome()
    entries = store.reports.of(who.id, state.get().dataset)
    if entries:
        with st.expander(
            f"Saved reports ({len(entries)})", key="report_saved", icon=":material/bookmark:", type="compact"
        ):
            saved.rows(store, who.id, entries, saved.search(entries, key="report_find"), _entry)


def _entry(entry: records.Report) -> None:
    st.button(
        md(entry.name, 60),
        key=f"saved_go_{entry.id}",
        type="tertiary",
        icon=":material/description:",
        on_click=guard.callback(_open, entry.id),
    )
    st.caption(f"{entry.changed:%-d %b %Y, %H:%M} UTC")


def _save_name(report: Report) -> str:
    """What was written, else the report's own title."""
    return clean(st.session_state.get(_NAME) or report.title, MAX_NAME)


def _save(store: Store, who: str, report: Report, replace: bool) -> None:
    content = report.model_dump(mode="json")
    saved.keep(store.reports, who, _save_name(report), content, replace, field=_NAME, taken=_TAKEN)


def _open(id: str) -> None:
    saved.end_doing()
    state.choose(**{SAVED: id})


page()
