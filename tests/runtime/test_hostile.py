"""Bundles that are damaged, foreign or malicious, one way each: refused by name, file and reason, and the others go on.

Their graphs: test_hostile_onnx.py.
"""

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.runtime import BundleError, QuestionError, Zoo
from tests.runtime.bundles import PARTS, TOYS, flip, linked, seal, side_tables
from tests.runtime.spoil import Cases, Spoil, each, edit, raw, refuses

TOY = TOYS[0]


def entries(**changes: object) -> Spoil:
    return edit(lambda m: m.update(changes))


def nested(levels: int) -> dict:
    return {"a": nested(levels - 1)} if levels else {}


def within(part: str, **changes: object) -> Spoil:
    return edit(lambda m: m[part].update(changes))


def unlisted(file: str) -> Spoil:
    return edit(lambda m: m["files"].pop(file))


def identity(**index: object) -> Spoil:
    index = {"kind": "identity", "geometry": "none"} | index
    return edit(lambda m: m.update(index=index, capabilities=m["capabilities"] | {"neighbours": False}))


def written(content: str | bytes) -> Spoil:
    """As manifest.json."""
    return lambda f: (f / "manifest.json").write_bytes(content if isinstance(content, bytes) else content.encode())


def replaced(before: str, after: str) -> Spoil:
    return lambda f: written((f / "manifest.json").read_text().replace(before, after, 1))(f)


def missing(file: str) -> Spoil:
    return lambda f: (f / file).unlink()


def cut(file: str, count: int) -> Spoil:
    return lambda f: (f / file).write_bytes((f / file).read_bytes()[:-count])


def of_100_megabytes(folder: Path) -> None:
    with (folder / "manifest.json").open("r+b") as stream:
        stream.truncate(100 << 20)


def made_a(make: Callable[[Path], object], file: str = "encoder.onnx") -> Spoil:
    return lambda f: ((f / file).unlink(), make(f / file))


def folder_a_link(folder: Path) -> None:
    shutil.move(folder, folder.parent.parent / "away")
    folder.symlink_to(folder.parent.parent / "away")


def index(array: np.ndarray, **options: bool) -> Spoil:
    return lambda f: (np.save(f / "index.npy", array, **options), seal(f))


def with_number(item: int, column: int, value: float) -> np.ndarray:
    rows = TOY.rows
    rows[item, column] = value
    return rows


def header(text: str, version: bytes = b"\x01\x00", body: bytes = b"\0" * 1120) -> Spoil:
    padded = text.encode().ljust(118)
    length = len(padded).to_bytes(2 if version[0] == 1 else 4, "little")
    return raw("index.npy", b"\x93NUMPY" + version + length + padded + body)


def shaped(shape: str, **more: bytes) -> Spoil:
    return header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}", **more)


def table(file: str, change: Callable[[pa.Table], pa.Table]) -> Spoil:
    return lambda f: (pq.write_table(change(side_tables(TOY)[file]), f / file), seal(f))


def column(file: str, name: str, values: object, kind: pa.DataType | None = None) -> Spoil:
    return table(file, lambda t: t.set_column(t.schema.get_field_index(name), name, pa.array(values, kind)))


DEEP = b"\x93NUMPY\x01\x00" + (9_000).to_bytes(2, "little") + b"(" * 9_000 + b"\0" * 1120
LONG = b"\x93NUMPY\x02\x00" + (1 << 31).to_bytes(4, "little") + b" " * 500
NOISE = b"PAR1" + b"\x00" * 200 + b"PAR1"
CASES: Cases = {
    "manifest.json": {
        "no manifest": ("the file is missing", missing("manifest.json")),
        "manifest no text": ("not valid JSON", written(b"\xff\xfe\x00")),
        "manifest of 100 MB": ("more than the 2,097,152", of_100_megabytes),
        "manifest nested": ("nested deeper than 32", within("training", recipe=nested(100))),
        "manifest nested beyond the stack": ("nested deeper than 32", written("[" * 200_000)),
        "manifest a list": ("not a JSON object", written("[]")),
        "NaN": ("NaN is not a JSON number", edit(lambda m: m["metrics"]["full"].update({"HR@10": float("nan")}))),
        "beyond floats": ("a number that no float holds", replaced('"recipe": {', '"recipe": {"x": [1, 1e999], ')),
        "a key twice": ("a key stands twice", replaced("{", '{"name": "alpha", ')),
        "half a character": ("not valid JSON", entries(summary="\ud800")),
        "a newer version": ("format 8, this one reads 7", entries(schema_version=8, something_new=True)),
        "an unknown entry": ("surprise: Extra inputs", entries(surprise=1)),
        "a number as text": ("num_items: Input should be a valid integer", entries(num_items="40")),
        "another model": ("it names the model beta, its folder alpha", entries(name="beta")),
        "another dataset": ("(40 items, fingerprint cdcdcdcd…; toys has 40, abababab…)", entries(fingerprint="cd" * 32)),
        "another catalogue": ("(41 items, fingerprint abababab…; toys has 40, abababab…)", entries(num_items=41)),
        "an impossible identity": ("an identity index needs encoder.dim = num_items", identity()),
        "attention promised": ("attention.onnx is listed", unlisted("attention.onnx")),
        "no encoder listed": ("encoder.onnx is not listed", unlisted("encoder.onnx")),
        "manifest a link": ("the file is a link", made_a(lambda file: file.symlink_to("/etc/hostname"), "manifest.json")),
        "the folder a link": ("a link that leads out", folder_a_link),
        "parts of other widths": (
            "index.parts have 6, 5 columns, the query has 6", within("index", parts={"a": 6, "b": 5})
        ),
        "gates of more than is read": ("encoder.gates 9 exceeds encoder.max_length 8", within("encoder", gates=9)),
        "filters of different lengths": (
            "weigh different numbers of items", within("encoder", filters=[[1.0, 2.0], [1.0]])
        ),
        "filters of more than is read": ("weigh more items than", within("encoder", filters=[[1.0] * 9])),
    },
    "encoder.onnx": {
        "a pipe": ("not a plain file", made_a(os.mkfifo)),
        "parts that no graph tells apart": ("an output must be called parts, not query", within("index", parts=PARTS)),
    },
    "index.npy": {
        "index tampered with": ("sha256 differs", lambda f: flip(f / "index.npy")),
        "a link": ("the file is a link", lambda f: linked(f / "index.npy")),
        "index a pickle": ("float32 (<f4), not |O", index(np.array([["boom"] * 7] * 40, object), allow_pickle=True)),
        "index a bare pickle": ("not a NumPy file", raw("index.npy", pickle.dumps([1, 2, 3]))),
        "index the other way round": ("float32 (<f4), not >f4", index(TOY.rows.astype(">f4"))),
        "index by columns": ("C order", index(np.asfortranarray(TOY.rows))),
        "index of a giant": ("must be (40, 7), not (1000000000000, 7)", shaped("(1000000000000, 7)")),
        "shape no number": ("(40, 7), not (40, True)", shaped("(40, True)")),
        "something behind": ("where its header announces", shaped("(40, 7)", body=b"\0" * 1121)),
        "header of code": ("the header cannot be read", header("__import__('os').abort()")),
        "header no dict": ("the header cannot be read", header("[1, 2]")),
        "header deep": ("the header cannot be read", raw("index.npy", DEEP)),
        "header long": ("the header is longer", raw("index.npy", LONG)),
        "header cut off": ("the file ends early", raw("index.npy", b"\x93NUMPY\x01\x00\x76\x00{'descr'")),
        "unknown version of NumPy's": ("an unknown version", header("{}", b"\x09\x00")),
        "NaN in a row": ("the row of item 17 holds NaN or infinity", index(with_number(17, 2, np.nan))),
    },
    "ranks.parquet": {
        "file cut off": ("the manifest says", cut("ranks.parquet", 1)),
        "table of noise": ("not a readable Parquet file", raw("ranks.parquet", NOISE)),
        "no column": (
            "the column protocol is missing", table("ranks.parquet", lambda before: before.drop_columns(["protocol"]))
        ),
        "another type": ("user must be int32, not string", column("ranks.parquet", "user", ["0", "1", "2", "3"])),
        "an unknown item": (
            "the column target holds 1 to 40; it may hold 0 to 39", column("ranks.parquet", "target", [1, 2, 3, 40])
        ),
        "NaN in a table": (
            "the column rank holds NaN or infinity", column("ranks.parquet", "rank", [1.0, float("nan"), 2.0, 2.0])
        ),
        "an empty cell": (
            "the column user has 1 empty cells", column("ranks.parquet", "user", [0, None, 2, 3], pa.int32())
        ),
    },
    "exposure.parquet": {
        "beyond its type": ("the column k holds numbers that int32 cannot", column("exposure.parquet", "k", [10, 2**40])),
    },
    "map.parquet": {
        "an item twice on the map": (
            "an item stands on the map twice", column("map.parquet", "item", [0, 0, *range(2, 40)])
        ),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ["../beta/index.npy", "/etc/passwd", "x.pkl", "index.npy\n", "C:x.npy"])
def test_names_that_lead_out(path: Path, name: str) -> None:
    spoil = edit(lambda raw: raw["files"].update({name: raw["files"]["index.npy"]}))
    refuses(path, "manifest.json", "is not allowed in a bundle", spoil)


@each(CASES)
def test_refused(path: Path, file: str, says: str, spoil: Spoil) -> None:
    refuses(path, file, says, spoil)


def exposure(protocol: pa.Array) -> Spoil:
    ones = pa.array(np.ones(len(protocol), np.int32))
    columns = {"protocol": protocol, "k": ones, "item": ones, "count": ones}
    return lambda f: (pq.write_table(pa.table(columns), f / "exposure.parquet"), seal(f))


def test_a_table_that_unfolds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.bundle.tables.CELLS", 100_000)
    spoil = exposure(pa.array(["full"] * 1_000_000).dictionary_encode())  # a few hundred bytes
    refuses(path, "exposure.parquet", "unfolds to more than 100,000 cells", spoil)


def test_a_text_that_unfolds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.bundle.tables.TEXT_BYTES", 1_000_000)
    spoil = exposure(pa.DictionaryArray.from_arrays(pa.array(np.zeros(5_000, np.int32)), ["x" * 10_000]))
    refuses(path, "exposure.parquet", "the texts of the column protocol unfold to 50,000,000 bytes", spoil)
    items = pq.read_table(path / "items.parquet")
    texts = pa.array(["x" * 100_000] * len(items))
    tags = pa.ListArray.from_arrays(pa.array(range(len(items) + 1), pa.int32()), texts)
    pq.write_table(items.append_column("tags", tags), path / "items.parquet")
    with pytest.raises(BundleError, match="the texts of the column tags unfold to 4,000,000 bytes"):
        Zoo.open(path)
    for name in "abc":
        items = items.append_column(name, pa.array(["x" * 20_000] * len(items)))
    pq.write_table(items, path / "items.parquet")
    with pytest.raises(BundleError, match="those of all columns to 2,40"):
        Zoo.open(path)


def test_what_a_library_says_is_for_the_log(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (path / "alpha/manifest.json").write_text('{"title": }')
    raw("ranks.parquet", NOISE)(path / "beta")
    assert {refusal.file: refusal.reason for refusal in Zoo.open(path).refused} == {
        "manifest.json": "not valid JSON (line 1, column 11)",
        "ranks.parquet": "not a readable Parquet file",
    }
    assert "Expecting value" in caplog.text and "thrift" in caplog.text


@pytest.mark.parametrize("file", ["encoder.onnx", "index.npy", "attention.onnx", "ranks.parquet"])
def test_large_files_are_checked_before_their_first_use(path: Path, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("bundle", "retrieval", "sessions"):
        monkeypatch.setattr(f"engine.runtime.{module}.EAGER_BYTES", 0)
    flip(path / "alpha" / file, 150)
    zoo = Zoo.open(path)
    bundle = zoo.bundles["alpha"]
    uses = {
        "encoder.onnx": lambda: bundle.scores([1]),
        "index.npy": lambda: bundle.scores([1]),
        "attention.onnx": lambda: bundle.attention([1]),
        "ranks.parquet": bundle.ranks_table,
    }
    for _ in range(2):
        with pytest.raises(BundleError, match="sha256 differs"):
            uses[file]()
    assert len(zoo.bundles["beta"].recommend_one([1], 3).items) == 3
    assert bundle.map_table() is not None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("geometry", ["cosine", "euclidean"])
def test_numbers_beyond_float32(path: Path, geometry: str) -> None:
    rows = np.full_like(TOY.rows, 3e38)
    rows[1::2] *= -1
    np.save(path / "alpha" / "index.npy", rows)
    seal(path / "alpha", index={"kind": "dense", "geometry": geometry})
    bundle = Zoo.open(path).bundles["alpha"]
    for ask in (lambda: bundle.scores([1, 2]), lambda: bundle.leave_one_out([1, 2], 3)):
        with pytest.raises(BundleError, match="exceed a float32"):
            ask()
    with pytest.raises(QuestionError, match="too large"):
        bundle.neighbours(1, 2)
