"""What stands for a server: python -m tests.jobs.serve ROOT keeps a queue until it is killed."""

import sys
import time
from pathlib import Path

from app.jobs.queue import Queue


def main() -> None:
    root = Path(sys.argv[1])
    Queue(root, tick=0.05).start()
    (root / "ready").touch()
    while True:
        time.sleep(1)


if __name__ == "__main__":
    main()
