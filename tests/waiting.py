"""Waiting for what another thread or process brings about."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait(for_: Callable[[], T], seconds: float = 60.0) -> T:
    """What `for_` answers, once that is true."""
    deadline = time.monotonic() + seconds
    while not (answer := for_()):
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)
    return answer
