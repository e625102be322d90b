"""What the server starts yields to it: pages come before work, and where memory ends the work goes."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

OOM = 500
"""Of −1000 to 1000: as if the process took half of the machine's memory more than it does."""


def yields(nice: int, oom: int = OOM, pid: int | None = None) -> None:
    """nice: is added to the priority that a process has; pid: this one's unless told. What it starts afterwards inherits both."""
    with contextlib.suppress(OSError):  # it has ended, or may not
        now = os.getpriority(os.PRIO_PROCESS, pid or 0)
        os.setpriority(os.PRIO_PROCESS, pid or 0, min(19, now + nice))
    with contextlib.suppress(OSError, ValueError):  # not Linux, or it has ended
        file = Path(f"/proc/{pid or 'self'}/oom_score_adj")
        if int(file.read_text()) < oom:
            file.write_text(str(oom))
