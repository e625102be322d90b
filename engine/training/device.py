"""Where to train and in which precision, decided by looking at the machine."""

from __future__ import annotations

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


def describe(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'' if threads == 1 else 's'}"


def product_dtype(precision: str, device: torch.device) -> torch.dtype:
    """Precision of products with the item table: bfloat16 where `precision` asks for it or the processor is faster at it."""
    if precision != "auto":
        return {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    fast = torch.cpu.get_capabilities().get("avx512_bf16") or torch.cpu.get_capabilities().get("amx_bf16")
    return torch.bfloat16 if fast else torch.float32
