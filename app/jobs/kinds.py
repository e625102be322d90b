"""The jobs that there are, as steps of the engine. All work in the folder of one dataset (app/home.py), by names relative to it.

prepare   a catalogue, perhaps with a log: what can be shown without training
train     models on a log: trained, evaluated, exported
batch     the lists of many histories
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from app.jobs import spec
from app.jobs.estimate import Estimate, overrides
from app.jobs.spec import Job, Step, Strict

ITEMS, LOG = "clean/items.parquet", "clean/log.parquet"
PREPARED = "data/dataset.json"
ABOUT = "Uploaded by a visitor."
LICENCE = "Known to whoever uploaded it."
MODELS: dict[str, str] = {
    "sasrec": "SASRec",
    "bert4rec": "BERT4Rec",
    "attrec": "AttRec",
    "markov": "Markov chain",
    "popularity": "Popularity",
    "text-neighbours": "Text neighbours",
}
"""What may be trained from a page → its title: models whose recipe needs no other run and no large machine."""
TOKENIZERS: dict[str, str] = {"rqvae": "RQ-VAE", "residual-kmeans": "Residual k-means"}
"""Those that need nothing but words."""


class Choice(Strict):
    """A model to train."""

    model: str = Field(pattern=r"^[a-z0-9-]+$")
    settings: dict[str, int | float | str | bool] = Field(default_factory=dict)
    """table.key → value, over those of the recipe: {"training.epochs": 30}."""
    estimate: Estimate | None = None
    """Where it was asked for: how far the job is, and how long it takes, is then told by it."""

    @property
    def run(self) -> str:
        """Its run folder: other settings are another training."""
        if not self.settings:
            return f"runs/{self.model}"
        digest = hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()[:8]
        return f"runs/{self.model}-{digest}"


def prepare(
    id: str,
    folder: Path,
    jobs: Path,
    *,
    name: str,
    title: str,
    items: int,
    log: Sequence[str] = (),
    sources: Sequence[Path] = (),
    owner: str = "",
    dataset: str = "",
) -> Job:
    """What a dataset can show at once: models that read words, identifiers, maps.

    folder: the dataset's; jobs: where jobs are; name: the dataset's in addresses, lowercase letters and digits; log: the columns
    of the log, none where there is none; sources: bundles that know items by their words, to be carried over.
    """
    steps = [_import(name, title, log), _fresh()]
    for source in sources:
        words = ("zero-shot", os.path.abspath(source), "--dataset", "data", "--to", "exports")
        steps.append(
            Step(title=f"Carry over {_titled(source)}", words=words, may_fail=True, goal=True, weight=25 + items / 300)
        )
    embed = ("embed", "--dataset", "data", "--encoder", "auto")
    mapped = (*embed, "--to", "exports")
    steps += [
        Step(title="Read the words", words=embed, key="words", may_fail=True, weight=10 + items / 60),
        Step(title="Map the words", words=mapped, needs=("words",), may_fail=True, weight=20 + items / 500),
    ]
    steps += _trained(Choice(model="text-neighbours"), bool(log), needs=("words",), optional=True)
    for tokenizer, called in TOKENIZERS.items():
        run = f"runs/{tokenizer}"
        settings = ["--set", "words.encoder=auto", *overrides(sized(tokenizer, items))]
        steps += [
            Step(
                title=f"Give identifiers by {called}",
                words=("tokenize", tokenizer, "--dataset", "data", "--out", run, *settings),
                key=tokenizer,
                needs=("words",),
                may_fail=True,
                weight=10 + items / 200,
            ),
            Step(
                title=f"Show the identifiers of {called}",
                words=("export", run, "--to", "exports"),
                needs=(tokenizer,),
                may_fail=True,
                goal=True,
                weight=20 + items / 1_000,
            ),
        ]
    return _job(id, "prepare", f"Prepare {title}"[:200], folder, jobs, steps, owner, dataset)


def train(
    id: str,
    folder: Path,
    jobs: Path,
    choices: Sequence[Choice],
    *,
    name: str,
    title: str,
    log: Sequence[str],
    owner: str = "",
    dataset: str = "",
) -> Job:
    """Models, trained one after the other; each appears when it is ready. log: the columns of the log.

    Raises ValueError for models that cannot be trained from a page.
    """
    if unknown := [choice.model for choice in choices if choice.model not in MODELS]:
        raise ValueError(f"no model that can be trained here: {unknown[0]}")
    if not choices or len({choice.model for choice in choices}) < len(choices):
        raise ValueError("each model once, and at least one")
    steps = [_import(name, title, log), _fresh()]
    for choice in choices:
        steps += _trained(choice, True, optional=len(choices) > 1)
    timed = all(choice.estimate is not None for choice in choices)
    called = ", ".join(MODELS[choice.model] for choice in choices)
    return _job(id, "train", f"Train {called}"[:200], folder, jobs, steps, owner, dataset, timed)


def batch(
    id: str,
    folder: Path,
    jobs: Path,
    words: Sequence[str],
    *,
    title: str,
    program: str = "engine",
    owner: str = "",
    dataset: str = "",
) -> Job:
    """One command that answers for many histories and tells how far it is."""
    step = Step(title=title[:200], words=tuple(words), program=program)
    return _job(id, "batch", title[:200], folder, jobs, [step], owner, dataset)


def sized(tokenizer: str, items: int) -> dict[str, int]:
    """Settings of a tokenizer for so many items: about as many codes of a level as make the tree neither bare nor crowded, and
    fewer epochs where there are more steps in each."""
    codes = next((count for most, count in ((300, 8), (1_000, 16), (3_000, 32), (10_000, 64)) if items <= most), 256)
    found = {"tokenizer.codes": codes}
    if tokenizer == "rqvae":
        found["training.epochs"] = max(20, min(150, 3_000_000 // max(items, 1)))
    return found


def _import(name: str, title: str, log: Sequence[str]) -> Step:
    into = ["--out", "data", "--overwrite", "--name", name, f"--title={title[:200]}", "--about", ABOUT]
    into += ["--licence", LICENCE, "--item-id-column", "item_id", "--title-column", "title"]
    if not log:
        words = ["catalogue", "import", ITEMS, *into]
        return Step(title="Read the catalogue", words=tuple(words), inputs=(ITEMS,), output=PREPARED, weight=10)
    words = ["data", "import", LOG, "--source", "table", "--items", ITEMS, "--keep-unused-items", *into]
    words += ["--user-column", "user", "--item-column", "item"]
    words += ["--time-column", "time", "--time-unit", "s"] if "time" in log else ["--time-column", "-"]
    return Step(title="Read the log", words=tuple(words), inputs=(ITEMS, LOG), output=PREPARED, weight=10)


def _fresh() -> Step:
    return Step(title="Make room", program="app.jobs.fresh", words=("data", "exports", "runs"), weight=1)


def _trained(choice: Choice, log: bool, *, needs: tuple[str, ...] = (), optional: bool) -> list[Step]:
    """Trained, evaluated, exported."""
    known, called, run = choice.estimate, MODELS[choice.model], choice.run
    third = 0.0 if known is None else known.start / 3
    trained, evaluated = f"{choice.model}, trained", f"{choice.model}, evaluated"
    steps = [
        Step(
            title=f"Train {called}",
            words=("train", choice.model, "--dataset", "data", "--out", run, *overrides(choice.settings)),
            key=trained,
            needs=needs,
            may_fail=optional,
            run=run,
            weight=60 if known is None else max(0.1, third + known.train + known.validation),
        )
    ]
    if log:
        steps.append(
            Step(
                title=f"Evaluate {called}",
                words=("evaluate", run),
                key=evaluated,
                needs=(trained,),
                may_fail=optional,
                weight=15 if known is None else max(0.1, third + known.evaluate),
            )
        )
    steps.append(
        Step(
            title=f"Export {called}",
            words=("export", run, "--to", "exports", "--name", choice.model),
            needs=(evaluated if log else trained,),
            may_fail=optional,
            goal=True,
            weight=25 if known is None else max(0.1, third + known.export),
        )
    )
    return steps


def _job(
    id: str,
    kind: spec.Kind,
    title: str,
    folder: Path,
    jobs: Path,
    steps: list[Step],
    owner: str,
    dataset: str,
    timed: bool = False,
) -> Job:
    where = os.path.relpath(folder, jobs / id)
    return Job(
        id=id, kind=kind, title=title, owner=owner, dataset=dataset, folder=where, created=spec.now(), steps=tuple(steps),
        timed=timed,
    )  # fmt: skip


def _titled(source: Path) -> str:
    try:
        found: Mapping[str, Any] = json.loads((source / "manifest.json").read_text("utf-8"))
        return str(found["title"])[:60]
    except (OSError, ValueError, KeyError, TypeError):
        return source.name[:60]
