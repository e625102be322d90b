"""A workbench for imports: write small files, run the command on them, look at what it made."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from engine.cli import main
from engine.data.dataset import Dataset

LOG = "user,item,time\n" + "".join(f"{u},{i},{100 * u + i}\n" for u in range(1, 5) for i in range(1, 5))
"""Four users with four events each, on four items."""


@dataclass
class Bench:
    folder: Path
    capsys: pytest.CaptureFixture[str]
    out: str = ""
    err: str = ""

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    def run(self, *words: object) -> int:
        """`seqscope data …` in this process; its output is in `out` and `err`."""
        self.capsys.readouterr()
        code = main(["data", *map(str, words)])
        self.out, self.err = self.capsys.readouterr()
        return code

    def load(self, *words: object, name: str = "made") -> Dataset:
        """Import with the options `words`, which must succeed."""
        target = self.folder / name
        code = self.run("import", *words, "--out", target, "--overwrite")
        assert code == 0, self.err
        return Dataset(target)

    def fails(self, *words: object, code: int = 1) -> str:
        """Import with the options `words`, which must fail and leave nothing; the message."""
        before = sorted(self.folder.iterdir())
        assert self.run("import", *words, "--out", self.folder / "none") == code, self.out
        assert [path for path in sorted(self.folder.iterdir()) if path.suffix != ".csv"] == [
            path for path in before if path.suffix != ".csv"
        ]
        assert "Traceback" not in self.err
        return self.err


@pytest.fixture
def bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Bench:
    return Bench(tmp_path, capsys)


def item_rows(dataset: Dataset) -> list[dict[str, Any]]:
    return pq.read_table(dataset.path / "items.parquet").to_pylist()  # type: ignore[no-any-return]


def item_ids(dataset: Dataset) -> list[str]:
    return [row["item_id"] for row in item_rows(dataset)]


def user_ids(dataset: Dataset) -> list[str]:
    return pq.read_table(dataset.path / "users.parquet")["user_id"].to_pylist()  # type: ignore[no-any-return]


def histories(dataset: Dataset) -> dict[str, list[str]]:
    """user id -> item ids, oldest first"""
    ids = item_ids(dataset)
    return {user: [ids[item] for item in dataset.events[row]] for row, user in enumerate(user_ids(dataset))}


def csv_log(events: Sequence[tuple[object, ...]], header: str = "user,item,time") -> str:
    return header + "\n" + "".join(",".join(map(str, event)) + "\n" for event in events)
