"""What this machine has: memory, and cores to compute on."""

from __future__ import annotations

import functools
import math
import os
from pathlib import Path


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
