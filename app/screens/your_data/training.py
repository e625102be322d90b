"""Training on a log of the visitor's: which models, how long, what that would take, and off it goes."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import guard, home, work
from app.jobs import fresh, kinds
from app.jobs.estimate import JobEstimate, estimate
from app.jobs.kinds import TrainingChoice
from app.store.records import StoredDataset
from app.text import listed, md, span
from engine.cards import KINDS, OTHER, Trainable, by_kind
from engine.errors import SeqscopeError
from engine.writing import count

LONG = 3600.0
"""Seconds from which the estimate advises fewer epochs."""
_BUDGETS: dict[str, tuple[str, int | None]] = {
    "least": ("3 epochs", 3),
    "short": ("A quick look: 10 epochs", 10),
    "medium": ("40 epochs", 40),
    "full": ("As many as the recipe allows", None),
}


class _Estimates(NamedTuple):
    """What was estimated for a choice. A job draws the page anew when it has made something; an estimate then goes on."""

    models: tuple[str, ...]
    budget: str
    tried: tuple[TrainingChoice | str, ...] = ()
    """Of the models tried so far, with its estimates; a text: why it cannot be trained."""


def show(owner: str, dataset: StoredDataset, busy: bool) -> None:
    folder = home.here().dataset(owner, dataset.id)
    if not dataset.rows_events:
        return
    with st.expander("Train models on the log", key=f"data_training_{dataset.id}", icon=":material/model_training:"):
        if not work.log_prepared(folder):
            st.caption("The log must be prepared first.")
            return
        every = {name: model for name, model in kinds.models().items() if name != kinds.UNASKED}
        untimed = fresh.has_times(folder.path / "data") is False
        offered = {name: model for name, model in every.items() if not (untimed and model.page.times)}
        missing = [name for name in offered if not (folder.exports / name / "manifest.json").is_file()]
        for kind, names in by_kind({name: model.declaration.kind for name, model in offered.items()}).items():
            st.pills(
                kind, names, selection_mode="multi", default=[n for n in names if n in missing and offered[n].page.chosen],
                format_func=lambda name: offered[name].title if name in offered else name, key=_key(dataset.id, kind), wrap=True,
            )  # fmt: skip
        if untold := [md(model.title) for name, model in every.items() if name not in offered]:
            st.caption(f"Not offered, since they read when events were and this log has no times: {listed(untold)}.")
        budget = st.segmented_control(
            "At most", list(_BUDGETS), default="short", required=True, key=f"data_budget_{dataset.id}",
            format_func=lambda name: _BUDGETS[name][0] if name in _BUDGETS else str(name),
            help="Training stops earlier once validation no longer improves. Models that count need no epochs.",
        )  # fmt: skip
        chosen = _chosen(dataset.id, offered)
        budget = budget if budget in _BUDGETS else "short"
        key = f"data_estimates_{dataset.id}"
        estimates: _Estimates | None = st.session_state.get(key)
        if estimates is not None and (estimates.models, estimates.budget) != (chosen, budget):
            estimates = None
        # by a callback: a job that draws the page anew in the moment of the click takes what st.button returns with it
        st.button(
            "How long would that take?", key=f"data_estimate_{dataset.id}", disabled=not chosen, icon=":material/timer:",
            type="secondary" if estimates else "primary", on_click=guard.callback(_estimate, dataset.id, offered),
        )  # fmt: skip
        if estimates is not None:
            if left := chosen[len(estimates.tried) :]:
                with st.spinner("Trying some steps of each model on this machine …", show_time=True):
                    place = st.empty()
                    for model in left:
                        st.session_state[key] = estimates
                        estimates = estimates._replace(
                            tried=(*estimates.tried, _try(owner, folder, estimates, model, place))
                        )
                    place.empty()
                st.session_state[key] = estimates
            _answer(owner, dataset, estimates, busy)


def _key(id: str, kind: str) -> str:
    return f"data_models_{id}_{kind}"


def _chosen(id: str, offered: Mapping[str, Trainable]) -> tuple[str, ...]:
    """Whose pills are pressed."""
    pressed = {name for kind in (*KINDS.values(), OTHER) for name in st.session_state.get(_key(id, kind)) or ()}
    return tuple(name for name in offered if name in pressed)


def _estimate(id: str, offered: Mapping[str, Trainable]) -> None:
    """Begins the estimates of what is chosen as the button is clicked."""
    budget = st.session_state.get(f"data_budget_{id}")
    st.session_state[f"data_estimates_{id}"] = _Estimates(
        _chosen(id, offered), budget if budget in _BUDGETS else "short"
    )


def settings(model: str, budget: str) -> dict[str, int | float | str | bool]:
    """What the budget sets in the recipe of a model."""
    epochs = _BUDGETS[budget][1]
    return {} if epochs is None or not kinds.models()[model].declaration.learns else {"training.epochs": epochs}


def _try(
    owner: str, folder: home.Folder, estimates: _Estimates, model: str, place: DeltaGenerator
) -> TrainingChoice | str:
    number = f"{estimates.models.index(model) + 1} of {len(estimates.models)}, {kinds.models()[model].title}"

    def wait(words: str) -> None:
        place.caption(md(f"{number}. {words} …"))

    try:
        choice = kinds.choose(folder.path, model, settings(model, estimates.budget))
        return _tried(folder.path, choice, owner, wait)
    except SeqscopeError as error:
        return guard.shown(error)


def _tried(
    folder: Path, choice: TrainingChoice, owner: str = "", wait: Callable[[str], None] | None = None
) -> TrainingChoice:
    """With its estimates: of what comes before it, learning alone."""
    before = None if choice.before is None else _tried(folder, choice.before, owner, wait)
    if before is not None and before.estimate is not None:
        cost = before.estimate
        less = {"start": cost.start / 3, "evaluate": 0.0, "export": 0.0}
        less["seconds"] = less["start"] + cost.train + cost.validation
        before = before.model_copy(update={"estimate": cost.model_copy(update=less)})
    measured = estimate(folder, choice.recipe, choice.tried, owner=owner, on_wait=wait)
    return choice.model_copy(update={"estimate": measured, "before": before})


def _answer(owner: str, dataset: StoredDataset, estimates: _Estimates, busy: bool) -> None:
    able = [tried for tried in estimates.tried if isinstance(tried, TrainingChoice)]
    for name, tried in zip(estimates.models, estimates.tried, strict=True):
        if isinstance(tried, str):
            st.caption(f":material/block: **{md(kinds.models()[name].title)}** cannot be trained: {md(tried, 600)}")
        else:
            st.caption(f":material/timer: **{md(kinds.models()[name].title)}** – {md(choice_words(tried))}")
    if not able:
        return
    every = [cost for choice in able for cost in choice.estimates]
    seconds = sum(cost.seconds for cost in every)
    most = "At most " if any(cost.at_most for cost in every) else "About "
    where = listed(sorted({cost.device for cost in every}))
    st.markdown(f"**{most}{md(span(seconds))}** in all, on {md(where)}, if nothing else runs here.")
    if seconds > LONG and estimates.budget != "least":
        st.warning(
            "That is more than an hour. Fewer epochs take less time, and the models learn less.",
            icon=":material/hourglass_top:",
        )
    st.button(
        f"Train {count(len(able), 'model')}", key=f"data_train_{dataset.id}", type="primary", icon=":material/play_arrow:",
        on_click=guard.callback(_train, owner, dataset.id, estimates),
        help="It waits until the job before it has ended." if busy else None,
    )  # fmt: skip


def choice_words(choice: TrainingChoice) -> str:
    """What the estimates of a choice say, in words."""
    *first, last = choice.estimates
    if not first or choice.before is None:
        return words(last)
    stage, cost = kinds.models()[choice.model].page.first_title, first[0]
    most = "at most" if cost.at_most else "about"
    return (
        f"first {stage}, {most} {span(cost.seconds)}: {count(cost.epochs, 'epoch')} of {count(cost.steps, 'step')}; "
        f"then {words(last)}"
    )


def words(estimate: JobEstimate) -> str:
    """What an estimate says, in words."""
    most = "at most" if estimate.at_most else "about"
    if not estimate.epochs:
        return f"{most} {span(estimate.seconds)}: counted, evaluated and exported"
    shares = (estimate.start, estimate.train + estimate.validation, estimate.evaluate + estimate.export)
    parts = "{} to start, {} of training, {} of evaluation and export".format(*map(span, shares))
    return f"{most} {span(estimate.seconds)}: {count(estimate.epochs, 'epoch')} of {count(estimate.steps, 'step')}; {parts}"


def _train(owner: str, id: str, estimates: _Estimates) -> None:
    key = f"data_estimates_{id}"
    # Taken out first: a second click would train it twice. Where another run was asked for meanwhile, Streamlit ends a callback
    # at its next look at the session, so that after the training it might stay.
    if st.session_state.pop(key, None) is None:
        return
    try:
        work.train(owner, id, [tried for tried in estimates.tried if isinstance(tried, TrainingChoice)])
    except SeqscopeError:
        st.session_state[key] = estimates
        raise
    st.toast("Training is under way: its progress stands above, with the dataset.", icon=":material/play_arrow:")
