"""Everything that can be wrong with a catalogue or a log: how bad it is, what it is called, what to do about it.

stop      nothing can be used until the file is mended, or read in another way
bad       the row cannot be used: mend it, or go on without it
warning   the row is used; what is changed about it, is said
"""

from typing import Literal, NamedTuple

from engine.tabular.database import number

Kind = Literal["stop", "bad", "warning"]

MAX_ID = 200
"""Characters of an id."""
CONTROLS = r"[\x00-\x1f\x7f␀␁]"
"""No id has them, as nobody could read them; NUL and SOH come as their pictures (engine/tabular/text.py)."""
LATEST = 4_102_444_800
"""2100-01-01 in unix seconds: a later time is an error, or in another unit."""
MAX_TITLE = 300
"""Characters of a title that are kept."""
MAX_DEPTH = 16
"""Levels of JSON within a row."""
FEW = 3
"""Events that a user must have to be asked for one: the last tests, the one before validates, and something must go before."""


class Problem(NamedTuple):
    kind: Kind
    words: str
    """Completes "1,204 × …"; no full stop."""
    fix: str
    """A sentence or two."""


_ROUNDED = "Ids that differ behind these digits count as one. Give the column the format of text before it is exported."
_TWINS = "They count as two. Write all ids in one Unicode form, such as NFC: é as one character or as e and an accent."

PROBLEMS: dict[str, Problem] = {
    # --- the row as such
    "few_fields": Problem(
        "bad",
        "row with too few fields",
        "Fill in what is missing, empty fields included. If a text broke the line, put it in quotes.",
    ),
    "many_fields": Problem(
        "bad",
        "row with too many fields",
        "Put texts that contain the delimiter in quotes, or take out what is too much.",
    ),
    "open_quote": Problem(
        "bad", "quote that is never closed", 'Close it, or read the file without quotes if " is part of the texts.'
    ),
    "after_quote": Problem(
        "bad",
        "text after a closing quote",
        'Write quotes within a quoted text twice (""), or read the file without quotes if " is part of the texts.',
    ),
    "long_line": Problem("bad", "line of more than a million characters", "Is a line end missing?"),
    "not_json": Problem("bad", "line that is not valid JSON", "Write one JSON object per line."),
    "not_object": Problem("bad", "line of JSON that is not an object", 'Write an object per line: {"item_id": …}.'),
    "deep_json": Problem(
        "bad", f"JSON nested deeper than {MAX_DEPTH} levels", "Keep what models need: texts, numbers, lists of texts."
    ),
    "undecodable": Problem(
        "bad",
        "place that cannot be read in the chosen encoding",
        "Choose the encoding that the file was written in, or mend the bytes.",
    ),
    "header_undecodable": Problem(
        "warning",
        "place of the header that cannot be read in the chosen encoding",
        "Choose the encoding that the file was written in.",
    ),
    "key_unknown": Problem(
        "warning", "key that only lines further below have", "It is not read. Put it into the first lines to have it."
    ),
    "column_bytes": Problem(
        "warning", "column whose bytes are no text in UTF-8, not used", "Write it as text in UTF-8 if you need it."
    ),
    "key_again": Problem("warning", "JSON object that has a key twice", "The first one is read. Write each key once."),
    "encoding_guessed": Problem(
        "warning",
        "encoding that is a guess",
        "Look at the special characters in the lines above, or save the file as UTF-8, which proves itself.",
    ),
    # --- catalogue
    "id_missing": Problem("bad", "item without an id", "Give it the id that the log calls it by."),
    "id_long": Problem("bad", f"item id longer than {MAX_ID} characters", "Is this the right column? Use short ids."),
    "id_control": Problem("bad", "control character in an item id", "Take it out, here and in the log."),
    "id_nan": Problem(
        "warning",
        "item id that reads like a missing value (nan, null, none)",
        "It counts as an id. Leave it empty if there is none.",
    ),
    "id_rounded": Problem("warning", "item id that a spreadsheet has rounded (4.01E+12)", _ROUNDED),
    "id_twins": Problem(
        "warning", "item id that looks like another one and is written in other characters", _TWINS
    ),
    "id_again": Problem(
        "bad",
        "duplicate item row, with conflicting values",
        "Keep one row per item; the first one is kept if you go on. If rows are events, such as purchases, the file is a log.",
    ),
    "row_again": Problem("warning", "exact duplicate row", "The first one is kept."),
    "title_missing": Problem("warning", "item without a title", "The id stands in for it."),
    "title_long": Problem("warning", f"title longer than {MAX_TITLE} characters", "It is shortened."),
    "title_control": Problem("warning", "control character or line end in a title", "It becomes a space."),
    "cell_control": Problem("warning", "control character in an attribute", "It becomes a space."),
    "cell_long": Problem("warning", "attribute that is very long", "It is shortened."),
    "html": Problem("warning", "text with HTML", "Its tags are left out: models and pages see plain text."),
    "mixed": Problem(
        "warning", "text in a column of numbers", "The whole column is kept as text. Empty fields do no harm."
    ),
    "flag_odd": Problem(
        "warning", "value of a yes-or-no column that is neither", "It counts as no. Write 1 and 0, yes and no, or true and false."
    ),
    "replaced": Problem(
        "warning",
        "replacement character (�)",
        "The text was damaged before it came here. Export it again in UTF-8 if it matters.",
    ),
    # --- log
    "user_missing": Problem("bad", "event without a user", "Give it one."),
    "user_long": Problem("bad", f"user id longer than {MAX_ID} characters", "Is this the right column? Use short ids."),
    "user_control": Problem("bad", "control character in a user id", "Take it out."),
    "item_missing": Problem("bad", "event without an item", "Give it the id that the catalogue calls it by."),
    "item_long": Problem("bad", f"item id longer than {MAX_ID} characters", "Is this the right column? Use short ids."),
    "item_control": Problem("bad", "control character in an item id", "Take it out, here and in the catalogue."),
    "user_nan": Problem(
        "warning",
        "event of a user that reads like a missing value (nan, null, none)",
        "Those written alike count as one user. Leave the field empty if there is none.",
    ),
    "item_nan": Problem(
        "warning", "event of an item that reads like a missing value (nan, null, none)", "Leave the field empty if there is none."
    ),
    "user_rounded": Problem("warning", "event of a user id that a spreadsheet has rounded (4.01E+12)", _ROUNDED),
    "item_rounded": Problem("warning", "event of an item id that a spreadsheet has rounded (4.01E+12)", _ROUNDED),
    "user_twins": Problem("warning", "user id that looks like another one and is written in other characters", _TWINS),
    "item_twins": Problem(
        "warning", "item id of the log that looks like another one and is written in other characters", _TWINS
    ),
    "item_unmapped": Problem("bad", "item that the item map lacks", "Add a line for its number to the map."),
    "not_items": Problem("bad", "user without a list of items", 'Write {"user": ["item", …], …}.'),
    "not_item": Problem("bad", "entry of a history that is no item number or id", "Write numbers or texts."),
    "no_items": Problem("bad", "user without items", "Write at least one item after the user."),
    "not_pair": Problem(
        "bad", "line of the item map that is not a pair of item number and id", "Write a number, a blank and an id."
    ),
    "number_again": Problem(
        "bad", "duplicate item number in the item map", "Write each number once; the first one is used."
    ),
    "no_times": Problem(
        "warning", "log without times: the order of its rows counts",
        "If there are times, choose their column and its format; else make sure that each user's events stand oldest first.",
    ),
    "time_missing": Problem("bad", "event without a time", "Give it one, or read the log without its time column."),
    "time_unreadable": Problem(
        "bad", "time that cannot be read", "Choose the format of the times, and correct impossible dates, such as 31 February."
    ),
    "time_early": Problem("bad", "time before 1970", "Check the unit or format of the times."),
    "time_late": Problem("bad", "time after 2099", "Check the unit or format of the times."),
    "time_unit": Problem("bad", "time in another unit than the others", "Write all times in one unit."),
    "time_future": Problem("warning", "time in the future", "It is kept. Check the unit or format of the times."),
    "weight_missing": Problem("bad", "event without a rating or weight", "Give it one, or read the log without that column."),
    "weight_unreadable": Problem(
        "bad", "rating or weight that is not a number", "Write numbers with a point, or read the log without that column."
    ),
    "quantity_unreadable": Problem(
        "bad", "quantity that is not a number", "Write numbers with a point, or read the log without that column."
    ),
    "quantity_negative": Problem(
        "warning", "event of a negative quantity (a cancellation), dropped", "You chose to drop them."
    ),
    "event_repeated": Problem(
        "warning", "event with an item that its user had before, dropped", "First occurrences alone are used."
    ),
    "rating_low": Problem(
        "warning", "low rating that counts as liked", "A model cannot tell it from a high one: choose a minimum rating."
    ),
    "rating_dropped": Problem("warning", "event below the minimum rating, dropped", "You chose the minimum rating."),
    "event_again": Problem("warning", "event repeated, with the same user, item and time", "The first one is kept."),
    "few_events": Problem(
        "warning",
        f"user with fewer than {FEW} events",
        "Their events train, but nothing can be held out to test on.",
    ),
    "item_unknown": Problem(
        "warning",
        "item of the log that the catalogue lacks",
        "Its events are kept, and its id stands in for the title. Are the ids written alike in both files?",
    ),
    # --- the file as a whole
    "no_rows": Problem("stop", "no row that can be used is left", "Mend the rows, or read the file in another way."),
    "none_known": Problem(
        "stop",
        "no item of the log is in the catalogue",
        "Check which columns hold the items, and whether both files write ids alike.",
    ),
    "one_user": Problem(
        "stop",
        "the whole log belongs to one user",
        "A recommender learns from many. Is the user column the right one?",
    ),
    "nobody_to_test": Problem(
        "stop",
        f"no user has {FEW} events",
        "Nothing could be held out to test on. Is the user column the right one?",
    ),
}  # fmt: skip


def warning_words(problem: str, note: str = "") -> str:
    """What is wrong, more about it, and what to do."""
    words, fix = PROBLEMS[problem].words, PROBLEMS[problem].fix
    return " ".join(part for part in (f"{words}.", note, fix) if part)


class Rule(NamedTuple):
    """Which rows have a problem, as SQL."""

    problem: str
    bad: str


def id_rules(role: str, cell: str) -> tuple[Rule, ...]:
    """role: "user" or "item" of a log, "id" of a catalogue; cell: SQL, NULL where it is empty."""
    return (
        Rule(f"{role}_missing", f"{cell} IS NULL"),
        Rule(f"{role}_long", f"length({cell}) > {MAX_ID}"),
        Rule(f"{role}_control", f"regexp_matches({cell}, '{CONTROLS}')"),
    )


def time_rules(cell: str, moment: str, scale: int) -> tuple[Rule, ...]:
    """cell: the time as it is written; moment: SQL, its unix second; scale: how many of its units make a second."""
    # Seconds in a column of milliseconds would be in January 1970.
    other = f"{moment} BETWEEN 0 AND {LATEST // 1000 - 1}" if scale > 1 else "false"
    return (
        Rule("time_missing", f"{cell} IS NULL"),
        Rule("time_unreadable", f"{cell} IS NOT NULL AND {moment} IS NULL"),
        Rule("time_early", f"{moment} < 0"),
        Rule("time_late", f"{moment} >= {LATEST}"),
        Rule("time_unit", other),
    )


def weight_rules(cell: str) -> tuple[Rule, ...]:
    return (
        Rule("weight_missing", f"{cell} IS NULL"),
        Rule("weight_unreadable", f"{cell} IS NOT NULL AND {finite(cell)} IS NULL"),
    )


def quantity_rules(cell: str) -> tuple[Rule, ...]:
    """None given is no cancellation."""
    return (Rule("quantity_unreadable", f"{cell} IS NOT NULL AND {finite(cell)} IS NULL"),)


def finite(cell: str) -> str:
    """SQL: the finite number that a text is; NULL where it is none."""
    return f"CASE WHEN isfinite({number(cell)}) THEN {number(cell)} END"
