"""What the models recommend after an edited history, and what became of the items of their lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from app.analysis.recommend import Answer, ask
from app.reports.blocks import Block, Cell, Table, grid, h3, sign, table
from app.reports.fields import Item, ItemId, Name, ReportModel, number_or_none
from app.reports.part import Checked, Part, Source, each, positions, same
from app.session import history_edits
from app.text import clean, short
from engine.runtime import movement

if TYPE_CHECKING:
    from app.reports.document import Report

KINDS = {"same": "stay", "up": "up", "down": "down", "new": "new", "dropped": "dropped"}


class Moved(Item):
    before: int | None
    """Place in the list of the history as it is; None: not there."""
    after: int | None
    score_before: float | None
    score_after: float | None
    change: Literal["up", "down", "same", "new", "dropped"]


class Moves(ReportModel):
    model: Name
    cannot: str | None = None
    items: list[Moved] = []


class WhatIf(ReportModel):
    name: Literal["edited", "without-last", "swapped", "nothing"]
    words: str
    history: list[ItemId]
    models: list[Moves]

    @property
    def heading(self) -> str:
        """As pages call it; `words` are as in every report."""
        return "Empty history" if self.name == "nothing" else self.words


class WhatIfs(Part[list[WhatIf]]):
    name, title, order = "what-ifs", "What-ifs", 30
    heading, busy = "What-if experiments", "Trying other histories"
    content = list[WhatIf]
    always = scored = True

    def make(self, source: Source) -> list[WhatIf]:
        """The edited history, where there is one, and three edits that every history can have."""
        history, edited = tuple(source.asked.history or ()), source.asked.edited
        edits: list[tuple[Any, str, tuple[str, ...]]] = []
        if edited is not None:
            edits.append(("edited", "With the edited history", tuple(edited)))
        if len(history) > 1:
            edits.append(("without-last", "Without the last item", history[:-1]))
            swapped = history_edits.swapped(history, len(history) - 2, len(history) - 1)
            edits.append(("swapped", "With the last two swapped", swapped))
        if history:
            edits.append(("nothing", "With nothing known", ()))
        return [
            WhatIf(
                name=name,
                words=words,
                history=list(ids) if source.tells_history else [],
                models=[_moves(source, answer) for answer in answers],
            )
            for name, words, ids in edits
            for answers in [
                ask(source.models, source.names, positions(source.models, ids), source.asked.k, pinned=source.history)
            ]
        ]

    def named(self, content: list[WhatIf]) -> list[str]:
        return [moves.model for edit in content for moves in edit.models]

    def tables(self, content: list[WhatIf], report: Report) -> dict[str, Table]:
        titles = report.titles
        rows = [
            (
                edit.heading,
                titles[moves.model],
                i.item_id,
                i.title,
                i.before,
                i.after,
                i.change,
                i.score_before,
                i.score_after,
            )
            for edit in content
            for moves in edit.models
            for i in moves.items
        ]
        columns = ("what if", "model", "item_id", "title", "before", "after", "change", "score before", "score after")
        return {"what-ifs": Table("What if", columns, rows)}

    def blocks(self, content: list[WhatIf], report: Report) -> list[Block]:
        blocks: list[Block] = []
        for edit in content:
            rows: list[list[Cell]] = []
            for moves in edit.models:
                if moves.cannot is not None:
                    cells = [clean(moves.cannot, 200), *[""] * len(KINDS)]
                else:
                    changes: Counter[str] = Counter(item.change for item in moves.items)
                    first = next((item.title for item in moves.items if item.after == 1), "–")
                    cells = [short(clean(first), 60), *(str(changes[kind]) for kind in KINDS)]
                rows.append([sign(report, moves.model), *cells])
            head = ["Model", "New first item", *KINDS.values()]
            blocks += [h3(edit.heading), table(edit.heading, head, rows, [2, 4, *[0] * len(KINDS)])]
        return [*blocks, *grid(self.tables(content, report)["what-ifs"])]

    def compare(self, report: Report, then: list[WhatIf], now: list[WhatIf]) -> Iterator[Checked]:
        titles = report.titles

        def called(edit: WhatIf) -> str:
            return clean(edit.heading, 60).lower()

        def history(words: str, edit: WhatIf, other: WhatIf) -> Checked:
            return same(
                words, edit.model_dump(exclude={"models"}), other.model_dump(exclude={"models"}), "the same history"
            )

        def moves(words: str, edit: Moves, other: Moves) -> Checked:
            return same(words, edit.model_dump(), other.model_dump(), "the same moves, scores within the tolerance")

        yield from each("what-ifs", then, now, lambda edit: edit.name, called, history)
        fresh = {edit.name: edit for edit in now}
        for edit in then:
            if edit.name in fresh:
                words = called(edit)
                yield from each(
                    words, edit.models, fresh[edit.name].models, lambda moved: moved.model,
                    lambda moved, words=words: f"{words}: {titles[moved.model]}", moves,  # type: ignore[misc]
                )  # fmt: skip


PART = WhatIfs()


def _moves(source: Source, answer: Answer) -> Moves:
    """What became of each item from the list of the history as it is to this one."""
    if answer.top is None:
        return Moves(model=answer.name, cannot=answer.cannot)
    lists = [answer.before, answer.top]
    before, after = (
        {} if top is None else dict(zip(top.items.tolist(), top.scores.tolist(), strict=True)) for top in lists
    )
    return Moves(
        model=answer.name,
        items=[
            Moved(
                **source.item(move.item).model_dump(),
                before=move.before,
                after=move.after,
                score_before=number_or_none(before.get(move.item)),
                score_after=number_or_none(after.get(move.item)),
                change=move.change,
            )
            for move in movement(list(before), list(after))
        ],
    )
