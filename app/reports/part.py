"""What a part of a report declares, and what it is made from.

A part is one module of app/reports/parts with a `PART`: its title and place, the form of its content in report.json, how it is
computed, shown, tabled and checked. Everything else asks all parts in turn (app/reports/parts/__init__.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from app import examples
from app.analysis.recommend import Answer, ask
from app.reports.blocks import Block, Table
from app.reports.fields import Item
from app.styles import titled
from app.text import clean
from engine.cards import require
from engine.errors import SeqscopeError
from engine.runtime import Zoo

if TYPE_CHECKING:
    from app.reports.document import Asked, Report

Content = TypeVar("Content")
History = tuple[int, ...]
TOLERANCE = 1e-4
Entry = TypeVar("Entry")
_MISSING = object()


@dataclass(frozen=True)
class Source:
    """What parts are computed from: the models that are shown, and what was asked of them."""

    models: Zoo
    names: list[str]
    asked: Asked
    person: int | None
    """The row of the person whose history it is, where they may be named."""
    tell: Callable[[str], None]

    @cached_property
    def history(self) -> History:
        return positions(self.models, self.asked.history or [])

    @property
    def tells_history(self) -> bool:
        """Whether the report does: where not, no part has an item of it for its own sake."""
        return "history" in self.asked.parts

    @property
    def shown_history(self) -> History:
        """Empty where the report does not tell it."""
        return self.history if self.tells_history else ()

    @cached_property
    def target(self) -> int | None:
        """What truly came next, where the person may be named."""
        return None if self.person is None else self.models.next_item(self.person)

    @cached_property
    def answers(self) -> list[Answer]:
        """Every model's list after the history."""
        answers: list[Answer] = []
        for name in self.names:
            self.tell(f"Asking {self.models.bundles[name].manifest.title}")
            answers += ask(self.models, [name], self.history, self.asked.k, target=self.target)
        return answers

    @cached_property
    def explained(self) -> int | None:
        """The item whose score is explained: the one that was asked for, else the first one of the first list."""
        if self.asked.item is not None:
            return positions(self.models, [self.asked.item])[0]
        return next((answer.items[0] for answer in self.answers if answer.items), None)

    def item(self, position: int) -> Item:
        return Item(item_id=self.models.item_ids[position], title=titled(self.models, position))


def positions(models: Zoo, ids: Sequence[str]) -> History:
    """Item numbers. Raises SeqscopeError where the catalogue lacks one."""
    items = [models.position(item_id) for item_id in ids]
    missing = [item_id for item_id, item in zip(ids, items, strict=True) if item is None]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise SeqscopeError(f"The catalogue {models.info.name} has no item “{missing[0][:80]}”{more}.")
    return tuple(item for item in items if item is not None)


def person_of(models: Zoo, request: Asked) -> int | None:
    """The row of the person whose history this is, where they may be named."""
    row = examples.user_row(models, request.user) if request.rows else None
    if row is None:
        return None
    known = [models.item_ids[item] for item in models.users["history"][row].as_py()]
    history = request.history or []
    return row if history and known[-len(history) :] == list(history) else None


class Part(ABC, Generic[Content]):
    """A part of a report. Texts are plain: whoever shows them escapes them. One that lacks something is refused by name."""

    name: str
    """In addresses and commands; the field of the report has underscores for dashes."""
    title: str
    """Where parts are chosen."""
    heading: str
    """Above it in the report."""
    busy: str
    """What is told while it is made."""
    order: int
    """Its place among the parts."""
    content: Any
    """The type of its content, from which the schema and the checks of report.json are made."""
    always = False
    """Whether it is there wherever it was asked for, if empty."""
    of_history = True
    """Whether it cannot be asked again without the history."""
    scored = False
    """Whether it shows scores of several models."""
    note = ""
    """What has to be known to read it."""

    def __init__(self) -> None:
        require(type(self), "name", "title", "heading", "busy", "order", "content")

    @property
    def field(self) -> str:
        return self.name.replace("-", "_")

    def of(self, report: Report) -> Content | None:
        """None where the report lacks it."""
        content: Content | None = getattr(report, self.field)
        return content

    def possible(self, models: Zoo, names: Sequence[str]) -> bool:
        """Whether these models can have it at all; where not, it is not offered and not missed."""
        return True

    @abstractmethod
    def make(self, source: Source) -> Content | None:
        """Asks the models. None where there is nothing."""

    def named(self, content: Content) -> list[str]:
        """The models that it names."""
        return [entry.model for entry in self.entries(content)]

    def entries(self, content: Any) -> Sequence[Any]:
        """One per model, where it has such."""
        return content if isinstance(content, list) else getattr(content, "models", [])

    def check(self, content: Content, report: Report) -> None:
        """Raises ValueError where it does not fit the rest of the report."""

    def items(self, content: Content) -> Iterable[Item]:
        """With their titles."""
        return ()

    def tables(self, content: Content, report: Report) -> dict[str, Table]:
        """Name → table, each a CSV file."""
        return {}

    @abstractmethod
    def blocks(self, content: Content, report: Report) -> list[Block]:
        """As it is shown, in HTML and PDF."""

    def compare(self, report: Report, then: Content, now: Content) -> Iterator[Checked]:
        """As it is in the report, against as it would be now."""
        yield as_told(report, self.name, then, now)


class ByModel(Part[Content]):
    """A part with an entry per model, each checked by itself."""

    called: str
    """What an entry is called before its model."""

    def compare(self, report: Report, then: Content, now: Content) -> Iterator[Checked]:
        titles = report.titles
        yield from each(
            self.name, self.entries(then), self.entries(now),
            lambda entry: entry.model,
            lambda entry: f"{self.called} {titles[entry.model]}",
            lambda subject, then, other: self.compare_entry(report, subject, then, other),
        )  # fmt: skip

    def compare_entry(self, report: Report, subject: str, then: Any, now: Any) -> Checked:
        return as_told(report, subject, then, now, "the same, numbers within the tolerance")


class OfItem(ByModel[Content]):
    """A part that explains one item, model by model."""

    def compare(self, report: Report, then: Any, now: Any) -> Iterator[Checked]:
        item = same("item", then.model_dump(exclude={"models"}), now.model_dump(exclude={"models"}))
        if not item.holds:
            yield Checked(self.name, False, item.words)
        yield from super().compare(report, then, now)


def as_told(report: Report, name: str, then: Any, now: Any, words: str = "the same") -> Checked:
    if report.schema_version == 1:  # it lacks some fields; in a later format they were left out
        now = now.model_copy(update=then.unsaid())
    return same(name, then.model_dump(), now.model_dump(), words)


# --- whether two things that reports say are the same: numbers within a tolerance, all else to the letter


class Checked(NamedTuple):
    """One thing that a report says."""

    subject: str
    holds: bool | None
    """None: it cannot be asked again."""
    words: str


def same(subject: str, then: Any, now: Any, words: str = "the same") -> Checked:
    """words: where there is no difference."""
    wrong = difference(then, now)
    return Checked(subject, wrong is None, wrong or words)


def difference(then: Any, now: Any, where: str = "") -> str | None:
    """The first difference, in words; None where there is none. Numbers with a fraction may differ by the tolerance."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key in [*then, *(key for key in now if key not in then)]:
            wrong = difference(then.get(key, _MISSING), now.get(key, _MISSING), f"{where}.{key}".lstrip("."))
            if wrong is not None:
                return wrong
        return None
    if isinstance(then, list) and isinstance(now, list):
        if len(then) != len(now):
            return f"{where} had {len(then)} entries, now {len(now)}"
        for place, (was, is_now) in enumerate(zip(then, now, strict=True), 1):
            wrong = difference(was, is_now, f"{where} {place}")
            if wrong is not None:
                return wrong
        return None
    if isinstance(then, float) and isinstance(now, float):
        near = abs(then - now) <= TOLERANCE * max(1.0, abs(then), abs(now))
        return None if near else f"{where} was {then:.7g}, now it is {now:.7g}"
    return None if then == now else f"{where} was {_told(then)}, now it is {_told(now)}"


def _told(value: Any) -> str:
    return "nothing" if value is None or value is _MISSING else f"“{clean(value, 80)}”"


def each(
    part: str,
    then: Sequence[Entry],
    now: Sequence[Entry],
    key: Callable[[Entry], Hashable],
    subject: Callable[[Entry], str],
    compare: Callable[[str, Entry, Entry], Checked],
) -> Iterator[Checked]:
    """Entry by entry, and what either side has alone. subject: how an entry is called."""
    fresh = {key(entry): entry for entry in now}
    seen: list[Hashable] = []
    for entry in then:
        name = key(entry)
        if name in seen:
            yield Checked(subject(entry), False, "it is in the report twice")
        elif name not in fresh:
            yield Checked(subject(entry), False, "there is nothing here that it could be compared with")
        else:
            yield compare(subject(entry), entry, fresh[name])
        seen.append(name)
    for name, entry in fresh.items():
        if name not in seen:
            yield Checked(subject(entry), False, "it is missing from the report")
    if [name for name in dict.fromkeys(seen) if name in fresh] != [name for name in fresh if name in seen]:
        yield Checked(part, False, "they are in another order now")
