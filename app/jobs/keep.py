"""A step of jobs: a file that was brought takes the place of the one before, once it was read without a fault.

python -m app.jobs.keep BROUGHT KEPT
"""

import os
import sys
from pathlib import Path


def keep(brought: Path, kept: Path) -> None:
    """Done again after an interruption it changes nothing. Raises FileNotFoundError where there is neither."""
    if brought.exists() or not kept.exists():
        os.replace(brought, kept)


def main() -> int:
    keep(*map(Path, sys.argv[1:]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
