"""Whether a report still holds: its zoo is asked anew, and every list must have the same items in the same order.

Scores, shares and effects may differ by rounding alone (`TOLERANCE`, relative where they exceed 1): other processors and other
builds of ONNX Runtime add in another order. All else must be the same to the letter.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from app.reports.build import build
from app.reports.document import Listing, Moves, Report, seal
from app.reports.words import titles
from app.text import clean, listed
from engine.errors import SeqscopeError
from engine.runtime import Zoo

TOLERANCE = 1e-4


class Checked(NamedTuple):
    """One thing that a report says."""

    what: str
    holds: bool | None
    """None: it cannot be asked again."""
    words: str


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
    there = {name for name in models.bundles}
    called = titles(report)
    for one in report.models:
        if one.name not in there:
            yield Checked(f"model {called[one.name]}", False, "it is not here any more")
        elif models.bundles[one.name].digest != one.digest:
            words = f"its bundle is another one now ({models.bundles[one.name].digest[:12]}…, was {one.digest[:12]}…)"
            yield Checked(f"model {called[one.name]}", False, words)
    kept = [one.name for one in report.models if one.name in there]
    if report.asked.history is None:
        told = [part for part in asked_for(report) if part not in ("history", "metrics")]
        if told:
            yield Checked(listed(told), None, "the report was made without its history, so nobody can ask again")
    if not kept:
        return
    now = build(models, _again(report, kept, models), at=report.created)
    yield from _lists(report, now, called)
    yield from _moves(report, now, called)
    yield from _rest(report, now, called)


def asked_for(report: Report) -> list[str]:
    return list(report.asked.parts)


def _again(report: Report, kept: list[str], models: Zoo) -> Any:
    """What to ask for: the same, of the models that are still here."""
    asked = report.asked
    changes: dict[str, Any] = {"models": kept}
    if report.attention is not None:
        changes["attention"] = [one.model for one in report.attention if one.model in models.bundles]
    if report.codes is not None:
        changes["codes"] = [one.tokenizer for one in report.codes if one.tokenizer in models.tokenizations]
    changes["map"] = report.map.model if report.map is not None and report.map.model in models.bundles else None
    if report.effects is not None:
        changes["item"] = report.effects.item_id
    if asked.history is None:
        changes |= {"history": [], "parts": [part for part in asked.parts if part == "metrics"]}
    return asked.model_copy(update=changes)


def _lists(report: Report, now: Report, called: dict[str, str]) -> Iterator[Checked]:
    if now.lists is None:
        return
    fresh = {one.model: one for one in now.lists}
    for one in report.lists or []:
        if one.model in fresh:
            yield Checked(f"list of {called[one.model]}", *_list(one, fresh[one.model]))


def _list(then: Listing, now: Listing) -> tuple[bool, str]:
    if then.cannot is not None or now.cannot is not None:
        same = (then.cannot is None) == (now.cannot is None)
        return (
            same,
            "there is none, as before" if same else f"then: {then.cannot or 'a list'}; now: {now.cannot or 'a list'}",
        )
    for place in range(max(len(then.items), len(now.items))):
        was = then.items[place].item_id if place < len(then.items) else "nothing"
        found = now.items[place].item_id if place < len(now.items) else "nothing"
        if was != found:
            return False, f"place {place + 1} was “{clean(was, 80)}”, now it is “{clean(found, 80)}”"
    wrong = difference(then.model_dump(), now.model_dump())
    if wrong is not None:
        return False, f"the same {len(then.items)} items in the same order, but {wrong}"
    return True, f"the same {len(then.items)} items in the same order, scores within {TOLERANCE:g}"


def _moves(report: Report, now: Report, called: dict[str, str]) -> Iterator[Checked]:
    if now.what_ifs is None:
        return
    fresh: dict[tuple[str, str], Moves] = {(one.name, own.model): own for one in now.what_ifs for own in one.models}
    for one in report.what_ifs or []:
        for own in one.models:
            found = fresh.get((one.name, own.model))
            if own.model in called and found is not None:
                wrong = difference(own.model_dump(), found.model_dump())
                what = f"{one.words.lower()}: {called[own.model]}"
                yield Checked(what, wrong is None, wrong or "the same moves, scores within the tolerance")


def _rest(report: Report, now: Report, called: dict[str, str]) -> Iterator[Checked]:
    """The parts that are compared as a whole."""
    for name, then, found in (
        ("history", report.history, now.history),
        ("overlap", report.overlap, now.overlap),
        ("map", report.map, now.map),
        ("metrics", report.metrics, now.metrics),
    ):
        if then is not None and found is not None:
            wrong = difference(then.model_dump(), found.model_dump())
            yield Checked(name, wrong is None, wrong or "the same")
    pairs: list[tuple[str, Any, Any]] = []
    if report.effects is not None and now.effects is not None:
        fresh = {one.model: one for one in now.effects.models}
        pairs += [
            (f"effects of {called[o.model]}", o, fresh[o.model]) for o in report.effects.models if o.model in fresh
        ]
    looked = {one.model: one for one in now.attention or []}
    pairs += [
        (f"attention of {called[o.model]}", o, looked[o.model]) for o in report.attention or [] if o.model in looked
    ]
    codes = {one.tokenizer: one for one in now.codes or []}
    pairs += [
        (f"codes of {clean(o.title, 60)}", o, codes[o.tokenizer]) for o in report.codes or [] if o.tokenizer in codes
    ]
    for what, then, found in pairs:
        wrong = difference(then.model_dump(), found.model_dump())
        yield Checked(what, wrong is None, wrong or "the same, numbers within the tolerance")


def difference(then: Any, now: Any, where: str = "") -> str | None:
    """The first difference, in words; None where there is none. Numbers with a fraction may differ by the tolerance."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key in then.keys() | now.keys():
            found = difference(then.get(key), now.get(key), f"{where}.{key}".lstrip("."))
            if found is not None:
                return found
        return None
    if isinstance(then, list) and isinstance(now, list):
        if len(then) != len(now):
            return f"{where} had {len(then)} entries, now {len(now)}"
        for place, (one, other) in enumerate(zip(then, now, strict=True), 1):
            found = difference(one, other, f"{where} {place}")
            if found is not None:
                return found
        return None
    if isinstance(then, float) and isinstance(now, float):
        near = abs(then - now) <= TOLERANCE * max(1.0, abs(then), abs(now))
        return None if near else f"{where} was {then:.7g}, now it is {now:.7g}"
    return None if then == now else f"{where} was “{clean(then, 80)}”, now it is “{clean(now, 80)}”"
