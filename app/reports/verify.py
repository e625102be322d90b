"""Whether a report still holds: its zoo is asked anew for every part that is there, and every list must have the same items in
the same order.

Scores, shares and effects may differ by rounding alone (`TOLERANCE`, relative where they exceed 1): other processors and other
builds of ONNX Runtime add in another order. All else must be the same to the letter.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from app.reports import provenance
from app.reports.build import build
from app.reports.document import Asked, Report, seal
from app.reports.part import Checked, same
from app.reports.parts import PARTS
from app.reports.summary import says_so
from app.text import listed
from engine.errors import SeqscopeError
from engine.files import read_json
from engine.runtime import Zoo


def find(where: Path, report: Report, others: Iterable[Path] = ()) -> Path:
    """The zoo of the report's dataset: `where`, one below it, or one of the others; of several that which has most of its
    bundles. Raises SeqscopeError where there is none."""
    folders = [where] if (where / "dataset.json").is_file() else Zoo.list(where)
    fingerprint = report.dataset.fingerprint
    zoos = [
        folder
        for folder in (*folders, *others)
        if any(folder.glob("*/manifest.json"))  # not the prepared data of the same dataset, say
        and read_json(folder / "dataset.json").get("fingerprint") == fingerprint
    ]
    if not zoos:
        raise SeqscopeError(
            f"No dataset of the fingerprint {fingerprint[:16]}… lies in {where}. Name its folder with --exports."
        )
    return zoos[0] if len(zoos) == 1 else max(zoos, key=lambda folder: _bundles_of(report, folder))


def _bundles_of(report: Report, folder: Path) -> int:
    """How many of the bundles that the report is of lie in the zoo `folder`."""
    try:
        bundles = Zoo.open(folder).bundles
    except SeqscopeError:
        return 0
    return sum(model.name in bundles and bundles[model.name].digest == model.digest for model in report.models)


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
    models = _ordered_then(report, models)
    yield from provenance.check(report, models)
    yield from _asked(report, models)
    again = _again(report, models)
    now = build(models, again, at=report.created)
    if report.summary and (report.schema_version == 1 or not (says_so(report, now) or says_so(report, report))):
        yield Checked("summary", False, "it does not say what the rest of the report says")
    if report.asked.history is not None:
        if report.asked.user != now.asked.user:
            yield same("person", {"user": report.asked.user}, {"user": now.asked.user})
    else:
        present = _present(report)
        lost = [name for name, part in PARTS.items() if part.of_history and name != "history"]
        lost = [name for name in lost if name in report.asked.parts or name in present]
        if lost:
            yield Checked(listed(lost), None, "the report was made without its history, so nobody can ask again")
    yield from _parts(report, now, again.parts)


def _present(report: Report) -> list[str]:
    return [part.name for part, _ in report.content()]


def _again(report: Report, models: Zoo) -> Asked:
    """What to ask for: all that was wanted or is there, of the models that are still here."""
    request, present = report.asked, _present(report)
    here = [name for name in models.bundles if name in {entry.name for entry in report.models}]
    changes: dict[str, Any] = {
        "models": here,
        "parts": [name for name in PARTS if name in present or name in request.parts],
        "map": request.map if request.map in here else None,
    }
    if request.attention is not None:
        changes["attention"] = [name for name in request.attention if name in here]
    codes = [entry.tokenizer for entry in report.codes or []] if request.codes is None else request.codes
    if report.codes is not None or request.codes is not None:
        changes["codes"] = [name for name in models.tokenizations if name in codes]
    if len(here) < len({entry.name for entry in report.models}):  # the first one, taken unasked, may be another one now
        if report.map is not None:
            changes["map"] = report.map.model if report.map.model in here else None
        explained = report.effects or report.graph
        if explained is not None:
            changes["item"] = explained.item_id
    if request.history is None:
        parts = [name for name in changes["parts"] if not PARTS[name].of_history]
        changes |= {"history": [], "edited": None, "parts": parts}
    return request.model_copy(update=changes)


def _ordered_then(report: Report, models: Zoo) -> Zoo:
    """The same zoo; in the order of the manifests alone where the report's models stand in it, as they did before kinds came
    first (`engine.cards.place`)."""
    names = [entry.name for entry in report.models if entry.name in models.bundles]
    before = dict(sorted(models.bundles.items(), key=lambda entry: (entry[1].manifest.order, entry[0])))
    if names == [name for name in models.bundles if name in names] or names != [n for n in before if n in names]:
        return models
    then = copy.copy(models)
    then.bundles = before
    return then


def _asked(report: Report, models: Zoo) -> Iterator[Checked]:
    """What was asked for and what is there must fit: else a part could be hidden, or slip past those that are asked again."""
    request, present = report.asked, _present(report)
    for name, part in PARTS.items():
        if name in present and name not in request.parts:
            yield Checked(name, False, "it is in the report although it was not asked for")
        if name not in present and name in request.parts and part.always and request.history is None:
            yield Checked(name, False, "it was asked for and is missing from the report")
    if request.parts != [name for name in PARTS if name in request.parts]:
        yield Checked("parts", False, "they are asked for in another order, or twice")
    whole = "history" in request.parts
    if whole != (request.history is not None):
        words = "it was asked for and is not told" if whole else "the report was made without it, and yet tells it"
        yield Checked("history", False, words)
    elif not whole and any(value is not None for value in (request.edited, request.user, report.address)):
        yield Checked("history", False, "the report was made without it, and yet has an edit, a user or an address")
    for where, whose in _hidden(report, models):
        yield Checked(where, False, f"that of {whose} was asked for and is missing from the report")


def _hidden(report: Report, models: Zoo) -> Iterator[tuple[str, str]]:
    """(part, name) of what was asked for by name, is not told, and cannot be asked again either."""
    request = report.asked
    if report.attention is not None:
        shown = {entry.model for entry in report.attention}
        known = {entry.name for entry in report.models if entry.name in models.bundles}
        yield from (("attention", name) for name in request.attention or [] if name not in shown | known)
    if report.codes is not None:
        coded = {entry.tokenizer for entry in report.codes}
        yield from (("codes", name) for name in request.codes or [] if name not in coded | set(models.tokenizations))
    if report.map is not None and request.map not in (None, report.map.model):
        yield "map", str(request.map)


def _parts(report: Report, now: Report, names: Sequence[str]) -> Iterator[Checked]:
    """Part by part, as it is against as it would be now."""
    for name in names:
        part = PARTS[name]
        then, fresh = part.of(report), part.of(now)
        if then is None and fresh is None:
            yield Checked(name, True, "there is none, as before")
        elif then is None:
            yield Checked(name, False, "it was asked for and is missing from the report")
        elif fresh is None:
            yield Checked(name, False, "there is none: it could not be made of these models and this history")
        else:
            yield from part.compare(report, then, fresh)
