"""What was made beside what is shown takes its place; nothing is lost where it was interrupted or nothing was made."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.jobs import turn as module
from app.jobs.turn import exchange, turn


def zoo(path: Path, fingerprint: str, *models: str) -> Path:
    path.mkdir()
    (path / "dataset.json").write_text(json.dumps({"fingerprint": fingerprint}))
    for model in models:
        (path / model).mkdir()
        (path / model / "manifest.json").write_text("{}")
    return path


def models(path: Path) -> list[str]:
    return sorted(found.parent.name for found in path.glob("*/manifest.json"))


def names(path: Path) -> list[str]:
    return sorted(found.name for found in path.iterdir())


def test_the_new_takes_the_place_of_the_old(tmp_path: Path) -> None:
    data = zoo(tmp_path / "data", "new")
    made, shown = zoo(tmp_path / "next", "new", "b", "c"), zoo(tmp_path / "exports", "old", "a")
    assert turn(data, made, shown)
    assert models(shown) == ["b", "c"] and names(tmp_path) == ["data", "exports"]
    assert turn(data, made, shown) and models(shown) == ["b", "c"]  # once more, as after an interruption


def test_what_is_of_the_same_state_joins_what_is_shown(tmp_path: Path) -> None:
    data = zoo(tmp_path / "data", "new")
    made, shown = zoo(tmp_path / "next", "new", "b", "c"), zoo(tmp_path / "exports", "new", "a", "b")
    (made / "b" / "again").touch()
    (made / "identifiers" / "rqvae").mkdir(parents=True)
    assert turn(data, made, shown)
    assert models(shown) == ["a", "b", "c"] and (shown / "b" / "again").exists()
    assert names(shown / "identifiers") == ["rqvae"] and names(tmp_path) == ["data", "exports"]


def test_interrupted_between_its_two_moments(tmp_path: Path) -> None:
    data = zoo(tmp_path / "data", "new")
    made, shown = zoo(tmp_path / "next", "old", "a"), zoo(tmp_path / "exports", "new", "b")
    assert turn(data, made, shown)
    assert models(shown) == ["b"] and names(tmp_path) == ["data", "exports"]


@pytest.mark.parametrize("made", [(), ("a",)])
def test_where_nothing_was_made_the_old_stays(tmp_path: Path, made: tuple[str, ...]) -> None:
    zoo(tmp_path / "data", "new")
    zoo(tmp_path / "exports", "old", "a")
    zoo(tmp_path / "next", "old" if made else "new", *made)
    done = subprocess.run(
        [sys.executable, "-m", "app.jobs.turn", "data", "next", "exports"], cwd=tmp_path, capture_output=True, text=True,
        env={"PYTHONPATH": str(Path(module.__file__).parents[2])}, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr.strip() == f"seqscope: {module.NOTHING}"
    assert models(tmp_path / "exports") == ["a"]


def test_nothing_was_shown_before(tmp_path: Path) -> None:
    data = zoo(tmp_path / "data", "new")
    assert turn(data, zoo(tmp_path / "next", "new", "b"), tmp_path / "exports")
    assert names(tmp_path) == ["data", "exports"]


@pytest.mark.parametrize("known", [True, False])
def test_two_folders_change_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool) -> None:
    one, other = zoo(tmp_path / "one", "1"), zoo(tmp_path / "other", "2", "b")
    if not known:  # a system that cannot do it in one step
        monkeypatch.setattr(module.ctypes, "CDLL", lambda *a, **k: object())
    exchange(one, other)
    assert models(one) == ["b"] and models(other) == [] and names(tmp_path) == ["one", "other"]
