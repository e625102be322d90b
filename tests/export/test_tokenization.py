"""A tokenizer's run as a folder that the app reads."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from engine.bundle.embedding_spaces import pca
from engine.cli import main
from engine.data.dataset import Dataset
from engine.data.identifiers import Identifiers
from engine.export import umap_map
from engine.runtime import Zoo
from tests.training.fixtures import RunOf

CODES = ["tokenizer.codes=8", "tokenizer.levels=2"]
SETTINGS = {"rqvae": [*CODES, "tokenizer.dim=4", "tokenizer.hidden=[8]", "training.epochs=2"], "random": CODES}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, dataset: Dataset) -> Path:
    """rqvae and random: runs of tokenizers."""
    root = tmp_path_factory.mktemp("tokenizers")
    vectors = root / "vectors.npy"
    np.save(vectors, np.random.default_rng(0).normal(size=(dataset.num_items, 6)).astype(np.float32))
    for name, settings in SETTINGS.items():
        words = ["tokenize", name, "--dataset", str(dataset.path), "--out", str(root / name), "--device", "cpu"]
        words += ["--vectors", str(vectors), *(word for text in settings for word in ("--set", text))]
        assert main(words) == 0
    return root


def test_it_is_read_as_it_was_made(
    runs: Path, dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "exports"
    assert main(["export", str(runs / "rqvae"), str(runs / "random"), "--to", str(out)]) == 0
    assert "read back" in capsys.readouterr().out
    zoo = Zoo.open(out, warm=True)
    assert list(zoo.tokenizations) == ["rqvae", "random"] and zoo.refused == [] and zoo.bundles == {}
    one, made = zoo.tokenizations["rqvae"], Identifiers.read(runs / "rqvae")
    assert np.array_equal(one.identifiers.codes, made.codes)
    assert np.array_equal(one.learned, made.codes[:, :2]) and one.about.shape.own == [8, 8]
    report = json.loads((runs / "rqvae" / "report.json").read_text())
    assert one.about.figures.before.sharing == report["before"]["sharing"]
    assert one.about.figures.reconstruction == report["reconstruction"]
    assert one.about.title == "RQ-VAE" and one.about.tokenizer == "rqvae" and one.about.policy == "append"
    assert one.codebooks is not None and one.codebooks.shape == (2, 8, 4)
    assert one.latents is not None and np.array_equal(one.latents, np.load(runs / "rqvae" / "latents.npy"))
    assert one.plane is not None and one.about.plane is not None
    for level in range(2):
        rows = one.plane.filter(one.plane["level"].to_numpy() == level)
        assert rows["code"].to_pylist() == list(range(8))
        assert np.allclose(rows["x"].to_numpy(), pca(one.codebooks[level], "euclidean").places[:, 0], atol=1e-5)
    # the codes of both levels on one map, and what was quantised on another
    codes, items = one.codebooks_map(), one.latents_map()
    assert one.about.schema_version == 2 and codes is not None and items is not None
    assert codes["level"].to_pylist() == [0] * 8 + [1] * 8 and codes["code"].to_pylist() == [*range(8), *range(8)]
    for table, rows, how in (
        (codes, one.codebooks.reshape(-1, 4), one.about.codebooks_map),
        (items, one.latents, one.about.latents_map),
    ):
        assert how is not None and how.parameters["metric"] == "euclidean"
        xy = np.column_stack([table[name].to_numpy() for name in "xy"])
        trust = umap_map.trustworthiness(rows, xy, "euclidean", umap_map.NEIGHBOURS, 42)
        assert how.trustworthiness == pytest.approx(trust)
    # codes without vectors have no plane
    assert zoo.tokenizations["random"].plane is None and zoo.tokenizations["random"].codebooks is None
    assert zoo.tokenizations["random"].about.schema_version == 1
    raw = json.loads((out / "identifiers" / "random" / "about.json").read_text())
    assert "codebooks_map" not in raw and "latents_map" not in raw  # as readers of format 1 know it


def test_beside_bundles_and_again(runs: Path, run_of: RunOf, tmp_path: Path) -> None:
    out = tmp_path / "exports"
    assert main(["export", str(run_of("popularity")), str(runs / "random"), "--to", str(out)]) == 0
    zoo = Zoo.open(out)
    assert list(zoo.bundles) == ["popularity"] and list(zoo.tokenizations) == ["random"]
    assert main(["export", str(runs / "random"), "--to", str(out), "--title", "Two"]) == 0
    assert [path.name for path in (out / "identifiers").iterdir()] == ["random"]
    assert Zoo.open(out).tokenizations["random"].about.title == "Two"


def test_no_model_may_take_the_folders_name(run_of: RunOf, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(run_of("popularity")), "--to", str(tmp_path / "x"), "--name", "identifiers"]) == 2
    assert "for tokenizers" in capsys.readouterr().err


def test_what_cannot_be_exported(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Path(shutil.copytree(runs / "random", tmp_path / "random"))
    to = ["--to", str(tmp_path / "exports")]
    assert main(["export", str(run), *to, "--name", "A B"]) == 2
    (run / "report.json").write_text("{")
    assert main(["export", str(run), *to]) == 1
    assert "report.json" in capsys.readouterr().err
    shutil.copyfile(runs / "random" / "report.json", run / "report.json")
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**record, "fingerprint": "cd" * 32}))
    assert main(["export", str(run), *to]) == 1
    assert "another state" in capsys.readouterr().err
    (run / "run.json").write_text(json.dumps({**record, "seconds": "long"}))
    assert main(["export", str(run), *to]) == 1
    assert "run.json cannot be used (seconds is 'long')" in capsys.readouterr().err
    (run / "run.json").write_text(json.dumps(record))
    np.save(run / "latents.npy", np.zeros((3, 2), np.float32))
    assert main(["export", str(run), *to]) == 1
    assert "latents.npy is damaged" in capsys.readouterr().err
    assert not (tmp_path / "exports").exists()


def test_semantic_ids_of_others_are_read_by_item_id(
    dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = pq.read_table(dataset.path / "items.parquet").sort_by("item")["item_id"].to_pylist()
    index = {item_id: [f"<a_{n % 5}>", f"<b_{n // 5}>"] for n, item_id in enumerate(ids)}
    index[ids[3]], file = [*index[ids[3]], "<c_1>"], tmp_path / "Beauty.index.json"
    words = ["export", str(file), "--dataset", str(dataset.path), "--to", str(tmp_path / "exports")]
    file.write_text(json.dumps({**index, "not of this catalogue": ["<a_0>"]}))
    assert main(words) == 0
    zoo = Zoo.open(tmp_path / "exports", warm=True)
    one = zoo.tokenizations["beauty"]
    assert zoo.refused == [] and one.about.title == "Beauty.index.json" and one.about.shape.ends
    assert one.identifiers.codes[:5].tolist() == [[0, 0, -1], [1, 0, -1], [2, 0, -1], [3, 0, 1], [4, 0, -1]]
    assert one.cannot("codebooks_map") == "Its codes have no vectors."
    for text in (
        json.dumps({ids[0]: ["<a_1>"]}),
        json.dumps(index | {ids[1]: ["a"]}),
        json.dumps(index | {ids[1]: ["<a_65536>"]}),
        json.dumps(index | {"nobody reads this": "[" * 2_000_000}),  # JSON takes many times its bytes while it is read
        "[]",
        "{",
    ):
        file.write_text(text)
        assert main(words) == 1
    assert "has no codes for" in capsys.readouterr().err
    assert main(words[:2] + words[4:]) == 2
