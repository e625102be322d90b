"""The tables of a report, one CSV each."""

from __future__ import annotations

import csv
import io
from typing import Any

from app.reports.blocks import Table
from app.reports.document import Report
from app.reports.provenance import models_table
from app.text import cell


def tables(report: Report) -> dict[str, Table]:
    """Name → table, those alone that have rows."""
    every = {name: table for part, content in report.content() for name, table in part.tables(content, report).items()}
    return {name: table for name, table in (every | {"models": models_table(report)}).items() if table.rows}


def csv_bytes(table: Table) -> bytes:
    """CSV in UTF-8 with a byte-order mark (spreadsheets ask for it); texts that a spreadsheet would run are neutralised."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(table.columns)
    for row in table.rows:
        writer.writerow([_plain(value) for value in row])
    return text.getvalue().encode("utf-8-sig")


def _plain(value: Any) -> Any:
    if value is None:
        return ""
    return cell("; ".join(map(str, value)) if isinstance(value, (list, tuple)) else value)
