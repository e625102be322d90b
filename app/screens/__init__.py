"""The pages, a folder each. Whoever wants to know which there are reads `PAGES`: a folder declares its own as `PAGE`, and other
packages add theirs through the entry point seqscope.pages (docs/extending.md)."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from app.session.pages import Page, ordered
from engine import plugins
from engine.errors import SeqscopeError


def _declared() -> dict[str, Page]:
    pages = [import_module(module.name).PAGE for module in iter_modules(__path__, f"{__name__}.")]

    def add(_: str, page: Any) -> None:
        if not isinstance(page, Page):
            raise SeqscopeError("it is no page")
        ordered([*pages, page])
        pages.append(page)

    plugins.take("seqscope.pages", add)
    return ordered(pages)


PAGES: dict[str, Page] = _declared()
"""Name → page, in the order of the navigation."""
