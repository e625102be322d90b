"""What changing one thing at a time does, as small tables and sentences: pure functions on studies."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from app.analysis import floor
from app.analysis.cache import cached, of_digest
from app.analysis.metrics import SAMPLES, SEED, adjusted, compared
from app.text import clean, listed, md, span
from engine.runtime import Study, judge
from engine.runtime.studies import MEASURES, SECONDS, Published, over_people
from engine.writing import count

OF_CODES = ("perplexity", "excess", "similarity", "lost")
"""What is shown of identifiers; the download has the rest."""


@cached(200, by=of_digest, spinner="Comparing variants over the same users …")
def table(study: Study, metric: str) -> pd.DataFrame:
    """variant, title, value, mean, low, high, difference, lowest, highest, p, holm, spread, verdict: a row per variant, in the
    study's order.

    difference … highest: to the baseline, over the same users and over seeds. spread: how far the differences of single seeds
    are apart. verdict: "baseline", or as of `compared`. Only of studies that rank.
    """
    values = {
        variant.name: np.array([outcome.per_person(metric) for outcome in variant.outcomes])
        for variant in study.variants
    }
    baseline = values[study.baseline]
    others = compared({name: (values[name], baseline) for name in values if name != study.baseline})
    rows = []
    for variant in study.variants:
        estimate = judge.interval(values[variant.name].mean(0), seed=SEED, samples=SAMPLES)
        row = [variant.name, variant.title, variant.value, estimate.mean, estimate.low, estimate.high]
        if variant.name == study.baseline:
            rows.append([*row, *[float("nan")] * 6, "baseline"])
            continue
        test, holm = others[variant.name]
        singles = by_seed(study, variant.name, metric)
        spread = max(singles) - min(singles) if len(singles) > 1 else float("nan")
        rows.append([*row, test.mean, test.low, test.high, test.p, holm, spread, others[variant.name].verdict])
    columns = ["variant", "title", "value", "mean", "low", "high", "difference", "lowest", "highest", "p", "holm"]
    return pd.DataFrame(rows, columns=[*columns, "spread", "verdict"])


def by_seed(study: Study, variant: str, metric: str) -> list[float]:
    """Differences to the baseline's run with the same seed, of every seed."""
    theirs = {outcome.seed: outcome for outcome in study.variant(study.baseline).outcomes}
    return [
        float((outcome.per_person(metric) - theirs[outcome.seed].per_person(metric)).mean())
        for outcome in study.variant(variant).outcomes
    ]


def verdicts(study: Study, results: pd.DataFrame, metric: str) -> str:
    """What may be claimed, in Markdown. results: of `table`."""
    baseline = md(study.variant(study.baseline).title)
    if study.axis is not None:
        set_for_all = (setting.partition("=")[0] for setting in study.settings.get(study.axis.run, ()))
        baseline += f", the {'study' if study.axis.setting in set_for_all else 'recipe'}'s own,"
    said = []
    for verdict in ("better", "worse"):
        part = results[results["verdict"] == verdict]
        names = [f"**{md(row.title)}** ({judge.signed(row.difference, '+.3f')})" for row in part.itertuples()]
        if names:
            said.append(f"{listed(names)} {_is(names)} significantly {verdict} than {baseline} in {metric}.")
    level = [f"**{md(title)}**" for title in results[results["verdict"] == "level"]["title"]]
    if level and said:
        said.append(f"{listed(level)} {_is(level)} not significantly different from it.")
    elif level:
        said.append(f"No variant is significantly different from {baseline} in {metric}.")
    return " ".join(said)


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def how_sure(study: Study, results: pd.DataFrame) -> str:
    """What intervals say and what they do not, in a sentence. results: of `table`."""
    return (
        f"Paired over the same {count(study.people or 0, 'user')}, 95% bootstrap; {adjusted(len(results) - 1)}. "
        f"{of_seeds([study], [results], ' (strokes: each alone)')}"
    )


def of_seeds(studies: Sequence[Study], tables: Sequence[pd.DataFrame], drawn: str = "") -> str:
    """What the intervals do not cover, in a sentence. tables: of `table`, of each study; drawn: how single seeds are."""
    seeds = sorted({len(study.variants[0].outcomes) for study in studies})
    if seeds == [1]:
        return "One seed each: the intervals do not cover the variance between trainings."
    apart = np.nanmax([table["spread"].max() for table in tables])
    return (
        f"Means of {' or '.join(map(str, seeds))} seeds{drawn}, whose differences are up to {apart:.3f} apart; intervals "
        "of differences are over seeds, too."
    )


class Counted(NamedTuple):
    """What counting alone reaches over the same users: `floor`."""

    row: str
    family: str
    title: str
    mean: float
    low: float
    high: float


def below(results: pd.DataFrame, counted: Sequence[Counted]) -> str:
    """Which variants are below the floor, in Markdown. results: of `table`."""
    means = {counted_row.row: counted_row.mean for counted_row in counted} | dict(
        zip(results["title"], results["mean"], strict=True)
    )
    families = dict.fromkeys(means, "") | {counted_row.row: counted_row.family for counted_row in counted}
    titles = dict(zip(means, means, strict=True)) | {counted_row.row: counted_row.title for counted_row in counted}
    return floor.below(means, families, {row: f"**{md(title)}**" for row, title in titles.items()})


def grid(
    study: Study, results: pd.DataFrame, metric: str, counted: Sequence[Counted] = (), narrow: bool = False
) -> pd.DataFrame:
    """One row per variant, after what counting alone reaches, as Markdown for st.table. results: of `table`. narrow: the verdict
    has no column of its own."""
    codes = [name for name in OF_CODES if name in study.figures]
    rows = [
        {
            "Variant": md(counted_row.title),
            metric: f"{counted_row.mean:.3f} :small[({counted_row.low:.3f}\u00a0–\u2060\u00a0{counted_row.high:.3f})]",
            **({"Difference": "the floor"} if narrow else {"Difference": "", "Verdict": "the floor"}),
            **{MEASURES[name].title: "–" for name in codes},
        }
        for counted_row in counted
    ]
    for row in results.itertuples():
        variant = study.variant(row.variant)
        verdict = {"baseline": "", "level": "not significant"}.get(row.verdict, f"**{row.verdict}**")
        cells = {
            "Variant": md(row.title),
            metric: f"{row.mean:.3f} :small[({row.low:.3f}\u00a0–\u2060\u00a0{row.high:.3f})]",
            "Difference": "baseline"
            if row.verdict == "baseline"
            else f"{judge.signed(row.difference, '+.3f')}{f' {verdict}' if narrow else ''}"
            f" :small[({_ends(row.lowest, row.highest, '+.3f')})]",
            **({} if narrow else {"Verdict": verdict}),
        }
        for name in codes:
            cells[MEASURES[name].title] = format(variant.figure(name), MEASURES[name].form)
        rows.append(cells)
    return pd.DataFrame(rows)


def _ends(low: float, high: float, form: str) -> str:
    return f"{judge.signed(low, form)}\u00a0…\u00a0{judge.signed(high, form)}"


def measured(study: Study, names: Sequence[str]) -> pd.DataFrame:
    """variant, value, seed, measure, figure: what single runs came to."""
    rows = [
        (clean(variant.title), variant.value, outcome.seed, name, outcome.figures[name].mean)
        for variant in study.variants
        for outcome in variant.outcomes
        for name in names
    ]
    return pd.DataFrame(rows, columns=["variant", "value", "seed", "measure", "figure"])


def download(studies: Sequence[Study]) -> pd.DataFrame:
    """Every figure of every run and of the papers beside them, for a file: study, variant, baseline, seed, measure, figure, low,
    high, source ("" where it was measured here)."""
    rows: list[tuple[object, ...]] = []
    for study in studies:
        for variant in study.variants:
            for outcome in variant.outcomes:
                for name in study.figures:
                    figure = outcome.figures[name]
                    low, high = (float("nan") if end is None else end for end in (figure.low, figure.high))
                    where = (clean(study.title), clean(variant.title), variant.name == study.baseline, outcome.seed)
                    rows.append((*where, name, figure.mean, low, high, ""))
        for entry in study.published:
            source = clean(f"{entry.source}: {entry.dataset}, {entry.protocol}", 600)
            for name, value in entry.figures.items():
                row = (clean(study.title), clean(study.variant(name).title), name == study.baseline, None)
                rows.append((*row, clean(entry.metric), value, float("nan"), float("nan"), source))
    columns = ["study", "variant", "baseline", "seed", "measure", "figure", "low", "high", "source"]
    return pd.DataFrame(rows, columns=columns)


def ranked(study: Study) -> bool:
    """Whether people were ranked for, or a tokenizer judged by its own figures."""
    return study.people is not None


def judged_by(study: Study) -> str:
    """By what the variants were judged, in a sentence."""
    if study.people is None:
        return "Judged by the semantic IDs alone, without ranking items for users."
    known = ", known by the vectors that they were trained with where a variant has any" if study.trained_users else ""
    return f"Judged by full ranking for {count(study.people, 'user')}, the same for every variant{known}."


def made(study: Study) -> pd.DataFrame:
    """How each variant was made, as Markdown for st.table."""
    rows = []
    for variant in study.variants:
        last = variant.outcomes[0].steps[-1]
        changes = [f"{run}: {setting}" for run, settings in variant.settings.items() for setting in settings]
        epochs = [f"{step.run} {step.epochs}" for step in variant.outcomes[0].steps if step.epochs]
        rows.append(
            {
                "Variant": md(variant.title),
                "Settings of its own": md("; ".join(changes) or "none", 1_000),
                "Seeds": ", ".join(str(outcome.seed) for outcome in variant.outcomes),
                "Epochs": md(", ".join(epochs) or "none"),
                "Time": span(variant.figure(SECONDS), 1),
                "Device": md(last.device),
                "Commit": md((last.commit or "unknown")[:10]),
            }
        )
    return pd.DataFrame(rows)


@cached(200, by=of_digest)
def singles(study: Study, metric: str) -> dict[str, list[float]]:
    """Variant → `by_seed`."""
    return {variant.name: by_seed(study, variant.name, metric) for variant in study.variants}


# --- beside the papers


@cached(200, by=of_digest)
def beside(study: Study, number: int) -> pd.DataFrame:
    """variant, title, figure, change, lowest, highest, level, published, published_change: a row per variant, in the study's
    order, beside the paper's table `study.published[number]`.

    Changes are in per cent of the baseline, each of its own table's; NaN of the baseline itself, and where there is no figure.
    lowest, highest: the 95% interval, as of `table`; NaN where a figure is of no users. level: as the verdict of `table` has it.
    """
    entry, baseline = study.published[number], study.variant(study.baseline)
    measure, none = entry.measure, float("nan")
    figure_here, figure_there = baseline.figure(measure), entry.figures[study.baseline]
    ranked_for = study.protocol is not None and over_people(measure, study.protocol)
    tested = {row.variant: row for row in table(study, measure).itertuples()} if ranked_for else {}
    rows = []
    for variant in study.variants:
        changes, published = [none, none, none], entry.figures.get(variant.name, none)
        if variant is not baseline and figure_here:
            changes[0] = variant.figure(measure) - figure_here
            if variant.name in tested:
                row = tested[variant.name]
                changes = [row.difference, row.lowest, row.highest]
        shares = [100 * change / figure_here if figure_here else none for change in changes]
        level = variant.name in tested and tested[variant.name].verdict == "level"
        away = none if variant is baseline else 100 * (published - figure_there) / figure_there
        rows.append([variant.name, variant.title, variant.figure(measure), *shares, level, published, away])
    columns = ["variant", "title", "figure", "change", "lowest", "highest", "level", "published", "published_change"]
    return pd.DataFrame(rows, columns=columns)


def beside_all(study: Study) -> pd.DataFrame:
    """`beside` of all tables of papers, for the eye: title, the figures, what they are of, source."""
    titles = [clean(variant.title) for variant in study.variants]
    tables = [
        beside(study, number)
        .drop(columns=["variant", "level"])
        .assign(title=titles, of=clean(title_there(entry)), source=clean(entry.source))
        for number, entry in enumerate(study.published)
    ]
    return pd.concat(tables)


def title_here(entry: Published) -> str:
    """What stands beside a paper's figures, in words."""
    measure = entry.measure
    return f"Here, {'time' if measure == SECONDS else MEASURES[measure].title if measure in MEASURES else measure}"


def title_there(entry: Published) -> str:
    """What a paper's figures are of, in words."""
    return f"{entry.dataset}, {entry.metric}"


def beside_grid(study: Study) -> pd.DataFrame:
    """One row per variant, and a column per table of a paper, behind that of what it stands beside; Markdown for st.table."""
    columns: dict[str, list[str]] = {"Variant": [md(variant.title) for variant in study.variants]}
    for number, entry in enumerate(study.published):
        table = beside(study, number)
        form = _form(entry)
        columns[title_here(entry)] = [
            _cell(row.change, form(row.figure), row.variant == study.baseline, (row.lowest, row.highest))
            for row in table.itertuples()
        ]
        columns[md(title_there(entry))] = [
            "–"
            if np.isnan(row.published)
            else _cell(row.published_change, form(row.published), row.variant == study.baseline)
            for row in table.itertuples()
        ]
    return pd.DataFrame(columns)


def _form(entry: Published) -> Callable[[float], str]:
    """How both figures are written."""
    if entry.measure == SECONDS:
        return lambda seconds: span(seconds, 1)
    form = MEASURES[entry.measure].form if entry.measure in MEASURES else ".4f"
    return lambda figure: format(figure, form)


def _cell(change: float, figure: str, baseline: bool, ends: tuple[float, float] | None = None) -> str:
    if baseline or np.isnan(change):
        return f"{'baseline' if baseline else '–'} :small[({figure})]"
    interval = "" if ends is None or np.isnan(ends[0]) else f"{_ends(*ends, '+.1f')}; "
    return f"{judge.signed(change, '+.1f')}% :small[({interval}{figure})]"


def beside_words(study: Study) -> list[str]:
    """What the two have in common and what not, in sentences: of each paper's table, then of single variants."""
    words = []
    if study.published:
        words.append(
            "Two measurements: each is relative to the baseline of its own table. Absolute values "
            "of the two are not comparable."
        )
    for entry in study.published:
        words.append(f"{title_there(entry)}: {entry.source}, {entry.protocol}. {entry.differs}")
    return words + [f"{variant.title}: {variant.differs}" for variant in study.variants if variant.differs]
