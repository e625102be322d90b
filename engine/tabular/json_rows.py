"""JSON to the table `rows` (rows.py). One JSON document becomes lines of JSON objects first: a list of objects, or an object
keyed by id (LETTER's and P5's item files). Objects in Python's own words, and what MongoDB wraps, are read as JSON."""

import contextlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from engine.errors import Refused
from engine.tabular.database import pictured, sql, trimmed, value
from engine.tabular.dialect import parse_object
from engine.tabular.findings import VALUE, Findings
from engine.tabular.problems import MAX_DEPTH
from engine.tabular.reading import Limits, Reading
from engine.tabular.text import blocks

MAX_NAME = 200
"""Characters of a key; longer ones, and those with control characters, are not read."""


def pointer(name: str) -> str:
    """The JSON pointer of a key."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def json_names(con: duckdb.DuckDBPyConnection, limits: Limits) -> list[str]:
    """The keys of all objects of the table `lines`, in the order in which they come up."""
    keys = (
        "SELECT line, unnest(json_keys(text)) AS key, generate_subscripts(json_keys(text), 1) AS place "
        "FROM lines WHERE json_valid(text) AND json_type(text) = 'OBJECT'"
    )
    rows = con.execute(
        f"SELECT key FROM ({keys}) WHERE NOT regexp_matches(key, '[\\x00-\\x1f]') AND length(key) BETWEEN 1 AND {MAX_NAME} "
        f"GROUP BY key ORDER BY min(line), min(place) LIMIT {limits.columns + 1}"
    ).fetchall()
    return [row[0] for row in rows]


def json_rows(
    con: duckdb.DuckDBPyConnection, reading: Reading, kind: str, findings: Findings, limits: Limits, keys: bool
) -> int:
    """How many rows the file has."""
    from_python(con)
    total = value(con, "SELECT count(*) FROM lines")
    shape = "CASE WHEN json_valid(text) THEN json_type(text) = 'OBJECT' END"
    con.execute(f"CREATE OR REPLACE TABLE shaped AS SELECT line, text, {shape} AS object FROM lines")
    findings.insert(kind, "not_json", "SELECT line, text AS value FROM shaped WHERE object IS NULL")
    findings.insert(kind, "not_object", "SELECT line, text AS value FROM shaped WHERE NOT object")
    brackets = "length(text) - length(replace(replace(text, '[', ''), '{', ''))"
    nested = con.execute(f"SELECT line, text FROM shaped WHERE object AND {brackets} > {MAX_DEPTH}")
    deep: list[tuple[int, str]] = []
    while some := nested.fetchmany(1_000):
        deep += [(line, text[:VALUE]) for line, text in some if _depth(text) > MAX_DEPTH]
    con.register("deep", pa.table({"line": [line for line, _ in deep], "value": [text for _, text in deep]}, _DEEP))
    findings.insert(kind, "deep_json", "SELECT line, value FROM deep")
    if keys:
        _warn_of_keys(con, reading, kind, findings, limits)
    paths = "[" + ", ".join(sql(pointer(column.name)) for column in reading.columns) + "]"
    cells = "".join(
        f", {trimmed(pictured(_json_cell(index, column.name)) if column.role != 'skip' else 'NULL')} AS c{index}"
        for index, column in enumerate(reading.columns)
    )
    con.execute(
        f"CREATE OR REPLACE TABLE rows AS SELECT line, line AS last{cells} FROM (SELECT line, text, "
        f"json_extract_string(text, {paths}) AS f FROM shaped WHERE object AND line NOT IN (SELECT line FROM deep))"
    )
    con.unregister("deep")
    con.execute("DROP TABLE shaped")
    return total


def from_python(con: duckdb.DuckDBPyConnection) -> None:
    """Writes the objects of the table `lines` that are in Python's own words (dialect.py) as JSON."""
    con.execute("CREATE OR REPLACE TABLE literals (line BIGINT, text VARCHAR)")
    rows = con.cursor().execute(r"SELECT line, text FROM lines WHERE regexp_matches(text, '^\s*\{\s*u?\x27')")
    while some := rows.fetchmany(10_000):
        con.register(
            "written", pa.Table.from_pylist([row for line, text in some for row in _as_json(line, text)], _LITERALS)
        )
        con.execute("INSERT INTO literals SELECT * FROM written")
        con.unregister("written")
    con.execute("UPDATE lines SET text = literals.text FROM literals WHERE literals.line = lines.line")
    con.execute("DROP TABLE literals")


_LITERALS = pa.schema([("line", pa.int64()), ("text", pa.string())])


def _as_json(line: int, text: str) -> Iterator[dict[str, Any]]:
    """The row of a line of Python; nothing where it is none."""
    row = parse_object(text)
    if row is not None:
        with contextlib.suppress(TypeError, RecursionError):  # a tuple as a key
            yield {"line": line, "text": json.dumps(row, default=str)}


def _json_cell(index: int, key: str) -> str:
    """SQL: a value as text, NULL for NaN, which Python writes of what is missing; pandas writes whole numbers as 1.0 where one is
    missing (engine/tabular/parquet.py), and MongoDB wraps what it exports: {"$oid": "65…"}, {"$date": {"$numberLong": "17…"}}."""
    cell = f"f[{index + 1}]"
    double = f"json_type(text, {sql(pointer(key))}) = 'DOUBLE'"
    bare = rf"regexp_replace({cell}, {sql(_WRAPPED)}, '\1\2')"
    return (
        f"CASE WHEN ends_with({cell}, '.0') AND {double} THEN left({cell}, -2) WHEN {cell} = 'NaN' AND {double} THEN NULL "
        f"WHEN starts_with({cell}, '{{\"$') THEN {bare} ELSE {cell} END"
    )


_WRAPPED = r'^\{"\$\w+":(?:\{"\$\w+":)?(?:"([^"]*)"|([^"{}\[\]]*))\}+$'


_DEEP = pa.schema([("line", pa.int64()), ("value", pa.string())])


def _warn_of_keys(
    con: duckdb.DuckDBPyConnection, reading: Reading, kind: str, findings: Findings, limits: Limits
) -> None:
    """Of the table `shaped`."""
    of_row = "json_keys(text)"
    doubled = f"SELECT line, text AS value FROM shaped WHERE object AND len({of_row}) > len(list_distinct({of_row}))"
    findings.insert(kind, "key_again", doubled)
    known = {column.name for column in reading.columns}
    for name in json_names(con, limits):
        if name not in known:
            has = f"json_type(text) = 'OBJECT' AND json_exists(text, {sql(pointer(name))})"
            first = (
                f"SELECT min(line) AS line, {sql(name[:VALUE])} AS value FROM lines WHERE json_valid(text) AND {has}"
            )
            findings.insert(kind, "key_unknown", f"SELECT * FROM ({first}) WHERE line IS NOT NULL", column=name)


def _depth(text: str) -> int:
    """How deep the brackets of valid JSON are nested."""
    brackets = re.findall(r"[][{}]", _STRING.sub("", text))
    return max(itertools.accumulate(1 if bracket in "[{" else -1 for bracket in brackets), default=0)


_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


_CODE = re.compile(r"<[a-z]+_(\d{1,8})>")
"""As LETTER, LC-Rec and MiniOneRec write the codes of an item: <a_17>."""
_SHIPPED = {"catalogue": ".item.json", "log": ".inter.json"}


def codes_of(entry: Any) -> list[int]:
    """The codes of an item's semantic ID; none where it is no semantic ID."""
    codes = (
        [_CODE.fullmatch(code) if isinstance(code, str) else None for code in entry] if isinstance(entry, list) else []
    )
    return [int(code[1]) for code in codes if code] if all(codes) else []


_FORMS = {
    "catalogue": 'a list of objects, [{"id": …, "title": …}, …], or an object of objects by id, {"17": {"title": …}, …}',
    "log": 'a list of objects, [{"user": …, "item": …}, …], or an object of each user\'s items in order, {"anna": ["17", …], …}',
}


def load_document(path: Path, encoding: str, limits: Limits, *, gzipped: bool) -> Any:
    """The one JSON document in a file. Raises Refused where it is none."""
    content = b"".join(blocks(path, gzipped, limits))
    try:
        return json.loads(
            content.decode("utf-8-sig" if encoding == "utf-8" else encoding, "replace"), object_pairs_hook=_object
        )
    except json.JSONDecodeError as error:
        raise Refused(
            f"The JSON document breaks off or is not valid: line {error.lineno}, column {error.colno}: {error.msg}."
        )
    except RecursionError:
        raise Refused("The JSON document is nested too deeply.")


def write_json_lines(source: Path, target: Path, encoding: str, limits: Limits, kind: str, *, gzipped: bool) -> None:
    """Writes `target`, an object per line in UTF-8. Raises Refused where the document is none of the forms that are read."""
    document = load_document(source, encoding, limits, gzipped=gzipped)
    with target.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
        for row in _rows(document, kind):
            entries = (f"{_dumps(key)}: {_dumps(entry)}" for key, entry in entries_of(row))
            file.write("{" + ", ".join(entries) + "}\n")


class _Doubled(dict[str, Any]):
    """An object of JSON that has a key twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(reversed(pairs))  # the first one counts
        self.pairs = pairs


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    return plain if len(plain) == len(pairs) else _Doubled(pairs)


def entries_of(row: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    """The entries of an object of JSON as they stand, also those whose key stands twice."""
    return row.pairs if isinstance(row, _Doubled) else row.items()


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _rows(document: Any, kind: str) -> Iterator[dict[str, Any]]:
    entries: Iterable[tuple[Any, Any]] = enumerate(document, 1) if isinstance(document, list) else ()
    if isinstance(document, dict):
        entries = entries_of(document)
    for key, entry in entries:
        if isinstance(document, list) and isinstance(entry, dict):
            yield entry
        elif isinstance(document, dict) and kind == "catalogue" and isinstance(entry, dict):
            named = ("key" if "id" in entry else "id", key)
            yield _Doubled([named, *entry.pairs]) if isinstance(entry, _Doubled) else {named[0]: key, **entry}
        elif isinstance(document, dict) and kind == "catalogue" and isinstance(entry, str):
            yield {"id": key, "title": entry}
        elif isinstance(document, dict) and kind == "log" and isinstance(entry, list) and not codes_of(entry):
            yield from ({"user": key, "item": item} for item in entry)
        elif codes_of(entry):
            raise Refused(
                "This is an index of semantic IDs (TIGER, LETTER, MiniOneRec), which says nothing of items or events. Upload the "
                f"{_SHIPPED[kind]} file that came with it, and then add these to the dataset."
            )
        else:
            raise Refused(f"As one JSON document, a {kind} is {_FORMS[kind]}. The entry “{str(key)[:60]}” is neither.")
