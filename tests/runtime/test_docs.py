"""docs/bundle.md: its example makes a bundle that opens, and its tables name the columns that are read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.bundle.tables import side_tables
from engine.runtime import Zoo
from tests.runtime.bundles import make_zoo

TEXT = (Path(__file__).parents[2] / "docs" / "bundle.md").read_text("utf-8")


def test_the_example_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_zoo(tmp_path / "exports", name="my-dataset")
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)[-1]
    exec(compile(code, "docs/bundle.md", "exec"), {})  # noqa: S102  # our own page
    zoo = Zoo.open("exports/my-dataset", warm=True)
    assert zoo.refused == []
    bundle = zoo.bundles["mean-vector"]
    assert bundle.recommend_one([1, 2, 3], 5).items.shape == (5,)
    assert bundle.cannot("attention") == "A mean does not attend."


@pytest.mark.parametrize("file", side_tables(3))
def test_the_columns_are_named(file: str) -> None:
    (line,) = (line for line in TEXT.splitlines() if line.startswith(f"| {file} |"))
    for name, column in side_tables(3)[file].items():
        assert f"`{name}` {column.type}" in line
