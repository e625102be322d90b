"""docs/bundle.md: its example makes a bundle that opens, and its tables name the columns that are read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.bundle.manifest import Generator
from engine.bundle.tables import side_tables
from engine.runtime import Zoo
from tests.runtime.bundles import make_zoo
from tests.runtime.generators import ToyGenerator, decoder_graph, encoder_graph

WRITER = ToyGenerator(cross=True)
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


def test_what_a_generator_takes_and_gives_is_named() -> None:
    part = TEXT[TEXT.index("## Generators") : TEXT.index("## Side tables")]
    for graph in (encoder_graph(WRITER), decoder_graph(WRITER)):
        for value in (*graph.graph.input, *graph.graph.output):
            assert re.search(rf"^ +(input +|output +)?{value.name} +(int64|float32) ", part, re.MULTILINE), value.name
    for name in Generator.model_fields:
        assert name in ("names", "layers", "heads", "head_dim") or f"`{name}`" in part or f"`generator.{name}`" in part
