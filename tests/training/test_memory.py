"""What a training does with memory."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

STEPS = """
import resource
import torch
from engine.machine import keep_memory
{keep}
def step():
    alive = []
    for _ in range(12):
        alive = [*alive[-3:], torch.ones(10_000_000)]
for _ in range(5):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library keeps memory as it likes")
def test_a_step_has_the_memory_of_the_step_before() -> None:
    def pages(keep: str) -> int:
        return int(
            subprocess.run([sys.executable, "-c", STEPS.format(keep=keep)], capture_output=True, check=True).stdout
        )

    assert pages("keep_memory()") < pages("") / 10
