"""Edits of a history."""

from __future__ import annotations

import random

from app import whatif

HISTORY = ("a", "b", "c", "d")


def test_edits() -> None:
    assert whatif.without(HISTORY, 1) == ("a", "c", "d")
    assert whatif.swapped(HISTORY, 0, 3) == ("d", "b", "c", "a")
    assert whatif.latest(HISTORY, 2) == ("c", "d")
    assert whatif.latest(HISTORY, 9) == HISTORY
    assert whatif.latest(HISTORY, 0) == ()
    assert whatif.replaced(HISTORY, 3, "e") == ("a", "b", "c", "e")
    assert whatif.backwards(HISTORY) == ("d", "c", "b", "a")


def test_moves_stop_at_the_ends() -> None:
    assert whatif.moved(HISTORY, 0, -1) == HISTORY
    assert whatif.moved(HISTORY, 0, 1) == ("b", "a", "c", "d")
    assert whatif.moved(HISTORY, 1, 99) == ("a", "c", "d", "b")
    assert whatif.moved(HISTORY, 9, 1) == HISTORY


def test_a_shuffle_changes_the_order_and_nothing_else() -> None:
    found = whatif.shuffled(HISTORY, random.Random(1))
    assert sorted(found) == sorted(HISTORY)
    assert found != HISTORY
    assert whatif.shuffled(("a", "a"), random.Random(1)) == ("a", "a")
