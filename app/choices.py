"""The parameters that one page has in the address for itself, besides those that all pages share (`state`).

    compare     item         that is explained, by item_id
    attention   item         whose score is explained, by item_id
                model        that is looked into, by its name
                view         mean, head or rollout
                layer, head  counted from 1
                scale        where the colours end: fit, unit or rows
                latest       how many positions are drawn
                people       the mean over people by distance or position

A page that lets something be chosen gives it a check in PAGES. `state` asks it before the page is drawn, so that
`state.get().own` holds nothing but what it let pass; `state.choose` changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.text import listed, short
from engine.runtime import Zoo

Own = Mapping[str, str]
"""Parameter → its text in the address."""
Check = Callable[[str, Zoo, Own], str]
"""What is wrong with a text, as a sentence; "" where nothing is. It may look at the parameters that come before its own."""

VIEWS = ("mean", "head", "rollout")
SCALES = ("fit", "unit", "rows")
PEOPLE = ("distance", "position")
MAX_LATEST = 200


def read(page: str, address: Mapping[str, str], models: Zoo) -> tuple[dict[str, str], list[str]]:
    """(the page's own choices in an address, a sentence about each one that cannot be had)"""
    own: dict[str, str] = {}
    problems = []
    for name, check in PAGES.get(page, {}).items():
        if name not in address:
            continue
        problem = check(address[name], models, own)
        if problem:
            problems.append(problem)
        else:
            own[name] = address[name]
    return own, problems


def attended(models: Zoo, own: Own) -> str:
    """The model to look into: the one that was chosen, else the first that attends, else the first. The zoo is not empty."""
    names = list(models.bundles)
    able = [name for name in names if models.bundles[name].cannot("attention") is None]
    return own["model"] if own.get("model") in names else (able or names)[0]


def number(own: Own, name: str, default: int, most: int) -> int:
    """A number that was chosen, at most `most`: a link may have been made with a longer history."""
    return min(int(own.get(name, default)), most)


# --- checks


def _is_model(text: str, models: Zoo, own: Own) -> str:
    return "" if text in models.bundles else f"The link names a model that this dataset does not have: “{short(text)}”."


def _is_item(text: str, models: Zoo, own: Own) -> str:
    if models.position(text) is not None:
        return ""
    return f"The link names an item that this dataset does not have: “{short(text)}”."


def _one_of(what: str, allowed: tuple[str, ...]) -> Check:
    def check(text: str, models: Zoo, own: Own) -> str:
        return "" if text in allowed else _refused(what, text, listed(list(allowed), "or"))

    return check


def _up_to(what: str, least: int, most: Callable[[Zoo, Own], int]) -> Check:
    def check(text: str, models: Zoo, own: Own) -> str:
        top = most(models, own)
        if text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= top:
            return ""
        return _refused(what, text, f"{least} to {top}" if top > least else str(least))

    return check


def _refused(what: str, text: str, possible: str) -> str:
    return f"The link asks for the {what} “{short(text, 20)}”; possible is {possible}."


def _shape(models: Zoo, own: Own) -> tuple[int, int]:
    """(layers, heads) of the model that is looked into; one of each where it does not attend."""
    shape = models.bundles[attended(models, own)].manifest.attention if models.bundles else None
    return (shape.layers, shape.heads) if shape is not None else (1, 1)


PAGES: dict[str, dict[str, Check]] = {
    "": {"item": _is_item},
    "attention": {
        "model": _is_model,
        "view": _one_of("view", VIEWS),
        "layer": _up_to("layer", 1, lambda models, own: _shape(models, own)[0]),
        "head": _up_to("head", 1, lambda models, own: _shape(models, own)[1]),
        "scale": _one_of("colours", SCALES),
        "latest": _up_to("number of positions", 2, lambda models, own: MAX_LATEST),
        "item": _is_item,
        "people": _one_of("mean over people by", PEOPLE),
    },
}
"""Page (its path in the address; Compare has none) → its parameters, in the order in which they are checked."""
