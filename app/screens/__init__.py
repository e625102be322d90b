"""The pages, a folder each. Whoever wants to know which there are reads `PAGES`: a folder declares its own as `PAGE`, and other
packages add theirs through the entry point seqscope.pages (docs/extending.md)."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from app.session.pages import Page, ordered
from engine import plugins
from engine.errors import SeqscopeError


def _declared() -> Iterator[Page]:
    for module in iter_modules(__path__, f"{__name__}."):
        yield import_module(module.name).PAGE
    for name, page in plugins.objects("seqscope.pages"):
        if not isinstance(page, Page):
            raise SeqscopeError(f"What the entry point {name} leads to is no page.")
        yield page


PAGES: dict[str, Page] = ordered(_declared())
"""Name → page, in the order of the navigation."""
