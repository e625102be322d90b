"""The files of a report: one in each form, a CSV per table, or all in a zip; a reader sees a whole file or none."""

from __future__ import annotations

import datetime
import io
import zipfile
from collections.abc import Sequence
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
    content: dict[str, bytes] = {}
    name = report.stem
    if "html" in forms:
        content[f"{name}.html"] = html.render(report, figures)
    if "pdf" in forms:
        content[f"{name}.pdf"] = pdf.render(report)
    if "json" in forms:
        content[f"{name}.json"] = write(report)
    if "csv" in forms:
        content |= {f"{name}-{table}.csv": csv_bytes(rows.columns, rows.rows) for table, rows in tables(report).items()}
    if "zip" in forms:
        content[f"{name}.zip"] = zipped(report, figures)
    return content


def zipped(report: Report, figures: html.Kind = "static") -> bytes:
    """Everything in one file, the JSON with its schema among it. The same report gives the same bytes."""
    made = datetime.datetime.fromisoformat(report.created).astimezone(datetime.UTC)
    at = max(_EARLIEST, made.timetuple()[:6])
    content = {
        f"{report.stem}.html": html.render(report, figures),
        f"{report.stem}.pdf": pdf.render(report),
        f"{report.stem}.json": write(report),
        "report.schema.json": schema().encode(),
        **{f"tables/{name}.csv": csv_bytes(table.columns, table.rows) for name, table in tables(report).items()},
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in content.items():
            entry = zipfile.ZipInfo(f"{report.stem}/{name}", at)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            file.writestr(entry, data)
    return packed.getvalue()


# --- tables


def tables(report: Report) -> dict[str, Table]:
    """Name → table, those alone that have rows."""
    every = {name: table for part, content in report.content() for name, table in part.tables(content, report).items()}
    return {name: table for name, table in (every | {"models": models_table(report)}).items() if table.rows}
