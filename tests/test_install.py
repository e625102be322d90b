"""What `make install` installs, and with what; what make needs of the system."""

import os
import re
import subprocess
import sys
from pathlib import Path

import install
import pytest

LISTED = """\
:env:.find-links='/wheels /more'
:env:.cert='/ca.pem'
download.timeout='1'
global.extra-index-url='file:///one/simple\\nfile:///other/simple'
global.find-links='/elsewhere'
global.timeout='60'
install.no-index='false'
"""


def test_uv_is_told_what_pip_was_told() -> None:
    options = install.pip_options(LISTED)
    arguments = install.uv_arguments(options)
    pairs = list(zip(arguments[::2], arguments[1::2], strict=True))
    assert [value for name, value in pairs if name == "--find-links"] == ["/wheels", "/more"]
    assert [value for name, value in pairs if name == "--extra-index-url"] == [
        "file:///one/simple",
        "file:///other/simple",
    ]
    assert ("--index-strategy", "unsafe-best-match") in pairs and "--no-index" not in arguments
    assert install.uv_variables(options) == {"SSL_CERT_FILE": "/ca.pem", "UV_HTTP_TIMEOUT": "60"}


def test_the_lock_has_hashes_of_all_but_torch(root: Path) -> None:
    text = (root / install.LOCK).read_text("utf-8")
    pins = re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:]
    assert len(pins) > 100
    assert [pin.partition("==")[0] for pin in pins if "--hash=sha256:" not in pin] == ["torch"]
    assert not re.search(r"^(nvidia|cuda|triton)", text, re.MULTILINE)
    bare = install.without_hashes(text).splitlines()
    assert [line for line in bare if not line.startswith("#")] == [pin.split(" \\")[0].strip() for pin in pins]


class Machine:
    """In place of processes: remembers what was run; a command with `failing` in it fails, and says `message`."""

    def __init__(self, failing: str = "no command", message: str = "") -> None:
        self.failing, self.message = failing, message
        self.ran: list[str] = []

    def __call__(self, *words: object) -> subprocess.CompletedProcess[str]:
        self.ran.append(" ".join(map(str, words)))
        fails = self.failing in self.ran[-1]
        return subprocess.CompletedProcess([], int(fails), "", self.message if fails else "")


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.setattr(install, "reachable", lambda index: False)
    monkeypatch.chdir(root)


def environment(monkeypatch: pytest.MonkeyPatch, machine: Machine, folder: Path) -> install.Environment:
    monkeypatch.setattr(install, "run", machine)
    return install.Environment(folder)


def installs(machine: Machine, by: str) -> list[str]:
    return [line for line in machine.ran if f"-m {by}" in line and "-e ." in line]


def test_pip_installs_where_uv_cannot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unreachable: None) -> None:
    machine = Machine("uv pip install", "no route")
    environment(monkeypatch, machine, tmp_path).install(["text"])
    assert len(installs(machine, "uv pip install")) == 1 and len(installs(machine, "pip --disable")) == 1
    assert not (tmp_path / ".unfinished").exists()


def test_what_is_a_help_alone_is_left_out_where_it_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unreachable: None
) -> None:
    machine = Machine("[text]")
    environment(monkeypatch, machine, tmp_path).install(["text"])
    assert machine.ran[-1].endswith("-e .")


def test_uv_needs_no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unreachable: None) -> None:
    machine = Machine("-e .[text]", "error: Failed to initialize cache at `/.cache/uv`")
    environment(monkeypatch, machine, tmp_path).install(["text"])
    assert ["--no-cache" in line for line in installs(machine, "uv pip install")] == [False, True, False]


def test_nothing_is_installed_that_was_not_tested(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unreachable: None
) -> None:
    machine = Machine("uv pip install", "Hash mismatch for `numpy==2`")
    with pytest.raises(SystemExit, match="another one"):
        environment(monkeypatch, machine, tmp_path).install(["text"])
    assert not installs(machine, "pip --disable")
    assert (tmp_path / ".unfinished").exists()


def test_what_an_interrupted_installation_left_is_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unreachable: None
) -> None:
    before, after = Machine(), Machine()
    environment(monkeypatch, before, tmp_path)
    (tmp_path / ".unfinished").touch()
    environment(monkeypatch, after, tmp_path)
    assert [any("-m venv --clear" in line for line in machine.ran) for machine in (before, after)] == [False, True]


def test_a_python_without_what_venv_needs_is_none(root: Path, tmp_path: Path) -> None:
    """As Debian's is without python3-venv: it has the module venv, but no ensurepip."""
    (tmp_path / "ensurepip.py").write_text("raise ModuleNotFoundError")
    command = ["make", "--no-print-directory", "--always-make", f"VENV={tmp_path / 'venv'}", "install"]
    environ = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode and "python3-venv" in done.stderr and not done.stdout


def test_why_no_environment_can_be_made_is_said(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    command = [sys.executable, ".ci/install.py", str(tmp_path / "file" / "venv"), "text"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode and "could not be made" in done.stderr and "Traceback" not in done.stderr


def test_the_tests_begin_where_nice_says_no_priority(root: Path, tmp_path: Path) -> None:
    """As that of macOS, which wants to be told what to run, as POSIX has it."""
    for name, script in {
        "nice": '[ "$1" = -n ] && shift 2 && exec "$@"',
        "python": f'if [ "$1" = -c ]; then exec {sys.executable} "$@"; else echo "$2 begins"; fi',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    words = ["make", "pytest", "--assume-old=install-dev", f"PYTHON={tmp_path / 'python'}"]
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    done = subprocess.run(
        words, cwd=root, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert "pytest begins" in done.stdout, done.stderr
