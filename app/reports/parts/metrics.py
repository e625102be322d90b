"""How good the models are: metrics with intervals and tests, and the protocol behind them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import numpy as np
import pandas as pd
from pydantic import Field

from app.analysis import evaluation, floor
from app.analysis import metrics as analysis
from app.analysis.cache import cached, of_content
from app.analysis.model_card import split_words
from app.figures import metrics as drawing
from app.reports import charts
from app.reports.blocks import Block, Cell, Figure, Table, figures, grid, interval, p, quiet, sign, table
from app.reports.fields import Name, ReportModel, number, number_or_none
from app.reports.part import Checked, Part, Source, same
from app.styles import dotted
from app.text import clean, listed
from engine.errors import SeqscopeError
from engine.runtime import Zoo, judge, protocols, repeats
from engine.writing import count

if TYPE_CHECKING:
    from app.reports.document import Report


class Estimate(ReportModel):
    LATER = ("users", "times")
    model: Name
    users: bool = False
    """True: with the model's vectors of training users, in place of what it makes of the history alone."""
    times: bool = False
    """True: the model was told when the items of the history were."""
    metric: str
    mean: float
    low: float
    high: float
    people: int
    mark: Literal["best", "level", ""]
    """level: its difference to the best could be chance."""
    p: float | None
    """Of the paired bootstrap against the best, after Holm; None for the best itself."""


class Beyond(ReportModel):
    LATER = ("users", "times", "others")
    model: Name
    users: bool = False
    """As `Estimate.users`; a row of the metrics is a model, with these vectors or without."""
    times: bool = False
    """As `Estimate.times`."""
    coverage: float | None
    gini: float | None
    novelty: float | None
    others: dict[str, float | None] = {}
    """Metrics that an installation adds to these three, by their names in lowercase."""
    note: str

    def value(self, field: str) -> float | None:
        """Of a metric by its name in lowercase; None where the report does not have it."""
        value: float | None = getattr(self, field) if field in type(self).model_fields else self.others.get(field)
        return value


class Slice(ReportModel):
    """A metric over some of the people."""

    LATER = ("times",)
    words: str
    """Whose held-out item …"""
    model: Name
    users: bool
    """As `Estimate.users`."""
    times: bool = False
    """As `Estimate.times`."""
    metric: str
    mean: float
    low: float
    high: float
    people: int


class Metrics(ReportModel):
    LATER = ("beams", "repeats", "held_out", "verdict")

    protocol: str
    words: str
    """What the protocol does."""
    k: int
    people: int
    left_out: int
    """People that not every model was evaluated on."""
    samples: int
    seed: int
    estimates: list[Estimate]
    beyond: list[Beyond]
    absent: list[Name]
    """Models that were not evaluated so."""
    held_out: list[str] = []
    """What has to be known of the held-out items before any verdict, in sentences: ties, repeats, cancellations."""
    beams: dict[Name, Annotated[int, Field(ge=1)]] = {}
    """Models whose ranks come from a beam, and its width; such a model has no estimates where k is more than that."""
    repeats: list[Slice] = []
    """Where repeats count: apart for held-out items that repeat one of the history, and for new ones."""
    verdict: judge.Verdict | None = None
    """Of all models of the dataset, whichever the report shows: the best neural one against the best that needs no training. None
    in reports of before."""

    @property
    def rows(self) -> list[str]:
        return [row_of(entry) for entry in self.beyond]

    def cannot(self, model: str) -> str | None:
        """Why a row of the model is empty, such as "beam of 20"."""
        return judge.beyond_beam(self.k, self.beams.get(model))

    def of(self, row: str) -> tuple[list[Estimate], Beyond]:
        estimates = [entry for entry in self.estimates if row_of(entry) == row]
        return estimates, next(entry for entry in self.beyond if row_of(entry) == row)


Given = TypeVar("Given", Estimate, Slice)
Differing = TypeVar("Differing", judge.Verdict, judge.Group)


def row_of(entry: Estimate | Beyond | Slice) -> str:
    """The row that it stands in: a model, or one that was told more than the history, as the page Metrics names it."""
    return entry.model + analysis.USERS * entry.users + analysis.TIMES * entry.times


class MetricsPart(Part[Metrics]):
    name, title, heading, busy, order = "metrics", "Metrics", "Metrics", "Judging the models", 100
    content = Metrics
    of_history = False
    note = (
        "Metrics are of one seed per model: intervals are over users, not over trainings. The verdict takes means over all seeds "
        "with rankings."
    )

    def make(self, source: Source) -> Metrics | None:
        return measure(source.models, tuple(source.names), source.asked.protocol, source.asked.k)

    def named(self, content: Metrics) -> list[str]:
        return [
            *(estimate.model for estimate in content.estimates),
            *(entry.model for entry in content.beyond),
            *content.absent,
            *content.beams,
        ]

    def check(self, content: Metrics, report: Report) -> None:
        kinds = {estimate.metric for estimate in content.estimates}
        cells = {(row_of(estimate), estimate.metric) for estimate in content.estimates}
        able = [row_of(entry) for entry in content.beyond if content.cannot(entry.model) is None]
        if cells != {(row, kind) for row in able for kind in kinds}:
            raise ValueError("metrics lack a model or a metric")
        if any(row_of(estimate) not in content.rows for estimate in content.repeats):
            raise ValueError("metrics tell repeats of a model that they do not have")
        verdict = content.verdict
        if verdict is not None:
            both = verdict.neural is not None and verdict.untrained is not None
            if (verdict.neural or verdict.untrained) is None or any(
                (value is None) == both for value in (verdict.difference, verdict.low, verdict.high)
            ):
                raise ValueError("the verdict lacks a model or the difference of the two")

    def tables(self, content: Metrics, report: Report) -> dict[str, Table]:
        kinds = list(dict.fromkeys(estimate.metric for estimate in content.estimates))
        titles, protocol = _titles(content, report), content.protocol
        least = _adjusted(content)
        rows: list[tuple[Any, ...]] = []
        beyond: list[tuple[Any, ...]] = []
        for row, title in titles.items():
            (estimates, lists), why = content.of(row), content.cannot(analysis.model_of(row))
            of_row = [(title, protocol, o.metric, o.mean, o.low, o.high, o.people, o.mark, o.p) for o in estimates]
            rows += [(*values, "" if values[-1] is None else least) for values in of_row]
            rows += [(title, protocol, kind, *[None] * 3, content.people, "", None, why) for kind in kinds if why]
            values = [lists.value(metric.field) for metric in judge.BEYOND.values()]
            beyond.append((title, content.k, *values, lists.note))
        repeats = [(o.words, titles[row_of(o)], o.metric, o.mean, o.low, o.high, o.people) for o in content.repeats]
        groups = [] if content.verdict is None else content.verdict.groups
        columns = ("model", "protocol", "metric", "mean", "low", "high", "users", "mark", "p (Holm)", "note")
        of_beyond = ("model", "k", *(metric.head for metric in judge.BEYOND.values()), "note")
        of_repeats = ("held-out item", "model", "metric", "mean", "low", "high", "users")
        return {
            "metrics": Table("Metrics", columns, rows),
            "metrics-beyond": Table("Beyond accuracy", of_beyond, beyond),
            "metrics-repeats": Table("Repeats apart", of_repeats, repeats),
            "metrics-groups": Table(
                "Slices",
                ("slice", "users", "share", "difference", "low", "high"),
                [
                    (words, group.people, group.share, group.difference, group.low, group.high)
                    for (words, *_), group in zip(_groups(content), groups, strict=True)
                ],
            ),
        }

    def blocks(self, content: Metrics, report: Report) -> list[Block]:
        kinds = list(dict.fromkeys(estimate.metric for estimate in content.estimates))
        rows: list[list[Cell]] = []
        for row, title in _titles(content, report).items():
            (estimates, lists), why = content.of(row), content.cannot(analysis.model_of(row))
            cells: list[Cell] = [{"number": "n/a", "small": f"({why})", "strong": False}] * len(kinds) if why else []
            cells += [interval(estimate.mean, estimate.low, estimate.high, estimate.mark) for estimate in estimates]
            more = [metric.text(lists.value(metric.field)) for metric in judge.BEYOND.values()]
            rows.append([sign(report, analysis.model_of(row), title), *cells, *more])
        head = ["Model", *kinds, *(metric.at(content.k) for metric in judge.BEYOND.values())]
        tables, figure, apart = self.tables(content, report), _figure(content, report), repeats_apart(content, report)
        # the protocol is named in files as it is in commands
        in_words = [
            (title, protocols.title(name), *values, p, "" if note == _adjusted(content) else note)
            for title, name, *values, p, note in tables["metrics"].rows
        ]
        return [
            *(p(text) for text in (" ".join(map(clean, content.held_out)), verdict(content, report)) if text),
            *([figures(figure, width=62)] if figure is not None else []),
            table("Metrics of every model", head, rows, [1, *[0] * (len(head) - 1)]),
            quiet(f"{'* the best. ' if _marked(content) else ''}{protocol_words(content, report)}"),
            *([p(apart)] if content.repeats else []),
            *grid(tables["metrics"]._replace(rows=in_words)),
            *grid(tables["metrics-repeats"]),
            *grid(Table("Slices", judge.GROUP_COLUMNS, _groups(content))),
        ]

    def compare(self, report: Report, then: Metrics, now: Metrics) -> Iterator[Checked]:
        if then.k > now.k == analysis.cutoffs(report.dataset.items)[-1]:
            yield Checked(
                "metrics", None, f"at {then.k} every item of this catalogue is a hit; they are at {now.k} now"
            )
            return
        if report.schema_version != 1:
            others = then.verdict is not None and _compared(then.verdict) != _compared(now.verdict)
            if others:
                yield Checked("metrics, verdict", None, "it was of other models than the dataset has now")
            skipped = others or then.verdict is None
            verdict = then.verdict if skipped else _verdict_then(then.verdict, now.verdict)
            yield from super().compare(report, then, _known_then(then, now, verdict))
            return
        if later := [name for name in Metrics.LATER if name not in then.unsaid()]:
            yield Checked("metrics", False, f"format 1 had no {listed(later)}")
        # In format 1 users' vectors were a protocol of their own, so that other models were compared with the best.
        users = then.protocol.endswith(analysis.USERS)
        base = then.protocol.removesuffix(analysis.USERS)
        known = {(entry.model, entry.metric) for entry in then.estimates}

        def compared(metrics: Metrics, with_vectors: bool) -> dict[str, Any]:
            rows = [
                entry
                for entry in metrics.estimates
                if entry.users == with_vectors and (entry.model, entry.metric) in known
            ]
            beyond = [entry for entry in metrics.beyond if entry.users == with_vectors]
            return {
                "protocol": metrics.protocol.removesuffix(analysis.USERS),
                "k": metrics.k,
                "people": metrics.people,
                "estimates": [
                    entry.model_dump(include={"model", "metric", "mean", "low", "high"})
                    for entry in sorted(rows, key=lambda entry: (entry.model, entry.metric))
                ],
                "beyond": [entry.model_dump(include={"model", "coverage", "gini", "novelty"}) for entry in beyond],
            }

        words = f"the same figures under “{clean(base, 60)}”; the verdicts of format 1 are not compared"
        yield same("metrics", compared(then, False), compared(now, users), words)


PART = MetricsPart()


@cached(100, by=of_content)
def measure(models: Zoo, names: tuple[str, ...], protocol: str | None, k: int) -> Metrics | None:
    """None where no model that is shown was evaluated. k: of the lists; the metrics have the page's highest cut-off up to it."""
    possible = evaluation.protocols(models, names)
    if not possible:
        return None
    protocol = analysis.variant(protocol) if protocol else possible[0]
    if protocol not in possible:
        raise SeqscopeError(
            f"No model was evaluated under the protocol “{protocol[:80]}”; there are {', '.join(possible)}."
        )
    ranks_of, left_out = evaluation.people(models, protocol, names)
    rows = sorted(ranks_of, key=lambda row: names.index(analysis.model_of(row)))
    ranks = {row: ranks_of[row] for row in rows}
    if not ranks or not len(next(iter(ranks.values()))):
        return None
    k = max(cut for cut in analysis.cutoffs(len(models)) if cut <= k)
    # of equals the plainest is the best, as in the verdict
    standing = analysis.standing(ranks_of, [judge.key(name, k) for name in analysis.metrics_of(protocol)])
    entries = sorted(standing[standing["note"] == ""].itertuples(), key=lambda entry: rows.index(entry.model))
    exposures = {name: models.bundles[name].exposure_table() for name in names}
    beyond = analysis.beyond(exposures, ranks, protocol, k, models.popularity)
    return Metrics(
        protocol=protocol,
        words=protocols.sentence(protocol, len(models)),
        k=k,
        people=next(iter(ranks.values())).people,
        left_out=left_out,
        samples=analysis.SAMPLES,
        seed=analysis.SEED,
        estimates=[Estimate(**_estimate(entry), mark=entry.mark, p=number_or_none(entry.holm)) for entry in entries],
        beyond=[_beyond(row) for row in beyond.itertuples()],
        absent=[name for name in names if name not in {analysis.model_of(row) for row in ranks}],
        repeats=_repeats(models, ranks, [f"{name}@{k}" for name in ("HR", judge.HEADLINE)]),
        beams={
            analysis.model_of(row): row_ranks.width for row, row_ranks in ranks.items() if row_ranks.width is not None
        },
        held_out=analysis.held_out_words(models.info),
        verdict=evaluation.verdict(models, protocol, judge.key(judge.HEADLINE, k)),
    )


def _row(row: str) -> dict[str, Any]:
    more = analysis.more_of(row)
    return {"model": analysis.model_of(row), "users": more == analysis.USERS, "times": more == analysis.TIMES}


def _estimate(row: Any) -> dict[str, Any]:
    means = {name: number(getattr(row, name)) for name in ("mean", "low", "high")}
    return {**_row(row.model), **means, "metric": row.metric, "people": int(row.n)}


def _beyond(row: Any) -> Beyond:
    """row: of `analysis.beyond`."""
    values = {metric.field: number_or_none(getattr(row, metric.field)) for metric in judge.BEYOND.values()}
    fields: dict[str, Any] = {field: values.pop(field) for field in Beyond.model_fields if field in values}
    return Beyond(**_row(row.model), **fields, others=values, note=row.note)


def _repeats(models: Zoo, ranks: Mapping[str, judge.Ranks], metrics: Iterable[str]) -> list[Slice]:
    if protocols.history_excluded(models.info.repeats):
        return []
    groups = evaluation.by_repeat(next(iter(ranks.values())), models.users)
    if len(groups) < 2:
        return []
    return [
        Slice(words=row.slice, **_estimate(row))
        for metric in metrics
        for row in evaluation.means_by_slice(ranks, groups, metric).assign(metric=metric).itertuples()
    ]


def _known_then(then: Metrics, now: Metrics, verdict: judge.Verdict | None) -> Metrics:
    """Without the metrics that were declared after the report was made, or elsewhere, and with shares as it rounds them."""
    known = {entry.metric for entry in then.estimates}
    known |= {judge.key(name, now.k) for name, metric in judge.ACCURACY.items() if not metric.later}
    others = {field for entry in then.beyond for field in entry.others}
    beyond = [
        entry.model_copy(update={"others": {field: entry.others[field] for field in entry.others if field in others}})
        for entry in now.beyond
    ]
    plural = [repeats.in_plural(text) for text in now.held_out]
    rounded = [text.replace("(<1%)", "(0%)").replace("(>99%)", "(100%)") for text in plural]
    held_out = then.held_out if then.held_out in (plural, rounded) else now.held_out
    estimates = _widths_then(then.estimates, [entry for entry in now.estimates if entry.metric in known])
    estimates = _marks_then(then.estimates, estimates)
    slices = _widths_then(then.repeats, now.repeats)
    changes = {"estimates": estimates, "repeats": slices, "beyond": beyond, "held_out": held_out, "verdict": verdict}
    return now.model_copy(update=changes)


def _widths_then(then: Sequence[Given], now: Sequence[Given]) -> list[Given]:
    """Without the width of intervals of users who all have the same value, where they have none in a report of before."""
    before = [_whose(entry) for entry in then if entry.low == entry.high]
    return [
        entry.model_copy(update={"low": entry.mean, "high": entry.mean})
        if _whose(entry) in before and number(judge.interval(np.full(entry.people, entry.mean)).high) == entry.high
        else entry
        for entry in now
    ]


def _marks_then(then: Sequence[Estimate], now: Sequence[Estimate]) -> list[Estimate]:
    """With the marks and p of the report, where of equals it has another one as the best, and one alone."""
    best = {entry.metric: entry for entry in now if entry.mark == "best"}
    marked = [entry for entry in then if entry.mark == "best"]
    moved = {
        was.metric
        for was in marked
        if (entry := best.get(was.metric)) is not None and was.mean == entry.mean and row_of(was) != row_of(entry)
        if [other.metric for other in marked].count(was.metric) == 1
    }
    before = {_whose(entry): entry for entry in then if entry.metric in moved}
    return [
        entry.model_copy(update={"mark": was.mark, "p": was.p}) if (was := before.get(_whose(entry))) else entry
        for entry in now
    ]


def _whose(entry: Estimate | Slice) -> tuple[str, str, str]:
    return row_of(entry), entry.metric, entry.words if isinstance(entry, Slice) else ""


def _verdict_then(then: judge.Verdict | None, now: judge.Verdict | None) -> judge.Verdict | None:
    """Without what the verdict did not say of its sides when the report was made."""
    if then is None or now is None:
        return now
    now = now if then.p is not None else dataclasses.replace(now, p=None)
    if len(then.groups) == len(now.groups):
        groups = tuple(map(_difference_then, then.groups, now.groups))
        now = _difference_then(then, dataclasses.replace(now, groups=groups))
    if any(side.improving is not None for side in (then.neural, then.untrained) if side is not None):
        return now
    neural, untrained = (side and dataclasses.replace(side, improving=None) for side in (now.neural, now.untrained))
    return dataclasses.replace(now, neural=neural, untrained=untrained)


def _difference_then(then: Differing, now: Differing) -> Differing:
    """Without the width of the interval of users who all differ alike, where it has none in a report of before."""
    mean = now.difference
    if mean is None or (then.low, then.high) not in ((mean, mean), (min(mean, 0.0), max(mean, 0.0))):
        return now
    alike = judge.paired(np.full(now.people, mean), np.zeros(now.people))
    same_ends = np.allclose((now.low or 0.0, now.high or 0.0), (alike.low, alike.high), rtol=0, atol=1e-6)
    return dataclasses.replace(now, low=then.low, high=then.high) if same_ends else now


def _compared(verdict: judge.Verdict | None) -> list[int] | None:
    """How many models of each kind the verdict is of: all of the dataset, of which some may have come or gone since."""
    return None if verdict is None else [side.among for side in (verdict.neural, verdict.untrained) if side is not None]


# --- in words and drawn


def _families(rows: Iterable[str], report: Report) -> dict[str, str]:
    return {row: report.model(analysis.model_of(row)).family for row in rows}


def _titles(content: Metrics, report: Report) -> dict[str, str]:
    """Row → what it is called, those that need no training first, as tables and figures have them."""
    return analysis.titled(report.titles, floor.first(content.rows, _families(content.rows, report)))


def _groups(content: Metrics) -> list[tuple[Any, ...]]:
    return [] if content.verdict is None else [*judge.group_rows(content.verdict)]


def verdict(content: Metrics, report: Report) -> str:
    """Whether a neural model is worth its training, as Metrics opens with; who is below the floor, and what is missing."""
    titles, families = analysis.titled(report.titles, content.rows), _families(content.rows, report)
    name = f"{judge.HEADLINE}@{content.k}"
    means = {row_of(entry): entry.mean for entry in content.estimates if entry.metric == name}
    beams = [f"{titles[row_of(entry)]} ({why})" for entry in content.beyond if (why := content.cannot(entry.model))]
    elsewhere = {entry.name: "another dataset" for entry in report.models if entry.zero_shot}
    sentences = [
        judge.sentences(content.verdict, lambda title: clean(title, 80), elsewhere)
        if content.verdict is not None
        else "",
        floor.below(means, families, titles).strip(),
        f"Left out, as nothing is known of places beyond the beam: {listed(beams)}." if beams else "",
        "" if _floor_left_out(content, families) else floor.missing(families, content.protocol).replace("`", ""),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _floor_left_out(content: Metrics, families: Mapping[str, str]) -> bool:
    """Whether the dataset has models that need no training beside those of the report."""
    compared = None if content.verdict is None else content.verdict.untrained
    return compared is not None and compared.among > len(families) - len(floor.learned(families, families))


def _adjusted(content: Metrics) -> str:
    """What p is, in words."""
    return analysis.adjusted(sum(content.cannot(entry.model) is None for entry in content.beyond) - 1)


def _marked(content: Metrics) -> bool:
    """Whether one is called the best; a model that stands alone is not."""
    return any(estimate.mark for estimate in content.estimates)


def protocol_words(content: Metrics, report: Report) -> str:
    text = (
        f"{content.words} Split: {split_words(report.dataset.split)}; {analysis.users_words(content.people, content.protocol)}. "
        f"Intervals: 95%, bootstrap over users, {content.samples:,} samples, seed {content.seed}"
    )
    if _marked(content):
        text += f"; ≈: not significantly different from the best, by a paired bootstrap ({_adjusted(content)})"
    text += f".{analysis.left_out(content.left_out)}"
    if content.absent:
        text += f" Not evaluated so: {listed([report.titles[name] for name in content.absent])}."
    for words, names in report.early.items():
        text += f" {words.capitalize()}: {listed([report.titles[name] for name in names])}."
    return text


def repeats_apart(content: Metrics, report: Report) -> str:
    """The metrics of held-out items that repeat one of the history, and of the others; "" where they are not told apart."""
    titles, sentences, covered = _titles(content, report), [], 0
    slices = [entry for entry in content.repeats if entry.metric.startswith(judge.HEADLINE)]
    for group in dict.fromkeys(entry.words for entry in slices):
        part = [entry for entry in slices if entry.words == group]
        means = listed([f"{titles[row_of(entry)]} {entry.mean:.3f}" for entry in part])
        people = count(part[0].people, "user")
        sentences.append(f"{part[0].metric} where the held-out item {clean(group, 60)} ({people}): {means}.")
        covered += part[-1].people
    if sentences and covered < content.people:
        others = count(content.people - covered, "other user")
        sentences.append(f"Not exported are the histories of {others}.")
    return " ".join(sentences)


def _figure(content: Metrics, report: Report) -> Figure | None:
    name = f"{judge.HEADLINE}@{content.k}"
    estimates = [estimate for estimate in content.estimates if estimate.metric == name]
    if not estimates:
        return None
    rows = list(map(row_of, estimates))
    frame = pd.DataFrame([estimate.model_dump() for estimate in estimates]).assign(model=rows, note="")
    families, titles = _families(rows, report), analysis.titled(report.titles, rows)
    models = {row: report.model(analysis.model_of(row)) for row in rows}
    looks = {row: dotted(model.style) if analysis.more_of(row) else model.style for row, model in models.items()}
    models_shown = count(len({model.name for model in models.values()}), "model")
    alt = f"{name} of {models_shown} with 95% intervals: those that need no training, then best on top"

    def draw(font: str) -> Any:
        counted = floor.best(dict(zip(rows, frame["mean"], strict=True)), families)
        dots = [
            charts.Dot(
                titles[row.model], row.mean, row.low, row.high, models[row.model].colour,
                models[row.model].marker + ("-dot" if analysis.more_of(row.model) else ""), drawing.MARKS[row.mark],
            )
            for row in drawing.ordered(frame, "mean", families).itertuples()
        ]  # fmt: skip
        return charts.dots(dots, name, alt, floor=None if counted is None else counted[1], font=font)

    return Figure("metrics", alt, draw, lambda: drawing.dots(frame, name, titles, looks, families))
