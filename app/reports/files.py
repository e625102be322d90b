"""The files of a report: one in each form, a CSV per table, or all in a zip; a reader sees a whole file or none."""

import datetime
import io
import zipfile
from collections.abc import Callable, Sequence
from typing import Literal, get_args

from app.reports import html, pdf
from app.reports.blocks import Table
from app.reports.document import Report, schema, write
from app.reports.provenance import models_table
from app.text import csv_bytes

Form = Literal["html", "pdf", "json", "csv", "zip"]
FORMS: tuple[Form, ...] = get_args(Form)
MIME: dict[Form, str] = {
    "html": "text/html",
    "pdf": "application/pdf",
    "json": "application/json",
    "csv": "text/csv",
    "zip": "application/zip",
}
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # that a zip can tell


def files(report: Report, forms: Sequence[Form] = FORMS, figures: html.Kind = "static") -> dict[str, bytes]:
    """File name → content. csv: one per table."""
    makers: dict[Form, Callable[[], bytes]] = {
        "html": lambda: html.render(report, figures),
        "pdf": lambda: pdf.render(report),
        "json": lambda: write(report),
        "zip": lambda: zipped(report, figures),
    }
    content = {f"{report.stem}.{form}": make() for form, make in makers.items() if form in forms}
    return content | (_tables(report, f"{report.stem}-") if "csv" in forms else {})


def zipped(report: Report, figures: html.Kind = "static") -> bytes:
    """Everything in one file, the JSON with its schema among it. The same report gives the same bytes."""
    made = datetime.datetime.fromisoformat(report.created).astimezone(datetime.UTC)
    at = max(_EARLIEST, made.timetuple()[:6])
    content = files(report, ("html", "pdf", "json"), figures)
    content |= {"report.schema.json": schema().encode(), **_tables(report, "tables/")}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in content.items():
            entry = zipfile.ZipInfo(f"{report.stem}/{name}", at)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            file.writestr(entry, data)
    return packed.getvalue()


def _tables(report: Report, before: str) -> dict[str, bytes]:
    return {f"{before}{name}.csv": csv_bytes(table.columns, table.rows) for name, table in tables(report).items()}


# --- tables


def tables(report: Report) -> dict[str, Table]:
    """Name → table, those alone that have rows."""
    every = {name: table for part, content in report.content() for name, table in part.tables(content, report).items()}
    return {name: table for name, table in (every | {"models": models_table(report)}).items() if table.rows}
