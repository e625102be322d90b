"""The commands of the README, run as they stand."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tests.exporter  # noqa: F401 (for what it does)
from engine.cli import main


def readme_commands(root: Path) -> list[str]:
    """Every `seqscope` command of the README, continued lines joined, comments removed."""
    text = (root / "README.md").read_text("utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    return [line.partition("#")[0].strip() for line in lines if line.startswith(".venv/bin/seqscope")]


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


def test_what_the_readme_points_to_exists(root: Path) -> None:
    for name in ["README.md", *(path.relative_to(root).as_posix() for path in (root / "docs").glob("*.md"))]:
        path = root / name
        for link in re.findall(r"\]\(([^)#]+)\)", path.read_text("utf-8")):
            if "://" not in link:
                assert (path.parent / link).exists(), f"{name} points to {link}"
