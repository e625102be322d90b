"""How good the models are, as a report holds it: with intervals, tests and the protocol."""

from __future__ import annotations

import math
from collections.abc import Sequence

from app.reports.document import Asked, Beyond, Estimate, Metrics
from app.reports.lists import number
from app.views import metrics as views
from engine.errors import SeqscopeError
from engine.runtime import Zoo, judge


def metrics(models: Zoo, names: Sequence[str], asked: Asked) -> Metrics | None:
    """None where no model that is shown was evaluated."""
    tables = {name: models.bundles[name].ranks_table() for name in names}
    possible = views.protocols(tables)
    if not possible:
        return None
    protocol = asked.protocol or possible[0]
    if protocol not in possible:
        raise SeqscopeError(
            f"No model was evaluated under the protocol “{protocol[:80]}”; there are {', '.join(possible)}."
        )
    found = {name: views.ranks(table, protocol) for name, table in tables.items() if table is not None}
    people, left_out = views.common({name: one for name, one in found.items() if one is not None})
    if not people or not len(next(iter(people.values()))):
        return None
    k = max((cut for cut in judge.CUTOFFS if cut <= asked.k), default=min(judge.CUTOFFS))
    standing = views.standing(people, [f"{name}@{k}" for name in views.METRICS])
    shown = {name: views.exposure(models.bundles[name].exposure_table(), protocol, k, len(models)) for name in people}
    why = f"the bundle keeps no lists for “{protocol}” at {k}"
    return Metrics(
        protocol=protocol,
        words=views.protocol_words(protocol, len(models)),
        k=k,
        people=len(next(iter(people.values()))),
        left_out=left_out,
        samples=views.SAMPLES,
        seed=views.SEED,
        estimates=[
            Estimate(
                model=row.model,
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
        beyond=[
            Beyond(
                model=row.model,
                coverage=_known(row.coverage),
                gini=_known(row.gini),
                novelty=_known(row.novelty),
                note=row.note,
            )
            for row in views.beyond(shown, models.popularity, why).itertuples()
        ],
        absent=[name for name in names if name not in people],
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else number(value)
