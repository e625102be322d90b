"""Training on a log of the visitor's: which models, how long, what that would take, and off it goes."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from app import guard, home, work
from app.jobs import kinds
from app.jobs.estimate import Estimate, estimate
from app.jobs.kinds import Choice
from app.store.records import Dataset
from app.text import count, listed, md
from app.views import training
from engine.errors import SeqscopeError

LEARNED = ("sasrec", "bert4rec", "attrec")
"""Models that are trained step by step; the others count."""
MODELS = (*LEARNED, "markov", "popularity")
_BUDGETS: dict[str, tuple[str, int | None]] = {
    "short": ("A quick look: 10 epochs", 10),
    "medium": ("40 epochs", 40),
    "full": ("All that the recipe allows", None),
}


class _Asked(NamedTuple):
    """What was estimated for a choice."""

    models: tuple[str, ...]
    budget: str
    found: tuple[Estimate | str, ...]
    """A text: why it cannot be trained."""


def show(owner: str, dataset: Dataset, busy: bool) -> None:
    folder = home.dataset(owner, dataset.id)
    if not dataset.rows_events:
        return
    with st.expander("Train models on the log", icon=":material/model_training:"):
        if not (folder.data / "dataset.json").is_file():
            st.caption("The log must be prepared first.")
            return
        missing = [name for name in MODELS if not (folder.exports / name / "manifest.json").is_file()]
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            models = st.pills(
                "Models", MODELS, selection_mode="multi", default=[name for name in missing if name in ("sasrec", "markov")],
                format_func=lambda name: kinds.MODELS.get(name, name), key=f"data_models_{dataset.id}",
            )  # fmt: skip
            budget = st.segmented_control(
                "At most", list(_BUDGETS), default="short", required=True, key=f"data_budget_{dataset.id}",
                format_func=lambda name: _BUDGETS[name][0] if name in _BUDGETS else str(name),
                help="Training stops earlier where it brings nothing any more. Models that count need no epochs.",
            )  # fmt: skip
        chosen = tuple(name for name in MODELS if name in (models or ()))
        budget = budget if budget in _BUDGETS else "short"
        key = f"data_asked_{dataset.id}"
        asked: _Asked | None = st.session_state.get(key)
        if asked is not None and (asked.models, asked.budget) != (chosen, budget):
            asked = None
        if st.button(
            "How long would that take?", key=f"data_estimate_{dataset.id}", disabled=not chosen, icon=":material/timer:",
            type="secondary" if asked else "primary",
        ):  # fmt: skip
            asked = st.session_state[key] = _ask(folder, chosen, budget)
        if asked is not None:
            _answer(owner, dataset, asked, busy)


def settings(model: str, budget: str) -> dict[str, int | float | str | bool]:
    """What the budget sets in the recipe of a model."""
    epochs = _BUDGETS[budget][1]
    return {} if epochs is None or model not in LEARNED else {"training.epochs": epochs}


def _ask(folder: home.Folder, models: tuple[str, ...], budget: str) -> _Asked:
    found: list[Estimate | str] = []
    with st.spinner("Trying some steps of each model on this machine …", show_time=True):
        for model in models:
            try:
                found.append(estimate(folder.path, model, settings(model, budget)))
            except SeqscopeError as error:
                found.append(str(error))
    return _Asked(models, budget, tuple(found))


def _answer(owner: str, dataset: Dataset, asked: _Asked, busy: bool) -> None:
    able = [(name, found) for name, found in zip(asked.models, asked.found, strict=True) if isinstance(found, Estimate)]
    for name, found in zip(asked.models, asked.found, strict=True):
        if isinstance(found, str):
            st.caption(f":material/block: **{md(kinds.MODELS[name])}** cannot be trained: {md(found, 600)}")
        else:
            st.caption(f":material/timer: **{md(kinds.MODELS[name])}** – {md(words(found))}")
    if not able:
        return
    total = training.span(sum(found.seconds for _, found in able))
    most = "At most " if any(found.at_most for _, found in able) else "About "
    where = listed(sorted({found.device for _, found in able}))
    st.markdown(f"**{most}{md(total)}** in all, on {md(where)}, if nothing else runs here.")
    st.button(
        f"Train {count(len(able), 'model')}", key=f"data_train_{dataset.id}", type="primary", icon=":material/play_arrow:",
        on_click=guard.callback(_train), args=(owner, dataset.id, asked),
        help="It waits until the job before it has ended." if busy else None,
    )  # fmt: skip


def words(found: Estimate) -> str:
    """What an estimate says, in words."""
    if not found.epochs:
        return f"about {training.span(found.seconds)}: it counts, and is evaluated and exported"
    learn, judge = training.span(found.train + found.validation), training.span(found.evaluate + found.export)
    parts = f"{learn} to learn, {judge} to judge and export"
    most = "at most" if found.at_most else "about"
    return f"{most} {training.span(found.seconds)}: {count(found.epochs, 'epoch')} of {count(found.steps, 'step')}; {parts}"


def _train(owner: str, id: str, asked: _Asked) -> None:
    choices = [
        Choice(model=name, settings=settings(name, asked.budget), estimate=found)
        for name, found in zip(asked.models, asked.found, strict=True)
        if isinstance(found, Estimate)
    ]
    work.train(owner, id, choices)
    st.session_state.pop(f"data_asked_{id}", None)
