"""The commands of the README, run as they stand."""

import pkgutil
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tests.exporter  # noqa: F401 (for what it does)
from engine.cli import build_parser, main


def readme_commands(root: Path) -> list[str]:
    """Every `seqscope` command of the README, continued lines joined, comments removed."""
    text = (root / "README.md").read_text("utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    return [line.partition("#")[0].strip() for line in lines if line.startswith(".venv/bin/seqscope")]


def test_every_command_of_the_docs_can_be_given(root: Path) -> None:
    text = "\n".join(path.read_text("utf-8") for path in (root / "docs").glob("*.md")).replace("\\\n", " ")
    commands = [
        shlex.split(line, comments=True)[1:] for line in re.findall(r"^    (seqscope [^…|\n]*)$", text, re.MULTILINE)
    ]
    assert len(commands) > 50
    for words in commands:
        build_parser(words).parse_args(words)  # raises UsageError


@pytest.mark.timeout(900)
def test_every_command_of_the_readme_works(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows = ["userId,movieId,rating,timestamp"]
    for user in range(60):
        start = int(rng.integers(40))
        rows += [f"{user},m{(start + step) % 40},5,{1_600_000_000 + user + 1000 * step}" for step in range(12)]
    (tmp_path / "ratings.csv").write_text("\n".join(rows) + "\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(command)[1:] for command in readme_commands(root)]
    assert {words[0] for words in commands} >= {"doctor", "data", "train", "evaluate", "export"}
    for words in commands:
        assert main(words) in ((0, 1) if words == ["doctor"] else (0,)), words  # which may find something missing
    assert (tmp_path / "exports" / "mine" / "sasrec" / "manifest.json").exists()


@pytest.mark.parametrize("target", ["run", "test"])
def test_the_two_commands_are_there(root: Path, target: str) -> None:
    text = (root / "README.md").read_text("utf-8")
    assert re.search(rf"^    make {target}\b", text, re.MULTILINE)
    done = subprocess.run(["make", "-n", target], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("port", ["", "70000", "http"])
def test_what_is_no_port_is_refused_before_anything_is_done(root: Path, port: str) -> None:
    command = ["make", "--no-print-directory", "run", f"PORT={port}"]  # `make coverage` has tests tell of the folder
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert (
        done.returncode and f"PORT={port} is no port: give a number from 1 to 65535" in done.stderr and not done.stdout
    )


@pytest.mark.parametrize("host", ["localhost", "203.0.113.1"])  # a port that is taken, and an address of no machine
def test_an_address_that_cannot_be_had_is_named(root: Path, host: str) -> None:
    with socket.create_server(("localhost", 0)) as taken:
        address = [f"HOST={host}", f"PORT={taken.getsockname()[1]}"]
        command = ["make", "--old-file=install", f"PYTHON={sys.executable}", "run", *address]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode and " ".join(address) in done.stderr and "Traceback" not in done.stderr


def test_what_the_readme_points_to_exists(root: Path) -> None:
    modules = {path.name for part in ("engine", "app") for path in (root / part).rglob("*.py")}
    modules |= {"gru.py", "length.py"}  # docs/extending.md adds them
    pages = [path.relative_to(root).as_posix() for path in (root / "docs").glob("*.md")]
    for name in ["README.md", "SECURITY.md", *pages]:
        path = root / name
        text = path.read_text("utf-8")
        for link in re.findall(r"\]\(([^)#]+)\)", text):
            if "://" not in link:
                assert (path.parent / link).exists(), f"{name} points to {link}"
        for test in re.findall(r"`(tests/[^`]+)`", text):
            assert (root / test).exists(), f"{name} names {test}"
        for module in re.findall(r"`(?:engine/[\w/]+/)?(\w+\.py)`", text):
            assert module in modules, f"{name} names {module}"


def test_the_names_that_the_docs_use_are_there(root: Path) -> None:
    text = "".join(path.read_text("utf-8") for path in (root / "docs").glob("*.md"))
    imported = [".".join(pair) for pair in re.findall(r"from ((?:engine|app)\.[\w.]+) import (\w+)", text)]
    for name in {*imported, *re.findall(r"`((?:engine|app)\.[\w.]*\w)", text)}:
        pkgutil.resolve_name(name)  # raises where it leads to nothing
