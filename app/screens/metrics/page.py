"""How good the models are, how sure that is, and for whom."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import export, guard, zoo
from app.analysis import evaluation, floor, metrics
from app.analysis import verdict as verdicts
from app.components import choice
from app.figures import metrics as figures
from app.screens.metrics import people, studies, trainings
from app.screens.metrics.choices import MetricsChoices, choose
from app.session import state
from app.text import clean, count, md
from engine.runtime import Zoo, judge
from engine.runtime import protocols as naming

_FOUR = st.column_config.NumberColumn(format="%.4f")
_SIGNED = st.column_config.NumberColumn(format="%+.4f")
_P = st.column_config.NumberColumn(format="%.4f")


def page() -> None:
    st.title("Metrics")
    models = zoo.open_zoo(state.get().dataset)
    st.markdown("How often each model puts what truly came next near the top, and how sure that is.")
    protocols = evaluation.protocols(models)
    if not protocols:
        st.info(
            "No model of this dataset has been evaluated, so there is nothing to judge. "
            "Run `seqscope evaluate`, then `seqscope export`, and come back."
            if models.has_log
            else "This is a catalogue without a log: nobody has a held-out item to ask for, so no model can be judged. A log of "
            "who took what would change that."
        )
        with guard.watch("how the models were made"):
            trainings.made(models)
        return
    opening = st.container()
    this = choose(models, protocols)
    if not this.people or not len(next(iter(this.people.values()))):
        st.info(
            "The models were evaluated on different people, so they cannot be compared. Evaluate them on one split."
        )
        return
    with opening, guard.watch("the verdict"):
        _verdict(this)
    for part, words in (
        (_standing, "the metrics"),
        (_baseline, "the comparison"),
        (_beyond, "what is beyond accuracy"),
        (people.slices, "the groups of people"),
        (people.disputed, "the people"),
    ):
        with guard.watch(words):
            part(this)
    with guard.watch("the training curves"):
        trainings.curves(this)
    with guard.watch("how the models were made"):
        trainings.made(models)
    with guard.watch("the studies"):
        studies.show(models, this.metric if "@" in this.metric else f"{judge.HEADLINE}@{this.k}")


def _verdict(this: MetricsChoices) -> None:
    """What the page opens with: whether a neural model is worth its training."""
    _held_out(this.models)
    verdict = verdicts.verdict(this.models, this.protocol, this.metric)
    if verdict is None:
        st.info(f"There is no figure at {this.k}. {this.beams()} Choose a smaller cut-off.")
    else:
        st.markdown(verdicts.in_markdown(verdict))
        if verdict.groups:
            with st.expander("For whom, in every group"):
                table = pd.DataFrame(judge.group_rows(verdict), columns=list(judge.GROUP_COLUMNS))
                st.table(
                    table,
                    border="horizontal",
                    hide_index=True,
                    alt="The difference in every group of people and items.",
                )


def _standing(this: MetricsChoices) -> None:
    table = this.of_kind(evaluation.standing(this.models, this.protocol, this.k))
    st.subheader("Which model is best")
    part = table[table["metric"] == this.metric]
    models = count(len(metrics.models_of(part["model"])), "model")
    export.figure(
        export.shared_figure(figures.dots, part, this.metric, this.titles, this.looks, this.families),
        key="metrics_dots",
        alt=f"{this.metric} of {models} with 95 % intervals: the floor first, then the best on top.",
        table=this.named(table),
        name=f"metrics {this.protocol} {this.k}",
        columns={"mean": _FOUR, "low": _FOUR, "high": _FOUR, "p": _P},
    )
    signs = {model: look.sign for model, look in this.looks.items()}
    st.table(
        metrics.grid(table, this.notes(), this.titles, signs),
        border="horizontal",
        hide_index=True,
        alt=f"Metrics of every model at {this.k}, with 95 % intervals.",
    )
    st.caption(
        "**Bold**: the best. ≈: level with the best, by a paired bootstrap over the same people and Holm's correction (adjusted "
        "p > .05, or an interval of the difference that contains 0). In brackets: 95 % interval."
    )
    below = this.below(floor.learned(this.people, this.families)).strip()
    vectors = "User vectors: the trained user's own vector, in place of what the model makes of the history alone."
    known = any(row.endswith(metrics.USERS) for row in this.people)
    for words in (vectors if known else "", this.beams(), below, floor.missing(this.families, this.protocol)):
        if words:
            st.caption(words)


def _held_out(models: Zoo) -> None:
    """What has to be known of the held-out items before any verdict."""
    counted, *advice = metrics.held_out_words(models.info) or [""]
    if advice:
        st.warning(md(" ".join([counted, *advice]), 2_000), icon=":material/rule:")
    elif counted:
        st.caption(md(counted, 500))


def _baseline(this: MetricsChoices) -> None:
    st.subheader("Against a baseline")
    models = list(this.people)
    if len(models) < 2:
        st.info(
            "Only one model was evaluated under this protocol, so there is no other to compare it with. Choose another protocol."
        )
        return
    counted = floor.best(this.means(), this.families)
    baseline = choice.selected(
        "Baseline",
        "baseline",
        {name: this.titles[name] for name in models},
        counted[0] if counted else models[-1],
        key=f"metrics_baseline_{this.models.info.name}_{len(models)}",
        width=320,
    )
    table = this.of_kind(evaluation.against(this.models, this.protocol, baseline, this.metric))
    if table.empty:
        st.info(f"There is nothing to compare at {this.k}. {this.beams()} Choose a smaller cut-off.")
        return
    rows = table[table["verdict"] == "better"]["model"].tolist()
    words = metrics.better_words(table, baseline, metrics.bold(this.titles))
    st.markdown(f"{words}{this.below([baseline, *rows])} {metrics.ONE_SEED}")
    export.figure(
        export.shared_figure(
            figures.differences, table, this.metric, this.titles[baseline], this.titles, this.looks, this.families
        ),
        key="metrics_differences",
        alt=f"Difference in {this.metric} to {clean(this.titles[baseline])}, with 95 % intervals.",
        table=this.named(table),
        name=f"against {baseline} {this.metric}",
        columns={"difference": _SIGNED, "low": _SIGNED, "high": _SIGNED, "p": _P, "holm": _P},
    )
    st.caption(
        f"Paired over the same people; p adjusted by Holm for {count(len(table), 'comparison')}. Hollow: level with the baseline."
    )


def _beyond(this: MetricsChoices) -> None:
    st.subheader("Beyond accuracy")
    st.markdown("What the lists are made of: how much of the catalogue anybody gets to see, and how well known it is.")
    table = this.of_kind(evaluation.beyond(this.models, this.protocol, this.k))
    shown = this.named(table).set_axis(
        ["Model", *(metric.at(this.k) for metric in judge.BEYOND.values()), "Note"], axis=1
    )
    if not table["note"].any():
        shown = shown.drop(columns="Note")
    elif table["coverage"].isna().all():
        st.info(
            md(
                f"n/a: no bundle keeps the lists for “{this.protocol}” at {this.k}; they are kept for full rankings. "
                f"Choose the protocol “{naming.main(this.models.info.repeats, this.models.info.split.get('kind'))}” to see them."
            )
        )
        return
    scored = this.of_kind(evaluation.standing(this.models, this.protocol, this.k))
    scored = scored[(scored["metric"] == this.metric) & (scored["note"] == "")][["model", "mean"]]
    export.figure(
        export.shared_figure(
            figures.trade_off, table.dropna().merge(scored, on="model"), this.metric, this.k, this.titles, this.looks
        ),
        key="metrics_beyond",
        alt=f"{this.metric} against the share of the catalogue that is shown to anybody.",
        table=shown,
        name=f"beyond accuracy {this.protocol} {this.k}",
    )
    texts = shown.copy()
    for metric in judge.BEYOND.values():
        texts[metric.at(this.k)] = [metric.text(value) for value in shown[metric.at(this.k)]]
    texts["Model"] = [md(text) for text in texts["Model"]]
    if "Note" in texts:
        texts["Note"] = [md(text) for text in texts["Note"]]
    st.table(texts, border="horizontal", hide_index=True, alt="What is beyond accuracy, of every model.")
    st.caption(" ".join(f"{metric.capital}: {md(metric.brief, 300)}." for metric in judge.BEYOND.values()))


page()
