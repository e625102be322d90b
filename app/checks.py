"""What may stand in the address: checks that pages put together (see `choices`), each with one sentence for what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.text import listed, short
from engine.runtime import Zoo

Own = Mapping[str, str]
"""Parameter → its text in the address."""
Check = Callable[[str, Zoo, Own], str]
"""What is wrong with a text, as a sentence; "" where nothing is. It may look at the parameters that come before its own."""


def is_model(text: str, models: Zoo, own: Own) -> str:
    return "" if text in models.bundles else f"The link names a model that this dataset does not have: “{short(text)}”."


def is_item(text: str, models: Zoo, own: Own) -> str:
    if models.position(text) is not None:
        return ""
    return f"The link names an item that this dataset does not have: “{short(text)}”."


def one_of(name: str, allowed: tuple[str, ...]) -> Check:
    def check(text: str, models: Zoo, own: Own) -> str:
        return "" if text in allowed else refused(name, text, listed(list(allowed), "or"))

    return check


def up_to(name: str, least: int, most: Callable[[Zoo, Own], int]) -> Check:
    def check(text: str, models: Zoo, own: Own) -> str:
        top = most(models, own)
        if text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= top:
            return ""
        return refused(name, text, f"{least} to {top}" if top > least else str(least))

    return check


def refused(name: str, text: str, possible: str) -> str:
    return f"The link asks for the {name} “{short(text, 20)}”; possible is {possible}."
