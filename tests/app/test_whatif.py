"""Edits of a history."""

from __future__ import annotations

import random

from app.session import history_edits

HISTORY = ("a", "b", "c", "d")


def test_moves_stop_at_the_ends() -> None:
    assert history_edits.moved(HISTORY, 0, -1) == HISTORY
    assert history_edits.moved(HISTORY, 0, 1) == ("b", "a", "c", "d")
    assert history_edits.moved(HISTORY, 1, 99) == ("a", "c", "d", "b")
    assert history_edits.moved(HISTORY, 9, 1) == HISTORY


def test_a_shuffle_changes_the_order_and_nothing_else() -> None:
    found = history_edits.shuffled(HISTORY, random.Random(1))
    assert sorted(found) == sorted(HISTORY)
    assert found != HISTORY
    assert history_edits.shuffled(("a", "a"), random.Random(1)) == ("a", "a")
