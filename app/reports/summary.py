"""The five lines that a report opens with, written from what it holds: what was compared, and on which held-out items; what is
best and by how much; for whom; what to beware of; how to check it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from app.analysis import metrics as analysis
from app.reports.blocks import Block
from app.reports.fields import SummaryLine
from app.reports.parts.metrics import Estimate, Metrics, row_of
from app.text import clean, listed
from engine.runtime import judge, protocols
from engine.writing import count

if TYPE_CHECKING:
    from app.reports.document import Report

_NAMED = 4  # models by name; the others are counted
_BEFORE = ("Compared", "Best", "For whom", "Beware", "Check")
_ALL = "Of all that were evaluated: "
"""A verdict is: its best model need not be one of the report's."""
_ALONE = (
    "Not told: groups compare a neural model with one that needs no training, and only one of the two was evaluated."
)
_UNCHECKED = " The lists cannot be checked: their history is left out."
_NO_GROUPS = "No difference between groups can be told: there are too few users"
_NOW_AND_BEFORE = (
    (rf" has ({judge.HEADLINE}@\d+) (\S+ \(95% interval)", r" has the highest \1, \2"),
    (r"\(<1%\)", "(0%)"),
    (r"\(>99%\)", "(100%)"),
    (re.escape(_ALONE), f"{_NO_GROUPS}, or no two models to compare."),
    (rf"{_NO_GROUPS}\.", f"{_NO_GROUPS}, or no two models to compare."),
    ("every other model with a figure", "every other model of this report"),
    ("every other model of this report", "every other model here"),
    (r" is not significantly different from (.+) in (\S+) \(", r" and \1 are level by \2 ("),
    (" is not significantly different in any group", " is level in every group"),
    ("not significantly different on ", "level on "),
    ("user whom not every model was evaluated on is", "user whom not every model was evaluated on are"),
)
"""What is said now, and what earlier versions said in its place."""


def summary(report: Report, stem: str = "") -> list[SummaryLine]:
    """Texts are plain: whoever shows them escapes them. stem: of the file's name, in place of the report's."""
    held_out = [] if report.metrics is None else report.metrics.held_out[:1]  # the first one counts, the others warn
    return _lines(
        {
            "Compared": " ".join([_compared(report), *held_out]),
            "Best": _best(report),
            "For whom": _for_whom(report.metrics),
            "Beware": _beware(report),
            "Check": _check(report, f"{stem or report.stem}.json"),
        }
    )


def says_so(report: Report, others: Report) -> bool:
    """Whether its summary is what is written of `others`, now or by an earlier version."""
    written = [*(summary(others, stem) for stem in (report.stem, _stem_of_before(report))), *_of_before(others)]
    lines = [_signless(each) for each in written]
    lines += [[(about, text.replace(_ALL, "")) for about, text in each] for each in lines]  # as it was before `_ALL`
    if report.asked.history is None:  # it was said of metrics alone, too
        lines += [
            [(about, text.removesuffix(_UNCHECKED) + _UNCHECKED * (about == "Check")) for about, text in each]
            for each in lines
        ]
    return _signless(report.summary) in lines


def _stem_of_before(report: Report) -> str:
    """As earlier versions named the files of a report: after the folder of its dataset, without letters beyond ASCII."""
    title = re.sub(r"[^a-z0-9]+", "-", (report.asked.title or report.dataset.name).lower()).strip("-")[:60]
    return f"seqscope-{title or 'report'}-{report.created[:10]}"


def _of_before(report: Report) -> list[list[SummaryLine]]:
    """As earlier versions wrote them: in six lines, with what to beware of before the verdict; before that in five."""
    metrics = report.metrics
    texts = {
        "Compared": _compared(report, "" if metrics is None else metrics.protocol),
        "Held-out items": "" if metrics is None else " ".join(metrics.held_out[:1]),
        "Beware": _beware(report, before=True),
        "Best": _best(report),
        "For whom": _for_whom(metrics),
        "Check": _check(report, "report.json"),
    }
    return [_lines(texts), _lines({about: texts[about] for about in _BEFORE})]


def _lines(texts: Mapping[str, str]) -> list[SummaryLine]:
    return [SummaryLine(about=about, text=text) for about, text in texts.items() if text]


def _signless(lines: list[SummaryLine]) -> list[tuple[str, str]]:
    """Without what earlier versions wrote otherwise: the minus, the sign of what rounds to zero, and `_NOW_AND_BEFORE`."""
    texts = {line.about: re.sub(r"[+-](?=0\.0+(?!\d))", "", line.text.replace("−", "-")) for line in lines}
    for now, before in _NOW_AND_BEFORE:
        texts = {about: re.sub(now, before, text) for about, text in texts.items()}
    return list(texts.items())


def blocks(report: Report) -> list[Block]:
    """As they are shown; of a report that was made before there were such lines, too."""
    terms = [(line.about, clean(line.text, 2_000)) for line in report.summary or summary(report)]
    return [{"kind": "terms", "terms": terms}]


def _compared(report: Report, protocol: str | None = None) -> str:
    """protocol: what it is called, in place of its title."""
    data, metrics = report.dataset, report.metrics
    sizes = f"{count(data.items, 'item')}, {count(data.users, 'user')}, {count(data.events, 'event')}"
    seen = []
    if report.lists is not None and report.asked.history is not None:
        seen.append(f"the top {report.asked.k} after a history of {count(len(report.asked.history), 'item')}")
    if metrics is not None:
        called = clean(protocols.title(metrics.protocol) if protocol is None else protocol, 60)
        seen.append(f"metrics at {metrics.k} over {count(metrics.people, 'user')}, protocol “{called}”")
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
    best = max(estimates, key=lambda estimate: (estimate.mean, estimate.mark == "best"))  # among equals the marked one
    interval = f"95% interval {best.low:.4f} to {best.high:.4f}"
    has = f"has {headline}" if len(estimates) == 1 else f"has the highest {headline},"
    sentence = f"{_titles(report, [best])} {has} {best.mean:.4f} ({interval})"
    level = [estimate for estimate in estimates if estimate.mark == "level"]
    if level:
        sentence += f", not significantly different from {_titles(report, level)} (paired bootstrap, Holm)"
    elif (measured := len({estimate.model for estimate in estimates})) > 1:
        others = "of this report" if measured == len(report.models) else "with a figure"
        sentence += f", significantly more than every other model {others} (paired bootstrap, Holm)"
    sentences = [f"{sentence}."]
    if metrics.verdict is not None and metrics.verdict.better is not None:
        sentences.append(_ALL + judge.words(metrics.verdict, lambda title: clean(title, 80)).outcome)
    return " ".join(sentences)


def _titles(report: Report, estimates: list[Estimate]) -> str:
    return listed([*analysis.titled(report.titles, map(row_of, estimates)).values()])


def _for_whom(metrics: Metrics | None) -> str:
    if metrics is None or metrics.verdict is None:
        return "Not told: this report does not compare groups of users and items."
    for_whom = judge.words(metrics.verdict, lambda title: clean(title, 80)).for_whom
    if metrics.verdict.better is None:
        return _ALONE
    return for_whom or f"{_NO_GROUPS}."


def _beware(report: Report, *, before: bool = False) -> str:
    """What the data say against taking the figures at their word. before: as an earlier version had it."""
    metrics, sentences = report.metrics, []
    if report.dataset.simulated:
        sentences.append("The users are simulated.")
    if metrics is not None:
        sentences += metrics.held_out[1:]
        neural = None if metrics.verdict is None else metrics.verdict.neural
        several = neural is not None and neural.seeds > 1
        if not before or not several:
            metrics_are = "One seed per model" if before else "Metrics are of one seed per model"
            sentences.append(f"{metrics_are}: intervals are over users, not over trainings.")
        if neural is not None and several and not before:
            sentences.append(f"The verdict is over {neural.seeds} seeds of {clean(neural.title, 80)}.")
        if metrics.left_out:
            whom = "whom not every model was evaluated on"
            sentences.append(f"{count(metrics.left_out, f'user {whom} is', f'users {whom} are')} left out.")
        if metrics.absent:
            sentences.append(f"Not evaluated so: {_named(report, metrics.absent)}.")
    sentences += [f"{words.capitalize()}: {_named(report, names)}." for words, names in report.early.items()]
    if report.lists is not None and len(report.lists) > 1:
        sentences.append("One history is an example, not a measurement.")
    return " ".join(sentences) or "Nothing that these data tell of."


def _check(report: Report, name: str) -> str:
    """name: of the file."""
    untold = report.asked.history is None and any(part.of_history for part, _ in report.content())
    words = f"seqscope report --verify {name} asks the models again and says line by line what still holds."
    return words + _UNCHECKED * untold
