"""Metrics: slices, users grouped by their held-out item or by their history."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import export
from app.analysis import evaluation, floor, metrics
from app.components import choice, sections, widgets
from app.figures import metrics as figures
from app.screens.metrics.choices import MetricsChoices
from app.text import clean, md
from engine.runtime import judge

_DRAWN = 8
"""So many models at once: with more, a slice is taller than a screen."""


def show(this: MetricsChoices) -> None:
    options = evaluation.sliceable(this.models, this.protocol)
    by = choice.selected(
        "Group users by",
        "by",
        {by: clean(words, 80) for by, words in options.items()},
        next(iter(options)),
        key=f"metrics_slice_{this.models.info.name}",
        width=420,
    )
    table = this.of_kind(evaluation.slices(this.models, this.protocol, by, this.metric))
    if table.empty:
        st.info(f"No held-out item has a value here, so there are no groups. Choose another attribute. {this.beams()}")
        return
    drawn = _few(this)
    export.figure(
        export.shared_figure(
            figures.slices, table[table["model"].isin(drawn)], this.metric, this.titles, this.looks, widgets.on_phone()
        ),
        key="metrics_slices",
        alt=f"{this.metric} of {len(drawn)} models by {clean(options[by], 80).lower()}, with 95% intervals.",
        table=this.named(table),
        name=f"slices {by} {this.metric}",
        columns={"mean": widgets.FOUR_DIGITS, "low": widgets.FOUR_DIGITS, "high": widgets.FOUR_DIGITS},
    )
    note = (
        "Slices overlap: a user whose held-out item has several values counts in each of them."
        if evaluation.overlap(this.models, by)
        else "By the value of the held-out item."
        if by.startswith("attribute:")
        else "Only models that read item text, or semantic IDs made from it, can know an item unseen in training."
        if by == evaluation.COLD
        else "Whether the user returns to an item or moves to a new one; only users whose histories are exported."
        if by == evaluation.REPEATED
        else "Groups of about equal size."
    )
    if len(drawn) < len(this.people):
        note = (
            f"Shown: the {len(drawn)} best of {len(this.people)}, including one without training. The table under the figure has "
            f"all; choose others by kind above. {note}"
        )
    if table["few"].any():
        note += f" Grey: fewer than {metrics.FEW} users."
    if (table["high"] == 0).any():
        note += " Where no item was found the interval has no width; up to 3 in n are still possible (rule of three)."
    st.caption(note)
    _groups_of_the_verdict(this)


def _few(this: MetricsChoices) -> list[str]:
    """The rows that are drawn: the best, and the best of those that need no training."""
    rows = [row for row in this.rows if row in this.people]
    if len(rows) <= _DRAWN:
        return rows
    counted = floor.best(this.means(), this.families)
    return [*([counted[0]] if counted else []), *floor.learned(rows, this.families)][:_DRAWN]


def _groups_of_the_verdict(this: MetricsChoices) -> None:
    verdict = evaluation.verdict(this.models, this.protocol, this.metric)
    if verdict is None or not verdict.groups or verdict.neural is None or verdict.untrained is None:
        return
    ours, theirs = clean(verdict.neural.title), clean(verdict.untrained.title)
    sections.heading(f"{md(ours)} against {md(theirs)}")
    st.table(
        pd.DataFrame(judge.group_rows(verdict), columns=[column.capitalize() for column in judge.GROUP_COLUMNS]),
        border="horizontal",
        hide_index=True,
        alt=f"Difference in {this.metric} of {ours} to {theirs} by group of users and items.",
    )
