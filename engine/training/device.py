"""Where to train, decided by looking at the machine, and what it is called."""

from __future__ import annotations

import platform
from pathlib import Path

import torch

from engine.errors import UsageError


def choose(name: str, local: int = 0) -> torch.device:
    """`name`: "auto", "cpu" or "cuda"; auto takes a GPU when there is one."""
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise UsageError("--device cuda: this machine has no CUDA device that PyTorch can use; see `seqscope doctor`")
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    return device


def describe(device: torch.device, threads: int | None = None) -> str:
    """The name of what computes. threads: of a CPU, those that are taken; None: all there are."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    count = torch.get_num_threads() if threads is None else threads
    return f"{processor()}, {count} thread{'' if count == 1 else 's'}"


def processor() -> str:
    """The name that this machine's processor gives itself; "CPU" where it gives none."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        name = next(line.partition(":")[2] for line in lines if line.startswith("model name"))
    except (OSError, UnicodeDecodeError, StopIteration):
        name = platform.processor()
    return " ".join(name.split()) or "CPU"
