"""How good the models are, as a report holds it: with intervals, tests and the protocol."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from app.analysis import metrics as views
from app.analysis.cache import cached
from app.reports.document import Asked, Beyond, Estimate, Metrics, Slice
from app.reports.lists import number
from engine.errors import SeqscopeError
from engine.runtime import Zoo, judge, protocols


def _content(models: Zoo, names: Sequence[str], asked: Asked) -> Hashable:
    """Whatever the history is."""
    content = tuple((name, models.bundles[name].digest) for name in names)
    return (str(models.path), models.info.fingerprint, content, asked.protocol, asked.k)


@cached(100, by=_content)
def metrics(models: Zoo, names: Sequence[str], asked: Asked) -> Metrics | None:
    """None where no model that is shown was evaluated."""
    bundles = {name: models.bundles[name] for name in names}
    tables = {name: bundle.ranks_table() for name, bundle in bundles.items()}
    possible = views.protocols(tables)
    if not possible:
        return None
    protocol = views.without_users(asked.protocol) if asked.protocol else possible[0]
    if protocol not in possible:
        raise SeqscopeError(
            f"No model was evaluated under the protocol “{protocol[:80]}”; there are {', '.join(possible)}."
        )
    measured = {name: bundle.manifest.metrics for name, bundle in bundles.items()}
    people, left_out = views.common(views.ranked(tables, measured, protocol))
    if not people or not len(next(iter(people.values()))):
        return None
    k = max((cut for cut in judge.CUTOFFS if cut <= asked.k), default=min(judge.CUTOFFS))
    standing = views.standing(people, [judge.key(name, k) for name in views.metrics_of(protocol)])
    standing = standing[standing["note"] == ""]
    exposures = {name: bundle.exposure_table() for name, bundle in bundles.items()}
    shown, why = views.exposures(exposures, people, protocol, k, len(models))
    return Metrics(
        protocol=protocol,
        words=protocols.sentence(protocol, len(models)),
        k=k,
        people=next(iter(people.values())).people,
        left_out=left_out,
        samples=views.SAMPLES,
        seed=views.SEED,
        estimates=[
            Estimate(
                **_row(row.model),
                metric=row.metric,
                mean=number(row.mean),
                low=number(row.low),
                high=number(row.high),
                people=int(row.n),
                mark=row.mark,
                p=None if math.isnan(row.p) else number(row.p),
            )
            for row in standing.itertuples()
        ],
        beyond=[_beyond(row) for row in views.beyond(shown, models.popularity, why).itertuples()],
        absent=[name for name in names if name not in {views.model_of(row) for row in people}],
        repeats=_repeats(models, people, [f"{name}@{k}" for name in ("HR", judge.HEADLINE)]),
        beams={views.model_of(row): one.width for row, one in people.items() if one.width is not None},
        held_out=views.held_out_words(models.info),
    )


def _repeats(models: Zoo, people: Mapping[str, views.Ranks], metrics: Sequence[str]) -> list[Slice]:
    if protocols.history_excluded(models.info.repeats):
        return []
    slicing = views.by_repeat(next(iter(people.values())), models.users)
    if len(slicing.groups) < 2:
        return []
    return [
        Slice(
            words=row.slice,
            **_row(row.model),
            metric=metric,
            mean=number(row.mean),
            low=number(row.low),
            high=number(row.high),
            people=int(row.n),
        )
        for metric in metrics
        for row in views.slices(people, slicing, metric).itertuples()
    ]


def _beyond(row: Any) -> Beyond:
    """row: of `views.beyond`."""
    values = {metric.field: _known(getattr(row, metric.field)) for metric in judge.BEYOND.values()}
    fields: dict[str, Any] = {field: values.pop(field) for field in Beyond.model_fields if field in values}
    return Beyond(**_row(row.model), **fields, others=values, note=row.note)


def _row(row: str) -> dict[str, Any]:
    return {"model": views.model_of(row), "users": row.endswith(views.USERS)}


def _known(value: float) -> float | None:
    return None if math.isnan(value) else number(value)
