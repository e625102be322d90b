"""Histories to begin with, and the real people of a dataset."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from app.analysis.cache import cached, of_opened
from app.limits import MAX_HISTORY

if TYPE_CHECKING:
    from engine.runtime import Zoo


class Example(NamedTuple):
    """A history worth looking at."""

    title: str
    why: str
    """What to look for, in a sentence."""
    history: tuple[str, ...]


# Real people. tests/sample/test_film_examples.py holds the sentences against the committed models.
_FILMS = (
    Example(
        "Two sagas in turn",
        "Star Wars and Indiana Jones alternating: which goes on? Add the Markov chain: it reads only the last film.",
        (
            "star-wars-1977",
            "raiders-of-the-lost-ark-1981",
            "star-wars-episode-v-the-empire-strikes-back-1980",
            "indiana-jones-and-the-temple-of-doom-1984",
        ),
    ),
    Example(
        "Theme or date?",
        "Three space films, but most lists turn to films of 2015, the year of the last one, not to space.",
        ("gravity-2013", "interstellar-2014", "the-martian-2015"),
    ),
    Example(
        "A director",
        "Three films by Hayao Miyazaki. Which models find more of his? Add the Markov chain: it reads only the last film.",
        ("hauru-no-ugoku-shiro-2004", "mononoke-hime-1997", "tonari-no-totoro-1988"),
    ),
    Example(
        "A film that turns the list",
        "Three films by Hitchcock, then Deadpool, and most lists turn to new releases. Try: remove the last item.",
        ("rear-window-1954", "vertigo-1958", "psycho-1960", "deadpool-2016"),
    ),
    Example(
        "Films that few users rated",
        "Old horror. Add the Markov chain: with little to count it falls back on new releases; most others keep to the taste.",
        ("halloween-1978", "the-thing-1982", "the-fly-1986"),
    ),
)
# The simulated viewers follow two series in turn (docs/sample.md).
_SAMPLE = (
    Example(
        "Two series in turn",
        "Star Wars and Alien alternating, after Blade Runner: which series will a model continue?",
        (
            "blade-runner-1982",
            "star-wars-1977",
            "alien-1979",
            "the-empire-strikes-back-1980",
            "aliens-1986",
        ),
    ),
    Example(
        "Halfway through Middle-earth",
        "Two of three parts, each followed by another film.",
        (
            "spirited-away-2001",
            "the-lord-of-the-rings-the-fellowship-of-the-ring-2001",
            "pans-labyrinth-2006",
            "the-lord-of-the-rings-the-two-towers-2002",
            "princess-mononoke-1997",
        ),
    ),
    Example(
        "Korean thrillers",
        "One taste, no series.",
        (
            "memories-of-murder-2003",
            "i-saw-the-devil-2010",
            "the-handmaiden-2016",
            "train-to-busan-2016",
            "parasite-2019",
        ),
    ),
    Example(
        "One film",
        "A very short history.",
        ("toy-story-1995",),
    ),
)


CHOSEN = {"films": _FILMS, "sample": _SAMPLE}
"""Of the embedded datasets, by name."""


@cached(8, by=of_opened)
def of(models: Zoo) -> tuple[Example, ...]:
    """At least one example for a dataset: chosen ones where it has their items, else people of it, else what is popular."""
    chosen = tuple(
        example
        for example in CHOSEN.get(models.info.name, ())
        if all(models.position(item_id) is not None for item_id in example.history)
    )
    if chosen:
        return chosen
    row = _typical(models)
    if row is not None:
        history = models.users["history"][row].as_py()[-8:]
        ids = tuple(models.item_ids[item] for item in history)
        if not models.info.ordered:
            return (Example("Some items of a user", "The log does not say which came first.", ids),)
        return (Example("A user's latest items", "What one user of this log had last.", ids),)
    ids = tuple(models.item_ids[item] for item in np.argsort(-models.popularity, kind="stable")[:5])
    if models.has_log:
        return (Example("Popular items", "The most popular items of the dataset.", ids),)
    why = "There is no log, so this history is nobody's: the catalogue's first items."
    return (Example("The first items", why, ids),)


def user_row(models: Zoo, user_id: str | None) -> int | None:
    """The row of `models.users` of a person; None where there is none of that name."""
    if user_id is None:
        return None
    return _rows(models).get(user_id)


def history_of(models: Zoo, user_id: str) -> tuple[str, ...] | None:
    """The history of a person, cut to what the app shows; None where there is none of that name."""
    row = user_row(models, user_id)
    if row is None:
        return None
    return tuple(models.item_ids[item] for item in models.users["history"][row].as_py()[-MAX_HISTORY:])


def find_user(models: Zoo, text: str) -> str | None:
    """The user_id that somebody means who types it, or the number it ends with."""
    text = text.strip()
    if user_row(models, text) is not None:
        return text
    return _numbered(models).get(int(text)) if text.isascii() and text.isdigit() and len(text) < 16 else None


@cached(8, by=of_opened)
def _rows(models: Zoo) -> dict[str, int]:
    return {user_id: row for row, user_id in enumerate(models.users["user_id"].to_pylist())}


@cached(8, by=of_opened)
def _numbered(models: Zoo) -> dict[int, str]:
    ends = ((re.search(r"[0-9]{1,15}$", user_id), user_id) for user_id in reversed(list(_rows(models))))
    return {int(end.group()): user_id for end, user_id in ends if end is not None}


def _typical(models: Zoo) -> int | None:
    """The first person with six to twelve items before the held-out one, else the first with any."""
    for row, history in enumerate(models.users["history"][:1_000]):
        if 6 <= len(history) <= 12:
            return row
    return 0 if models.users.num_rows and len(models.users["history"][0]) else None
