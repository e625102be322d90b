"""Whether a neural model is worth its training on a dataset: the best one against the best of those that need none, by how much,
how surely, at what cost and for whom. One computation for the page Metrics, reports, `seqscope evaluate` and benchmarks; its
sentences are in engine/evaluation/verdict_words.py. Pure numpy.

A model needs no training where it learns nothing step by step: its `objective` is "counts" (engine/models/base.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from engine.evaluation.memorisation import NEAR, NEXT, UNSEEN
from engine.evaluation.rank_table import Ranks
from engine.evaluation.significance import Difference, paired_over_seeds

USERS = "+user"
"""Behind a contender's name: the model with its vectors of training users, which is no model more."""
FEW = 30
"""People in a group below which nothing is said of it."""
Kind = Literal["rare", "popular", "short", "long", "next", "near", "unseen"]
_CHECKED = {"extra": "forbid", "strict": True, "allow_inf_nan": False}
"""How reports read the classes below, without pydantic here."""
MEMORISED: dict[Kind, int] = {"next": NEXT, "near": NEAR, "unseen": UNSEEN}


@dataclass(frozen=True)
class Contender:
    """A model, trained with one or more seeds; all contenders were asked for the same held-out items in the same order."""

    name: str
    title: str
    learns: bool
    """Step by step; False where it needs no training."""
    ranks: tuple[Ranks, ...]
    """One per seed."""
    seconds: float
    """Of training, mean over seeds; 0 where it was not timed."""
    parameters: int
    milliseconds: float | None = None
    """Of processor time per list, one history at a time (engine/evaluation/cost.py); None where it was not measured."""

    def values(self, metric: str, rows: npt.NDArray[np.intp] | None = None) -> npt.NDArray[np.float64]:
        """[seeds, people] in a metric; rows: of held-out items, None for all."""
        return np.array([(ranks if rows is None else ranks.take(rows)).values(metric) for ranks in self.ranks])


@dataclass(frozen=True)
class Side:
    """One of the two that are compared."""

    __pydantic_config__ = _CHECKED

    name: str
    title: str
    learns: bool
    mean: float
    seeds: int
    seconds: float
    parameters: int
    milliseconds: float | None
    among: int
    """Of how many models of its kind it is the best."""


@dataclass(frozen=True)
class Group:
    """Some of the held-out items, and by how much the neural model is ahead there (mean over people, 95 % interval)."""

    __pydantic_config__ = _CHECKED

    kind: Kind
    bound: int | None
    """The most events of a rare item, or items of a short history; the fewest of a popular or a long one."""
    people: int
    share: float
    """Of all held-out items."""
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """What the sentences say. Differences are neural − untrained."""

    __pydantic_config__ = _CHECKED

    metric: str
    people: int
    neural: Side | None
    """None where no neural model was measured; `untrained` likewise."""
    untrained: Side | None
    difference: float | None
    low: float | None
    high: float | None
    groups: tuple[Group, ...]

    @property
    def better(self) -> Literal["neural", "untrained", "level"] | None:
        """level: the interval contains 0. None where one of the two is missing."""
        if self.low is None or self.high is None:
            return None
        return "neural" if self.low > 0 else "untrained" if self.high < 0 else "level"


def without_seed(recipe: Mapping[str, Any]) -> str:
    """What two trainings have in common that differ in their seed alone. recipe: resolved, as in run.json."""
    training = {name: value for name, value in recipe.get("training", {}).items() if name != "seed"}
    return json.dumps({**recipe, "training": training}, sort_keys=True, default=str)


def verdict(
    contenders: Sequence[Contender],
    metric: str,
    popularity: npt.NDArray[np.integer],
    memorised: npt.NDArray[np.integer] | None = None,
    *,
    seed: int = 0,
    samples: int = 2000,
) -> Verdict | None:
    """None where no contender has a figure for the metric.

    Args:
        contenders: all under one protocol and fitted on the same events.
        popularity: training events per item, [items].
        memorised: of each held-out item in the contenders' order (engine/evaluation/memorisation.py); None where unknown.
        seed, samples: of the bootstrap.
    """
    able = [model for model in contenders if len(model.ranks[0]) and not model.ranks[0].beyond_beam(metric)]
    if not able:
        return None
    values = {model.name: model.values(metric) for model in able}
    best: dict[bool, Contender] = {}
    for model in able:
        rival = best.get(model.learns)
        if rival is None or values[model.name].mean() > values[rival.name].mean():
            best[model.learns] = model
    sides = {
        learns: Side(
            name=model.name,
            title=model.title,
            learns=learns,
            mean=_rounded(values[model.name].mean()),
            seeds=len(model.ranks),
            seconds=_rounded(model.seconds),
            parameters=model.parameters,
            milliseconds=None if model.milliseconds is None else _rounded(model.milliseconds),
            among=len({other.name.removesuffix(USERS) for other in able if other.learns == learns}),
        )
        for learns, model in best.items()
    }
    neural, untrained = sides.get(True), sides.get(False)
    people = values[able[0].name].shape[1]
    if neural is None or untrained is None:
        return Verdict(metric, people, neural, untrained, None, None, None, ())

    def ahead(rows: npt.NDArray[np.intp] | None) -> Difference:
        ours, theirs = (best[learns].values(metric, rows) for learns in (True, False))
        return paired_over_seeds(ours, theirs, seed=seed, samples=samples)

    overall = ahead(None)
    some = best[True].ranks[0]
    groups = []
    for kind, bound, mask in _groups(some, popularity, memorised):
        rows = np.flatnonzero(mask)
        apart = ahead(rows)
        groups.append(
            Group(
                kind=kind,
                bound=bound,
                people=some.take(rows).people,
                share=_rounded(mask.mean()),
                difference=_rounded(apart.mean),
                low=_rounded(apart.low),
                high=_rounded(apart.high),
            )
        )
    ends = (_rounded(overall.mean), _rounded(overall.low), _rounded(overall.high))
    return Verdict(metric, people, neural, untrained, *ends, tuple(groups))


def _groups(
    ranks: Ranks, popularity: npt.NDArray[np.integer], memorised: npt.NDArray[np.integer] | None
) -> list[tuple[Kind, int | None, npt.NDArray[np.bool_]]]:
    """Kind, bound and mask over held-out items: the outer thirds by popularity and by length, and the kinds of `memorised`; none
    that is empty or everything."""
    groups: list[tuple[Kind, int | None, npt.NDArray[np.bool_]]] = []
    ends: tuple[tuple[Kind, Kind, npt.NDArray[np.integer]], ...] = (
        ("rare", "popular", popularity[ranks.target]),
        ("short", "long", ranks.length),
    )
    for least, most, numbers in ends:
        lower, upper = (int(np.quantile(numbers, share, method="lower")) for share in (1 / 3, 2 / 3))
        if lower < upper:  # an edge is the largest number of the lower two thirds
            above = numbers > upper
            groups.append((least, lower, numbers <= lower))
            groups.append((most, int(numbers[above].min()) if above.any() else None, above))
    if memorised is not None:
        groups += [(kind, None, memorised == value) for kind, value in MEMORISED.items()]
    return [group for group in groups if group[2].any() and not group[2].all()]


def _rounded(value: float) -> float:
    """As many digits as a float32 has: what is written and computed again stays equal."""
    return float(f"{value:.7g}")
