"""How good the models are, how sure that is, and for whom: the verdict and the table, then a section at a time."""

import pandas as pd
import streamlit as st

from app import export, glossary, guard, zoo
from app.analysis import evaluation, floor, metrics
from app.analysis.model_card import split_words
from app.components import choice, sections, widgets
from app.figures import metrics as figures
from app.screens.metrics import SECTIONS, comparison, studies, training_runs
from app.screens.metrics.choices import MetricsChoices, choose
from app.session import state
from app.text import clean, md
from engine.runtime import judge
from engine.runtime import protocols as naming
from engine.writing import count

_ROW = 30  # pixels


def page() -> None:
    st.title("Metrics")
    models = zoo.open_zoo(state.get().dataset)
    accuracy = "Accuracy" if models.info.sets else "Next-item accuracy"
    st.markdown(f"{accuracy} on held-out interactions, with 95% confidence intervals.")
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
        _SHOWN[section](this)


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
    long = table["Model"].str.len().max() > 22
    columns = {
        "Model": st.column_config.TextColumn(
            pinned=True, width=230 if not widgets.on_phone() else 226 if long else 150
        ),
        "Note": st.column_config.TextColumn(width=270),
    }
    columns |= {
        metric: st.column_config.TextColumn(help=glossary.tooltip(metric), width=165)
        for metric in dict.fromkeys(standing["metric"])
    }
    counted = len(this.rows) > len(floor.learned(this.rows, this.families))
    order = f"{'models that need no training first, then by' if counted else 'by'} {this.metric}"
    st.caption(f"{this.basis()} · {order}")
    visible = min(len(table), 12.5) if widgets.on_phone() else len(table)  # half a row says that there are more below
    widgets.table(
        table.style.apply(_bold, axis=None, best=list(zip(best["model"], best["metric"], strict=True)), rows=this.rows),
        column_config=columns,
        row_height=_ROW,
        height=round(_ROW * (visible + 1) + 8),
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


# --- slices: users grouped by their held-out item or by their history


_DRAWN = 8
"""So many models at once: with more, a slice is taller than a screen."""


def _slices(this: MetricsChoices) -> None:
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
        alt=f"{this.metric} of {count(len(drawn), 'model')} by {clean(options[by], 80).lower()}, with 95% intervals.",
        table=this.named(table),
        name=f"slices {by} {this.metric}",
        columns={"mean": widgets.FOUR_DIGITS, "low": widgets.FOUR_DIGITS, "high": widgets.FOUR_DIGITS},
    )
    note = (
        "Slices are of held-out items: a user counts in each that has some of theirs."
        if this.models.info.sets and by != "length"
        else "Slices overlap: a user whose held-out item has several values counts in each of them."
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
        both = 0 < len(floor.learned(drawn, this.families)) < len(drawn)
        note = (
            f"Shown: the {len(drawn)} best of {len(this.people)}{', including one without training' * both}. The table under the "
            f"figure has all; choose others by kind above. {note}"
        )
    if by.startswith("attribute:") and (valueless := evaluation.in_no_slice(this.models, this.protocol, by)):
        note += f" In no slice: {count(valueless, 'held-out item')} without a value."
    if table["few"].any():
        note += f" Grey: fewer than {metrics.FEW} users."
    st.caption(note)
    _groups_of_the_verdict(this)


def _few(this: MetricsChoices) -> list[str]:
    """The rows that are drawn: the best, and the best of those that need no training; of these more where there is room."""
    rows = [row for row in this.rows if row in this.people]
    if len(rows) <= _DRAWN:
        return rows
    counted = floor.best(this.means(), this.families)
    first = [*([counted[0]] if counted else []), *floor.learned(rows, this.families)]
    return [*first, *(row for row in rows if row not in first)][:_DRAWN]


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


# --- what the numbers are of, and how they were made


def _protocol(this: MetricsChoices) -> None:
    known = {term: md(words, 2_000) for term, words in _facts(this).items() if words}
    widgets.terms(known, alt="The protocol of the evaluation.")
    _references(this)


def _references(this: MetricsChoices) -> None:
    table, source = evaluation.references(this.models, this.protocol)
    if table.empty:
        return
    sections.heading("Reference points")
    st.caption(md(source, 2_000))
    numbers = {
        column: st.column_config.NumberColumn(format="%.4f", help=glossary.tooltip(column.partition(",")[0]))
        for column in table.columns[2:]
    }
    widgets.table(table, alt="Figures from elsewhere, and those of the same methods here.", column_config=numbers)


def _facts(this: MetricsChoices) -> dict[str, str]:
    """Term → words, not escaped."""
    info = this.models.info
    users = next(ranks.people for ranks in this.people.values())
    more = set(map(metrics.more_of, this.people))
    return {
        "Ranking": naming.sentence(this.protocol, len(this.models)),
        "Split": split_words(info.split),
        "Users": f"{metrics.users_words(users, this.protocol)}{', simulated' if info.simulated else ''}."
        f"{metrics.left_out(this.left_out)}",
        "Held-out items": " ".join(metrics.held_out_words(info)),
        "Intervals": f"{metrics.INTERVALS} {evaluation.over_seeds(this.models, this.protocol)}",
        "Significance": metrics.SIGNIFICANCE,
        "Model selection": metrics.SELECTION,
        "User vectors": "The trained user's own vector, in place of what the model makes of the history alone."
        if metrics.USERS in more
        else "",
        "Told the times": "The model is told when the items of the history were, never when the held-out one was. Lists of the "
        "pages are made without times, and the verdict is over models that were told none."
        if metrics.TIMES in more
        else "",
        "Beam search": " ".join(_beams(this)),
        "Dataset": f"{info.title}, fingerprint {info.fingerprint}",
    }


def _beams(this: MetricsChoices) -> list[str]:
    """Where the ranks of generative models come from; models of which the same is said together."""
    alike: dict[str, list[str]] = {}
    for bundle in this.models.bundles.values():
        if bundle.cannot("identifiers") is None and bundle.name in this.people:
            words = metrics.beam_words(this.protocol, bundle.manifest.metrics, len(this.models))
            alike.setdefault(words, []).append(bundle.manifest.title)
    return [f"{', '.join(titles)}: {words}" for words, titles in alike.items()]


_SHOWN = {
    "comparison": comparison.show,
    "beyond": comparison.beyond,
    "slices": _slices,
    "ablations": studies.ablations,
    "sweeps": studies.sweeps,
    "runs": training_runs.show,
    "protocol": _protocol,
}

page()
