"""Several processes: started by torchrun, joined by torch.distributed (NCCL on GPUs, gloo on CPU)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from engine.training import compute

WAIT = timedelta(days=7)
"""How long processes wait for one of them, since the leader alone makes vectors of texts, validates and writes. For one that died
nobody waits: torchrun ends the others."""


@dataclass(frozen=True)
class World:
    """This process among the others."""

    rank: int = 0
    size: int = 1
    local: int = 0

    @property
    def leads(self) -> bool:
        """True for the one process that validates, writes and prints."""
        return self.rank == 0

    def rows(self, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """This process's share of a batch: every size-th example, so that shares are alike in length."""
        return tensors if self.size == 1 else tuple(t[self.rank :: self.size] for t in tensors)

    def broadcast(self, values: list[float], device: torch.device) -> list[float]:
        """The leader's values, everywhere."""
        if self.size == 1:
            return values
        tensor = torch.tensor(values, dtype=torch.float64, device=device)
        dist.broadcast(tensor, 0)
        return tensor.tolist()

    def wait(self) -> None:
        """Until every process has come here."""
        if self.size > 1:
            dist.barrier()

    def sum(self, value: Tensor) -> Tensor:
        """`value` summed over processes, in place."""
        if self.size > 1:
            dist.all_reduce(value)
        return value

    def wrap(self, step: nn.Module, device: torch.device) -> nn.Module:
        """`step` with its gradients averaged over processes."""
        if self.size == 1:
            return step
        ids = [device.index] if device.type == "cuda" else None
        # what is no parameter is computed by every process alike
        return nn.parallel.DistributedDataParallel(
            step, device_ids=ids, find_unused_parameters=True, forward_sync_buffers=False
        )


@contextmanager
def joined(device: str = "auto") -> Iterator[World]:
    """The world that torchrun started this process in, or a world of one. device: as `compute.choose` takes it."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World()
        return
    local = int(os.environ.get("LOCAL_RANK", "0"))
    where = compute.choose(device, local)  # before the first barrier, which would guess
    dist.init_process_group("nccl" if where.type == "cuda" else "gloo", timeout=WAIT)
    try:
        yield World(dist.get_rank(), size, local)
        dist.barrier()
    finally:
        dist.destroy_process_group()


def processes() -> int:
    """How many train together."""
    return dist.get_world_size() if dist.is_initialized() else 1


def everywhere(vectors: Tensor, numbers: Tensor) -> tuple[int, Tensor, Tensor]:
    """The rows of all processes one after the other, with gradient, and where this process's begin.

    vectors: float [rows, dim]; numbers: int64 [rows], one for each. Processes may have different numbers of rows.
    """
    if processes() == 1:
        return 0, vectors, numbers
    sizes = [torch.zeros(1, dtype=torch.int64, device=vectors.device) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, torch.tensor([len(vectors)], device=vectors.device))
    rows = [int(size) for size in sizes]
    all_vectors: Tensor = _Gather.apply(vectors, rows)
    return sum(rows[: dist.get_rank()]), all_vectors, _gathered(numbers, rows)


def _gathered(rows_here: Tensor, rows: list[int]) -> Tensor:
    wide = rows_here.new_zeros(max(rows), *rows_here.shape[1:])
    wide[: len(rows_here)] = rows_here
    parts = [torch.empty_like(wide) for _ in rows]
    dist.all_gather(parts, wide)
    return torch.cat([part[:count] for part, count in zip(parts, rows, strict=True)])


class _Gather(torch.autograd.Function):
    """The gradient of a row is the sum of what all processes have for it."""

    @staticmethod
    def forward(ctx: Any, rows_here: Tensor, rows: list[int]) -> Tensor:
        ctx.rows = rows
        return _gathered(rows_here, rows)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        grad = grad.contiguous()
        dist.all_reduce(grad)
        start = sum(ctx.rows[: dist.get_rank()])
        return grad[start : start + ctx.rows[dist.get_rank()]], None
