"""Files that an older version wrote, to be opened by every later one (make.py says what and how)."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
ARCHIVE = HERE / "golden.tar.xz"
KEPT_ANSWERS, KEPT_STATES, KEPT_METRICS = HERE / "answers.npz", HERE / "addresses.json", HERE / "metrics.json"
OWNER, VISITOR = "a" + "1" * 32, "b" + "2" * 32
"""An account, and a browser with a key."""
