"""The lines that a report opens with, written from what it holds: what was compared, what to know of held-out items and to beware
of before any verdict, what is best and by how much, for whom, how to check it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.analysis import metrics as analysis
from app.reports.blocks import Block
from app.reports.estimates import Estimate, Metrics
from app.reports.fields import SummaryLine
from app.text import clean, count, listed
from engine.runtime import judge

if TYPE_CHECKING:
    from app.reports.document import Report

_NAMED = 4  # models by name; the others are counted
_BEFORE = ("Compared", "Best", "For whom", "Beware", "Check")


def summary(report: Report) -> list[SummaryLine]:
    """Texts are plain: whoever shows them escapes them."""
    texts = {
        "Compared": _compared(report),
        "Held-out items": "" if report.metrics is None else " ".join(report.metrics.held_out[:1]),
        "Beware": _beware(report),
        "Best": _best(report),
        "For whom": _for_whom(report.metrics),
        "Check": _check(report),
    }
    return [SummaryLine(about=about, text=text) for about, text in texts.items() if text]


def as_before(lines: list[SummaryLine]) -> list[SummaryLine]:
    """As reports of before have them: warnings behind the verdict, and no line on held-out items."""
    texts = {line.about: line for line in lines}
    return [texts[about] for about in _BEFORE]


def blocks(report: Report) -> list[Block]:
    """As they are shown; of a report that was made before there were such lines, too."""
    return [
        {
            "kind": "terms",
            "terms": [(line.about, clean(line.text, 2_000)) for line in report.summary or summary(report)],
        }
    ]


def _compared(report: Report) -> str:
    data, metrics = report.dataset, report.metrics
    sizes = f"{count(data.items, 'item')}, {count(data.users, 'user')}, {count(data.events, 'event')}"
    seen = []
    if report.lists is not None and report.asked.history is not None:
        seen.append(f"the top {report.asked.k} after a history of {count(len(report.asked.history), 'item')}")
    if metrics is not None:
        seen.append(
            f"metrics at {metrics.k} over {count(metrics.people, 'user')}, protocol “{clean(metrics.protocol, 60)}”"
        )
    by = f": {listed(seen)}" if seen else ""
    return f"{_named(report, [model.name for model in report.models])} on {clean(data.title, 100)} ({sizes}){by}."


def _named(report: Report, names: list[str]) -> str:
    titles = [report.titles[name] for name in names]
    rest = len(titles) - _NAMED
    return listed(titles) if rest < 2 else listed([*titles[:_NAMED], f"{rest} more models"])


def _best(report: Report) -> str:
    metrics = report.metrics
    if metrics is None:
        return "Not judged: this report holds no metrics."
    headline = f"{judge.HEADLINE}@{metrics.k}"
    estimates = [estimate for estimate in metrics.estimates if estimate.metric == headline]
    if not estimates:
        return f"No model has {headline}: nothing is known beyond their beams."
    best = max(estimates, key=lambda estimate: estimate.mean)
    interval = f"95 % interval {best.low:.4f} to {best.high:.4f}"
    sentence = f"{_titles(report, [best])} has the highest {headline}, {best.mean:.4f} ({interval})"
    level = [estimate for estimate in estimates if estimate.mark == "level"]
    if level:
        sentence += f", not significantly different from {_titles(report, level)} (paired bootstrap, Holm)"
    elif len(estimates) > 1:
        sentence += ", significantly more than every other model here (paired bootstrap, Holm)"
    sentences = [f"{sentence}."]
    if metrics.verdict is not None and metrics.verdict.better is not None:
        sentences.append(judge.words(metrics.verdict, lambda title: clean(title, 80)).outcome)
    return " ".join(sentences)


def _titles(report: Report, estimates: list[Estimate]) -> str:
    rows = [estimate.model + analysis.USERS * estimate.users for estimate in estimates]
    return listed([*analysis.titled(report.titles, rows).values()])


def _for_whom(metrics: Metrics | None) -> str:
    if metrics is None or metrics.verdict is None:
        return "Not told: this report does not compare groups of users and items."
    for_whom = judge.words(metrics.verdict, lambda title: clean(title, 80)).for_whom
    return for_whom or "No difference between groups can be told: there are too few users, or no two models to compare."


def _beware(report: Report) -> str:
    """What the data say against taking the figures at their word."""
    metrics, sentences = report.metrics, []
    if report.dataset.simulated:
        sentences.append("The users are simulated.")
    if metrics is not None:
        sentences += metrics.held_out[1:]  # the first one counts, the others warn
        seeds = 1 if metrics.verdict is None or metrics.verdict.neural is None else metrics.verdict.neural.seeds
        if seeds == 1:
            sentences.append("One seed per model: intervals are over users, not over trainings.")
        if metrics.left_out:
            sentences.append(f"{count(metrics.left_out, 'user')} whom not every model was evaluated on are left out.")
        if metrics.absent:
            sentences.append(f"Not evaluated so: {_named(report, metrics.absent)}.")
    sentences += [f"{words.capitalize()}: {_named(report, names)}." for words, names in report.early.items()]
    if report.lists is not None and len(report.lists) > 1:
        sentences.append("One history is an example, not a measurement.")
    return " ".join(sentences) or "Nothing that these data tell of."


def _check(report: Report) -> str:
    words = "seqscope report --verify report.json asks the models again and says line by line what still holds."
    return (
        words
        if report.asked.history is not None
        else f"{words} The lists cannot be checked: their history is left out."
    )
