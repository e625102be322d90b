"""Files that an older version wrote, to be opened by every later one (make.py says what and how)."""

from __future__ import annotations

import tarfile
from pathlib import Path

HERE = Path(__file__).parent
ARCHIVE = HERE / "golden.tar.xz"
OF_FORMAT_6 = {"archive": HERE / "weights-6.tar.xz", "answers": HERE / "answers-6.npz"}
"""Two bundles of models that add up weights between items, as they were before these were packed, of the dataset of ARCHIVE."""
KEPT_ANSWERS, KEPT_STATES, KEPT_METRICS = HERE / "answers.npz", HERE / "addresses.json", HERE / "metrics.json"
OWNER, VISITOR = "a" + "1" * 32, "b" + "2" * 32
"""An account, and a browser with a key."""


def unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as files:
        files.extraction_filter = getattr(tarfile, "data_filter", None)  # before Python 3.11.4 there is none
        files.extractall(folder)
