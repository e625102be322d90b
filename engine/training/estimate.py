"""How long a training will take, with its evaluation and export: measured on the real data and the real model, as far as that is
quick, and multiplied.

A few steps are carried out and thrown away, some people are ranked, a checkpoint is written. What is not tried is modelled: an
export takes a multiple of what this program took to start, which grows with the machine's slowness as the export does. Early
stopping can only make it less, so that a total with `at_most` is an upper bound.
"""

import dataclasses
import math
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from engine.data.dataset import Cases, Dataset
from engine.errors import SeqscopeError, UsageError
from engine.evaluation.ranks import full_ranks, search_width
from engine.models import Recommender
from engine.registry import MODELS
from engine.training import compute as devices
from engine.training.loop import Trainer
from engine.training.materials import gather
from engine.training.recipe import Recipe
from engine.training.run import Selection, begun, build_model, build_trainer, for_order, training_log, validation

WARM = 3
"""Steps that are not counted: the first ones make kernels and memory ready."""
STEPS, SECONDS = 40, 3.0
"""Steps and seconds that are measured at most, whichever is less; at least `LEAST` steps."""
LEAST = 4
ASKED = 32
"""People who are ranked to see how long that takes; more where these are done quickly."""
GRAPHS, ATTENTION = 2.5, 1.4
"""What writing a graph takes, in starts of this program; what one more for attention takes."""
WEIGHTS = 0.5
"""What a bundle without a network takes, in the same unit: of a model that counts."""
MAP, MAPPED = 3.9, 0.00045
"""What a map takes: to get ready, and per item of at most 20,000, in the same unit."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Seconds."""

    recipe: str
    device: str
    epochs: int = 0
    """At most so many, of which `done` were finished before."""
    done: int = 0
    steps: int = 0
    """Of one epoch."""
    step: float = 0.0
    """One of them."""
    start: float
    """From the start of a command to its first step, three times: for training, evaluation and export."""
    train: float
    validate: float = 0.0
    evaluate: float
    export: float
    at_most: bool
    """Training may stop earlier, when validation gets no better."""

    @property
    def seconds(self) -> float:
        """All together."""
        return self.start + self.train + self.validate + self.evaluate + self.export

    def to_dict(self) -> dict[str, Any]:
        fields = dataclasses.asdict(self) | {"seconds": self.seconds}
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in fields.items()}


def estimate(
    recipe: Recipe, dataset: Dataset, folder: Path, *, device: str = "auto", selection: Selection | None = None
) -> Estimate:
    """What `seqscope train`, `evaluate` and `export` will take together for `recipe` on `dataset`. Nothing is left behind.

    folder: where the run would be; a training that was interrupted there has less to do. selection: of a refit. Raises
    SeqscopeError where the training could not begin.
    """
    kind = MODELS[recipe.family]
    if kind.needs_log and not len(dataset.training.values):
        raise SeqscopeError(
            f"{dataset.path} is a catalogue without a log, so there is nothing to learn {recipe.name} from"
        )
    if "vectors" in kind.needs and not kind.needs_log:
        raise UsageError(
            f"{recipe.name} learns nothing: what it takes is what `seqscope embed` takes, where that was not done"
        )
    recipe = for_order(recipe, dataset)
    where = devices.choose(device)
    if selection is not None:
        dataset = dataset.with_validation()
    materials = gather(recipe, dataset, folder, None if selection is None else selection.run)
    model = build_model(recipe, dataset.num_items, dataset.num_users, materials)
    cases = dataset.cases("test")
    count = getattr(model, "fit", None)
    if count is not None:
        log = training_log(dataset)
        fitting = _timed(lambda: count(*log))
        start = since_start() - fitting
        evaluate = _ranking(model.eval(), cases)
        judge = (
            validation(recipe, dataset, model) if selection is None and getattr(recipe.model, "search", False) else None
        )
        if judge is not None:  # each value of each setting of the grid at most once, and in the end the best of all
            values = {setting: len(values) for setting, values in kind.grid.items()}  # type: ignore[attr-defined]
            beside = getattr(kind, "beside", ())
            fits = 2 + sum(count for setting, count in values.items() if setting not in beside)
            fitting = fits * fitting + (1 + sum(values.values())) * _ranking(model, judge.cases)
        return Estimate(
            recipe=recipe.name, device=devices.describe(where), start=3 * start, train=fitting, evaluate=evaluate,
            export=WEIGHTS * start, at_most=judge is not None,
        )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="seqscope-estimate-") as temporary:
        trainer = build_trainer(
            recipe, dataset, model, Path(temporary), where, epochs=None if selection is None else selection.epochs
        )
        start = since_start()
        before = begun(recipe, dataset, materials, folder, selection)
        trainer.state.compute = before.compute
        trainer.choose_compute()
        return _learning(recipe, trainer, before.epoch, start, cases)


def _learning(recipe: Recipe, trainer: Trainer, done: int, start: float, cases: Cases) -> Estimate:
    training, objective, model = recipe.training, trainer.objective, trainer.model
    model.train()
    begun = _timed(lambda: objective.begin_epoch(model))
    plan: list[Any] = []
    planning = _timed(lambda: plan.extend(objective.batches(torch.Generator().manual_seed(0))))
    step = _step(trainer, plan)
    saving = _timed(trainer._save)
    left = max(0, trainer.epochs - done)
    epoch = begun + planning + len(plan) * step + saving
    # a checkpoint is also written every so often within an epoch
    epoch += saving * (len(plan) * step // max(training.checkpoint_seconds, 1e-3))
    validations = math.ceil(trainer.epochs / training.validate_every) - done // training.validate_every
    validation = trainer.validation
    validation_seconds = saving + (
        _ranking(model.eval(), validation.cases, validation.trained_users) if validation is not None else 0.0
    )
    times = 1 + model.trained_users + model.reads_times
    return Estimate(
        recipe=recipe.name,
        device=devices.describe(trainer.device, trainer.compute.threads),
        epochs=trainer.epochs,
        done=done,
        steps=len(plan),
        step=step,
        start=3 * start,
        train=left * epoch,
        validate=max(0, validations) * validation_seconds,
        evaluate=times * _ranking(model, cases, lists=True),
        export=_export(model, start),
        at_most=bool(training.patience) and validation is not None,
    )


def _step(trainer: Trainer, plan: list[Any]) -> float:
    """Seconds of a step, on average over some that are spread over an epoch."""
    rows = [plan[place] for place in np.linspace(0, len(plan) - 1, min(STEPS + WARM, len(plan))).astype(int)]
    for number in range(WARM):
        trainer._step(rows[number % len(rows)], len(plan))
    count, began = 0, time.monotonic()
    while count < STEPS and (count < LEAST or time.monotonic() - began < SECONDS):
        trainer._step(rows[(WARM + count) % len(rows)], len(plan))
        count += 1
    if trainer.device.type == "cuda":
        torch.cuda.synchronize(trainer.device)
    return (time.monotonic() - began) / count


def _ranking(
    model: Recommender, cases: Cases, trained: bool | npt.NDArray[np.bool_] = False, lists: bool = False
) -> float:
    """Seconds to rank all of `cases`. trained: as `trained_users` of `full_ranks`; lists: as the test items are."""
    if not len(cases):
        return 0.0
    width = search_width(model) if lists else model.beam  # as `Validation` has it

    def ask(count: int) -> float:
        rows = np.linspace(0, len(cases) - 1, count).astype(int)
        part, by_vectors = cases.take(rows), np.broadcast_to(trained, len(cases))[rows]
        return _timed(lambda: full_ranks(model, part, trained_users=by_vectors, lists=lists, beam=width))

    count = min(ASKED, len(cases))
    ask(min(2, count))
    taken = ask(count)
    if taken < 0.5 and count < len(cases):  # a batch has its own cost, which few people do not show
        count = min(len(cases), 32 * count)
        taken = ask(count)
    return taken * len(cases) / count


def _export(model: Recommender, start: float) -> float:
    generates = "generator" in model.exports
    graphs = GRAPHS + (ATTENTION if model.attention is not None else 0.0) + (GRAPHS if generates else 0.0)
    mapped = generates or (model.card.geometry != "none" and model.num_items > 15)
    return start * (graphs + (MAP + MAPPED * min(model.num_items, 20_000) if mapped else 0.0))


def _timed(do: Callable[[], Any]) -> float:
    began = time.monotonic()
    do()
    return time.monotonic() - began


def since_start() -> float:
    """Seconds since this process began: what its imports took, and reading the data."""
    try:
        fields = Path("/proc/self/stat").read_text("utf-8").rpartition(")")[2].split()
        return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return time.process_time()
