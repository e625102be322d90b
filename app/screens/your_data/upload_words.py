"""An upload in words and tables: how it is read, what its columns are, what was found. Functions of what app.uploads says."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import pandas as pd

from app.text import amount, clean, listed
from engine.runtime import repeats
from engine.tabular.columns import NAMES
from engine.tabular.columns import called as called_alike
from engine.tabular.findings import DROPPED, EACH, CheckResult, HeldOut
from engine.tabular.problems import PROBLEMS, Kind
from engine.tabular.reading import (
    DELIMITERS,
    ENCODINGS,
    QUOTES,
    ROLE_WORDS,
    TIMES,
    Guess,
    Reading,
    ReadingChoice,
    Seen,
    UploadColumn,
)
from engine.writing import count

SURE = {"certain": ("confirmed", "green"), "likely": ("likely", "blue"), "unsure": ("check this", "orange")}
"""How sure → (words, colour of a badge)."""
ABOUT = {
    "encoding": "Encoding", "delimiter": "Delimiter", "quote": "Quotes", "header": "First row", "columns": "Columns",
    "time": "Times",
}  # fmt: skip
_CALLED: dict[str, Mapping[str, str]] = {
    "encoding": ENCODINGS, "delimiter": DELIMITERS, "quote": QUOTES, "time": TIMES,
    "header": {"yes": "names the columns", "no": "is data"},
}  # fmt: skip
"""Of what can be chosen: value → what people call it."""
_PATTERNS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%Y%m%d")
_FORMATS = {"delimited": "text in columns", "jsonl": "JSON lines", "json": "JSON", "parquet": "Parquet"}


def file_words(guess: Guess) -> str:
    """JSON lines, gzip · 1,682 lines · 236 kB"""
    kind = _FORMATS[guess.reading.format] + (", packed with gzip" if guess.reading.gzip else "")
    rows = count(guess.rows, "row" if guess.reading.format == "parquet" else "line")
    return f"{_capital(kind)} · {rows} · {amount(guess.size)}"


def called(about: str, value: str) -> str:
    """What people call a value that may be chosen; not escaped."""
    if about == "time" and value == "":
        return "none"
    return _CALLED.get(about, {}).get(value) or (f"“{clean(value, 40)}”" if about != "time" else _written(value))


def _written(pattern: str) -> str:
    """12/09/2024 16:30 = 12 September 2024: a pattern by a day that reads differently in every order."""
    day = datetime(2024, 9, 12, 16, 30, tzinfo=UTC)
    try:
        example = day.strftime(pattern)
    except ValueError:
        example = ""
    return clean(f"{example} = 12 September 2024" if "%" in pattern and example else pattern, 80)


def options(choice: ReadingChoice) -> list[str]:
    """What may be chosen instead, the likeliest first; the value itself comes first of all."""
    usual = [*_CALLED.get(choice.about, ()), *(_PATTERNS if choice.about == "time" else ())]
    return list(dict.fromkeys([choice.value, *choice.others, *usual]))


def summary(guess: Guess) -> str:
    """All that was guessed about the file in one line; not escaped."""
    parts = []
    for choice in guess.choices:
        if choice.about != "columns":
            words = f"{ABOUT[choice.about].lower()}: {called(choice.about, choice.value)}"
            parts.append(words if choice.sure == "certain" else f"{words} ({SURE[choice.sure][0]})")
    return _capital(" · ".join(parts))


def by_values(guess: Guess, reading: Reading) -> str:
    """Which columns have a role that not their names say but their values, and which one, in a sentence; "" where none has. Not
    escaped. reading: what the visitor made of the guess; a role that went to another column was not guessed."""
    parts = [
        f"“{clean(column.name, 40)}” is the {ROLE_WORDS[column.role]}"
        for column in guess.reading.columns
        if column.role in NAMES
        and not called_alike(NAMES[column.role], [column.name])
        and any((other.name, other.role) == (column.name, column.role) for other in reading.columns)
    ]
    return f"Guessed from values: {listed(parts)}. Please check." if parts else ""


def foreign_table(guess: Guess) -> pd.DataFrame:
    """The lines that the encoding decides on, as each one reads them."""
    rows = [
        {"Encoding": ENCODINGS[name], **{f"Example {place}": clean(line, 120) for place, line in enumerate(lines, 1)}}
        for name, lines in guess.foreign.items()
    ]
    return pd.DataFrame(rows)


def columns_table(reading: Reading, seen: Sequence[Seen]) -> pd.DataFrame:
    """Every column with three of its values."""
    by_name = {entry.name: entry for entry in seen}
    return pd.DataFrame(
        [
            {
                "Column": clean(column.name, 60),
                "Values": " · ".join(clean(value, 50) for value in by_name[column.name].samples) or "none",
                "Filled": by_name[column.name].filled,
                "Used as": used_as(column, reading),
            }
            for column in reading.columns
            if column.name in by_name
        ]
    )


def used_as(column: UploadColumn, reading: Reading) -> str:
    words = ROLE_WORDS[column.role]
    name = clean(column.called, 40)
    if column.role == "flag":
        return f"“{name or clean(column.name, 40)}” in {clean(reading.flags, 40)}"
    return f"{words} “{name}”" if name and column.role in ("text", "list") else words


def column_words(name: str, seen: Mapping[str, Seen]) -> str:
    """A column and three of its values, for a list to choose from; not escaped."""
    samples = ", ".join(clean(value, 24) for value in seen[name].samples) if name in seen else ""
    return f"{clean(name, 40)} — {samples}" if samples else clean(name, 40)


# --- what was found


def usable_words(checked: CheckResult) -> str:
    facts = [count(checked.items, "item")]
    if checked.events:
        facts += [count(checked.events, "event"), count(checked.users, "user")]
    return listed(facts)


def problem_lines(checked: CheckResult, kind: Kind, dropped: bool = False) -> list[tuple[str, str]]:
    """For each problem of this kind: (1,204 × row with too few fields, in the catalogue; what to do about it). Not escaped.
    dropped: True for those alone of which the rows are left out though nothing is wrong with them, False for the others."""
    lines = []
    for entry in checked.counts:
        if entry.kind == kind and (entry.problem in DROPPED) == dropped:
            problem = PROBLEMS[entry.problem]
            advice = " ".join(part for part in (clean(entry.note, 300), problem.fix) if part)
            lines.append((f"{entry.number:,} × {problem.words}, in the {entry.file}", advice))
    return lines


def stops(checked: CheckResult) -> list[str]:
    """Why nothing can be used, a few sentences each; not escaped."""
    reasons = []
    for entry in checked.counts:
        if entry.kind == "stop":
            problem = PROBLEMS[entry.problem]
            parts = [f"{_capital(entry.file)}: {problem.words}.", clean(entry.note, 300), problem.fix]
            reasons.append(" ".join(part for part in parts if part))
    return reasons


def findings_table(checked: CheckResult) -> pd.DataFrame:
    """The first findings; all of them are in the files."""
    return pd.DataFrame(
        [
            {
                "File": entry.file,
                "Line": entry.line,
                "Column": clean(entry.column, 40),
                "Value": clean(entry.value, 100),
                "Problem": _capital(PROBLEMS[entry.problem].words),
                "What to do": PROBLEMS[entry.problem].fix,
                "": {"stop": "stops", "bad": "bad row", "warning": "warning"}[entry.kind],
            }
            for entry in checked.first
        ],
        columns=["File", "Line", "Column", "Value", "Problem", "What to do", ""],
    ).astype({"Line": "Int64"})


def listed_words(checked: CheckResult) -> str:
    """How many findings the files have; "" where that is all."""
    if checked.listed == checked.findings:
        return ""
    return f"The files have the first {EACH:,} of each problem, and say how many more there are."


def left_out_words(checked: CheckResult) -> str:
    """Exactly how many rows of which kind are left out; "" where none is."""
    total = sum(entry.rows for entry in checked.left_out)
    if not total:
        return ""
    parts = [f"{entry.rows:,} × {PROBLEMS[entry.problem].words} ({entry.file})" for entry in checked.left_out]
    verb = "is" if total == 1 else "are"
    return f"{count(total, 'row')} {verb} left out: {listed(parts)}."


def kept_words(checked: CheckResult) -> list[str]:
    """What of each file can be used."""
    return [
        f"{_capital(kind)}: {kept:,} of {count(checked.read[kind], 'row')} can be used."
        for kind, kept in checked.kept.items()
    ]


def held_out_words(held_out: HeldOut, reading: Reading) -> list[str]:
    """How many held-out items tie in time, repeat or are cancellations, then what that means; not escaped."""
    return repeats.about_held_out(held_out.counts, held_out.cases, {"ties": reading.ties})


class Offer(NamedTuple):
    """What may be done about what is special of held-out items: a field of a reading, and its value with and without."""

    field: str
    label: str
    help: str
    chosen: bool
    on: str | bool
    off: str | bool


def offers(held_out: HeldOut, reading: Reading) -> list[Offer]:
    """Those that would change something, or do."""
    ties, negative = reading.ties == "shuffle", reading.drop_negative
    possible = (
        (held_out.counts.get("ties"), Offer("ties", "Shuffle ties", "Events of one user at one time in random order", ties,
                                         "shuffle", "file")),
        (held_out.counts.get("negative"), Offer("drop_negative", "Drop negative quantities", "Leave cancellations out", negative,
                                             True, False)),
        (held_out.measured["repeated_events"], Offer("repeats", "First occurrence only", "Leave out events with an item that the "
                                                  "user had before. Else repeats count, and the history may be recommended",
                                                  held_out.repeats == "first", "first", "count")),
    )  # fmt: skip
    return [offer for there, offer in possible if there or (offer.chosen and offer.field != "repeats")]


def minimum_ratings(checked: CheckResult, reading: Reading) -> list[float | None]:
    """What may be chosen as the lowest rating that counts; empty where the log has no low ones."""
    low = any(entry.problem == "rating_low" for entry in checked.counts)
    if not checked.ratings or (not low and reading.min_rating is None):
        return []
    chosen = () if reading.min_rating is None else (reading.min_rating,)
    return [None, *sorted({*checked.ratings[1:], *chosen})]


def log_stops_alone(checked: CheckResult) -> bool:
    """Whether the catalogue could be used without the log."""
    stopping = {entry.file for entry in checked.counts if entry.kind == "stop"}
    return stopping == {"log"} and bool(checked.kept.get("catalogue"))


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
