"""What is taken of a ZIP archive, and what is refused with one message."""

import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from app.uploads import archive, files
from app.uploads.archive import Unpacked
from engine.errors import Refused
from engine.tabular.reading import MB, FileKind
from tests.uploads.conftest import ITEMS, LIMITS, LOG, packed

KINDS: tuple[FileKind, ...] = ("catalogue", "log")
SESSIONS = "user,item\nu1,i1\nu1,i2\nu1,i3\nu2,i1\nu2,i2\nu2,i3\n"


def unpack(folder: Path, content: bytes, kinds: tuple[FileKind, ...] = KINDS) -> Unpacked:
    path = folder / "upload.zip"
    path.write_bytes(content)
    return archive.unpack(folder, path, kinds, LIMITS, lambda done, words: None)


@pytest.mark.parametrize(
    ("names", "catalogue", "log"),
    [
        (("ml-100k/ml-100k.inter", "ml-100k/ml-100k.item", "ml-100k/ml-100k.user"), "ml-100k.item", "ml-100k.inter"),
        (
            ("ml/movies.csv", "ml/ratings.csv", "ml/tags.csv", "ml/links.csv", "ml/README.txt"),
            "movies.csv",
            "ratings.csv",
        ),
        (("Beauty.item.json", "Beauty.inter.json", "Beauty.index.json"), "Beauty.item.json", "Beauty.inter.json"),
        (("catalogue.csv", "items_log.csv", "__MACOSX/._items_log.csv"), "catalogue.csv", "items_log.csv"),
    ],
)
def test_files_are_told_by_their_names(tmp_path: Path, names: tuple[str, ...], catalogue: str, log: str) -> None:
    unpacked = unpack(tmp_path, packed({name: f"content of {name.rpartition('/')[2]}" for name in names}))
    assert unpacked.names == {"catalogue": catalogue, "log": log}
    assert (tmp_path / "catalogue").read_text() == f"content of {catalogue}"
    assert (tmp_path / "log").read_text() == f"content of {log}"


def test_files_without_telling_names_are_looked_into_and_a_single_one_is_what_it_was_uploaded_as(
    tmp_path: Path,
) -> None:
    unpacked = unpack(tmp_path, packed({"a.csv": ITEMS, "b.csv": SESSIONS, "c.csv": "neither\n"}))
    assert unpacked.names == {"catalogue": "a.csv", "log": "b.csv"} and unpacked.left_out == ("c.csv",)
    assert unpack(tmp_path, packed({"x.csv": LOG}), ("log",)).names == {"log": "x.csv"}


def test_names_are_no_paths(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    unpack(inner, packed({"../../item.csv": ITEMS, "/etc/log.csv": LOG}))
    assert {path.name for path in tmp_path.iterdir()} == {"inner"}
    assert {path.name for path in inner.iterdir()} == {"upload.zip", "catalogue", "log"}


def _locked() -> bytes:
    content = bytearray(packed({"items.csv": ITEMS}))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + at] |= 1
    return bytes(content)


def _lying() -> bytes:
    """Its directory says that 40 MB of zeros are ten bytes."""
    content = bytearray(packed({"items.csv": b"0" * (40 * MB)}))
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = content.index(mark) + at
        content[place : place + 4] = struct.pack("<I", 10)
    return bytes(content)


def _misplaced() -> bytes:
    """Its end says that the directory begins later than it does, so that files would begin before the archive."""
    content = bytearray(packed({"items.csv": ITEMS}))
    place = content.index(b"PK\x05\x06") + 16
    content[place : place + 4] = struct.pack("<I", int.from_bytes(content[place : place + 4], "little") + 100)
    return bytes(content)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: packed({"items.csv": ITEMS})[:-30], "damaged"),
        (lambda: packed({}), "is empty"),
        (lambda: packed({"README.md": "Nothing"}), "no catalogue and no log"),
        (lambda: packed({"[Content_Types].xml": "<x/>", "xl/workbook.xml": "<x/>"}), "Excel"),
        (
            lambda: packed({"train_log.csv": LOG, "test_log.csv": LOG}),
            "several files that may be the log: train_log.csv, test_log.csv. Put their rows into one file",
        ),
        (lambda: packed({"items.csv": packed({"items.csv": ITEMS})}), "an archive in the archive"),
        (lambda: packed({f"{n}.csv": "" for n in range(1_001)}), "1,001 files"),
        (lambda: packed({"items.csv": b"0" * (40 * MB)}), "grows to 40 MB"),
        (_locked, "password"),
        (_lying, "damaged|grows"),
        (_misplaced, "damaged"),
    ],
    ids=["cut", "no file", "no data", "Excel", "two logs", "nested", "many", "bomb", "locked", "lying", "misplaced"],
)
def test_what_is_refused(tmp_path: Path, made: Callable[[], bytes], words: str) -> None:
    content = made()  # here, not where every worker collects: many megabytes of zeros are packed
    with pytest.raises(Refused, match=words):
        unpack(tmp_path, content)


def test_an_empty_one_is_known_as_an_archive(tmp_path: Path) -> None:
    """It is nothing but its end; read as lines, it would be said to lack columns."""
    (tmp_path / "upload.zip").write_bytes(packed({}))
    assert archive.is_archive(tmp_path / "upload.zip")


def test_another_method_is_named(tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_LZMA) as file:
        file.writestr("items.csv", ITEMS)
    with pytest.raises(Refused, match="deflate"):
        unpack(tmp_path, content.getvalue())


def test_what_was_unpacked_takes_the_place_of_the_archive(tmp_path: Path) -> None:
    codes = {"0": ["<a_1>"]}
    letter = {"b.item.json": {"0": {"title": "A"}}, "b.inter.json": {"u": [0]}, "b.index.json": codes}
    files.keep(tmp_path, "catalogue", packed({name: json.dumps(content) for name, content in letter.items()}), LIMITS)
    assert files.is_archive(tmp_path, "catalogue")
    unpacked = files.unpack(tmp_path, "catalogue", KINDS, LIMITS)
    assert unpacked.names == {"catalogue": "b.item.json", "log": "b.inter.json"}
    assert unpacked.index == "b.index.json" and not unpacked.left_out
    assert not files.is_archive(tmp_path, "catalogue")
    assert len(list((tmp_path / "upload").iterdir())) == 2
    assert json.loads((tmp_path / "index.json").read_text("utf-8")) == codes  # where the jobs of a dataset look for it
    files.forget(tmp_path, ["catalogue"])
    assert not (tmp_path / "index.json").exists()


def test_of_several_semantic_ids_none_is_taken(tmp_path: Path) -> None:
    content = {"items.csv": ITEMS, "a.index.json": "{}", "b.index.json": "{}"}
    unpacked = unpack(tmp_path, packed(content))
    assert not unpacked.index and unpacked.left_out == ("a.index.json", "b.index.json")
