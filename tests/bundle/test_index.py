"""Top-k by partition against sorting everything, duplicates, and the passes over large files."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from engine.bundle import index
from engine.bundle.errors import BundleError
from engine.bundle.files import Folder
from engine.bundle.index import products, read_index
from engine.bundle.manifest import File

RNG = np.random.default_rng(8)


def read(path: Path, array: np.ndarray, identity: bool = False) -> index.ItemIndex:
    np.save(path / "index.npy", array)
    content = (path / "index.npy").read_bytes()
    expected = File(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
    return read_index(Folder(path, "toy"), expected, len(array), array.shape[1] - 1, identity)


def test_reading_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_WIDENED", 100)
    array = RNG.standard_normal((103, 7)).astype(np.float32)
    found = read(tmp_path, array)
    np.testing.assert_array_equal(found.table, array)
    assert found.table.flags.c_contiguous and not found.table.flags.writeable
    distances = np.linalg.norm(array[:, :-1] - array[4, :-1], axis=1)
    np.testing.assert_allclose(-index.minus_distances(found.rows, 4), distances, atol=1e-6)
    array[77, 3] = np.inf
    with pytest.raises(BundleError, match="the row of item 77"):
        read(tmp_path, array)


def test_a_table_cut_into_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    table, vector = RNG.standard_normal((1003, 9)).astype(np.float32), RNG.standard_normal(9).astype(np.float32)
    whole = products(table, vector)
    np.testing.assert_allclose(whole, table.astype(np.float64) @ vector.astype(np.float64), atol=1e-5)
    monkeypatch.setattr(index, "_ALONE", 0)
    monkeypatch.setattr(index, "_PIECE", 400)
    for cores in (1, 2, 7):
        monkeypatch.setattr(index, "cores", lambda cores=cores: cores)
        np.testing.assert_array_equal(products(table, vector), whole)
    assert products(table[:0], vector).shape == (0,)


@pytest.mark.parametrize("columns", [1, 17, 33, 65])  # with 33 and 65, BLAS has other kernels for the last rows
def test_equal_rows_give_equal_products(columns: int) -> None:
    row, vector = RNG.standard_normal((2, columns)).astype(np.float32)
    assert len(np.unique(products(np.repeat(row[None], 1003, axis=0), vector))) == 1
