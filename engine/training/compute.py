"""Where and how steps are computed: the device, by looking at the machine; precision and threads, by measuring."""

import itertools
import math
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch

from engine.errors import UsageError


def choose(name: str, local: int = 0) -> torch.device:
    """`name`: "auto", "cpu" or "cuda"; auto takes a GPU when there is one. local: which of them. Raises
    UsageError where it is not there."""
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise UsageError("--device cuda: this machine has no CUDA device that PyTorch can use; see `seqscope doctor`")
    if local >= torch.cuda.device_count():
        raise UsageError(
            f"every process takes a GPU, and this machine has {torch.cuda.device_count()}: "
            "give torchrun fewer (--nproc-per-node), or take --device cpu"
        )
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    # With a mask, the gradient of cuDNN's attention is NaN in bfloat16 (github.com/pytorch/pytorch/issues/196678); others' is not
    torch.backends.cuda.enable_cudnn_sdp(False)
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


# --- in which precision, and on how many threads of a CPU, a training computes its steps: measured on a step of its own
#
# Flags of a processor do not tell: with AVX512-BF16 and without AMX, bfloat16 is faster on an AMD EPYC and slower on an Intel
# Xeon. And where steps are small, a second thread only waits for the first.


TURNS, SECONDS = 8, 3.0
"""Every way is tried so often, or until all of them took so long together; at least twice, or once where that took LONGEST: the
first time may be slow because kernels and memory are made ready, or because something else ran."""
LONGEST = 5.0
"""Seconds that a step may take on one thread at worst, to be tried so: a longer one has work for all."""
LEVEL = 1.1
"""A way that takes up to so many times what the fastest takes is as good: of those the plainest is taken, not noise's choice."""


class Way(NamedTuple):
    precision: str
    threads: int
    apart: bool = False

    @property
    def sharing(self) -> int:
        """Threads that share an operation: where they compute apart, none waits for another in what is left."""
        return 1 if self.apart else self.threads

    def __str__(self) -> str:
        apart = " apart" if self.apart else ""
        return f"{self.precision}, {self.threads} thread{'' if self.threads == 1 else 's'}{apart}"


@dataclass(frozen=True)
class Compute:
    """How the steps of a training are computed, and why so."""

    precision: str
    """Of matrix products: float32, or bfloat16 (sums, softmax and parameters stay float32)."""
    threads: int
    """Of a CPU; validation takes all."""
    available: int
    """Threads there were to choose from."""
    reason: str
    milliseconds: dict[str, float] = field(default_factory=dict)
    """Of one step, forward and backward, in each way that was tried; empty where there was one way alone."""
    apart: bool = False
    """Each thread computes a part of the batch, where else all of them share in every operation."""

    @property
    def way(self) -> Way:
        return Way(self.precision, self.threads, self.apart)

    def __str__(self) -> str:
        tried = " · ".join(f"{way} {taken:.1f} ms" for way, taken in self.milliseconds.items())
        return f"computes in {self.way}: {self.reason}{f' ({tried} a step)' if tried else ''}"


def supported(device: torch.device) -> list[str]:
    """The precisions that `device` has instructions for, plainest first."""
    if device.type == "cuda":
        bfloat16 = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        flags = torch.cpu.get_capabilities()
        bfloat16 = bool(flags.get("avx512_bf16") or flags.get("amx_bf16"))
    return ["float32", "bfloat16"] if bfloat16 else ["float32"]


def available(device: torch.device) -> int:
    """Threads that a training on `device` may take: OMP_NUM_THREADS, or all cores."""
    return torch.get_num_threads() if device.type == "cpu" else 1


@contextmanager
def on_threads(count: int, device: torch.device) -> Iterator[None]:
    """PyTorch computes on `count` threads, where `device` is a CPU."""
    before = torch.get_num_threads()
    if device.type != "cpu" or count == before:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def fastest(
    precisions: Sequence[str],
    device: torch.device,
    step: Callable[[Way], None],
    clock: Callable[[], float],
    apart: bool = False,
) -> Compute:
    """The way in which `step` takes least, among `precisions` and one thread, all threads, or, where it may be computed `apart`,
    all or some with a part of the batch each, since many wait for Python's lock.

    clock: seconds. Processes that train together must be given the same clock: then all of them decide alike.
    """
    threads = available(device)

    def seconds(way: Way) -> float:
        began = clock()
        with on_threads(way.sharing, device):
            step(way)
        return clock() - began

    counts = [(threads, True)] * (apart and threads > 1) + [(threads, False)]
    if threads > 1 and any(threads * seconds(Way(precisions[0], *counts[0])) <= LONGEST for _ in range(2)):
        some = [2**power for power in range(1, threads.bit_length()) if 2**power < threads]
        counts = [(1, False), *((count, True) for count in some if apart), *counts]
    ways = [Way(precision, *count) for precision, count in itertools.product(precisions, counts)]
    if len(ways) == 1:
        return Compute(ways[0].precision, threads, threads, "there is no other way here")
    least = dict.fromkeys(ways, math.inf)
    spent = 0.0
    for turn in range(TURNS):
        taken = {way: seconds(way) for way in ways}
        least = {way: min(least[way], taken[way]) for way in ways}
        spent += sum(taken.values())
        if spent >= (SECONDS if turn else LONGEST):
            break
    limit = LEVEL * min(least.values())
    chosen = next(way for way in ways if least[way] <= limit)
    quickest = least[chosen] == min(least.values())
    reason = "measured, the fastest" if quickest else f"measured, within {LEVEL - 1:.0%} of the fastest"
    milliseconds = {str(way): round(1e3 * taken, 3) for way, taken in least.items()}
    return Compute(chosen.precision, chosen.threads, threads, reason, milliseconds, chosen.apart)
