"""docs/bundle.md: its example makes a bundle that opens, and its tables name the columns that are read."""

import re
import shutil
from pathlib import Path

import pytest

from engine.bundle.errors import BundleError
from engine.bundle.files import Catalogue
from engine.bundle.tables import side_tables
from engine.runtime import Bundle, Zoo
from tests.runtime.bundles import flip, make_zoo

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


@pytest.mark.parametrize("name", ["counting", "lightgcn", "recformer"])
def test_files_are_checked_as_a_bundle_opens_but_for_those_named(name: str, root: Path, tmp_path: Path) -> None:
    (later,) = re.findall(r"before the first use alone:(.*?); so is", TEXT, re.DOTALL)
    info = Zoo.open(root / "exports" / "films").info
    catalogue = Catalogue(info.name, info.fingerprint, info.counts["items"], info.repeats, info.split["kind"])
    folder = tmp_path / name
    shutil.copytree(root / "exports" / "films" / name, folder)
    for file in Bundle.open(folder, catalogue).manifest.files:
        whole = (folder / file).read_bytes()
        (folder / file).write_bytes(whole[:-1])
        with pytest.raises(BundleError, match=file):
            Bundle.open(folder, catalogue)
        (folder / file).write_bytes(whole)
        flip(folder / file)
        if file in later:
            Bundle.open(folder, catalogue)
        else:
            with pytest.raises(BundleError, match=file):
                Bundle.open(folder, catalogue)
        (folder / file).write_bytes(whole)
