"""A refit: when validation has selected a recipe's number of epochs, the same recipe is trained once more, on training and
validation events, for as many epochs and with the same seed. A model that counts is fitted on both.

Nothing validates it, as nothing is left to validate with. It is asked the same test as every other model, whose histories have
the validation items anyway: a refit changes what parameters are learnt from, and nothing else. Its figures stand under protocols
of their own (`engine.evaluation.protocols`), never beside those of models that were fitted on training events alone.

What a recipe takes from other runs stays as the selecting run had it: identifiers, weights to start from, words.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.bundle.curve import refitted
from engine.data.dataset import Dataset
from engine.errors import SeqscopeError, UsageError
from engine.evaluation.record import read_record
from engine.registry import MODELS
from engine.training import checkpoint
from engine.training.materials import gather
from engine.training.recipe import Recipe, from_dict
from engine.training.run import Selection, for_order, identity


def folder_of(run: Path) -> Path:
    """Where the refit of a run lies: beside it."""
    run = run if run.name not in ("", "..") else run.resolve()
    return run.with_name(f"{run.name}-refit")


def select(recipe: Recipe, dataset: Dataset, run: Path) -> Selection:
    """What the finished run of `recipe` on `dataset` in the folder `run` selected.

    Raises SeqscopeError where there is no such run, where it is unfinished, of another recipe or of other data, or where a refit
    would be the same training again.
    """
    if not MODELS[recipe.family].needs_log:
        raise SeqscopeError(f"{recipe.name} learns nothing from a log, so a refit would be the same model")
    if not len(dataset.events.values):
        raise SeqscopeError(f"{dataset.path} is a catalogue without a log, so there is nothing to fit {recipe.name} on")
    if not dataset.validates:
        share = dataset.info.split.get("valid_share")
        how = "" if share is None else f", with a valid_share of {share:g}"
        raise SeqscopeError(
            f"{dataset.path} holds nothing out for validation (split {dataset.info.split['kind']}{how}): "
            f"{recipe.name} is fitted on all events but the test's already, and there is nothing to refit it on"
        )
    try:
        record = read_record(run)
    except (FileNotFoundError, NotADirectoryError):
        state = "has not finished" if run.is_dir() else "is missing"
        raise SeqscopeError(
            f"a refit takes as many epochs as validation selected, and the run that selects them, {run}, {state}. "
            "Give the same `seqscope train` without --refit first."
        ) from None
    if refitted(record):
        raise SeqscopeError(f"{run} is a refit itself; name the run that was validated")
    try:
        before = from_dict(dict(record["recipe"]), str(run / "run.json"))
    except UsageError as error:
        raise SeqscopeError(f"{run / 'run.json'} cannot be used ({error}). Train again with --restart.") from None
    epochs = record["best_epoch"]
    if record["fingerprint"] != dataset.info.fingerprint:
        raise SeqscopeError(f"{run} was trained on other data than {dataset.path} holds now. Train it again first.")
    recipe = for_order(recipe, dataset)
    differing = [f"{key} {then!r} instead of {now!r}" for key, then, now in _differences(before, recipe)]
    if differing:
        raise SeqscopeError(
            f"{run} was trained with other settings ({', '.join(differing[:5])}), and a refit takes the same recipe. "
            "Give the same --recipe and --set, or the --out of another run."
        )
    if not epochs and not hasattr(MODELS[recipe.family], "fit"):
        raise SeqscopeError(f"{run} was best with no step of its own, as it started, and a refit would be the same")
    key = identity(recipe, dataset, gather(recipe, dataset, run, run))
    if checkpoint.read_state(run / "best.safetensors").identity != key:
        raise SeqscopeError(
            f"what {run} was trained with is not here any more: the weights that it started from, or what is said of the items, "
            "is another now. Train it again first."
        )
    return Selection(run, key, epochs, record.get("chosen") or {})


def _differences(before: Recipe, now: Recipe) -> Iterator[tuple[str, Any, Any]]:
    """(table.key, then, now) of every setting that two recipes do not share."""
    for key in ("name", "family", "title"):
        if getattr(before, key) != getattr(now, key):
            yield key, getattr(before, key), getattr(now, key)
    if before.family != now.family:
        return
    for name in ("model", "objective", "optimiser", "training"):
        tables = [dataclasses.asdict(getattr(recipe, name)) for recipe in (before, now)]
        for key in tables[1]:
            if tables[0][key] != tables[1][key]:
                yield f"{name}.{key}", tables[0][key], tables[1][key]
