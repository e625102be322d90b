"""The page Users."""

from app import examples
from app.analysis import users
from app.session.pages import Own, Page, Parameter, one_of, script, up_to
from app.text import short
from engine.runtime import Zoo

MAX_TEXT = 100
"""Characters of a search."""
PER_PAGE = 20


def _longest(models: Zoo, parameters: Own) -> int:
    return int(users.table(models).length.max(initial=0))


def _many(models: Zoo, parameters: Own) -> int:
    return max(1, -(-models.users.num_rows // PER_PAGE))


def _is_text(text: str, models: Zoo, parameters: Own) -> str:
    return "" if len(text) <= MAX_TEXT else f"The link searches users for a text of more than {MAX_TEXT} characters."


def _is_evaluated(text: str, models: Zoo, parameters: Own) -> str:
    if text in users.table(models).models:
        return ""
    return f"The link names a model that was not evaluated, or that is not here: “{short(text)}”."


def _other(text: str, models: Zoo, parameters: Own) -> str:
    if text == parameters.get("first"):
        return f"The link compares the model “{short(text)}” with itself."
    return _is_evaluated(text, models, parameters)


def _order(text: str, models: Zoo, parameters: Own) -> str:
    ranks = tuple(users.RANK + name for name in users.table(models).models)
    return one_of("order of users", (*users.SORTS, *ranks))(text, models, parameters)


def _is_user(text: str, models: Zoo, parameters: Own) -> str:
    if examples.user_row(models, text) is not None:
        return ""
    return f"The link names the user “{short(text)}”, whom this dataset does not have."


PAGE = Page(
    name="users",
    title="Users",
    icon=":material/group:",
    section="Judge",
    order=2,
    help="Users with a held-out item, and where each model ranks it.",
    script=script(__file__),
    hidden=lambda models: models is None or not models.users.num_rows,
    parameters=(
        Parameter("find", "a part of users' names", _is_text),
        Parameter("least", "items of a history that is listed", up_to("length of a history", 0, _longest)),
        Parameter("most", "items of a history that is listed", up_to("length of a history", 0, _longest)),
        Parameter("first", "a model, of two that are compared", _is_evaluated),
        Parameter("second", "the other one", _other),
        Parameter("hits", "which of the two have the held-out item in their top k", one_of("hits", users.HITS)),
        Parameter("sort", "user, length, difference, or rank.<model>", _order),
        Parameter("order", "down where the largest comes first", one_of("order", ("up", "down"))),
        Parameter("page", "of the list", up_to("page of the list", 1, _many)),
        Parameter("user", "who is looked at, by user_id", _is_user),
    ),
)
