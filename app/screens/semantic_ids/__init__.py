"""The page Semantic IDs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from app.session.pages import Own, Page, Parameter, is_model, script, section, up_to
from app.text import short

if TYPE_CHECKING:
    from engine.runtime import Zoo

NOBODY = "none"
SECTIONS = {
    "overview": "Overview",
    "codebooks": "Codebook use",
    "tree": "Prefix tree",
    "collisions": "Collisions",
    "item": "Item lookup",
    "generated": "Generation bias",
}
"""Name in the address → its tab."""
_PREFIX = re.compile(r"[0-9]{1,8}(-[0-9]{1,8}){0,63}")


def tokenizers(models: Zoo, parameters: Own) -> tuple[str, str | None]:
    """(the tokenizer on the left, the one beside it or None): the chosen ones, else the first two. There is at least one."""
    names = list(models.tokenizations)
    left = parameters["left"] if parameters.get("left") in names else names[0]
    right = parameters.get("right")
    if right == NOBODY or len(names) == 1:
        return left, None
    return left, right if right in names and right != left else next(name for name in names if name != left)


def browsed(models: Zoo, parameters: Own) -> str:
    """The tokenizer whose codes are filtered by: the one that was chosen, where it is on the page, else the left one."""
    shown = tokenizers(models, parameters)
    return parameters["of"] if parameters.get("of", "") in shown else shown[0]


def opens_with(parameters: Own) -> str:
    """The section that is open unless another one is chosen: a link to a prefix leads to its branch."""
    return "tree" if parameters.get("prefix") else "overview"


def prefix_codes(parameters: Own) -> tuple[int, ...]:
    """The codes of the parameter prefix."""
    text = parameters.get("prefix", "")
    return tuple(map(int, text.split("-"))) if text else ()


def _is_tokenizer(text: str, models: Zoo, parameters: Own) -> str:
    if text in models.tokenizations:
        return ""
    return f"The link names a tokenizer that this dataset does not have: “{short(text)}”."


def _is_second(text: str, models: Zoo, parameters: Own) -> str:
    return "" if text == NOBODY else _is_tokenizer(text, models, parameters)


def _is_column(text: str, models: Zoo, parameters: Own) -> str:
    if text in models.items.column_names:
        return ""
    return f"The link asks for colours by “{short(text)}”, which this catalogue does not have."


def _is_prefix(text: str, models: Zoo, parameters: Own) -> str:
    if not models.tokenizations:
        return ""
    sizes = models.tokenizations[browsed(models, parameters)].about.shape.own
    if _PREFIX.fullmatch(text):
        prefix = [int(code) for code in text.split("-")]
        if len(prefix) <= len(sizes) and all(code < size for code, size in zip(prefix, sizes, strict=False)):
            return ""
    return f"The link asks for items of the codes “{short(text)}”, which this tokenizer does not have."


def _levels(models: Zoo, parameters: Own) -> int:
    return max((len(tokenization.about.shape.own) for tokenization in models.tokenizations.values()), default=1)


PAGE = Page(
    name="semantic_ids",
    title="Semantic IDs",
    icon=":material/account_tree:",
    section="Look inside",
    order=2,
    help="The codes that tokenizers give to items: use, prefix tree, collisions.",
    script=script(__file__),
    hidden=lambda models: models is None or not models.tokenizations,
    parameters=(
        section(SECTIONS),
        Parameter("left", "the tokenizer, by its name", _is_tokenizer),
        Parameter("right", "the one beside it; none", _is_second),
        Parameter("level", "of codes, counted from 1", up_to("level", 1, _levels)),
        Parameter("colour", "of the tree: a column of the catalogue", _is_column),
        Parameter("model", "whose generated codes are compared with those of held-out items", is_model),
        Parameter("of", "the tokenizer whose branch is opened", _is_tokenizer),
        Parameter("prefix", "the branch of the tree, by its codes, such as 12-200", _is_prefix),
    ),
)
