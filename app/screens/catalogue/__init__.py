"""The page Catalogue."""

import math

from app.session.address import decode, decode_values, encode, encode_values
from app.session.pages import Own, Page, Parameter, is_search, refused, script, up_to
from app.store.attributes import EXACT, Among, Between, Filters
from app.text import short
from engine.runtime import Zoo
from engine.tabular.columns import RESERVED

ROWS = 20
"""Of a page of the list."""
MAX_VALUES = 100
"""Values that one link filters by, of all attributes together."""


def chosen_filters(parameters: Own) -> dict[str, Among | Between]:
    """Attribute → its filter."""
    values = decode_values(parameters.get("only", ""))
    conditions: dict[str, Among | Between] = {name: Among(chosen) for name, chosen in values.items()}
    texts = decode(parameters.get("between", ""))
    for name, low, high in zip(texts[::3], texts[1::3], texts[2::3], strict=False):
        conditions[name] = Between(_number(low), _number(high))
    return conditions


def parameters_of(conditions: Filters) -> dict[str, str | None]:
    """The opposite of `chosen_filters`, for `state.choose`."""
    only = {name: condition.values for name, condition in conditions.items() if isinstance(condition, Among)}
    between = [
        text
        for name, condition in conditions.items()
        if isinstance(condition, Between)
        for text in (name, _text(condition.low), _text(condition.high))
    ]
    return {"only": encode_values(only), "between": encode(between) or None}


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    number = min(max(number, -float(EXACT)), float(EXACT))  # attributes that are filtered by lie within
    return int(number) if number.is_integer() else number


def _text(end: float | None) -> str:
    return "" if end is None else str(int(end) if float(end).is_integer() else float(end))


def _are_values(text: str, models: Zoo, parameters: Own) -> str:
    return _fit(decode(text)[::2], len(decode(text)) % 2 == 0, text, models)


def _are_ranges(text: str, models: Zoo, parameters: Own) -> str:
    names, ends = decode(text)[::3], [*decode(text)[1::3], *decode(text)[2::3]]
    whole = len(decode(text)) % 3 == 0 and all(end == "" or _number(end) is not None for end in ends)
    return _fit(names, whole, text, models)


def _fit(names: tuple[str, ...], whole: bool, text: str, models: Zoo) -> str:
    """Whether a filter can be understood; values that no item has filter everything out, and the page says so."""
    known = set(models.items.column_names) - {name for name in RESERVED if name != "popularity"}
    if len(names) > MAX_VALUES:
        return f"The link filters by {len(names):,} values; possible are {MAX_VALUES}."
    if whole and names and set(names) <= known:
        return ""
    return f"The link filters by attributes that this catalogue does not have: “{short(text)}”."


def _is_order(text: str, models: Zoo, parameters: Own) -> str:
    """Whether it names an attribute; one that the list cannot be sorted by leaves it as it is."""
    column = text.removesuffix("-up").removesuffix("-down")
    if column in ("relevance", *models.items.column_names):
        return ""
    return refused("order of items", text, "relevance, title, or an attribute with -up or -down")


def _pages(models: Zoo, parameters: Own) -> int:
    return max(1, -(-len(models) // ROWS))


PAGE = Page(
    name="catalogue",
    title="Catalogue",
    icon=":material/search:",
    section="Try",
    order=2,
    help="Search and filter the items; build a history.",
    script=script(__file__),
    parameters=(
        Parameter("find", "a text that titles and attributes are searched for", is_search),
        Parameter("only", "attribute~value~…: items have one of the values of each attribute", _are_values),
        Parameter(
            "between",
            "attribute~low~high~…: items lie in the range of each attribute, an empty end is open",
            _are_ranges,
        ),
        Parameter("sort", "relevance, title, or <attribute>-up or -down", _is_order),
        Parameter("page", "of the list", up_to("page of the list", 1, _pages)),
    ),
)
