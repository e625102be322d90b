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
from tests.runtime.bundles import TOYS, Graph, attention_graph, encoder_graph, make_zoo, seal, side_tables, sized

TOY = TOYS[0]
CASES: dict[str, tuple[str, str, Callable[[Path], None]]] = {}


def case(file: str, says: str) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    """Registers a way to spoil the folder of "alpha": which file is named, and (a part of) the reason."""

    def register(spoil: Callable[[Path], None]) -> Callable[[Path], None]:
        CASES[spoil.__name__] = (file, says, spoil)
        return spoil

    return register


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_zoo(tmp_path_factory.mktemp("pristine"), TOYS[:2])


def edit(folder: Path, change: Callable[[dict], object]) -> None:
    raw = json.loads((folder / "manifest.json").read_text())
    change(raw)
    (folder / "manifest.json").write_text(json.dumps(raw))


def flip(file: Path, at: int = -1) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)


# --- manifest.json


@case("manifest.json", "the file is missing")
def no_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


@case("manifest.json", "not valid JSON")
def manifest_cut_off(folder: Path) -> None:
    file = folder / "manifest.json"
    file.write_bytes(file.read_bytes()[:-40])


@case("manifest.json", "not valid JSON")
def manifest_not_text(folder: Path) -> None:
    (folder / "manifest.json").write_bytes(b"\xff\xfe\x00")


@case("manifest.json", "more than the 2,097,152")
def manifest_of_100_megabytes(folder: Path) -> None:
    with (folder / "manifest.json").open("r+b") as stream:
        stream.truncate(100 << 20)


@case("manifest.json", "nested deeper than 32 levels")
def manifest_nested_100_levels(folder: Path) -> None:
    recipe: dict = {}
    for _ in range(100):
        recipe = {"a": recipe}
    edit(folder, lambda raw: raw["training"].update(recipe=recipe))


@case("manifest.json", "nested deeper than 32 levels")
def manifest_nested_beyond_the_stack(folder: Path) -> None:
    (folder / "manifest.json").write_text("[" * 200_000)


@case("manifest.json", "not a JSON object")
def manifest_a_list(folder: Path) -> None:
    (folder / "manifest.json").write_text("[]")


@case("manifest.json", "NaN is not a JSON number")
def manifest_with_nan(folder: Path) -> None:
    edit(folder, lambda raw: raw["metrics"]["full"].update({"HR@10": float("nan")}))


@case("manifest.json", "metrics.full.HR@10")
def manifest_with_a_number_beyond_floats(folder: Path) -> None:
    text = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(text.replace('"HR@10": 0.5', '"HR@10": 1e999'))


@case("manifest.json", "a key stands twice")
def manifest_with_a_key_twice(folder: Path) -> None:
    text = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text('{"name": "alpha", ' + text[1:])


@case("manifest.json", "not valid JSON")
def manifest_with_half_a_character(folder: Path) -> None:
    edit(folder, lambda raw: raw.update(summary="\ud800"))


@case("manifest.json", "format 6, this one reads 5")
def manifest_of_a_newer_version(folder: Path) -> None:
    edit(folder, lambda raw: raw.update(schema_version=6, something_new=True))


@case("manifest.json", "schema_version")
def manifest_of_no_version(folder: Path) -> None:
    edit(folder, lambda raw: raw.update(schema_version="1"))


@case("manifest.json", "surprise: Extra inputs")
def manifest_with_an_unknown_entry(folder: Path) -> None:
    edit(folder, lambda raw: raw.update(surprise=1))


@case("manifest.json", "num_items: Input should be a valid integer")
def manifest_with_a_number_as_text(folder: Path) -> None:
    edit(folder, lambda raw: raw.update(num_items="40"))


@case("manifest.json", "it names the model beta, its folder alpha")
def manifest_of_another_model(folder: Path) -> None:
    edit(folder, lambda raw: raw.update(name="beta"))


@case("manifest.json", "fingerprint cdcdcdcd… where toys has abababab…")
def manifest_of_another_dataset(folder: Path) -> None:
    edit(folder, lambda raw: raw.update(fingerprint="cd" * 32))


@case("manifest.json", "a catalogue of 41 items; toys has 40")
def manifest_of_another_catalogue(folder: Path) -> None:
    edit(folder, lambda raw: raw.update(num_items=41))


@case("manifest.json", "an identity index needs encoder.dim = num_items")
def manifest_with_an_impossible_identity(folder: Path) -> None:
    edit(
        folder,
        lambda raw: (
            raw.update(index={"kind": "identity", "geometry": "none"}) or raw["capabilities"].update(neighbours=False)
        ),
    )


@case("manifest.json", "attention.onnx is listed")
def manifest_that_promises_attention(folder: Path) -> None:
    edit(folder, lambda raw: raw["files"].pop("attention.onnx"))


@case("manifest.json", "encoder.onnx is not listed")
def manifest_without_encoder(folder: Path) -> None:
    edit(folder, lambda raw: raw["files"].pop("encoder.onnx"))


@pytest.mark.parametrize(
    "name", ["../beta/index.npy", "/etc/passwd", "..", "a/b.npy", "a\\b.npy", "x.pkl", "index.npy\n", ".npy", "C:x.npy"]
)
def test_names_that_lead_out(pristine: Path, tmp_path: Path, name: str) -> None:
    def spoil(folder: Path) -> None:
        edit(folder, lambda raw: raw["files"].update({name: raw["files"]["index.npy"]}))

    check(pristine, tmp_path, "manifest.json", "is not allowed in a bundle", spoil)


# --- files as such


@case("index.npy", "the file is missing")
def file_missing(folder: Path) -> None:
    (folder / "index.npy").unlink()


@case("ranks.parquet", "the manifest says")
def file_cut_off(folder: Path) -> None:
    file = folder / "ranks.parquet"
    file.write_bytes(file.read_bytes()[:-1])


@case("index.npy", "sha256 differs")
def index_tampered_with(folder: Path) -> None:
    flip(folder / "index.npy")


@case("encoder.onnx", "sha256 differs")
def encoder_tampered_with(folder: Path) -> None:
    flip(folder / "encoder.onnx", 300)


@case("map.parquet", "sha256 differs")
def table_tampered_with(folder: Path) -> None:
    flip(folder / "map.parquet", 100)


@case("index.npy", "the file is a link")
def file_a_link(folder: Path) -> None:
    shutil.move(folder / "index.npy", folder.parent / "elsewhere.npy")
    (folder / "index.npy").symlink_to(folder.parent / "elsewhere.npy")


@case("manifest.json", "the file is a link")
def manifest_a_link(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    (folder / "manifest.json").symlink_to("/etc/hostname")


@case("encoder.onnx", "not a plain file")
def file_a_folder(folder: Path) -> None:
    (folder / "encoder.onnx").unlink()
    (folder / "encoder.onnx").mkdir()


@case("encoder.onnx", "not a plain file")
def file_a_pipe(folder: Path) -> None:
    (folder / "encoder.onnx").unlink()
    os.mkfifo(folder / "encoder.onnx")


@case("manifest.json", "a link that leads out")
def folder_a_link(folder: Path) -> None:
    shutil.move(folder, folder.parent.parent / "away")
    folder.symlink_to(folder.parent.parent / "away")


# --- index.npy


def index(folder: Path, array: np.ndarray, **options: bool) -> None:
    np.save(folder / "index.npy", array, **options)
    seal(folder)


@case("index.npy", "float32 (<f4), not |O")
def index_a_pickle(folder: Path) -> None:
    index(folder, np.array([["boom"] * 7] * 40, object), allow_pickle=True)


@case("index.npy", "not a NumPy file")
def index_a_bare_pickle(folder: Path) -> None:
    (folder / "index.npy").write_bytes(pickle.dumps([1, 2, 3]))
    seal(folder)


@case("index.npy", "float32 (<f4), not <f8")
def index_of_doubles(folder: Path) -> None:
    index(folder, TOY.rows.astype(np.float64))


@case("index.npy", "float32 (<f4), not >f4")
def index_the_other_way_round(folder: Path) -> None:
    index(folder, TOY.rows.astype(">f4"))


@case("index.npy", "C order")
def index_by_columns(folder: Path) -> None:
    index(folder, np.asfortranarray(TOY.rows))


@case("index.npy", "the shape must be (40, 7), not (39, 7)")
def index_a_row_short(folder: Path) -> None:
    index(folder, TOY.rows[:-1])


@case("index.npy", "the shape must be (40, 7), not (40, 6)")
def index_without_bias(folder: Path) -> None:
    index(folder, TOY.rows[:, :-1].copy())


def header(text: str, version: bytes = b"\x01\x00", body: bytes = b"\0" * 1120) -> bytes:
    padded = text.encode().ljust(118)
    return b"\x93NUMPY" + version + len(padded).to_bytes(2 if version[0] == 1 else 4, "little") + padded + body


def raw_index(folder: Path, content: bytes) -> None:
    (folder / "index.npy").write_bytes(content)
    seal(folder)


@case("index.npy", "the shape must be (40, 7), not (1000000000000, 7)")
def index_that_claims_to_be_giant(folder: Path) -> None:
    raw_index(folder, header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 7)}"))


@case("index.npy", "where its header announces")
def index_with_something_behind(folder: Path) -> None:
    raw_index(folder, header("{'descr': '<f4', 'fortran_order': False, 'shape': (40, 7)}", body=b"\0" * 1121))


@case("index.npy", "the header cannot be read")
def index_whose_header_is_code(folder: Path) -> None:
    raw_index(folder, header("__import__('os').abort()"))


@case("index.npy", "the header cannot be read")
def index_whose_header_is_no_dict(folder: Path) -> None:
    raw_index(folder, header("[1, 2]"))


@case("index.npy", "the header cannot be read")
def index_whose_header_is_deep(folder: Path) -> None:
    text = "(" * 9_000
    raw_index(folder, b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + b"\0" * 1120)


@case("index.npy", "the header is longer")
def index_whose_header_is_long(folder: Path) -> None:
    raw_index(folder, b"\x93NUMPY\x02\x00" + (1 << 31).to_bytes(4, "little") + b" " * 500)


@case("index.npy", "the file ends early")
def index_that_ends_in_its_header(folder: Path) -> None:
    raw_index(folder, b"\x93NUMPY\x01\x00\x76\x00{'descr'")


@case("index.npy", "an unknown version")
def index_of_an_unknown_version(folder: Path) -> None:
    raw_index(folder, header("{}", b"\x09\x00"))


@case("index.npy", "(40, 7), not (40, True)")
def index_whose_shape_is_no_number(folder: Path) -> None:
    raw_index(folder, header("{'descr': '<f4', 'fortran_order': False, 'shape': (40, True)}"))


@case("index.npy", "the row of item 17 holds NaN or infinity")
def index_with_nan(folder: Path) -> None:
    rows = TOY.rows
    rows[17, 2] = np.nan
    index(folder, rows)


@case("index.npy", "the row of item 39 holds NaN or infinity")
def index_with_an_infinite_bias(folder: Path) -> None:
    rows = TOY.rows
    rows[39, -1] = -np.inf
    index(folder, rows)


# --- graphs


def graph(folder: Path, model: onnx.ModelProto | bytes, file: str = "encoder.onnx") -> None:
    (folder / file).write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    seal(folder)


def outside(tensor: onnx.TensorProto) -> None:
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "../../../../etc/passwd"
    tensor.ClearField("raw_data")


@case("encoder.onnx", "weights in another file")
def encoder_with_weights_elsewhere(folder: Path) -> None:
    model = encoder_graph(TOY)
    outside(model.graph.initializer[0])
    graph(folder, model)


def refer(folder: Path, file: str, change: Callable[[list[int]], None] | None = None, offset: object = 0) -> None:
    """The first tensor of the encoder lies in another file of the bundle; `change` spoils its shape."""
    model = encoder_graph(TOY)
    tensor = model.graph.initializer[0]
    length = len(numpy_helper.to_array(tensor).tobytes())
    np.save(folder / "weights.npy", np.zeros(length, np.uint8))
    for field in ("raw_data", "float_data", "int64_data", "int32_data"):
        tensor.ClearField(field)  # type: ignore[arg-type]
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", file), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
    shape = list(tensor.dims)
    if change is not None:
        change(shape)
    del tensor.dims[:]
    tensor.dims.extend(shape)
    (folder / "encoder.onnx").write_bytes(model.SerializeToString())
    seal(folder, schema_version=5)


@case("encoder.onnx", "beyond the end of weights.npy")
def weights_beyond_the_end(folder: Path) -> None:
    refer(folder, "weights.npy", offset=129)


@case("encoder.onnx", "bytes of weights.npy")
def weights_of_another_size(folder: Path) -> None:
    refer(folder, "weights.npy", lambda shape: shape.append(1 << 40))


@case("encoder.onnx", "does not say which part")
def weights_from_a_negative_place(folder: Path) -> None:
    refer(folder, "weights.npy", offset=-8)


@case("encoder.onnx", "weights.npy, which the bundle lacks")
def weights_that_are_not_listed(folder: Path) -> None:
    refer(folder, "weights.npy")
    (folder / "weights.npy").unlink()
    seal(folder)


@case("encoder.onnx", "weights in another file")
def weights_of_another_name(folder: Path) -> None:
    refer(folder, "map.parquet")


@case("weights.npy", "sha256 differs")
def weights_with_a_changed_bit(folder: Path) -> None:
    refer(folder, "weights.npy")
    flip(folder / "weights.npy")


@case("manifest.json", "weights.npy belongs to schema_version 5")
def weights_of_an_old_version(folder: Path) -> None:
    refer(folder, "weights.npy")
    seal(folder, schema_version=1)


@case("encoder.onnx", "weights in another file")
def encoder_with_a_constant_elsewhere(folder: Path) -> None:
    model = encoder_graph(TOY)
    node = model.graph.node.add(op_type="Constant", output=["c"])
    attribute = node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
    attribute.t.CopyFrom(model.graph.initializer[0])
    outside(attribute.t)
    graph(folder, model)


@case("encoder.onnx", "weights in another file")
def encoder_with_a_branch_elsewhere(folder: Path) -> None:
    model = encoder_graph(TOY)
    node = model.graph.node.add(op_type="If", output=["c"])
    attribute = node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH)
    tensor = attribute.g.initializer.add()
    tensor.CopyFrom(model.graph.initializer[0])
    outside(tensor)
    graph(folder, model)


@case("encoder.onnx", "weights in another file")
def encoder_with_a_function_elsewhere(folder: Path) -> None:
    model = encoder_graph(TOY)
    node = model.functions.add(name="f", domain="d").node.add(op_type="Constant")
    attribute = node.attribute.add(name="sparse_value", type=onnx.AttributeProto.SPARSE_TENSOR)
    attribute.sparse_tensor.values.CopyFrom(model.graph.initializer[0])
    outside(attribute.sparse_tensor.values)
    graph(folder, model)


@case("encoder.onnx", "an engine compiled elsewhere")
def encoder_with_a_compiled_engine(folder: Path) -> None:
    model = encoder_graph(TOY)
    model.graph.node.add(op_type="EPContext", domain="com.microsoft", output=["c"])
    graph(folder, model)


@case("encoder.onnx", "nested deeper than")
def encoder_of_nested_branches(folder: Path) -> None:
    model = encoder_graph(TOY)
    inner = model.graph
    for _ in range(40):
        attribute = inner.node.add(op_type="If", output=["c"]).attribute.add(
            name="then_branch", type=onnx.AttributeProto.GRAPH
        )
        inner = attribute.g
    graph(folder, model)


@case("encoder.onnx", "the one input must be called items, not history")
def encoder_with_another_input(folder: Path) -> None:
    model = encoder_graph(TOY)
    model.graph.input[0].name = "history"
    graph(folder, model)


@case("encoder.onnx", "the one input must be called items, not items, users")
def encoder_with_a_second_input(folder: Path) -> None:
    model = encoder_graph(TOY)
    model.graph.input.append(helper.make_tensor_value_info("users", TensorProto.INT64, ["batch"]))
    graph(folder, model)


@case("encoder.onnx", "an output must be called query, not scores")
def encoder_with_another_output(folder: Path) -> None:
    model = encoder_graph(TOY)
    model.graph.output[0].name = "scores"
    graph(folder, model)


@case("encoder.onnx", "input items must be int64")
def encoder_of_other_numbers(folder: Path) -> None:
    model = encoder_graph(TOY)
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("items", TensorProto.INT32, ["batch", "length"]))
    graph(folder, model)


@case("encoder.onnx", "any batch and length, not [any, 8]")
def encoder_of_one_length(folder: Path) -> None:
    model = encoder_graph(TOY)
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("items", TensorProto.INT64, ["batch", 8]))
    graph(folder, model)


@case("encoder.onnx", "any batch and length, not [any, 1]")
def encoder_of_the_last_item(folder: Path) -> None:
    model = encoder_graph(TOY)
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("items", TensorProto.INT64, ["batch", 1]))
    graph(folder, model)


@case("encoder.onnx", "input items must have 2 dimensions, not 1")
def encoder_of_another_rank(folder: Path) -> None:
    model = encoder_graph(TOY)
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("items", TensorProto.INT64, ["length"]))
    graph(folder, model)


@case("encoder.onnx", "output query must be float32")
def encoder_of_doubles(folder: Path) -> None:
    model = encoder_graph(TOY)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("query", TensorProto.DOUBLE, ["batch", 6]))
    graph(folder, model)


@case("encoder.onnx", "output query must be [any, 6], not [any, 5]")
def encoder_of_another_width(folder: Path) -> None:
    graph(folder, encoder_graph(sized(TOY, dim=5)))


@case("attention.onnx", "output attention must have 5 dimensions, not 4")
def attention_of_another_rank(folder: Path) -> None:
    model = attention_graph(TOY)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("attention", TensorProto.FLOAT, ["b", 2, "p", "p"]))
    graph(folder, model, "attention.onnx")


@case("attention.onnx", "an output must be called attention, not query")
def attention_an_encoder(folder: Path) -> None:
    graph(folder, encoder_graph(TOY), "attention.onnx")


@case("encoder.onnx", "damaged")
def encoder_of_noise(folder: Path) -> None:
    graph(folder, np.random.default_rng(1).bytes(4000))


@case("encoder.onnx", "damaged")
def encoder_cut_off(folder: Path) -> None:
    graph(folder, encoder_graph(TOY).SerializeToString()[:-9])


@case("encoder.onnx", "not an ONNX model")
def encoder_empty(folder: Path) -> None:
    graph(folder, b"")


@case("encoder.onnx", "not an ONNX model")
def encoder_twice(folder: Path) -> None:
    # merged by protocol buffers, where a reader that takes the first graph would see another than ONNX Runtime does
    graph(folder, encoder_graph(TOY).SerializeToString() * 2)


# --- tables


def table(folder: Path, file: str, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(side_tables(TOY)[file]), folder / file)
    seal(folder)


def with_column(name: str, values: object, kind: pa.DataType | None = None) -> Callable[[pa.Table], pa.Table]:
    def change(before: pa.Table) -> pa.Table:
        return before.set_column(before.schema.get_field_index(name), name, pa.array(values, kind))

    return change


@case("ranks.parquet", "not a readable Parquet file")
def table_of_noise(folder: Path) -> None:
    (folder / "ranks.parquet").write_bytes(b"PAR1" + b"\x00" * 200 + b"PAR1")
    seal(folder)


@case("ranks.parquet", "the column protocol is missing")
def table_without_a_column(folder: Path) -> None:
    table(folder, "ranks.parquet", lambda before: before.drop_columns(["protocol"]))


@case("ranks.parquet", "the column user must be int32, not string")
def table_of_another_type(folder: Path) -> None:
    table(folder, "ranks.parquet", with_column("user", ["0", "1", "2", "3"]))


@case("ranks.parquet", "the column target holds 1 to 40; it may hold 0 to 39")
def table_with_an_unknown_item(folder: Path) -> None:
    table(folder, "ranks.parquet", with_column("target", [1, 2, 3, 40]))


@case("ranks.parquet", "the column rank holds 0.5 to 2")
def table_with_an_impossible_rank(folder: Path) -> None:
    table(folder, "ranks.parquet", with_column("rank", [1.0, 0.5, 2.0, 2.0]))


@case("ranks.parquet", "the column rank holds NaN or infinity")
def table_with_nan(folder: Path) -> None:
    table(folder, "ranks.parquet", with_column("rank", [1.0, float("nan"), 2.0, 2.0]))


@case("ranks.parquet", "the column user has 1 empty cells")
def table_with_an_empty_cell(folder: Path) -> None:
    table(folder, "ranks.parquet", with_column("user", [0, None, 2, 3], pa.int32()))


@case("exposure.parquet", "not a readable Parquet file")
def table_with_a_number_beyond_its_type(folder: Path) -> None:
    table(folder, "exposure.parquet", with_column("k", [10, 2**40]))


@case("map.parquet", "an item stands on the map twice")
def map_with_an_item_twice(folder: Path) -> None:
    table(folder, "map.parquet", with_column("item", [0, 0, *range(2, 40)]))


@case("map.parquet", "the column y holds NaN or infinity")
def map_beyond_paper(folder: Path) -> None:
    table(folder, "map.parquet", with_column("y", [float("inf")] * 40))


@case("curve.parquet", "the column valid_ndcg holds 0.25 to 1.5; it may hold 0 to 1")
def curve_with_an_impossible_metric(folder: Path) -> None:
    table(folder, "curve.parquet", with_column("valid_ndcg", [0.25, 1.5]))


def check(pristine: Path, tmp_path: Path, file: str, says: str, spoil: Callable[[Path], None]) -> None:
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
    table_of_noise(tmp_path / "toys/beta")
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
    encoder_of_the_last_item(path / "alpha")
    (path / "alpha" / "attention.onnx").unlink()
    described = json.loads((path / "alpha" / "manifest.json").read_text())
    capabilities = described["capabilities"] | {"attention": False}
    seal(
        path / "alpha", encoder={"dim": 6, "max_length": 1, "min_history": 1}, attention=None, capabilities=capabilities
    )
    bundle = Zoo.open(path).bundles["alpha"]
    np.testing.assert_array_equal(bundle.scores([1, 2]), bundle.scores([2]))
