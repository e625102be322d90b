"""Bundles that are damaged, foreign or malicious, one way each: refused by name, file and reason, and the others go on."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from onnx import TensorProto, helper, numpy_helper

from engine.runtime import BundleError, Zoo
from tests.runtime.bundles import (
    PARTS,
    TOYS,
    Graph,
    attention_graph,
    encoder_graph,
    flip,
    linked,
    make_zoo,
    seal,
    side_tables,
    sized,
    with_gates,
    with_parts,
)

TOY = TOYS[0]
Spoil = Callable[[Path], object]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_zoo(tmp_path_factory.mktemp("pristine"), TOYS[:2])


# --- ways to spoil a bundle's folder


def entries(**changes: object) -> Spoil:
    return edit(lambda raw: raw.update(changes))


def edit(change: Callable[[dict], object]) -> Spoil:
    def spoil(folder: Path) -> None:
        raw = json.loads((folder / "manifest.json").read_text())
        change(raw)
        (folder / "manifest.json").write_text(json.dumps(raw))

    return spoil


def replaced(before: str, after: str) -> Spoil:
    return lambda f: (f / "manifest.json").write_text((f / "manifest.json").read_text().replace(before, after, 1))


def nested(levels: int) -> dict:
    return {"a": nested(levels - 1)} if levels else {}


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


def raw(file: str, content: bytes) -> Spoil:
    return lambda f: ((f / file).write_bytes(content), seal(f))


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


DEEP = b"\x93NUMPY\x01\x00" + (9_000).to_bytes(2, "little") + b"(" * 9_000 + b"\0" * 1120
LONG = b"\x93NUMPY\x02\x00" + (1 << 31).to_bytes(4, "little") + b" " * 500


def graph(folder: Path, model: onnx.ModelProto, file: str = "encoder.onnx") -> None:
    (folder / file).write_bytes(model.SerializeToString())
    seal(folder)


def encoder(change: Callable[[onnx.ModelProto], object]) -> Spoil:
    def spoil(folder: Path) -> None:
        model = encoder_graph(TOY)
        change(model)
        graph(folder, model)

    return spoil


def outside(tensor: onnx.TensorProto) -> None:
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "../../../../etc/passwd"
    tensor.ClearField("raw_data")


def constant_elsewhere(model: onnx.ModelProto) -> None:
    node = model.graph.node.add(op_type="Constant", output=["c"])
    attribute = node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
    attribute.t.CopyFrom(model.graph.initializer[0])
    outside(attribute.t)


def branch_elsewhere(model: onnx.ModelProto) -> None:
    node = model.graph.node.add(op_type="If", output=["c"])
    attribute = node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH)
    tensor = attribute.g.initializer.add()
    tensor.CopyFrom(model.graph.initializer[0])
    outside(tensor)


def function_elsewhere(model: onnx.ModelProto) -> None:
    node = model.functions.add(name="f", domain="d").node.add(op_type="Constant")
    attribute = node.attribute.add(name="sparse_value", type=onnx.AttributeProto.SPARSE_TENSOR)
    attribute.sparse_tensor.values.CopyFrom(model.graph.initializer[0])
    outside(attribute.sparse_tensor.values)


def nested_branches(model: onnx.ModelProto) -> None:
    inner = model.graph
    for _ in range(40):
        node = inner.node.add(op_type="If", output=["c"])
        inner = node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g


def items(kind: int, shape: list[str | int], name: str = "items") -> Callable[[onnx.ModelProto], object]:
    return lambda model: model.graph.input[0].CopyFrom(helper.make_tensor_value_info(name, kind, shape))


def output(name: str, kind: int, shape: list[str | int]) -> Callable[[onnx.ModelProto], object]:
    return lambda model: model.graph.output[0].CopyFrom(helper.make_tensor_value_info(name, kind, shape))


def attention_of_another_rank(folder: Path) -> None:
    model = attention_graph(TOY)
    output("attention", TensorProto.FLOAT, ["b", 2, "p", "p"])(model)
    graph(folder, model, "attention.onnx")


def refer(
    file: str = "weights.npy", shape: Callable[[list[int]], list[int]] = list, offset: int = 0, then: Spoil = bool
) -> Spoil:
    """The first tensor of the encoder lies in another file of the bundle; `shape` spoils its shape."""

    def spoil(folder: Path) -> None:
        model = encoder_graph(TOY)
        tensor = model.graph.initializer[0]
        length = len(numpy_helper.to_array(tensor).tobytes())
        np.save(folder / "weights.npy", np.zeros(length, np.uint8))
        for field in ("raw_data", "float_data", "int64_data", "int32_data"):
            tensor.ClearField(field)  # type: ignore[arg-type]
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", file), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
        dims = shape(list(tensor.dims))
        del tensor.dims[:]
        tensor.dims.extend(dims)
        (folder / "encoder.onnx").write_bytes(model.SerializeToString())
        seal(folder, schema_version=5)
        then(folder)

    return spoil


def table(file: str, change: Callable[[pa.Table], pa.Table]) -> Spoil:
    return lambda f: (pq.write_table(change(side_tables(TOY)[file]), f / file), seal(f))


def column(file: str, name: str, values: object, kind: pa.DataType | None = None) -> Spoil:
    return table(file, lambda t: t.set_column(t.schema.get_field_index(name), name, pa.array(values, kind)))


NOISE = b"PAR1" + b"\x00" * 200 + b"PAR1"
last_item_alone = encoder(items(TensorProto.INT64, ["batch", 1]))

# name → the file that is named, a part of the reason, and the way to spoil the folder of "alpha"
CASES: dict[str, tuple[str, str, Spoil]] = {
    "no manifest": ("manifest.json", "the file is missing", lambda f: (f / "manifest.json").unlink()),
    "manifest cut off": ("manifest.json", "not valid JSON", cut("manifest.json", 40)),
    "manifest no text": ("manifest.json", "not valid JSON", lambda f: (f / "manifest.json").write_bytes(b"\xff\xfe\x00")),
    "manifest of 100 MB": ("manifest.json", "more than the 2,097,152", of_100_megabytes),
    "manifest nested": ("manifest.json", "nested deeper than 32", edit(lambda m: m["training"].update(recipe=nested(100)))),
    "manifest nested beyond the stack": (
        "manifest.json", "nested deeper than 32", lambda f: (f / "manifest.json").write_text("[" * 200_000)
    ),
    "manifest a list": ("manifest.json", "not a JSON object", lambda f: (f / "manifest.json").write_text("[]")),
    "NaN": (
        "manifest.json", "NaN is not a JSON number", edit(lambda m: m["metrics"]["full"].update({"HR@10": float("nan")}))
    ),
    "beyond floats": ("manifest.json", "metrics.full.HR@10", replaced('"HR@10": 0.5', '"HR@10": 1e999')),
    "a key twice": ("manifest.json", "a key stands twice", replaced("{", '{"name": "alpha", ')),
    "half a character": ("manifest.json", "not valid JSON", entries(summary="\ud800")),
    "a newer version": ("manifest.json", "format 8, this one reads 7", entries(schema_version=8, something_new=True)),
    "no version": ("manifest.json", "schema_version", entries(schema_version="1")),
    "an unknown entry": ("manifest.json", "surprise: Extra inputs", entries(surprise=1)),
    "a number as text": ("manifest.json", "num_items: Input should be a valid integer", entries(num_items="40")),
    "another model": ("manifest.json", "it names the model beta, its folder alpha", entries(name="beta")),
    "another dataset": (
        "manifest.json", "fingerprint cdcdcdcd… where toys has abababab…", entries(fingerprint="cd" * 32)
    ),
    "another catalogue": ("manifest.json", "a catalogue of 41 items; toys has 40", entries(num_items=41)),
    "an impossible identity": (
        "manifest.json",
        "an identity index needs encoder.dim = num_items",
        edit(lambda m: m.update(
            index={"kind": "identity", "geometry": "none"}, capabilities=m["capabilities"] | {"neighbours": False}
        )),
    ),
    "attention promised": ("manifest.json", "attention.onnx is listed", edit(lambda m: m["files"].pop("attention.onnx"))),
    "no encoder listed": ("manifest.json", "encoder.onnx is not listed", edit(lambda m: m["files"].pop("encoder.onnx"))),
    # --- files as such
    "file missing": ("index.npy", "the file is missing", lambda f: (f / "index.npy").unlink()),
    "file cut off": ("ranks.parquet", "the manifest says", cut("ranks.parquet", 1)),
    "index tampered with": ("index.npy", "sha256 differs", lambda f: flip(f / "index.npy")),
    "encoder tampered with": ("encoder.onnx", "sha256 differs", lambda f: flip(f / "encoder.onnx", 300)),
    "table tampered with": ("map.parquet", "sha256 differs", lambda f: flip(f / "map.parquet", 100)),
    "a link": ("index.npy", "the file is a link", lambda f: linked(f / "index.npy")),
    "manifest a link": (
        "manifest.json", "the file is a link", made_a(lambda file: file.symlink_to("/etc/hostname"), "manifest.json")
    ),
    "a folder": ("encoder.onnx", "not a plain file", made_a(Path.mkdir)),
    "a pipe": ("encoder.onnx", "not a plain file", made_a(os.mkfifo)),
    "the folder a link": ("manifest.json", "a link that leads out", folder_a_link),
    # --- index.npy
    "index a pickle": ("index.npy", "float32 (<f4), not |O", index(np.array([["boom"] * 7] * 40, object), allow_pickle=True)),
    "index a bare pickle": ("index.npy", "not a NumPy file", raw("index.npy", pickle.dumps([1, 2, 3]))),
    "index of doubles": ("index.npy", "float32 (<f4), not <f8", index(TOY.rows.astype(np.float64))),
    "index the other way round": ("index.npy", "float32 (<f4), not >f4", index(TOY.rows.astype(">f4"))),
    "index by columns": ("index.npy", "C order", index(np.asfortranarray(TOY.rows))),
    "a row short": ("index.npy", "the shape must be (40, 7), not (39, 7)", index(TOY.rows[:-1])),
    "no bias": ("index.npy", "the shape must be (40, 7), not (40, 6)", index(TOY.rows[:, :-1].copy())),
    "index of a giant": (
        "index.npy",
        "the shape must be (40, 7), not (1000000000000, 7)",
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 7)}"),
    ),
    "something behind": (
        "index.npy",
        "where its header announces",
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (40, 7)}", body=b"\0" * 1121),
    ),
    "header of code": ("index.npy", "the header cannot be read", header("__import__('os').abort()")),
    "header no dict": ("index.npy", "the header cannot be read", header("[1, 2]")),
    "header deep": ("index.npy", "the header cannot be read", raw("index.npy", DEEP)),
    "header long": ("index.npy", "the header is longer", raw("index.npy", LONG)),
    "header cut off": ("index.npy", "the file ends early", raw("index.npy", b"\x93NUMPY\x01\x00\x76\x00{'descr'")),
    "unknown version of NumPy's": ("index.npy", "an unknown version", header("{}", b"\x09\x00")),
    "shape no number": (
        "index.npy",
        "(40, 7), not (40, True)",
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (40, True)}"),
    ),
    "NaN in a row": ("index.npy", "the row of item 17 holds NaN or infinity", index(with_number(17, 2, np.nan))),
    "infinite bias": ("index.npy", "the row of item 39 holds NaN or infinity", index(with_number(39, -1, -np.inf))),
    # --- graphs
    "weights elsewhere": ("encoder.onnx", "weights in another file", encoder(lambda m: outside(m.graph.initializer[0]))),
    "constant elsewhere": ("encoder.onnx", "weights in another file", encoder(constant_elsewhere)),
    "branch elsewhere": ("encoder.onnx", "weights in another file", encoder(branch_elsewhere)),
    "function elsewhere": ("encoder.onnx", "weights in another file", encoder(function_elsewhere)),
    "weights of another name": ("encoder.onnx", "weights in another file", refer("map.parquet")),
    "weights beyond the end": ("encoder.onnx", "beyond the end of weights.npy", refer(offset=129)),
    "weights of another size": (
        "encoder.onnx", "bytes of weights.npy", refer(shape=lambda shape: [*shape, 1 << 40])
    ),
    "weights from a negative place": ("encoder.onnx", "does not say which part", refer(offset=-8)),
    "weights that are not listed": (
        "encoder.onnx", "weights.npy, which the bundle lacks", refer(then=lambda f: ((f / "weights.npy").unlink(), seal(f)))
    ),
    "weights tampered with": ("weights.npy", "sha256 differs", refer(then=lambda f: flip(f / "weights.npy"))),
    "weights of an old version": (
        "manifest.json", "weights.npy belongs to schema_version 5", refer(then=lambda f: seal(f, schema_version=1))
    ),
    "compiled engine": (
        "encoder.onnx",
        "an engine compiled elsewhere",
        encoder(lambda m: m.graph.node.add(op_type="EPContext", domain="com.microsoft", output=["c"])),
    ),
    "nested branches": ("encoder.onnx", "nested deeper than", encoder(nested_branches)),
    "another input": (
        "encoder.onnx",
        "the one input must be called items, not history",
        encoder(items(TensorProto.INT64, ["batch", "length"], "history")),
    ),
    "a second input": (
        "encoder.onnx",
        "the one input must be called items, not items, users",
        encoder(lambda m: m.graph.input.append(helper.make_tensor_value_info("users", TensorProto.INT64, ["batch"]))),
    ),
    "another output": (
        "encoder.onnx",
        "an output must be called query, not scores",
        encoder(output("scores", TensorProto.FLOAT, ["batch", 6])),
    ),
    "other numbers": ("encoder.onnx", "input items must be int64", encoder(items(TensorProto.INT32, ["batch", "length"]))),
    "one length": (
        "encoder.onnx", "any batch and length, not [any, 8]", encoder(items(TensorProto.INT64, ["batch", 8]))
    ),
    "the last item alone": ("encoder.onnx", "any batch and length, not [any, 1]", last_item_alone),
    "another rank": (
        "encoder.onnx", "input items must have 2 dimensions, not 1", encoder(items(TensorProto.INT64, ["length"]))
    ),
    "doubles": (
        "encoder.onnx", "output query must be float32", encoder(output("query", TensorProto.DOUBLE, ["batch", 6]))
    ),
    "another width": (
        "encoder.onnx", "output query must be [any, 6], not [any, 5]", lambda f: graph(f, encoder_graph(sized(TOY, dim=5)))
    ),
    "parts of other widths": (
        "manifest.json",
        "index.parts have 6, 5 columns, the query has 6",
        edit(lambda m: m["index"].update(parts={"a": 6, "b": 5})),
    ),
    "more parts than a score has": (
        "manifest.json", "index.parts", edit(lambda m: m["index"].update(parts={str(part): 6 for part in range(65)}))
    ),
    "parts of another index": (
        "manifest.json",
        "only a dense index has parts",
        edit(lambda m: m.update(
            index={"kind": "identity", "geometry": "none", "parts": {"a": 3, "b": 3}},
            capabilities=m["capabilities"] | {"neighbours": False},
        )),
    ),
    "parts that no graph tells apart": (
        "encoder.onnx", "an output must be called parts, not query", edit(lambda m: m["index"].update(parts=PARTS))
    ),
    "parts with too few names": (
        "encoder.onnx", "output parts must be [any, 2, 6], not [any, 3, 6]", lambda f: with_parts(f, TOY, (0.2, 0.3, 0.5))
    ),
    "gates of more than is read": (
        "manifest.json", "encoder.gates 9 exceeds encoder.max_length 8", edit(lambda m: m["encoder"].update(gates=9))
    ),
    "filters of different lengths": (
        "manifest.json", "weigh different numbers of items", edit(lambda m: m["encoder"].update(filters=[[1.0, 2.0], [1.0]]))
    ),
    "filters of more than is read": (
        "manifest.json", "weigh more items than", edit(lambda m: m["encoder"].update(filters=[[1.0] * 9]))
    ),
    "gates of more items": ("encoder.onnx", "output gates must be [any, 3], not [any, 4]", lambda f: with_gates(f, TOY, 4)),
    "attention of another rank": (
        "attention.onnx", "output attention must have 5 dimensions, not 4", attention_of_another_rank
    ),
    "attention an encoder": (
        "attention.onnx",
        "an output must be called attention, not query",
        lambda f: graph(f, encoder_graph(TOY), "attention.onnx"),
    ),
    "encoder of noise": ("encoder.onnx", "damaged", raw("encoder.onnx", np.random.default_rng(1).bytes(4000))),
    "encoder cut off": (
        "encoder.onnx", "damaged", raw("encoder.onnx", encoder_graph(TOY).SerializeToString()[:-9])
    ),
    "encoder empty": ("encoder.onnx", "not an ONNX model", raw("encoder.onnx", b"")),
    # merged by protocol buffers, where a reader that takes the first graph would see another than ONNX Runtime does
    "encoder twice": (
        "encoder.onnx", "not an ONNX model", raw("encoder.onnx", encoder_graph(TOY).SerializeToString() * 2)
    ),
    # --- tables
    "table of noise": ("ranks.parquet", "not a readable Parquet file", raw("ranks.parquet", NOISE)),
    "no column": (
        "ranks.parquet",
        "the column protocol is missing",
        table("ranks.parquet", lambda before: before.drop_columns(["protocol"])),
    ),
    "another type": (
        "ranks.parquet",
        "the column user must be int32, not string",
        column("ranks.parquet", "user", ["0", "1", "2", "3"]),
    ),
    "an unknown item": (
        "ranks.parquet",
        "the column target holds 1 to 40; it may hold 0 to 39",
        column("ranks.parquet", "target", [1, 2, 3, 40]),
    ),
    "an impossible rank": (
        "ranks.parquet", "the column rank holds 0.5 to 2", column("ranks.parquet", "rank", [1.0, 0.5, 2.0, 2.0])
    ),
    "NaN in a table": (
        "ranks.parquet",
        "the column rank holds NaN or infinity",
        column("ranks.parquet", "rank", [1.0, float("nan"), 2.0, 2.0]),
    ),
    "an empty cell": (
        "ranks.parquet",
        "the column user has 1 empty cells",
        column("ranks.parquet", "user", [0, None, 2, 3], pa.int32()),
    ),
    "beyond its type": (
        "exposure.parquet", "not a readable Parquet file", column("exposure.parquet", "k", [10, 2**40])
    ),
    "an item twice on the map": (
        "map.parquet", "an item stands on the map twice", column("map.parquet", "item", [0, 0, *range(2, 40)])
    ),
    "beyond paper": (
        "map.parquet", "the column y holds NaN or infinity", column("map.parquet", "y", [float("inf")] * 40)
    ),
    "an impossible metric": (
        "curve.parquet",
        "the column valid_ndcg holds 0.25 to 1.5; it may hold 0 to 1",
        column("curve.parquet", "valid_ndcg", [0.25, 1.5]),
    ),
}  # fmt: skip


def check(pristine: Path, tmp_path: Path, file: str, says: str, spoil: Spoil) -> None:
    path = tmp_path / "exports" / "toys"
    shutil.copytree(pristine, path)
    spoil(path / "alpha")
    zoo = Zoo.open(path)
    assert [(refusal.name, refusal.file) for refusal in zoo.refused] == [("alpha", file)]
    (refusal,) = zoo.refused
    assert says in refusal.reason
    assert len(refusal.reason) < 700 and "\n" not in refusal.reason and "Traceback" not in refusal.reason
    assert str(refusal).startswith(f"alpha/{file}: ")
    assert list(zoo.bundles) == ["beta"] and len(zoo.bundles["beta"].recommend_one([1, 2], 3).items) == 3


@pytest.mark.parametrize(
    "name", ["../beta/index.npy", "/etc/passwd", "..", "a/b.npy", "a\\b.npy", "x.pkl", "index.npy\n", ".npy", "C:x.npy"]
)
def test_names_that_lead_out(pristine: Path, tmp_path: Path, name: str) -> None:
    spoil = edit(lambda raw: raw["files"].update({name: raw["files"]["index.npy"]}))
    check(pristine, tmp_path, "manifest.json", "is not allowed in a bundle", spoil)


@pytest.mark.parametrize("name", CASES)
def test_refused(pristine: Path, tmp_path: Path, name: str) -> None:
    check(pristine, tmp_path, *CASES[name])


def test_a_table_that_unfolds(pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.bundle.tables.CELLS", 100_000)

    def spoil(folder: Path) -> None:  # a few hundred bytes
        zeros = pa.array(np.zeros(1_000_000, np.int32))
        text = pa.array(["full"] * len(zeros)).dictionary_encode()
        unfolded = pa.table({"protocol": text, "k": zeros, "item": zeros, "count": zeros})
        pq.write_table(unfolded, folder / "exposure.parquet")
        seal(folder)

    check(pristine, tmp_path, "exposure.parquet", "unfolds to more than 100,000 cells", spoil)


def test_a_text_that_unfolds(pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.bundle.tables.TEXT_BYTES", 1_000_000)

    def spoil(folder: Path) -> None:
        rows = 5_000
        ones = pa.array(np.ones(rows, np.int32))
        text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), ["x" * 10_000])
        pq.write_table(
            pa.table({"protocol": text, "k": ones, "item": ones, "count": ones}), folder / "exposure.parquet"
        )
        seal(folder)

    check(pristine, tmp_path, "exposure.parquet", "the texts of the column protocol unfold to 50,000,000 bytes", spoil)


def test_what_a_library_says_is_for_the_log(pristine: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shutil.copytree(pristine, tmp_path / "toys")
    (tmp_path / "toys/alpha/manifest.json").write_text('{"title": }')
    CASES["table of noise"][2](tmp_path / "toys/beta")
    reasons = {refusal.file: refusal.reason for refusal in Zoo.open(tmp_path / "toys").refused}
    assert reasons == {
        "manifest.json": "not valid JSON (line 1, column 11)",
        "ranks.parquet": "not a readable Parquet file",
    }
    assert "Expecting value" in caplog.text and "thrift" in caplog.text


def failing(op: str, **attributes: object) -> onnx.ModelProto:
    g = Graph()
    rows = g.add("Gather", g.constant(-np.abs(TOY.table) - 1, np.float32), "items")
    g.add(op, g.add("ReduceSum", rows, g.ints(1), keepdims=0), output="query", **attributes)
    return g.model("query", ["batch", 6])


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (failing("Log"), "answered with NaN or infinity"),
        (failing("Transpose", perm=[1, 0]), "answered with float32 (6, 1) where float32 [1, 6] was promised"),
    ],
    ids=["nan", "shape"],
)
def test_what_shows_only_when_it_runs(pristine: Path, tmp_path: Path, model: onnx.ModelProto, says: str) -> None:
    path = tmp_path / "toys"
    shutil.copytree(pristine, path)
    graph(path / "alpha", model)
    bundle = Zoo.open(path).bundles["alpha"]
    with pytest.raises(BundleError) as caught:
        bundle.recommend_one([1, 2], 3)
    assert caught.value.file == "encoder.onnx" and says in caught.value.reason
    warmed = Zoo.open(path, warm=True)
    assert list(warmed.bundles) == ["beta"] and says in warmed.refused[0].reason


def test_parts_that_do_not_add_up_explain_nothing(pristine: Path, tmp_path: Path) -> None:
    path = tmp_path / "toys"
    shutil.copytree(pristine, path)
    with_parts(path / "alpha", TOY, (0.5, 0.6))
    bundle = Zoo.open(path).bundles["alpha"]
    assert len(bundle.recommend_one([1, 2], 3).items) == 3
    with pytest.raises(BundleError, match="do not add up to its query"):
        bundle.contributions([1, 2], 3)


def test_gates_are_no_wider_than_open(pristine: Path, tmp_path: Path) -> None:
    path = tmp_path / "toys"
    shutil.copytree(pristine, path)
    with_gates(path / "alpha", TOY)
    assert Zoo.open(path).bundles["alpha"].gates([1, 2, 30, 4]) == pytest.approx({1: 2 / 120, 2: 0.25, 3: 4 / 120})
    with_gates(path / "alpha", TOY, bias=0.9)
    with pytest.raises(BundleError, match="between 0 and 1"):
        Zoo.open(path).bundles["alpha"].gates([1, 2, 30, 4])


def test_an_operator_nobody_knows_makes_no_noise(
    pristine: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "toys"
    shutil.copytree(pristine, path)
    model = encoder_graph(TOY)
    model.graph.node[-1].op_type = "Summon"
    graph(path / "alpha", model)
    bundle = Zoo.open(path).bundles["alpha"]
    for _ in range(2):  # the second time from memory
        with pytest.raises(BundleError, match="ONNX Runtime cannot load the graph"):
            bundle.recommend_one([1, 2], 3)
    assert capfd.readouterr() == ("", "")


def test_a_gather_beyond_its_table_makes_no_noise(
    pristine: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "toys"
    shutil.copytree(pristine, path)
    graph(path / "alpha", encoder_graph(sized(TOY, items=10)))  # its table is too short for this catalogue
    with pytest.raises(BundleError, match="the graph failed"):
        Zoo.open(path).bundles["alpha"].recommend_one([30], 3)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("file", ["encoder.onnx", "index.npy", "attention.onnx", "ranks.parquet"])
def test_large_files_are_checked_before_their_first_use(
    pristine: Path, tmp_path: Path, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("bundle", "retrieval", "sessions"):
        monkeypatch.setattr(f"engine.runtime.{module}.EAGER_BYTES", 0)
    path = tmp_path / "toys"
    shutil.copytree(pristine, path)
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
def test_numbers_beyond_float32(pristine: Path, tmp_path: Path, geometry: str) -> None:
    path = tmp_path / "toys"
    shutil.copytree(pristine, path)
    rows = np.full_like(TOY.rows, 3e38)
    rows[1::2] *= -1
    np.save(path / "alpha" / "index.npy", rows)
    seal(path / "alpha", index={"kind": "dense", "geometry": geometry})
    bundle = Zoo.open(path).bundles["alpha"]
    for ask in (
        lambda: bundle.scores([1, 2]),
        lambda: bundle.neighbours(1, 2),
        lambda: bundle.leave_one_out([1, 2], 3),
    ):
        with pytest.raises(BundleError, match="exceed a float32"):
            ask()


def test_a_model_of_the_last_item_may_fix_the_length(pristine: Path, tmp_path: Path) -> None:
    path = tmp_path / "toys"
    shutil.copytree(pristine, path)
    last_item_alone(path / "alpha")
    (path / "alpha" / "attention.onnx").unlink()
    described = json.loads((path / "alpha" / "manifest.json").read_text())
    capabilities = described["capabilities"] | {"attention": False}
    seal(
        path / "alpha", encoder={"dim": 6, "max_length": 1, "min_history": 1}, attention=None, capabilities=capabilities
    )
    bundle = Zoo.open(path).bundles["alpha"]
    np.testing.assert_array_equal(bundle.scores([1, 2]), bundle.scores([2]))
