"""The history, its edit, whose it is, and what truly came next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from app.reports.blocks import Block, Table, h3, p, quiet
from app.reports.fields import Item, ReportModel
from app.reports.part import Part, Source, positions
from app.text import clean

if TYPE_CHECKING:
    from app.reports.document import Report


class History(ReportModel):
    items: list[Item]
    edited: list[Item] | None = None
    person: str | None = None
    target: Item | None = None
    """What truly came next."""


class HistoryPart(Part[History]):
    name, title, heading, busy, order = "history", "History", "History", "Reading the history", 10
    content = History

    def make(self, source: Source) -> History:
        edited = source.asked.edited
        return History(
            items=[source.item(item) for item in source.history],
            edited=None if edited is None else [source.item(item) for item in positions(source.models, edited)],
            person=None if source.person is None else source.asked.user,
            target=None if source.target is None else source.item(source.target),
        )

    def items(self, content: History) -> Iterable[Item]:
        return (*content.items, *(content.edited or ()))

    def tables(self, content: History, report: Report) -> dict[str, Table]:
        rows = [
            (which, place, item.item_id, item.title)
            for which, items in (("history", content.items), ("edited", content.edited or []))
            for place, item in enumerate(items, 1)
        ]
        return {"history": Table("History", ("which", "place", "item_id", "title"), rows)}

    def blocks(self, content: History, report: Report) -> list[Block]:
        blocks: list[Block] = []
        if content.person is not None:
            target = "" if content.target is None else f": {clean(content.target.title)}"
            blocks.append(p(f"Of {clean(content.person)}; no model has seen what came next{target}."))
        for title, items in (("", content.items), ("Edited", content.edited)):
            if items is None:
                continue
            if title:
                blocks.append(h3(title))
            if items:
                blocks.append({"kind": "path", "items": [clean(item.title, 120) for item in items]})
            else:
                blocks.append(quiet("Cold start: an empty history."))
        return blocks


PART = HistoryPart()
