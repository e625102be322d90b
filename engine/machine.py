"""What this machine has: memory, and cores to compute on; what its environment variables set; and what makes room there for what
matters more."""

import atexit
import contextlib
import ctypes
import datetime
import functools
import gc
import math
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from engine.errors import SeqscopeError


def memory() -> tuple[int, int]:
    """Bytes in all and free; 0, 0 where the system does not say. A container's limit counts."""
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        total, free = (int(lines[key].split()[0]) * 1024 for key in ("MemTotal", "MemAvailable"))
    except (OSError, KeyError, ValueError):
        return 0, 0
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        return min(total, limit), min(free, max(0, limit - used))
    except (OSError, ValueError):  # "max" is no integer: no limit
        return total, free


@functools.cache
def cores() -> int:
    """CPU cores this process may use: its affinity, and what a container's quota allows."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count, math.ceil(int(quota) / int(period)))  # "max" (no quota) is no integer
    except (OSError, ValueError, ZeroDivisionError):
        pass
    return max(1, count)


def now() -> str:
    """The time as files state it: ISO, UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """For work that makes millions of objects which stay until it is done: Python's collector looks at them again and again."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def freeze() -> None:
    """Python's collector passes over what is there by now, until the process ends: DuckDB lists what is frozen then as leaked."""
    gc.freeze()
    atexit.register(gc.unfreeze)


_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # malloc.h


@functools.cache
def keep_memory() -> None:
    """From now on this process keeps the memory that it frees, for what it asks for next. The C library of Linux (glibc) gives
    large blocks back at once, and a training asks for the same hundreds of megabytes at every step, which the kernel has to find
    and clear anew (NGCF on Gowalla, as `seqscope train` prints it: 671 ms a step without this, 489 with it). Nothing is changed
    where there is another C library."""
    with contextlib.suppress(OSError, AttributeError):
        set_option = ctypes.CDLL(None).mallopt
        set_option(_TRIM_THRESHOLD, 2**31 - 1)
        set_option(_MMAP_MAX, 0)


class SettingError(SeqscopeError):
    """Environment variables that cannot be read; faults: a sentence for each."""

    def __init__(self, *faults: str) -> None:
        super().__init__(" ".join(faults))
        self.faults = faults


def settings(reads: Mapping[str, Callable[[], int]]) -> dict[str, int]:
    """What each of several variables sets. Raises SettingError with all that cannot be read."""
    values, faults = {}, dict[str, None]()
    for name, read in reads.items():
        try:
            values[name] = read()
        except SettingError as error:
            faults |= dict.fromkeys(error.faults)
    if faults:
        raise SettingError(*faults)
    return values


def whole_number(name: str, default: int, *, least: int = 0, most: int = 10**18) -> int:
    """What an environment variable sets. Raises SettingError where that is no whole number from `least` to `most`."""
    text = os.environ.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
        raise SettingError(f"{name} is {text!r}; it must be a whole number from {least:,} to {most:,}.")
    return int(text)


def number(name: str, default: float, *, least: float = 1e-6, most: float = 100_000.0) -> float:
    """What an environment variable sets. Raises SettingError where that is no number from `least` to `most`."""
    text = os.environ.get(name) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise SettingError(f"{name} is {text!r}; it must be a number from {least:,g} to {most:,g}.")
    return value


OOM = 500
"""Of −1000 to 1000: as if the process took half of the machine's memory more than it does."""


def yields(nice: int, oom: int = OOM, pid: int | None = None) -> None:
    """What a server starts yields to it: pages come before work, and where memory ends the work goes.

    nice: is added to the priority that a process has; pid: this one's unless told. What it starts afterwards inherits both.
    """
    with contextlib.suppress(OSError):  # it has ended, or may not
        now = os.getpriority(os.PRIO_PROCESS, pid or 0)
        os.setpriority(os.PRIO_PROCESS, pid or 0, min(19, now + nice))
    with contextlib.suppress(OSError, ValueError):  # not Linux, or it has ended
        file = Path(f"/proc/{pid or 'self'}/oom_score_adj")
        if int(file.read_text()) < oom:
            file.write_text(str(oom))


def dies_with(parent: int) -> Callable[[], None]:
    """What a child calls first that must not go on when the process `parent` is gone; where the system can do that (Linux)."""
    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return lambda: None

    def before() -> None:
        prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    return before
