"""Names of protocols: what they say, and that nothing is lost where they are taken apart."""

import pytest

from engine.evaluation.protocols import Protocol, in_order, main, parse, title


@pytest.mark.parametrize(
    ("name", "expected", "words"),
    [
        ("full, history kept+user", Protocol("full", "history kept", True), "Full ranking, history kept, user vectors"),
        ("u100, repeats+user, new", Protocol("u100", "repeats", True, "new"),
         "100 sampled negatives, repeats, user vectors, new"),
        ("p100, cold", Protocol("p100", part="cold"), "100 popular negatives, cold"),
        ("full, other words", Protocol("full, other words"), "full, other words"),
        ("held-out users", Protocol("held-out users"), "Full ranking, held-out users"),
        ("full, repeats, refit+times, new", Protocol("full", "repeats", part="new", refit=True, with_times=True),
         "Full ranking, repeats, refit, with times, new"),
    ],
)  # fmt: skip
def test_a_name_is_taken_apart_and_put_together(name: str, expected: Protocol, words: str) -> None:
    assert parse(name) == expected and str(expected) == name and title(name) == words


def test_a_datasets_own_protocol() -> None:
    assert [main(None), main("first", "time"), main("count")] == ["full", "full", "full, repeats"]
    assert [main("first", kind) for kind in ("given", "users")] == ["given split", "held-out users"]
    assert all(parse(main("first", kind)).full for kind in ("given", "users"))


def test_full_rankings_come_first() -> None:
    names = ["u100", "full+user", "p100", "full, refit", "full+times", "full, history kept", "full", "u100+user"]
    full = ["full", "full+times", "full+user", "full, history kept", "full, refit"]
    assert in_order(names) == [*full, "p100", "u100", "u100+user"]
