"""Whether a report says the truth about where it comes from: the dataset, its models, and what has to be known to read it.

What is the machine's, the moment's or the author's cannot be asked again: docs/report.md names it.
"""

from __future__ import annotations

from collections.abc import Iterator

from app.reports.build import NOT_OPENED, dataset, model, notes
from app.reports.compared import Checked, same
from app.reports.document import Report
from app.reports.words import titles
from app.text import clean, listed
from engine.runtime import Zoo

_LOOK = {"colour", "sign", "marker", "dash"}


def facts(report: Report, models: Zoo) -> Iterator[Checked]:
    """Of the dataset first, then of each model, then the notes."""
    names = [one.name for one in report.models]
    words = "the same title, counts, split, source and licence"
    others = [] if report.asked.models is not None else [name for name in models.bundles if name not in names]
    if report.codes is not None and report.asked.codes is None:
        told = {one.tokenizer for one in report.codes}
        others += [name for name in models.tokenizations if name not in told]
    if others:
        words += f"; the report says nothing of {listed(others)}: added since then, or left out"
    yield same("dataset", report.dataset.model_dump(), dataset(models).model_dump(), words)
    yield from _models(report, models, names)
    then, now = (
        [note for note in found if not note.startswith(NOT_OPENED)]
        for found in (report.notes, notes(models, report.asked, report.asked.parts))
    )
    yield same("notes", {"notes": then}, {"notes": now})


def _models(report: Report, models: Zoo, names: list[str]) -> Iterator[Checked]:
    called = titles(report)
    # a model without a look of its own takes one of the spare ones by its place among all
    unsure = {"provider"} if set(models.bundles) == set(names) else {"provider"} | _LOOK
    for one in report.models:
        what = f"model {called[one.name]}"
        if one.name not in models.bundles:
            yield Checked(what, False, "it is not here any more")
        elif models.bundles[one.name].digest != one.digest:
            words = f"its bundle is another one now ({models.bundles[one.name].digest[:12]}…, was {one.digest[:12]}…)"
            yield Checked(what, False, words)
        else:
            left_out = unsure if one.improving else {*unsure, "improving"}  # a report of before does not say
            then, now = (found.model_dump(exclude=left_out) for found in (one, model(models, one.name)))
            yield same(what, then, now, "the same bundle, title, family, seed and commit")
    kept = [name for name in names if name in models.bundles]
    if kept != [name for name in models.bundles if name in kept]:
        yield Checked("models", False, "they are in another order, or named twice")
    if report.asked.models is not None and set(report.asked.models) != set(names):
        wanted = clean(listed(list(dict.fromkeys(report.asked.models))) or "none", 300)
        yield Checked("models", False, f"asked for were {wanted}; told of are {listed(names) or 'none'}")
