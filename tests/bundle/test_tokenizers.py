"""Tokenizers' identifiers beside the bundles: what is read, and what is refused by name while the rest goes on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from engine.data.identifiers import NONE
from engine.runtime import BundleError, CapabilityError, Zoo
from tests.runtime.bundles import TOYS, flip, linked, make_zoo
from tests.runtime.tokenizations import (
    CODES,
    DIM,
    PROJECTION,
    edit,
    rewrite,
    seal,
    toy_codes,
    write_tokenization,
)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = make_zoo(tmp_path_factory.mktemp("pristine"), TOYS[:1])
    write_tokenization(path, "rqvae")
    write_tokenization(path, "letter", seed=1, order=5)
    return path


@pytest.fixture
def path(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "toys"))


def test_what_it_holds(pristine: Path) -> None:
    zoo = Zoo.open(pristine, warm=True)
    assert list(zoo.tokenizations) == ["letter", "rqvae"] and zoo.refused == [] and list(zoo.bundles) == ["alpha"]
    one = zoo.tokenizations["rqvae"]
    assert np.array_equal(one.identifiers.codes, toy_codes()) and one.identifiers.levels == 3
    assert np.array_equal(one.own, toy_codes()[:, :2])
    assert one.codebooks is not None and one.codebooks.shape == (2, CODES, DIM)
    assert one.latents is not None and one.latents.shape == (40, DIM)
    assert one.plane is not None and one.plane.num_rows == 2 * CODES
    assert one.digest != zoo.tokenizations["letter"].digest


def test_numbers_that_only_count_are_no_codes_of_its_own(path: Path) -> None:
    codes = np.array([[4, NONE], [4, 1], [0, 7], *[[1, 1]] * 37], np.int32)
    write_tokenization(path, "words", codes, own=(5, 2), vectors=False)
    one = Zoo.open(path).tokenizations["words"]
    assert one.own[:3].tolist() == [[4, NONE], [4, 1], [0, NONE]]  # 7 is beyond the level's own two codes
    assert one.codebooks is None and one.latents is None and one.plane is None


def test_the_stamp_tells_of_it(path: Path) -> None:
    before = Zoo.stamp(path)
    write_tokenization(path, "third", seed=2)
    assert Zoo.stamp(path) != before


def test_without_any(tmp_path: Path) -> None:
    assert Zoo.open(make_zoo(tmp_path, TOYS[:1])).tokenizations == {}


def shaped(folder: Path, **changes: object) -> None:
    raw = json.loads((folder / "about.json").read_text())
    seal(folder, shape={**raw["shape"], **changes})


# what is spoiled → the file that is named, a part of the reason, how
EAGER: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "gone": ("about.json", "is missing", lambda f: (f / "about.json").unlink()),
    "no share": ("about.json", "unknown", lambda f: edit(f, unknown=1.01)),
    "no teacher": ("about.json", "teacher", lambda f: edit(f, teacher={"run": "sasrec", "digest": "../.."})),
    "no json": ("about.json", "not valid JSON", lambda f: (f / "about.json").write_text("{")),
    "unknown entry": ("about.json", "hacked", lambda f: edit(f, hacked=1)),
    "newer": ("about.json", "newer Seqscope", lambda f: edit(f, schema_version=3)),
    "a version without its maps": ("about.json", "belong together", lambda f: edit(f, schema_version=2)),
    "maps of the older version": (
        "about.json", "belong together", lambda f: edit(f, codebooks_map=PROJECTION),
    ),
    "another name": ("about.json", "names the tokenizer other", lambda f: edit(f, name="other")),
    "other data": ("about.json", "another dataset", lambda f: edit(f, fingerprint="cd" * 32)),
    "other items": ("about.json", "41 items", lambda f: edit(f, num_items=41)),
    "file out of the folder": (
        "about.json", "is not one of", lambda f: edit(f, files={"../items.parquet": {"sha256": "0" * 64, "bytes": 1}}),
    ),
    "file not listed": ("about.json", "should be", lambda f: seal(f, codebooks=None)),
    "file gone": ("latents.npy", "is missing", lambda f: (f / "latents.npy").unlink()),
    "file longer": ("latents.npy", "bytes", lambda f: (f / "latents.npy").write_bytes(b"x" * 999)),
    "link": ("latents.npy", "is a link", lambda f: linked(f / "latents.npy")),
    "sizes and levels": ("about.json", "3 sizes", lambda f: shaped(f, levels=4)),
    "more own codes than codes": ("about.json", "codes of its own", lambda f: shaped(f, own=[99, 5])),
    "a code that the level does not have": ("identifiers.parquet", "no identifiers", lambda f: shaped(f, sizes=[5, 5, 1])),
    "short ones not announced": ("identifiers.parquet", "short", lambda f: shaped(f, ends=True)),
    "items missing": ("identifiers.parquet", "row i", lambda f: rewrite(f, "identifiers.parquet", item=[*range(39), 3])),
    "code beyond its level on the plane": (
        "codes_map.parquet", "twice", lambda f: rewrite(f, "codes_map.parquet", code=[0] * 2 * CODES),
    ),
    "content": ("identifiers.parquet", "sha256", lambda f: flip(f / "identifiers.parquet")),
}  # fmt: skip


@pytest.mark.parametrize("name", EAGER)
def test_a_damaged_one_is_refused_by_name(path: Path, name: str) -> None:
    file, says, spoil = EAGER[name]
    spoil(path / "identifiers" / "rqvae")
    zoo = Zoo.open(path, warm=True)
    assert list(zoo.tokenizations) == ["letter"] and list(zoo.bundles) == ["alpha"]
    (refusal,) = zoo.refused
    assert refusal.name == "identifiers/rqvae" and refusal.file == file and says in refusal.reason


# --- maps and neighbours


@pytest.fixture
def mapped(path: Path) -> Path:
    """The folder of a third tokenizer, with places of its codes and of what it quantised."""
    return write_tokenization(path, "mapped", seed=2, maps=True)


def test_maps_of_codes_and_of_what_was_quantised(mapped: Path, path: Path) -> None:
    zoo = Zoo.open(path, warm=True)
    assert zoo.refused == []
    one, old = zoo.tokenizations["mapped"], zoo.tokenizations["rqvae"]
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


def test_neighbours_are_those_of_the_latents_and_not_of_the_map(mapped: Path, path: Path) -> None:
    one = Zoo.open(path).tokenizations["mapped"]
    rows = np.load(mapped / "latents.npy").astype(np.float64)
    for item in (0, 17, 39):
        apart = np.linalg.norm(rows - rows[item], axis=1)
        apart[item] = np.inf
        found = one.neighbours(item, 6)
        assert found.items.tolist() == np.argsort(apart, kind="stable")[:6].tolist() and found.measure == "euclidean"
        assert np.allclose(-found.similarity, np.sort(apart)[:6], atol=1e-5)


def narrowed(folder: Path) -> None:
    """Level 2 has a code less, which only the map of all levels still shows."""
    file = folder / "codes_map.parquet"
    pq.write_table(pq.read_table(file).slice(0, 2 * CODES - 1), file)
    shaped(folder, own=[CODES, CODES - 1])


MAPS: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "codes gone": ("codebooks_map.parquet", "is missing", lambda f: (f / "codebooks_map.parquet").unlink()),
    "not listed": ("about.json", "should be", lambda f: seal(f, latents_map=None)),
    "of vectors that are not there": (
        "about.json", "not there", lambda f: [(f / "latents.npy").unlink(), seal(f, latents=None)],
    ),
    "no table": ("latents_map.parquet", "not a readable", lambda f: rewritten(f / "latents_map.parquet", b"PAR1")),
    "no y": ("latents_map.parquet", "column y is missing", lambda f: without(f, "latents_map.parquet", "y")),
    "item twice": ("latents_map.parquet", "twice", lambda f: rewrite(f, "latents_map.parquet", item=[*range(39), 3])),
    "item beyond": ("latents_map.parquet", "may hold 0 to 39", lambda f: rewrite(f, "latents_map.parquet", item=range(1, 41))),
    "nowhere": ("latents_map.parquet", "NaN", lambda f: rewrite(f, "latents_map.parquet", x=[np.nan] * 40)),
    "code twice": ("codebooks_map.parquet", "twice", lambda f: rewrite(f, "codebooks_map.parquet", code=[0] * 2 * CODES)),
    "code beyond": (
        "codebooks_map.parquet", "may hold 0 to 4", lambda f: rewrite(f, "codebooks_map.parquet", code=[*range(9), 5]),
    ),
    "level beyond": ("codebooks_map.parquet", "0 to 1", lambda f: rewrite(f, "codebooks_map.parquet", level=[2] * 2 * CODES)),
    "level without the code": ("codebooks_map.parquet", "does not have it", narrowed),
    "trust beyond numbers": (
        "about.json", "trustworthiness", lambda f: seal(f, latents_map={**PROJECTION, "trustworthiness": "much"}),
    ),
}  # fmt: skip


def rewritten(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    seal(file.parent)


def without(folder: Path, file: str, column: str) -> None:
    pq.write_table(pq.read_table(folder / file).drop_columns([column]), folder / file)
    seal(folder)


@pytest.mark.parametrize("name", MAPS)
def test_a_damaged_map_is_refused_by_name(mapped: Path, path: Path, name: str) -> None:
    file, says, spoil = MAPS[name]
    spoil(mapped)
    zoo = Zoo.open(path, warm=True)
    assert list(zoo.tokenizations) == ["letter", "rqvae"]
    (refusal,) = zoo.refused
    assert refusal.name == "identifiers/mapped" and refusal.file == file and says in refusal.reason


@pytest.mark.parametrize("file", ["codebooks.npy", "latents.npy"])
def test_what_is_read_on_first_use_is_checked_then(path: Path, file: str) -> None:
    np.save(path / "identifiers" / "rqvae" / file, np.full((40, DIM), np.nan, np.float32))
    seal(path / "identifiers" / "rqvae")
    one = Zoo.open(path, warm=True).tokenizations["rqvae"]
    for _ in range(2):
        with pytest.raises(BundleError, match=file):
            _ = one.codebooks, one.latents
    assert len(one.own) == 40


def test_a_link_out_of_the_folder_is_refused(path: Path, tmp_path: Path) -> None:
    outside = shutil.move(path / "identifiers" / "rqvae", tmp_path / "rqvae")
    (path / "identifiers" / "rqvae").symlink_to(outside)
    zoo = Zoo.open(path)
    assert list(zoo.tokenizations) == ["letter"] and "leads out" in zoo.refused[0].reason
