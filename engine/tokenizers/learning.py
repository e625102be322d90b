"""The training loop of tokenizers: epochs over the catalogue, checkpoints, and a stop with a message at a loss that is none.

All randomness of an epoch follows from (seed, epoch), so that a training that goes on from a checkpoint computes what it would
have computed without the interruption: on a CPU bit for bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from engine.console import Progress
from engine.errors import SeqscopeError
from engine.tokenizers.base import Learning
from engine.training import checkpoint
from engine.training.checkpoint import State
from engine.training.loop import seed_of
from engine.training.optimiser import build, learning_rate

CHECKPOINT = "checkpoint.safetensors"


def learn(
    network: nn.Module,
    items: int,
    learning: Learning,
    *,
    prepare: Callable[[torch.Generator], None],
    begin: Callable[[torch.Generator], None],
    loss: Callable[[Tensor, torch.Generator], dict[str, Tensor]],
    end: Callable[[torch.optim.Optimizer, torch.Generator], None],
) -> State:
    """Train `network` for the epochs of the recipe, or go on where an interrupted training of the same stopped.

    prepare: once, before the first epoch; begin and end: around every epoch; loss: the terms of the loss for some items
    (int64 [batch]), of which "loss" is minimised and all are kept in the curve as means over the epoch.
    """
    training, state = learning.training, State()
    optimiser = build(learning.optimiser, network)
    path = None if learning.folder is None else learning.folder / CHECKPOINT
    if path is not None and path.exists():
        state = checkpoint.check(path, learning.identity)
        checkpoint.load(path, network, optimiser)
    else:
        prepare(_generator(training.seed, "prepare"))
        state.identity = learning.identity
    progress = Progress(training.epochs, learning.label)
    progress.started -= state.seconds
    steps = math.ceil(items / training.batch_size)
    saved = time.monotonic()
    while state.epoch < training.epochs:
        began = time.monotonic()
        # the order of items has draws of its own, so that runs with and without a term of the loss can be compared
        generator = _generator(training.seed, state.epoch, "draws")
        torch.manual_seed(seed_of(training.seed, state.epoch, "dropout"))
        begin(generator)
        network.train()
        order = torch.randperm(items, generator=_generator(training.seed, state.epoch, "order"))
        sums: dict[str, Tensor] = {}
        for rows in order.split(training.batch_size):
            for group in optimiser.param_groups:
                group["lr"] = learning_rate(learning.optimiser, state.total_steps, steps * training.epochs)
            terms = loss(rows, generator)
            optimiser.zero_grad(set_to_none=True)
            terms["loss"].backward()
            if learning.optimiser.clip_norm:
                nn.utils.clip_grad_norm_(network.parameters(), learning.optimiser.clip_norm)
            optimiser.step()
            state.total_steps += 1
            for name, term in terms.items():
                sums[name] = sums.get(name, torch.zeros(())) + term.detach().double() * len(rows)
        means = {name: float(total) / items for name, total in sums.items()}
        if not math.isfinite(means["loss"]):
            raise SeqscopeError(
                f"{learning.label}, epoch {state.epoch + 1}: the loss is {means['loss']}. "
                "Try a smaller optimiser.lr, or optimiser.clip_norm=5."
            )
        network.eval()
        end(optimiser, generator)
        state.epoch += 1
        state.seconds += time.monotonic() - began
        state.finished = state.epoch == training.epochs
        rounded = {name: float(f"{mean:.6g}") for name, mean in means.items()}
        state.curve.append({"epoch": state.epoch, "seconds": round(state.seconds, 3), **rounded})
        if path is not None and (state.finished or time.monotonic() - saved >= training.checkpoint_seconds):
            checkpoint.save(path, network, optimiser, state)
            saved = time.monotonic()
        progress.update(state.epoch, f"epoch {state.epoch}/{training.epochs} loss {means['loss']:.4f}")
    return state


def _generator(*words: object) -> torch.Generator:
    return torch.Generator().manual_seed(seed_of("tokenizer", *words))
