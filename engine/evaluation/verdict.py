"""Whether a neural model is worth its training on a dataset: the best one against the best of those that need none, by how much,
how surely, at what cost and for whom, also in sentences. One computation for the page Metrics, reports, `seqscope evaluate` and
benchmarks. Pure numpy.

A model needs no training where it learns nothing step by step: its `objective` is "counts" (engine/models/base.py).
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.evaluation.memorisation import NEAR, NEXT, PLACES, UNSEEN
from engine.evaluation.significance import Difference, paired_over_seeds
from engine.evaluation.tables import Ranks
from engine.writing import in_percent

USERS = "+user"
"""Behind a contender's name: the model with its vectors of training users, which is no model more."""
FEW = 30
"""People below which nothing is said of a group, and of all of them that they are few."""
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
    """Of processor time per list, one history at a time (engine/evaluation/tables.py); None where it was not measured."""
    improving: bool = False
    """Validation was still improving when a training was stopped."""

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
    improving: int | None = None
    """Of how many of them validation was still improving when training was stopped; None in reports of before."""


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
    p: float | None = None
    """Two-sided, of the difference, as if the two had not been chosen; None where one is missing and in reports of before."""

    @property
    def better(self) -> Literal["neural", "untrained", "level"] | None:
        """level: the interval contains 0. None where one of the two is missing."""
        if self.low is None or self.high is None:
            return None
        return "neural" if self.low > 0 else "untrained" if self.high < 0 else "level"


OF_ONE_TRAINING = ("seed", "precision", "compile", "checkpoint_seconds")
"""Settings of the table `training` that make no other model: the seed, and how steps are computed and kept."""


def without_seed(recipe: Mapping[str, Any]) -> str:
    """What two trainings have in common that differ in their seed alone, whatever they are called and on whichever machine they
    were computed. recipe: resolved, as in run.json."""
    settings = {name: value for name, value in recipe.items() if name not in ("name", "title")}
    training = recipe.get("training", {})
    if isinstance(training, dict):  # of a bundle's recipe nothing is known but that it is JSON
        training = {name: value for name, value in training.items() if name not in OF_ONE_TRAINING}
    return json.dumps({**settings, "training": training}, sort_keys=True, default=str)


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
            among=len(_names(other for other in able if other.learns == learns)),
            improving=len(_names(other for other in able if other.learns == learns and other.improving)),
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
    return Verdict(metric, people, neural, untrained, *ends, tuple(groups), _rounded(overall.p))


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


def _names(models: Iterable[Contender]) -> set[str]:
    """A model with its vectors of training users is no model more."""
    return {model.name.removesuffix(USERS) for model in models}


def _rounded(value: float) -> float:
    """As many digits as a float32 has: what is written and computed again stays equal."""
    return float(f"{value:.7g}")


# --- in words


_GROUPS: dict[Kind, tuple[str, str]] = {
    "rare": ("rare items", "rare items (≤ {bound} training events)"),
    "popular": ("popular items", "popular items (≥ {bound} training events)"),
    "short": ("short histories", "short histories (≤ {bound} items)"),
    "long": ("long histories", "long histories (≥ {bound} items)"),
    "next": ("items that followed the last one in training", "items that followed the last one in training"),
    "near": (
        "items that came soon after one of the history in training",
        f"others that came within {PLACES} places after any of the history",
    ),
    "unseen": ("items that no counts lead to", "those that never did"),
}
"""Of held-out items and of the people they are of: as the sentence calls them, and the table."""
GROUP_COLUMNS = ("slice", "users", "share of held-out items", "difference", "95% interval, uncorrected")
"""Of `group_rows`. Each interval stands for itself, whatever the number of groups."""


def signed(value: float, form: str = "+.4f") -> str:
    """A number as it is read: with a true minus, and without a sign where it rounds to zero."""
    text = format(value, form)
    return text.replace("-", "−") if re.search("[1-9]", text) else text.lstrip("+-")


def group_rows(verdict: Verdict) -> list[tuple[str, str, str, str, str]]:
    """All groups, as text: what the third sentence is of, in full."""
    return [
        (
            _GROUPS[group.kind][1].format(bound=group.bound),
            f"{group.people:,}",
            in_percent(group.share),
            signed(group.difference),
            f"{signed(group.low)} to {signed(group.high)}",
        )
        for group in verdict.groups
    ]


class VerdictWords(NamedTuple):
    """A verdict's sentences; "" where there is none."""

    outcome: str
    """Who wins, by how much and how surely."""
    cost: str
    for_whom: str


def words(
    verdict: Verdict, called: Callable[[str], str] = str, elsewhere: Mapping[str, str] | None = None
) -> VerdictWords:
    """called: a title → as it is escaped for where it is shown. elsewhere: contender → what it was trained on, where that is
    another catalogue."""
    neural, untrained = verdict.neural, verdict.untrained
    if neural is None or untrained is None:
        side = neural or untrained
        assert side is not None
        return VerdictWords(_alone(verdict, side, called(side.title)), "", "")
    ours, theirs = called(neural.title), called(untrained.title)
    trained_on = (elsewhere or {}).get(neural.name)
    trained_here = not trained_on or neural.among > len(elsewhere or {})
    return VerdictWords(
        _outcome(verdict, neural, untrained, ours, theirs, trained_here),
        f"{ours} {_cost(neural, called(trained_on) if trained_on else '')}; {theirs} {_cost(untrained)}.{_early(neural)}",
        _for_whom(verdict.groups, ours),
    )


def sentences(verdict: Verdict, called: Callable[[str], str] = str, elsewhere: Mapping[str, str] | None = None) -> str:
    """`words` in one line."""
    return " ".join(sentence for sentence in words(verdict, called, elsewhere) if sentence)


def _alone(verdict: Verdict, side: Side, title: str) -> str:
    words = f"{title}{_best(side)} has {verdict.metric} {side.mean:.4f} over {_people(verdict)}"
    if side is verdict.neural:
        return f"{words}. No model without training was evaluated, so whether training pays off is unknown."
    return f"{words}. No neural model was evaluated."


def _outcome(verdict: Verdict, neural: Side, untrained: Side, ours: str, theirs: str, trained_here: bool) -> str:
    """trained_here: whether any neural model was trained on this dataset."""
    assert verdict.difference is not None and verdict.low is not None and verdict.high is not None
    ends = f"95% interval of the difference {signed(verdict.low)} to {signed(verdict.high)}"
    figures = f"{neural.mean:.4f} against {untrained.mean:.4f}; {ends} over {_people(verdict)}{_seeds(neural)}"
    chance = _by_choice(verdict.p, *((neural, ours) if verdict.better == "neural" else (untrained, theirs)))
    ours, theirs = ours + _best(neural), theirs + _best(untrained)
    few = " An interval over so few users says little." if verdict.people < FEW else ""
    if verdict.better == "level":
        return f"{ours} is not significantly different from {theirs} in {verdict.metric} ({figures}).{few}"
    verb = "beats" if verdict.better == "neural" else "is below"
    here = "as far as they were trained" if neural.improving else "here"
    worth = f"No neural model is worth its training {here}: " if verdict.better == "untrained" and trained_here else ""
    return f"{worth}{ours} {verb} {theirs} by {abs(verdict.difference):.4f} {verdict.metric} ({figures}).{few}{chance}"


def _by_choice(p: float | None, ahead: Side, title: str) -> str:
    """That whoever is ahead may be so by being the best of several; "" where it is beyond that (Bonferroni)."""
    if p is None or ahead.among == 1 or ahead.among * p <= 0.05:
        return ""
    return (
        f" {title}, chosen on these very users as the best of {ahead.among}, may be ahead by chance: p is {p:.3f}, for the "
        f"choice {min(1.0, ahead.among * p):.3f} (Bonferroni)."
    )


def _best(side: Side) -> str:
    """An apposition: of how many it is the best, and of which kind."""
    if side.learns:
        return f", the best of {side.among} neural models," if side.among > 1 else ", a neural model,"
    return f", the best of {side.among} that need no training," if side.among > 1 else ", which needs no training,"


def _people(verdict: Verdict) -> str:
    return f"{verdict.people:,} {'user' if verdict.people == 1 else 'users'}"


def _seeds(side: Side) -> str:
    return f" and {side.seeds} seeds" if side.seeds > 1 else ", one seed: not over trainings"


def _cost(side: Side, elsewhere: str = "") -> str:
    """What it takes, as the rest of a sentence of which the model is the subject. elsewhere: the catalogue it was trained on."""
    parts = [f"took {_time(side.seconds)} to {'train' if side.learns else 'fit'}" if side.seconds else "was not timed"]
    if elsewhere:
        took = f" in {_time(side.seconds)}" if side.seconds else ""
        parts = [f"was not trained on this dataset but on {elsewhere}{took}"]
    parts.append(f"has {side.parameters:,} parameters" if side.parameters else "learns nothing by gradient")
    if side.milliseconds is not None:
        parts.append(f"takes {side.milliseconds:,.{1 if side.milliseconds < 10 else 0}f} ms of CPU time per list")
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _early(side: Side) -> str:
    if not side.improving:
        return ""
    models = "The neural model" if side.among == 1 else f"{side.improving} of {side.among} neural models"
    return f" {models} still improved on validation when training stopped: more epochs may change this."


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.2g} s" if seconds < 1 else f"{seconds:.{1 if seconds < 10 else 0}f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


def _for_whom(groups: Sequence[Group], ours: str) -> str:
    """Where the difference is largest, and where it vanishes; "" where no group is large enough."""
    large = sorted((group for group in groups if group.people >= FEW), key=lambda group: -group.difference)
    if not large:
        return ""
    ahead = [group for group in large if group.low > 0]
    behind = [group for group in reversed(large) if group.high < 0]
    level = sorted((group for group in large if group.low <= 0 <= group.high), key=lambda group: -group.people)
    for word, some in (("ahead", ahead), ("behind", behind)):
        if len(some) == len(large) > 1:
            return f"{ours} is {word} in every group, furthest on {_by(some[0])}, least on {_by(some[-1])}."
    if len(level) == len(large) > 1:
        return f"{ours} is not significantly different in any group."
    parts = [f"furthest {word} on {_by(some[0])}" for word, some in (("ahead", ahead), ("behind", behind)) if some]
    if level:
        names, more = [_GROUPS[group.kind][0] for group in level[:2]], len(level) - 2
        if more > 0:
            names = [", ".join(names), f"{more} more {'groups' if more > 1 else 'group'}"]
        parts.append(f"not significantly different on {' and '.join(names)}")
    return f"{ours} is {', '.join(parts[:-1])}{' and ' if parts[1:] else ''}{parts[-1]}."


def _by(group: Group) -> str:
    return f"{_GROUPS[group.kind][0]} ({signed(group.difference)})"
