"""What a training would take on a GPU that is not there: computed, not measured.

    python -m benchmarks.gpu_times data/beauty tiger letter-tiger [--tflops 989 --share 0.3 --launch 8]

A step is carried out on this machine with few examples, and what it asks of a processor is counted: products and bytes read and
written (both grow with the batch), and operators (they do not). A GPU takes the longer of two times: that of the products and the
bytes, at a share of what its data sheet promises, and that of starting the operators one after the other, which is what small
models wait for. Validation is counted alike. `--share` and `--launch` are assumptions, and so the result is one; `seqscope train
--estimate` on that GPU measures.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from engine.data.dataset import Dataset
from engine.evaluation.ranks import full_ranks
from engine.generation import Generator
from engine.models.graph import GraphRecommender
from engine.registry import MODELS
from engine.training.materials import gather
from engine.training.recipe import load
from engine.training.run import build_model, build_trainer

EXAMPLES, STEPS = 16, 4
"""Examples of a step that is counted, and such steps: batches hold sequences of like length, so steps differ."""
ASKED = 16
"""People who are ranked."""
TOGETHER = 256
"""People whom a GPU ranks together."""


class Work(NamedTuple):
    flops: float
    bytes: float
    operators: int

    def times(self, factor: float, operators: float = 1.0) -> Work:
        return Work(self.flops * factor, self.bytes * factor, math.ceil(self.operators * operators))


class Gpu(NamedTuple):
    flops: float
    """A second."""
    bytes: float
    """A second."""
    launch: float
    """Seconds."""

    def seconds(self, work: Work) -> float:
        return max(work.flops / self.flops + work.bytes / self.bytes, work.operators * self.launch)


class _Operators(TorchDispatchMode):
    """Counts what a GPU would have to start: views cost nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.bytes = 0, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if not func.is_view:
            self.count += 1
            tensors = [one for one in tree_leaves((args, kwargs, found)) if isinstance(one, torch.Tensor)]
            self.bytes += sum(one.numel() * one.element_size() for one in tensors)
        return found


def work(what: Callable[[], object]) -> Work:
    with FlopCounterMode(display=False) as flops:
        what()
    with _Operators() as operators:
        what()
    return Work(float(flops.get_total_flops()), float(operators.bytes), operators.count)


def count(name: str, settings: list[str], dataset: Dataset, runs: Path) -> tuple[int, int, Work, Work]:
    """(epochs at most, steps of one, a step, a validation) of a recipe in full size."""
    settings = [*settings, "training.precision=bfloat16"]  # what a GPU is fastest in
    recipe = load(name.rpartition("/")[2], dataset.info.name, name if "/" in name else None, settings)
    size = recipe.training.batch_size
    # layers over a graph are computed once a step, whatever the batch
    few = size if issubclass(MODELS[recipe.family], GraphRecommender) else min(EXAMPLES, size)
    small = dataclasses.replace(recipe, training=dataclasses.replace(recipe.training, batch_size=few))
    model = build_model(small, dataset.num_items, dataset.num_users, gather(small, dataset, runs / recipe.name))
    with tempfile.TemporaryDirectory(prefix="seqscope-gpu-") as folder:
        trainer = build_trainer(small, dataset, model, Path(folder), torch.device("cpu"))
        trainer.choose_compute()
        model.train()
        trainer.objective.begin_epoch(model)
        plan = list(trainer.objective.batches(torch.Generator().manual_seed(0)))
        some_steps = [plan[place] for place in np.linspace(0, len(plan) - 1, min(STEPS, len(plan))).astype(int)]
        step = work(lambda: [trainer._step(examples, len(plan)) for examples in some_steps])
        if trainer.validation is None:
            cases = dataset.cases("test").take(np.arange(0))
        else:
            cases = trainer.validation.cases
        some = cases.take(np.linspace(0, len(cases) - 1, min(ASKED, len(cases))).astype(int))
        width = model.beam if isinstance(model, Generator) and not model.walks else None
        model.eval()
        ranking = work(lambda: full_ranks(model, some, beam=width)) if len(some) else Work(0.0, 0.0, 0)
    return (
        recipe.training.epochs,
        math.ceil(len(plan) * few / size),
        step.times(size / few / len(some_steps), 1 / len(some_steps)),
        ranking.times(len(cases) / max(1, len(some)), math.ceil(len(cases) / TOGETHER)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("recipes", nargs="+", metavar="RECIPE", help="name, or folder/name of engine/recipes")
    parser.add_argument("--set", action="append", default=[], metavar="TABLE.KEY=VALUE", help="of every recipe")
    parser.add_argument(
        "--tflops", type=float, default=989.0, help="of dense bfloat16 products (H200's data sheet: 989)"
    )
    parser.add_argument("--terabytes", type=float, default=4.8, help="of memory read or written a second (H200: 4.8)")
    parser.add_argument("--share", type=float, default=0.3, help="of both that is reached")
    parser.add_argument("--launch", type=float, default=20.0, help="microseconds to start an operator (an H200: 20)")
    args = parser.parse_args()
    dataset = Dataset(args.dataset)
    gpu = Gpu(args.tflops * 1e12 * args.share, args.terabytes * 1e12 * args.share, args.launch * 1e-6)
    print(
        "| recipe | epochs at most | steps of one | GFLOP of a step | GB | operators | an epoch | all, with validation |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in args.recipes:
        recipe = load(name.rpartition("/")[2], dataset.info.name, name if "/" in name else None, args.set)
        epochs, steps, step, ranking = count(name, args.set, dataset, Path("runs") / dataset.info.name)
        epoch = steps * gpu.seconds(step)
        whole = epochs * epoch + epochs // recipe.training.validate_every * gpu.seconds(ranking)
        print(
            f"| {name} | {epochs} | {steps:,} | {step.flops / 1e9:,.1f} | {step.bytes / 1e9:,.1f} | {step.operators:,} "
            f"| {epoch:,.1f} s | {whole / 60:,.1f} min |",
            flush=True,
        )


if __name__ == "__main__":
    main()
