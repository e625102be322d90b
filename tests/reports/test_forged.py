"""Who forges a report and makes its seal anew is found out: every field is compared, or docs/report.md names it."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from pydantic import ValidationError

from app.reports import document, verify
from app.reports.build import build
from app.reports.document import Report
from engine.errors import SeqscopeError
from engine.runtime import Zoo
from tests.reports.conftest import HISTORY, Change, tampered

Place = tuple[str | int, ...]
pytestmark = pytest.mark.usefixtures("asked_once")

FREE = {
    "address", "program.version", "program.python", "program.platform", "program.packages", "models.provider", "asked.seed",
    "asked.slow", "asked.map", "asked.protocol", "codes", "metrics.verdict", "summary",
}  # fmt: skip
"""What nobody can ask again, as docs/report.md says: of what was asked for, where what is there does not depend on it, or where
it only says in words what would be taken anyway; of the code tables, that one was left out where all were asked for; that there
was a verdict or a summary, as reports of before have none. A time and a title of one's own are in the name of the file, which the
summary tells."""
TEXTS = (
    "mean", "rollout", "up", "down", "same", "new", "dropped", "best", "level", "edited", "nothing", "without-last", "swapped",
    "alpha", "beta", "gamma", "rqvae", "letter", "full", "toy-9", "toy-20", "#123456", "0" * 64, "★", "star", "dot", "",
    "2026-01-01T00:00:00+00:00",
)  # fmt: skip
"""So that some fits wherever only some texts do."""


def leaves(value: Any, path: Place = ()) -> Iterator[Place]:
    """Every place of a document, lists and objects among them."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from leaves(one, (*path, key))


def kind(path: Place) -> str:
    """lists.items.score"""
    return ".".join(str(step) for step in path if isinstance(step, str))


def others(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, max(0, value - 1)]
    if isinstance(value, float):
        return [value + 0.01 * max(1.0, abs(value)), None]
    if isinstance(value, str):
        return [f"{value}x", None]
    if isinstance(value, list):
        return [value[::-1], value[:-1], [*value, *value[-1:]], [], None]
    if value is None:
        return ["x", 1, 0.5, "alpha", "toy-9", "toy-20", [], ["toy-9"], ["alpha"], ["rqvae"], "u1", "full"]
    return [None]


def at(raw: Any, path: Place) -> Any:
    return functools.reduce(lambda value, step: value[step], path, raw)


def forged(raw: dict[str, Any], path: Place, other: Any) -> Report | None:
    """None where no reader takes it. A forger makes the seal anew; who verifies claims does not look at it."""
    holder, key = at(raw, path[:-1]), path[-1]
    value, holder[key] = holder[key], other
    content = json.dumps(raw)
    holder[key] = value
    try:  # as document.read does, but for depth and size, which no change here touches
        return Report.model_validate_json(content)
    except ValidationError:
        return None


def changes(raw: dict[str, Any], path: Place, values: list[Any]) -> list[Report]:
    """Those of them that a reader takes; of very many the first two."""
    taken = (found for other in values if (found := forged(raw, path, other)) is not None)
    return list(islice(taken, 2 if len(values) > 5 else None))


def holds(report: Report, models: Zoo) -> bool:
    """As the command sees it."""
    try:
        return all(one.holds for one in verify.verify(report, models))
    except SeqscopeError:
        return False


def test_no_field_can_be_changed_unnoticed(report: Report, models: Zoo) -> None:
    """Of a report that is as short as one with every field can be: it is checked hundreds of times."""
    every = set(map(kind, leaves(json.loads(document.write(report)))))
    shorter = report.asked.model_copy(update={"history": HISTORY[:3], "edited": HISTORY[:2], "k": 2})
    report = build(models, shorter, address=report.address, at=report.created)
    assert holds(report, models)
    raw = json.loads(document.write(report))
    assert set(map(kind, leaves(raw))) == every
    seen, slipped, tried = set(), set(), Counter[str]()
    for path in leaves(raw):
        name = kind(path)
        if name in seen or tried[name] == 3 or name in ("", "seal", "format", "schema_version"):
            continue  # one of a kind stands for all, and three where readers refuse whatever it is changed to
        tried[name] += 1
        value = at(raw, path)
        made_of = changes(raw, path, others(value))
        if isinstance(value, str) and not made_of:
            made_of = changes(raw, path, [text for text in TEXTS if text != value])
        if any(one != report for one in made_of):
            seen.add(name)
        if any(one != report and holds(one, models) for one in made_of):
            slipped.add("program.packages" if name.startswith("program.packages.") else name)
    assert slipped == FREE
    assert {"lists.items.share", "models.title", "map.trustworthiness", "metrics.estimates.p", "dataset.items"} <= seen


def swapped(raw: dict[str, Any]) -> None:
    one, other = raw["models"][0], raw["models"][1]
    one["title"], other["title"] = other["title"], one["title"]


def only_asked_for_history(raw: dict[str, Any]) -> None:
    raw["asked"]["parts"] = ["history"]
    for one in raw["lists"]:
        one["items"].reverse()


def another_tokenizer(raw: dict[str, Any]) -> None:
    raw["codes"][0]["tokenizer"] = "nobodys"
    raw["codes"][0]["levels"] = []


def a_table_taken_out(raw: dict[str, Any]) -> None:
    raw["asked"]["codes"] = ["rqvae", "letter"]
    raw["codes"] = raw["codes"][:1]


@pytest.mark.parametrize(
    ("change", "what", "words"),
    [
        (only_asked_for_history, "lists", "although it was not asked for"),
        (only_asked_for_history, "list of Alpha", "place 1 was"),
        (swapped, "model Alpha", "title was “Alpha”"),
        (another_tokenizer, "codes of <b>LETTER</b>", "nothing here that it could be compared with"),
        (lambda raw: raw["asked"].update(models=[]), "models", "asked for were none"),
        (a_table_taken_out, "codes of RQVAE", "missing from the report"),
        (lambda raw: raw["lists"].pop(0), "list of Alpha", "missing from the report"),
        (lambda raw: raw["lists"].append(raw["lists"][0]), "list of Alpha", "twice"),
        (lambda raw: raw["lists"].reverse(), "lists", "another order"),
        (lambda raw: raw.update(overlap=None), "overlap", "missing from the report"),
        (lambda raw: raw["what_ifs"].pop(1), "without the last item", "missing from the report"),
        (lambda raw: raw["effects"]["models"][0]["log_probability"].__setitem__(0, 9.0), "effects of Alpha", "was"),
        (lambda raw: raw["graph"]["models"][1]["layers"]["adds"][1].__setitem__(0, 9.0), "paths of Plain", "was"),
        (lambda raw: raw["summary"][2].update(text="Alpha is the best by far."), "summary", "does not say"),
    ],
)
def test_forgeries_are_told_in_words(report: Report, models: Zoo, change: Change, what: str, words: str) -> None:
    made = tampered(report, change)
    assert made != report and verify.broken(made) is None
    told = [(one.subject, one.words) for one in verify.verify(made, models) if one.holds is False]
    assert any(called == what and words in why for called, why in told), told


def test_a_code_table_that_was_left_out_is_told_and_a_time_that_is_none_refused(report: Report, models: Zoo) -> None:
    """Nobody can know whether its tokenizer was there when the report was made; the line on the dataset says so."""
    assert report.codes is not None
    claims = list(verify.verify(tampered(report, lambda raw: raw["codes"].pop()), models))
    assert all(one.holds for one in claims)
    assert f"says nothing of {report.codes[-1].tokenizer}: added since then, or left out" in claims[0].words
    for wrong in ("yesterday", "2026-11-20T12:00:00", ""):
        with pytest.raises(SeqscopeError, match="created is no time"):
            document.read(json.dumps({**json.loads(document.write(report)), "created": wrong}).encode())
