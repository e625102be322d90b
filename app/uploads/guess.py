"""What a file seems to be: looked at in part, said in whole. Whatever the visitor has fixed is taken as it is."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import duckdb

from app.uploads import OnProgress
from app.uploads.limits import UploadLimits
from engine.errors import Refused
from engine.tabular import dialect, times
from engine.tabular.columns import NAMES, Values, called, recognise
from engine.tabular.database import BLANKS, connect
from engine.tabular.findings import Findings
from engine.tabular.json_rows import write_json_lines
from engine.tabular.parquet import describe, read_parquet
from engine.tabular.problems import MAX_DEPTH
from engine.tabular.reading import (
    DELIMITERS,
    ENCODINGS,
    PATTERN,
    QUOTES,
    ROLES,
    TIMES,
    FileKind,
    Guess,
    Reading,
    ReadingChoice,
    Role,
    UploadColumn,
    texts,
)
from engine.tabular.roles import guess_roles, seems
from engine.tabular.rows import join_clock, read_text, with_keys
from engine.tabular.text import Plain, blocks, content_kind, guess_encoding, read_as, scan, write_plain

LOOKED_AT = 2_000
"""Lines that delimiter, header, columns and times are told by. The encoding is told by all of them."""
_HEAD = 5
_WIDTH = 200


def guess(
    work: Path, path: Path, kind: FileKind, fixed: Mapping[str, str], limits: UploadLimits, say: OnProgress
) -> Guess:
    """fixed: about → value, as in ReadingChoice, and "role:NAME" → role; what is not among them is guessed."""
    say(0.05, "Looking at the file")
    content = content_kind(path)
    if content == "parquet":
        return _parquet(work, path, kind, fixed, limits)
    return _text(work, path, kind, fixed, limits, gzipped=content == "gzip", say=say)


def _parquet(work: Path, path: Path, kind: FileKind, fixed: Mapping[str, str], limits: UploadLimits) -> Guess:
    rows, names = describe(path, limits)
    reading = Reading(format="parquet", columns=texts(names))
    with connect(work, limits, readable=[path]) as con:
        _, strange = read_parquet(con, path, reading, limits, first=LOOKED_AT)
        start = Guess(what=kind, reading=reading, rows=rows, size=path.stat().st_size)

        def all_rows(whole: duckdb.DuckDBPyConnection, narrow: Reading) -> None:
            read_parquet(whole, path, narrow, limits)

        guess = _with_roles(con, start, fixed, _whole(work, limits, all_rows, readable=[path]), named=True)
        return guess.model_copy(update={"reading": _without(guess.reading, strange)})


def _without(reading: Reading, names: Sequence[str]) -> Reading:
    """The reading without columns that hold no text; the check warns of them."""
    for name in names:
        reading = reading.with_role(name, "skip")
    return reading


def _text(
    work: Path,
    path: Path,
    kind: FileKind,
    fixed: Mapping[str, str],
    limits: UploadLimits,
    *,
    gzipped: bool,
    say: OnProgress,
) -> Guess:
    scanned = scan(blocks(path, gzipped, limits))
    encoding = _chosen(fixed, "encoding", ENCODINGS) or guess_encoding(scanned)
    say(0.4, "Telling its columns")
    limits = limits.model_copy(update={"rows": max(limits.rows, LOOKED_AT)})  # the check counts all of them
    plain = write_plain(path, work / "head.txt", encoding.value, limits, gzipped=gzipped, lines=LOOKED_AT)
    lines = plain.path.read_text("utf-8").split("\n")[:-1]
    filled = [line for line in lines if line.strip(BLANKS)]
    if not filled:
        raise Refused("The file is empty: there is nothing but blanks in it.")
    foreign = {}
    if (
        (encoding.sure != "certain" or "encoding" in fixed)
        and scanned.sample
        and not encoding.value.startswith("utf-16")
    ):
        offered = list(dict.fromkeys((encoding.value, *encoding.others)))
        foreign = read_as(bytes(scanned.sample), offered)
    start = Guess(
        what=kind,
        reading=Reading(
            format="delimited", gzip=gzipped, encoding=encoding.value, encoding_guessed=encoding.sure != "certain"
        ),
        choices=(encoding,),
        rows=scanned.lines,
        size=scanned.size,
        head=tuple(line[:_WIDTH] for line in filled[:_HEAD]),
        foreign=foreign,
    )
    form = "json" if "delimiter" not in fixed and dialect.is_json_document(filled) else None
    if form is None and (fixed.get("format") == "jsonl" or ("format" not in fixed and dialect.is_json_lines(filled))):
        form = "jsonl"
    rows, codec = path, encoding.value
    if form == "json":
        rows, codec = work / "document.jsonl", "utf-8"
        write_json_lines(path, rows, encoding.value, limits, kind, gzipped=gzipped)
        gzipped = False
        plain = write_plain(rows, plain.path, codec, limits, gzipped=gzipped, lines=LOOKED_AT)

    def all_rows(con: duckdb.DuckDBPyConnection, narrow: Reading) -> None:
        whole = write_plain(rows, work / "whole.txt", codec, limits, gzipped=gzipped, quote=narrow.quote)
        read_text(con, whole, narrow, kind, Findings(con), limits)

    whole = _whole(work, limits, all_rows)
    if form is not None:
        with connect(work, limits) as con:
            reading = with_keys(con, plain.path, start.reading.model_copy(update={"format": form}), limits)
            _load(con, plain, reading, kind, limits)
            return _with_roles(con, start.model_copy(update={"reading": reading}), fixed, whole, named=True)
    reading, more, stop = _delimited(filled, kind, start.reading, fixed, limits)
    start = start.model_copy(update={"reading": reading, "choices": (encoding, *more), "stop": stop})
    if stop:
        return start
    with connect(work, limits) as con:
        try:
            _load(con, plain, reading, kind, limits)
        except Refused as refused:  # other quotes may help, and are offered
            return start.model_copy(update={"stop": str(refused)})
        return _with_roles(con, start, fixed, whole, named=reading.header)


Settle = Callable[[Reading, ReadingChoice], ReadingChoice]
"""Takes a reading and an ambiguous format of its times; decides it by all rows of the file, where they do."""


def _whole(
    work: Path,
    limits: UploadLimits,
    load: Callable[[duckdb.DuckDBPyConnection, Reading], None],
    *,
    readable: Sequence[Path] = (),
) -> Settle:
    """load: makes the table `rows` of all rows of the file."""

    def settle(reading: Reading, choice: ReadingChoice) -> ReadingChoice:
        narrow = tuple(
            c if c.role in ("time", "clock") else c.model_copy(update={"role": "skip"}) for c in reading.columns
        )
        index = next(index for index, column in enumerate(narrow) if column.role == "time")
        with connect(work, limits, readable=readable) as con:
            try:
                load(con, reading.model_copy(update={"columns": narrow}))
            except Refused:  # the check will say why
                return choice
            join_clock(con, reading)
            return times.settle(con, choice, f"c{index}")

    return settle


def _load(con: duckdb.DuckDBPyConnection, plain: Plain, reading: Reading, kind: FileKind, limits: UploadLimits) -> None:
    """The table `rows` of the lines that are looked at."""
    if reading.format == "delimited":
        plain.quoted = reading.quote != "" and reading.quote in plain.path.read_text("utf-8")
    read_text(con, plain, reading, kind, Findings(con), limits)


def _delimited(
    lines: Sequence[str], kind: FileKind, reading: Reading, fixed: Mapping[str, str], limits: UploadLimits
) -> tuple[Reading, list[ReadingChoice], str]:
    """(reading with columns, what was guessed, why there are no columns)"""
    delimiter = _chosen(fixed, "delimiter", None) or dialect.delimiter(lines)
    quote, header = _chosen(fixed, "quote", QUOTES), _chosen(fixed, "header", {"yes": "", "no": ""})
    reading, choices = dialect.delimited(lines, reading, limits, delimiter, quote, header)
    if not reading.columns:
        return reading, choices, "The first row cannot be read: its quotes are not in order. Choose others."
    if len(reading.columns) < 2 and _is_json(lines):
        return reading, choices, "As JSON, a file has an object on each line, or it is a list of objects."
    ids_alone = kind == "catalogue" and reading.header and called(NAMES["item_id"], [reading.columns[0].name])
    if len(reading.columns) < 2 and not ids_alone:
        better = next((sign for sign in DELIMITERS if sign not in (delimiter.value, " ") and sign in lines[0]), None)
        ask = f" Is it separated by {DELIMITERS[better]}?" if better else ""
        return reading, choices, f"Couldn't find columns: every line is one field.{ask} Choose the delimiter."
    return reading, choices, ""


def _is_json(lines: Sequence[str]) -> bool:
    """Whether all of it is one value of JSON, such as [] or 3."""
    try:
        return not isinstance(json.loads("\n".join(lines)), str)  # a field in quotes is one, too
    except (ValueError, RecursionError):
        return False


_EMPTY = (
    f"No line holds a JSON object that can be read. Put one object on each line, nested at most {MAX_DEPTH} levels deep: "
    "texts, numbers, lists of texts."
)
_BARE, _NOTHING = "There is no row below the header.", "There is no row that can be read."
_NO_ORDER = (
    "No row below the header can be read: either a quote is never closed, or there are more or fewer fields than in the header. "
    "Choose another delimiter or other quotes, or mend these rows and give the file again."
)


def _with_roles(
    con: duckdb.DuckDBPyConnection, start: Guess, fixed: Mapping[str, str], settle: Settle, *, named: bool
) -> Guess:
    """The guess, with what each column is; the table `rows` holds what is looked at."""
    reading, kind = start.reading, start.what
    cells = ", ".join(f"c{index}" for index in range(len(reading.columns)))
    rows = con.execute(f"SELECT {cells} FROM rows ORDER BY line LIMIT {LOOKED_AT}").fetchall()
    columns = [Values(column.name, [row[index] or "" for row in rows]) for index, column in enumerate(reading.columns)]
    below = (_NO_ORDER if len(start.head) > 1 else _BARE) if reading.header else _NOTHING
    stop = "" if rows else _EMPTY if reading.format in ("jsonl", "json") else below
    layout_known = None if named or reading.format != "delimited" else recognise(kind, reading.delimiter, columns)
    if layout_known is not None:
        made = tuple(
            UploadColumn(name=column.name, role=role, called=layout_known.called.get(index, ""))
            for index, (column, role) in enumerate(zip(columns, layout_known.roles, strict=True))
        )
        why = f"The columns have the shape of {layout_known.title}."
        choice = ReadingChoice(about="columns", value="", sure="likely", why=why)
        reading = reading.model_copy(update={"columns": made, "flags": layout_known.flags})
    else:
        made, choice = guess_roles(kind, columns, named=named, is_time=partial(times.is_time, con))
        reading = reading.model_copy(update={"columns": made})
    chosen = {name: role for name in (c.name for c in columns) if (role := fixed.get(f"role:{name}")) in ROLES[kind]}
    for name, role in chosen.items():
        reading = reading.with_role(name, role)
    if chosen:
        choice = ReadingChoice(about="columns", value="", sure="certain", why="You chose them.")
    choices = [*start.choices, choice]
    if kind == "log":
        reading, moment = _time(con, reading, columns, fixed, settle)
        choices += [moment] if moment is not None else []
    seen = tuple(column.seen() for column in columns)
    return start.model_copy(
        update={
            "reading": reading,
            "choices": tuple(choices),
            "seen": seen,
            "stop": stop,
            "seems": seems(kind, columns, partial(times.is_time, con)) if not fixed else None,
        }
    )


def _time(
    con: duckdb.DuckDBPyConnection,
    reading: Reading,
    columns: Sequence[Values],
    fixed: Mapping[str, str],
    settle: Settle,
) -> tuple[Reading, ReadingChoice | None]:
    column = reading.column("time")
    if column is None:
        return reading, None
    clock = reading.column("clock")
    values_of = {values.name: values.values for values in columns}
    moments = values_of[column.name]
    if clock is not None:
        pairs = zip(moments, values_of[clock.name], strict=True)
        moments = [f"{day} {hour}" if day and hour else "" for day, hour in pairs]
    choice = _chosen(fixed, "time", None) or times.guess(con, moments)
    if choice is not None and not (choice.value in TIMES or PATTERN.fullmatch(choice.value)):
        raise Refused("This is no format of times. Write a pattern such as %d.%m.%Y %H:%M.")
    if choice is None:
        role: Role = "skip"
        named = (
            f"The column “{column.name[:60]}” holds"
            if clock is None
            else (f"The columns “{column.name[:60]}” and “{clock.name[:60]}” together hold")
        )
        why = f"{named} no times that can be read, so the order of the rows is the order of events."
        choice = ReadingChoice(about="time", value="", sure="unsure", why=why)
        for unread in filter(None, (column, clock)):
            reading = reading.with_role(unread.name, role)
        return reading, choice
    if times.is_ambiguous(choice):
        choice = settle(reading, choice)
    return reading.model_copy(update={"time": choice.value}), choice


def _chosen(fixed: Mapping[str, str], about: str, allowed: Mapping[str, str] | None) -> ReadingChoice | None:
    """What the visitor has chosen, if it is one of what may be chosen."""
    value = fixed.get(about)
    if (
        value is None
        or (allowed is not None and value not in allowed)
        or (about == "delimiter" and not 0 < len(value) <= 4)
    ):
        return None
    return ReadingChoice(about=about, value=value, sure="certain", why="You chose it.")  # type: ignore[arg-type]
