"""Writing: what is written reads back the same, appears whole or not at all, and replaces nothing by accident."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.data import write
from engine.data.dataset import Dataset, DatasetInfo, Role
from engine.data.split import SplitOptions
from engine.data.write import staging, write_dataset
from engine.errors import SeqscopeError, UsageError
from engine.files import contents

TEXTS = ["한국어", "العربية", "😀 emoji", "<script>", '=HYPERLINK("x")', "  two\ttabs\n", "a\u0301 ≠ á", "\u2028"]


def arguments(**changes: Any) -> dict[str, Any]:
    """A log of three users on eight items whose titles are hard on careless code."""
    tags = pa.array([[text] for text in TEXTS], pa.list_(pa.string()))
    table = {"item_id": [f"i{n}" for n in range(8)], "title": TEXTS, "tags": tags}
    given: dict[str, Any] = {
        "name": "toy", "title": "Toy", "source": "here", "licence": "none", "simulated": True, "items": pa.table(table),
        "users": ["u0", "u1", "u2"], "user": np.array([0, 0, 0, 1, 2, 2, 2, 2]), "item": np.arange(8),
        "timestamp": np.array([10, 20, 20, 5, 1, 2, 3, 4]), "time_unit": "second", "options": {"seed": 1}, "left_out": {"bad": 2},
    }  # fmt: skip
    return given | changes


def test_round_trip(tmp_path: Path) -> None:
    info = write_dataset(tmp_path / "toy", **arguments())
    dataset = Dataset(tmp_path / "toy")
    assert dataset.info == info == DatasetInfo.read(tmp_path / "toy" / "dataset.json")
    assert info.counts == {"users": 3, "items": 8, "events": 8, "train": 4, "valid": 2, "test": 2}
    assert info.lengths == {"min": 1, "median": 3, "mean": 2.6667, "max": 4}
    assert info.sparsity == pytest.approx(1 - 8 / 24)
    assert info.time == {"unit": "second", "first": 1, "last": 20, "ties": 1}
    assert info.held_out == {"untrained": 2, "ties": 1, "repeats": 0}
    assert info.attributes == ["tags"] and info.left_out == {"bad": 2} and info.options == {"seed": 1}
    assert dataset.events.values.tolist() == list(range(8)) and dataset.events.offsets.tolist() == [0, 3, 4, 8]
    assert dataset.timestamps is not None and dataset.timestamps.tolist() == [10, 20, 20, 5, 1, 2, 3, 4]
    assert dataset.roles.tolist() == [0, Role.VALID, Role.TEST, 0, 0, 0, Role.VALID, Role.TEST]
    items = pq.read_table(tmp_path / "toy" / "items.parquet")
    assert items.column_names == ["item", "item_id", "title", "tags"] and items.schema.field("item").type == pa.int32()
    assert items["title"].to_pylist() == TEXTS and items["tags"].to_pylist() == [[text] for text in TEXTS]
    log = pq.read_schema(tmp_path / "toy" / "interactions.parquet")
    assert [str(field.type) for field in log] == ["int32", "int32", "int64", "int8"]


def test_a_user_and_an_item_that_repeat_are_one_observed_pair(tmp_path: Path) -> None:
    again = arguments(item=np.array([0, 1, 0, 3, 4, 5, 4, 4]), repeats="count")
    assert write_dataset(tmp_path / "toy", **again).sparsity == pytest.approx(1 - 5 / 24)


def test_several_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = write_dataset(tmp_path / "whole", **arguments())
    monkeypatch.setattr(write, "ROW_GROUP", 3)
    parts = write_dataset(tmp_path / "parts", **arguments())
    assert pq.ParquetFile(tmp_path / "parts" / "interactions.parquet").num_row_groups == 3
    assert parts.fingerprint == whole.fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"item": np.array([1, 0, 2, 3, 4, 5, 6, 7])},
        {"timestamp": np.array([10, 20, 21, 5, 1, 2, 3, 4])},
        {"timestamp": None, "time_unit": "order"},
        {"user": np.array([0, 0, 0, 0, 2, 2, 2, 2]), "timestamp": np.array([1, 2, 3, 4, 1, 2, 3, 4])},
        {"split": SplitOptions("time", 3, 4)},
        {"items": pa.table({"item_id": [f"j{n}" for n in range(8)], "title": TEXTS})},
    ],
)
def test_the_fingerprint_sees_every_change(tmp_path: Path, change: dict[str, Any]) -> None:
    one, other = write_dataset(tmp_path / "a", **arguments()), write_dataset(tmp_path / "b", **arguments(**change))
    assert one.fingerprint != other.fingerprint


def test_the_fingerprint_does_not_see_words(tmp_path: Path) -> None:
    one = write_dataset(tmp_path / "a", **arguments())
    assert one.fingerprint == write_dataset(tmp_path / "b", **arguments(title="Other", name="other")).fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"user": np.array([0, 0, 0, 2, 1, 1, 1, 1])},
        {"user": np.array([0, 0, 0, 1, 2, 2, 2, 3])},
        {"item": np.array([0, 1, 2, 3, 4, 5, 6, 8])},
        {"item": np.arange(7)},
        {"timestamp": np.array([20, 10, 20, 5, 1, 2, 3, 4])},
        {"timestamp": None},
        {"time_unit": "week"},
        {"items": pa.table({"title": TEXTS, "item_id": TEXTS})},
        {"items": pa.table({"item_id": TEXTS, "title": [*TEXTS[:7], None]})},
    ],
)
def test_a_broken_log_is_the_callers_mistake(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        write_dataset(tmp_path / "toy", **arguments(**change))
    assert list(tmp_path.iterdir()) == []


def test_an_empty_log_and_a_bad_name(tmp_path: Path) -> None:
    nothing = np.array([], np.int64)
    with pytest.raises(SeqscopeError, match="no event is left"):
        write_dataset(tmp_path / "toy", **arguments(user=nothing, item=nothing, timestamp=nothing))
    for name in ("Toy", "a b", "../up", "", "a--b", "-a"):
        with pytest.raises(UsageError, match="lowercase"):
            write_dataset(tmp_path / "toy", **arguments(name=name))
    assert list(tmp_path.iterdir()) == []


def test_an_existing_dataset_is_replaced_only_when_told(tmp_path: Path) -> None:
    first = write_dataset(tmp_path / "toy", **arguments())
    with pytest.raises(SeqscopeError, match="--overwrite"):
        write_dataset(tmp_path / "toy", **arguments(title="Second"))
    assert DatasetInfo.read(tmp_path / "toy" / "dataset.json") == first
    write_dataset(tmp_path / "toy", **arguments(title="Second"), overwrite=True)
    assert DatasetInfo.read(tmp_path / "toy" / "dataset.json").title == "Second"
    assert [path.name for path in tmp_path.iterdir()] == ["toy"]


def test_what_people_keep_beside_a_dataset_outlives_a_new_one(tmp_path: Path) -> None:
    write_dataset(tmp_path / "toy", **arguments())
    made = contents(tmp_path / "toy")
    (tmp_path / "toy" / "plots" / "deep").mkdir(parents=True)
    (tmp_path / "toy" / "plots" / "deep" / "a.png").write_bytes(b"a")
    (tmp_path / "toy" / "notes.txt").write_text("irreplaceable")
    (tmp_path / "toy" / "latest").symlink_to("nowhere")
    (tmp_path / "toy" / "words").mkdir()
    for name in ("negatives-u100-test.npy", "words/a.npy"):  # of the data of before
        (tmp_path / "toy" / name).touch()
    write_dataset(tmp_path / "toy", **arguments(title="Second"), overwrite=True)
    assert DatasetInfo.read(tmp_path / "toy" / "dataset.json").title == "Second"
    assert contents(tmp_path / "toy") == made | {"plots", "notes.txt", "latest"}
    assert (tmp_path / "toy" / "notes.txt").read_text() == "irreplaceable"
    assert (tmp_path / "toy" / "plots" / "deep" / "a.png").read_bytes() == b"a"
    assert os.readlink(tmp_path / "toy" / "latest") == "nowhere"


def test_overwrite_replaces_nothing_but_datasets(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "thesis.txt").write_text("irreplaceable")
    for name in ("nothing", "dataset.json"):  # of exported models
        (tmp_path / "toy" / name).write_text("{}")
        with pytest.raises(SeqscopeError, match="not a dataset"):
            write_dataset(tmp_path / "toy", **arguments(), overwrite=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(SeqscopeError, match="is a file"):
        write_dataset(tmp_path / "file", **arguments(), overwrite=True)
    assert (tmp_path / "toy" / "thesis.txt").read_text() == "irreplaceable"


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write_dataset(tmp_path / "toy", **arguments())
    monkeypatch.setattr(write, "write_files", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(SeqscopeError, match="No space left"):
        write_dataset(tmp_path / "toy", **arguments(title="Second"), overwrite=True)
    assert DatasetInfo.read(tmp_path / "toy" / "dataset.json") == first
    assert [path.name for path in tmp_path.iterdir()] == ["toy"]


def test_what_does_not_read_back_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = write.write_files

    def careless(*arguments: Any) -> None:
        honest(*arguments[:-1], np.zeros_like(arguments[-1]))  # the roles

    monkeypatch.setattr(write, "write_files", careless)
    with pytest.raises(SeqscopeError, match="does not read back"):
        write_dataset(tmp_path / "toy", **arguments())
    assert list(tmp_path.iterdir()) == []


def test_nobody_sees_half_a_folder(tmp_path: Path) -> None:
    with staging(tmp_path / "deep" / "toy") as folder:
        (folder / "part").write_text("half")
        assert not (tmp_path / "deep" / "toy").exists()
    assert (tmp_path / "deep" / "toy" / "part").read_text() == "half"
    with pytest.raises(KeyboardInterrupt), staging(tmp_path / "other"):
        raise KeyboardInterrupt
    assert not (tmp_path / "other").exists()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SeqscopeError, match="is a file, and a folder is needed"), staging(tmp_path / "file" / "toy"):
        pass


def test_a_rule_for_repeats_that_nobody_knows_is_refused(root: Path, tmp_path: Path) -> None:
    before = json.loads((root / "data" / "sample" / "dataset.json").read_text("utf-8"))
    (tmp_path / "dataset.json").write_text(json.dumps(before | {"repeats": "sometimes"}), "utf-8")
    with pytest.raises(SeqscopeError, match="count, first"):
        DatasetInfo.read(tmp_path / "dataset.json")
