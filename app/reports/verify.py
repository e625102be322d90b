"""Whether a report still holds: its zoo is asked anew for every part that is there, and every list must have the same items in
the same order.

Scores, shares and effects may differ by rounding alone (`TOLERANCE`, relative where they exceed 1): other processors and other
builds of ONNX Runtime add in another order. All else must be the same to the letter.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from app.analysis.metrics import USERS
from app.reports.build import build
from app.reports.compared import TOLERANCE, Checked, difference, each, same
from app.reports.document import (
    PARTS,
    Asked,
    Codes,
    Effects,
    Graph,
    Listing,
    Metrics,
    Moves,
    Part,
    Report,
    WhatIf,
    seal,
)
from app.reports.facts import facts
from app.reports.words import titles
from app.text import clean, listed
from engine.errors import SeqscopeError
from engine.runtime import Zoo, judge

_ALWAYS = ("lists", "what-ifs", "attention", "codes")  # parts that are there wherever they are asked for, if empty
How = Callable[[Report, Any, Any], Iterator[Checked]]
"""A part of the report, as it is and as it would be now."""


def find(where: Path, fingerprint: str, others: Iterable[Path] = ()) -> Path:
    """The zoo of that fingerprint: `where`, one below it, or one of the others. Raises SeqscopeError where there is none."""
    folders = [where] if (where / "dataset.json").is_file() else Zoo.list(where)
    for folder in (*folders, *others):
        if not any(folder.glob("*/manifest.json")):
            continue  # the prepared data of the same dataset, say
        with contextlib.suppress(OSError, ValueError):
            found = json.loads((folder / "dataset.json").read_text("utf-8"))
            if isinstance(found, dict) and found.get("fingerprint") == fingerprint:
                return folder
    raise SeqscopeError(
        f"No dataset of the fingerprint {fingerprint[:16]}… lies in {where}. Name its folder with --exports."
    )


def broken(report: Report) -> str | None:
    """What is wrong with the seal, in a sentence; None where it fits."""
    if report.seal == seal(report):
        return None
    return "The report was changed after it was made: its seal does not fit what it says."


def verify(report: Report, models: Zoo) -> Iterator[Checked]:
    """Every claim of the report, one after the other. Raises SeqscopeError where the zoo is another dataset."""
    if models.info.fingerprint != report.dataset.fingerprint:
        raise SeqscopeError(
            f"{models.path} is another dataset or another state of it: its fingerprint is {models.info.fingerprint[:16]}…, the "
            f"report's {report.dataset.fingerprint[:16]}…"
        )
    yield from facts(report, models)
    yield from _asked(report, models)
    again = _again(report, models)
    now = build(models, again, at=report.created)
    if report.asked.history is not None:
        if report.asked.user != now.asked.user:
            yield same("person", {"user": report.asked.user}, {"user": now.asked.user})
    else:
        told: list[str] = [one for one in PARTS if one not in ("history", "metrics")]
        told = [one for one in told if one in report.asked.parts or one in _present(report)]
        if told:
            yield Checked(listed(told), None, "the report was made without its history, so nobody can ask again")
    yield from _parts(report, now, again.parts)


def part(report: Report, name: Part) -> Any:
    """What the report has of a part; None where it lacks it."""
    return getattr(report, name.replace("-", "_"))


def _present(report: Report) -> list[Part]:
    return [name for name in PARTS if part(report, name) is not None]


def _again(report: Report, models: Zoo) -> Asked:
    """What to ask for: all that was wanted or is there, of the models that are still here."""
    asked = report.asked
    kept = [name for name in models.bundles if name in {one.name for one in report.models}]
    there = _present(report)
    changes: dict[str, Any] = {"models": kept, "parts": [one for one in PARTS if one in there or one in asked.parts]}
    if asked.attention is not None:
        changes["attention"] = [name for name in asked.attention if name in kept]
    codes = [one.tokenizer for one in report.codes or []] if asked.codes is None else asked.codes
    if report.codes is not None or asked.codes is not None:
        changes["codes"] = [name for name in models.tokenizations if name in codes]
    changes["map"] = asked.map if asked.map in kept else None
    if len(kept) < len(
        {one.name for one in report.models}
    ):  # the first one, which is taken unasked, may be another one now
        if report.map is not None:
            changes["map"] = report.map.model if report.map.model in kept else None
        explained = report.effects or report.graph
        if explained is not None:
            changes["item"] = explained.item_id
    if asked.history is None:
        changes |= {"history": [], "edited": None, "parts": [name for name in changes["parts"] if name == "metrics"]}
    return asked.model_copy(update=changes)


def _asked(report: Report, models: Zoo) -> Iterator[Checked]:
    """What was asked for and what is there must fit: else a part could be hidden, or slip past those that are asked again."""
    asked = report.asked
    for name in PARTS:
        there = part(report, name) is not None
        if there and name not in asked.parts:
            yield Checked(name, False, "it is in the report although it was not asked for")
        if not there and name in asked.parts and name in _ALWAYS and asked.history is None:
            yield Checked(name, False, "it was asked for and is missing from the report")
    if asked.parts != [name for name in PARTS if name in asked.parts]:
        yield Checked("parts", False, "they are asked for in another order, or twice")
    whole = "history" in asked.parts
    if whole != (asked.history is not None):
        words = "it was asked for and is not told" if whole else "the report was made without it, and yet tells it"
        yield Checked("history", False, words)
    elif not whole and any(one is not None for one in (asked.edited, asked.user, report.address)):
        yield Checked("history", False, "the report was made without it, and yet has an edit, a person or an address")
    for where, whose in _hidden(report, models):
        yield Checked(where, False, f"that of {whose} was asked for and is missing from the report")


def _hidden(report: Report, models: Zoo) -> Iterator[tuple[str, str]]:
    """(part, name) of what was asked for by name, is not told, and cannot be asked again either."""
    asked = report.asked
    if report.attention is not None:
        seen = {one.model for one in report.attention}
        known = {one.name for one in report.models if one.name in models.bundles}
        yield from (("attention", name) for name in asked.attention or [] if name not in seen | known)
    if report.codes is not None:
        told = {one.tokenizer for one in report.codes}
        yield from (("codes", name) for name in asked.codes or [] if name not in told | set(models.tokenizations))
    if report.map is not None and asked.map not in (None, report.map.model):
        yield "map", str(asked.map)


def _parts(report: Report, now: Report, names: Sequence[Part]) -> Iterator[Checked]:
    """Part by part, as it is against as it would be now."""
    for name in names:
        then, found = part(report, name), part(now, name)
        if then is None and found is None:
            yield Checked(name, True, "there is none, as before")
        elif then is None:
            yield Checked(name, False, "it was asked for and is missing from the report")
        elif found is None:
            yield Checked(name, False, "there is none: it could not be made of these models and this history")
        else:
            yield from _HOW[name](report, then, found)


def _whole(name: str) -> How:
    def check(report: Report, then: Any, now: Any) -> Iterator[Checked]:
        yield _as_told(name, then, now, old=_old(report))

    return check


def _by_model(name: str, what: str) -> How:
    def check(report: Report, then: Any, now: Any) -> Iterator[Checked]:
        called = titles(report)
        numbers = partial(_numbers, old=_old(report))
        yield from each(name, then, now, lambda one: one.model, lambda one: f"{what} {called[one.model]}", numbers)

    return check


def _old(report: Report) -> bool:
    """Of format 1, which lacks some fields: what it does not say is not compared. In a later one it was left out."""
    return report.schema_version == 1


def _numbers(what: str, then: Any, now: Any, *, old: bool) -> Checked:
    return _as_told(what, then, now, "the same, numbers within the tolerance", old=old)


def _as_told(what: str, then: Any, now: Any, words: str = "the same", *, old: bool) -> Checked:
    if old:
        now = now.model_copy(update=then.unsaid())
    return same(what, then.model_dump(), now.model_dump(), words)


def _lists(report: Report, then: Sequence[Listing], now: Sequence[Listing]) -> Iterator[Checked]:
    called = titles(report)
    yield from each("lists", then, now, lambda one: one.model, lambda one: f"list of {called[one.model]}", _list)


def _list(what: str, then: Listing, now: Listing) -> Checked:
    old = any(item.strength is not None for item in then.items)  # of format 1, whose shares are made by other rules
    left_out = {"items": {"__all__": {"share", "strength"}}} if old else None
    wrong = difference(then.model_dump(exclude=left_out), now.model_dump(exclude=left_out))
    if then.cannot is not None or now.cannot is not None:
        if (then.cannot is None) != (now.cannot is None):
            wrong = f"then: {clean(then.cannot or 'a list', 300)}; now: {now.cannot or 'a list'}"
        return Checked(what, wrong is None, wrong or "there is none, as before")
    for place in range(max(len(then.items), len(now.items))):
        was = then.items[place].item_id if place < len(then.items) else "nothing"
        found = now.items[place].item_id if place < len(now.items) else "nothing"
        if was != found:
            return Checked(what, False, f"place {place + 1} was “{clean(was, 80)}”, now it is “{clean(found, 80)}”")
    items = f"the same {len(then.items)} items in the same order"
    within = f"scores within {TOLERANCE:g}{'; the shares of format 1 are not compared' if old else ''}"
    return Checked(what, wrong is None, f"{items}, {f'but {wrong}' if wrong else within}")


def _what_ifs(report: Report, then: Sequence[WhatIf], now: Sequence[WhatIf]) -> Iterator[Checked]:
    called = titles(report)

    def head(what: str, one: WhatIf, other: WhatIf) -> Checked:
        return same(what, one.model_dump(exclude={"models"}), other.model_dump(exclude={"models"}), "the same history")

    def what(one: WhatIf) -> str:
        return clean(one.words, 60).lower()

    yield from each("what-ifs", then, now, lambda one: one.name, what, head)
    fresh = {one.name: one for one in now}
    for one in then:
        if one.name in fresh:
            yield from _edit(what(one), called, one.models, fresh[one.name].models)


def _edit(what: str, called: dict[str, str], then: Sequence[Moves], now: Sequence[Moves]) -> Iterator[Checked]:
    yield from each(what, then, now, lambda own: own.model, lambda own: f"{what}: {called[own.model]}", _moves)


def _moves(what: str, then: Moves, now: Moves) -> Checked:
    return same(what, then.model_dump(), now.model_dump(), "the same moves, scores within the tolerance")


def _of_item(name: str, what: str) -> How:
    """Of a part that explains one item, model by model."""

    def check(report: Report, then: Effects | Graph, now: Effects | Graph) -> Iterator[Checked]:
        item = same("item", then.model_dump(exclude={"models"}), now.model_dump(exclude={"models"}))
        if not item.holds:
            yield Checked(name, False, item.words)
        yield from _by_model(name, what)(report, then.models, now.models)

    return check


def _codes(report: Report, then: Sequence[Codes], now: Sequence[Codes]) -> Iterator[Checked]:
    yield from each(
        "codes",
        then,
        now,
        lambda one: one.tokenizer,
        lambda one: f"codes of {clean(one.title, 60)}",
        partial(_numbers, old=_old(report)),
    )


def _of_then(then: Metrics, now: Metrics) -> Metrics:
    """Without the metrics that were declared after the report was made, or elsewhere."""
    known = {one.metric for one in then.estimates}
    known |= {judge.key(name, now.k) for name, metric in judge.ACCURACY.items() if not metric.later}
    others = {field for one in then.beyond for field in one.others}
    beyond = [
        one.model_copy(update={"others": {field: one.others[field] for field in one.others if field in others}})
        for one in now.beyond
    ]
    return now.model_copy(update={"estimates": [one for one in now.estimates if one.metric in known], "beyond": beyond})


def _metrics(report: Report, then: Metrics, now: Metrics) -> Iterator[Checked]:
    if report.schema_version != 1:
        yield from _whole("metrics")(report, then, _of_then(then, now))
        return
    # In format 1 users' vectors were a protocol of their own, so that other models were compared with the best.
    users = then.protocol.endswith(USERS)
    base = then.protocol.removesuffix(USERS)
    known = {(one.model, one.metric) for one in then.estimates}

    def numbers(found: Metrics, asked: bool) -> dict[str, Any]:
        rows = [one for one in found.estimates if one.users == asked and (one.model, one.metric) in known]
        beyond = [one for one in found.beyond if one.users == asked]
        return {
            "protocol": found.protocol.removesuffix(USERS),
            "k": found.k,
            "people": found.people,
            "estimates": [
                one.model_dump(include={"model", "metric", "mean", "low", "high"})
                for one in sorted(rows, key=lambda one: (one.model, one.metric))
            ],
            "beyond": [one.model_dump(include={"model", "coverage", "gini", "novelty"}) for one in beyond],
        }

    yield same(
        "metrics",
        numbers(then, False),
        numbers(now, users),
        f"the same figures under “{clean(base, 60)}”; the verdicts of format 1 are not compared",
    )


_HOW: dict[Part, How] = {
    "history": _whole("history"),
    "lists": _lists,
    "what-ifs": _what_ifs,
    "effects": _of_item("effects", "effects of"),
    "overlap": _whole("overlap"),
    "attention": _by_model("attention", "attention of"),
    "codes": _codes,
    "graph": _of_item("graph", "paths of"),
    "map": _whole("map"),
    "metrics": _metrics,
}
