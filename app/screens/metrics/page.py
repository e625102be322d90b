"""How good the models are, how sure that is, and for whom: the verdict and the table, then a section at a time."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import glossary, guard, zoo
from app.analysis import evaluation, floor, metrics
from app.components import sections, widgets
from app.screens.metrics import SECTIONS, comparison, protocol, slices, studies, training_runs
from app.screens.metrics.choices import MetricsChoices, choose
from app.session import state
from app.text import clean, count, md

_ROW = 30  # pixels

DRAWN = {
    "comparison": comparison.show,
    "beyond": comparison.beyond,
    "slices": slices.show,
    "ablations": studies.ablations,
    "sweeps": studies.sweeps,
    "runs": training_runs.show,
    "protocol": protocol.show,
}


def page() -> None:
    st.title("Metrics")
    models = zoo.open_zoo(state.get().dataset)
    st.markdown("Next-item accuracy on held-out interactions, with 95% confidence intervals.")
    protocols = evaluation.protocols(models)
    if not protocols:
        st.info(
            "No model of this dataset has been evaluated, so there is nothing to judge. "
            "Run `seqscope evaluate`, then `seqscope export`, and come back."
            if models.has_log
            else "This is a catalogue without a log: no user has a held-out item, so no model can be judged. A log of "
            "interactions would change that."
        )
        with guard.watch("the training runs"):
            training_runs.made(models)
        return
    opening = st.container()
    this = choose(models, protocols)
    if not this.people or not len(next(iter(this.people.values()))):
        st.info("The models were evaluated on different users, so they cannot be compared. Evaluate them on one split.")
        return
    with opening, guard.watch("the verdict"):
        _verdict(this)
    with guard.watch("the metrics"):
        _table(this)
    with sections.opened(_sections(this), key="metrics") as section, guard.watch(SECTIONS[section].lower()):
        DRAWN[section](this)


def _sections(this: MetricsChoices) -> dict[str, str]:
    """Those that have something to show."""
    studies = this.models.studies
    axes = [study.axis for study in studies.found.values()]
    shown = {
        "ablations": None in axes or not axes or bool(studies.refused),
        "sweeps": any(axis is not None for axis in axes),
    }
    return {name: title for name, title in SECTIONS.items() if shown.get(name, True)}


def _verdict(this: MetricsChoices) -> None:
    """What the page opens with: what held-out items are, then whether a neural model is worth its training."""
    counted, *advice = metrics.held_out_words(this.models.info) or [""]
    if advice:
        st.warning(md(" ".join([counted, *advice]), 2_000), icon=":material/rule:")
    elif counted:
        st.caption(md(counted, 500))
    verdict = evaluation.verdict(this.models, this.protocol, this.metric)
    if verdict is None:
        st.info(f"Not measured at {this.k}. {this.beams()} Choose a smaller k.")
    else:
        st.markdown(evaluation.in_markdown(this.models, verdict))


def _table(this: MetricsChoices) -> None:
    every = evaluation.standing(this.models, this.protocol, this.k)
    standing = this.of_kind(every)
    signs = {row: look.sign for row, look in this.looks.items()}
    table = metrics.grid(standing, this.notes(), {row: clean(title) for row, title in this.titles.items()}, signs)
    best = standing[standing["mark"] == "best"]
    columns = {
        "Model": st.column_config.TextColumn(pinned=True, width=150 if widgets.on_phone() else 230),
        "Note": st.column_config.TextColumn(width=270),
    }
    columns |= {
        metric: st.column_config.TextColumn(help=glossary.tooltip(metric), width=165)
        for metric in dict.fromkeys(standing["metric"])
    }
    counted = len(this.rows) > len(floor.learned(this.rows, this.families))
    order = f"{'models that need no training first, then by' if counted else 'by'} {this.metric}"
    st.caption(f"{this.basis()} · {order}")
    widgets.table(
        table.style.apply(_bold, axis=None, best=list(zip(best["model"], best["metric"], strict=True)), rows=this.rows),
        column_config=columns,
        row_height=_ROW,
        height=_ROW * (len(table) + 1) + 8,
        alt=f"Metrics of {count(len(metrics.models_of(this.rows)), 'model')} at {this.k}, with 95% intervals.",
        key="metrics_table",
    )
    of_all = " of all kinds" * (len(standing) < len(every))
    marks = f" **Bold**: the best{of_all}; ≈: not significantly different from it (paired bootstrap, Holm)."
    words = [
        "In brackets: 95% interval." + marks * bool(standing["mark"].any()),
        this.beams(),
        metrics.chance_words(this.chance(), this.metric),
        this.below(floor.learned(this.people, this.families)).strip(),
    ]
    st.caption("  \n".join(filter(None, words)))
    missing = floor.missing(this.families, this.protocol)
    if missing:
        st.markdown(f":small[{missing}]")  # a command in a caption is too pale to read


def _bold(table: pd.DataFrame, best: list[tuple[str, str]], rows: list[str]) -> pd.DataFrame:
    """The style of every cell. best: (row, metric)."""
    styles = pd.DataFrame("", index=table.index, columns=table.columns)
    for row, metric in best:
        styles.loc[rows.index(row), metric] = "font-weight: bold"
    return styles


page()
