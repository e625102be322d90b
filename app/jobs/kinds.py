"""The jobs that there are, as steps of the engine. All work in the folder of one dataset (app/home.py), by names relative to it.

baselines  a log: the models that need no training, within seconds and in one process
prepare    a catalogue, perhaps with a log: what else can be shown without training
train      models on a log: trained, evaluated, exported
batch      the lists of many histories

The first is short, and so are trainings that are estimated to be over soon and few lists: they wait for no long one (queue.py).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import Field

from app.jobs import fresh
from app.jobs.estimate import JobEstimate, overrides
from app.jobs.spec import FILES, Job, JobStep, Strict
from app.store.records import JobKind
from app.text import listed
from app.uploads.archive import INDEX
from engine.bundle.items import FEW
from engine.cards import Trainable, at_once, declarations, trainable
from engine.errors import SeqscopeError
from engine.files import read_json
from engine.tabular.reading import UNITS, Reading

ITEMS, LOG = "clean/items.parquet", "clean/log.parquet"
PREPARED = "data/dataset.json"
ABOUT = "Uploaded by a visitor."
LISTS = "Lists for many histories"
SHOWN, NEXT = "exports", "next"
"""Where bundles go: to what is shown; or beside it, where that was made of the dataset before it got a log."""
LICENCE = "Not stated."
ANEW = "--restart-other"
"""What a run folder holds is of this dataset and these settings; recipes and encoders change with a server."""
STEPS = 1_500
"""A tokenizer that learns does so in so many steps at least: in a tenth of that RQ-VAE loses most of what it is given."""
LEAST_BATCH, EPOCH_STEPS = 16, 10
"""Batches are halved, down to the first, while an epoch has fewer steps than the second: see `batches`."""
NEIGHBOURS = 15
"""A map needs more items than that."""
UNASKED = "text-neighbours"
"""The model that a dataset has as soon as it is prepared, without a log as well."""
NAMED = 5
"""Models that the title of a job names; of more it says how many there are."""
SOON = 60.0
"""Seconds: a training that is estimated to take no more is short."""
FEW_BYTES = 1_000_000
"""Of a file of histories: lists for as many are short, tens of thousands of events, where no model writes codes."""


def models() -> dict[str, Trainable]:
    """What may be trained from a page, by name."""
    return trainable(declarations().models)


def baseline_names() -> tuple[str, ...]:
    """Of the models that are made as soon as there is a log."""
    return tuple(at_once(declarations().models))


def tokenizers() -> dict[str, Trainable]:
    """Those whose identifiers a catalogue gets when it is prepared, by name."""
    return trainable(declarations().tokenizers)


class TrainingChoice(Strict):
    """A model to train; see `choose`."""

    model: str = Field(pattern=r"^[a-z0-9-]+$")
    settings: dict[str, int | float | str | bool] = Field(default_factory=dict)
    """table.key → value, over those of the recipe: {"training.epochs": 30}."""
    estimate: JobEstimate | None = None
    """Where it was asked for: how far the job is, and how long it takes, is then told by it."""
    before: TrainingChoice | None = None
    """The training that this one starts from."""

    @property
    def recipe(self) -> str:
        """Of the model, or of a stage before it."""
        model = models().get(self.model)
        return (model.page.recipe if model is not None else "") or self.model

    @property
    def tried(self) -> dict[str, int | float | str | bool]:
        """Settings for an estimate: the training before it is not there yet, and what that starts from takes as long."""
        return (
            {**self.settings, "model.start": self.before.settings.get("model.start", "")}
            if self.before
            else self.settings
        )

    @property
    def estimates(self) -> tuple[JobEstimate, ...]:
        """Of this training and those before it."""
        last = () if self.estimate is None else (self.estimate,)
        return (*(self.before.estimates if self.before else ()), *last)

    @property
    def run(self) -> str:
        """Its run folder: other settings are another training."""
        if not self.settings:
            return f"runs/{self.model}"
        digest = hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()[:8]
        return f"runs/{self.model}-{digest}"


def choose(folder: Path, model: str, settings: Mapping[str, int | float | str | bool]) -> TrainingChoice:
    """The training of a model on the dataset in `folder`, with what comes before it. Raises SeqscopeError where it cannot be."""
    chosen = {**batches(model, fresh.count(folder / "data", "users")), **settings}
    page = models()[model].page
    if page.times and fresh.has_times(folder / "data") is False:
        raise SeqscopeError(
            "It reads when events were, and this log has no times. Upload the log with a column of times, or choose models that "
            "read the order alone."
        )
    if page.identifiers:
        if not (folder / "runs" / page.identifiers / "identifiers.json").is_file():
            raise SeqscopeError(
                f"It generates semantic IDs of {tokenizers()[page.identifiers].title}, which the items lack. Prepare the "
                "dataset first; where that could give none, its catalogue has no words."
            )
        chosen = {"model.identifiers": page.identifiers, **chosen}
    start = {}
    if page.start:
        chosen = {**_sizes(folder / SHOWN / page.start, page.sizes), **chosen}
        start = {"model.start": f"{SHOWN}/{page.start}"}
    if not page.first:
        return TrainingChoice(model=model, settings={**chosen, **start})
    first = TrainingChoice(model=page.first, settings={**start, **chosen})
    return TrainingChoice(
        model=model, settings={**chosen, "model.start": first.run.removeprefix("runs/")}, before=first
    )


def _sizes(bundle: Path, names: Sequence[str]) -> dict[str, int | float | str | bool]:
    """Settings of a bundle's model, as settings of what starts from it."""
    try:
        manifest = json.loads((bundle / "manifest.json").read_text("utf-8"))
        if not manifest["zero_shot"]:
            raise KeyError("zero_shot")
        model = dict(manifest["training"]["recipe"]["model"])
    except (OSError, ValueError, KeyError, TypeError):
        raise SeqscopeError(
            "It starts from a Recformer that reads words, carried over from another dataset, and there is none here. Prepare the "
            "dataset first; where that could carry none over, the server has none or the catalogue has no words."
        ) from None
    return {f"model.{name}": model[name] for name in names if isinstance(model.get(name), (int, float, str))}


@dataclass(frozen=True)
class JobRequest:
    """A job to be made, and of what."""

    id: str
    folder: Path
    """The dataset's."""
    jobs: Path
    """Where jobs are."""
    name: str
    """The dataset's in addresses, lowercase letters and digits."""
    title: str
    log: Sequence[str] = ()
    """The columns of the log, none where there is none."""
    reading: Reading | None = None
    """How the log is read, with what its owner chose at the check."""
    owner: str = ""
    dataset: str = ""
    """Whose job it is, and of which stored dataset."""


def baselines(request: JobRequest, items: int = 0) -> Job:
    """What is made by itself as soon as there is a log: all models that declare so (`OnPage.at_once`)."""
    into = _into(request.folder, True)
    words = ("baselines", *baseline_names(), "--dataset", "data", "--runs", "runs", "--to", into, ANEW)
    made = JobStep(title="Fit, evaluate and export", words=words, goal=True, weight=30)
    steps = _between(request, into, [made], items)
    return _job(request, "baselines", f"Models that need no training, of {request.title}", steps, short=True)


def prepare(request: JobRequest, items: int, sources: Sequence[Path] = ()) -> Job:
    """What a dataset can show at once: models that read words, identifiers, maps.

    sources: bundles that know items by their words, to be carried over.
    """
    into, steps = _into(request.folder, bool(request.log)), list[JobStep]()
    for source in sources:
        words = ("zero-shot", os.path.abspath(source), "--dataset", "data", "--to", into)
        steps.append(
            JobStep(
                title=f"Zero-shot {_titled(source)}", words=words, may_fail=True, goal=True, weight=25 + items / 300
            )
        )
    embed = ("embed", "--dataset", "data", "--encoder", "auto")
    mapped = (*embed, "--to", into)
    steps.append(JobStep(title="Embed the texts", words=embed, key="words", may_fail=True, weight=10 + items / 60))
    if items > NEIGHBOURS:
        steps.append(
            JobStep(title="Project the texts", words=mapped, needs=("words",), may_fail=True, weight=20 + items / 500)
        )
    steps += _trained(TrainingChoice(model=UNASKED), bool(request.log), into, needs=("words",), optional=True)
    for name, tokenizer in tokenizers().items():
        needs = ("words",) if "vectors" in tokenizer.declaration.needs else ()
        steps += [
            _tokenized(name, items).model_copy(update={"needs": needs}),
            JobStep(
                title=f"Show the semantic IDs of {tokenizer.title}",
                words=("export", f"runs/{name}", "--to", into),
                needs=(name,),
                may_fail=True,
                goal=True,
                weight=20 + items / 1_000,
            ),
        ]
    if (request.folder / INDEX).is_file():
        steps.append(_indexed(INDEX, into).model_copy(update={"may_fail": True}))
    return _job(request, "prepare", f"Prepare {request.title}", _between(request, into, steps, items))


def index(request: JobRequest) -> Job:
    """Shows the semantic IDs that the job was given, and keeps them where they can be read."""
    into = _into(request.folder, bool(request.log))
    brought = os.path.relpath(request.jobs / request.id / FILES / INDEX, request.folder)
    keeping = JobStep(title="Keep them", program="app.jobs.keep", words=(brought, INDEX))
    steps = _between(request, into, [_indexed(brought, into), keeping])
    return _job(request, "prepare", f"Semantic IDs for {request.title}", steps, short=True)


def train(request: JobRequest, choices: Sequence[TrainingChoice]) -> Job:
    """Models, trained one after the other; each appears when it is ready.

    Raises ValueError for models that cannot be trained from a page.
    """
    named = [choice.model for choice in choices]
    if unknown := [name for name in named if name not in models()]:
        raise ValueError(f"no model that can be trained here: {unknown[0]}")
    pages = {name: models()[name].page for name in named}
    if any(choice.before is not None and choice.before.model != pages[choice.model].first for choice in choices):
        raise ValueError("no training that comes before another one")
    if not choices or len({choice.model for choice in choices}) < len(choices):
        raise ValueError("each model once, and at least one")
    into, items = _into(request.folder, True), fresh.count(request.folder / "data", "items")
    steps: list[JobStep] = []
    for choice in choices:
        alone = len(choices) == 1
        needs: tuple[str, ...] = ()
        if tokenizer := pages[choice.model].identifiers:  # nothing is done again that is there
            steps.append(_tokenized(tokenizer, items).model_copy(update={"may_fail": not alone, "weight": 10}))
            needs = (tokenizer,)
        if choice.before is not None:
            steps.append(_learned(choice.before, pages[choice.model].first_title, optional=not alone))
            needs = (steps[-1].key,)
        steps += _trained(choice, True, into, needs=needs, optional=not alone)
    steps = _between(request, into, steps, items)
    timed = all(choice.estimate is not None for choice in choices)
    timed = timed and all(choice.before is None or choice.before.estimate is not None for choice in choices)
    called = [models()[name].title for name in named]
    called = [*called[:NAMED], f"{len(called) - NAMED} more"] if len(called) > NAMED + 1 else called
    soon = timed and sum(step.weight for step in steps) <= SOON
    return _job(request, "train", f"Train {listed(called)}", steps, timed=timed, short=soon)


def batch(request: JobRequest, words: Sequence[str], *, short: bool = False) -> Job:
    """One command that answers for many histories and tells how far it is. short: these are few."""
    return _job(request, "batch", LISTS, [JobStep(title=LISTS, words=tuple(words))], short=short)


def sized(tokenizer: str, items: int) -> dict[str, int]:
    """Settings of a tokenizer for so many items: about as many codes of a level as make the tree neither bare nor crowded, fewer
    epochs where there are more steps in each, and more where there are hardly any."""
    items = max(items, 1)
    codes = next((count for most, count in ((300, 8), (1_000, 16), (3_000, 32), (10_000, 64)) if items <= most), 256)
    settings = {"tokenizer.codes": codes}
    chosen = tokenizers()[tokenizer]
    if chosen.declaration.learns:
        least = math.ceil(STEPS / math.ceil(items / chosen.page.batch))
        settings["training.epochs"] = max(20, least, min(150, 3_000_000 // items))
    return settings


def batches(model: str, people: int) -> dict[str, int]:
    """Settings of a model for a log of so many people: a few hundred of them make two steps an epoch in a recipe's batches, and
    the epochs of the recipe are over before the rate has climbed."""
    page = models()[model].page
    if not people or not page.examples:
        return {}
    batch = page.batch
    while batch > LEAST_BATCH and people * page.examples < EPOCH_STEPS * batch:
        batch = max(LEAST_BATCH, batch // 2)
    return {} if batch == page.batch else {"training.batch_size": batch}


def _between(request: JobRequest, into: str, made: Sequence[JobStep], items: int = 0) -> list[JobStep]:
    """With what comes before and after the steps of every job that makes something to be shown. items: of a catalogue that has to
    be searched; 0: that is done."""
    room = JobStep(title="Remove outdated models", program="app.jobs.fresh", words=("data", into, "runs"), weight=1)
    steps = [_import(request), room, *made]
    if items > FEW:  # the first one to look at so many would otherwise wait
        search, long = "Make the catalogue ready to be searched", 5 + items / 20_000
        steps.append(JobStep(title=search, program="app.store.prepared", words=(into,), may_fail=True, weight=long))
    if into != SHOWN:
        show = "Show it in place of what was there"
        steps.append(JobStep(title=show, program="app.jobs.turn", words=("data", into, SHOWN)))
    return steps


def _import(request: JobRequest) -> JobStep:
    log = request.log
    into = ["--out", "data", "--overwrite", "--name", request.name, f"--title={request.title[:200]}", "--about", ABOUT]
    into += ["--licence", LICENCE, "--item-id-column", "item_id", "--title-column", "title"]
    if not log:
        words = ["catalogue", "import", ITEMS, *into]
        return JobStep(title="Read the catalogue", words=tuple(words), inputs=(ITEMS,), output=PREPARED, weight=10)
    words = ["data", "import", LOG, "--source", "table", "--items", ITEMS, "--keep-unused-items", *into]
    words += ["--user-column", "user", "--item-column", "item"]
    words += ["--time-column", "time"] if "time" in log else ["--time-column", "-"]
    words += ["--quantity-column", "quantity"] if "quantity" in log else []
    words += [] if request.reading is None else _chosen(request.reading, log)
    return JobStep(title="Read the log", words=tuple(words), inputs=(ITEMS, LOG), output=PREPARED, weight=10)


def _chosen(reading: Reading, log: Sequence[str]) -> list[str]:
    """What its owner chose at the check. The clean log lacks what is dropped already; said again, dataset.json says it, too."""
    words = ["--ties", reading.ties] if reading.ties != "file" else []
    if "time" in log and reading.time not in (None, *UNITS):  # what was written as a date is one, in 1970, too
        words += ["--time-unit", "s"]
    words += ["--drop-negative"] if reading.drop_negative and "quantity" in log else []
    words += ["--repeats", reading.repeats] if reading.repeats is not None else []
    if reading.min_rating is not None and "weight" in log:
        words += ["--rating-column", "weight", "--min-rating", f"{reading.min_rating:g}"]
    return words


def _into(folder: Path, log: bool) -> str:
    """Other titles and other models are no other dataset; a log that comes later is."""
    shown = fresh.fingerprint(folder / SHOWN)
    same = shown == fresh.fingerprint(folder / "data") and fresh.has_log(folder / "data") == log
    return SHOWN if shown is None or same else NEXT


def _indexed(file: str, into: str) -> JobStep:
    words = ("export", file, "--dataset", "data", "--to", into, "--name", "uploaded", "--title", "Uploaded")
    return JobStep(title="Read the semantic IDs", words=words, goal=True, weight=10)


def _trained(
    choice: TrainingChoice, log: bool, into: str, *, needs: tuple[str, ...] = (), optional: bool
) -> list[JobStep]:
    """Trained, evaluated, exported."""
    known, called, run = choice.estimate, models()[choice.model].title, choice.run
    third = 0.0 if known is None else known.start / 3
    steps = [_learned(choice, called, optional=optional, needs=needs)]
    trained, evaluated = steps[0].key, f"{choice.model}, evaluated"
    if log:
        steps.append(
            JobStep(
                title=f"Evaluate {called}",
                words=("evaluate", run),
                key=evaluated,
                needs=(trained,),
                may_fail=optional,
                weight=15 if known is None else max(0.1, third + known.evaluate),
            )
        )
    steps.append(
        JobStep(
            title=f"Export {called}",
            words=("export", run, "--to", into, "--name", choice.model),
            needs=(evaluated if log else trained,),
            may_fail=optional,
            goal=True,
            weight=25 if known is None else max(0.1, third + known.export),
        )
    )
    return steps


def _learned(choice: TrainingChoice, called: str, *, optional: bool, needs: tuple[str, ...] = ()) -> JobStep:
    known, run = choice.estimate, choice.run
    return JobStep(
        title=f"Train {called}",
        words=("train", choice.recipe, "--dataset", "data", "--out", run, ANEW, *overrides(choice.settings)),
        key=f"{choice.model}, trained",
        needs=needs,
        may_fail=optional,
        run=run,
        weight=60 if known is None else max(0.1, known.start / 3 + known.train + known.validation),
    )


def _tokenized(tokenizer: str, items: int) -> JobStep:
    size = sized(tokenizer, items)
    steps = size.get("training.epochs", 0) * math.ceil(items / tokenizers()[tokenizer].page.batch)
    settings = [ANEW, "--set", "words.encoder=auto", *overrides(size)]
    return JobStep(
        title=f"Tokenize with {tokenizers()[tokenizer].title}",
        words=("tokenize", tokenizer, "--dataset", "data", "--out", f"runs/{tokenizer}", *settings),
        key=tokenizer,
        may_fail=True,
        weight=10 + items / 200 + steps / 100,
    )


def _job(
    request: JobRequest, kind: JobKind, title: str, steps: list[JobStep], *, timed: bool = False, short: bool = False
) -> Job:
    return Job(
        id=request.id, kind=kind, title=title[:200], owner=request.owner, dataset=request.dataset, created=datetime.now(UTC),
        folder=os.path.relpath(request.folder, request.jobs / request.id), steps=tuple(steps), timed=timed, short=short,
    )  # fmt: skip


def _titled(source: Path) -> str:
    return str(read_json(source / "manifest.json").get("title", source.name))[:60]
