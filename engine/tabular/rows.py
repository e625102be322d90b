"""A text to the table `rows`: line (BIGINT), last (BIGINT: the last line of the row) and c0, c1, … (text; NULL where empty).

Rows that are none (ragged, not JSON, …) become findings and are not in the table. Lines are physical, as an editor counts, also
where quoted fields hold line ends. One JSON document becomes lines of JSON objects first: a list of objects, or an object keyed
by id (LETTER's and P5's item files)."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from engine.errors import Refused
from engine.tabular.database import SQL_BLANKS, pictured, sql, sql_path, trimmed, value
from engine.tabular.dialect import Splitter, parse_object
from engine.tabular.findings import VALUE, Findings
from engine.tabular.parquet import read_parquet
from engine.tabular.problems import MAX_DEPTH
from engine.tabular.reading import ENCODINGS, Limits, Reading, texts
from engine.tabular.text import MAX_LINE, Plain, blocks, too_many_rows, write_plain

_MAX_RECORD = 500  # lines of one row
MAX_NAME = 200
"""Characters of a key; longer ones, and those with control characters, are not read."""
_MAX_OPEN = 5_000  # quotes that are never closed, before nobody looks for their ends any more
_AS_TEXT = r'^="([^"]*)"\s*$'
"""How spreadsheets are told that digits are a text: ="0123"."""
_FILLED = r"NOT regexp_full_match(text, '[\s\x{0b}\x{a0}]*')"


def load_rows(
    con: duckdb.DuckDBPyConnection,
    work: Path,
    path: Path,
    reading: Reading,
    name: str,
    findings: Findings,
    limits: Limits,
    *,
    strict: bool = False,
) -> int:
    """Makes the table `rows` of a file of any format; how many rows the file has. Raises Refused.

    work: a folder for what is read on the way; name: of the file, in findings.
    """
    if reading.format == "parquet":
        total, strange = read_parquet(con, path, reading, limits)
        for column in strange:
            if not strict:
                findings.add(name, "column_bytes", column=column)
        return total
    if reading.format == "json":
        source, path = path, work / f"{name}.jsonl"
        write_json_lines(source, path, reading.encoding, limits, name, gzipped=reading.gzip)
        reading = reading.model_copy(update={"format": "jsonl", "gzip": False, "encoding": "utf-8"})
    if reading.encoding_guessed:
        note = f"It is read as {ENCODINGS.get(reading.encoding, reading.encoding)}."
        findings.add(name, "encoding_guessed", note=note)
    plain = write_plain(
        path, work / f"{name}.txt", reading.encoding, limits, gzipped=reading.gzip, quote=reading.quote, strict=strict
    )
    rows_are_lines = reading.format == "jsonl" or not (
        plain.quoted and Splitter(reading.delimiter, reading.quote).quoting
    )
    if rows_are_lines and not plain.blank and plain.lines > limits.rows + reading.header:
        raise Refused(too_many_rows(plain.lines - reading.header, limits))
    total = read_text(con, plain, reading, name, findings, limits, keys=not strict)
    plain.path.unlink()
    return total


def read_text(
    con: duckdb.DuckDBPyConnection,
    plain: Plain,
    reading: Reading,
    kind: str,
    findings: Findings,
    limits: Limits,
    *,
    keys: bool = True,
) -> int:
    """Makes the table `rows` of a text. How many rows the file has, those that are none included.

    keys: whether keys of JSON that are not read, or stand twice in an object, are warned of.
    """
    read_lines(con, plain, kind, findings)
    if reading.format in ("jsonl", "json"):
        total, header_end = _json(con, reading, kind, findings, limits, keys), 0
    else:
        total, header_end = _delimited(con, plain, reading, kind, findings)
    if total > limits.rows:
        raise Refused(too_many_rows(total, limits))
    con.execute("DROP TABLE IF EXISTS lines")
    _faults(con, plain, header_end, kind, findings)
    return total + findings.rows(kind, "long_line")


def lines_of(path: Path) -> str:
    """SQL that selects line and text of every line."""
    # One column, cut by a byte that does not occur: then a row is a line, blank ones included, and the row number its number.
    return (
        f"SELECT row_number() OVER () AS line, text FROM read_csv({sql_path(path)}, auto_detect = false, header = false, "
        "columns = {'text': 'VARCHAR'}, delim = chr(1), quote = '', escape = '', comment = '', compression = 'none', "
        f"max_line_size = {8 * MAX_LINE})"
    )


def read_lines(con: duckdb.DuckDBPyConnection, plain: Plain, kind: str, findings: Findings) -> None:
    """Makes the table `lines` (line, text), without blank lines and endless ones."""
    con.execute(f"CREATE OR REPLACE TABLE lines AS SELECT * FROM ({lines_of(plain.path)}) WHERE {_FILLED}")
    listed = ", ".join(map(str, plain.long_lines)) or "-1"
    long = f"(length(text) > {MAX_LINE} OR line IN ({listed}))"
    if findings.insert(kind, "long_line", f"SELECT line, left(text, {VALUE}) AS value FROM lines WHERE {long}"):
        con.execute(f"DELETE FROM lines WHERE {long}")


def _faults(con: duckdb.DuckDBPyConnection, plain: Plain, header_end: int, kind: str, findings: Findings) -> None:
    """Bytes that are none of the encoding, each a finding of the row that it stands in."""
    if not plain.faults:
        return
    lines, texts = [], []
    for fault in plain.faults:
        lines.append(fault.line)
        texts.append(f"byte 0x{fault.byte:02X} at place {fault.offset + 1:,} of the file")
    con.register("faults", pa.table({"place": pa.array(lines, pa.int64()), "value": pa.array(texts, pa.string())}))
    in_header = f"SELECT place AS line, value FROM faults WHERE place <= {header_end}"
    findings.insert(kind, "header_undecodable", in_header)
    # The row that begins last before the fault, unless it has ended there: then the fault is in a line that is no row.
    in_row = (
        "SELECT CASE WHEN place <= last THEN line ELSE place END AS line, value FROM faults ASOF LEFT JOIN rows "
        f"ON faults.place >= rows.line WHERE place > {header_end}"
    )
    several = value(con, f"SELECT count(DISTINCT line) FROM ({in_row})")
    findings.insert(kind, "undecodable", in_row, rows=several)
    con.unregister("faults")


# --- delimited


def _delimited(
    con: duckdb.DuckDBPyConnection, plain: Plain, reading: Reading, kind: str, findings: Findings
) -> tuple[int, int]:
    """(rows of the file, last line of its header)"""
    splitter = Splitter(reading.delimiter, reading.quote)
    width = len(reading.columns)
    quoted = splitter.quoting and plain.quoted
    con.execute("CREATE OR REPLACE TABLE merged (line BIGINT, last BIGINT, text VARCHAR)")
    first = value(con, "SELECT min(line) FROM lines") if reading.header else 0
    if quoted:
        _join_lines(con, plain.path, splitter, width, kind, findings)
    con.execute(
        "CREATE OR REPLACE VIEW records AS SELECT line, line AS last, text FROM lines UNION ALL SELECT * FROM merged"
    )
    header_end = value(con, f"SELECT max(last) FROM records WHERE line = {first}") if first else 0
    if first and not header_end:
        raise Refused(f"The first row, in line {first:,}, cannot be read: its quotes are not in order.")
    total = value(con, f"SELECT count(*) FROM records WHERE line <> {first}")
    total += findings.rows(kind, "open_quote", "after_quote")
    typed = "".join(f", c{index} VARCHAR" for index in range(width))
    con.execute(f"CREATE OR REPLACE TABLE rows (line BIGINT, last BIGINT{typed})")
    sign = sql(reading.quote)
    for with_quotes in (False, True) if quoted else (False,):
        condition = f"line <> {first}"
        if quoted:
            condition += f" AND {'' if with_quotes else 'NOT '}contains(text, {sign})"
        if with_quotes:
            fields = f"regexp_extract_all({sql(reading.delimiter)} || text, {sql(splitter.field)}, 1)"
        elif reading.delimiter == " ":
            fields = f"string_split_regex(trim(text, {SQL_BLANKS}), '[ \\t]+')"
        else:
            fields = f"string_split(text, {sql(reading.delimiter)})"
        cells, bare_cells = [], []
        for index in range(width):
            cell = f"f[{index + 1}]"
            if reading.columns[index].role == "skip":
                cell = "NULL"
            elif with_quotes:
                cell = f"trim({cell}, ' ')"
                bare = f"replace({cell}[2:-2], {sql(2 * reading.quote)}, {sign})"
                cell = f"CASE WHEN starts_with({cell}, {sign}) THEN {bare} ELSE {cell} END"
            bare_cells.append(f", {cell} AS c{index}")
            text = f"regexp_replace(c{index}, {sql(_AS_TEXT)}, '\\1')"
            text = f"CASE WHEN starts_with(c{index}, '=\"') THEN {text} ELSE c{index} END"
            cells.append(f", {trimmed(text)} AS c{index}")
        source = f"SELECT line, last, {fields} AS f FROM records WHERE {condition}"
        bare_rows = f"SELECT line, last{''.join(bare_cells)} FROM ({source}) WHERE len(f) = {width}"
        made = value(con, f"INSERT INTO rows SELECT line, last{''.join(cells)} FROM ({bare_rows})")
        if made == value(con, f"SELECT count(*) FROM records WHERE {condition}"):
            continue
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE ragged AS SELECT line, len(f) AS n FROM ({source}) WHERE len(f) <> {width}"
        )
        for problem, test in (("few_fields", f"n < {width}"), ("many_fields", f"n > {width}")):
            lines = f"SELECT line FROM ragged WHERE {test}"
            query = f"SELECT line, text AS value FROM records SEMI JOIN ({lines}) USING (line)"
            findings.insert(kind, problem, query, note=f"There are {width} columns.")
        con.execute("DROP TABLE ragged")
    con.execute("DROP VIEW records; DROP TABLE merged")
    return total, header_end


def _join_lines(
    con: duckdb.DuckDBPyConnection, path: Path, splitter: Splitter, width: int, kind: str, findings: Findings
) -> None:
    """Joins lines that end within a quoted field with those that follow; takes lines whose quotes are not in order out."""
    text = f"{sql(splitter.delimiter)} || text"
    odd = f"contains(text, {sql(splitter.quote)}) AND NOT regexp_full_match({text}, {sql(splitter.whole)})"
    odd_lines = con.execute(
        f"SELECT line, regexp_full_match({text}, {sql(splitter.unfinished)}) FROM lines WHERE {odd} ORDER BY line"
    ).fetchall()
    if not odd_lines:
        return
    open_lines = {line for line, unfinished in odd_lines if unfinished}
    covered: list[int] = []
    lost: list[int] = []
    for rows in _joined(path, splitter, width, open_lines, covered, lost):
        con.register("joined", pa.table(list(zip(*rows, strict=True)), _JOINED))
        con.execute("INSERT INTO merged SELECT * FROM joined")
        con.unregister("joined")
    strange = {line for line, unfinished in odd_lines if not unfinished} - set(covered)
    for name, lines in (("covered", covered), ("lost", lost), ("strange", sorted(strange))):
        con.register(name, pa.table({"line": pa.array(lines, pa.int64())}))
    for name, problem in (("lost", "open_quote"), ("strange", "after_quote")):
        findings.insert(kind, problem, f"SELECT line, text AS value FROM lines SEMI JOIN {name} USING (line)")
        con.execute(f"DELETE FROM lines WHERE line IN (SELECT line FROM {name})")
    con.execute("DELETE FROM lines WHERE line IN (SELECT line FROM covered)")
    for name in ("covered", "lost", "strange"):
        con.unregister(name)


_JOINED = pa.schema([("line", pa.int64()), ("last", pa.int64()), ("text", pa.string())])
_HELD = 1 << 22  # characters of joined lines in memory at a time


def _joined(
    path: Path, splitter: Splitter, width: int, open_lines: set[int], covered: list[int], lost: list[int]
) -> Iterator[list[tuple[int, int, str]]]:
    """Rows of several lines, some at a time: line, last, text. Adds the lines that they are made of to `covered`, and lines whose
    quote is never closed to `lost`.

    Where a quote that is never closed would swallow the rows below it, or where the lines together have not `width` fields,
    only the first line is given up.
    """
    rows: list[tuple[int, int, str]] = []
    held = 0
    with path.open(encoding="utf-8", newline="\n") as file:
        waiting: list[tuple[int, str]] = []  # lines that were looked at, and stand on their own after all
        numbered = enumerate((line.rstrip("\n") for line in file), 1)
        while True:
            number, text = waiting.pop() if waiting else next(numbered, (0, ""))
            if number == 0:
                break
            if number not in open_lines:
                continue
            record_lines = [(number, text)]
            closed = False
            while len(record_lines) < _MAX_RECORD and len(lost) < _MAX_OPEN:
                following = waiting.pop() if waiting else next(numbered, None)
                if following is None:
                    break
                record_lines.append(following)
                if not splitter.is_unfinished(following[1], within=True):
                    closed = True
                    break
            whole = "\n".join(part for _, part in record_lines)
            fields = splitter.split(whole) if closed and len(whole) <= MAX_LINE else None
            if fields is None or (width and len(fields) != width):
                waiting.extend(reversed(record_lines[1:]))
                lost.append(number)
                continue
            covered.extend(line for line, _ in record_lines)
            rows.append((number, record_lines[-1][0], whole))
            held += len(whole)
            if held > _HELD:
                yield rows
                rows, held = [], 0
    if rows:
        yield rows


# --- JSON lines


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


def with_keys(con: duckdb.DuckDBPyConnection, path: Path, reading: Reading, limits: Limits) -> Reading:
    """The reading of JSON lines with every key of the plain text `path` as a column. Raises Refused."""
    con.execute(f"CREATE TABLE lines AS {lines_of(path)}")
    _from_python(con)
    names = json_names(con, limits)
    con.execute("DROP TABLE lines")
    if not names:
        raise Refused("No line of the file is a JSON object with keys.")
    if len(names) > limits.columns:
        raise Refused(f"The objects have more than {limits.columns:,} different keys; so many are not taken here.")
    return reading.model_copy(update={"columns": texts(names)})


def _json(
    con: duckdb.DuckDBPyConnection, reading: Reading, kind: str, findings: Findings, limits: Limits, keys: bool
) -> int:
    """How many rows the file has."""
    _from_python(con)
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


def _from_python(con: duckdb.DuckDBPyConnection) -> None:
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
    """SQL: a value as text; pandas writes whole numbers as 1.0 where one is missing (engine/tabular/parquet.py), and MongoDB
    wraps what it exports: {"$oid": "65…"}, {"$date": {"$numberLong": "17…"}}."""
    cell = f"f[{index + 1}]"
    whole = f"ends_with({cell}, '.0') AND json_type(text, {sql(pointer(key))}) = 'DOUBLE'"
    bare = rf"regexp_replace({cell}, {sql(_WRAPPED)}, '\1\2')"
    return f"CASE WHEN {whole} THEN left({cell}, -2) WHEN starts_with({cell}, '{{\"$') THEN {bare} ELSE {cell} END"


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
    depth = deepest = 0
    quoted = escaped = False
    for c in text:
        if quoted:
            if escaped:
                escaped = False
            elif c == "\\":
                escaped = True
            elif c == '"':
                quoted = False
        elif c == '"':
            quoted = True
        elif c in "[{":
            depth += 1
            if depth > deepest:
                deepest = depth
                if deepest > MAX_DEPTH:
                    return deepest
        elif c in "]}":
            depth -= 1
    return deepest


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
