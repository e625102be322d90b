"""The catalogue: records of an item file to one table with a row per item, typed attributes and a title for everybody."""

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from engine.tabular.columns import COMMA_DECIMAL, DECIMAL, INTEGER, RESERVED
from engine.tabular.database import BLANKS, has_html, without_html
from engine.tabular.findings import Findings
from engine.tabular.problems import CONTROLS, MAX_ID, MAX_TITLE, warning_words

Record = dict[str, Any]
_CONTROLS = re.compile(f"{CONTROLS}+")


@dataclass(frozen=True)
class ItemFile:
    """Where the catalogue of a source comes from."""

    path: Path
    records: Callable[[], Iterator[tuple[int | None, Record]]]
    """(line, record) of every row that can be read; can be called again."""
    id_columns: tuple[str, ...]
    """The keys that may hold the id; the one that knows most items of the log is taken."""
    title_column: str | None
    """None: the file has no titles, and ids stand in."""
    of_events: frozenset[str] = frozenset()
    """Where the file is the log itself: columns that say nothing of items. An item has a row per event, no attribute that differs
    between these, and the first title of them."""


def choose_id_column(source: ItemFile, log_ids: set[str]) -> str:
    """The one of `source.id_columns` whose values match the most ids of the log."""
    if len(source.id_columns) == 1:
        return source.id_columns[0]
    matches = dict.fromkeys(source.id_columns, 0)
    for _, record in source.records():
        for name in source.id_columns:
            matches[name] += _id(record, name) in log_ids
    return max(source.id_columns, key=lambda name: matches[name])  # the first of equals


def read_catalogue(
    source: ItemFile | None, item_ids: list[str], findings: Findings, notices: Counter[str], *, keep_unused: bool
) -> tuple[list[str], list[str], dict[str, list[Any]], int]:
    """(item ids, titles, attributes by name, how many items of the file no user has).

    item_ids: those of the log, in their order. With `keep_unused` the file's other items follow them, in file order.
    Texts with HTML become plain text; titles and lists stay as they are. notices: what was changed or filled in is added, with
    how many items it concerns; nothing of it is left out.
    """
    position = {item_id: row for row, item_id in enumerate(item_ids)}
    known = set(item_ids)
    ids = list(item_ids)
    rows: list[Record | None] = [None] * len(ids)
    titles: list[str | None] = [None] * len(ids)
    unused = 0
    varying = set[str]()
    if source is not None:
        id_column = choose_id_column(source, known)
        for line, record in source.records():
            item_id = _id(record, id_column)
            fault = _id_fault(item_id)
            if fault:
                findings.add_row(source.path.name, fault, line, id_column, item_id)
                continue
            row = position.get(item_id)
            if row is None:
                unused += 1
                if not keep_unused:
                    continue
                row = position[item_id] = len(ids)
                ids.append(item_id)
                rows.append(None)
                titles.append(None)
            called = as_text(record.get(source.title_column)) if source.title_column else ""
            apart = {id_column, source.title_column, *source.of_events}
            rest = {name: _clean(value) for name, value in record.items() if name not in apart}
            if (before := rows[row]) is None:
                titles[row], rows[row] = _title(called, notices), rest
            elif source.of_events:
                titles[row] = titles[row] or _title(called, notices)
                varying |= {name for name, value in rest.items() if value != before.get(name)}
            elif (titles[row], rows[row]) == (_title(called, Counter()), rest):
                notices[warning_words("row_again")] += 1
            else:
                findings.add_row(source.path.name, "id_again", line, id_column, item_id)
        notices["item of the log without a row in the item file; the id stands in for the title"] += rows.count(None)
    for row, title in enumerate(titles):
        if not title:
            if rows[row] is not None and source is not None and source.title_column:
                notices["empty title; the id stands in"] += 1
            titles[row] = ids[row]
    names = dict.fromkeys(name for row in rows for name in row or () if name not in varying)
    attributes = {name: [(row or {}).get(name) for row in rows] for name in names}
    notices[warning_words("html")] = _strip_html(findings.con, attributes)
    return ids, [title or "" for title in titles], attributes, unused


def attribute_table(ids: list[str], titles: list[str], attributes: dict[str, list[Any]]) -> pa.Table:
    """The table that `write_dataset` takes: item_id, title, then attributes with the type their values have."""
    columns: dict[str, pa.Array] = {"item_id": pa.array(ids, pa.string()), "title": pa.array(titles, pa.string())}
    used_names = {name.lower() for name in RESERVED}
    for name, values in attributes.items():
        column_name = as_text(name).strip() or "attribute"
        while column_name.lower() in used_names:  # DuckDB does not tell case apart
            column_name += "_"
        used_names.add(column_name.lower())
        column = typed(values)
        if column.null_count < len(column):
            columns[column_name] = column
    return pa.table(columns)


def typed(values: list[Any]) -> pa.Array:
    """Lists become list<string>, whole numbers int64, other numbers float64, truth values bool, all else text.

    Digits in text become numbers where all values of the column are plain numbers, or all are such as 12,99; one with a leading
    zero (007) keeps it text.
    """
    present = [value for value in values if value is not None]
    if any(isinstance(value, list) for value in present):
        lists = [None if value is None else _texts(value) for value in values]
        return pa.array(lists, pa.list_(pa.string()))
    if present and all(isinstance(value, bool) for value in present):
        return pa.array(values, pa.bool_())
    if present and all(_whole(value) for value in present):
        return pa.array([None if v is None else int(v) for v in values], pa.int64())
    if present and all(_number(value) for value in present):
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    if present and all(isinstance(value, str) and re.fullmatch(COMMA_DECIMAL, value) for value in present):
        return pa.array([None if v is None else float(v.replace(",", ".")) for v in values], pa.float64())
    return pa.array([None if v is None else as_text(v) for v in values], pa.string())


def as_text(value: Any) -> str:
    """How a value of a JSON or Parquet file reads as an id or a text; None is empty."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    elif isinstance(value, Decimal):  # as engine/tabular/parquet.py
        text = format(value, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    elif isinstance(value, (bool, list, dict)):
        value = json.dumps(value, ensure_ascii=False, default=str)
    # A lone surrogate, which JSON can escape, is no character and cannot be stored.
    return str(value).encode("utf-8", "replace").decode("utf-8")


def _id(record: Record, column: str) -> str:
    """As the log's ids are read: without blanks at the ends."""
    return as_text(record.get(column)).strip(BLANKS)


def _title(text: str, notices: Counter[str]) -> str:
    """One line of at most MAX_TITLE characters."""
    title = text.strip()
    if _CONTROLS.search(title):
        title = _CONTROLS.sub(" ", title).strip()
        notices["title with control characters or line ends; a blank stands in"] += 1
    if len(title) > MAX_TITLE:
        title = title[: MAX_TITLE - 1].rstrip() + "…"
        notices[f"title longer than {MAX_TITLE} characters, shortened"] += 1
    return title


def _id_fault(item_id: str) -> str | None:
    """A key of PROBLEMS."""
    if not item_id:
        return "id_missing"
    if len(item_id) > MAX_ID:
        return "id_long"
    return "id_control" if re.search(CONTROLS, item_id) else None


def _strip_html(con: duckdb.DuckDBPyConnection, attributes: dict[str, list[Any]]) -> int:
    """Leaves plain text of every text with HTML; how many items have one."""
    items = set[int]()
    for values in attributes.values():
        texts = {row: value for row, value in enumerate(values) if isinstance(value, str)}
        table = pa.table([pa.array(texts.keys(), pa.int64()), pa.array(texts.values(), pa.string())], ["row", "cell"])
        con.register("texts", table)
        query = f'SELECT "row", {without_html("cell")} FROM texts WHERE {has_html("cell")}'
        for row, text in con.execute(query).fetchall():
            values[row] = text or None
            items.add(row)
        con.unregister("texts")
    return len(items)


def _clean(value: Any) -> Any:
    """None for what says nothing; everything else as it is."""
    if isinstance(value, (str, Decimal)):
        value = as_text(value)
        return value if value.strip() else None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _texts(value: Any) -> list[str]:
    parts = value if isinstance(value, list) else [value]
    return [text for part in parts if (text := as_text(part))]


def _whole(value: Any) -> bool:
    if isinstance(value, str):
        return re.fullmatch(INTEGER, value) is not None
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _number(value: Any) -> bool:
    if isinstance(value, str):
        return re.fullmatch(DECIMAL, value) is not None
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
