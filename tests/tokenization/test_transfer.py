"""`seqscope tokenize --from`: a fitted tokenizer's identifiers of another catalogue."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.cli import main
from engine.data.dataset import Dataset
from engine.data.identifiers import Identifiers
from engine.runtime import Zoo
from engine.text.scratch import ScratchConfig
from engine.tokenizers.run import open_tokenizer
from tests.tokenization.test_run import command
from tests.training.tiny import text_encoder


@pytest.fixture(scope="module")
def fitted(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("fitted") / "residual-kmeans"
    settings = ["tokenizer.codes=8", "tokenizer.levels=2", f"words.encoder={text_encoder()}"]
    assert main(command("residual-kmeans", dataset, out, settings=settings)) == 0
    return out


@pytest.fixture(scope="module")
def grown(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalogue with ten items of the first one, last first, one whose id means another item now, and twenty that are new."""
    folder = tmp_path_factory.mktemp("grown")
    before = pq.read_table(dataset.path / "items.parquet").sort_by("item")
    ids, titles = (list(map(str, before[name].to_pylist())) for name in ("item_id", "title"))
    rows = [(ids[row], titles[row]) for row in range(9, -1, -1)] + [(ids[10], "Something else altogether")]
    rows += [(f"new-{row}", titles[row]) for row in range(20)]
    pq.write_table(pa.table({"item_id": [a for a, _ in rows], "title": [b for _, b in rows]}), folder / "items.parquet")
    words = ["catalogue", "import", str(folder / "items.parquet"), "--out", str(folder / "data"), "--name", "grown"]
    assert main([*words, "--title", "Grown", "--item-id-column", "item_id", "--title-column", "title"]) == 0
    return folder / "data"


def test_new_items_stand_beside_the_known_ones(
    dataset: Dataset, fitted: Path, grown: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "carried"
    words = ["tokenize", "--from", str(fitted), "--dataset", str(grown), "--out", str(out), "--device", "cpu"]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "10 of 31 items keep" in said.err + said.out
    known, found = Identifiers.read(fitted), Identifiers.read(out)
    assert (found.sizes, found.names, len(found)) == (known.sizes, known.names, 31)
    assert np.array_equal(found.codes[:10], known.codes[9::-1])
    tokenizer, _, _, record = open_tokenizer(out)
    assert tokenizer.sizes == open_tokenizer(fitted)[0].sizes
    assert record["about"]["fitted"]["fingerprint"] == dataset.info.fingerprint != record["fingerprint"]
    # the same title is the same words, and those decide all codes but the number that tells items apart
    assert np.array_equal(found.codes[11:, :2], known.codes[:20, :2])
    alone = {tuple(codes) for codes in known.codes.tolist()}
    room = [codes for codes in found.codes[11:].tolist() if codes[2] < known.sizes[2] - 1]
    assert room and not alone & {tuple(codes) for codes in room}
    # again: nothing to do; exported, the app reads it
    before = (out / "identifiers.parquet").stat().st_mtime_ns
    assert main(words) == 0 and (out / "identifiers.parquet").stat().st_mtime_ns == before
    assert json.loads((out / "report.json").read_text("utf-8"))["items"] == 31
    assert main(["export", str(out), "--to", str(tmp_path / "exports")]) == 0
    assert len(Zoo.open(tmp_path / "exports").tokenizations["carried"].identifiers) == 31


def test_a_catalogue_of_other_titles_is_another_whatever_the_log(
    dataset: Dataset, fitted: Path, tmp_path: Path
) -> None:
    shutil.copytree(dataset.path, tmp_path / "data")
    items = pq.read_table(dataset.path / "items.parquet").sort_by("item")
    titles = [*items["title"].to_pylist()[:-1], "Something else altogether"]
    items = items.set_column(items.column_names.index("title"), "title", pa.array(titles, pa.string()))
    pq.write_table(items, tmp_path / "data" / "items.parquet")
    out = tmp_path / "out"
    assert main(["tokenize", "--from", str(fitted), "--dataset", str(tmp_path / "data"), "--out", str(out)]) == 0
    before, after = Identifiers.read(fitted).codes, Identifiers.read(out).codes
    assert np.array_equal(before[:-1], after[:-1]) and not np.array_equal(before[-1], after[-1])


def test_an_encoder_trained_on_the_first_catalogue_reads_the_other(
    dataset: Dataset, grown: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ScratchConfig(vocabulary=300, dim=16, layers=1, heads=2, steps=2)
    monkeypatch.setattr("engine.text.scratch.DEFAULT", small)
    run, out = tmp_path / "codes", tmp_path / "carried"
    settings = ["tokenizer.codes=8", "tokenizer.levels=2", "words.encoder=scratch"]
    assert main(command("residual-kmeans", dataset, run, settings=settings)) == 0
    assert main(["tokenize", "--from", str(run), "--dataset", str(grown), "--out", str(out), "--device", "cpu"]) == 0
    assert np.array_equal(Identifiers.read(out).codes[11:, :2], Identifiers.read(run).codes[:20, :2])  # the same titles


def test_what_does_not_fit_is_refused(
    dataset: Dataset,
    vectors: Path,
    fitted: Path,
    grown: Path,
    run_of: Callable[[str], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refused(*words: str, status: int = 2) -> str:
        assert main(["tokenize", *words, "--out", str(tmp_path / "out"), "--device", "cpu"]) == status
        return capsys.readouterr().err

    new = ["--dataset", str(grown)]
    assert "fitted to" in refused("--from", str(fitted), "--dataset", str(dataset.path))
    assert "name of a recipe" in refused(*new)
    assert "name of a recipe" in refused("rqvae", "--from", str(fitted), *new)
    assert "--set" in refused("--from", str(fitted), *new, "--set", "tokenizer.codes=4")
    assert "no finished run" in refused("--from", str(tmp_path), *new, status=1)
    of_a_model = refused("--from", str(run_of("sasrec")), *new, status=1)
    assert "no run of a tokenizer" in of_a_model and "--out" not in of_a_model
    np.save(tmp_path / "few.npy", np.zeros((31, 3), np.float32))
    assert "3" in refused("--from", str(fitted), *new, "--vectors", str(tmp_path / "few.npy"))
    by_file = tmp_path / "by-file"
    assert main(command("rqvae", dataset, by_file, "--vectors", str(vectors), "--set", "training.epochs=1")) == 0
    assert "--vectors" in refused("--from", str(by_file), *new)
    assert not (tmp_path / "out" / "run.json").exists()
