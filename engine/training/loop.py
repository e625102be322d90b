"""The training loop: epochs of steps, validation, early stopping, checkpoints.

All randomness of a step follows from (seed, epoch, step), so a training that goes on from a checkpoint computes what it would
have computed without the interruption: on a CPU bit for bit.
"""

import contextlib
import dataclasses
import functools
import hashlib
import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from engine.bundle.curve import climb
from engine.console import Progress, note
from engine.errors import OtherRun, SeqscopeError
from engine.evaluation import metrics
from engine.evaluation.ranks import full_ranks, sampled_ranks
from engine.files import write_json
from engine.models import Recommender
from engine.models.layers import dropout_from
from engine.training import checkpoint, compute
from engine.training.checkpoint import State
from engine.training.compute import Compute, Way
from engine.training.distributed import World
from engine.training.objectives.base import Batch, Objective
from engine.training.optimiser import Average, build, learning_rate
from engine.training.recipe import Recipe

CURVE = "curve.json"
DIVERGED = 4.0
"""A mean loss so many times that of the first epoch is not coming back."""
SLIGHT = 0.1
"""The first epoch's loss counts as so much at least: few items are learnt at once, and chance multiplies what is left."""
GRADIENTS = 1 << 30
"""Bytes that gradients of all threads may take, where each has its own."""
MEASURED = 9
"""Batches among which one of typical size is looked for, to measure with."""


def seed_of(*words: object) -> int:
    """A 63-bit seed that depends on every word: streams of different epochs, steps and purposes share nothing."""
    digest = hashlib.sha256("/".join(map(str, words)).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def seed_dropout(seed: int) -> None:
    """Seeds what draws without a generator, on the CPU and on GPUs in use: the numbers of torch.manual_seed.

    That one also notes, for every kind of accelerator that this process never opened, from where it was called: a tenth of a
    millisecond, at each step of a training.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


class Step(nn.Module):
    """A model with its objective, so that one call gives the loss (and gradients may be averaged around it)."""

    def __init__(self, model: Recommender, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, *batch: Tensor) -> Tensor:
        return self.objective.loss(self.model, batch)


class Validation:
    """NDCG@10 on the validation items; cases: engine.data.dataset.Cases; negatives: int32 [cases, m] or None for full ranking,
    of which `exclude_history` leaves the history out; trained_users: as of `full_ranks`."""

    def __init__(
        self,
        cases: Any,
        negatives: Any,
        trained_users: bool | npt.NDArray[np.bool_],
        exclude_history: bool,
        protocol: str = "full",
    ) -> None:
        self.cases, self.negatives, self.trained_users = cases, negatives, trained_users
        self.exclude_history, self.protocol = exclude_history, protocol

    def __call__(self, model: Recommender) -> float:
        model.eval()
        if self.negatives is None:
            ranking = full_ranks(
                model,
                self.cases,
                exclude_history=self.exclude_history,
                trained_users=self.trained_users,
                beam=model.beam,
            )
        else:
            ranking = sampled_ranks(model, self.cases, self.negatives, trained_users=self.trained_users)
        model.train()
        return float(metrics.per_user("NDCG@10", ranking.ranks, self.protocol, self.cases.owner).mean())


class Trainer:
    """One training: `run()` goes from the state in `state` to the end of the recipe. validation: None where nothing is held
    out for it; then the last epoch's model is the result. epochs: stop after so many of the recipe's, whose schedules stay."""

    def __init__(
        self,
        recipe: Recipe,
        model: Recommender,
        objective: Objective,
        validation: Validation | None,
        folder: Path,
        device: torch.device,
        world: World,
        label: str = "",
        epochs: int | None = None,
    ) -> None:
        self.recipe, self.model, self.objective, self.validation = recipe, model, objective, validation
        self.folder, self.device, self.world = folder, device, world
        self.label = label or recipe.name
        self.epochs = recipe.training.epochs if epochs is None else epochs
        self.optimiser = build(recipe.optimiser, model)
        self.average = Average(model, recipe.optimiser.average) if recipe.optimiser.average else None
        step: nn.Module = Step(model, objective)
        if recipe.training.compile:
            # layers of a stack share a program: seconds of compiling, where the whole step took minutes
            stacks = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
            for part in [layer for stack in stacks for layer in stack] or [step]:
                part.compile(dynamic=True)
        self.step = world.wrap(step, device)
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        threads = compute.available(device)
        gradients = threads * sum(parameter.nbytes for parameter in self.parameters)
        alone = device.type == "cpu" and world.size == 1 and not recipe.training.compile
        self.apart = objective.apart and alone and gradients <= GRADIENTS
        self.pool = ThreadPoolExecutor(threads)
        self.typical_targets = objective.typical_targets
        self.state = State()
        self.compute = Compute("float32", threads, threads, "not chosen yet")
        self.progress: Progress | None = None
        self.saved = time.monotonic()
        """When the checkpoint was written."""

    @property
    def checkpoint_path(self) -> Path:
        return self.folder / "checkpoint.safetensors"

    def resume(self, identity: str) -> None:
        """Take up the folder's checkpoint, where there is one. Raises OtherRun where it is that of another training, or where the
        best model that it tells of is gone."""
        if self.checkpoint_path.exists():
            state = checkpoint.check(self.checkpoint_path, identity)
            best = self.folder / "best.safetensors"
            if (state.best >= 0 or state.finished) and not best.exists():
                raise OtherRun(f"{best} is missing, the best model of this training. Start over with --restart.")
            checkpoint.load(self.checkpoint_path, self.model, self.optimiser, self.average)
            self.state = state
        self.state.identity = identity

    def choose_compute(self) -> None:
        """Decide in which precision and on how many threads steps are computed: as the recipe says, or by measuring one.

        A training that goes on keeps its precision on every machine, and its threads where there are as many as before.
        """
        setting, state = self.recipe.training.precision, self.state
        before = Compute(**state.compute) if state.compute else None
        threads = compute.available(self.device)
        if before and before.available == threads and (self.apart or not before.apart):
            self.compute = before
        elif setting != "auto":
            self.compute = Compute(setting, threads, threads, "the recipe says so")
        else:
            choices = compute.supported(self.device)
            if before:
                choices = [before.precision]
            elif state.total_steps:  # begun before this was measured: bfloat16 wherever there were instructions for it
                choices = choices[-1:]
            self.compute = self._measure(choices)
        state.compute = dataclasses.asdict(self.compute)

    def _measure(self, precisions: list[str]) -> Compute:
        """The fastest way to compute a step with a typical number of targets. Neither model nor optimiser is changed."""
        generator = torch.Generator().manual_seed(0)
        plan = list(self.objective.batches(generator))
        spread = {len(plan) * part // MEASURED for part in range(MEASURED)}
        batches = [
            self.objective.draw(plan[number], torch.Generator(self.device).manual_seed(0)) for number in sorted(spread)
        ]
        typical = self.typical_targets
        batch = min(batches, key=lambda some: abs(int(self.objective.targets(some).sum()) - typical))
        batch = self.world.rows(batch) if len(batch[0]) >= self.world.size else batch

        def step(way: Way) -> None:
            if way.apart:
                self.gradients_apart(batch, way, 0)
                return
            with self._autocast(way.precision):
                loss = self.objective.loss(self.model, batch)
            # not backward(): it would leave gradients, and have those of other processes waited for
            torch.autograd.grad(loss, self.parameters, allow_unused=True)
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)

        def clock() -> float:  # the leader's, so that all processes decide alike
            return self.world.broadcast([time.perf_counter()], self.device)[0]

        self.model.train()
        return compute.fastest(precisions, self.device, step, clock, self.apart)

    def _autocast(self, name: str) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=name == "bfloat16")

    def run(self) -> State:
        epochs, state = self.epochs, self.state
        if not state.finished:
            self.objective.begin_training(self.model)
            self.choose_compute()
            if self.world.leads:
                note(f"{self.label} {self.compute}")
        self.model.train()
        progress = self.progress = Progress(epochs, self.label, title="") if self.world.leads else None
        if progress:
            progress.started -= state.seconds  # what was done before an interruption took its time too
        validates_first = self.objective.begins_with_validation and self.validation is not None
        if validates_first and not state.total_steps and state.best < 0:
            self._validate()
        while state.epoch < epochs and not state.finished:
            rate = self._epoch()
            if self.world.leads and progress:
                entry = state.curve[-1]
                ndcg = brief = ""
                if state.best >= 0:
                    ndcg = f" NDCG@10 {state.best:.4f} (epoch {state.best_epoch})"
                    brief = f", best NDCG@10 {state.best:.4f} in epoch {state.best_epoch}"
                words = f"epoch {state.epoch}/{epochs} loss {entry['loss']:.4f}{ndcg} {rate:,.0f} sequences/s, at most"
                done = epochs if state.finished else state.epoch
                progress.update(done, words, f"epoch {state.epoch} of {epochs}{brief}")
        state.finished = True
        if self.validation is None:
            self._keep()
        self._save()
        return state

    def _epoch(self) -> float:
        """One epoch from wherever the state says; returns examples per second."""
        training, state, world = self.recipe.training, self.state, self.world
        plan = list(self.objective.batches(torch.Generator().manual_seed(seed_of(training.seed, state.epoch, "order"))))
        began = time.monotonic()
        done_before, examples = state.seconds, 0
        if not state.step:
            self.objective.begin_epoch(self.model)
        loss_sum = torch.tensor(state.loss_sum, dtype=torch.float64, device=self.device)
        for number in range(state.step, len(plan)):
            loss, targets = self._step(plan[number], len(plan))
            loss_sum += loss
            state.target_count += targets
            examples += len(plan[number])
            state.step, state.total_steps = number + 1, state.total_steps + 1
            now = time.monotonic()
            state.seconds = done_before + now - began
            if self.progress:
                self.progress.update(state.epoch + state.step / (len(plan) + 1))  # validation is to come
            if now - self.saved > training.checkpoint_seconds:
                state.loss_sum = float(loss_sum)
                self._check_finite(state.loss_sum, state.epoch + 1)
                self._save()
        train_seconds = time.monotonic() - began
        mean_loss = float(loss_sum) / max(state.target_count, 1)
        state.epoch, state.step, state.loss_sum, state.target_count = state.epoch + 1, 0, 0.0, 0
        self._check(mean_loss)
        self.objective.end_epoch(self.model)
        score = self._validate() if self._validates(state.epoch) else None
        state.seconds = done_before + time.monotonic() - began
        state.curve.append(
            {
                "epoch": state.epoch,
                "step": state.total_steps,
                "seconds": round(state.seconds, 3),
                "loss": mean_loss,
                "valid_ndcg": score,
            }
        )
        # on a GPU an epoch may take less than writing a checkpoint does; that of the best model agrees with what is kept of it
        best = score is not None and state.best_epoch == state.epoch
        if best or time.monotonic() - self.saved > training.checkpoint_seconds:
            self._save()
        elif world.leads:
            self.write_curve()
        return examples / max(train_seconds, 1e-9)

    def _step(self, examples: Tensor, steps: int) -> tuple[Tensor, int]:
        with compute.on_threads(self.compute.way.sharing, self.device):
            return self._compute_step(examples, steps)

    def _compute_step(self, examples: Tensor, steps: int) -> tuple[Tensor, int]:
        """One optimiser step; returns the loss summed over targets (float64 scalar on the device), and how many these are."""
        training, state, world, optimiser = self.recipe.training, self.state, self.world, self.optimiser
        place = (training.seed, state.epoch, state.step)
        generator = torch.Generator(self.device).manual_seed(seed_of(*place, "draw"))
        self.objective.begin_step(state.total_steps)
        batch = self.objective.draw(examples, generator)
        targets = int(self.objective.targets(batch).sum())
        whole, batch = batch, world.rows(batch)
        local_targets = int(self.objective.targets(batch).sum()) if world.size > 1 else targets
        if not len(batch[0]):  # fewer examples than processes: this one computes anything, which weighs 0
            batch = tuple(tensor[:1] for tensor in whole)
        rate = learning_rate(self.recipe.optimiser, state.total_steps, steps * training.epochs)
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.zero_grad(set_to_none=True)
        # Batches hold sequences of like length, so some have ten times the targets of others. Each target weighs the same, as
        # in batches drawn at random: the mean over the batch is scaled by its size. Processes hold shares of a batch, and their
        # gradients are averaged.
        if self.compute.apart:
            loss, gradients = self.gradients_apart(batch, self.compute.way, *place)
            for parameter, gradient in zip(self.parameters, gradients, strict=True):
                parameter.grad = gradient
        else:
            seed_dropout(seed_of(*place, "dropout", world.rank))
            with self._autocast(self.compute.precision):
                loss = self.step(*batch)
            (loss * (local_targets * world.size / self.typical_targets)).backward()
        if self.recipe.optimiser.clip_norm:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.optimiser.clip_norm)
        optimiser.step()
        self.model.constrain()
        if self.average is not None:
            self.average.update(state.total_steps)
        return world.sum(loss.detach().double() * local_targets), targets

    def gradients_apart(self, batch: Batch, way: Way, *place: int) -> tuple[Tensor, list[Tensor | None]]:
        """The mean loss of the batch, a scalar, and the gradient of each of `parameters`, weighed as in `_compute_step`; None
        where one is not used. place: seed, epoch and step; what dropout draws depends on them and on the part.

        Each thread computes examples of its own: where operations are small, threads that share in each wait for each other.
        """
        count, targets = min(way.threads, len(batch[0])), int(self.objective.targets(batch).sum())

        def compute_part(number: int) -> tuple[Tensor, tuple[Tensor | None, ...]]:
            part = World(number, count).rows(batch)
            share = int(self.objective.targets(part).sum())
            if not share:
                return torch.zeros(()), (None,) * len(self.parameters)
            generator = torch.Generator().manual_seed(seed_of(*place, "dropout", number))
            with compute.on_threads(1, self.device), dropout_from(generator):
                with self._autocast(way.precision):
                    loss = self.objective.loss(self.model, part)
                weighed = loss * (share / self.typical_targets)
                return loss.detach() * (share / targets), torch.autograd.grad(
                    weighed, self.parameters, allow_unused=True
                )

        losses, gradients = zip(*self.pool.map(compute_part, range(count)), strict=True)
        totals: list[Tensor | None] = []
        for parts in zip(*gradients, strict=True):
            used = [part for part in parts if part is not None]
            totals.append(functools.reduce(torch.add, used) if used else None)
        return torch.stack(losses).sum(), totals

    def _check_finite(self, loss: float, epoch: int) -> None:
        if not math.isfinite(loss):
            raise self._failed(epoch, f"the loss is {loss}", "a smaller optimiser.lr, or optimiser.clip_norm=5")

    def _check(self, loss: float) -> None:
        state = self.state
        self._check_finite(loss, state.epoch)
        if state.first_loss is None:
            state.first_loss = loss
        elif loss > DIVERGED * max(state.first_loss, SLIGHT):
            grew = f"the loss grew from {state.first_loss:.4f} to {loss:.4f}, training has diverged"
            raise self._failed(state.epoch, grew, "a smaller optimiser.lr")

    def _failed(self, epoch: int, how: str, remedy: str) -> SeqscopeError:
        state = self.state
        best = f" The best model so far (epoch {state.best_epoch}) is kept." if state.best >= 0 else ""
        return SeqscopeError(f"{self.recipe.name}, epoch {epoch}: {how}.{best} Try {remedy}.")

    def _validates(self, epoch: int) -> bool:
        training = self.recipe.training
        return self.validation is not None and (epoch % training.validate_every == 0 or epoch == training.epochs)

    def _result(self) -> contextlib.AbstractContextManager[Any]:
        """While it lasts, the model is what training has come to: the average of its steps, where one is kept."""
        return self.average.in_the_model() if self.average is not None else contextlib.nullcontext()

    def _keep(self) -> None:
        """The model of this epoch as the training's result: the best one, or where nothing validates the last one."""
        self.state.best_epoch = self.state.epoch
        if self.world.leads:
            with self._result():
                checkpoint.save(self.folder / "best.safetensors", self.model, None, self.state)

    def _validate(self) -> float:
        state, training = self.state, self.recipe.training
        # compiled is what training computes alone: ranking meets too many shapes
        with self._result(), torch.compiler.set_stance("force_eager" if training.compile else "default"):
            score = self.validation(self.model) if self.validation is not None and self.world.leads else 0.0
        score = self.world.broadcast([score], self.device)[0]
        if score > state.best:
            state.best, state.worse = score, 0
            self._keep()
        else:
            state.worse = state.worse + 1 if state.total_steps > climb(vars(self.recipe.optimiser)) else 0
            state.finished = bool(training.patience) and state.worse >= training.patience
        return score

    def _save(self) -> None:
        if self.world.leads:
            checkpoint.save(self.checkpoint_path, self.model, self.optimiser, self.state, self.average)
            self.write_curve()
        self.saved = time.monotonic()

    def write_curve(self) -> None:
        """For those who look on."""
        write_json(self.folder / CURVE, self.state.curve)
