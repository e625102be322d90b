"""Where one item would stand without each event of the history: leave-one-out of every model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from app.analysis import beam_search, recommend
from app.figures import compare
from app.reports import charts
from app.reports.blocks import Block, Figure, Table, figures, grid, key, p, quiet, sign
from app.reports.fields import Item, Name, Rank, ReportModel, number, numbers
from app.reports.part import OfItem, Source
from app.text import clean, listed, ordinal
from engine.errors import SeqscopeError
from engine.runtime import Contributions, LeaveOneOut, rank_move

if TYPE_CHECKING:
    from app.reports.document import Report

_EVENTS = 24  # rows of the figure, the latest ones


class Effect(ReportModel):
    LATER: ClassVar[tuple[str, ...]] = ("log_probability", "given", "prior", "parts")

    model: Name
    cannot: str | None = None
    rank: Rank | None = None
    effect: list[float | None] = []
    """Score with each event minus the score without it, in the model's units; None where there is nothing to ask."""
    rank_without: list[Rank | None] = []
    """Among the same candidates as `rank`: all items but those of the history, and the item itself."""
    log_probability: list[float | None] = []
    """With each event minus without it: natural logarithms of the item's probability among the candidates, of a model that writes
    codes of the probability of its codes. Empty where the model gives none, and in reports of before."""

    given: list[float] = []
    """Of a model whose score is the sum of what each event of the history gave and of `prior`: these parts. Empty for others, and
    in reports of before."""
    prior: float | None = None
    """What the item has whatever the history; None where nothing is given."""
    parts: dict[str, float] = {}
    """Of a model whose score is the sum of parts that have names and of `prior`: what an average item has, and what each part
    puts on top of it."""

    @property
    def sums(self) -> Contributions | None:
        if self.prior is None:
            return None
        return Contributions(np.array(self.given, np.float32), self.prior, self.parts)

    @property
    def moves(self) -> list[float | None]:
        """Powers of ten that the rank would grow by without each event (`rank_move`); above 0 the event speaks for the item."""
        if self.rank is None:
            return []
        return [None if math.isnan(move) else move for move in rank_move(self.rank, _array(self.rank_without)).tolist()]

    def answer(self) -> LeaveOneOut:
        """As the model gave it; what is not told of it is NaN."""
        assert self.rank is not None
        score, events = _array(self.effect), len(self.effect)
        probable = _array(self.log_probability) if self.log_probability else np.full(events, math.nan, np.float32)
        without = np.array([math.nan if rank is None else rank for rank in self.rank_without])
        return LeaveOneOut(0, self.rank, without, math.nan, probable, math.nan, score, range(events))


class Effects(Item):
    """Where one item would stand without each event of the history."""

    models: list[Effect]


class EffectsPart(OfItem[Effects]):
    name, title, heading, busy, order = "effects", "Why this item", "Why this item?", "Leaving events out", 40
    content, called = Effects, "effects of"
    scored = True

    def make(self, source: Source) -> Effects | None:
        """None where there is no item or no history to leave out of."""
        item = source.explained
        if item is None or not source.history:
            return None
        return Effects(**source.item(item).model_dump(), models=[_effect(source, name, item) for name in source.names])

    def check(self, content: Effects, report: Report) -> None:
        lengths = {
            len(values)
            for effect in content.models
            for values in (effect.effect, effect.rank_without, effect.log_probability, effect.given)
        }
        if len(lengths - {0}) > 1 or any(len(effect.effect) != len(effect.rank_without) for effect in content.models):
            raise ValueError("effects are of different lengths")
        if report.asked.history is not None and lengths - {0, len(report.asked.history)}:
            raise ValueError("effects are of another length than the history")
        if any(effect.effect and effect.rank is None for effect in content.models):
            raise ValueError("effects without a rank")
        if any((effect.prior is None) == bool(effect.given or effect.parts) for effect in content.models):
            raise ValueError("parts of a score without one another")

    def tables(self, content: Effects, report: Report) -> dict[str, Table]:
        able = [effect for effect in content.models if effect.effect or effect.given]
        history, titles, names = report.asked.history, report.titles, report.item_titles
        events = history if history is not None else [""] * _length(content)
        columns, values = [], []
        for effect in able:
            kinds: dict[str, Sequence[float | None]] = {
                "rank": [effect.rank] * len(effect.effect), "rank without": effect.rank_without,
                "log-probability with − without": effect.log_probability, "score with − without": effect.effect,
                "gave": effect.given,
            }  # fmt: skip
            columns += [f"{titles[effect.model]}: {kind}" for kind, entries in kinds.items() if entries]
            values += [entries for entries in kinds.values() if entries]
        rows = [
            (at + 1, item_id, names.get(item_id, ""), *(entries[at] for entries in values))
            for at, item_id in enumerate(events)
        ]
        return {"effects": Table(f"Leaving events out: {content.title}", ("place", "item_id", "title", *columns), rows)}

    def blocks(self, content: Effects, report: Report) -> list[Block]:
        able, titles = [effect for effect in content.models if effect.effect], report.titles
        ranks = listed(
            [f"{titles[effect.model]} {ordinal(effect.rank)}" for effect in content.models if effect.rank is not None]
        )
        text = (
            f"Where “{clean(content.title, 120)}” would stand if one item of the history were left out. Bars to the right: it "
            "would fall, so that item speaks for it; to the left: it would rise. They are moves of its rank, on one log scale, "
            "always among what could be recommended after the whole history; the rank without an item stands beside its bar, or "
            f"is told to who points at it.{f' Its rank now: {ranks}.' if ranks else ''}"
        )
        if able and len(able[0].effect) > _EVENTS:
            text += f" Drawn are the latest {_EVENTS} of {len(able[0].effect)} items."
        return [
            p(text),
            *([figures(_figure(content, able, report))] if able else []),
            key(sign(report, effect.model) for effect in able),
            *(
                quiet(f"{titles[effect.model]}: {clean(effect.cannot)}")
                for effect in content.models
                if effect.cannot is not None
            ),
            *(
                p(recommend.sum_words(titles[effect.model], effect.sums, _event_titles(content, report)))
                for effect in content.models
                if effect.sums is not None
            ),
            *grid(self.tables(content, report)["effects"]),
        ]


PART = EffectsPart()


def _array(values: Sequence[float | None]) -> np.ndarray:
    return np.array([math.nan if value is None else value for value in values], np.float64)


def _length(content: Effects) -> int:
    """How many events the history has, as far as the parts say."""
    return max((max(len(effect.effect), len(effect.given)) for effect in content.models), default=0)


def _event_titles(content: Effects, report: Report) -> list[str]:
    history, names = report.asked.history, report.item_titles
    if history is None:  # a report that does not tell it
        return [f"event {place}" for place in range(1, _length(content) + 1)]
    return [f"“{clean(names.get(item_id, item_id), 60)}”" for item_id in history]


def _effect(source: Source, model: str, item: int) -> Effect:
    parts: dict[str, Any] = {}
    if beam_search.slow(source.models, model, len(source.history)) and not source.asked.slow:
        reason = (
            "It would write every item's codes anew for each event left out, which takes long; it was not asked to."
        )
        return Effect(model=model, cannot=reason)
    try:
        sums = recommend.contributions(source.models, model, source.history, item)
        if sums is not None:
            parts = {
                "given": [number(part) for part in sums.events.tolist()],
                "prior": number(sums.prior),
                "parts": {name: number(part) for name, part in sums.parts.items()},
            }
        answer = recommend.explain(source.models, model, source.history, item)
    except SeqscopeError as reason:
        return Effect(model=model, cannot=str(reason), **parts)
    return Effect(
        model=model,
        rank=answer.rank,
        effect=numbers(answer.effect.tolist()),
        log_probability=numbers(answer.log_probability_effect.tolist())
        if math.isfinite(answer.log_probability)
        else [],
        rank_without=[None if math.isnan(rank) else rank for rank in answer.rank_without.tolist()],
        **parts,
    )


def _figure(content: Effects, able: Sequence[Effect], report: Report) -> Figure:
    alt = (
        f"What leaving out each item of the history does to the rank of {clean(content.title, 80)}, a column per model"
    )
    history, names, events = report.asked.history, report.item_titles, len(able[0].effect)
    titles = [""] * events if history is None else [clean(names.get(item_id, item_id), 120) for item_id in history]
    places = range(max(0, events - _EVENTS), events)

    def draw(font: str) -> Any:
        labels = [f"{at + 1} · {titles[at]}" if titles[at] else str(at + 1) for at in places]
        columns = [
            charts.Column(
                report.model(effect.model).sign,
                report.model(effect.model).colour,
                [effect.moves[at] for at in places],
                [_moved(effect, at) for at in places],
                ["" if (without := effect.rank_without[at]) is None else f"{without:,.10g}" for at in places],
            )
            for effect in able
        ]
        return charts.effects(labels, columns, alt, font=font)

    def live() -> dict[str, Any]:
        columns = [(report.titles[effect.model], report.model(effect.model).style, effect.answer()) for effect in able]
        return compare.effect_bars(columns, titles, places)

    return Figure("effects", alt, draw, live, wide=True)


def _moved(effect: Effect, at: int) -> str:
    """3rd → 41st, without the event at that place."""
    without = effect.rank_without[at]
    return f"{ordinal(effect.rank or 1)} → {'no answer' if without is None else ordinal(without)}"
