"""What makes a row of a log bad: one table of rules, as SQL over the columns of the import's database.

A rule sees user_id, item_id, time, rating, quantity (text as it was read, blanks trimmed), misshapen and excerpt (see
`rows_query`), unmapped (an item number that the item map does not know), seconds (the time as a number), score and amount (rating
and quantity as numbers).
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.data.rows import Mapping, sql

LATEST = 4_102_444_800
"""2100-01-01 in unix seconds: a later time is an error, or in another unit."""
TIME_FORMATS = tuple(
    f"{day}{hour}"
    for day in ("%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d")
    for hour in ("", " %H:%M", " %H:%M:%S")
)
"""Patterns of times that are tried where most are neither numbers nor ISO dates."""
MAX_ID = 200
"""Characters of a user or item id."""
CONTROLS = "[\\x00-\\x1f\\x7f]"
"""No id has them; a fingerprint could not tell such ids apart, and no one could read them."""


@dataclass(frozen=True)
class Rule:
    column: str
    """The column of the file that is to blame, as the report names it."""
    value: str
    """SQL: the bad value."""
    when: str
    """SQL: the row is bad."""
    reason: str


def log_rules(mapping: Mapping, *, mapped: bool, rated: bool, counted: bool, guessed_unit: bool) -> list[Rule]:
    """The rules for a log, in the order in which they are tried: a row is reported for the first that holds.

    mapped: there is an item map; rated: ratings decide which events stay; counted: quantities do; guessed_unit: times are in ms,
    us or ns, by guess.
    """

    def named(role: str) -> str:
        column = getattr(mapping, role)
        return column if isinstance(column, str) else role

    rules = _id_rules("user", named("user"))
    if mapped:
        rules.append(Rule(named("item"), "unmapped", "unmapped <> ''", "item not in the item map"))
    rules += _id_rules("item", named("item"))
    if mapping.time is not None:
        tests = [
            ("coalesce(time, '') = ''", "missing time"),
            ("seconds IS NULL", "time is neither a number nor an ISO date"),
            ("seconds < 0", "time before 1970"),
            (f"seconds >= {LATEST}", "time after 2099"),
        ]
        if guessed_unit:  # seconds in a column of milliseconds look like January 1970
            tests.append((f"seconds < {LATEST // 1000}", "time in another unit than most"))
        rules += [Rule(named("time"), "time", when, reason) for when, reason in tests]
    if rated:
        tests = [("coalesce(rating, '') = ''", "missing rating"), ("score IS NULL", "rating is not a number")]
        rules += [Rule(named("rating"), "rating", when, reason) for when, reason in tests]
    if counted:
        unreadable = "amount IS NULL AND coalesce(quantity, '') <> ''"  # none given is no cancellation
        rules.append(Rule(named("quantity"), "quantity", unreadable, "quantity is not a number"))
    return rules


def fault(rules: list[Rule]) -> str:
    """SQL: a struct (column, value, reason) for a bad row, NULL for a good one."""
    cases = "WHEN misshapen IS NOT NULL THEN {'column': 'row', 'value': excerpt, 'reason': misshapen} "
    for rule in rules:
        parts = {"column": sql(rule.column), "value": f"coalesce({rule.value}, '')", "reason": sql(rule.reason)}
        cases += f"WHEN {rule.when} THEN {{{', '.join(f'{name!r}: {part}' for name, part in parts.items())}}} "
    return f"CASE {cases}END"


def seconds(scale: int) -> str:
    """SQL: the unix second of `time`, NULL where it is none; numbers count `scale` to the second."""
    iso = r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?( ?(Z|UTC|[+-]\d{2}(:?\d{2})?))?)?"
    number = "try_cast(time AS DOUBLE)"
    return (
        f"CASE WHEN isfinite({number}) AND abs({number}) < 1e20 THEN floor({number} / {scale}) "
        # The expression is stricter than the cast, which knows words such as "today".
        f"WHEN regexp_full_match(time, '{iso}') THEN floor(epoch(try_cast(time AS TIMESTAMPTZ))) END"
    )


def written(form: str) -> str:
    """SQL: the unix second of `time` as the pattern `form` reads it, NULL where it does not."""
    return f"floor(epoch(try_strptime(time, {sql(form)})))"


def _id_rules(role: str, column: str) -> list[Rule]:
    value = f"{role}_id"
    return [
        Rule(column, value, f"coalesce({value}, '') = ''", f"missing {role}"),
        Rule(column, value, f"length({value}) > {MAX_ID}", f"{role} id longer than {MAX_ID} characters"),
        Rule(column, value, f"regexp_matches({value}, '{CONTROLS}')", f"control character in the {role} id"),
    ]
