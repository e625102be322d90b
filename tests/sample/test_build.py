"""The dataset that `seqscope sample build` writes, and the one that is committed."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from engine import cli
from engine.data.dataset import Dataset, DatasetInfo, Role, fingerprint
from engine.data.split import leave_one_out
from engine.sample.build import Log
from engine.sample.films import Film
from tests.sample.conftest import SAMPLE


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small sample, built by the command."""
    out = tmp_path_factory.mktemp("built") / "sample"
    words = ["sample", "build", "--films", str(SAMPLE / "films.jsonl"), "--out", str(out), "--viewers", "200"]
    assert cli.main(words) == 0
    return out


def test_the_built_dataset_is_whole(built: Path, films: list[Film]) -> None:
    dataset = Dataset(built)
    assert dataset.num_users == 200
    assert dataset.num_items == len(films)
    assert dataset.info.simulated
    assert "simulated" in dataset.info.title
    assert "Apache-2.0" in dataset.info.licence
    assert dataset.info.options["seed"] == 0
    assert dataset.info.options["viewers"] == 200
    assert np.count_nonzero(dataset.roles == Role.TEST) == 200
    items = pq.read_table(built / "items.parquet").to_pylist()
    assert [row["item_id"] for row in items] == [film.item_id for film in films]
    amelie = next(row for row in items if row["item_id"] == "amelie-2001")
    assert (amelie["title"], amelie["year"], amelie["franchise"]) == ("Amélie", 2001, None)
    assert amelie["genres"] == "Comedy, Romance"
    users = pq.read_table(built / "users.parquet")["user_id"].to_pylist()
    assert users[0] == "simulated-viewer-001"


def test_the_planted_truth_is_not_in_the_dataset(built: Path) -> None:
    columns = pq.read_schema(built / "interactions.parquet").names
    assert columns == ["user", "item", "timestamp", "role"]
    assert {path.name for path in built.iterdir()} == {
        "dataset.json", "films.jsonl", "items.parquet", "users.parquet", "interactions.parquet"
    }  # fmt: skip


def test_building_again_keeps_what_is_not_derived(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = DatasetInfo.read(built / "dataset.json").fingerprint
    (built / "README.md").write_text("Kept.", "utf-8")
    (built / "negatives-u100-test.npy").write_bytes(b"of the dataset that was here")
    films = (built / "films.jsonl").read_bytes()
    words = ["sample", "build", "--out", str(built), "--viewers", "200"]
    assert cli.main(words) == 1 and "--overwrite" in capsys.readouterr().err
    assert cli.main([*words, "--overwrite"]) == 0
    assert DatasetInfo.read(built / "dataset.json").fingerprint == before
    assert before in capsys.readouterr().out
    assert (built / "README.md").read_text("utf-8") == "Kept."
    assert (built / "films.jsonl").read_bytes() == films
    assert not (built / "negatives-u100-test.npy").exists()
    (built / "README.md").unlink()
    assert cli.main([*words, "--overwrite", "--seed", "1"]) == 0
    assert DatasetInfo.read(built / "dataset.json").fingerprint != before


@pytest.mark.long
def test_the_committed_sample_is_what_the_generator_gives(log: Log, films: list[Film]) -> None:
    info = DatasetInfo.read(SAMPLE / "dataset.json")
    roles = leave_one_out(log.events.offsets)
    assert info.fingerprint == fingerprint([film.item_id for film in films], log.events, log.timestamps, roles), (
        "data/sample is not what the generator gives: run `seqscope sample build --overwrite`"
    )


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (["sample"], 2, "ACTION"),
        (["sample", "build", "--seed", "-1"], 2, "--seed"),
        (["sample", "build", "--viewers", "0"], 2, "--viewers"),
        (["sample", "procedural", "--items", "10", "--events", "100"], 2, "--out"),
        (["sample", "procedural", "--items", "10", "--events", "100", "--out", "x"], 2, "100 items"),
        (["sample", "procedural", "--items", "100", "--events", "1", "--out", "x"], 2, "5 events"),
        (["sample", "build", "--out", "no/such/folder"], 1, "films.jsonl"),
    ],
)
def test_wrong_use(words: list[str], code: int, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == code
    assert named in capsys.readouterr().err
