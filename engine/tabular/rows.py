"""A text to the table `rows`: line (BIGINT), last (BIGINT: the last line of the row) and c0, c1, … (text; NULL where empty).

Rows that are none (ragged, not JSON, …) become findings and are not in the table. Lines are physical, as an editor counts, also
where quoted fields hold line ends."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

from engine.errors import Refused
from engine.tabular.database import SQL_BLANKS, sql, sql_path, trimmed, value
from engine.tabular.dialect import Splitter
from engine.tabular.findings import VALUE, Findings
from engine.tabular.json_rows import from_python, json_names, json_rows, write_json_lines
from engine.tabular.parquet import read_parquet
from engine.tabular.reading import ENCODINGS, Limits, Reading, texts
from engine.tabular.text import MAX_LINE, Plain, too_many_rows, write_plain

_MAX_RECORD = 500  # lines of one row
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
        join_clock(con, reading)
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
    join_clock(con, reading)
    return total


def join_clock(con: duckdb.DuckDBPyConnection, reading: Reading) -> None:
    """Puts the time of day behind the day in the table `rows`, where the file has a column of each. A row with one of them alone
    has no time then."""
    cell_of = {column.role: f"c{index}" for index, column in enumerate(reading.columns)}
    if "clock" in cell_of:
        con.execute(f"UPDATE rows SET {cell_of['time']} = {cell_of['time']} || ' ' || {cell_of['clock']}")


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
        total, header_end = json_rows(con, reading, kind, findings, limits, keys), 0
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


def with_keys(con: duckdb.DuckDBPyConnection, path: Path, reading: Reading, limits: Limits) -> Reading:
    """The reading of JSON lines with every key of the plain text `path` as a column. Raises Refused."""
    con.execute(f"CREATE TABLE lines AS {lines_of(path)}")
    from_python(con)
    names = json_names(con, limits)
    con.execute("DROP TABLE lines")
    if not names:
        raise Refused("No line of the file is a JSON object with keys.")
    if len(names) > limits.columns:
        raise Refused(f"The objects have more than {limits.columns:,} different keys; so many are not taken here.")
    return reading.model_copy(update={"columns": texts(names)})
