"""What the models say to the history: for a run of the page, and for an edit before it (app/early.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app import zoo
from app.analysis import recommend
from app.components import history
from app.figures import compare
from app.session import history_edits, state
from engine.runtime import Zoo


class Question(NamedTuple):
    """What the models are asked, as a state has it."""

    history: tuple[int, ...]
    """B where there is one, whichever is looked at."""
    pinned: tuple[int, ...] | None
    """A, where there is a B."""
    target: int | None

    @classmethod
    def of(cls, models: Zoo, now: state.State) -> Question:
        whole = state.numbers(models, now.history)
        if now.variant is None:
            return cls(whole, None, state.target(models, now))
        return cls(state.numbers(models, now.variant), whole, state.target(models, now))


def ask(models: Zoo, names: Sequence[str], now: state.State, question: Question) -> list[recommend.Answer]:
    return recommend.ask(models, names, question.history, now.k, pinned=question.pinned, target=question.target)


def for_widget(
    models: Zoo, answers: Sequence[recommend.Answer], now: state.State, question: Question, view: str
) -> dict[str, Any]:
    """The answers for `widgets.recommendations` ({"models"}) or, with the view "ranks", for `widgets.item_ranks`."""
    read, pinned, target = question
    chosen = None if now.item is None else models.position(now.item)
    if view == "lists":
        return {"models": compare.cards(models, answers, read, target=target, chosen=chosen)}
    table = recommend.rank_table(models, answers, read, now.k, pinned=pinned, target=target)
    return compare.rank_table(models, table, read, now.k, target=target, chosen=chosen)


def after(
    act: Mapping[str, Any], folder: str, names: Sequence[str], now: state.State, view: str
) -> dict[str, Any] | None:
    """The lists and the chips after a click that edits the history of this state; None where it edits none. folder: that of the
    models."""
    models, edited = zoo.open_folder(folder), history_edits.clicked(now.current, act)
    if edited is None or models.position(str(act.get("id"))) is None:
        return None
    now = state.edited(now, edited)
    question = Question.of(models, now)
    answers = ask(models, [name for name in names if name in models.bundles], now, question)
    return {"lists": for_widget(models, answers, now, question, view), "chips": history.chips(models, now)}
