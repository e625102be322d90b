"""Whether two things that reports say are the same: numbers within a tolerance, all else to the letter."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from app.text import clean

TOLERANCE = 1e-4
T = TypeVar("T")
_MISSING = object()


class Checked(NamedTuple):
    """One thing that a report says."""

    what: str
    holds: bool | None
    """None: it cannot be asked again."""
    words: str


def same(what: str, then: Any, now: Any, words: str = "the same") -> Checked:
    """words: where there is no difference."""
    wrong = difference(then, now)
    return Checked(what, wrong is None, wrong or words)


def difference(then: Any, now: Any, where: str = "") -> str | None:
    """The first difference, in words; None where there is none. Numbers with a fraction may differ by the tolerance."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key in [*then, *(key for key in now if key not in then)]:
            wrong = difference(then.get(key, _MISSING), now.get(key, _MISSING), f"{where}.{key}".lstrip("."))
            if wrong is not None:
                return wrong
        return None
    if isinstance(then, list) and isinstance(now, list):
        if len(then) != len(now):
            return f"{where} had {len(then)} entries, now {len(now)}"
        for place, (was, is_now) in enumerate(zip(then, now, strict=True), 1):
            wrong = difference(was, is_now, f"{where} {place}")
            if wrong is not None:
                return wrong
        return None
    if isinstance(then, float) and isinstance(now, float):
        near = abs(then - now) <= TOLERANCE * max(1.0, abs(then), abs(now))
        return None if near else f"{where} was {then:.7g}, now it is {now:.7g}"
    return None if then == now else f"{where} was {_told(then)}, now it is {_told(now)}"


def _told(value: Any) -> str:
    return "nothing" if value is None or value is _MISSING else f"“{clean(value, 80)}”"


def each(
    part: str,
    then: Sequence[T],
    now: Sequence[T],
    key: Callable[[T], Hashable],
    what: Callable[[T], str],
    compare: Callable[[str, T, T], Checked],
) -> Iterator[Checked]:
    """Entry by entry, and what either side has alone. what: how an entry is called."""
    fresh = {key(entry): entry for entry in now}
    seen: list[Hashable] = []
    for entry in then:
        name = key(entry)
        if name in seen:
            yield Checked(what(entry), False, "it is in the report twice")
        elif name not in fresh:
            yield Checked(what(entry), False, "there is nothing here that it could be compared with")
        else:
            yield compare(what(entry), entry, fresh[name])
        seen.append(name)
    for name, entry in fresh.items():
        if name not in seen:
            yield Checked(what(entry), False, "it is missing from the report")
    if [name for name in dict.fromkeys(seen) if name in fresh] != [name for name in fresh if name in seen]:
        yield Checked(part, False, "they are in another order now")
