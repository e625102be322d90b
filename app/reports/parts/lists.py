"""What each model recommends after the history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from app.analysis import beam_search
from app.analysis.recommend import BARS, NO_BARS, SAME_FOR_EVERYBODY, Answer, read_words
from app.analysis.recommend import bar as relative
from app.reports.blocks import Block, Table, grid, quiet, sign
from app.reports.fields import Item, ItemId, Name, ReportModel, number
from app.reports.part import TOLERANCE, ByModel, Checked, Source, difference
from app.text import clean, percent, short
from engine.writing import count

if TYPE_CHECKING:
    from app.reports.document import Report


class Ranked(Item):
    place: int
    score: float
    """In the model's own units: comparable within this list alone."""
    share: float | None
    """The probability that the model gives it, among all items that could be recommended; of a model that writes codes, that of
    the item's. None where the model gives none."""
    strength: float | None = Field(default=None, exclude_if=lambda value: value is None)
    """Of format 1 alone: the score within the model, from an item in the middle of the catalogue (0) to its best one (1)."""
    ties: list[ItemId] = []
    """Items that the model cannot tell apart from this one."""


class Listing(ReportModel):
    model: Name
    cannot: str | None = None
    """Why there is no list."""
    read: int = 0
    """The latest so many events that the model reads."""
    items: list[Ranked] = []
    target_rank: float | None = None
    """The rank of what truly came next, where that is known and was wanted."""


class Lists(ByModel[list[Listing]]):
    name, title, heading, busy, order = "lists", "Lists", "What each model recommends", "Writing the lists", 20
    content, called = list[Listing], "list of"
    always = scored = True

    def make(self, source: Source) -> list[Listing]:
        return [_listing(source, answer) for answer in source.answers]

    def check(self, content: list[Listing], report: Report) -> None:
        if any((item.strength is None) != (report.schema_version == 2) for item in self.items(content)):
            raise ValueError("strength belongs to lists of format 1, and to no others")

    def items(self, content: list[Listing]) -> list[Ranked]:
        return [item for listing in content for item in listing.items]

    def tables(self, content: list[Listing], report: Report) -> dict[str, Table]:
        times, titles = counts(content), report.titles
        rows = [
            (titles[listing.model], i.place, i.item_id, i.title, i.score, i.share, times[i.item_id], i.ties)
            for listing in content
            for i in listing.items
        ]
        columns = ("model", "place", "item_id", "title", "score", "share", "in lists", "tied with")
        return {"lists": Table("Lists", columns, rows)}

    def blocks(self, content: list[Listing], report: Report) -> list[Block]:
        cards = []
        for listing in content:
            colour = report.model(listing.model).colour
            items = [
                {
                    "id": item.item_id, "place": item.place, "words": short(clean(item.title), 90), "tags": list(tags),
                    "truth": CAME_NEXT in tags, "bar": bar(listing, item), "colour": colour,
                }
                for item, tags in zip(listing.items, _tags(listing, content, report), strict=True)
            ]  # fmt: skip
            cards.append(
                {
                    "head": sign(report, listing.model),
                    "note": clean(listing.cannot or note(listing, report)),
                    "items": items,
                }
            )
        return [quiet(bars(report)), {"kind": "lists", "lists": cards}, *grid(self.tables(content, report)["lists"])]

    def compare_entry(self, report: Report, subject: str, then: Listing, now: Listing) -> Checked:
        """The same items in the same order, scores within the tolerance."""
        old = any(item.strength is not None for item in then.items)  # of format 1, whose shares are made by other rules
        left_out = {"items": {"__all__": {"share", "strength"}}} if old else None
        wrong = difference(then.model_dump(exclude=left_out), now.model_dump(exclude=left_out))
        if then.cannot is not None or now.cannot is not None:
            if (then.cannot is None) != (now.cannot is None):
                wrong = f"then: {clean(then.cannot or 'a list', 300)}; now: {now.cannot or 'a list'}"
            return Checked(subject, wrong is None, wrong or "there is none, as before")
        for place in range(max(len(then.items), len(now.items))):
            was, is_ = (items[place].item_id if place < len(items) else "nothing" for items in (then.items, now.items))
            if was != is_:
                return Checked(
                    subject, False, f"place {place + 1} was “{clean(was, 80)}”, now it is “{clean(is_, 80)}”"
                )
        items = f"the same {count(len(then.items), 'item')} in the same order"
        within = f"scores within {TOLERANCE:g}{'; the shares of format 1 are not compared' if old else ''}"
        return Checked(subject, wrong is None, f"{items}, {f'but {wrong}' if wrong else within}")


PART = Lists()
CAME_NEXT = "came next"


def _listing(source: Source, answer: Answer) -> Listing:
    read = len(source.models.bundles[answer.name].used(source.history))
    if answer.top is None:
        return Listing(model=answer.name, cannot=answer.cannot, read=read)
    # where exact scores take long, a place in the list is no rank among all items
    slow = beam_search.slow(source.models, answer.name, 1)
    shares = [None] * len(answer.items) if answer.top.share is None else answer.top.share.tolist()
    return Listing(
        model=answer.name,
        read=read,
        items=[
            Ranked(
                **source.item(item).model_dump(),
                place=place,
                score=number(score),
                share=None if share is None else number(share),
                ties=[source.models.item_ids[other] for other in answer.ties.get(item, [])],
            )
            for place, (item, score, share) in enumerate(
                zip(answer.items, answer.top.scores.tolist(), shares, strict=True), 1
            )
        ],
        target_rank=None if slow else answer.target_rank,
    )


def counts(lists: Sequence[Listing]) -> Counter[str]:
    """item_id → how many of the lists it is in."""
    return Counter(item.item_id for listing in lists for item in listing.items)


def bars(report: Report) -> str:
    """What the bars of its lists show."""
    if report.schema_version == 1:
        return "Bars: the score within each model, from an item in the middle of the catalogue to its best one."
    return BARS


def bar(listing: Listing, item: Ranked) -> float | None:
    """How long an item's bar is, 0 to 1; None where its model gives no probabilities."""
    first = listing.items[0].share
    if item.strength is not None:
        return item.strength
    return None if item.share is None or first is None else relative(item.share, first)


def note(listing: Listing, report: Report) -> str:
    """How much of the history it read, and where what came next stands."""
    length = len(report.asked.history or [])
    words = []
    if report.model(listing.model).family in SAME_FOR_EVERYBODY:
        words.append("the same for everybody")
    elif listing.read:
        words += read_words(listing.read, length)
    if any(item.share is None for item in listing.items):
        words.append(NO_BARS)
    if listing.target_rank is not None:
        words.append(f"what came next: rank {listing.target_rank:,.10g}")
    return "; ".join(words)


def _tags(shown: Listing, lists: Sequence[Listing], report: Report) -> Iterator[list[str]]:
    """Per item, what is said behind it."""
    times, history = counts(lists), report.history
    able = sum(listing.cannot is None for listing in lists)
    known = set() if history is None else {item.item_id for item in history.items}
    target = None if history is None or history.target is None else history.target.item_id
    for item in shown.items:
        yield [
            *([percent(item.share)] if item.share is not None and item.strength is None else []),
            *([f"in {times[item.item_id]} of {able}"] if times[item.item_id] > 1 else []),
            *([f"tied with {len(item.ties)}"] if item.ties else []),
            *(["in the history"] if item.item_id in known else []),
            *([CAME_NEXT] if item.item_id == target else []),
        ]
