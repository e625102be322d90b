"""Metrics: models with their intervals, compared with a baseline, and what is beyond accuracy."""

from functools import partial

import pandas as pd
import streamlit as st

from app import export, glossary
from app.analysis import evaluation, floor, metrics
from app.analysis.tokenizers import digits_of_shares
from app.components import choice, sections, widgets
from app.figures import metrics as figures
from app.screens.metrics.choices import MetricsChoices
from app.text import clean, md
from engine.runtime import judge
from engine.runtime import protocols as naming
from engine.writing import count

_CHOICE = 40
"""Pixels of a choice without its label: as high is what stands beside it, so that a model is at one height in both figures."""


def show(this: MetricsChoices) -> None:
    grid = st.grid(2, min_column_width=420, gap="medium")  # narrower, names and axes would be cut
    with grid.cell():
        _intervals(this)
    with grid.cell():
        sections.folded_on_phone("Difference to a baseline", partial(_against, this), key="metrics_difference")


def _standing(this: MetricsChoices) -> pd.DataFrame:
    return this.of_kind(evaluation.standing(this.models, this.protocol, this.k))


def _intervals(this: MetricsChoices) -> None:
    sections.heading(f"{this.metric}, 95% interval")
    with st.container(height="content" if widgets.on_phone() else _CHOICE, border=False):
        st.caption("Dotted: the best model that needs no training.")
    table = _standing(this)
    part = table[table["metric"] == this.metric]
    export.figure(
        export.shared_figure(figures.dots, part, this.metric, this.titles, this.looks, this.families),
        key="metrics_dots",
        alt=f"{this.metric} of {count(len(metrics.models_of(part['model'])), 'model')} with 95% intervals: those that need no "
        "training first, then the best on top.",
        table=this.named(table),
        name=f"metrics {this.protocol} {this.k}",
        columns=dict.fromkeys(("mean", "low", "high", "holm"), widgets.FOUR_DIGITS),
    )


def _against(this: MetricsChoices) -> None:
    models = list(this.people)
    if len(models) < 2:
        st.info("Only one model was evaluated under this protocol. Choose another protocol to compare two.")
        return
    counted = floor.best(this.means(), this.families)
    baseline = choice.selected(
        "Baseline",
        "baseline",
        {name: this.titles[name] for name in models},
        counted[0] if counted else models[-1],
        key=f"metrics_baseline_{this.models.info.name}_{len(models)}",
        label_visibility="collapsed",
    )
    every = evaluation.against(this.models, this.protocol, baseline, this.metric)
    table = this.of_kind(every)
    if table.empty:
        st.info(f"There is nothing to compare at {this.k}. {this.beams()} Choose a smaller k.")
        return
    scored = _standing(this)
    rows = figures.ordered(scored[scored["metric"] == this.metric], "mean", this.families)["model"].tolist()
    export.figure(
        export.shared_figure(figures.differences, table, rows, baseline, this.metric, this.titles, this.looks),
        key="metrics_differences",
        alt=f"Difference in {this.metric} to {clean(this.titles[baseline])}, with 95% intervals.",
        table=this.named(table),
        name=f"against {baseline} {this.metric}",
        columns=dict.fromkeys(("difference", "low", "high"), widgets.SIGNED)
        | dict.fromkeys(("p", "holm"), widgets.FOUR_DIGITS),
    )
    words = metrics.better_words(table, baseline, metrics.bold(this.titles))
    st.caption(
        f"{words} Paired over the same users; {metrics.adjusted(len(every))}. "
        f"Diamond: the baseline. Open: not significant. {md(evaluation.over_seeds(this.models, this.protocol), 1_000)}"
    )


def beyond(this: MetricsChoices) -> None:
    table = this.of_kind(evaluation.beyond(this.models, this.protocol, this.k))
    heads = {metric.field: metric.at(this.k) for metric in judge.BEYOND.values()}
    if len(table) and table["note"].all():
        st.info(
            md(
                f"n/a: no bundle keeps the lists of “{naming.title(this.protocol)}” at {this.k}; full rankings have them: "
                f"choose “{naming.title(naming.main(this.models.info.repeats, this.models.info.split.get('kind')))}” to see them."
            )
        )
        return
    scored = _standing(this)
    scored = scored[(scored["metric"] == this.metric) & (scored["note"] == "")][["model", "mean"]]
    shown = this.named(table).rename(columns={"model": "Model", "note": "Note", **heads})
    if not table["note"].any():
        shown = shown.drop(columns="Note")
    drawn = table.dropna().merge(scored, on="model")
    export.figure(
        export.shared_figure(
            figures.trade_off, drawn, this.metric, this.k, this.titles, this.looks, widgets.on_phone()
        ),
        key="metrics_beyond",
        alt=f"{this.metric} against Coverage@{this.k} of every model.",
        table=shown,
        name=f"beyond accuracy {this.protocol} {this.k}",
    )
    st.caption(f"Higher: more accurate. To the right: more of all items stand in somebody's first {this.k}.")
    shares = [metric.at(this.k) for metric in judge.BEYOND.values() if metric.form.endswith("%}")]
    in_percent = shown.assign(**{head: 100 * shown[head] for head in shares})
    forms = {head: f"%.{digits_of_shares(in_percent[head])}f%%" for head in shares}
    widgets.table(
        in_percent,
        column_config={
            "Model": st.column_config.TextColumn(pinned=True),
            **{
                metric.at(this.k): st.column_config.NumberColumn(
                    format=forms.get(metric.at(this.k), "%.3f"), help=glossary.tooltip(metric.title)
                )
                for metric in judge.BEYOND.values()
            },
        },
        row_height=30,
        height=30 * (len(shown) + 1) + 8,
        alt="Coverage, Gini and novelty of every model's lists.",
        key="metrics_beyond_all",
    )
