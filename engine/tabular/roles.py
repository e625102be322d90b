"""Which column holds what: by its name where that says it, else by its values. Uploads and imports guess so."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from engine.tabular.columns import COMMON, LISTS, NAMES, Values, called, known_name, plain_name
from engine.tabular.reading import NEEDED, FileKind, ReadingChoice, Role, Sure, UploadColumn

_NO_IDS = {
    "invoice", "invoiceno", "invoiceid", "invoicenumber", "order", "orderno", "orderid", "ordernumber", "transaction",
    "transactionno", "transactionid", "basket", "basketid", "cartid", "receipt", "receiptid", "row", "rowid", "index", "price",
    "unitprice", "amount", "country",
}  # fmt: skip
"""Columns that are neither a user nor an item, however much their values look like ids."""
_NO_TITLES = {
    "type", "kind", "color", "colour", "size", "language", "genre", "genres", "category", "categories", "tags", "keywords",
}  # fmt: skip
"""Columns that say of which kind items are, and name none of them."""
_RECBOLE = re.compile(r"(?<=.):(?:token|float)(?:_seq)?$")
"""What RecBole's files add to the names of columns: what kind of value they hold."""
_TOKENS = re.compile(r"(?<=.):(?:token|float)_seq$")
"""RecBole's lists, with blanks between the values."""
_SEPARATORS = "|;,/"
_LONGEST_ID = 64
_BRACKETS = re.compile(r"\[.*\]|\{[^:]*\}", re.DOTALL)
"""A list of JSON or Python; a set of Python or an array of Postgres."""
_URL = re.compile(r"https?://\S+")


def guess_roles(
    kind: FileKind, columns: Sequence[Values], *, named: bool, is_time: Callable[[Sequence[str]], bool]
) -> tuple[tuple[UploadColumn, ...], ReadingChoice]:
    """The role of every column, and how sure that is. named: the file has names for its columns."""
    roles: dict[str, Role] = {}
    expected: tuple[Role, ...] = (
        ("item_id", "title") if kind == "catalogue" else ("user", "item", "time", "weight", "quantity")
    )
    if named:
        for role in expected:
            free = [column for column in columns if column.name not in roles]
            if kind == "log":  # a file without rows has no values at all
                free = [column for column in free if column.filled or not column.values]
            matches = called(NAMES[role], [column.name for column in free])
            if matches:
                roles[matches[0]] = role
        if kind == "log":
            _unsaid(roles, columns, is_time)
    missing = [role for role in expected if role not in roles.values()]
    free = [column for column in columns if column.name not in roles and column.filled]
    user = next((column for column in columns if roles.get(column.name) == "user"), None)
    by_value = (
        _catalogue_roles(missing, free, named)
        if kind == "catalogue"
        else _log_roles(missing, free, user, named, is_time)
    )
    roles |= {name: role for role, name in by_value.items()}
    if kind == "log" and (clock := _clock(columns, roles, is_time)):
        roles[clock] = "clock"
        if not called(NAMES["clock"], [clock]):
            by_value["clock"] = clock
    spare = [column for column in columns if column.name not in roles]
    if kind == "catalogue":
        roles |= _attributes(spare, named)
    elif named and "item" in roles.values():
        roles |= _of_items(spare, next(column for column in columns if roles.get(column.name) == "item"))
    made = tuple(
        UploadColumn(
            name=column.name,
            role=roles.get(column.name, "skip"),
            called=_RECBOLE.sub("", column.name) if _RECBOLE.search(column.name) else "",
            separator=_separator(column) if roles.get(column.name) == "list" else "|",
        )
        for column in columns
    )
    return made, _choice(kind, made, bool(by_value))


def seems(kind: FileKind, columns: Sequence[Values], is_time: Callable[[Sequence[str]], bool]) -> FileKind | None:
    """The other kind, where the names of the columns and the ids say that the file is rather of that; of names that say nothing,
    where there are times and no ids of items, or the other way round."""
    names = [column.name for column in columns]
    users, titles = called(NAMES["user"], names), called(NAMES["title"], names)
    if not any(map(known_name, names)):
        rest = [column for column in columns if not is_time(column.values)]
        if kind == "catalogue":
            return "log" if 1 < len(rest) < len(columns) and not any(map(_is_id, rest)) else None
        texts = any(column.share(lambda value: " " in value) > 0.5 for column in rest)
        return "catalogue" if len(rest) == len(columns) and texts and any(map(_is_unique, rest)) else None
    item_names = NAMES["item"] if kind == "catalogue" else (*NAMES["item_id"], *NAMES["item"])
    item = next((column for column in columns if column.name in called(item_names, names)[:1]), None)
    if item is None or not item.filled:
        return None
    if kind == "catalogue":
        events = called(NAMES["time"], names) and not titles
        return "log" if users and (events or len(item.distinct) < 0.8 * len(item.filled)) else None
    return "catalogue" if titles and not users and _is_unique(item) else None


def _is_unique(column: Values) -> bool:
    return len(column.distinct) == len(column.filled) > 2 and len(column.filled) >= 0.85 * len(column.values)


def _choice(kind: FileKind, columns: tuple[UploadColumn, ...], by_value: bool) -> ReadingChoice:
    if not {*NEEDED[kind]} <= {column.role for column in columns}:
        return ReadingChoice(
            about="columns", value="", sure="unsure", why="Not every column that is needed was recognised."
        )
    if kind == "catalogue" and all(column.role != "title" for column in columns):
        why = "No column looks like the items' titles, so their ids stand in."
        return ReadingChoice(about="columns", value="", sure="unsure", why=why)
    sure: Sure = "unsure" if by_value else "likely"
    why = (
        "Some columns were guessed from their values alone: please check."
        if by_value
        else "Guessed from the columns' names."
    )
    return ReadingChoice(about="columns", value="", sure=sure, why=why)


# --- by values


def _catalogue_roles(missing: list[Role], free: list[Values], named: bool) -> dict[Role, str]:
    chosen: dict[Role, str] = {}
    if "item_id" in missing:
        ids = [column for column in free if _is_id(column)]
        if ids:
            chosen["item_id"] = max(ids, key=lambda column: (len(column.distinct), -free.index(column))).name
    if "title" in missing:
        rest = [column for column in free if column.name not in chosen.values()]
        rest = [column for column in rest if not named or plain_name(column.name) not in _NO_TITLES]
        scored = {column.name: _title_score(column) for column in rest}
        if scored and max(scored.values()) > 0:
            chosen["title"] = max(scored, key=lambda name: scored[name])
    return chosen


def _is_id(column: Values) -> bool:
    """Short, hardly ever empty or given twice: a few mistakes are what a check is for."""
    filled = column.filled
    return (
        len(filled) >= 0.85 * len(column.values)
        and len(column.distinct) >= 0.85 * len(filled)
        and max(map(len, filled)) <= _LONGEST_ID
        and column.share(lambda value: " " in value or bool(_URL.match(value))) < 0.05
    )


def _title_score(column: Values) -> float:
    """Texts with letters, nearly all different, some words long."""
    filled = column.filled
    letters = column.share(lambda value: any(c.isalpha() for c in value) and not _URL.match(value))
    dates = column.share(lambda value: bool(re.fullmatch(r"[\d.:/ T-]+|\d+-\w{3}-\d{2,4}", value)))
    different = len(column.distinct) / max(1, len(filled))
    length = sum(map(len, filled)) / max(1, len(filled))
    fits = 1.0 if 3 <= length <= 90 else 0.3 if length > 90 else 0.1
    return (letters - dates) * different * fits * (len(filled) / max(1, len(column.values)))


def _log_roles(
    missing: list[Role],
    free: list[Values],
    user: Values | None,
    named: bool,
    is_time: Callable[[Sequence[str]], bool],
) -> dict[Role, str]:
    """user: where its name says which column that is."""
    chosen: dict[Role, str] = {}
    rest = [column for column in free if not named or plain_name(column.name) not in _NO_IDS]
    if "time" in missing:
        # An item may have one, too, such as the date on which it came out.
        log = [column for column in rest if not named or plain_name(column.name) not in COMMON]
        times = [column for column in log if is_time(column.values)]
        if times:
            # The one with most different values: years may look like times, too.
            chosen["time"] = max(times, key=lambda column: len(column.distinct)).name
            rest = [column for column in rest if column.name != chosen["time"]]
    if "weight" in missing and not named and len(rest) > 2:
        weights = [column for column in rest if _is_weight(column)]
        if weights:
            chosen["weight"] = min(weights, key=lambda column: len(column.distinct)).name
            rest = [column for column in rest if column.name != chosen["weight"]]
    rest = [column for column in rest if not holds_clock(column)]
    # Who comes before what they took, nearly everywhere.
    ids = [column for column in rest if max(map(len, column.filled)) <= _LONGEST_ID and len(column.distinct) > 1]
    ids.sort(key=_never_again)
    for role, other in (("user", "item"), ("item", "user")):
        fitting = [column for column in ids if not named or plain_name(column.name) not in NAMES[other]]
        if role == "item" and named:  # rather one whose values share a title, no order's number, and no words
            fitting = [column for column in fitting if user is None or not shares_title(user, column)] or fitting
            fitting.sort(
                key=lambda column: (
                    not any(shares_title(column, title) for title in free),
                    _is_order(column),
                    column.share(lambda value: " " in value) > 0.5,
                )
            )
            things = called(_THINGS_CALLED, [column.name for column in free if column.name not in chosen.values()])
            if things and not any(shares_title(column, title) for column in fitting[:1] for title in free):
                fitting = [column for column in free if column.name == things[0]]
        if role in missing and fitting:
            chosen[role] = fitting[0].name
            user = fitting[0] if role == "user" else user
            ids = [column for column in ids if column is not fitting[0]]
    if "item" in missing and "item" not in chosen and named:  # titles alone tell the items
        titles = called(NAMES["title"], [column.name for column in free if column.name not in chosen.values()])
        chosen |= {"item": titles[0]} if titles else {}
    return chosen


def _clock(
    columns: Sequence[Values], roles: Mapping[str, Role], is_time: Callable[[Sequence[str]], bool]
) -> str | None:
    """The column of the time of day, where the one of the time has days alone."""
    day = next((column for column in columns if roles.get(column.name) == "time"), None)
    for column in columns:
        if day is not None and column.name not in roles and holds_clock(column):
            pairs = zip(day.values, column.values, strict=True)
            if is_time([f"{date} {clock}" for date, clock in pairs if date and clock]):
                return column.name
    return None


def holds_clock(column: Values) -> bool:
    """Whether nearly all of its values are times of day."""
    return column.share(lambda value: bool(_OF_DAY.fullmatch(value))) >= 0.9


_THINGS_CALLED = [
    name
    for name in NAMES["title"]
    if name.endswith(("title", "name")) and name not in ("title", "primarytitle", "displayname", "name")
]
"""Titles of things for sure; those of reviews, and names of users, are called title and name."""
_WEAK = {"id", "code", "key"}
"""Names that an item's column may have, and an order's as well."""
_REPEATED = 3
"""Values that must come again before anything is said of what they have in common."""
_AMOUNT = re.compile(r"[-+]?\d*[.,]?\d+([eE][-+]?\d+)?")
_OF_DAY = re.compile(r"\d{1,2}:\d\d(:\d\d([.,]\d+)?)?( ?[aApP]\.?[mM]\.?)?")
"""A time of day, which is neither a time nor an id."""
_MANY = 50
"""Rows of a log among which an item comes again."""


def _unsaid(roles: dict[str, Role], columns: Sequence[Values], is_time: Callable[[Sequence[str]], bool]) -> None:
    """Takes back what a name says where the values say otherwise: a weak name whose values are orders is no item, what holds
    no time is none where another column does, and what holds no numbers is neither a rating nor a quantity."""
    for column in columns:
        role = roles.get(column.name)
        if role == "item" and plain_name(column.name) in _WEAK and _is_order(column):
            del roles[column.name]
        elif role == "time" and plain_name(column.name) == "day" and called(["month"], [c.name for c in columns]):
            del roles[column.name]  # that of the month
        elif role in ("weight", "quantity") and column.share(lambda value: bool(_AMOUNT.fullmatch(value))) < 0.5:
            del roles[column.name]
        elif role == "time" and column.filled and not is_time(column.values):
            others = [other for other in columns if other.name not in roles and other.filled]
            if any(is_time(other.values) for other in others):
                del roles[column.name]


def _is_order(column: Values) -> bool:
    """Whether each value comes in one burst, as the number of an order does: its rows stand one after the other; or none comes
    again in many rows."""
    places: dict[str, list[int]] = {}
    for row, value in enumerate(column.values):
        if value:
            places.setdefault(value, []).append(row)
    repeated = [rows for rows in places.values() if len(rows) > 1]
    bursts = [rows for rows in repeated if rows[-1] - rows[0] == len(rows) - 1]
    rows = sum(map(len, repeated))
    if not repeated:
        return _never_again(column)
    return len(repeated) >= _REPEATED and rows >= 0.2 * len(column.filled) and len(bursts) >= 0.95 * len(repeated)


def _never_again(column: Values) -> bool:
    """Whether each of many rows has a value of its own, as the number of an event: neither who nor what."""
    return len(column.distinct) == len(column.filled) >= _MANY


def agreement(column: Values, by: Values) -> float | None:
    """How far each value of `by` has one value of `column`: the share of rows that have their group's commonest value, of groups
    of two rows and more. None where there are too few of these, or where nearly all rows have the same value anyway."""
    groups: dict[str, Counter[str]] = {}
    for value, key in zip(column.values, by.values, strict=True):
        if value and key:
            groups.setdefault(key, Counter())[value] += 1
    repeated = [group for group in groups.values() if group.total() > 1]
    total = sum(group.total() for group in repeated)
    commonest = Counter(column.filled).most_common(1)
    if len(repeated) < _REPEATED or commonest[0][1] > 0.9 * len(column.filled):
        return None
    return sum(group.most_common(1)[0][1] for group in repeated) / total


def shares_title(item: Values, title: Values) -> bool:
    """Whether the values of `title` are titles of those of `item`: one each, and hardly any two alike."""
    agreed = agreement(title, item) if _is_words(title) and title.name != item.name else None
    return agreed is not None and agreed >= 0.9 and len(title.distinct) >= 0.5 * len(item.distinct)


def _is_words(column: Values) -> bool:
    lengths = [len(value) for value in column.filled]
    letters = column.share(lambda value: any(c.isalpha() for c in value) and not _URL.match(value))
    return bool(lengths) and letters > 0.8 and sum(lengths) >= 3 * len(lengths)


def _of_items(columns: list[Values], item: Values) -> dict[str, Role]:
    """Columns of a log that say something of its items rather than of events: the title, and attributes."""
    filled = [column for column in columns if column.filled]
    by_name = called(NAMES["title"], [column.name for column in filled])
    titles = [
        column for column in filled if shares_title(item, column) and plain_name(column.name) not in NAMES["item_id"]
    ]
    titles.sort(key=lambda column: column.name not in by_name)
    if not titles:  # no item comes often enough to tell by the values: the name must say it, and not be anybody's
        sure = [name for name in by_name if plain_name(name) not in ("name", "label", "nombre", "nom", "displayname")]
        titles = [
            column for column in filled if column.name in sure and agreement(column, item) is None and _is_words(column)
        ]
    if not titles:
        return {}
    roles: dict[str, Role] = {titles[0].name: "title"}
    rest = [column for column in filled if column.name != titles[0].name]
    agreed = {column.name: agreement(column, item) or 0.0 for column in rest}
    roles |= _attributes([column for column in rest if agreed[column.name] >= 0.95], named=True)
    return roles


def _is_weight(column: Values) -> bool:
    number = column.share(lambda value: bool(re.fullmatch(r"-?\d{1,3}([.,]\d+)?", value)))
    return number > 0.98 and len(column.distinct) <= 21


# --- attributes


def _attributes(columns: list[Values], named: bool) -> dict[str, Role]:
    """What the other columns of a catalogue are."""
    flags = [column.name for column in columns if column.distinct and column.distinct <= {"0", "1"}]
    many = len(flags) >= 3
    roles: dict[str, Role] = {}
    for column in columns:
        if not column.filled:
            roles[column.name] = "skip"
        elif many and column.name in flags:
            roles[column.name] = "flag" if named else "skip"  # without names they would say nothing
        elif column.share(lambda value: bool(_URL.fullmatch(value))) > 0.9:
            roles[column.name] = "skip"
        elif _is_list(column):
            roles[column.name] = "list"
        else:
            roles[column.name] = "text"
    return roles


def _is_list(column: Values) -> bool:
    if _TOKENS.search(column.name):
        return True
    if column.share(lambda value: bool(_BRACKETS.fullmatch(value))) > 0.8:
        return True
    bars = column.share(lambda value: "|" in value)
    if bars > 0.05 and max(map(len, column.filled)) < 500:
        return True
    some = column.share(lambda value: any(c in value for c in ";,/"))
    return plain_name(column.name) in LISTS and some > 0.05


def _separator(column: Values) -> str:
    if _TOKENS.search(column.name):
        return " "
    return max(_SEPARATORS, key=lambda sign: (column.share(lambda value: sign in value), -_SEPARATORS.index(sign)))
