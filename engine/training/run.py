"""A run: one recipe on one dataset, in one folder (see docs/architecture.md). From dataset to trained model and back."""

import contextlib
import hashlib
import json
import platform
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine import __version__
from engine.bundle.curve import TRAINING, WITH_VALIDATION, improving, refitted, validated
from engine.console import note
from engine.data.dataset import Dataset
from engine.data.ragged import LONGEST
from engine.errors import OtherRun, SeqscopeError, UsageError
from engine.evaluation.protocols import history_excluded, main
from engine.evaluation.ranks import frozen, with_vectors
from engine.evaluation.record import dataset_of, expect_run_folder, read_record
from engine.evaluation.tables import COST, ELSEWHERE, EVALUATION
from engine.files import claimed, contents, read_json, write_json
from engine.machine import keep_memory, now
from engine.models import Recommender
from engine.models.mult_vae import SetAutoencoder
from engine.registry import MODELS
from engine.training import checkpoint
from engine.training import compute as devices
from engine.training.checkpoint import State
from engine.training.distributed import World
from engine.training.loop import CURVE, Trainer, Validation, seed_of
from engine.training.materials import COPIED, COPIES, Materials, gather, of_run, read_elsewhere
from engine.training.objectives import OBJECTIVES
from engine.training.optimiser import OVER_ALL_EPOCHS
from engine.training.recipe import Recipe, from_dict
from engine.writing import count, in_percent

ALONE = World()
FILES = {
    "run.json", "best.safetensors", "checkpoint.safetensors", CURVE, *EVALUATION, COST, "generation.json", ELSEWHERE, *COPIES,
}  # fmt: skip
"""What training and evaluation write into the folder of a run."""
COMPUTED = ("command", "commit", "device", "compute", "versions", "started")
"""What run.json says of where and when a training was computed, which stays so when the same is called again."""


@dataclass(frozen=True)
class Selection:
    """What a finished run selected, for a refit (engine/training/refit.py)."""

    run: Path
    identity: str
    epochs: int
    """Those of its best model; 0 for a model that counts."""
    chosen: dict[str, Any] = field(default_factory=dict)
    """Settings that it searched for."""


def identity(recipe: Recipe, dataset: Dataset, materials: Materials, selection: Selection | None = None) -> str:
    """Digest of what determines a training; --set of an unimportant key does not exist, so every key counts."""
    text = json.dumps(recipe.identity(), sort_keys=True) + dataset.info.fingerprint + materials.digest
    if selection is not None:
        text += f"refit {selection.epochs} {selection.identity}"
    return hashlib.sha256(text.encode()).hexdigest()


def build_model(recipe: Recipe, num_items: int, num_users: int, materials: Materials | None = None) -> Recommender:
    """materials: what the model needs; None where that is nothing."""
    generator = torch.Generator().manual_seed(seed_of(recipe.training.seed, "model"))
    try:
        return MODELS[recipe.family](
            recipe.model, num_items, num_users, generator, **(materials or Materials()).values_by_name
        )
    except ValueError as error:
        raise UsageError(f"{recipe.name}: {error}") from None


def train(
    recipe: Recipe,
    dataset: Dataset,
    folder: Path,
    *,
    device: str = "auto",
    world: World = ALONE,
    restart: bool = False,
    finish: bool = False,
    selection: Selection | None = None,
) -> dict[str, Any]:
    """Train `recipe` on `dataset` into `folder`, going on where an interrupted training of the same stopped.

    finish: take the best model so far as the result instead of going on. selection: a refit, on training and validation events
    for the epochs of `selection`. Returns what run.json holds. Raises SeqscopeError
    where the folder holds another training (and `restart` is not given) or a tokenizer, or where another process trains in it.
    """
    if "tokenizer.safetensors" in expect_run_folder(folder):
        raise SeqscopeError(f"{folder} holds a run of a tokenizer, not of a model. Give another --out.")
    replaced = _files_of_run(folder) if restart and world.leads else []
    with claimed(folder, replaced) if world.leads else contextlib.nullcontext():
        world.wait()
        return _train(recipe, dataset, folder, device, world, finish, selection)


def _train(
    recipe: Recipe,
    dataset: Dataset,
    folder: Path,
    device: str,
    world: World,
    finish: bool,
    selection: Selection | None,
) -> dict[str, Any]:
    if not len(dataset.events.values) and MODELS[recipe.family].needs_log:
        raise SeqscopeError(
            f"{dataset.path} is a catalogue without a log, so there is nothing to learn {recipe.name} from. "
            "Import it with a log (`seqscope data import`); text-neighbours and `seqscope zero-shot` need none."
        )
    keep_memory()
    recipe = for_order(recipe, dataset)
    where = devices.choose(device, world.local)
    if selection is not None:
        dataset = dataset.with_validation()
    materials = _gather(recipe, dataset, folder, world, selection)
    key = identity(recipe, dataset, materials, selection)
    if selection is None and world.leads:
        _lengthen(recipe, dataset, materials, folder)
    world.wait()
    if (folder / "best.safetensors").exists():
        checkpoint.check(folder / "best.safetensors", key)
    built = recipe if selection is None else settled(recipe, selection.chosen)
    model = build_model(built, dataset.num_items, dataset.num_users, materials)
    if world.leads and (words := read_in_part(dataset, model.max_length, isinstance(model, SetAutoencoder))):
        note(words)
    record = provenance(recipe.identity(), dataset, where) | {"fitted_on": TRAINING}
    if selection is not None:
        record |= {"fitted_on": WITH_VALIDATION, "selected_by": str(selection.run)}
    if hasattr(model, "fit"):
        begin = time.monotonic()
        search = _fit(model, recipe, dataset, search=selection is None)
        chosen = selection.chosen if selection is not None else getattr(model, "chosen", {})
        record |= {"search": search, "chosen": chosen}
        best = max((choice["valid_ndcg"] for choice in search), default=-1.0)
        state = State(finished=True, identity=key, best_epoch=0, best=best)
        if world.leads:
            materials.keep(folder)
            checkpoint.save(folder / "best.safetensors", model, None, state)
        state.seconds = time.monotonic() - begin
    else:
        epochs = None if selection is None else selection.epochs
        trainer = build_trainer(recipe, dataset, model, folder, where, world, epochs)
        trainer.resume(key)
        record |= _learn(trainer, materials, finish=finish)
        state = trainer.state
    record |= {
        "seconds": round(state.seconds, 3),
        "epochs": state.epoch,
        "best_epoch": state.best_epoch,
        "improving": improving(state.best_epoch, validated(state.curve)),
        "valid_ndcg": state.best if state.best >= 0 else None,
        "parameters": sum(p.numel() for p in model.parameters()),
        "curve": state.curve,
    }
    if world.leads:
        write_json(folder / "run.json", record)
    return record


def _gather(recipe: Recipe, dataset: Dataset, folder: Path, world: World, selection: Selection | None) -> Materials:
    """What the model needs beside the log. Vectors of texts, and an encoder of them, are made once: other processes read what the
    leader has stored."""
    if not world.leads:
        world.wait()
    materials = gather(recipe, dataset, folder, None if selection is None else selection.run)
    if world.leads:
        world.wait()
        for material in materials.values():
            if material.note:
                note(material.note)
    return materials


def _learn(trainer: Trainer, materials: Materials, *, finish: bool) -> dict[str, Any]:
    """Trains to the end, or ends with the best model so far where `finish`; returns what run.json says of the computation."""
    folder, state = trainer.folder, trainer.state
    before = read_json(folder / "run.json") if state.finished else {}
    if finish and not state.finished:
        if state.best < 0 and (trainer.validation is not None or not state.epoch):
            raise SeqscopeError(f"{folder} has no validated model yet, so there is nothing to finish with")
        best = folder / "best.safetensors"
        if trainer.validation is not None and checkpoint.read_state(best).best_epoch != state.best_epoch:
            raise SeqscopeError(
                f"{folder} was ended between the writing of its best model and of the checkpoint that tells of it. Give the same "
                "command without --finish until it has validated once more."
            )
        state.finished = True
    if trainer.world.leads:
        if not materials.keys().isdisjoint(COPIED):
            trainer.write_curve()  # by it a run is known that has no checkpoint yet
        materials.keep(folder)
    compute = trainer.run().compute
    computed: dict[str, Any] = {}
    if compute:
        computed["device"] = devices.describe(trainer.device, compute["threads"])
        computed["compute"] = compute | {"processor": devices.processor()}
    return computed | {name: before[name] for name in COMPUTED if name in before}


def _lengthen(recipe: Recipe, dataset: Dataset, materials: Materials, folder: Path) -> None:
    """Where `folder` holds the finished run of `recipe` with fewer epochs, it becomes one of `recipe`, as no step of those epochs
    would have been another: an interrupted one, without what was computed of its model, unless patience had run out."""
    paths = [folder / name for name in ("best.safetensors", "checkpoint.safetensors")]
    shorter = _shorter(recipe, folder)
    if shorter is None or not all(path.exists() for path in paths):
        return
    keys = {identity(each, dataset, materials) for each in (shorter, recipe)}
    states = {path: checkpoint.read_state(path) for path in paths}
    if any(state.identity not in keys for state in states.values()):
        return
    last = states[paths[1]]
    last.forget_validation(recipe.training.validate_every)
    over = 0 < recipe.training.patience <= last.worse
    for path, state in states.items():
        checkpoint.hand_on(path, replace(state, identity=identity(recipe, dataset, materials), finished=over))
    if over:
        note(
            f"{folder}: validation had settled within {count(shorter.training.epochs, 'epoch')}, so more change nothing"
        )
        return
    note(f"{folder} was trained for {count(shorter.training.epochs, 'epoch')} and goes on to {recipe.training.epochs}")
    shutil.rmtree(folder / ELSEWHERE, ignore_errors=True)
    for name in (*EVALUATION, COST, "run.json"):
        (folder / name).unlink(missing_ok=True)


def _shorter(recipe: Recipe, folder: Path) -> Recipe | None:
    """`recipe` with the epochs of the finished run in `folder`, where these are fewer; None elsewhere, and where every step would
    be another one with other epochs."""
    before = read_json(folder / "run.json")
    try:
        epochs = int(before["recipe"]["training"]["epochs"])
        shorter = replace(recipe, training=replace(recipe.training, epochs=epochs))
    except (ValueError, KeyError, TypeError):
        return None
    return None if recipe.optimiser.decay in OVER_ALL_EPOCHS or epochs >= recipe.training.epochs else shorter


def begun(
    recipe: Recipe, dataset: Dataset, materials: Materials, folder: Path, selection: Selection | None = None
) -> State:
    """The counters of the training of `recipe` that was begun in `folder`, with fewer epochs perhaps; those of a new one where
    the folder holds none, another one or a damaged one."""
    try:
        state = checkpoint.read_state(folder / "checkpoint.safetensors")
    except OtherRun:
        return State()
    shorter = None if selection is not None else _shorter(recipe, folder)
    keys = [identity(each, dataset, materials, selection) for each in (recipe, shorter) if each is not None]
    return state if state.identity in keys else State()


def training_log(dataset: Dataset) -> tuple[torch.Tensor, torch.Tensor]:
    """What models and objectives learn from: items int64 [events], and offsets int64 [users + 1], where each user's begin."""
    training = dataset.training
    return torch.from_numpy(training.values.astype(np.int64)), torch.from_numpy(training.offsets)


def _fit(model: Any, recipe: Recipe, dataset: Dataset, *, search: bool) -> list[dict[str, Any]]:
    """Fits a model that counts, and says which settings its search tried, with their NDCG@10 on the validation items."""
    log = training_log(dataset)
    try:
        if not (search and getattr(recipe.model, "search", False)):
            model.fit(*log)
            return []
        judge = validation(recipe, dataset, model)
        if judge is None:
            note(f"{recipe.name}: nothing is held out for validation, so its settings are not searched for")
            return list(model.fit(*log))
        if not dataset.info.ordered:  # nor is it searched for how many of the latest items are read: see `for_order`
            model.grid = {setting: values for setting, values in model.grid.items() if setting != "max_length"}
        return list(model.fit(*log, lambda: judge(model)))
    except ValueError as error:
        raise UsageError(f"{recipe.name}: {error}") from None


def read_in_part(dataset: Dataset, longest: int, learns_from_them: bool = False) -> str:
    """How many users have more than the latest `longest` items that a model reads, in a sentence; "" for nobody, or where
    it reads the last item alone. learns_from_them: it sees no others in training, either."""
    lengths = dataset.training.lengths
    longer = int((lengths > longest).sum())
    if longest == 1 or not longer:
        return ""
    return (
        f"{longer:,} of {len(lengths):,} users ({in_percent(longer / len(lengths))}) "
        f"{'has' if longer == 1 else 'have'} more than {longest:,} training events; "
        f"{'in training and ' if learns_from_them else ''}where a list is asked for, the latest {longest:,} are read"
    )


def settled(recipe: Recipe, chosen: Any) -> Recipe:
    """The recipe with the settings that a search chose."""
    return replace(recipe, model=replace(recipe.model, **chosen)) if chosen else recipe


def for_order(recipe: Recipe, dataset: Dataset) -> Recipe:
    """The recipe as it is for the dataset's order: where items are sets without one there are no latest items, so that whole
    histories are read, of `LONGEST` items at most. Raises SeqscopeError where the model needs an order."""
    if dataset.info.ordered:
        return recipe
    if MODELS[recipe.family].reads_order:
        others = ", ".join(name for name, model in MODELS.items() if not model.reads_order)
        raise SeqscopeError(
            f"{recipe.name} learns from the order of a user's items, and in {dataset.path} they are sets without one. "
            f"Models that read no order: {others}."
        )
    histories = dataset.training, dataset.cases("test").history
    read, longest = getattr(recipe.model, "max_length", 0), max(int(each.lengths.max(initial=0)) for each in histories)
    return (
        replace(recipe, model=replace(recipe.model, max_length=min(longest, LONGEST))) if 0 < read < longest else recipe
    )


def build_trainer(
    recipe: Recipe,
    dataset: Dataset,
    model: Recommender,
    folder: Path,
    where: torch.device,
    world: World = ALONE,
    epochs: int | None = None,
) -> Trainer:
    """All that trains `model` from the beginning, on the device `where`; epochs: as `Trainer` has them.

    Raises SeqscopeError where there is nothing to learn.
    """
    items, offsets = (tensor.to(where) for tensor in training_log(dataset))
    model.to(where)
    make = OBJECTIVES[MODELS[recipe.family].objective].make
    assert make is not None
    objective = make(recipe.objective, model, items, offsets, recipe.training.batch_size)
    if not objective.steps:
        raise SeqscopeError(f"{dataset.path}: no user has two training events, so there is nothing to learn from")
    judge = validation(recipe, dataset, model) if objective.validated else None
    return Trainer(
        recipe, model, objective, judge, folder, where, world,
        label=f"{dataset.info.name}/{recipe.name}", epochs=epochs,
    )  # fmt: skip


def open_run(
    folder: Path, dataset: Path | None = None, *, elsewhere: bool = False
) -> tuple[Recommender, Recipe, dict[str, Any], Dataset]:
    """The best model of a finished run (in evaluation mode, on the CPU), its recipe, its record and its dataset.

    elsewhere: `dataset` may be another than the run's, where the model knows items by their words; it then knows those of that
    dataset, without having been trained on them.
    """
    path = folder / "run.json"
    try:
        record = read_record(folder)
        recipe = settled(from_dict(dict(record["recipe"]), str(path)), record.get("chosen"))
        data = Dataset(dataset or dataset_of(folder, record))
    except (FileNotFoundError, NotADirectoryError):
        begun = (folder / "checkpoint.safetensors").exists()
        hint = (
            "its training has not finished; run the same `seqscope train` again"
            if begun
            else "it holds no training"
            if folder.is_dir()
            else "no such folder"
        )
        raise SeqscopeError(f"{folder} is not a finished run: {hint}") from None
    except (ValueError, TypeError, UsageError) as error:  # of the recipe, and of what was chosen
        raise SeqscopeError(f"{path} cannot be used ({error}). Train again with --restart.") from None
    if data.info.fingerprint != record["fingerprint"]:
        if elsewhere and not MODELS[recipe.family].needs_log:
            raise SeqscopeError(
                f"{recipe.name} needs no training: run `seqscope train {recipe.family}` on {data.path} and evaluate that"
            )
        if elsewhere and MODELS[recipe.family].unseen_items:
            model = build_model(recipe, data.num_items, data.num_users, read_elsewhere(recipe, data, folder))
            checkpoint.load(folder / "best.safetensors", model, None, but=model.per_item or None)
            model.read_items()
            return model.eval(), recipe, record, data
        hint = (
            " on it: only models that know items by their words answer for other datasets"
            if elsewhere and dataset
            else ""
        )
        raise SeqscopeError(
            f"{folder} was trained on other data than {data.path} holds now (fingerprints differ). Train again{hint}."
        )
    learnt_from = data.with_validation() if refitted(record) else data
    model = build_model(recipe, data.num_items, data.num_users, of_run(recipe, learnt_from, folder))
    checkpoint.load(folder / "best.safetensors", model, None)
    return model.eval(), recipe, record, data


def _files_of_run(folder: Path) -> list[str]:
    """What `--restart` replaces: the files of a run, and nothing else that people may have at `folder`."""
    names = contents(folder)
    if names and not names & {"run.json", "checkpoint.safetensors", "best.safetensors", CURVE}:
        raise SeqscopeError(f"{folder} is not a run, so --restart does not replace it. Give another --out.")
    return sorted(names & FILES)


def validation(recipe: Recipe, dataset: Dataset, model: Recommender) -> Validation | None:
    """What chooses the checkpoint: the validation items of the recipe's number of users, under the dataset's protocol; None where
    the dataset holds nothing out for it."""
    cases = dataset.cases("valid")
    if not len(cases):
        return None
    negatives = (
        None if recipe.training.valid_protocol == "full" else frozen(dataset, "valid", recipe.training.valid_protocol)
    )
    if len(cases) > recipe.training.valid_users:
        rng = np.random.default_rng(seed_of(recipe.training.seed, "validation"))
        rows = np.sort(rng.choice(len(cases), recipe.training.valid_users, replace=False))
        cases, negatives = cases.take(rows), None if negatives is None else negatives[rows]
    kind = dataset.info.split["kind"]
    personal = model.trained_users and kind != "users" and not recipe.training.valid_fold_in
    by_vectors = with_vectors(model, dataset.training, cases.users) if personal else False
    return Validation(
        cases, negatives, by_vectors, history_excluded(dataset.info.repeats), main(dataset.info.repeats, kind)
    )


def provenance(recipe: dict[str, Any], dataset: Dataset, device: torch.device) -> dict[str, Any]:
    """What run.json says of where a run comes from: recipe, dataset, command, code, machine."""
    return {
        "recipe": recipe,
        "dataset": dataset.info.name,
        "dataset_path": str(dataset.path),
        "fingerprint": dataset.info.fingerprint,
        "command": shlex.join(["seqscope", *sys.argv[1:]]),
        "commit": commit(),
        "device": devices.describe(device),
        "versions": {
            "seqscope": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "started": now(),
    }


def commit() -> str | None:
    """The commit of the code that runs, with "+changes" where files differ from it; None outside a git checkout."""
    root = Path(__file__).resolve().parents[2]
    try:
        head, status = (
            subprocess.run(
                ["git", "-C", str(root), *words], capture_output=True, text=True, timeout=10, check=True
            ).stdout.strip()
            for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "--", "engine"])
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return head + ("+changes" if status else "")
