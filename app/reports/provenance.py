"""Where a report comes from: program, dataset, bundles and notes; how that stands on its pages, and whether it is the truth.

What is the machine's, the moment's or the author's cannot be asked again: docs/report.md names it.
"""

import datetime
import importlib.metadata
import platform
from collections.abc import Iterator
from typing import Any

from app.reports.blocks import Block, Table, h3, quiet, sign, table
from app.reports.document import Asked, Dataset, Model, Program, Report
from app.reports.part import Checked, same
from app.reports.parts import PARTS
from app.styles import is_fixed, style
from app.text import clean, listed
from engine import __version__
from engine.bundle.curve import WITH_VALIDATION
from engine.runtime import NOT_SETTLED, STILL_IMPROVING, Zoo, repeats
from engine.writing import count

_PACKAGES = ("numpy", "onnxruntime", "onnxruntime-gpu", "pyarrow", "pydantic")
_LOOK = {"colour", "sign", "marker", "dash"}
_SIGNS_OF_BEFORE = str.maketrans("▶◀✖", "►◄✘")
"""Signs of models as earlier versions had them: browsers take these for emoji."""
_SIMULATED = "The users of this dataset are simulated: nobody's behaviour is in it."
_NO_ROWS = "Without rows of the data: users are not named, and the points of the map have no titles."
_NOTES_OF_BEFORE = {
    "One seed per model: intervals are over people, not over trainings.": PARTS["metrics"].note,
    "The people of this dataset are simulated: nobody's behaviour is in it.": _SIMULATED,
    "Without rows of the data: people are not named, and the points of the map have no titles.": _NO_ROWS,
}
"""Notes of earlier reports → as they are now."""
_NOT_OPENED = "Not shown, because it could not be opened: "


def program() -> Program:
    packages = {}
    for name in _PACKAGES:
        try:
            packages[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return Program(
        version=__version__,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        packages=packages,
    )


def dataset(models: Zoo) -> Dataset:
    """What a report says of the dataset."""
    counts = models.info.counts
    facts: dict[str, Any] = {"items": len(models), "users": counts.get("users", 0), "events": counts.get("events", 0)}
    facts |= {name: getattr(models.info, name) for name in Dataset.model_fields if name not in facts}
    return Dataset(**facts)


def model(models: Zoo, name: str) -> Model:
    """What a report says of a model."""
    bundle = models.bundles[name]
    made = bundle.manifest
    return Model(
        name=name,
        title=made.title,
        family=made.family,
        digest=bundle.digest,
        provider=bundle.provider,
        **vars(style(models, name)),
        **{name: getattr(made.training, name) for name in ("seed", "commit", "command", "device")},
        created=made.created,
        improving=bundle.unsettled == STILL_IMPROVING,
        refit=made.refitted,
        unsettled=bundle.unsettled == NOT_SETTLED,
    )


def notes(models: Zoo, request: Asked) -> list[str]:
    """What has to be known to read the report."""
    sentences = []
    if models.info.simulated:
        sentences.append(_SIMULATED)
    shown = [part for name, part in PARTS.items() if name in request.parts]
    if any(part.scored for part in shown):
        sentences.append("Scores of different models have different units: compare places, not scores.")
    sentences += [part.note for part in shown if part.note]
    sentences += [f"{_NOT_OPENED}{refusal}" for refusal in models.refused]
    if not request.rows:
        sentences.append(_NO_ROWS)
    return sentences


# --- on its pages


def when(created: str) -> str:
    """20 November 2026, 17:55 UTC"""
    at = datetime.datetime.fromisoformat(created).astimezone(datetime.UTC)
    return f"{at.day} {at:%B %Y, %H:%M} UTC"


def head(report: Report) -> str:
    """Where the report is from, in a line."""
    data = report.dataset
    users = "simulated user" if data.simulated else "user"
    return (
        f"{clean(data.title, 100)} · {count(data.items, 'item')}, {count(data.users, users)}, "
        f"{count(data.events, 'event')} · {count(len(report.models), 'model')} · {when(report.created)}"
    )


def linked(address: str) -> bool:
    """Whether an address is one that a reader may be led to."""
    return address.startswith(("http://", "https://"))


def blocks(report: Report) -> list[Block]:
    made_by, data = report.program, report.dataset
    packages = "".join(f", {name} {version}" for name, version in made_by.packages.items())
    where = f"{made_by.platform}, Python {made_by.python}{packages}"
    terms = {
        "Made": f"{when(report.created)}, by Seqscope {made_by.version} ({where}), seed {report.asked.seed}",
        "Dataset": f"{clean(data.title, 100)}, fingerprint {data.fingerprint}",
        "Repeats": repeats.meaning(data.repeats, data.measured),
        "Source": clean(data.source, 2_000),
        "Terms": clean(data.licence, 2_000),
        "Seal": report.seal,
        "Check it": f"seqscope report --verify {report.stem}.json asks the models again and says what still holds.",
    }
    rows = [
        [
            sign(report, model_entry.name),
            f"{model_entry.digest[:16]}…",
            (model_entry.commit or "unknown")[:10],
            "; ".join([clean(model_entry.device, 60), *_notes(model_entry)]),
            str(model_entry.seed),
        ]
        for model_entry in report.models
    ]
    made: list[Block] = [{"kind": "terms", "terms": list(terms.items())}]
    if report.address is not None:
        made.append({"kind": "link", "to": report.address} if linked(report.address) else quiet(report.address))
    made.append(
        table("The models", ["Model", "Bundle (sha256)", "Commit", "Trained on", "Seed"], rows, [2, 2, 1, 2, 0])
    )
    if report.notes:
        made += [
            h3("Caveats"),
            {"kind": "notes", "notes": [clean(note, 1_000) for note in report.notes]},
        ]
    return made


def _notes(model_entry: Model) -> list[str]:
    """What has to be known of a training."""
    early = [] if model_entry.early is None else [model_entry.early]
    carried = ["zero-shot: not trained on this dataset"] * model_entry.zero_shot
    return carried + early + [f"fitted on {WITH_VALIDATION} events"] * model_entry.refit


def models_table(report: Report) -> Table:
    fields = ("name", "title", "family", "digest", "seed", "commit", "command", "device", "created", "provider")
    rows: list[tuple[Any, ...]] = [
        (*(getattr(model_entry, field) for field in fields), "; ".join(_notes(model_entry)))
        for model_entry in report.models
    ]
    return Table("Models", (*fields, "note"), rows)


# --- whether it is the truth


def check(report: Report, models: Zoo) -> Iterator[Checked]:
    """Of the dataset first, then of each model, then the notes."""
    names = [entry.name for entry in report.models]
    words = "the same title, counts, split, source and licence"
    others = [] if report.asked.models is not None else [name for name in models.bundles if name not in names]
    if report.codes is not None and report.asked.codes is None:
        coded = {entry.tokenizer for entry in report.codes}
        others += [name for name in models.tokenizations if name not in coded]
    if others:
        words += f"; the report says nothing of {listed(others)}: added since then, or left out"
    yield same("dataset", report.dataset.model_dump(), dataset(models).model_dump(), words)
    yield from _models(report, models, names)
    then, now = (
        [_NOTES_OF_BEFORE.get(note, note) for note in some if not note.startswith(_NOT_OPENED)]
        for some in (report.notes, notes(models, report.asked))
    )
    yield same("notes", {"notes": then}, {"notes": now})


def _models(report: Report, models: Zoo, names: list[str]) -> Iterator[Checked]:
    whole = set(models.bundles) == set(names)
    # a report of before says neither of any model
    unsaid = {name for name in ("improving", "unsettled") if not any(getattr(entry, name) for entry in report.models)}
    for told in report.models:
        claim = f"model {report.titles[told.name]}"
        if told.name not in models.bundles:
            yield Checked(claim, False, "it is not here any more")
        elif models.bundles[told.name].digest != told.digest:
            words = f"its bundle is another one now ({models.bundles[told.name].digest[:12]}…, was {told.digest[:12]}…)"
            yield Checked(claim, False, words)
        else:
            left_out = {"provider"} | unsaid
            if not whole and not is_fixed(told.name):  # it takes one of the spare looks, by its place among all
                left_out |= _LOOK
            then, now = (some.model_dump(exclude=left_out) for some in (told, model(models, told.name)))
            if "sign" in then:
                then["sign"] = then["sign"].translate(_SIGNS_OF_BEFORE)
            yield same(claim, then, now, "the same bundle, title, family, seed and commit")
    here = [name for name in names if name in models.bundles]
    if here != [name for name in models.bundles if name in here]:
        yield Checked("models", False, "they are in another order, or named twice")
    if report.asked.models is not None and set(report.asked.models) != set(names):
        chosen = clean(listed(list(dict.fromkeys(report.asked.models))) or "none", 300)
        yield Checked("models", False, f"asked for were {chosen}; told of are {listed(names) or 'none'}")
