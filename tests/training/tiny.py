"""Small logs with a known answer, and one small run per model, made once for all tests of training, evaluation and export, in
whichever of their processes."""

import contextlib
import fcntl
import functools
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file

from engine.data.dataset import Dataset
from engine.data.split import SplitOptions
from engine.data.write import write_dataset
from engine.errors import SeqscopeError
from engine.evaluation.evaluate import evaluate
from engine.registry import MODELS
from engine.text.scratch import ScratchConfig, scratch
from engine.training import checkpoint
from engine.training.compute import Way
from engine.training.loop import Trainer
from engine.training.materials import gather
from engine.training.recipe import Recipe, from_dict
from engine.training.run import build_model, build_trainer, open_run, train

# Enough to tell a model that learns from one that does not; float32, so that every machine computes the same.
BLOCKS = {"dim": 16, "blocks": 1, "dropout": 0.1, "max_length": 8}
WINDOW = {"dim": 16, "window": 3, "fold_in": 8}
FOLDED = {"dim": 16, "max_length": 30}
WHOLE, SHARED = {"loss": "cross-entropy"}, {"loss": "sampled-softmax", "shared_negatives": 32}
ONE = {"targets": 1, "negatives": 3, "l2": 0.0}
SLOW, FAST = {"lr": 0.01}, {"lr": 0.02}
MATCHED = {"lr": 0.02, "beta2": 0.999}
RECURRENT = {"dim": 16, "hidden": 16, "input_dropout": 0.1, "dropout": 0.1, "max_length": 8, "variant": "code"}
BOTH_SIDES = {"dim": 16, "layers": 1, "heads": 2, "dropout": 0.1, "attention_dropout": 0.1, "max_length": 9}
TEXT = {"dim": 16, "layers": 1, "heads": 2, "max_length": 6, "max_tokens": 20, "window": 6, "vocabulary": 400}
BATCHES = {"loss": "bpr-max", "batch_negatives": True, "shared_negatives": 16, "score_penalty": 0.1}
TABLES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "sasrec": (BLOCKS | {"init": "normal"}, WHOLE, SLOW),
    "gru4rec": ({"dim": 16, "max_length": 8}, BATCHES, FAST),
    "narm": (RECURRENT, WHOLE, FAST),
    "esasrec": (BLOCKS, SHARED, SLOW),
    "hstu": (BLOCKS, SHARED, SLOW),
    "bert4rec": (BOTH_SIDES, {"mask_share": 0.3, "last_only": 0.3},
                 {"name": "adamw", "lr": 0.01, "warmup_steps": 10, "clip_norm": 5.0}),
    "attrec": (WINDOW | {"omega": 0.3}, {"targets": 2, "negatives": 4, "l2": 0.0}, {"name": "adagrad", "lr": 0.1}),
    "caser": (WINDOW | {"horizontal": 8, "vertical": 2, "dropout": 0.1}, ONE | {"loss": "bce"}, FAST),
    "hgn": (WINDOW, ONE | {"loss": "bpr"}, FAST),
    "lightgcn": (FOLDED | {"layers": 2}, {}, MATCHED),
    "ngcf": (FOLDED | {"layers": 2}, {}, MATCHED),
    "bpr-mf": (FOLDED, {"l2": 0.01}, MATCHED),
    "neumf": (FOLDED | {"dim": 8, "layers": 2, "init_std": 0.1}, {"loss": "bce", "negatives": 4, "l2": 0.0},
              MATCHED | {"lr": 0.01}),
    "fmc": ({"dim": 16}, {"l2": 0.01}, MATCHED),
    "fpmc": (FOLDED, {"l2": 0.01}, MATCHED),
    "prme": (FOLDED, {"l2": 0.01}, MATCHED),
    "transrec": ({"dim": 16}, {"l2": 0.001}, MATCHED),
    "cml": (FOLDED, {}, MATCHED),
    "mult-vae": (FOLDED | {"hidden": 32, "dim": 8}, {"beta": 0.2, "anneal_steps": 100}, MATCHED | {"lr": 0.01}),
    "mult-dae": (FOLDED, {}, MATCHED | {"lr": 0.01}),
    "unisrec": (BLOCKS | {"experts": 2, "adaptor_dropout": 0.0}, WHOLE, SLOW),
    "fdsa": (BLOCKS, WHOLE, SLOW),
    "zesrec": ({"dim": 16, "dropout": 0.0, "max_length": 8, "offset_precision": 1.0}, WHOLE, FAST),
    "s3rec": (BLOCKS, WHOLE, SLOW),
    "recformer": (TEXT, {"per_user": 3}, {"name": "adamw", "lr": 0.01}),
}  # fmt: skip
"""Of each model that learns: model, objective, optimiser."""
RECIPES: dict[str, dict[str, Any]] = {
    name: {"model": model, "objective": objective, "optimiser": optimiser}
    for name, (model, objective, optimiser) in TABLES.items()
}
TRAINING = {"epochs": 3, "batch_size": 32, "validate_every": 1, "patience": 0, "precision": "float32"}


def recipe(name: str, **tables: dict[str, Any]) -> Recipe:
    """The small recipe of a model, with some entries changed: recipe("sasrec", training={"epochs": 1})."""
    raw = {table: dict(entries) for table, entries in RECIPES.get(name, {}).items()}
    if "vectors" in MODELS[name].needs:
        raw["model"] = raw.get("model", {}) | {"encoder": text_encoder()}
    if name in RECIPES:
        raw["training"] = TRAINING | raw.get("training", {})
    for table, entries in tables.items():
        raw[table] = raw.get(table, {}) | entries
    return from_dict({"family": name, "name": name, **raw}, name)


@functools.cache
def text_encoder() -> str:
    """The folder of a text encoder of next to no size, the same for all processes of all tests."""
    said = [[("title", f"Item {number} of {what}")] for number, what in enumerate(("gold", "tin", "wood", "은"))]
    folder = Path(tempfile.gettempdir()) / f"seqscope-tests-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    config = ScratchConfig(vocabulary=300, dim=16, layers=1, heads=2, steps=2)
    while True:
        try:
            scratch(said, folder, config)
            break
        except SeqscopeError as error:  # another process is making it
            assert "another process" in str(error), error
            time.sleep(0.1)
    (found,) = (path.parent for path in folder.glob("scratch-*/scratch.json"))
    return str(found)


def write_log(
    folder: Path,
    sequences: Sequence[Sequence[int]],
    items: int,
    name: str = "tiny",
    titles: Sequence[str] | None = None,
    repeats: Literal["count", "first"] | None = None,
    split: SplitOptions = SplitOptions(),  # noqa: B008 (frozen)
    time_unit: str = "order",
    times: Sequence[Sequence[int]] = (),
) -> Dataset:
    """A dataset with these sequences, one per person; where there are times, `times`, or else one second after the other."""
    titles = titles or [f"Item {number}" for number in range(items)]
    seconds = None if time_unit in ("order", "none") else np.arange(sum(map(len, sequences)))
    if times:
        seconds = np.concatenate([np.asarray(t, np.int64) for t in times])
    write_dataset(
        folder, name=name, title="Tiny", source="Made up for tests.", licence="None.", simulated=True,
        items=pa.table({"item_id": [f"i{number}" for number in range(items)], "title": titles}),
        users=[f"u{number}" for number in range(len(sequences))],
        user=np.repeat(np.arange(len(sequences)), [len(s) for s in sequences]),
        item=np.concatenate([np.asarray(s, np.int64) for s in sequences]),
        timestamp=seconds, time_unit=time_unit, repeats=repeats, split=split,
    )  # fmt: skip
    return Dataset(folder)


def flat(sequences: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """A training log as models and objectives take it: all items, and where each sequence begins and the last one ends."""
    offsets = np.cumsum([0, *map(len, sequences)])
    items = torch.tensor([item for sequence in sequences for item in sequence], dtype=torch.int64)
    return items, torch.from_numpy(offsets)


def cycles(people: int = 300, items: int = 60, seed: int = 0) -> list[list[int]]:
    """Everybody goes round the same circle of items: after i comes i + 1, always."""
    rng = np.random.default_rng(seed)
    starts, lengths = rng.integers(0, items, people), rng.integers(6, 14, people)
    return [((start + np.arange(length)) % items).tolist() for start, length in zip(starts, lengths, strict=True)]


def clusters(people: int = 300, items: int = 60, groups: int = 6, seed: int = 0) -> list[list[int]]:
    """Everybody takes different items of one group, in any order: what comes next is one of the few that are left."""
    rng = np.random.default_rng(seed)
    size = items // groups
    return [
        (group * size + rng.permutation(size)[: rng.integers(6, size)]).tolist()
        for group in rng.integers(0, groups, people)
    ]


def noise(people: int = 300, items: int = 60, seed: int = 0) -> list[list[int]]:
    """Some items are taken more often than others, and nothing else can be known."""
    rng = np.random.default_rng(seed)
    weights = 1 / (5 + np.arange(items))
    weights /= weights.sum()
    return [rng.choice(items, rng.integers(6, 14), replace=False, p=weights).tolist() for _ in range(people)]


def mixed(people: int = 80, items: int = 150, seed: int = 4) -> list[list[int]]:
    """Histories of 1 to 22 items, some taken twice; every item is somebody's."""
    rng = np.random.default_rng(seed)
    sequences = [rng.integers(0, items, rng.integers(1, 23)).tolist() for _ in range(people)]
    return [*sequences, *np.array_split(rng.permutation(items), 6)]


@contextlib.contextmanager
def once(folder: Path) -> Iterator[bool]:
    """Whether the block is to make `folder`: the first process that comes does, the others wait until it is whole."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = folder.parent / f".{folder.name}.made"
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of one that failed
        yield not made.exists()
        made.touch()


LONG = (77, 140)
"""Items of more words than the small Recformer reads."""


@functools.cache
def tiny_dataset(base: Path) -> Dataset:
    """The dataset of the small runs: 86 people, 150 items, sequences of 1 to 25. Item 9 has a word in another script."""
    folder = base / "data" / "tiny"
    with once(folder) as first:
        if first:
            titles = [f"Item {number}" + " item" * 20 * (number in LONG) for number in range(150)]
            titles[9] += " 은"
            write_log(folder, mixed(), 150, titles=titles, time_unit="second")
    return Dataset(folder)


@functools.cache
def tiny_run(base: Path, name: str) -> Path:
    """A trained and evaluated run of the model `name`; no test may change it."""
    dataset = tiny_dataset(base)
    folder = base / "runs" / name
    with once(folder) as first:
        if first:
            train(recipe(name), dataset, folder, device="cpu")
            model, *_ = open_run(folder)
            evaluate(model, dataset, folder, protocols=["u100", "p100"])
    return folder


def same(one: Path, other: Path) -> bool:
    """Whether two files of tensors are equal to the last bit."""
    a, b = load_file(one), load_file(other)
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


@contextlib.contextmanager
def stopped(when: Callable[[Trainer], bool]) -> Iterator[None]:
    """The training within is interrupted before the first step at which `when` is true."""
    compute_step = Trainer._compute_step

    def step(trainer: Trainer, *given: Any) -> Any:
        if when(trainer):
            raise KeyboardInterrupt
        return compute_step(trainer, *given)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Trainer, "_compute_step", step)
        yield


def trainer(settings: Recipe, data: Dataset, folder: Path) -> Trainer:
    folder.mkdir(parents=True, exist_ok=True)
    model = build_model(settings, data.num_items, data.num_users, gather(settings, data, folder))
    return build_trainer(settings, data, model, folder, torch.device("cpu"))


def check_apart(training: Trainer) -> None:
    """Two threads, each with a part of a batch, have its loss and gradients; what they draw depends on the step alone."""
    assert training.apart
    objective, model, way = training.objective, training.model, Way("float32", 2, apart=True)
    batch = objective.draw(torch.arange(13), torch.Generator().manual_seed(0))
    model.eval()  # without dropout
    loss, gradients = training.gradients_apart(batch, way, 0)
    whole = objective.loss(model, batch)
    weight = int(objective.targets(batch).sum()) / training.typical_targets
    expected = list(torch.autograd.grad(whole * weight, training.parameters, allow_unused=True))
    torch.testing.assert_close((loss, gradients), (whole.detach(), expected), atol=1e-6, rtol=1e-4)
    model.train()
    first, again, other = (training.gradients_apart(batch, way, step)[1] for step in (1, 1, 2))
    torch.testing.assert_close(first, again, atol=0, rtol=0)
    assert any(not torch.equal(a, b) for a, b in zip(first, other, strict=True) if a is not None and b is not None)


def interrupted(settings: Recipe, data: Dataset, folder: Path, after: int, **more: Any) -> None:
    """Trains, and is interrupted after so many epochs."""
    save = checkpoint.save

    def stop(path: Path, model: Any, optimiser: Any, state: checkpoint.State, average: Any = None) -> None:
        save(path, model, optimiser, state, average)
        if path.name == "checkpoint.safetensors" and state.epoch == after:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        # a checkpoint after every step
        patch.setattr(Trainer, "saved", property(lambda self: -math.inf, lambda self, when: None), raising=False)
        patch.setattr(checkpoint, "save", stop)
        train(settings, data, folder, device="cpu", **more)
