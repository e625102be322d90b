from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engine import cli
from engine.runtime.text import TextEncoder
from engine.text import scratch
from engine.text.scratch import ScratchConfig
from tests.words.tiny import ENGLISH, KOREAN, write_items


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "DEFAULT", ScratchConfig(vocabulary=300, dim=16, layers=1, heads=2, steps=2))


def test_a_korean_catalogue_with_an_encoder_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_items(tmp_path / "shop", {"title": [*KOREAN, None], "brand": ["가"] * 4 + [None]})
    command = ["embed", "--dataset", str(data), "--encoder", "scratch", "--device", "cpu"]
    assert cli.main([*command, "--export", str(tmp_path / "build"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["items"], facts["without_text"], facts["dim"], facts["missing_share"]) == (5, 1, 16, 0)
    assert facts["fields"] == ["title", "brand"] and not facts["cached"]
    kept = np.load(facts["path"])
    exported = TextEncoder.open(facts["export"]["path"])
    assert np.abs(exported.embed([f"{KOREAN[1]}; brand: 가"])[0] - kept[1]).max() < 1e-4
    assert cli.main([*command, "--fields", "title:2"]) == 0
    out = capsys.readouterr().out
    assert "text: title:2; no text: 1 items" in out and "kept in" in out
    assert cli.main(command) == 0
    assert "found in the cache" in capsys.readouterr().out


def test_minilm_says_what_it_does_not_know(tmp_path: Path, capsys: pytest.CaptureFixture[str], minilm: object) -> None:
    data = write_items(tmp_path / "shop", {"title": [*KOREAN, *ENGLISH]})
    assert cli.main(["embed", "--dataset", str(data), "--encoder", "minilm", "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert "of the words of this catalogue are unknown to minilm" in out
    assert "use --encoder scratch" in out


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        ([], 2, "--dataset"),
        (["--export", "build", "--fields", "title"], 2, "belong to a --dataset"),
        (["--dataset", "nowhere"], 1, "not a prepared dataset"),
        (["--dataset", "shop", "--fields", "colour"], 2, "no column 'colour'"),
        (["--dataset", "shop", "--encoder", "a b"], 2, "neither minilm"),
        (["--encoder", "scratch", "--export", "build"], 2, "name a dataset"),
    ],
)
def test_wrong_use_is_said_in_one_message(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    argv: list,
    code: int,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_items(tmp_path / "shop", {"title": KOREAN})
    assert cli.main(["embed", *argv]) == code
    assert says in capsys.readouterr().err
