"""run.json is read as something that may have been damaged."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from engine.data.dataset import Dataset
from engine.errors import SeqscopeError
from engine.evaluation.record import read_record
from engine.training.run import train
from tests.training.tiny import clusters, recipe, write_log

FREE = {"valid_ndcg", "improving", "search", "chosen", "commit", "fitted_on", "compute"}
"""Entries that may be missing, or that nothing reads."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("record")
    data: Dataset = write_log(folder / "data", clusters(40), 60)
    train(recipe("fmc", training={"epochs": 1}), data, folder / "run", device="cpu")
    return folder / "run"


def test_every_entry_is_looked_at(run: Path, tmp_path: Path) -> None:
    record = json.loads((run / "run.json").read_text("utf-8"))
    assert read_record(run) == record
    path = tmp_path / "run.json"
    for name in record.keys() - FREE:
        path.write_text(json.dumps({key: value for key, value in record.items() if key != name}), "utf-8")
        with pytest.raises(SeqscopeError, match=rf"run\.json cannot be used \(no '{name}' in it\).*--restart"):
            read_record(tmp_path)
        for value in (None, True, float("nan"), "x" if isinstance(record[name], list) else [3]):
            path.write_text(json.dumps(record | {name: value}), "utf-8")
            with pytest.raises(SeqscopeError, match=rf"run\.json cannot be used \({name} is .*--restart"):
                read_record(tmp_path)
    for name in ("commit", "chosen", "fitted_on"):
        path.write_text(json.dumps(record | {name: 3}), "utf-8")
        with pytest.raises(SeqscopeError, match=f"{name} is '3'"):
            read_record(tmp_path)


@pytest.mark.parametrize(("name", "value"), [("epoch", "1"), ("valid_ndcg", "x"), ("step", None), ("loss", "x")])
def test_and_every_epoch_of_the_curve(run: Path, tmp_path: Path, name: str, value: Any) -> None:
    record = json.loads((run / "run.json").read_text("utf-8"))
    changed = copy.deepcopy(record)
    changed["curve"][0][name] = value
    for wrong in (changed, record | {"curve": [3]}):
        (tmp_path / "run.json").write_text(json.dumps(wrong), "utf-8")
        with pytest.raises(SeqscopeError, match="in curve"):
            read_record(tmp_path)


@pytest.mark.parametrize("content", [b"", b"[" * 100_000, b"\xff", b"[]", b"3", b'{"recipe":'])
def test_what_is_no_record(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(SeqscopeError, match="cannot be used"):
        read_record(tmp_path)
