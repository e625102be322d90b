"""Small whole zoos for tests, written with onnx.helper: no torch, a few milliseconds each.

The toy encoder is query = tanh(Σ decay^age · E[item]): order matters, padding (a row of zeros) does not, and `Toy.scores`
says in numpy what a bundle must answer. `make_zoo` writes five models, one per shape of attention and index.
"""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
from onnx import TensorProto, helper, numpy_helper

from engine.data.dataset import DatasetInfo

FINGERPRINT = "ab" * 32
MADE = {"created": "2026-01-01T00:00:00Z", "created_by": "tests"}
TEMPERATURES = ((1.0, 0.5), (2.0, -1.0))  # [layers][heads]: one attention pattern each


@dataclass(frozen=True)
class Toy:
    """A toy model. attention: "causal", "token" (a position for the next item), "pooled" (window 3) or None."""

    name: str
    items: int = 40
    dim: int = 6
    max_length: int = 8
    seed: int = 0
    attention: str | None = "causal"
    identity: bool = False
    geometry: str = "cosine"
    min_history: int = 1
    order: int = 100
    decay: float = 0.8
    family: str = "toy"

    @property
    def rows(self) -> np.ndarray:
        """float32 [items, dim + 1], or [items, 1]; item 7 equals item 3."""
        table = np.random.default_rng(self.seed + 1).standard_normal((self.items, self.dim + 1)).astype(np.float32)
        if self.identity:
            return np.floor(table[:, :1] * 3) + 10  # many ties
        table[7] = table[3]
        return table

    @property
    def table(self) -> np.ndarray:
        """float32 [items + 2, dim]: what the encoder reads; padding is zero, then comes the mask token."""
        found = np.random.default_rng(self.seed).standard_normal((self.items + 2, self.dim)).astype(np.float32)
        found[self.items] = 0
        return found

    def scores(self, history: list[int]) -> np.ndarray:
        """float64 [items]"""
        rows = self.rows.astype(np.float64)
        if self.identity:
            return rows[:, 0]
        read = history[-self.max_length :]
        ages = np.arange(len(read))[::-1]
        query = np.tanh((self.decay ** ages[:, None] * self.table[read].astype(np.float64)).sum(0))
        return rows[:, :-1] @ query + rows[:, -1]

    def maps(self, history: list[int]) -> np.ndarray:
        """float64 [layers, heads, p, p], 0 where looking is impossible."""
        read = history[-self.max_length :]
        if self.attention == "pooled":
            read = read[-3:]
        if self.attention == "token":
            read = [*read, self.items + 1]
        rows = self.table[read].astype(np.float64)
        logits = np.array([[heat * rows @ rows.T for heat in heads] for heads in TEMPERATURES])
        hidden = np.zeros((len(read), len(read)), bool)
        if self.attention == "causal":
            hidden = np.triu(np.ones_like(hidden), 1)
        if self.attention == "pooled":
            hidden = np.eye(len(read), dtype=bool)
        logits[..., hidden] = -1e9
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        return np.where(hidden, 0, weights / weights.sum(-1, keepdims=True))


TOYS = (
    Toy("alpha", order=1),
    Toy("beta", seed=10, attention="token", geometry="euclidean", order=2, family="attrec"),
    Toy("gamma", seed=20, attention="pooled", max_length=5, order=2),
    Toy("popular", seed=30, identity=True, dim=40, attention=None, geometry="none", min_history=0, family="markov"),
    Toy("plain", seed=40, attention=None, min_history=0),
)


def make_zoo(root: Path, toys: tuple[Toy, ...] = TOYS, name: str = "toys") -> Path:
    """Writes root/<name>/ and returns it."""
    path = root / name
    path.mkdir(parents=True)
    items = toys[0].items
    write_dataset(path, items)
    for toy in toys:
        write_bundle(path, toy)
    return path


def count_repeats(path: Path) -> Path:
    """Makes repeats count in the zoo at `path`, and the held-out item of the first user one of them; returns it."""
    users = pq.read_table(path / "users.parquet")
    history = [[users["target"][0].as_py(), 3], *users["history"].to_pylist()[1:]]
    rewrite(path / "users.parquet", history=history)
    describe(path, repeats="count", measured={"repeated_events": 0.2, "repeated_targets": 0.25})
    return path


def write_dataset(path: Path, items: int) -> None:
    rng = np.random.default_rng(5)
    histories = [rng.integers(0, items, n).tolist() for n in (1, 2, 5, 12)]
    info = DatasetInfo(
        name=path.name, title="Toys", source="Made up for tests.", licence="None needed.", simulated=True,
        counts={"users": 4, "items": items, "events": 28, "train": 20, "valid": 4, "test": 4},
        lengths={"min": 3.0, "median": 5.5, "mean": 7.0, "max": 14.0}, sparsity=0.825,
        time={"unit": "order", "first": None, "last": None, "ties": 0}, split={"kind": "leave-one-out"},
        options={}, left_out={}, fingerprint=FINGERPRINT, attributes=["genres", "year"], **MADE,
    )  # fmt: skip
    (path / "dataset.json").write_text(info.to_json(), "utf-8")
    catalogue = {
        "item": pa.array(range(items), pa.int32()),
        "item_id": [f"toy-{i}" for i in range(items)],
        "title": [f"Toy {i} – <b>bold</b>" for i in range(items)],
        "genres": [["wood"], ["tin", "plush"]] * (items // 2) + [[]] * (items % 2),
        "year": pa.array([1950 + i % 70 for i in range(items)], pa.int32()),
        "popularity": pa.array(rng.integers(0, 50, items), pa.int64()),
    }
    pq.write_table(pa.table(catalogue), path / "items.parquet")
    users = {
        "user": pa.array(range(4), pa.int32()),
        "user_id": [f"u{i}" for i in range(4)],
        "history": pa.array(histories, pa.list_(pa.int32())),
        "target": pa.array(rng.integers(0, items, 4), pa.int32()),
    }
    pq.write_table(pa.table(users), path / "users.parquet")


def write_bundle(root: Path, toy: Toy) -> Path:
    """Writes root/<toy.name>/ and returns it."""
    folder = root / toy.name
    folder.mkdir()
    (folder / "encoder.onnx").write_bytes(encoder_graph(toy).SerializeToString())
    np.save(folder / "index.npy", toy.rows)
    if toy.attention is not None:
        (folder / "attention.onnx").write_bytes(attention_graph(toy).SerializeToString())
    for file, table in side_tables(toy).items():
        pq.write_table(table, folder / file)
    (folder / "manifest.json").write_text(json.dumps(manifest(toy)), "utf-8")
    seal(folder)
    return folder


def seal(folder: Path, **changes: Any) -> None:
    """Sets entries of what a folder says of itself, and brings sizes and hashes up to date: its author meant what it holds."""
    files = {
        file.name: {"sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "bytes": file.stat().st_size}
        for file in sorted(folder.iterdir())
        if file.is_file() and file != about(folder)
    }
    edit(folder, **changes, files=files)


def edit(folder: Path, **changes: Any) -> None:
    """Sets entries of what a folder says of itself, and nothing else."""
    about(folder).write_text(json.dumps(entries(folder) | changes), "utf-8")


def amend(folder: Path, **tables: dict[str, Any]) -> None:
    """As `seal`, of tables of what a folder says of itself the entries that are named."""
    before = entries(folder)
    seal(folder, **{name: before[name] | changes for name, changes in tables.items()})


def entries(folder: Path) -> dict[str, Any]:
    """What a folder says of itself."""
    raw: dict[str, Any] = json.loads(about(folder).read_text("utf-8"))
    return raw


def about(folder: Path) -> Path:
    """The file in which a bundle, a tokenization or a space, or a text encoder says what it is."""
    files = [folder / name for name in ("manifest.json", "about.json", "words.json")]
    return next((file for file in files if file.exists()), files[0])


def retrain(folder: Path, **changes: Any) -> None:
    """Sets entries of what the manifest says of the training."""
    amend(folder, training=changes)


def describe(path: Path, **changes: Any) -> None:
    """Sets entries of what a zoo says of its dataset."""
    file = path / "dataset.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | changes), "utf-8")


def with_columns(file: Path, **columns: Any) -> pa.Table:
    """A table with other values in some of its columns, of the type that was there unless they are an array of another one."""
    table = pq.read_table(file)
    for name, values in columns.items():
        array = values if isinstance(values, pa.Array) else pa.array(values, table[name].type)
        table = table.set_column(table.column_names.index(name), name, array)
    return table


def rewrite(file: Path, **columns: Any) -> None:
    """Puts `with_columns` in the place of the table; a bundle is sealed anew."""
    pq.write_table(with_columns(file, **columns), file)
    if about(file.parent).is_file():
        seal(file.parent)


PARTS = {"a third of it": 6, "the rest": 6}


def extended(toy: Toy) -> Graph:
    """Its encoder, to go on with."""
    g, plain = Graph(), encoder_graph(toy)
    g.nodes, g.weights = list(plain.graph.node), list(plain.graph.initializer)
    return g


def with_output(folder: Path, toy: Toy, g: Graph, name: str, shape: Sequence[int], **changes: dict[str, Any]) -> None:
    """Gives a bundle this encoder, which has an output more, float32 [batch, *shape]. changes: of tables of its manifest."""
    model = g.model("query", ["batch", toy.dim])
    model.graph.output.append(value(name, TensorProto.FLOAT, "batch", *shape))
    (folder / "encoder.onnx").write_bytes(model.SerializeToString())
    amend(folder, **changes)


def with_parts(folder: Path, toy: Toy, shares: Sequence[float] = (1 / 3, 2 / 3)) -> None:
    """Gives a bundle a query that is the sum of `PARTS`: of these shares of it."""
    g = extended(toy)
    part = np.array(shares, np.float32)[:, None]
    g.add("Mul", g.add("Unsqueeze", "query", g.ints(1)), g.constant(part, np.float32), output="parts")
    with_output(folder, toy, g, "parts", [len(shares), toy.dim], index={"parts": PARTS})


def with_gates(folder: Path, toy: Toy, gates: int = 3, bias: float = 0.0) -> None:
    """Gives a bundle gates of its latest items: of each a third of its number's share of the catalogue, and `bias`."""
    g = extended(toy)
    filled = g.add("Pad", "items", g.ints(0, gates, 0, 0), g.constant(toy.items, np.int64))
    latest = g.add("Slice", filled, g.ints(-gates), g.ints(2**31), g.ints(1))
    share = g.add("Div", g.add("Cast", latest, to=TensorProto.FLOAT), g.constant(3 * toy.items, np.float32))
    g.add("Add", share, g.constant(bias, np.float32), output="gates")
    with_output(folder, toy, g, "gates", [gates], encoder={"gates": 3})


def with_matches(folder: Path, toy: Toy, claimed: int = 2, **encoder: Any) -> None:
    """Gives a bundle two filters that match the latest item and the one before, and both in a row: the first by their numbers'
    shares of the catalogue, the second by half of that. claimed: how many items the manifest says they slide over.
    encoder: what else it says of the encoder."""
    g = extended(toy)
    filled = g.add("Pad", "items", g.ints(0, 2, 0, 0), g.constant(0, np.int64))
    latest = g.add("Slice", filled, g.ints(-2), g.ints(2**31), g.ints(1))
    share = g.add("Div", g.add("Cast", latest, to=TensorProto.FLOAT), g.constant(toy.items, np.float32))
    rows = g.add("MatMul", share, g.constant([[1, 0, 0.5], [0, 1, 0.5]], np.float32))
    g.add("Mul", g.add("Unsqueeze", rows, g.ints(2)), g.constant([1, 0.5], np.float32), output="matches")
    with_output(folder, toy, g, "matches", [3, 2], encoder={"matches": claimed, **encoder})


def as_refit(folder: Path, protocol: str = "full, refit") -> None:
    """Makes a bundle one that was fitted on validation events, too, with its figures under `protocol`."""
    for file in ("ranks.parquet", "exposure.parquet"):
        table = pq.read_table(folder / file)
        rewrite(folder / file, protocol=[protocol] * len(table))
    curve = pq.read_table(folder / "curve.parquet").drop_columns("valid_ndcg")
    pq.write_table(curve.append_column("valid_ndcg", pa.nulls(len(curve), pa.float64())), folder / "curve.parquet")
    raw = entries(folder)
    training = raw["training"] | {"fitted_on": "training and validation", "epochs": 2, "best_epoch": 2}
    seal(folder, training=training, metrics={protocol: raw["metrics"]["full"]}, title=f"{raw['title']}, refit")


def flip(file: Path, at: int = -1) -> None:
    """Another bit in the byte at that place."""
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)


def linked(file: Path) -> None:
    """A link to the file, which now lies outside of its folder."""
    shutil.move(file, file.parent.parent / "elsewhere")
    file.symlink_to(file.parent.parent / "elsewhere")


def some_log(items: int = 40) -> list[list[int]]:
    """Of 31 people the items, ascending; the last has 1, 2 and 9."""
    rng = np.random.default_rng(2)
    return [sorted(rng.choice(items, 6, replace=False).tolist()) for _ in range(30)] + [[1, 2, 9]]


def with_graph(
    folder: Path, people: list[list[int]], dim: int | None = 4, layers: int = 3, layer_dim: int | None = None
) -> None:
    """Gives a bundle a graph: of everybody the items; dim None: one whose scores are no sums over paths; layer_dim: one whose
    layers stand side by side."""
    items = entries(folder)["num_items"]
    pq.write_table(pa.table({"items": pa.array(people, pa.list_(pa.int32()))}), folder / "people.parquet")
    shape = {"layers": layers, "people": len(people), "edges": sum(map(len, people))}
    if dim is not None:
        rng = np.random.default_rng(1)
        np.save(folder / "embeddings.npy", rng.normal(size=(items + len(people), dim)).astype(np.float32))
        shape["dim"] = dim
    if layer_dim is not None:
        index = np.load(folder / "index.npy")
        index[:, -1] = 0
        np.save(folder / "index.npy", index)
        shape["layer_dim"] = layer_dim
    seal(folder, graph=shape, schema_version=4)


def manifest(toy: Toy) -> dict[str, Any]:
    pooled = toy.attention == "pooled"
    described = {
        "layers": 2, "heads": 2, "causal": toy.attention == "causal", "window": 3 if pooled else toy.max_length,
        "next_token": toy.attention == "token", "masked_diagonal": pooled, "pooled": pooled,
    }  # fmt: skip
    comparable = toy.geometry != "none"
    return {
        "schema_version": 1, "name": toy.name, "title": toy.name.capitalize(), "family": toy.family,
        "summary": "A toy. It is for tests.", "paper": "None.", "order": toy.order, "dataset": "toys",
        "fingerprint": FINGERPRINT, "num_items": toy.items,
        "encoder": {"dim": toy.dim, "max_length": toy.max_length, "min_history": toy.min_history},
        "attention": described if toy.attention is not None else None,
        "index": {"kind": "identity" if toy.identity else "dense", "geometry": toy.geometry},
        "capabilities": {
            "attention": toy.attention is not None, "neighbours": comparable, "map": comparable, "unseen_items": False,
            "trained_users": False, "reasons": {} if comparable else {"neighbours": "Counts have no neighbours."},
        },
        "training": {
            "recipe": {"model": {"dim": toy.dim}}, "command": "none", "commit": None, "device": "cpu", "seconds": 0.0,
            "seed": toy.seed, "epochs": 0, "best_epoch": 0, "parameters": 0, "versions": {}, "started": MADE["created"],
        },
        "metrics": {"full": {"HR@10": 0.5, "NDCG@10": 0.25}},
        "projection": {
            "method": "UMAP", "parameters": {}, "trustworthiness": 0.9, "neighbours": 15,
        } if comparable else None,
        "check": {"histories": 1, "lengths": [1], "max_abs_difference": 0.0},
        "files": {}, **MADE,
    }  # fmt: skip


def side_tables(toy: Toy) -> dict[str, pa.Table]:
    int32 = functools.partial(pa.array, type=pa.int32())
    tables = {
        "ranks": {
            "user": int32([0, 1, 2, 3]), "target": int32([1, 2, 3, 4]), "history_length": int32([1, 2, 5, 12]),
            "protocol": ["full"] * 4, "rank": [1.0, 2.5, 7.0, float(toy.items)],
        },
        "exposure": {
            "protocol": pa.array(["full", "full"]).dictionary_encode(), "k": int32([10, 10]), "item": int32([0, 5]),
            "count": int32([4, 3]),
        },
        "curve": {
            "step": [1, 2], "epoch": [1, 2], "seconds": [0.5, 1.0], "loss": [3.0, 2.0], "valid_ndcg": [None, 0.25],
        },
    }  # fmt: skip
    if toy.geometry != "none":
        places = np.random.default_rng(toy.seed).standard_normal((2, toy.items))
        tables["map"] = {"item": int32(range(toy.items)), "x": places[0], "y": places[1]}
    return {f"{name}.parquet": pa.table(columns) for name, columns in tables.items()}


class Graph:
    """Builds an ONNX graph node by node; `add` returns the name of the node's output."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def constant(self, value: Any, dtype: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def ints(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def add(self, op: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        output = output or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def model(self, output: str, shape: list[str | int], kind: int = TensorProto.FLOAT) -> onnx.ModelProto:
        return self.whole([value("items", TensorProto.INT64, "batch", "length")], [value(output, kind, *shape)])

    def whole(self, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "toy", inputs, outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
        onnx.checker.check_model(model)
        return model


def value(name: str, kind: int, *shape: str | int) -> onnx.ValueInfoProto:
    """An input or output of a graph."""
    return helper.make_tensor_value_info(name, kind, shape)


def encoder_graph(toy: Toy) -> onnx.ModelProto:
    g = Graph()
    if toy.identity:
        shape = g.add("Concat", g.add("Shape", "items", start=0, end=1), g.ints(toy.items), axis=0)
        g.add("ConstantOfShape", shape, output="query", value=numpy_helper.from_array(np.zeros(1, np.float32)))
        return g.model("query", ["batch", toy.items])
    rows = g.add("Gather", g.constant(toy.table, np.float32), "items")  # [batch, length, dim]
    length = g.add("Squeeze", g.add("Shape", "items", start=1, end=2))
    ages = g.add(
        "Range", g.add("Sub", length, g.constant(1, np.int64)), g.constant(-1, np.int64), g.constant(-1, np.int64)
    )
    weight = g.add("Pow", g.constant(toy.decay, np.float32), g.add("Cast", ages, to=TensorProto.FLOAT))
    weighted = g.add("Mul", rows, g.add("Unsqueeze", weight, g.ints(1)))
    g.add("Tanh", g.add("ReduceSum", weighted, g.ints(1), keepdims=0), output="query")
    return g.model("query", ["batch", toy.dim])


def attention_graph(toy: Toy) -> onnx.ModelProto:
    g = Graph()
    items = "items"
    if toy.attention == "pooled":
        items = g.add("Slice", items, g.ints(-3), g.ints(2**31), g.ints(1))
    if toy.attention == "token":
        one = g.add("Concat", g.add("Shape", items, start=0, end=1), g.ints(1), axis=0)
        items = g.add("Concat", items, g.add("Expand", g.ints(toy.items + 1), one), axis=1)
    rows = g.add("Gather", g.constant(toy.table, np.float32), items)
    products = g.add("MatMul", rows, g.add("Transpose", rows, perm=[0, 2, 1]))  # [batch, p, p]
    size = g.add("Squeeze", g.add("Shape", items, start=1, end=2))
    place = g.add("Range", g.constant(0, np.int64), size, g.constant(1, np.int64))
    across, down = g.add("Unsqueeze", place, g.ints(0)), g.add("Unsqueeze", place, g.ints(1))
    diagonal = g.add("Equal", across, down)
    padding = g.add("Unsqueeze", g.add("Equal", items, g.ints(toy.items)), g.ints(1))
    hidden = padding
    if toy.attention == "causal":
        hidden = g.add("Or", hidden, g.add("Greater", across, down))
    if toy.attention == "pooled":
        hidden = g.add("Or", hidden, diagonal)
    else:  # a padded position looks at itself, so that its row is no division by zero
        hidden = g.add("And", hidden, g.add("Not", diagonal))
    layers = []
    for heats in TEMPERATURES:
        heads = []
        for heat in heats:
            logits = g.add("Mul", products, g.constant(heat, np.float32))
            weights = g.add("Softmax", g.add("Where", hidden, g.constant(-1e9, np.float32), logits), axis=-1)
            heads.append(g.add("Unsqueeze", weights, g.ints(1)))
        layers.append(g.add("Unsqueeze", g.add("Concat", *heads, axis=1), g.ints(1)))
    g.add("Concat", *layers, axis=1, output="attention")
    return g.model("attention", ["batch", 2, 2, "rows", "columns"])


def make_endless(folder: Path, toy: Toy, longest: int) -> None:
    """Gives the bundle in `folder` an encoder that comes to no end for more than `longest` events: a Loop whose condition stays
    true. 0: it never ends."""
    g = extended(toy)
    g.nodes[-1].output[0] = "answer"
    length = g.add("Squeeze", g.add("Shape", "items", start=1, end=2, output="sizes"), output="size")
    again = g.add("Greater", length, g.constant(longest, np.int64), output="again")
    body = helper.make_graph(
        [helper.make_node("Identity", ["again_in"], ["again_out"]), helper.make_node("Identity", ["in"], ["out"])],
        "body",
        [
            value("n", TensorProto.INT64),
            value("again_in", TensorProto.BOOL),
            helper.make_tensor_value_info("in", TensorProto.FLOAT, None),
        ],
        [value("again_out", TensorProto.BOOL), helper.make_tensor_value_info("out", TensorProto.FLOAT, None)],
    )
    g.add("Loop", "", again, "answer", output="query", body=body)
    (folder / "encoder.onnx").write_bytes(g.model("query", ["batch", toy.dim]).SerializeToString())
    seal(folder)


def make_endless_to_load(folder: Path, toy: Toy) -> None:
    """Gives the bundle in `folder` an encoder whose constants take many seconds, as ONNX Runtime loads it."""
    g = extended(toy)
    g.nodes[-1].output[0] = "answer"
    product = g.add("ConstantOfShape", g.ints(1_000, 1_000), value=numpy_helper.from_array(np.zeros(1, np.float32)))
    for _ in range(100):
        product = g.add("MatMul", product, product)
    g.add("Add", "answer", g.add("ReduceSum", product, keepdims=0), output="query")
    (folder / "encoder.onnx").write_bytes(g.model("query", ["batch", toy.dim]).SerializeToString())
    seal(folder)
