"""Small whole bundles of generators, written with onnx.helper, and the same network in a few lines of numpy.

A token leaves E[token] (as keys [layers, heads, head_dim], twice that as values). Logits after the tokens t0 (the first, BOS), …,
ts are tanh(Σ decay^(s − i) · (keys_i + values_i) + mean of the memory's keys and values over places that are not masked) · W:
they depend on every token through the past alone, and on their order.
"""

import functools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
from onnx import TensorProto

from engine.data.identifiers import NONE, Identifiers
from engine.runtime import Trace
from tests.runtime.bundles import Graph, Toy, amend, edit, manifest, seal, side_tables, value, write_dataset

LAYERS, HEADS, HEAD_DIM = 2, 3, 4
CELL = LAYERS * HEADS * HEAD_DIM
ITEMS = 40


def full_length(seed: int = 0, items: int = ITEMS, sizes: tuple[int, ...] = (4, 5, 6)) -> Identifiers:
    """Random codes, where items 3 and 7 (and some others by chance) share an identifier."""
    codes = np.random.default_rng(seed).integers(0, sizes, (items, len(sizes))).astype(np.int32)
    codes[7] = codes[3]
    return Identifiers(codes, sizes)


def ragged(seed: int = 0, shared: bool = True) -> Identifiers:
    """Of one to four codes; some begin as others end."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (ITEMS, 4)).astype(np.int32)
    for item, length in enumerate(rng.integers(1, 5, ITEMS)):
        codes[item, length:] = NONE
    codes[7] = codes[3]
    codes[10] = [1, 2, NONE, NONE]
    codes[11] = [1, 2, 0, NONE]
    return Identifiers(codes, (4,) * 4, shared)


@dataclass(frozen=True)
class ToyGenerator:
    name: str = "writer"
    identifiers: Identifiers = field(default_factory=full_length)
    max_length: int = 8
    seed: int = 0
    beam: int = 5
    decay: float = 0.7
    cross: bool = False
    """Whether attention to the memory is an output; an item then has `lead` + levels places, all alike."""
    lead: int = 0
    sharpness: float = 1.0

    @property
    def items(self) -> int:
        return len(self.identifiers)

    @functools.cached_property
    def places(self) -> np.ndarray:
        """float32 [items + 1, CELL]: what an item puts into the memory; n is padding, which is masked."""
        return np.random.default_rng(self.seed).standard_normal((self.items + 1, CELL)).astype(np.float32)

    @functools.cached_property
    def embeddings(self) -> np.ndarray:
        """float32 [vocabulary + 1, CELL]: a token's keys; the last is BOS."""
        rng = np.random.default_rng(self.seed + 1)
        return rng.standard_normal((self.identifiers.vocabulary + 1, CELL)).astype(np.float32)

    @functools.cached_property
    def output(self) -> np.ndarray:
        """float32 [CELL, vocabulary]"""
        rng = np.random.default_rng(self.seed + 2)
        shape = (CELL, self.identifiers.vocabulary)
        return (self.sharpness * rng.standard_normal(shape)).astype(np.float32)

    def logits(self, history: list[int], tokens: list[int]) -> np.ndarray:
        """After the history and BOS, tokens…: float64 [vocabulary]"""
        read = self.places[history[-self.max_length :]].astype(np.float64)
        memory = 3 * read.mean(0) if len(read) else 3 * self.places[-1].astype(np.float64)
        written = self.embeddings[[self.identifiers.vocabulary, *tokens]].astype(np.float64)
        ages = np.arange(len(written))[::-1]
        state = (self.decay ** ages[:, None] * 3 * written).sum(0) + memory
        return np.tanh(state) @ self.output.astype(np.float64)

    @functools.cached_property
    def ways(self) -> list[tuple[int, ...]]:
        """The tokens of each item, with one that ends them where they are short."""
        lengths = np.minimum((self.identifiers.codes != NONE).sum(1) + 1, self.identifiers.levels)
        return [tuple(row[:n].tolist()) for row, n in zip(self.identifiers.tokens(), lengths, strict=True)]

    def shares(self, history: list[int], prefix: list[int], constrained: bool) -> dict[int, float]:
        """Log-probability of each token that may follow the prefix."""
        logits = self.logits(history, prefix)
        allowed = range(self.identifiers.vocabulary)
        if constrained:
            cut = len(prefix)
            allowed = sorted({way[cut] for way in self.ways if way[:cut] == tuple(prefix) and len(way) > cut})
        chosen = logits[list(allowed)]
        total = chosen.max() + np.log(np.exp(chosen - chosen.max()).sum())
        return {token: float(logits[token] - total) for token in allowed}

    def scores(self, history: list[int], constrained: bool = True) -> np.ndarray:
        """float64 [items], one token at a time."""
        found, known = np.zeros(self.items), dict[tuple[int, ...], dict[int, float]]()
        for item in range(self.items):
            way = list(self.ways[item])
            for cut, token in enumerate(way):
                prefix = tuple(way[:cut])
                if prefix not in known:
                    known[prefix] = self.shares(history, way[:cut], constrained)
                found[item] += known[prefix][token]
        return found

    def beam_search(
        self, history: list[int], width: int, constrained: bool = True
    ) -> list[tuple[tuple[int, ...], float]]:
        """Identifiers and their scores, best first, by lists of lists."""
        end = self.identifiers.vocabulary - 1 if self.identifiers.ends else -1
        levels = self.identifiers.levels
        ways = set(self.ways)
        beams: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
        for _ in range(levels):
            found = []
            for way, score in beams:
                over = way in ways if constrained else len(way) == levels or way[-1:] == (end,)
                if over:
                    found.append((way, score))
                    continue
                for token, share in self.shares(history, list(way), constrained).items():
                    found.append(((*way, token), score + share))
            beams = sorted(found, key=lambda one: -one[1])[:width]
        return beams


def write_zoo(root: Path, *toys: ToyGenerator, name: str = "toys") -> Path:
    path = root / name
    path.mkdir(parents=True)
    write_dataset(path, toys[0].items)
    for toy in toys:
        write_generator(path, toy)
    return path


def write_generator(root: Path, toy: ToyGenerator) -> Path:
    folder = root / toy.name
    folder.mkdir()
    (folder / "encoder.onnx").write_bytes(encoder_graph(toy).SerializeToString())
    (folder / "decoder.onnx").write_bytes(decoder_graph(toy).SerializeToString())
    toy.identifiers.write(folder)
    (folder / "identifiers.json").unlink()
    plain = Toy(toy.name, items=toy.items, attention=None, geometry="none", max_length=toy.max_length)
    for file, table in side_tables(plain).items():
        pq.write_table(table, folder / file)
    (folder / "manifest.json").write_text(json.dumps(described(toy, manifest(plain))), "utf-8")
    seal(folder)
    return folder


def described(toy: ToyGenerator, base: dict[str, Any]) -> dict[str, Any]:
    of = toy.identifiers
    return base | {
        "schema_version": 2, "encoder": {"dim": CELL, "max_length": toy.max_length, "min_history": 0},
        "index": {"kind": "generated", "geometry": "none"},
        "generator": {
            "kind": "encoder-decoder", "levels": of.levels, "sizes": list(of.sizes), "names": [], "shared": of.shared,
            "ends": of.ends, "vocabulary": of.vocabulary, "layers": LAYERS, "heads": HEADS, "head_dim": HEAD_DIM,
            "beam": toy.beam, "cross_attention": toy.cross, "lead": toy.lead,
        },
    }  # fmt: skip


def with_vectors(folder: Path, latents: np.ndarray, codebooks: np.ndarray) -> None:
    """Adds latents.npy and codebooks.npy, and neighbours by the former."""
    np.save(folder / "latents.npy", latents)
    np.save(folder / "codebooks.npy", codebooks)
    written = {"latents": latents.shape[-1], "codebooks": codebooks.shape[-1]}
    amend(
        folder, generator=written, capabilities={"neighbours": True, "reasons": {}}, index={"geometry": "euclidean"},
    )  # fmt: skip


def with_attention(folder: Path, toy: ToyGenerator, whole: bool) -> None:
    """Adds attention.onnx over codes: causal, the same weight for all that may be seen."""
    g = Graph()
    levels = toy.identifiers.levels
    real = np.zeros((toy.items + 1, levels), bool)
    for item, way in enumerate(toy.ways):
        real[item, : len(way)] = True
    seen = g.add("Reshape", g.add("Gather", g.constant(real, bool), "items"), g.ints(0, 1, -1))
    size = g.add("Squeeze", g.add("Shape", seen, start=2, end=3))
    steps = g.add("Range", g.constant(0, np.int64), size, g.constant(1, np.int64))
    if whole:
        steps = g.add("Div", steps, g.ints(levels))
    later = g.add("Greater", g.add("Unsqueeze", steps, g.ints(0)), g.add("Unsqueeze", steps, g.ints(1)))
    hidden = g.add("Or", g.add("Not", seen), later)
    logits = g.add("Where", hidden, g.constant(-1e9, np.float32), g.constant(0, np.float32))
    weights = g.add("Unsqueeze", g.add("Softmax", logits, axis=-1), g.ints(1, 2))
    g.add("Concat", weights, weights, axis=1, output="attention")
    model = g.model("attention", ["batch", 2, 1, "rows", "columns"])
    (folder / "attention.onnx").write_bytes(model.SerializeToString())
    shape = {"layers": 2, "heads": 1, "causal": True, "window": toy.max_length, "next_token": False}
    edit(folder, attention=shape | {"unit": "codes", "whole_items": whole})
    amend(folder, capabilities={"attention": True})


def write_identifiers(folder: Path, codes: list[list[int]], **columns: Any) -> None:
    table = {"item": pa.array(range(len(codes)), pa.int32()), "codes": pa.array(codes, pa.list_(pa.int32()))}
    pq.write_table(pa.table(table | columns), folder / "identifiers.parquet")


def _cut(g: Graph, rows: str, output: str | None = None) -> str:
    """[batch, places, CELL] → [batch, LAYERS, HEADS, places, HEAD_DIM]"""
    parted = g.add("Reshape", rows, g.ints(0, 0, LAYERS, HEADS, HEAD_DIM))
    return g.add("Transpose", parted, perm=[0, 2, 3, 1, 4], output=output)


def _flat(g: Graph, parted: str) -> str:
    """The way back."""
    turned = g.add("Transpose", parted, perm=[0, 3, 1, 2, 4])
    return g.add("Reshape", turned, g.ints(0, 0, CELL))


def encoder_graph(toy: ToyGenerator) -> onnx.ModelProto:
    g = Graph()
    rows = g.add("Gather", g.constant(toy.places, np.float32), "items")
    padding = g.add("Equal", "items", g.ints(toy.items))
    if toy.cross:
        span = toy.lead + toy.identifiers.levels
        rows = g.add("Concat", *[g.add("Unsqueeze", rows, g.ints(2))] * span, axis=2)
        rows = g.add("Reshape", rows, g.ints(0, -1, CELL))
        padding = g.add("Concat", *[g.add("Unsqueeze", padding, g.ints(2))] * span, axis=2)
        padding = g.add("Reshape", padding, g.ints(0, -1))
    _cut(g, rows, "memory_keys")
    _cut(g, g.add("Mul", rows, g.constant(2, np.float32)), "memory_values")
    # of nothing at all, padding is read: a mean needs something
    some = g.add("ReduceMax", g.add("Cast", g.add("Not", padding), to=TensorProto.INT64), g.ints(1), keepdims=1)
    hidden = g.add("And", padding, g.add("Cast", some, to=TensorProto.BOOL))
    g.add("Where", hidden, g.constant(-np.inf, np.float32), g.constant(0, np.float32), output="memory_mask")
    parted = ("batch", LAYERS, HEADS, "memory", HEAD_DIM)
    return g.whole(
        [value("items", TensorProto.INT64, "batch", "length")],
        [
            value("memory_keys", TensorProto.FLOAT, *parted),
            value("memory_values", TensorProto.FLOAT, *parted),
            value("memory_mask", TensorProto.FLOAT, "batch", "memory"),
        ],
    )


def decoder_graph(toy: ToyGenerator) -> onnx.ModelProto:
    g = Graph()
    own = g.add("Gather", g.constant(toy.embeddings, np.float32), "tokens")  # [beams, 1, CELL]
    keys = g.add("Concat", "past_keys", _cut(g, own), axis=3, output="keys")
    doubled = g.add("Mul", own, g.constant(2, np.float32))
    values = g.add("Concat", "past_values", _cut(g, doubled), axis=3, output="values")
    sums = g.add("Add", _flat(g, keys), _flat(g, values))  # [beams, step + 1, CELL]
    step = g.add("Squeeze", "step")
    ages = g.add("Range", step, g.constant(-1, np.int64), g.constant(-1, np.int64))  # step, …, 0
    weight = g.add("Pow", g.constant(toy.decay, np.float32), g.add("Cast", ages, to=TensorProto.FLOAT))
    past = g.add("ReduceSum", g.add("Mul", sums, g.add("Unsqueeze", weight, g.ints(1))), g.ints(1), keepdims=0)
    seen = g.add("Softmax", "memory_mask", axis=-1)  # the same for all places that count
    memory = g.add("Add", _flat(g, "memory_keys"), _flat(g, "memory_values"))  # [1, memory, CELL]
    mean = g.add("ReduceSum", g.add("Mul", memory, g.add("Unsqueeze", seen, g.ints(2))), g.ints(1), keepdims=0)
    state = g.add("Tanh", g.add("Add", past, mean))
    g.add("MatMul", state, g.constant(toy.output, np.float32), output="logits")
    parted = (LAYERS, HEADS, "step", HEAD_DIM)
    outputs = [
        value("logits", TensorProto.FLOAT, "beams", toy.identifiers.vocabulary),
        value("keys", TensorProto.FLOAT, "beams", LAYERS, HEADS, "next", HEAD_DIM),
        value("values", TensorProto.FLOAT, "beams", LAYERS, HEADS, "next", HEAD_DIM),
    ]
    if toy.cross:
        beams = g.add("Shape", "tokens", start=0, end=1)
        shape = g.add("Concat", beams, g.ints(LAYERS, HEADS), g.add("Shape", "memory_mask", start=1, end=2), axis=0)
        g.add("Expand", g.add("Unsqueeze", seen, g.ints(1, 2)), shape, output="cross_attention")
        outputs.append(value("cross_attention", TensorProto.FLOAT, "beams", LAYERS, HEADS, "memory"))
    return g.whole(
        [
            value("tokens", TensorProto.INT64, "beams", 1),
            value("step", TensorProto.INT64, 1),
            value("memory_keys", TensorProto.FLOAT, 1, LAYERS, HEADS, "memory", HEAD_DIM),
            value("memory_values", TensorProto.FLOAT, 1, LAYERS, HEADS, "memory", HEAD_DIM),
            value("memory_mask", TensorProto.FLOAT, 1, "memory"),
            value("past_keys", TensorProto.FLOAT, "beams", *parted),
            value("past_values", TensorProto.FLOAT, "beams", *parted),
        ],
        outputs,
    )


def ended(trace: Trace) -> list[int]:
    """The rows of the identifiers that the beam ended with, best first."""
    rows = np.flatnonzero(trace.places >= 0)
    return rows[np.argsort(trace.places[rows])].tolist()


def written(trace: Trace) -> list[tuple[int, ...]]:
    """The tokens of those identifiers."""
    return [tuple(trace.tokens[trace.path(row)].tolist()) for row in ended(trace)]
