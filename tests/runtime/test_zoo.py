"""The dataset folder: what is read, in which order, what is refused as a whole, and what changes its stamp."""

import io
import os
import shutil
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.cards import declarations, place
from engine.errors import SeqscopeError
from engine.runtime import Zoo
from tests.runtime.bundles import TOYS, describe, make_zoo, rewrite, seal, write_bundle
from tests.runtime.spaces import write_space
from tests.runtime.studies import outcome, study, write
from tests.runtime.tokenizations import write_tokenization


def test_what_a_zoo_holds(zoo: Zoo) -> None:
    assert list(zoo.bundles) == ["alpha", "beta", "gamma", "plain", "popular"]  # by the manifests' order, then by name
    assert len(zoo) == 40 and zoo.info.title == "Toys" and zoo.info.simulated and zoo.refused == []
    assert zoo.item_ids[:2] == ["toy-0", "toy-1"] and zoo.titles[5] == "Toy 5 – <b>bold</b>"
    assert zoo.position("toy-17") == 17 and zoo.position("nothing") is None
    assert zoo.popularity.dtype == np.int64 and zoo.popularity.shape == (40,)
    assert zoo.items.column_names == ["item", "item_id", "title", "popularity", "genres", "year"]
    assert zoo.items["genres"][1].as_py() == ["tin", "plush"]
    assert zoo.users.num_rows == 4 and len(zoo.users["history"][3].as_py()) == 12


def test_models_stand_in_the_order_of_their_kinds_then_of_their_cards(tmp_path: Path) -> None:
    path = make_zoo(tmp_path)
    for order, (name, family) in enumerate({"alpha": "popularity", "beta": "tfidf", "gamma": "unknown"}.items()):
        seal(path / name, family=family, order=order)
    kinds = {name: bundle.kind for name, bundle in Zoo.open(path).bundles.items()}
    assert list(kinds.items()) == [
        ("gamma", "sequential"), ("plain", "sequential"), ("beta", "text"), ("alpha", "counting"), ("popular", "counting"),
    ]  # fmt: skip
    every = [place(model.kind, model.card.order) for model in declarations().models.values()]
    assert every == sorted(every)


def test_datasets_are_found_the_embedded_ones_first(tmp_path: Path, path: Path) -> None:
    for name in ("another", "sample", "films"):
        shutil.copytree(path, tmp_path / name)
    shutil.copytree(path, tmp_path / ".staging")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    assert [found.name for found in Zoo.list(tmp_path)] == ["films", "sample", "another", "toys"]
    assert Zoo.list(tmp_path / "nowhere") == []
    with pytest.raises(SeqscopeError, match="There is no folder"):
        Zoo.open(tmp_path / "nowhere")


def test_staging_folders_and_stray_files_are_no_bundles(path: Path) -> None:
    shutil.copytree(path / "alpha", path / ".alpha.tmp")
    (path / "README.md").write_text("hello")
    zoo = Zoo.open(path)
    assert list(zoo.bundles) == ["alpha", "beta"] and zoo.refused == []


@pytest.mark.parametrize("name", ["älpha", "a" * 70, "<b>"])
def test_folders_named_otherwise_are_refused(path: Path, name: str) -> None:
    shutil.copytree(path / "alpha", path / name)
    zoo = Zoo.open(path)
    assert list(zoo.bundles) == ["alpha", "beta"]
    assert [refusal.name for refusal in zoo.refused] == [name] and "lowercase" in zoo.refused[0].reason


def test_a_name_that_is_not_text(path: Path) -> None:
    try:
        os.mkdir(os.fsencode(path) + b"/\xff")
    except OSError:
        pytest.skip("this file system names files in UTF-8 alone: pytest --basetemp on ext4")
    (refusal,) = Zoo.open(path).refused
    str(refusal).encode("utf-8")


def test_whatever_happens_the_others_go_on(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from engine.runtime import retrieval

    real = retrieval.read_index

    def fail(folder: object, *rest: object) -> object:
        if getattr(folder, "name", "") == "alpha":
            raise ZeroDivisionError
        return real(folder, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(retrieval, "read_index", fail)
    zoo = Zoo.open(path)
    assert list(zoo.bundles) == ["beta"] and zoo.refused[0].reason == "the bundle cannot be read"
    assert "ZeroDivisionError" in caplog.text


def test_a_linked_dataset_folder_works(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(path)
    assert list(Zoo.open(tmp_path / "link").bundles) == ["alpha", "beta"]


def test_histories_may_be_left_out(path: Path) -> None:
    (path / "users.parquet").unlink()
    users = Zoo.open(path).users
    assert users.num_rows == 0 and users.column_names == ["user", "user_id", "history", "target"]


def test_large_texts_and_plain_columns_come_through(path: Path) -> None:
    items = pq.read_table(path / "items.parquet")
    items = items.append_column("text", pa.array(["word " * 5000] * 40).cast(pa.large_string()))
    items = items.append_column("kind", pa.array(["a", "b"] * 20).dictionary_encode())
    items = items.append_column("score", pa.array([None] * 18 + [np.nan, np.inf] + [1.5] * 20))
    pq.write_table(items, path / "items.parquet")
    found = Zoo.open(path).items
    assert len(found["text"][0].as_py()) == 25_000 and found["kind"].to_pylist()[:2] == ["a", "b"]
    assert found["score"].null_count == 20, "what is no number is missing"


def table(file: str, **columns: object) -> Callable[[Path], None]:
    return lambda path: rewrite(path / file, **columns)


def info(**changes: object) -> Callable[[Path], None]:
    return lambda path: describe(path, **changes)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda path: (path / "dataset.json").unlink(), "it has no dataset.json"),
        (lambda path: (path / "users.parquet").write_bytes(b"PAR1"), "users.parquet: not a readable Parquet file"),
        (info(schema_version=9), "dataset.json: format 9; this Seqscope reads 1"),
        (info(surprise=1), "surprise: Unexpected"),
        (info(counts={"items": 39}), "40 items where dataset.json counts 39"),
        (table("items.parquet", item=range(1, 41)), "row i must be item i"),
        (table("items.parquet", item_id=["same"] * 40), "an item_id stands twice"),
        (table("items.parquet", title=[None] + ["x"] * 39), "the column title has 1 empty cells"),
        (table("items.parquet", genres=pa.array([{"a": 1}] * 40)), "type that is not read"),
        (table("users.parquet", history=[[1], [2], [40], []]), "the column history holds 1 to 40"),
        (table("users.parquet", history=[[1], [2], [None], []]), "the column history has empty elements"),
        (table("users.parquet", history=pa.array([["1"]] * 4)), "the column history must be list"),
    ],
)
def test_a_damaged_dataset_is_an_error_that_names_the_file(
    path: Path, spoil: Callable[[Path], object], says: str
) -> None:
    spoil(path)
    with pytest.raises(SeqscopeError) as caught:
        Zoo.open(path)
    assert says in str(caught.value)


def test_text_that_is_not_utf8(path: Path) -> None:
    bad = pa.Array.from_buffers(pa.string(), 40, pa.array([b"\xff\xfe"] * 40).buffers())
    rewrite(path / "items.parquet", title=bad)
    with pytest.raises(SeqscopeError, match=r"items\.parquet"):
        Zoo.open(path)


def test_the_stamp_changes_with_what_lies_there(path: Path) -> None:
    stamps = [Zoo.stamp(path)]
    assert Zoo.stamp(path) == stamps[0]
    for change in (
        lambda: write_bundle(path, TOYS[4]),
        lambda: shutil.rmtree(path / "beta"),
        lambda: seal(path / "alpha", title="Renamed"),
        lambda: write_space(path),
        lambda: write_tokenization(path),
        lambda: write(path, study("another", {"a": [outcome([1])], "b": [outcome([2])]})),
    ):
        change()
        stamps.append(Zoo.stamp(path))
    assert len(set(stamps)) == len(stamps) == 7
    Zoo.stamp(path / "nowhere")


def test_the_digest_changes_with_the_content(path: Path) -> None:
    before = Zoo.open(path).bundles
    np.save(path / "alpha" / "index.npy", TOYS[0].rows * 2)
    seal(path / "alpha")
    after = Zoo.open(path).bundles
    assert before["alpha"].digest != after["alpha"].digest and before["beta"].digest == after["beta"].digest


def test_a_bundle_replaced_while_open_answers_as_it_was(path: Path) -> None:
    zoo = Zoo.open(path)
    expected = Zoo.open(path).bundles["alpha"].scores([1, 2])
    shutil.rmtree(path / "alpha")
    np.testing.assert_array_equal(zoo.bundles["alpha"].scores([1, 2]), expected)


def test_a_packed_bundle_is_a_dataset_of_its_own(path: Path, tmp_path: Path) -> None:
    zoo = Zoo.open(path)
    content = zoo.packed("alpha", "taken")
    assert content == Zoo.open(path).packed("alpha", "taken")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(tmp_path)
    alone = Zoo.open(tmp_path / "taken", warm=True)
    assert (list(alone.bundles), alone.refused, len(alone.users)) == (["alpha"], [], len(zoo.users))
    assert alone.bundles["alpha"].digest == zoo.bundles["alpha"].digest
    (path / "alpha" / "encoder.onnx").write_bytes(b"another")
    with pytest.raises(SeqscopeError, match=r"alpha/encoder\.onnx"):
        zoo.packed("alpha", "taken")


def test_nothing_heavy_is_needed(zoo_path: Path) -> None:
    # pyarrow imports pandas where it finds it; here it finds none, and everything works.
    code = f"""
        import sys
        heavy = {{"torch", "streamlit", "pandas", "duckdb", "onnx", "scipy"}}
        class Absent:
            def find_spec(self, name, path=None, target=None):
                if name in heavy:
                    raise ImportError(name)
        sys.meta_path.insert(0, Absent())
        from engine.runtime import Zoo
        bundle = Zoo.open({str(zoo_path)!r}, warm=True).bundles["alpha"]
        bundle.attention([1, 2]); bundle.neighbours(1, 2); bundle.leave_one_out([1, 2], 3); bundle.ranks_table()
        print(bundle.recommend_one([1, 2], 3).items.size)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout == "3\n" and done.stderr == ""
