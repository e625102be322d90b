"""Tokenizers' identifiers beside the bundles: what is read, and what is refused by name while the rest goes on."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from engine.data.identifiers import NONE
from engine.runtime import BundleError, CapabilityError, Zoo
from tests.runtime.bundles import TOYS, amend, edit, flip, linked, make_zoo, rewrite, seal
from tests.runtime.tokenizations import CODES, DIM, toy_codes, write_tokenization


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = make_zoo(tmp_path_factory.mktemp("pristine"), TOYS[:1])
    write_tokenization(path, "rqvae", maps=True)
    write_tokenization(path, "letter", seed=1, order=5)  # of the older version, without maps
    return path


def test_what_it_holds(pristine: Path) -> None:
    zoo = Zoo.open(pristine, warm=True)
    assert list(zoo.tokenizations) == ["letter", "rqvae"] and zoo.refused == [] and list(zoo.bundles) == ["alpha"]
    one = zoo.tokenizations["rqvae"]
    assert np.array_equal(one.identifiers.codes, toy_codes()) and one.identifiers.levels == 3
    assert np.array_equal(one.learned, toy_codes()[:, :2])
    assert one.codebooks is not None and one.codebooks.shape == (2, CODES, DIM)
    assert one.latents is not None and one.latents.shape == (40, DIM)
    assert one.plane is not None and one.plane.num_rows == 2 * CODES
    assert one.digest != zoo.tokenizations["letter"].digest


def test_numbers_that_only_count_are_no_codes_of_its_own(path: Path) -> None:
    codes = np.array([[4, NONE], [4, 1], [0, 7], *[[1, 1]] * 37], np.int32)
    write_tokenization(path, "words", codes, own=(5, 2), vectors=False)
    one = Zoo.open(path).tokenizations["words"]
    assert one.learned[:3].tolist() == [[4, NONE], [4, 1], [0, NONE]]  # 7 is beyond the level's own two codes
    assert one.codebooks is None and one.latents is None and one.plane is None


def test_maps_of_codes_and_of_what_was_quantised(pristine: Path) -> None:
    found = Zoo.open(pristine).tokenizations
    one, old = found["rqvae"], found["letter"]
    codes, items = one.codebooks_map(), one.latents_map()
    assert codes is not None and codes.column_names == ["level", "code", "x", "y"] and codes.num_rows == 2 * CODES
    assert items is not None and items["item"].to_pylist() == list(range(40))
    assert [one.cannot(what) for what in ("codebooks_map", "latents_map", "neighbours")] == [None] * 3
    assert old.codebooks_map() is None and old.latents_map() is None
    assert "older" in str(old.cannot("codebooks_map")) and "older" in str(old.cannot("latents_map"))
    assert old.cannot("neighbours") is None  # for that its latents are enough


def test_without_vectors_it_says_so(path: Path) -> None:
    write_tokenization(path, "words", vectors=False)
    one = Zoo.open(path).tokenizations["words"]
    assert one.cannot("codebooks_map") == "Its codes have no vectors."
    assert one.cannot("latents_map") == one.cannot("neighbours") == "It quantises no vectors."
    with pytest.raises(CapabilityError, match="quantises no vectors"):
        one.neighbours(0, 3)


def test_neighbours_are_those_of_the_latents_and_not_of_the_map(pristine: Path) -> None:
    one = Zoo.open(pristine).tokenizations["rqvae"]
    rows = np.load(pristine / "identifiers" / "rqvae" / "latents.npy").astype(np.float64)
    apart = np.linalg.norm(rows - rows[17], axis=1)
    found = one.neighbours(17, 6)
    assert found.items.tolist() == np.argsort(apart, kind="stable")[1:7].tolist() and found.measure == "euclidean"
    assert np.allclose(-found.similarity, np.sort(apart)[1:7], atol=1e-5)


# --- what is refused


def shaped(folder: Path, **changes: object) -> None:
    amend(folder, shape=changes)


def narrowed(folder: Path) -> None:
    """Level 2 has a code less, which only the map of all levels still shows."""
    file = folder / "codes_map.parquet"
    pq.write_table(pq.read_table(file).slice(0, 2 * CODES - 1), file)
    shaped(folder, own=[CODES, CODES - 1])


# what is spoiled → the file that is named, a part of the reason, how
CASES: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "gone": ("about.json", "is missing", lambda f: (f / "about.json").unlink()),
    "no json": ("about.json", "not valid JSON", lambda f: (f / "about.json").write_text("{")),
    "no teacher": ("about.json", "teacher", lambda f: edit(f, teacher={"run": "sasrec", "digest": "../.."})),
    "newer": ("about.json", "newer Seqscope", lambda f: edit(f, schema_version=3)),
    "maps of the older version": ("about.json", "belong together", lambda f: edit(f, schema_version=1)),
    "another name": ("about.json", "names the tokenizer other", lambda f: edit(f, name="other")),
    "other data": ("about.json", "another dataset", lambda f: edit(f, fingerprint="cd" * 32)),
    "file out of the folder": (
        "about.json", "is not one of", lambda f: edit(f, files={"../items.parquet": {"sha256": "0" * 64, "bytes": 1}}),
    ),
    "file not listed": ("about.json", "should be", lambda f: seal(f, latents_map=None)),
    "a map of vectors that are not there": (
        "about.json", "not there", lambda f: [(f / "latents.npy").unlink(), seal(f, latents=None)],
    ),
    "link": ("latents.npy", "is a link", lambda f: linked(f / "latents.npy")),
    "sizes and levels": ("about.json", "3 sizes", lambda f: shaped(f, levels=4)),
    "more own codes than codes": ("about.json", "codes of its own", lambda f: shaped(f, own=[99, 5])),
    "content": ("identifiers.parquet", "sha256", lambda f: flip(f / "identifiers.parquet")),
    "a code that the level does not have": ("identifiers.parquet", "no identifiers", lambda f: shaped(f, sizes=[5, 5, 1])),
    "short ones not announced": ("identifiers.parquet", "short", lambda f: shaped(f, ends=True)),
    "items missing": ("identifiers.parquet", "row i", lambda f: rewrite(f / "identifiers.parquet", item=[*range(39), 3])),
    "item beyond": ("latents_map.parquet", "may hold 0 to 39", lambda f: rewrite(f / "latents_map.parquet", item=range(1, 41))),
    "code twice": ("codes_map.parquet", "twice", lambda f: rewrite(f / "codes_map.parquet", code=[0] * 2 * CODES)),
    "level without the code": ("codebooks_map.parquet", "does not have it", narrowed),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_damaged_one_is_refused_by_name(path: Path, name: str) -> None:
    file, says, spoil = CASES[name]
    spoil(path / "identifiers" / "rqvae")
    zoo = Zoo.open(path, warm=True)
    assert list(zoo.tokenizations) == ["letter"] and list(zoo.bundles) == ["alpha"]
    (refusal,) = zoo.refused
    assert refusal.name == "identifiers/rqvae" and refusal.file == file and says in refusal.reason


def test_what_is_read_on_first_use_is_checked_then(path: Path) -> None:
    np.save(path / "identifiers" / "rqvae" / "latents.npy", np.full((40, DIM), np.nan, np.float32))
    seal(path / "identifiers" / "rqvae")
    one = Zoo.open(path, warm=True).tokenizations["rqvae"]
    for _ in range(2):
        with pytest.raises(BundleError, match=r"latents\.npy"):
            _ = one.latents
    assert len(one.learned) == 40


def test_a_link_out_of_the_folder_is_refused(path: Path, tmp_path: Path) -> None:
    outside = shutil.move(path / "identifiers" / "rqvae", tmp_path / "rqvae")
    (path / "identifiers" / "rqvae").symlink_to(outside)
    zoo = Zoo.open(path)
    assert list(zoo.tokenizations) == ["letter"] and "leads out" in zoo.refused[0].reason
