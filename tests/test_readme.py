"""The commands of the README, run as they stand."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest


def readme_commands(root: Path) -> list[str]:
    """Every `seqscope` command of the README, continued lines joined, comments removed."""
    text = (root / "README.md").read_text("utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    return [line.partition("#")[0].strip() for line in lines if line.startswith(".venv/bin/seqscope")]


@pytest.mark.timeout(900)
def test_every_command_of_the_readme_works(root: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = ["userId,movieId,rating,timestamp"]
    for user in range(60):
        start = int(rng.integers(40))
        rows += [f"{user},m{(start + step) % 40},5,{1_600_000_000 + user + 1000 * step}" for step in range(12)]
    (tmp_path / "ratings.csv").write_text("\n".join(rows) + "\n", "utf-8")
    commands = readme_commands(root)
    assert {shlex.split(command)[1] for command in commands} >= {"doctor", "data", "train", "evaluate", "export"}
    for command in commands:
        words = [sys.executable, "-m", "engine", *shlex.split(command)[1:]]
        paths = os.pathsep.join([str(root), os.environ["PYTHONPATH"]])  # tests/conftest.py: maps without UMAP
        environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        if "doctor" in words:
            assert done.returncode in (0, 1), done.stderr  # it may find something missing on the machine
        else:
            assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert (tmp_path / "exports" / "mine" / "sasrec" / "manifest.json").exists()


@pytest.mark.parametrize("target", ["run", "test"])
def test_the_two_commands_are_there(root: Path, target: str) -> None:
    text = (root / "README.md").read_text("utf-8")
    assert re.search(rf"^    make {target}\b", text, re.MULTILINE)
    done = subprocess.run(["make", "-n", target], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_the_readme_points_to_exists(root: Path) -> None:
    for name in ["README.md", *(path.relative_to(root).as_posix() for path in (root / "docs").glob("*.md"))]:
        path = root / name
        for link in re.findall(r"\]\(([^)#]+)\)", path.read_text("utf-8")):
            if "://" not in link:
                assert (path.parent / link).exists(), f"{name} points to {link}"
