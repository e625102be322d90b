"""Vectors that no model owns: what is read, exact neighbours, and what is refused by name while the rest goes on."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.bundle.index import nearest
from engine.runtime import BundleError, QuestionError, Zoo
from tests.runtime.bundles import TOYS, edit, flip, linked, make_zoo, rewrite, seal
from tests.runtime.spaces import toy_vectors, write_space


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = make_zoo(tmp_path_factory.mktemp("pristine"), TOYS[:1])
    write_space(path, "minilm", order=20)
    write_space(path, "own", seed=1, without=(4, 39))
    return path


def test_what_it_holds(pristine: Path) -> None:
    zoo = Zoo.open(pristine, warm=True)
    assert list(zoo.spaces) == ["own", "minilm"] and zoo.refused == [] and list(zoo.bundles) == ["alpha"]
    one = zoo.spaces["minilm"]
    assert one.vectors.dtype == np.float16 and np.array_equal(one.vectors, toy_vectors())
    assert one.map_table()["item"].to_pylist() == list(range(40))
    assert zoo.spaces["own"].map_table().num_rows == 38
    assert one.digest != zoo.spaces["own"].digest
    with pytest.raises(ValueError, match="read-only"):
        one.vectors[0, 0] = 1


# --- neighbours


def test_neighbours_of_a_loop(pristine: Path) -> None:
    one, rows = Zoo.open(pristine).spaces["own"], toy_vectors(1, without=(4, 39)).astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1)
    for item in (0, 3, 20):
        cosine = np.array(
            [rows[item] @ row / (lengths[item] * n) if n else -9 for row, n in zip(rows, lengths, strict=True)]
        )
        cosine[item] = -9
        found = one.neighbours(item, 5)
        assert found.items.tolist() == np.argsort(-cosine, kind="stable")[:5].tolist() and found.measure == "cosine"
        assert np.allclose(found.similarity, np.sort(cosine)[::-1][:5], atol=1e-5)
    everything = one.neighbours(0, 99)
    assert len(everything.items) == 37 and not {0, 4, 39} & set(everything.items.tolist())
    assert one.neighbours(3, 1).items.tolist() == [7] and one.neighbours(7, 1).items.tolist() == [3]


def test_questions_without_an_answer(pristine: Path) -> None:
    one = Zoo.open(pristine).spaces["own"]
    for item, k, says in (
        (4, 3, "no vector in this space"),
        (40, 3, "no item number 40"),
        (-1, 3, "no item"),
        (0, 0, "k must"),
    ):
        with pytest.raises(QuestionError, match=says):
            one.neighbours(item, k)


@pytest.mark.parametrize("geometry", ["cosine", "euclidean"])
def test_rows_may_be_of_any_width_and_are_compared_in_pieces(geometry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).normal(size=(500, 9)).astype(np.float32)
    whole = nearest(rows, 7, 20, geometry)  # type: ignore[arg-type]
    monkeypatch.setattr("engine.bundle.index._WIDENED", 100)
    pieces = nearest(rows, 7, 20, geometry)  # type: ignore[arg-type]
    assert np.array_equal(whole.items, pieces.items) and np.array_equal(whole.similarity, pieces.similarity)
    halves = nearest(rows.astype(np.float16), 7, 20, geometry)  # type: ignore[arg-type]
    assert np.allclose(whole.similarity, halves.similarity, atol=1e-2)


# --- what is refused


def saved(folder: Path, vectors: np.ndarray) -> None:
    np.save(folder / "vectors.npy", vectors)
    seal(folder)


def spoilt(row: int, value: float) -> np.ndarray:
    vectors = toy_vectors()
    vectors[row, 2] = value
    return vectors


CASES: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "other data": ("about.json", "another dataset", lambda f: edit(f, fingerprint="cd" * 32)),
    "file out of the folder": (
        "about.json", "should be", lambda f: edit(f, files={"../items.parquet": {"sha256": "0" * 64, "bytes": 1}}),
    ),
    "link": ("vectors.npy", "is a link", lambda f: linked(f / "vectors.npy")),
    "other content": ("vectors.npy", "sha256", lambda f: flip(f / "vectors.npy")),
    "other width": ("vectors.npy", "the shape must be (40, 6)", lambda f: saved(f, toy_vectors()[:, :5].copy())),
    "NaN": ("vectors.npy", "row of item 5 holds NaN", lambda f: saved(f, spoilt(5, np.nan))),
    "more empty rows than said": ("vectors.npy", "2 rows are zeros", lambda f: saved(f, toy_vectors(without=(1, 2)))),
    "item beyond": ("map.parquet", "may hold 0 to 39", lambda f: rewrite(f / "map.parquet", item=range(1, 41))),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_damaged_one_is_refused_by_name(path: Path, name: str) -> None:
    file, says, spoil = CASES[name]
    spoil(path / "spaces" / "minilm")
    zoo = Zoo.open(path, warm=True)
    assert list(zoo.spaces) == ["own"] and list(zoo.bundles) == ["alpha"]
    (refusal,) = zoo.refused
    assert refusal.name == "spaces/minilm" and refusal.file == file and says in refusal.reason


def test_what_is_read_on_first_use_is_checked_then(path: Path) -> None:
    saved(path / "spaces" / "minilm", spoilt(5, np.nan))
    one = Zoo.open(path).spaces["minilm"]
    for _ in range(2):
        with pytest.raises(BundleError, match=r"vectors\.npy"):
            one.neighbours(0, 3)
    assert one.map_table().num_rows == 40


def test_a_link_out_of_the_folder_is_refused(path: Path, tmp_path: Path) -> None:
    outside = shutil.move(path / "spaces", tmp_path / "elsewhere")
    (path / "spaces").symlink_to(outside)
    zoo = Zoo.open(path)
    assert zoo.spaces == {} and "leads out" in zoo.refused[0].reason


def test_staging_folders_are_passed_over_and_folders_named_otherwise_are_refused(path: Path) -> None:
    shutil.copytree(path / "spaces" / "minilm", path / "spaces" / ".staging-1" / "minilm")
    shutil.copytree(path / "spaces" / "minilm", path / "spaces" / "<b>")
    zoo = Zoo.open(path)
    assert set(zoo.spaces) == {"own", "minilm"} and [refusal.name for refusal in zoo.refused] == ["spaces/<b>"]
