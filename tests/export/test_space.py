"""Vectors of words as a space that the app reads."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from engine.cli import main
from engine.data.dataset import Dataset
from engine.errors import SeqscopeError
from engine.export import umap_map, vectors
from engine.runtime import QuestionError, Zoo
from engine.text.attributes import texts
from engine.text.embeddings import Stored
from engine.text.encoder import Encoder
from tests.runtime.bundles import describe, rewrite
from tests.training.fixtures import RunOf
from tests.words.tiny import encoder


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    return encoder("tiny")


@pytest.fixture(scope="module")
def stored(dataset: Dataset, tiny: Encoder) -> Stored:
    """As `engine.text.embeddings.embed` answers; items 2 and 5 have no words."""
    words = [f"{text} {place}" for place, text in enumerate(texts(pq.read_table(dataset.path / "items.parquet")))]
    words[2] = words[5] = ""
    return Stored(tiny.embed(words), tiny, ("title", "release_year:3"), words, Path("nowhere"), False, 1.0)


def test_it_is_read_as_it_was_made(stored: Stored, dataset: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "exports"
    folder = vectors.export_words_space(stored, dataset.path, out)
    assert folder == out / "spaces" / "tiny"
    zoo = Zoo.open(out, warm=True)
    one = zoo.spaces["tiny"]
    assert zoo.refused == [] and zoo.info.fingerprint == dataset.info.fingerprint and len(zoo) == dataset.num_items
    assert one.about.title == "Words (Tiny)" and "title, release year" in one.about.summary
    assert one.about.without == 2 and {2, 5}.isdisjoint(one.map_table()["item"].to_pylist())
    some = [item for item in range(dataset.num_items) if item not in (2, 5)]
    assert one.map_table()["item"].to_pylist() == some
    with pytest.raises(QuestionError):
        one.neighbours(5, 3)
    # what is stored is near enough to what was embedded: a cosine changes by less than 2^-10
    cosine = stored.vectors @ stored.vectors[0]
    found = one.neighbours(0, 8)
    assert np.abs(cosine[found.items] - found.similarity).max() < 2**-10
    xy = np.column_stack([one.map_table()[name].to_numpy() for name in "xy"])
    rows = one.vectors[some].astype(np.float32)
    trust = umap_map.trustworthiness(rows, xy, "cosine", umap_map.NEIGHBOURS, 42)
    assert one.about.projection.trustworthiness == pytest.approx(trust)
    assert one.about.projection.parameters["metric"] == "cosine"


def test_people_of_an_export_stay_as_they_are(stored: Stored, run_of: RunOf, dataset: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "exports"
    assert main(["export", str(run_of("popularity")), "--to", str(out), "--users", "3"]) == 0
    vectors.export_words_space(stored, dataset.path, out, name="mine", title="T" * 60)
    zoo = Zoo.open(out)
    assert zoo.users.num_rows == 3 and list(zoo.bundles) == ["popularity"]
    assert zoo.spaces["mine"].about.title == "T" * 60
    vectors.export_words_space(stored, dataset.path, out, name="mine", title="Again")
    assert [path.name for path in (out / "spaces").iterdir()] == ["mine"]
    assert Zoo.open(out).spaces["mine"].about.title == "Again"


def test_a_folder_of_other_data_is_left_alone(stored: Stored, dataset: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "exports"
    vectors.export_words_space(stored, dataset.path, out)
    describe(out, fingerprint="cd" * 32)
    with pytest.raises(SeqscopeError, match="of other data"):
        vectors.export_words_space(stored, dataset.path, out, name="mine")
    assert [path.name for path in (out / "spaces").iterdir()] == ["tiny"]


def test_what_cannot_be_exported(stored: Stored, dataset: Dataset, tmp_path: Path) -> None:
    few = Stored(stored.vectors, stored.encoder, (), [""] * (dataset.num_items - 15) + ["x"] * 15, Path(), False, 1.0)
    with pytest.raises(SeqscopeError, match="15 items with words"):
        vectors.export_words_space(few, dataset.path, tmp_path / "exports")
    with pytest.raises(SeqscopeError, match="texts were embedded"):
        other = Stored(stored.vectors[:9], stored.encoder, (), stored.texts[:9], Path(), False, 1.0)
        vectors.export_words_space(other, dataset.path, tmp_path / "exports")
    assert not list((tmp_path / "exports").glob("spaces/*"))


def test_float16_must_hold_them() -> None:
    rows = np.array([[0.6, 0.8], [3.0, 4.0], [1.0, 0.0]], np.float32)
    found = vectors.rounded(rows, np.array([False, False, True]))
    assert found.dtype == np.float16 and found[2].tolist() == [0, 0] and np.allclose(found[:2], rows[:2], atol=1e-3)
    for scale in (1e6, 1e-12):
        with pytest.raises(SeqscopeError, match="unit length"):
            vectors.rounded(rows * np.float32(scale), np.array([False, False, False]))


def test_the_machine_is_not_named(tmp_path: Path) -> None:
    assert (
        vectors._source(f"{tmp_path}, through sentence-transformers")
        == f"{tmp_path.name}, through sentence-transformers"
    )
    assert vectors._source("BAAI/bge-small, through sentence-transformers").startswith("BAAI/bge-small,")


def test_the_command(
    dataset: Dataset, tiny: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    data = Path(shutil.copytree(dataset.path, tmp_path / "data"))
    titles = pq.read_table(data / "items.parquet")["title"].to_pylist()
    rewrite(data / "items.parquet", title=[f"{title} {place}" for place, title in enumerate(titles)])
    monkeypatch.setattr("engine.text.embeddings.find", lambda *_, **__: tiny)
    words = ["embed", "--dataset", str(data), "--encoder", "tiny", "--device", "cpu"]
    assert main([*words, "--to", str(tmp_path / "exports"), "--name", "ours", "--title", "Ours", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["space"]
    assert Path(facts["path"]) == tmp_path / "exports" / "spaces" / "ours"
    assert Zoo.open(tmp_path / "exports").spaces["ours"].about.title == "Ours"
    for wrong in (["--name", "x"], ["--to", "x", "--title", "T" * 61]):
        assert main([*words, *wrong]) == 2
    assert main(["embed", "--encoder", "minilm", "--to", "x", "--export", "y"]) == 2
