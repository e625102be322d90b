"""``table``: any log as CSV, TSV, JSON lines or Parquet, and any item file in one of these."""

from pathlib import Path

from engine.data.log import LogFiles
from engine.data.options import ImportOptions
from engine.data.sources.base import Opened, Source, Workshop, first_lines, packed
from engine.errors import SeqscopeError, UsageError
from engine.tabular import dialect
from engine.tabular.columns import NAMES, called
from engine.tabular.dialect import Splitter, parse_object, records
from engine.tabular.parquet import describe
from engine.tabular.reading import UNLIMITED, Reading, Role, UploadColumn
from engine.tabular.text import content_kind, named

DELIMITERS = (",", "\t", ";", "|", "^", "␁")
_OPTIONS: dict[Role, str] = {
    "user": "user", "item": "item", "time": "time", "clock": "clock", "weight": "rating", "quantity": "quantity",
}  # fmt: skip
"""Role → what `ImportOptions.columns` calls it."""


def table_reading(path: Path, options: ImportOptions, workshop: Workshop) -> Reading:
    """How `path` holds rows, and the names of its columns (numbers from 1 where it has no header), none of them read."""
    with named(path):
        if content_kind(path) == "parquet":
            return Reading(format="parquet", columns=_unread(describe(path, UNLIMITED)[1]))
    lines = first_lines(path, options.encoding)
    if not lines[0].lstrip().startswith("{"):
        return delimited_reading(path, options, workshop, header=options.header, delimiter=options.delimiter)
    # Optional keys may be missing from the first line.
    names = list(dict.fromkeys(key for line in lines[:100] for key in parse_object(line) or ()))
    if not names:
        raise SeqscopeError(f"{path}: no line of it is a JSON object.")
    return Reading(format="jsonl", gzip=packed(path), encoding=options.encoding or "utf-8", columns=_unread(names))


def delimited_reading(
    path: Path, options: ImportOptions, workshop: Workshop, *, header: bool = True, delimiter: str | None = None
) -> Reading:
    """How a delimited file is read, all of its columns as texts. delimiter: None: the likeliest."""
    lines = first_lines(path, options.encoding)
    sign = delimiter or find_delimiter(path, lines, workshop)
    rows = records(lines, Splitter(sign, '"'))
    if not rows:
        raise SeqscopeError(f"{path}: the first row cannot be read: its quotes are not in order.")
    names = [name.strip() for name in rows[0]] if header else [str(number + 1) for number in range(len(rows[0]))]
    if len(names) == 1:
        raise SeqscopeError(_one_column(path, sign, rows[0][0]))
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SeqscopeError(f"{path} line 1: the header has {', '.join(map(repr, twice))} more than once. Rename one.")
    return Reading(
        format="delimited", gzip=packed(path), encoding=options.encoding or "utf-8", delimiter=sign, header=header,
        columns=tuple(UploadColumn(name=name, role="text") for name in names),
    )  # fmt: skip


def _unread(names: list[str]) -> tuple[UploadColumn, ...]:
    return tuple(UploadColumn(name=name, role="skip") for name in names)


def find_delimiter(path: Path, lines: list[str], workshop: Workshop) -> str:
    """The delimiter that cuts most lines into equally many fields."""
    best = dialect.delimiter(lines, DELIMITERS).value
    if len(Splitter(best, '"').split(lines[0]) or lines) < 2:
        raise SeqscopeError(
            f"{path}: only one column was found; the first line is {lines[0].strip()[:80]!r}, without comma, tab, ;, |, ^ or "
            'Ctrl-A. Name the delimiter with --delimiter; for "user item" lines use --source user-item.'
        )
    if best != ",":
        workshop.say(f"{path.name}: fields are separated by {_name(best)}")
    return best


def choose_columns(path: Path, names: list[str], options: ImportOptions, workshop: Workshop) -> dict[Role, str | None]:
    """Which columns are user, item, time, rating and quantity: as told, else by their names."""
    given = {name: getattr(options.columns, name) for name in _OPTIONS.values()}
    chosen: dict[str, str | None] = {}
    guessed = []
    for role, name in given.items():
        if name == "-" and role in ("time", "clock", "rating", "quantity"):
            chosen[role] = None
        elif name is not None:
            if name not in names:
                raise UsageError(f"{path.name} has no column {name!r} for --{role}-column; it has {', '.join(names)}")
            chosen[role] = name
        else:
            unavailable = {*chosen.values(), *given.values()}
            candidates = [candidate for candidate in called(NAMES[role], names) if candidate not in unavailable]
            chosen[role] = candidates[0] if candidates and options.header else None
            if chosen[role]:
                guessed.append(f"{role} = {chosen[role]}")
    for role in ("user", "item"):
        if chosen[role] is None:
            raise UsageError(
                f"{path.name}: which column is the {role}? Name it with --{role}-column; there are {', '.join(names)}"
            )
    used = [name for name in chosen.values() if name]
    if len(set(used)) < len(used):
        raise UsageError(f"one column of {path.name} was named for two purposes: {', '.join(used)}")
    if guessed:
        workshop.say(f"{path.name}: columns guessed from their names: {', '.join(guessed)}")
    if chosen["time"] is None and given["time"] != "-":
        workshop.say(
            f"{path.name}: no time column, so the order of the rows is the order of events (--time-column names one)"
        )
    if chosen["clock"] is not None and chosen["time"] is None:
        raise UsageError("--clock-column needs the column of the days; name it with --time-column")
    if options.min_rating is not None and chosen["rating"] is None:
        raise UsageError(
            f"--min-rating needs a rating column; name it with --rating-column; there are {', '.join(names)}"
        )
    if options.drop_negative and chosen["quantity"] is None:
        raise UsageError(
            f"--drop-negative needs a quantity column; name it with --quantity-column; there are {', '.join(names)}"
        )
    return {role: chosen[name] for role, name in _OPTIONS.items()}


def _one_column(path: Path, delimiter: str, first: str) -> str:
    better = next((other for other in DELIMITERS if other in first), None)
    advice = (
        f"It looks separated by {_name(better)}: --delimiter {better!r}."
        if better
        else "Name another with --delimiter."
    )
    return f"{path}: only one column was found with the delimiter {_name(delimiter)}; the first line is {first[:80]!r}. {advice}"


def _name(delimiter: str) -> str:
    names = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "|", "^": "^", " ": "blanks", "␁": "Ctrl-A"}
    return names.get(delimiter, repr(delimiter))


def _open(options: ImportOptions, workshop: Workshop) -> Opened:
    first, *others = options.paths
    if first.is_dir():
        files = sorted(
            path
            for path in first.iterdir()
            if path.suffix in (".parquet", ".csv", ".tsv", ".jsonl", ".json", ".txt", ".gz")
        )
        raise SeqscopeError(
            f"{first} is a folder; table reads files. Name those of the log"
            + (f", such as {files[0]}." if files else ".")
        )
    readings = [table_reading(path, options, workshop) for path in options.paths]
    names = [[column.name for column in reading.columns] for reading in readings]
    chosen = choose_columns(first, names[0], options, workshop)
    for path, reading, present in zip(others, readings[1:], names[1:], strict=True):
        chosen = _shared(chosen, path, present, options, workshop)
        same = (reading.format, reading.delimiter) == (readings[0].format, readings[0].delimiter)
        if not same or not {name for name in chosen.values() if name} <= {*present}:
            raise SeqscopeError(f"{path} has other columns than {first}. Import them as one log only where they agree.")
    return Opened(LogFiles(options.paths, tuple(_with_roles(reading, chosen) for reading in readings)))


def _with_roles(reading: Reading, chosen: dict[Role, str | None]) -> Reading:
    roles = {name: role for role, name in chosen.items()}
    columns = (UploadColumn(name=column.name, role=roles.get(column.name, "skip")) for column in reading.columns)
    # Of a delimited file every column has its place; of the others those that are used are read.
    used = tuple(column for column in columns if reading.format == "delimited" or column.role != "skip")
    return reading.model_copy(update={"columns": used})


def _shared(
    chosen: dict[Role, str | None], path: Path, names: list[str], options: ImportOptions, workshop: Workshop
) -> dict[Role, str | None]:
    """The columns without the rating and the quantity where they were guessed, nothing asks for them and this file lacks them."""
    needed: dict[Role, bool] = {"weight": options.min_rating is not None, "quantity": options.drop_negative}
    for role, is_needed in needed.items():
        name = chosen[role]
        if name and name not in names and not is_needed and getattr(options.columns, _OPTIONS[role]) is None:
            workshop.say(
                f"{path.name} has no column {name}, so it is used of no file (--{_OPTIONS[role]}-column names another)"
            )
            chosen = {**chosen, role: None}
    return chosen


TABLE = Source("table", "Imported log", "A table of events, imported by its owner", "as its owner says", 0, _open)
