"""Writing so that a reader sees the old file or the new one, never half of either."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it takes the place of `path` when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    staged = Path(name)
    try:
        yield staged
        with staged.open("rb") as file:
            os.fsync(file.fileno())
        staged.chmod(0o644)
        staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)


def write_json(path: Path, value: Any, default: Callable[[Any], Any] | None = None) -> None:
    with replacing(path) as staged:
        staged.write_text(json.dumps(value, indent=2, ensure_ascii=False, default=default) + "\n", "utf-8")
