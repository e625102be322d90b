"""docs/bundle.md: its example makes a bundle that opens, and its tables name the columns that are read."""

import re
import shutil
from pathlib import Path
from typing import Any, get_args

import numpy as np
import onnx
import pytest
from pydantic import BaseModel

from engine.bundle.errors import BundleError
from engine.bundle.files import Catalogue
from engine.bundle.manifest import Manifest
from engine.bundle.tables import side_tables
from engine.runtime import Bundle, Zoo
from tests.runtime.bundles import count_repeats, flip, make_zoo
from tests.runtime.generators import ToyGenerator, ragged, write_zoo

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "bundle.md").read_text("utf-8")
READING = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)[-2]
READ = [
    path.parent
    for path in sorted(ROOT.glob("exports/sample/*/encoder.onnx"))
    if not (path.parent / "decoder.onnx").exists()
] + [ROOT / "exports/sample/tiger", ROOT / "exports/films/lc-rec"]


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


def _agrees(folder: Path, bundle: Bundle, history: list[int], k: int) -> None:
    """The page's reader and Seqscope list the same items."""
    reader: dict[str, Any] = {}
    exec(compile(READING, "docs/bundle.md", "exec"), reader)  # noqa: S102  # our own page
    items, scores = reader["recommend"](folder, history, k)
    expected = bundle.recommend_one(history, k)
    np.testing.assert_array_equal(items, expected.items)
    np.testing.assert_allclose(scores, expected.scores, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("folder", READ, ids=lambda folder: folder.name)
def test_a_stranger_reads_it(folder: Path) -> None:
    """A tree of identifiers that is scored whole, and one that takes a beam; Recformer has items of the same words."""
    bundle = Zoo.open(folder.parent).bundles[folder.name]
    _agrees(folder, bundle, [5, 40, 5, 7], 30)


@pytest.mark.parametrize("shared", [True, False])
def test_a_stranger_writes_identifiers_of_any_length(tmp_path: Path, shared: bool) -> None:
    path = write_zoo(tmp_path, ToyGenerator(identifiers=ragged(1, shared)))
    _agrees(path / "writer", Zoo.open(path).bundles["writer"], [5, 5, 9], 100)


def test_a_stranger_lists_what_repeats_and_scores_that_are_the_query(tmp_path: Path) -> None:
    path = count_repeats(make_zoo(tmp_path))
    zoo = Zoo.open(path)
    for name in ("alpha", "popular"):
        _agrees(path / name, zoo.bundles[name], [3, 5, 3], 40)


def test_graphs_need_no_more_than_the_page_says() -> None:
    (words,) = re.findall(r"of (opset \d+ and IR version \d+)", TEXT)
    for path in ROOT.glob("exports/*/*/*.onnx"):
        model = onnx.load(path, load_external_data=False)
        (opset,) = model.opset_import
        assert (f"opset {opset.version} and IR version {model.ir_version}", opset.domain) == (words, ""), path


def test_every_field_of_a_manifest_is_explained() -> None:
    waiting: list[Any] = [Manifest]
    while waiting:
        part = waiting.pop()
        waiting += get_args(part)
        if isinstance(part, type) and issubclass(part, BaseModel):
            waiting += [field.annotation for field in part.model_fields.values()]
            assert [name for name in part.model_fields if not re.search(rf"\b{name}\b", TEXT)] == [], part


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
