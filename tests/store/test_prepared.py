"""Catalogues of many items: prepared once on the disk, the same answers as from memory, and little memory."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app import home
from app.store import prepared
from app.store.attributes import Among, Between
from app.store.catalogue import DATABASE, Catalogue
from engine.bundle import items
from engine.errors import SeqscopeError
from engine.runtime import Zoo
from tests.large import make

ODD = ["Amélie", "기생충", "أفلام", "It's a_b", "8½", "Der blaue Engel ß", "100% Wolf", "", "\u001c a\tb "]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of 300 items."""
    path = make(tmp_path_factory.mktemp("made") / "shop", 300, words=12)
    table = pq.read_table(path / items.FILE)
    titles = ODD + table["title"].to_pylist()[len(ODD) :]
    table = table.set_column(2, "title", pa.array(titles)).append_column(
        "moods", pa.array(["dark|slow", "light", None] * 100)
    )
    pq.write_table(table, path / items.FILE)
    return path


@pytest.fixture(scope="module")
def made_ready(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is prepared of it."""
    path = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(items, "FEW", 100)
        prepared.prepare(made, path)
    return path


@pytest.fixture
def exports(made: Path, made_ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, prepared. Its items are many here; what else is prepared is so in this process."""
    monkeypatch.setenv("SEQSCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(items, "FEW", 100)
    monkeypatch.setattr(prepared, "_run", prepared.prepare)
    path = shutil.copytree(made, tmp_path / "exports" / "shop")
    shutil.copytree(made_ready, prepared.place(path), dirs_exist_ok=True)
    return path


def answers(catalogue: Catalogue, word: str) -> list[object]:
    """Of everything that a page asks."""
    texts = ("amelie", "기생", "a b", "100%", "engel ss", "space", word, word[:-1] + "x", f"{word} new", "qqqq", "cafe")
    filters = {"genres": Among(("Space",)), "moods": Among(("slow", "light")), "year": Between(1960, 1999)}
    pages = [catalogue.page(catalogue.meant(text), limit=7, offset=offset) for text in texts for offset in (0, 3)]
    pages += [catalogue.page(sort=sort, descending=False) for sort in ("title", "year", "popularity")]
    pages += [catalogue.page("space", filters), catalogue.page(limit=1_000)]
    return [
        [catalogue.search(catalogue.meant(text)) for text in texts],
        [(page.rows.to_pylist(), page.total) for page in pages],
        [catalogue.counts("moods", word), catalogue.counts("genres", "", filters), catalogue.steps("year", 10, word)],
        catalogue.facets,
        catalogue.searched,
    ]


def test_the_answers_are_those_from_memory(exports: Path) -> None:
    opened, held = prepared.open_(exports), items.hold(exports)
    word = held.titles[20].split()[1]
    assert answers(opened.catalogue, word) == answers(Catalogue(held.table), word)
    assert opened.catalogue.items["moods"].to_pylist() == Catalogue(held.table).items["moods"].to_pylist()
    models = Zoo.open(exports, items=opened.items)
    assert models.items.equals(held.table)
    assert [models.position(item_id) for item_id in held.ids] == list(range(300))
    assert [models.position(item_id) for item_id in ("", "item-", "item-300", "~", "\ud800")] == [None] * 5
    assert models.rows([250, 3, 250]).to_pylist() == held.table.take([250, 3, 250]).to_pylist()


def test_an_item_without_end_is_not_held_in_memory(tmp_path: Path) -> None:
    path = make(tmp_path / "shop", 50)
    assert not items.are_many(path)
    table = pq.read_table(path / items.FILE)
    pq.write_table(table.append_column("notes", pa.array(["x" * 1_000_000] * 50)), path / items.FILE)
    assert (path / items.FILE).stat().st_size < 1_000_000 and items.are_many(path)
    (path / items.FILE).unlink()
    os.mkfifo(path / items.FILE)
    assert not items.are_many(path)  # nor is it waited for


@pytest.mark.parametrize("fault", ["twice", "order"])
def test_what_is_no_catalogue_is_refused_in_words(exports: Path, fault: str) -> None:
    table = pq.read_table(exports / items.FILE)
    ids = ["twice", "twice", *table["item_id"].to_pylist()[2:]]
    table = table.set_column(1, "item_id", pa.array(ids)) if fault == "twice" else table.take(list(range(299, -1, -1)))
    pq.write_table(table, exports / items.FILE)
    with pytest.raises(SeqscopeError, match={"twice": "stands twice", "order": "row i must be item i"}[fault]):
        prepared.open_(exports)


def shorten(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def scramble(path: Path) -> None:
    """As long as before."""
    path.write_bytes(b"\xff" * path.stat().st_size)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        (items.MAPPED, shorten),
        (items.MAPPED, scramble),
        (items.BY_ID, scramble),
        (DATABASE, scramble),
    ],
)
def test_what_is_damaged_is_made_anew(exports: Path, name: str, damage: Callable[[Path], None]) -> None:
    hits = prepared.open_(exports).catalogue.search("amelie")
    damage(next(prepared.place(exports).glob(f"*/{name}")))
    assert prepared.open_(exports).catalogue.search("amelie") == hits


def test_a_block_that_is_damaged_is_found_when_it_is_read(exports: Path) -> None:
    first = prepared.open_(exports).catalogue.search("amelie")
    (path,) = prepared.place(exports).glob(f"*/{DATABASE}")
    content = path.read_bytes()
    assert b"amelie" in content
    path.write_bytes(content.replace(b"amelie", b"emilie"))
    catalogue = prepared.open_(exports).catalogue
    with pytest.raises(SeqscopeError, match="made anew"):
        catalogue.search("emilie")
    assert catalogue.damaged and prepared.open_(exports).catalogue.search("amelie") == first


def test_texts_that_overlap_are_refused_before_they_are_read(tmp_path: Path) -> None:
    offsets = pa.array([0, 5, 2, 6], pa.int32()).buffers()[1]
    texts = pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"abcdef"))
    with pa.ipc.new_file(tmp_path / "t.arrow", pa.schema([("title", pa.string())])) as writer:
        writer.write_table(pa.table({"title": texts}))
    with pytest.raises(ValueError, match="overlap"):
        items.mapped(tmp_path / "t.arrow")


def test_it_is_prepared_once_anew_for_other_items_and_goes_with_the_next_when_its_dataset_is_gone(
    exports: Path,
) -> None:
    prepared.open_(exports)
    (before,) = prepared.place(exports).glob("*/")
    stamp = before.stat().st_mtime_ns
    prepared.open_(exports)
    assert before.stat().st_mtime_ns == stamp
    pq.write_table(pq.read_table(exports / items.FILE).drop(["brand"]), exports / items.FILE)
    assert "brand" not in prepared.open_(exports).catalogue.columns
    (after,) = prepared.place(exports).glob("*/")
    assert after != before
    prepared.open_(exports)
    gone, other = prepared.place(exports), exports.rename(exports.with_name("other"))
    prepared.open_(other)
    assert not gone.exists() and any(prepared.place(other).glob("*/"))


def test_nothing_is_written_to_exports_and_a_visitors_lies_with_their_dataset(
    exports: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    there = sorted(exports.rglob("*"))
    (tmp_path / "no-folder").write_text("")
    monkeypatch.setenv("SEQSCOPE_HOME", str(tmp_path / "no-folder" / "home"))
    assert prepared.open_(exports).catalogue.search("amelie") and sorted(exports.rglob("*")) == there
    monkeypatch.setenv("SEQSCOPE_HOME", str(tmp_path / "home"))
    theirs = home.Home(tmp_path / "home").dataset("b" + "a" * 32, "a" * 16)
    with pytest.raises(OSError):
        prepared.place(theirs.exports)  # it was deleted meanwhile: nothing brings it back
    theirs.path.mkdir(parents=True)
    assert prepared.place(theirs.exports).is_relative_to(theirs.cache)


def test_the_database_on_the_disk_is_locked(exports: Path) -> None:
    con = prepared.open_(exports).catalogue._con
    for sql in ("delete from catalogue", "select * from read_text('/etc/passwd')", "set memory_limit = '8GB'"):
        with pytest.raises(duckdb.Error):
            con.execute(sql).fetchall()


MEASURE = """
import sys
from pathlib import Path
from app import zoo

def memory():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]) / 1000

small, large = sys.argv[1:]
zoo._OPEN.get(small).catalogue.page("new")
before = memory()
models, catalogue = zoo._OPEN.get(large)
rows = catalogue.page("space new").rows
catalogue.search(rows["title"][0].as_py()[:-1] + "x")
catalogue.page(sort="title", offset=20_000)
models.position("item-27777"), models.titles[20_000]
print(memory() - before)
"""


@pytest.mark.linux
@pytest.mark.long
def test_a_large_catalogue_takes_little_memory(tmp_path: Path, root: Path) -> None:
    """In processes of their own, as a server does it."""
    small, large = make(tmp_path / "small", 100), make(tmp_path / "large", 30_000, words=60)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MEASURE, str(small), str(large)],
        cwd=root, env={**os.environ, "SEQSCOPE_HOME": str(tmp_path / "home")}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert float(done.stdout.split()[-1]) < 75  # MB; in memory they take 110
