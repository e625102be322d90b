"""The parameters that one page has in the address for itself, besides those that all pages share (`state`).

    compare     item         that is explained, by item_id
                beam         the model whose beam is drawn, by its name
                width        of that beam
                write        items or anything: whether the beam is held to identifiers that exist
                slow         asked: exact answers of models that take long for them are wanted
    attention   item         whose score is explained, by item_id
                model        that is looked into, by its name
                unit         items or codes: what a position is, where an item is read as several codes
                decoder      mean over the layers of the decoder, or one, counted from 1
                view         mean, head or rollout
                layer, head  counted from 1
                word_layer, word_head  of a model that reads words: mean, or one, counted from 1
                scale        where the colours end: fit, unit or rows
                latest       how many positions are drawn
                people       the mean over people by distance or position
    semantic_ids left, right  the tokenizers side by side, by their names; right may be "none"
                level        of codes, counted from 1
                colour       of the tree: a column of the catalogue
                model        whose written codes are compared with those that people took
                item         that is looked up
                of           the tokenizer whose codes are filtered by
                prefix       codes to begin with, such as 12-200
    graph       model        whose paths are shown, by its name
                item         that they lead to, by item_id
                layers       of the tree, 1 to 3
    map         see choices_map
    metrics     see choices_metrics
    report      see choices_report

A page that lets something be chosen gives it a check in PAGES. `state` asks it before the page is drawn, so that
`state.get().own` holds nothing but what it let pass; `state.choose` changes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from app import choices_map, choices_metrics, choices_report, guard
from app.analysis.metrics import without_users
from app.checks import Check, Own, is_item, is_model, one_of, up_to
from app.text import short
from engine.errors import SeqscopeError
from engine.runtime import Zoo

UNITS = ("items", "codes")
WRITE = ("items", "anything")
MAX_WIDTH = 100
VIEWS = ("mean", "head", "rollout")
SCALES = ("fit", "unit", "rows")
PEOPLE = ("distance", "position")
MAX_LATEST = 200
NOBODY = "none"
_PREFIX = re.compile(r"[0-9]{1,8}(-[0-9]{1,8}){0,63}")


def read(page: str, address: Mapping[str, str], models: Zoo) -> tuple[dict[str, str], list[str]]:
    """(the page's own choices in an address, a sentence about each one that cannot be had)"""
    own: dict[str, str] = {}
    problems = []
    for name, check in PAGES.get(page, {}).items():
        if name not in address:
            continue
        text = (
            without_users(address[name]) if name == "protocol" else address[name]
        )  # an address of before may say full+user
        try:
            problem = check(text, models, own)
        except SeqscopeError as error:  # a damaged file; the page itself says more
            problem = f"What the link asks for as “{name}” cannot be looked up: {guard.shown(error)}"
        if problem:
            problems.append(problem)
        else:
            own[name] = text
    return own, problems


def attended(models: Zoo, own: Own) -> str:
    """The model to look into: the one that was chosen, else the first that attends, else the first. The zoo is not empty."""
    names = list(models.bundles)
    able = [name for name in names if models.bundles[name].cannot("attention") is None]
    return own["model"] if own.get("model") in names else (able or names)[0]


def beam_width(models: Zoo, model: str) -> int:
    """How wide a beam is drawn unless another width is chosen: the model's own, within what can be drawn."""
    writes = models.bundles[model].manifest.generator
    return min(writes.beam, MAX_WIDTH) if writes is not None else 1


def tokenizers(models: Zoo, own: Own) -> tuple[str, str | None]:
    """(the tokenizer on the left, the one beside it or None): the chosen ones, else the first two. There is at least one."""
    names = list(models.tokenizations)
    left = own["left"] if own.get("left") in names else names[0]
    right = own.get("right")
    if right == NOBODY or len(names) == 1:
        return left, None
    return left, right if right in names and right != left else next(name for name in names if name != left)


def browsed(models: Zoo, own: Own) -> str:
    """The tokenizer whose codes are filtered by: the one that was chosen, where it is on the page, else the left one."""
    shown = tokenizers(models, own)
    return own["of"] if own.get("of", "") in shown else shown[0]


def codes(own: Own) -> tuple[int, ...]:
    """The codes of the parameter prefix."""
    text = own.get("prefix", "")
    return tuple(map(int, text.split("-"))) if text else ()


def number(own: Own, name: str, default: int, most: int) -> int:
    """A number that was chosen, at most `most`: a link may have been made with a longer history."""
    return min(int(own.get(name, default)), most)


# --- checks


def _writes(text: str, models: Zoo, own: Own) -> str:
    if text in models.bundles and models.bundles[text].cannot("identifiers") is None:
        return ""
    return f"The link names a model that writes no codes, or that this dataset does not have: “{short(text)}”."


def _is_tokenizer(text: str, models: Zoo, own: Own) -> str:
    if text in models.tokenizations:
        return ""
    return f"The link names a tokenizer that this dataset does not have: “{short(text)}”."


def _is_beside(text: str, models: Zoo, own: Own) -> str:
    return "" if text == NOBODY else _is_tokenizer(text, models, own)


def _is_column(text: str, models: Zoo, own: Own) -> str:
    if text in models.items.column_names:
        return ""
    return f"The link asks for colours by “{short(text)}”, which this catalogue does not have."


def _is_prefix(text: str, models: Zoo, own: Own) -> str:
    if not models.tokenizations:
        return ""
    sizes = models.tokenizations[browsed(models, own)].about.shape.own
    if _PREFIX.fullmatch(text):
        wanted = [int(code) for code in text.split("-")]
        if len(wanted) <= len(sizes) and all(code < size for code, size in zip(wanted, sizes, strict=False)):
            return ""
    return f"The link asks for items of the codes “{short(text)}”, which this tokenizer does not have."


def _levels(models: Zoo, own: Own) -> int:
    return max((len(one.about.shape.own) for one in models.tokenizations.values()), default=1)


def _shape(models: Zoo, own: Own) -> tuple[int, int]:
    """(layers, heads) of the model that is looked into; one of each where it does not attend."""
    shape = models.bundles[attended(models, own)].manifest.attention if models.bundles else None
    return (shape.layers, shape.heads) if shape is not None else (1, 1)


def _decoder(text: str, models: Zoo, own: Own) -> str:
    writes = models.bundles[attended(models, own)].manifest.generator if models.bundles else None
    layers = writes.layers if writes is not None else 1
    return one_of("decoder layer", ("mean", *map(str, range(1, layers + 1))))(text, models, own)


def _mean_or(what: str, which: int) -> Check:
    def check(text: str, models: Zoo, own: Own) -> str:
        return one_of(what, ("mean", *map(str, range(1, _shape(models, own)[which] + 1))))(text, models, own)

    return check


PAGES: dict[str, dict[str, Check]] = {
    "": {
        "item": is_item,
        "beam": _writes,
        "width": up_to("beam width", 1, lambda models, own: MAX_WIDTH),
        "write": one_of("codes to write", WRITE),
        "slow": one_of("slow answers", ("asked",)),
    },
    "attention": {
        "model": is_model,
        "unit": one_of("positions", UNITS),
        "decoder": _decoder,
        "view": one_of("view", VIEWS),
        "layer": up_to("layer", 1, lambda models, own: _shape(models, own)[0]),
        "head": up_to("head", 1, lambda models, own: _shape(models, own)[1]),
        "word_layer": _mean_or("layer for the words", 0),
        "word_head": _mean_or("head for the words", 1),
        "scale": one_of("colours", SCALES),
        "latest": up_to("number of positions", 2, lambda models, own: MAX_LATEST),
        "item": is_item,
        "people": one_of("mean over people by", PEOPLE),
    },
    "semantic_ids": {
        "left": _is_tokenizer,
        "right": _is_beside,
        "level": up_to("level", 1, _levels),
        "colour": _is_column,
        "model": is_model,
        "item": is_item,
        "of": _is_tokenizer,
        "prefix": _is_prefix,
    },
    "graph": {
        "model": is_model,
        "item": is_item,
        "layers": one_of("layers", ("1", "2", "3")),
    },
    "map": choices_map.CHECKS,
    "metrics": choices_metrics.CHECKS,
    "report": choices_report.CHECKS,
}
"""Page (its path in the address; Compare has none) → its parameters, in the order in which they are checked."""
