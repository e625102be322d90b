"""Several processes: started by torchrun, joined by torch.distributed (NCCL on GPUs, gloo on CPU)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn


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
        return nn.parallel.DistributedDataParallel(step, device_ids=ids, find_unused_parameters=True)


@contextmanager
def joined(device: str = "auto") -> Iterator[World]:
    """The world that torchrun started this process in, or a world of one. device: as `devices.choose` takes it."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World()
        return
    local, on_gpus = int(os.environ.get("LOCAL_RANK", "0")), device != "cpu" and torch.cuda.is_available()
    if on_gpus:
        torch.cuda.set_device(local)  # before the first barrier, which would guess
    dist.init_process_group("nccl" if on_gpus else "gloo")
    try:
        yield World(dist.get_rank(), size, local)
        dist.barrier()
    finally:
        dist.destroy_process_group()
