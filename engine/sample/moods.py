"""Moods: small groups of films that go together in one session, derived from the catalogue alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.sample.films import Film

SIZES = (6, 24)
"""Films that a mood holds, at least and at most: wide enough for a choice, narrow enough to be felt."""


@dataclass(frozen=True)
class Moods:
    """names: what the films of each mood share; members: int64 [moods, widest], padded with the number of films."""

    names: list[str]
    members: np.ndarray

    def __len__(self) -> int:
        return len(self.names)


def find_moods(films: Sequence[Film]) -> Moods:
    """Every group of films with a theme in common that has a suitable size; groups of the same films count once."""
    groups: dict[str, list[int]] = defaultdict(list)
    for number, film in enumerate(films):
        for name in themes(film):
            groups[name].append(number)
    chosen: dict[tuple[int, ...], str] = {}
    for name, members in sorted(groups.items()):
        if SIZES[0] <= len(members) <= SIZES[1]:
            chosen.setdefault(tuple(members), name)
    table = np.full((len(chosen), SIZES[1]), len(films), np.int64)
    for row, group in enumerate(chosen):
        table[row, : len(group)] = group
    return Moods(list(chosen.values()), table)


def themes(film: Film) -> Iterator[str]:
    """What an evening with this film could be about."""
    decade = film.year // 10 * 10
    yield f"by {film.director}"
    for keyword in film.keywords:
        yield f"about {keyword}"
    for genre in film.genres[:2]:
        yield f"{genre} from {film.country}"
        yield f"{genre} of the {decade}s"
    if len(film.genres) > 1:
        yield " and ".join(sorted(film.genres[:2]))
    yield f"{film.country} in the {decade}s"
