"""The clean files: clean/items.parquet (item_id, title, attributes) and clean/log.parquet (user, item, time, weight, quantity).

They hold the rows that are kept, in their order, as the importer of the engine takes them: ids as text, times as unix seconds,
attributes as whole numbers, numbers, lists of texts or text.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import duckdb

from app.store.attributes import caption
from app.uploads.limits import UploadLimits
from engine.tabular.columns import COMMA_DECIMAL, DECIMAL, INTEGER, RESERVED
from engine.tabular.database import has_html, sql, value, without_html, write_parquet
from engine.tabular.problems import CONTROLS, MAX_TITLE
from engine.tabular.reading import Reading, Role, UploadColumn
from engine.tabular.times import MICRO

ITEMS, LOG = "items.parquet", "log.parquet"
YES = ("1", "true", "yes")
"""What a column of flags says of those that it is true of."""
_LONGEST_NAME = 60
_FLAGS = ""  # no column is called so
_OF_PYTHON = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s'"\[\],][^\[\],]*"""  # the values of a list as it writes them
_NAMES = r"""['"]name['"]\s*:\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""  # of its objects: [{'id': 16, 'name': 'War'}]
_ESCAPED = r"""\\(['"\\])"""


def write_items(con: duckdb.DuckDBPyConnection, reading: Reading, folder: Path, limits: UploadLimits) -> None:
    """Writes the rows of the table `good`; the table `known` has their ids."""
    cell_of = {column.name: f"c{number}" for number, column in enumerate(reading.columns)}
    item, title = reading.column("item_id"), reading.column("title")
    assert item is not None
    # The title as one line, in a column of its own: what is made of it mentions it four times.
    bare = _one_line(cell_of[title.name] if title else "NULL::VARCHAR")
    con.execute(f"CREATE OR REPLACE TEMP VIEW kept AS SELECT *, {bare} AS bare FROM rows SEMI JOIN good USING (line)")
    short = f"CASE WHEN length(bare) > {MAX_TITLE} THEN rtrim(left(bare, {MAX_TITLE - 1})) || '…' ELSE bare END"
    selected = [f"{cell_of[item.name]} AS item_id", f"coalesce({short}, {cell_of[item.name]}) AS title"]
    names = _names(reading)
    for column in reading.columns:
        cell = cell_of[column.name]
        if column.role == "text" and value(con, f"SELECT count({cell}) FROM kept"):
            text = cell
            if value(con, f"SELECT count(*) FROM kept WHERE {has_html(cell)}"):
                text = f"CASE WHEN {has_html(cell)} THEN {without_html(cell)} ELSE {cell} END"
            text, kind = f"left({_one_line(text)}, {limits.cell})", _type(con, cell)
            expression = f"CAST(replace({text}, ',', '.') AS {kind})" if kind != "VARCHAR" else text
        elif column.role == "list" and value(con, f"SELECT count({_list(cell, column, limits)}) FROM kept"):
            expression = _list(cell, column, limits)
        else:  # another role, or nothing in it
            continue
        selected.append(f"{expression} AS {_quoted(names[column.name])}")
    flags = [column for column in reading.columns if column.role == "flag"]
    if flags:
        selected.append(f"{_flags(flags, cell_of)} AS {_quoted(names[_FLAGS])}")
    write_parquet(con, f"SELECT {', '.join(selected)} FROM kept ORDER BY line", folder / ITEMS)
    con.execute(f"CREATE OR REPLACE TABLE known AS SELECT {cell_of[item.name]} AS item_id FROM kept")
    con.execute("DROP VIEW kept")


def write_items_of_log(con: duckdb.DuckDBPyConnection, reading: Reading, folder: Path, limits: UploadLimits) -> None:
    """Without a catalogue, the items of the table `events`: with the title and the attributes that the log says of each most
    often, of several the first; else with their ids as titles."""
    if reading.column("title") is None:
        query = "SELECT item AS item_id, item AS title FROM events GROUP BY item ORDER BY min(line)"
        write_parquet(con, query, folder / ITEMS)
        return
    con.execute("CREATE OR REPLACE TABLE of_log AS SELECT item, min(line) AS line FROM events GROUP BY item")
    cells = []
    for number, column in enumerate(reading.columns):
        cell = "NULL::VARCHAR"
        if column.role in ("title", "text", "list", "flag"):
            cell = f"commonest{number}.value"
            con.execute(
                f"CREATE OR REPLACE TEMP TABLE commonest{number} AS SELECT item, c{number} AS value FROM events "
                f"JOIN rows USING (line) WHERE c{number} IS NOT NULL GROUP BY item, c{number} "
                "QUALIFY row_number() OVER (PARTITION BY item ORDER BY count(*) DESC, min(line)) = 1"
            )
        cells.append(f"{'item' if column.role == 'item' else cell} AS c{number}")
    joins = " ".join(f"LEFT JOIN {cell.split('.')[0]} USING (item)" for cell in cells if cell.startswith("commonest"))
    con.execute(f"CREATE OR REPLACE TABLE rows AS SELECT line, line AS last, {', '.join(cells)} FROM of_log {joins}")
    con.execute("CREATE OR REPLACE TABLE good AS SELECT line FROM rows")
    roles: dict[Role, Role] = {
        "item": "item_id",
        **dict.fromkeys(("user", "time", "clock", "weight", "quantity"), "skip"),
    }
    columns = tuple(
        column.model_copy(update={"role": roles.get(column.role, column.role)}) for column in reading.columns
    )
    write_items(con, reading.model_copy(update={"columns": columns}), folder, limits)


def write_log(con: duckdb.DuckDBPyConnection, reading: Reading, folder: Path, left_out: Mapping[str, int]) -> None:
    """Writes the table `events` by line, or by time where times have fractions of a second.

    left_out: reason → rows of all files."""
    fine = value(con, "SELECT count(*) FROM events WHERE fraction <> 0")
    order, moment = ("events.time, fraction, line", f"time + fraction / {MICRO} AS time") if fine else ("line", "time")
    cells: dict[Role, str] = {"time": moment, "weight": "weight", "quantity": "quantity"}
    selected = ['"user"', "item", *(cell for role, cell in cells.items() if reading.column(role))]
    write_parquet(con, f"SELECT {', '.join(selected)} FROM events ORDER BY {order}", folder / LOG, left_out)


def fingerprint(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


# --- attributes


def _names(reading: Reading) -> dict[str, str]:
    """Column → what the attribute is called: no name that pages would show like another one's, nor like one that has a meaning of
    its own. _FLAGS: their list."""
    used = {caption(name).casefold() for name in RESERVED}
    names: dict[str, str] = {}
    attributes = [
        (column.name, column.called or column.name) for column in reading.columns if column.role in ("text", "list")
    ]
    for name, called in [*attributes, (_FLAGS, reading.flags)]:
        attribute = _tidy(called) or "attribute"
        while caption(attribute).casefold() in used:  # nor does DuckDB tell case apart
            attribute += "_"
        used.add(caption(attribute).casefold())
        names[name] = attribute
    return names


def _tidy(name: str) -> str:
    return " ".join(re.sub(r"[\x00-\x1f\x7f]", " ", name).split())[:_LONGEST_NAME]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _one_line(cell: str) -> str:
    """SQL: a text without control characters and line ends, NULL where nothing is left."""
    return f"nullif(trim(regexp_replace({cell}, '{CONTROLS}+', ' ', 'g')), '')"


def _type(con: duckdb.DuckDBPyConnection, cell: str) -> str:
    """What all values of a column are: BIGINT, DOUBLE or VARCHAR."""
    tests = ", ".join(f"bool_and(regexp_full_match({cell}, {sql(form)}))" for form in (INTEGER, DECIMAL, COMMA_DECIMAL))
    whole, *numbers = con.execute(f"SELECT {tests} FROM kept").fetchall()[0]
    return "BIGINT" if whole else "DOUBLE" if any(numbers) else "VARCHAR"


def _flags(columns: list[UploadColumn], cell_of: dict[str, str]) -> str:
    """SQL: what the columns that say yes are called."""
    yes = ", ".join(map(sql, YES))
    each = (
        f"CASE WHEN lower({cell_of[flag.name]}) IN ({yes}) THEN {sql(_tidy(flag.called or flag.name))} END"
        for flag in columns
    )
    return f"list_filter([{', '.join(each)}], lambda x: x IS NOT NULL)"


def _list(cell: str, column: UploadColumn, limits: UploadLimits) -> str:
    """SQL: the values of a field; NULL where there is none."""
    lists = f"TRY(flatten(from_json({cell}, '[[\"VARCHAR\"]]')))"
    plain = f"TRY(from_json({cell}, '[\"VARCHAR\"]'))"
    objects = f'list_transform(TRY(from_json({cell}, \'[{{"name": "VARCHAR"}}]\')), lambda x: x.name)'
    separator = column.separator or "|"
    parts = f"string_split({cell}, {sql(separator)})"
    in_brackets = r"(?s)\[.*\]" if separator == "," else r"""(?s)\[[\[\s]*['"].*\]"""
    braces = f"regexp_full_match({cell}, '(?s)\\{{[^:]*\\}}')"  # a set of Python, an array of Postgres
    listed = f"CASE WHEN {braces} THEN '[' || {cell}[2:-2] || ']' ELSE {cell} END"
    python, names = (
        f"list_transform(regexp_extract_all({listed}, {form}), lambda x: CASE WHEN x[1] IN ('\"', chr(39)) "
        rf"THEN regexp_replace(x[2:-2], {sql(_ESCAPED)}, '\1', 'g') ELSE x END)"
        for form in (sql(_OF_PYTHON), f"{sql(_NAMES)}, 1")
    )
    named = f"CASE WHEN json_valid({cell}) THEN list_filter({objects}, lambda x: x IS NOT NULL) ELSE {names} END"
    values = (
        f"CASE WHEN regexp_matches({cell}, '^\\[\\s*\\{{') AND len({named}) > 0 THEN {named} "
        f"WHEN {cell}[1] = '[' AND json_valid({cell}) THEN "
        f"CASE WHEN regexp_matches({cell}, '^\\[\\s*\\[') THEN {lists} ELSE {plain} END "
        f"WHEN {braces} OR regexp_full_match({cell}, {sql(in_brackets)}) THEN {python} WHEN {cell} IS NOT NULL THEN {parts} END"
    )
    bare = f"list_transform({values}, lambda x: left(trim(regexp_replace(x, '{CONTROLS}+', ' ', 'g')), {limits.cell}))"
    filled = f"list_filter({bare}, lambda x: x IS NOT NULL AND x <> '')"
    return f"CASE WHEN len({filled}) > 0 THEN {filled} END"
