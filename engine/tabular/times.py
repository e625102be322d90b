"""Times in any of the usual forms: which form they have, and SQL for their unix seconds (UTC where no zone is named)."""

import functools
import re
import string
from collections import Counter
from collections.abc import Sequence

import duckdb

from engine.tabular.database import number, sql
from engine.tabular.problems import LATEST
from engine.tabular.reading import PATTERN, TIMES, UNITS, ReadingChoice, Sure

_SOON = 631_152_000  # 1990: numbers below are hardly times in seconds
_ISO = r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?( ?(Z|UTC|[+-]\d{2}(:?\d{2})?))?)?"
_DAYS = (
    "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y. %m. %d.", "%Y. %m. %d",
    "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y", "%d/%b/%Y", "%Y-%m-%d",
    "%Y년 %m월 %d일", "%Y年%m月%d日", "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%b-%y", "%Y%m%d",
)  # fmt: skip
_HOURS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p", ", %H:%M", ", %H:%M:%S", "T%H:%M:%S")
_OTHERS = (
    "%a %b %d %H:%M:%S %z %Y",
    "%d/%b/%Y:%H:%M:%S %z",
    "%Y%m%d%H%M%S",
    "%Y%m%dT%H%M%S",
    "%a, %d %b %Y %H:%M:%S %z",
    "%a, %d %b %Y %H:%M:%S GMT",
)
_FORMS = (*(f"{day}{hour}" for day in _DAYS for hour in _HOURS), *_OTHERS)
_LETTERS, _BETWEEN = frozenset(string.ascii_letters), frozenset(string.digits + string.whitespace)
_SWAPPED = {
    "%d/%m/%Y": "%m/%d/%Y", "%m/%d/%Y": "%d/%m/%Y", "%d-%m-%Y": "%m-%d-%Y", "%m-%d-%Y": "%d-%m-%Y",
    "%d/%m/%y": "%m/%d/%y", "%m/%d/%y": "%d/%m/%y",
}  # fmt: skip


MICRO = 1_000_000
"""Microseconds of a second."""


def seconds(column: str, form: str) -> str:
    """SQL: the unix second of the text `column`, NULL where it is none. form: a key of TIMES, or a pattern."""
    return f"floor({_epoch(column, form)})"


def fraction(column: str, form: str) -> str:
    """SQL: the microseconds beyond `seconds`, by which events within one second are ordered."""
    moment = _epoch(column, form)
    return f"round({MICRO} * ({moment} - floor({moment})))"


def _epoch(column: str, form: str) -> str:
    """SQL: unix seconds with their fraction, DOUBLE."""
    iso = f"regexp_full_match({column}, {sql(_ISO)})"
    # The expression is stricter than the cast, which knows words such as "today" but no blank before an offset, and needs one
    # before UTC.
    joined = f"regexp_replace(replace({column}, 'UTC', 'Z'), ' ([-+Z])', '\\1')"
    moment = f"CASE WHEN {iso} THEN epoch(coalesce(try_cast({column} AS TIMESTAMPTZ), try_cast({joined} AS TIMESTAMPTZ))) END"
    if form in UNITS:
        value = number(column)
        return f"CASE WHEN isfinite({value}) AND abs({value}) < 1e20 THEN {value} / {UNITS[form]} ELSE {moment} END"
    if form == "iso":
        return moment
    if not PATTERN.fullmatch(form):
        raise ValueError(f"not a pattern of times: {form!r}")
    return f"epoch(try_strptime({column}, {sql(form)}))"


def guess(con: duckdb.DuckDBPyConnection, values: Sequence[str]) -> ReadingChoice | None:
    """The form of these times; None where they are none."""
    filled = [value for value in values if value][:1_000]
    if not filled:
        return None
    con.execute("CREATE OR REPLACE TEMP TABLE moments AS SELECT unnest($1) AS value", [filled])
    share = _share(con, [f"isfinite({number('value')})"])[0]
    if share > 0.5:
        return _number(con)
    # `epoch` of one stands for all: it is read, and lies where times lie.
    shares = {"iso": _share(con, [_valid("iso")])[0]}
    if shares["iso"] < 0.98:
        forms = _promising(filled)
        shares |= dict(zip(forms, _share(con, [_valid(form) for form in forms]), strict=True)) if forms else {}
    best = max(shares, key=lambda form: shares[form])
    if shares[best] < 0.5:
        return None
    shown = int(100 * shares[best])  # 99.8% are not all
    why = f"It reads {'all' if shown == 100 else f'{shown}%'} of the times looked at."
    sure: Sure = "likely" if shares[best] > 0.9 else "unsure"
    if best == "iso" and shares[best] > 0.98:
        sure = "certain"
    others = tuple(form for form in shares if shares[form] > 0.5 and form != best)
    other = _other_way_round(best)
    if other:
        if shares.get(other, 0.0) >= shares[best]:
            sure, why = "unsure", f"{why} Day and month could also be the other way round: none of them is above 12."
            others = (other, *(form for form in others if form != other))
        elif sure == "likely":
            why += " Read the other way round, some months would be above 12."
    return ReadingChoice(about="time", value=best, sure=sure, why=why, others=others)


def _promising(values: Sequence[str]) -> list[str]:
    """The forms that may read half of the values, by the signs that these have: to have DuckDB try them all takes it half a
    second."""
    seen = Counter(_signs(value) for value in values)
    return [form for form in _FORMS if 2 * sum(seen[signs] for signs in seen if _may_read(form, *signs)) >= len(values)]


def _may_read(form: str, marks: frozenset[str], letters: bool, digits: int) -> bool:
    needed, named, zoned, numbers = _needs(form)
    fits = needed <= marks if zoned else needed == marks and named >= letters
    return fits and digits >= numbers


@functools.cache
def _needs(form: str) -> tuple[frozenset[str], bool, bool, int]:
    """Marks, whether letters may stand in it, whether a zone, and how many numbers."""
    parts = {*re.findall(r"%(.)", form)}
    marks, letters, _ = _signs(re.sub(r"%.", "", form))
    return marks, letters or not parts.isdisjoint("abBp"), "z" in parts, len(parts & {*"dmYyHIMSf"})


def _signs(value: str) -> tuple[frozenset[str], bool, int]:
    """What stands in a text but blanks, digits and letters; whether there are letters; how many digits there are, up to 14."""
    letters = not _LETTERS.isdisjoint(value)
    digits = sum(map(value.count, string.digits))
    return frozenset(value) - _LETTERS - _BETWEEN, letters, min(digits, 14)


def is_ambiguous(choice: ReadingChoice) -> bool:
    """Whether day and month could also be the other way round."""
    return choice.sure == "unsure" and _other_way_round(choice.value) in choice.others


def settle(con: duckdb.DuckDBPyConnection, choice: ReadingChoice, column: str, table: str = "rows") -> ReadingChoice:
    """An ambiguous choice, decided by all rows of a table, whose `column` has the times."""
    other = _other_way_round(choice.value)
    tests = ", ".join(f"count(*) FILTER ({_valid(form, column)})" for form in (choice.value, other))
    as_chosen, as_other = con.execute(f"SELECT {tests} FROM {table}").fetchall()[0]
    if as_chosen == as_other:
        return choice
    value, rest = (choice.value, other) if as_chosen > as_other else (other, choice.value)
    why = "It reads more of all times in the file: read the other way round, some months would be above 12."
    others = (rest, *(form for form in choice.others if form not in (value, rest)))
    return ReadingChoice(about="time", value=value, sure="likely", why=why, others=others)


def is_time(con: duckdb.DuckDBPyConnection, values: Sequence[str]) -> bool:
    """Whether a column without a name holds times, also where these rows leave open which number is the day."""
    choice = guess(con, values)
    return choice is not None and (choice.sure != "unsure" or is_ambiguous(choice))


def _other_way_round(form: str) -> str:
    """The pattern with day and month swapped; "" where they cannot be taken for each other."""
    day = next((day for day in _SWAPPED if form.startswith(day)), None)
    return "" if day is None else _SWAPPED[day] + form.removeprefix(day)


def _number(con: duckdb.DuckDBPyConnection) -> ReadingChoice | None:
    value = number("value")
    for form, digits, why in (
        ("%Y%m%d", 6, "Eight digits each that are dates, such as 20240331."),
        ("%Y%m%d%H%M%S", 12, "Fourteen digits each that are moments, such as 20240331180500."),
    ):
        if _share(con, [f"regexp_full_match(value, '(19|20)\\d{{{digits}}}') AND {_valid(form)}"])[0] > 0.95:
            return ReadingChoice(about="time", value=form, sure="likely", why=why, others=tuple(UNITS))
    # Each unit has the range above that of the unit before it; no two overlap.
    ranges = {
        unit: f"{value} >= {LATEST * scale // 1000 if scale > 1 else 0} AND {value} < {LATEST * scale}"
        for unit, scale in UNITS.items()
    }
    shares = dict(zip(ranges, _share(con, list(ranges.values())), strict=True))
    unit = max(shares, key=lambda unit: shares[unit])  # the first of equals: seconds
    if not shares[unit]:
        return None
    likely = _share(con, [f"{value} >= {_SOON * UNITS[unit]}"])[0]
    others = tuple(other for other in UNITS if other != unit)
    if likely < 0.5:
        why = "Numbers, but as unix times they would be before 1990. They may only count the events."
        return ReadingChoice(about="time", value=unit, sure="unsure", why=why, others=others)
    sure: Sure = "certain" if shares[unit] > 0.98 else "likely"
    why = f"As {TIMES[unit]} they are between 1990 and 2099, in another unit they are not."
    return ReadingChoice(about="time", value=unit, sure=sure, why=why, others=others)


def _valid(form: str, column: str = "value") -> str:
    """SQL: a moment from 1900 on that is not far in the future. Before 1970 is a finding, not another format."""
    moment = seconds(column, form)
    return f"({moment} >= -2208988800 AND {moment} < {LATEST})"


def _share(con: duckdb.DuckDBPyConnection, conditions: list[str]) -> list[float]:
    averages = ", ".join(f"avg(CASE WHEN {condition} THEN 1.0 ELSE 0.0 END)" for condition in conditions)
    return [float(value or 0) for value in con.execute(f"SELECT {averages} FROM moments").fetchall()[0]]
