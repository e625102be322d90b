"""A runner that forks every command: python -m tests.jobs.forking FOLDER, as app.jobs.runner."""

import sys
import time
from collections.abc import Mapping

from app.jobs import runner
from engine import fork_server
from engine.fork_server import ForkServer


class Ready(ForkServer):
    """It has imported what the tests' commands are, and no command begins before that."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        super().__init__(environment, ["tests.jobs.work"])
        while not self.is_ready():
            time.sleep(0.01)


if __name__ == "__main__":
    fork_server.COMMANDS, fork_server.ROOM, runner.ForkServer = 0, 0, Ready  # type: ignore[misc]
    sys.exit(runner.main())
