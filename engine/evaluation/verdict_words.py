"""The sentences of a verdict (engine/evaluation/verdict.py), at most three: who wins, at what cost, for whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from engine.evaluation.memorisation import PLACES
from engine.evaluation.verdict import FEW, Group, Kind, Side, Verdict

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
GROUP_COLUMNS = ("for whom", "users", "share", "difference", "95 % interval")
"""Of `group_rows`."""


def group_rows(verdict: Verdict) -> list[tuple[str, str, str, str, str]]:
    """All groups, as text: what the third sentence is of, in full."""
    return [
        (
            _GROUPS[group.kind][1].format(bound=group.bound),
            f"{group.people:,}",
            f"{group.share:.0%}",
            f"{group.difference:+.4f}",
            f"{group.low:+.4f} to {group.high:+.4f}",
        )
        for group in verdict.groups
    ]


class VerdictWords(NamedTuple):
    """A verdict's sentences; "" where there is none."""

    outcome: str
    """Who wins, by how much and how surely."""
    cost: str
    for_whom: str


def words(verdict: Verdict, called: Callable[[str], str] = str) -> VerdictWords:
    """called: a title → as it is escaped for where it is shown."""
    neural, untrained = verdict.neural, verdict.untrained
    if neural is None or untrained is None:
        side = neural or untrained
        assert side is not None
        return VerdictWords(_alone(verdict, side, called(side.title)), "", "")
    ours, theirs = called(neural.title), called(untrained.title)
    return VerdictWords(
        _outcome(verdict, neural, untrained, ours, theirs),
        f"{ours} {_cost(neural)}; {theirs} {_cost(untrained)}.",
        _for_whom(verdict.groups, ours),
    )


def sentences(verdict: Verdict, called: Callable[[str], str] = str) -> str:
    """`words` in one line."""
    return " ".join(sentence for sentence in words(verdict, called) if sentence)


def _alone(verdict: Verdict, side: Side, title: str) -> str:
    words = f"{title}{_best(side)} has {verdict.metric} {side.mean:.4f} over {_people(verdict)}"
    if side is verdict.neural:
        return f"{words}. No model that needs no training was measured beside it, so nothing says whether it is worth its own."
    return f"{words}. No neural model was measured beside it."


def _outcome(verdict: Verdict, neural: Side, untrained: Side, ours: str, theirs: str) -> str:
    assert verdict.difference is not None and verdict.low is not None and verdict.high is not None
    ends = f"95 % interval of the difference {verdict.low:+.4f} to {verdict.high:+.4f}"
    figures = f"{neural.mean:.4f} against {untrained.mean:.4f}; {ends} over {_people(verdict)}{_seeds(neural)}"
    ours, theirs = ours + _best(neural), theirs + _best(untrained)
    if verdict.better == "level":
        return f"{ours} and {theirs} are level by {verdict.metric} ({figures})."
    verb = "beats" if verdict.better == "neural" else "is below"
    worth = "" if verdict.better == "neural" else "No neural model is worth its training here: "
    return f"{worth}{ours} {verb} {theirs} by {abs(verdict.difference):.4f} {verdict.metric} ({figures})."


def _best(side: Side) -> str:
    """An apposition: of how many it is the best, and of which kind."""
    if side.learns:
        return f", the best of {side.among} neural models," if side.among > 1 else ", a neural model,"
    return f", the best of {side.among} that need no training," if side.among > 1 else ", which needs no training,"


def _people(verdict: Verdict) -> str:
    return f"{verdict.people:,} {'user' if verdict.people == 1 else 'users'}"


def _seeds(side: Side) -> str:
    return f" and {side.seeds} seeds" if side.seeds > 1 else ", one seed: not over trainings"


def _cost(side: Side) -> str:
    """What it takes, as the rest of a sentence of which the model is the subject."""
    parts = [f"took {_time(side.seconds)} to fit" if side.seconds else "was not timed"]
    parts.append(f"has {side.parameters:,} parameters" if side.parameters else "has no parameters")
    if side.milliseconds is not None:
        parts.append(f"takes {side.milliseconds:,.{1 if side.milliseconds < 10 else 0}f} ms of processor per list")
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.2g} s" if seconds < 1 else f"{seconds:.0f} s"
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
        return f"{ours} is level in every group."
    parts = [f"furthest {word} on {_by(some[0])}" for word, some in (("ahead", ahead), ("behind", behind)) if some]
    if level:
        names, more = [_GROUPS[group.kind][0] for group in level[:2]], len(level) - 2
        if more > 0:
            names = [", ".join(names), f"{more} more {'groups' if more > 1 else 'group'}"]
        parts.append(f"level on {' and '.join(names)}")
    return f"{ours} is {', '.join(parts[:-1])}{' and ' if parts[1:] else ''}{parts[-1]}."


def _by(group: Group) -> str:
    return f"{_GROUPS[group.kind][0]} ({group.difference:+.4f})"
