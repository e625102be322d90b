"""Names of protocols: what they say, and that nothing is lost where they are taken apart."""

from __future__ import annotations

import pytest

from engine.evaluation.protocols import Protocol, in_order, main, parse, sentence, title


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("full", Protocol("full")),
        ("full+user", Protocol("full", trained_users=True)),
        ("full, history kept+user", Protocol("full", "history kept", True)),
        ("full+user, cold", Protocol("full", "", True, "cold")),
        ("full, repeats, repeated", Protocol("full", "repeats", part="repeated")),
        ("u100, repeats+user, new", Protocol("u100", "repeats", True, "new")),
        ("full, other words", Protocol("full, other words")),
        ("given split+user, cold", Protocol("given split", "", True, "cold")),
        ("held-out users, history kept", Protocol("held-out users", "history kept")),
        ("full+times", Protocol("full", with_times=True)),
        ("u100, repeats, refit+times, new", Protocol("u100", "repeats", part="new", refit=True, with_times=True)),
        ("full, repeats, refit+user, cold", Protocol("full", "repeats", True, "cold", refit=True)),
    ],
)
def test_a_name_is_taken_apart_and_put_together(name: str, expected: Protocol) -> None:
    assert parse(name) == expected
    assert str(expected) == name


def test_a_datasets_own_protocol() -> None:
    assert [main(None), main("first", "time"), main("count")] == ["full", "full", "full, repeats"]
    assert [main("first", kind) for kind in ("given", "users")] == ["given split", "held-out users"]
    assert all(parse(main("first", kind)).full for kind in ("given", "users"))


def test_full_rankings_come_first() -> None:
    names = ["u100", "full+user", "p100", "full, refit", "full+times", "full, history kept", "full", "u100+user"]
    full = ["full", "full+times", "full+user", "full, history kept", "full, refit"]
    assert in_order(names) == [*full, "p100", "u100", "u100+user"]


def test_a_sentence_says_what_becomes_of_the_history() -> None:
    said = [sentence(name, 1318) for name in ("full", "full, repeats", "full, history kept")]
    assert "left out" in said[0] and "repeats count" in said[1] and "papers" in said[2]
    assert "100 others" in sentence("u100", 1318) and "trained user" in sentence("p100+user", 1318)
    assert "never when the held-out one was" in sentence("full+times", 1318)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("full", "Full ranking"),
        ("full, repeats, refit", "Full ranking, repeats, refit"),
        ("full+user", "Full ranking, user vectors"),
        ("full, repeats, refit+times", "Full ranking, repeats, refit, with times"),
        ("held-out users", "Full ranking, held-out users"),
        ("u100", "100 sampled negatives"),
        ("p100, cold", "100 popular negatives, cold"),
        ("somebody's own", "somebody's own"),
    ],
)
def test_pages_call_a_protocol_by_its_method(name: str, words: str) -> None:
    assert title(name) == words
