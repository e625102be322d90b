"""Everything a training needs to go on bit for bit, in one safetensors file that is replaced as a whole.

Tensors: ``model.<name>``, ``optimiser.<parameter>.<state>`` and ``average.<name>``; the counters are JSON in the file's metadata.
"""

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from engine.errors import OtherRun, first_line
from engine.files import expect_permitted, replacing
from engine.training.optimiser import Average


@dataclass
class State:
    """Counters of a training in progress."""

    epoch: int = 0
    """Epochs completed."""
    step: int = 0
    """Steps completed in the epoch under way."""
    total_steps: int = 0
    loss_sum: float = 0.0
    """Loss times targets, over the steps of the epoch under way."""
    target_count: int = 0
    first_loss: float | None = None
    """Mean loss of the first epoch, against which divergence is judged."""
    best: float = -1.0
    """Best validation NDCG@10 so far."""
    best_epoch: int = 0
    worse: int = 0
    """Validations in a row without a better one, after the warm-up."""
    seconds: float = 0.0
    """Training and validation time, summed over interruptions."""
    curve: list[dict[str, Any]] = field(default_factory=list)
    """One entry per epoch: epoch, step, seconds, loss, valid_ndcg (None between validations)."""
    finished: bool = False
    compute: dict[str, Any] = field(default_factory=dict)
    """An engine.training.compute.Compute; empty before the first step, and in a checkpoint of before there was one."""
    identity: str = ""
    """Digest of recipe and dataset: a checkpoint continues nothing else."""

    def forget_validation(self, every: int) -> None:
        """As if the last epoch had not been validated for being the last one, unless its model is the best: that before it is
        not there any more."""
        if self.epoch % every and self.curve[-1]["valid_ndcg"] is not None and self.best_epoch < self.epoch:
            self.curve[-1]["valid_ndcg"] = None
            self.worse = max(self.worse - 1, 0)


def save(
    path: Path,
    model: nn.Module,
    optimiser: torch.optim.Optimizer | None,
    state: State,
    average: Average | None = None,
) -> None:
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    if average is not None:
        tensors |= {f"average.{name}": tensor for name, tensor in average.parameters.items()}
    if optimiser is not None:
        for number, entries in optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{number}.{key}": value for key, value in entries.items()}
    _write(path, {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}, state)


def _write(path: Path, tensors: dict[str, Tensor], state: State) -> None:
    with replacing(path) as staged:
        save_file(tensors, staged, metadata={"state": json.dumps(dataclasses.asdict(state))})


def read_state(path: Path) -> State:
    """The counters of a checkpoint, without its tensors."""
    try:
        # as "pt" the file would be opened twice, and those who look on may get another one in between
        with safe_open(path, "np") as file:
            return State(**json.loads((file.metadata() or {})["state"]))
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise _damaged(path, error) from None


def check(path: Path, identity: str) -> State:
    """The counters of a checkpoint of the training `identity`. Raises OtherRun where it is that of another."""
    state = read_state(path)
    if state.identity != identity:
        raise OtherRun(
            f"{path.parent} holds a training with other settings or other data. "
            "Give another --out, or --restart to replace it."
        )
    return state


def hand_on(path: Path, state: State) -> None:
    """Give the checkpoint other counters."""
    _write(path, load_file(path), state)


def load(
    path: Path,
    model: nn.Module,
    optimiser: torch.optim.Optimizer | None,
    average: Average | None = None,
    *,
    but: str | None = None,
) -> None:
    """Put a checkpoint's tensors into `model`, `optimiser` and `average`; the model keeps its own tensor called `but`."""
    try:
        tensors = load_file(path)
        weights = {name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}
        if but in weights:
            weights[but] = model.state_dict()[but]
        model.load_state_dict(weights)
        if average is not None:
            for name, tensor in average.parameters.items():
                tensor.copy_(tensors[f"average.{name}"])
        if optimiser is None:
            return
        entries: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith("optimiser."):
                _, number, key = name.split(".", 2)
                entries.setdefault(int(number), {})[key] = tensor
        optimiser.load_state_dict({"state": entries, "param_groups": optimiser.state_dict()["param_groups"]})
    except (SafetensorError, OSError, KeyError, ValueError, RuntimeError) as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> OtherRun:
    """Raises PermissionError where the file may not be read."""
    expect_permitted(path)
    return OtherRun(
        f"{path} is damaged or from another version ({first_line(error)[:200]}). Start over with --restart."
    )
