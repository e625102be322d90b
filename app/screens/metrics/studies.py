"""Metrics: ablations and hyper-parameter sweeps, from studies that change one thing at a time."""

from collections.abc import Iterator
from functools import partial

import pandas as pd
import streamlit as st

from app import export, guard
from app.analysis import evaluation, floor
from app.analysis import studies as views
from app.components import choice, sections, widgets
from app.figures import studies as figures
from app.screens.metrics.choices import MetricsChoices
from app.text import clean, md
from engine.runtime import Study, Zoo, judge
from engine.runtime import protocols as naming
from engine.runtime.studies import MEASURES

_ALIKE = "Variants differ in one setting and are otherwise trained alike, for comparison: not the models above."
ACROSS = 3  # panels side by side; on a phone they stand one below the other
_PER_CENT = st.column_config.NumberColumn(format="%+.1f%%")
_BESIDE = {
    **dict.fromkeys(("figure", "published"), widgets.FOUR_DIGITS),
    **dict.fromkeys(("change", "lowest", "highest", "published_change"), _PER_CENT),
}
_COLUMNS = {
    **dict.fromkeys(("mean", "low", "high", "p", "holm", "spread", "figure"), widgets.FOUR_DIGITS),
    **dict.fromkeys(("difference", "lowest", "highest"), widgets.SIGNED),
}


def ablations(this: MetricsChoices) -> None:
    """Variants that differ in one thing, which is no number."""
    studies = [study for study in this.models.studies.found.values() if study.axis is None]
    for refusal in this.models.studies.refused:
        st.warning(md(f"Not shown: {refusal}", 1_000), icon=":material/block:")
    if not this.models.studies.found:
        st.info(
            "There is no study of this dataset. `seqscope study` trains variants of a model that differ in one setting, "
            "evaluates them alike and shows them here."
        )
        return
    if not studies:
        return
    metric = _metric(this)
    st.caption(_ALIKE)
    study = _chosen(studies)
    with guard.watch(f"the study {study.name}"):
        _ablation(study, metric, _counted(this.models, study, metric))
        if study.published:
            sections.folded_on_phone("Published figures", partial(_beside, study), key="metrics_published")
        else:
            _beside(study)
    _made(studies, "ablations")


def sweeps(this: MetricsChoices) -> None:
    """Variants along a number."""
    studies = [study for study in this.models.studies.found.values() if study.axis is not None]
    st.caption(_ALIKE)
    if studies and widgets.on_phone():  # one below the other, they are twelve screens
        studies = [_chosen(studies)]
    if ranked := [study for study in studies if views.ranked(study)]:
        with guard.watch("the sweeps"):
            _ranked(this.models, ranked, _metric(this))
    if of_codes := [study for study in studies if not views.ranked(study)]:
        with guard.watch("the sweeps of tokenizers"):
            _of_codes(of_codes)
    published = [study for study in studies if study.published]
    if published:
        with guard.watch("the papers' figures"):
            sections.heading("Published figures")
            _beside(_chosen(published))
    _made(studies, "sweeps")


def _chosen(studies: list[Study]) -> Study:
    """The one that the address names, else the first."""
    if len(studies) == 1:
        return studies[0]
    key = f"metrics_study_of_{len(studies)}"
    if len(studies) > 6:
        titles = {study.name: study.title for study in studies}
        name = choice.selected("Study", "study", titles, studies[0].name, key=key)
    else:
        titles = {study.name: md(study.title) for study in studies}
        name = choice.segmented("Study", "study", titles, studies[0].name, key=key, wrap=True)
    return next(study for study in studies if study.name == name)


def _metric(this: MetricsChoices) -> str:
    """A study keeps the first ranks alone, so that a metric without a cut-off cannot be had of it."""
    return this.metric if "@" in this.metric else f"{judge.HEADLINE}@{this.k}"


def _counted(models: Zoo, study: Study, metric: str) -> list[views.Counted]:
    """What needs no training, over the study's users, where they were ranked for the same ones."""
    protocol = naming.main(models.info.repeats, models.info.split.get("kind"))
    if not views.ranked(study) or protocol not in evaluation.protocols(models):
        return []
    table = evaluation.standing(models, protocol, judge.cutoff_of(metric))
    table = table[(table["metric"] == metric) & (table["n"] == study.people)]
    families = evaluation.families(models, table["model"])
    return [
        views.Counted(
            row.model, families[row.model], models.bundles[row.model].manifest.title, row.mean, row.low, row.high
        )
        for row in table.itertuples()
        if not floor.needs_training(families[row.model])
    ]


def _ablation(study: Study, metric: str, counted: list[views.Counted]) -> None:
    sections.heading(md(study.title))
    st.caption(md(f"{study.about} {views.judged_by(study)}", 2_500))
    if not views.ranked(study):
        _codes_alone(study)
        return
    table = views.table(study, metric)
    baseline = study.variant(study.baseline).title
    st.markdown(views.verdicts(study, table, metric) + views.below(table, counted))
    export.figure(
        export.shared_figure(figures.differences, table, views.singles(study, metric), metric, baseline),
        key=f"metrics_study_{study.name}",
        alt=f"{clean(study.title)}: difference in {metric} to {clean(baseline)}, with 95% intervals.",
        table=_plain(table),
        name=f"study {study.name} {metric}",
        columns=_COLUMNS,
    )
    st.table(
        views.grid(study, table, metric, counted, widgets.on_phone()), border="horizontal", hide_index=True,
        alt=f"{clean(study.title)}: {metric} of every variant, with 95% intervals.",
    )  # fmt: skip
    st.caption(md(f"{views.how_sure(study, table)} Open marker: not significant against {clean(baseline)}.", 1_000))


def _beside(study: Study) -> None:
    """What papers have of the variants, each against a baseline of its own, and what differs."""
    words = views.beside_words(study)
    if study.published:
        first = study.published[0]
        export.figure(
            export.shared_figure(
                figures.beside,
                views.beside(study, 0),
                views.title_here(first),
                views.title_there(first),
                widgets.on_phone(),
            ),
            key=f"metrics_beside_{study.name}",
            alt=f"{clean(study.title)}: differences to the baseline in per cent, here and in {clean(first.source)}.",
            table=views.beside_all(study),
            name=f"study {study.name} beside papers",
            columns=_BESIDE,
        )
        st.table(
            views.beside_grid(study), border="horizontal", hide_index=True,
            alt=f"{clean(study.title)}: differences to the baseline in per cent, here and in papers.",
        )  # fmt: skip
    if words:
        st.caption("  \n".join(md(line, 1_000) for line in words))


def _codes_alone(study: Study) -> None:
    table = views.measured(study, study.figures)
    means = table.pivot_table(index="variant", columns="measure", values="figure", sort=False).reset_index()
    widgets.table(
        means, key=f"metrics_study_{study.name}",
        alt=f"{clean(study.title)}: the tokenizer's figures, means over seeds.",
    )  # fmt: skip
    export.table_buttons(views.download([study]), f"study {study.name}", key=f"metrics_study_{study.name}")


def _panels(studies: list[Study]) -> Iterator[tuple[Study, str]]:
    """Each with the title of its axis, in a place of its own that has its title already."""
    for first in range(0, len(studies), ACROSS):
        for place, study in zip(st.columns(ACROSS), studies[first : first + ACROSS], strict=False):
            assert study.axis is not None
            with place:
                st.markdown(f"**{md(study.title)}**")
                yield study, study.axis.title


def _ranked(models: Zoo, studies: list[Study], metric: str) -> None:
    tables = {study.name: views.table(study, metric) for study in studies}
    ends = [end for table in tables.values() for column in ("low", "high") for end in table[column]]
    for study, axis in _panels(studies):
        table = tables[study.name]
        st.plotly_chart(
            export.shared_figure(figures.sweep, table, metric, axis, figures.reach(ends)),
            key=f"metrics_study_{study.name}",
            alt=f"{metric} along {clean(axis)}, with 95% intervals; the table below has the numbers.",
            config=export.config(f"study {study.name}"),
        )
        st.caption(
            f"{md(f'{study.about} {views.judged_by(study)}', 2_500)} {views.verdicts(study, table, metric)}"
            f"{views.below(table, _counted(models, study, metric))}"
        )
    whole = pd.concat([_plain(tables[study.name]).assign(study=clean(study.title)) for study in studies])
    export.under(
        whole, key="metrics_sweeps", alt=f"{metric} along each setting.", name=f"sweeps {metric}", columns=_COLUMNS
    )
    st.caption(
        "Diamond: the recipe's own value, or the study's, with which the others are compared. Pale: not significantly different. "
        f"{'All panels have one scale. ' if len(studies) > 1 else ''}Intervals: 95%, over users. "
        + views.of_seeds(studies, list(tables.values()))
    )


def _of_codes(studies: list[Study]) -> None:
    sections.heading("Of the tokenizer")
    names = [name for name in views.OF_CODES if all(name in study.figures for study in studies)]
    tables = {study.name: views.measured(study, names) for study in studies}
    whole = pd.concat(
        [table.assign(study=clean(study.title)) for study, table in zip(studies, tables.values(), strict=True)]
    )
    reach = {name: figures.reach(whole.loc[whole["measure"] == name, "figure"]) for name in names}
    for study, axis in _panels(studies):
        default = study.variant(study.baseline).value or 0.0
        st.plotly_chart(
            export.shared_figure(figures.sweep_of_codes, tables[study.name], names, axis, default, reach),
            key=f"metrics_study_{study.name}",
            alt=f"Figures of semantic IDs along {clean(axis)}; the table below has the numbers.",
            config=export.config(f"study {study.name}"),
        )
        st.caption(md(f"{study.about} {views.judged_by(study)}", 2_500))
    export.under(
        whole, key="metrics_sweeps_codes", alt="Figures of semantic IDs along each setting.", name="sweeps of tokenizers",
        columns=_COLUMNS,
    )  # fmt: skip
    words = "; ".join(f"{MEASURES[name].title.lower()}: {MEASURES[name].words}" for name in names)
    st.caption(
        "Diamond: the recipe's own value, or the study's. Dots: seeds; the line is their mean. A row has one scale."
    )
    st.caption(md(f"{words[:1].upper()}{words[1:]}.", 2_000))


def _plain(results: pd.DataFrame) -> pd.DataFrame:
    """For the eye: titles in place of names."""
    return results.drop(columns=["variant", "value"]).assign(title=[clean(title) for title in results["title"]])


def _made(studies: list[Study], kind: str) -> None:
    if not studies:
        return
    folded = st.expander("Commands and runs", key=f"metrics_made_{kind}", on_change="rerun")
    if not folded.open:
        return
    with folded:
        for study in studies:
            st.markdown(f"**{md(study.title)}**")
            st.code(clean(study.command, 1_000), language="bash", wrap_lines=True)
            st.table(views.made(study), border="horizontal", hide_index=True, alt=f"Runs of {clean(study.title)}.")
        export.table_buttons(views.download(studies), kind, key=f"metrics_{kind}_all", label="All values")
