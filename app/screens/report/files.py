"""The files of a report: each is made when it is asked for."""

from __future__ import annotations

from functools import partial

import streamlit as st

from app import downloads, guard
from app.analysis.cache import cached
from app.components import choice
from app.reports import files, pdf
from app.reports.document import Report
from app.reports.files import tables
from app.reports.html import Kind
from app.text import csv_bytes, listed, md
from engine.errors import SeqscopeError

_FORMS: tuple[tuple[files.Form, str], ...] = (
    ("html", "HTML"),
    ("pdf", "PDF"),
    ("json", "JSON"),
    ("zip", "All, as a zip"),
)


def show(report: Report) -> None:
    """Buttons; how figures are in HTML; what a PDF would lack."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        figures: Kind = "static"
        chosen = choice.segmented(
            "Figures in HTML",
            "figures",
            {"static": "Static", "interactive": "Interactive"},
            "static",
            key="report_figures",
            help="Static: small and without any script. Interactive: to point at and zoom, with plotly.js inside (5 MB). Neither "
            "needs the network.",
        )
        if chosen == "interactive":
            figures = "interactive"
        for form, label in _FORMS:
            downloads.button(
                label,
                partial(_file, report, form, figures),
                f"{report.stem}.{form}",
                files.MIME[form],
                key=f"report_{form}",
            )
        popover = st.popover("CSV", key="report_csv", on_change="rerun", icon=":material/table:")
        if popover.open:
            with popover:
                _tables(report)
    with guard.watch("what a PDF would lack"):
        missing = _pdf_lacks(report)
        if missing:
            words = (
                f"PDF: no font on this server has letters of {missing}; they would show as empty boxes. HTML has them."
            )
            st.caption(md(f"{words} Whoever runs this server can name a folder of fonts in SEQSCOPE_FONTS.", 1_000))


def _file(report: Report, form: files.Form, figures: Kind) -> bytes:
    return next(iter(files.files(report, [form], figures).values()))


def _tables(report: Report) -> None:
    for name, table in tables(report).items():
        downloads.button(
            f"{table.title[:60]} ({len(table.rows):,})",
            partial(csv_bytes, table.columns, table.rows),
            f"{report.stem}-{name}.csv",
            "text/csv",
            key=f"report_csv_{name}",
            type="tertiary",
        )


@cached(50, by=lambda report: report.seal)
def _pdf_lacks(report: Report) -> str:
    """The scripts that no font here has, in words; "" where all letters can be shown."""
    try:
        return listed(list(pdf.unshown(pdf.texts(report))))
    except SeqscopeError as reason:
        return str(reason)
