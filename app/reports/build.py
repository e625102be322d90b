"""A zoo and what is asked for → the report."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from app.analysis import graph_paths
from app.analysis.cache import cached, of_content
from app.looks import style
from app.reports import inside, judged, lists, walks
from app.reports.document import PARTS, Asked, Attention, Dataset, Model, Program, Report, Written, sealed
from engine import __version__
from engine.errors import SeqscopeError
from engine.runtime import Zoo

_PACKAGES = ("numpy", "onnxruntime", "onnxruntime-gpu", "pyarrow", "pydantic")
NOT_OPENED = "Not shown, because it could not be opened: "
Told = Callable[[str], None]
Looked = TypeVar("Looked", Attention, Written)


def content(models: Zoo, asked: Asked, address: str) -> Hashable:
    """What a report is known by, but for its time."""
    tokenizers = tuple(tokenizer.digest for tokenizer in models.tokenizations.values())
    return of_content(models, tokenizers, asked.model_dump_json(), address)


@cached(60, by=content, spinner="Asking the models …")
def shared(models: Zoo, asked: Asked, address: str) -> Report:
    """`build`, once for all who ask the same."""
    return build(models, asked, address=address)


def build(
    models: Zoo, asked: Asked, *, address: str | None = None, at: str | None = None, told: Told = lambda words: None
) -> Report:
    """Asks every model anew. Raises SeqscopeError where something is asked for that the zoo does not have.

    address: of the page that shows the same. at: the UTC time to put on it; now. told: hears what is being done.
    """
    check(models, asked)
    names = [name for name in models.bundles if asked.models is None or name in asked.models]
    events = lists.numbers(models, asked.history or [])
    row = lists.person(models, asked)
    target = None if row is None else models.next_item(row)
    wanted = [
        part for part in PARTS if part in asked.parts and (part != "graph" or graph_paths.carriers(models, names))
    ]
    seen = None if asked.attention is None else [name for name in asked.attention if name in names]
    asked = asked.model_copy(
        update={
            "parts": wanted,
            "user": None if row is None else asked.user,
            "attention": seen,  # what was chosen of other models that are not shown
            "map": asked.map if asked.map in names else None,
        }
    )

    needs_lists = {"lists", "what-ifs", "effects", "overlap", "codes", "graph", "map"} & set(wanted)
    found = []
    if needs_lists:
        for name in names:
            told(f"Asking {models.bundles[name].manifest.title}")
            found.append(lists.listing(models, name, events, asked.k, target))

    def part(name: str, words: str) -> bool:
        if name in wanted:
            told(words)
        return name in wanted

    report = Report(
        created=at or now(),
        address=address,
        program=_program(),
        dataset=dataset(models),
        asked=asked,
        models=[model(models, name) for name in names],
        history=lists.history(models, asked, row) if part("history", "Reading the history") else None,
        lists=found if part("lists", "Writing the lists") else None,
        what_ifs=lists.what_ifs(models, names, asked, found) if part("what-ifs", "Trying other histories") else None,
        effects=lists.effects(models, names, asked, found) if part("effects", "Leaving events out") else None,
        overlap=lists.agreement(found, asked.k) if part("overlap", "Comparing the lists") else None,
        attention=inside.attention(models, names, asked, events) if part("attention", "Reading attention") else None,
        codes=inside.codes(models, asked, found) if part("codes", "Reading codes") else None,
        graph=walks.graph(models, names, asked, events, found) if part("graph", "Following paths") else None,
        map=inside.place(models, names, asked, events, found) if part("map", "Drawing the map") else None,
        metrics=judged.metrics(models, names, asked) if part("metrics", "Judging the models") else None,
        notes=notes(models, asked, wanted),
    )
    return sealed(report if "history" in wanted else _without_history(report))


def now() -> str:
    """UTC, ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def check(models: Zoo, asked: Asked) -> None:
    """Raises SeqscopeError where the zoo lacks what is asked for."""
    for what, wanted, there in (
        ("model", asked.models, models.bundles),
        ("model", asked.attention, models.bundles),
        ("model", None if asked.map is None else [asked.map], models.bundles),
        ("tokenizer", asked.codes, models.tokenizations),
    ):
        missing = [name for name in wanted or [] if name not in there]
        if missing:
            have = ", ".join(there) or "none"
            raise SeqscopeError(f"{models.info.name} has no {what} “{missing[0]}”; there are {have}.")
    if not models.bundles:
        raise SeqscopeError(f"{models.info.name} has no model that can be opened, so there is nothing to report.")
    if asked.item is not None:
        lists.numbers(models, [asked.item])
    lists.numbers(models, asked.edited or [])


def _without_history(report: Report) -> Report:
    """Nothing that tells the history is left; what depends on it stays."""
    asked = report.asked.model_copy(update={"history": None, "edited": None, "user": None})
    changes: dict[str, object] = {"asked": asked, "address": None}
    if report.what_ifs is not None:
        changes["what_ifs"] = [one.model_copy(update={"history": []}) for one in report.what_ifs]
    if report.attention is not None:
        changes["attention"] = [
            _nameless(one).model_copy(update={"written": one.written and _nameless(one.written)})
            for one in report.attention
        ]
    if report.codes is not None:
        listed = {one.item_id for row in report.lists or [] for one in row.items}
        changes["codes"] = [
            one.model_copy(update={"items": [coded for coded in one.items if coded.item_id in listed]})
            for one in report.codes
        ]
    if report.graph is not None:
        without = [one.model_copy(update={"branches": []}) for one in report.graph.models]
        changes["graph"] = report.graph.model_copy(update={"models": without})
    if report.map is not None:
        changes["map"] = report.map.model_copy(update={"history": []})
    return report.model_copy(update=changes)


def _nameless(one: Looked) -> Looked:
    return one.model_copy(update={"positions": [at.model_copy(update={"item_id": None}) for at in one.positions]})


def _program() -> Program:
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
    info = models.info
    return Dataset(
        name=info.name,
        title=info.title,
        fingerprint=info.fingerprint,
        items=len(models),
        users=info.counts.get("users", 0),
        events=info.counts.get("events", 0),
        simulated=info.simulated,
        source=info.source,
        licence=info.licence,
        split=info.split,
        repeats=info.repeats,
        measured=info.measured,
    )


def model(models: Zoo, name: str) -> Model:
    """What a report says of a model."""
    bundle, look = models.bundles[name], style(models, name)
    made = bundle.manifest
    return Model(
        name=name,
        title=made.title,
        family=made.family,
        digest=bundle.digest,
        provider=bundle.provider,
        colour=look.colour,
        sign=look.sign,
        marker=look.marker,
        dash=look.dash,
        seed=made.training.seed,
        commit=made.training.commit,
        command=made.training.command,
        device=made.training.device,
        created=made.created,
        improving=bundle.improving,
    )


def notes(models: Zoo, asked: Asked, parts: Sequence[str]) -> list[str]:
    """What has to be known to read the report."""
    found = []
    if models.info.simulated:
        found.append("The people of this dataset are simulated: nobody's behaviour is in it.")
    if {"lists", "what-ifs", "effects"} & set(parts):
        found.append("Scores of different models have different units: compare places, not scores.")
    if "attention" in parts:
        found.append(
            "Attention shows what a model mixed into its answer; by itself it explains nothing. What leaving an event out really "
            "changes stands under “Why this item?”."
        )
    if "map" in parts:
        found.append("On a map only what lies close together means something; far distances and the axes do not.")
    if "metrics" in parts:
        found.append("One seed per model: intervals are over people, not over trainings.")
    for refusal in models.refused:
        found.append(f"{NOT_OPENED}{refusal}")
    if not asked.rows:
        found.append("Without rows of the data: people are not named, and the points of the map have no titles.")
    return found
