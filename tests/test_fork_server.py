"""Programs that are forked from a process which has imported modules already."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.fork_server import ForkServer
from tests.jobs.conftest import gone
from tests.waiting import wait


@pytest.fixture
def server(root: Path, tmp_path: Path) -> Iterator[ForkServer]:
    server = ForkServer(os.environ | {"PYTHONPATH": f"{root}:{tmp_path}"}, ["tests.jobs.work"])
    wait(server.is_ready)
    yield server
    server.close()


PROGRAM = """
import os, sys
print(__name__, sys.argv[1:], os.environ["NOTE"], "tests.jobs.work" in sys.modules, repr(sys.stdin.read()))
print("below", file=sys.stderr)
sys.exit(eval(sys.argv[1]))
"""


def test_a_program_runs_as_python_would_run_it(server: ForkServer, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    _log(tmp_path).write_text("above\n")
    for word, code in (("3", 3), ("None", 0), ("'why'", 1), ("1/0", 1), ("os.kill(os.getpid(), 15)", -15)):
        child = server.begin("program", [word], tmp_path, _log(tmp_path), {"NOTE": "hello"})
        assert child.wait() == code == child.returncode
    lines = _log(tmp_path).read_text().splitlines()
    assert lines[0] == "above" and set(lines[1:3]) == {
        "__main__ ['3'] hello True ''",
        "below",
    }  # in either order, as Python's
    assert "why" in lines and any(line.startswith("ZeroDivisionError") for line in lines)


def test_what_waits_waits_no_longer_than_told(server: ForkServer, tmp_path: Path) -> None:
    words = ["count", str(tmp_path / "out"), "2", "0", str(tmp_path / "gate")]
    child = server.begin("tests.jobs.work", words, tmp_path, _log(tmp_path), {"SEQSCOPE_PROGRESS": str(tmp_path / "p")})
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.01)
    (tmp_path / "gate").touch()
    assert child.wait(30) == 0


@pytest.mark.linux
def test_a_program_does_not_outlive_its_server(server: ForkServer, tmp_path: Path) -> None:
    words = ["count", str(tmp_path / "out"), "2", "0", str(tmp_path / "gate")]
    child = server.begin("tests.jobs.work", words, tmp_path, _log(tmp_path), {"SEQSCOPE_PROGRESS": str(tmp_path / "p")})
    server.close()
    wait(lambda: gone(child.pid))
    assert child.wait() == -signal.SIGKILL and not server.is_ready()
    late = server.begin("tests.jobs.work", ["say", "hello"], tmp_path, _log(tmp_path), {})
    assert late.wait() == -signal.SIGKILL


def _log(folder: Path) -> Path:
    (folder / "log").touch()
    return folder / "log"
