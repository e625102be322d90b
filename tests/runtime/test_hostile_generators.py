"""Generators whose bundles are damaged or malicious, one way each: refused by file and reason, and the others go on."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pytest
from onnx import TensorProto, helper

from engine.runtime import BundleError, Zoo
from tests.runtime.bundles import Toy, amend, flip, seal, write_bundle
from tests.runtime.generators import (
    ITEMS,
    ToyGenerator,
    decoder_graph,
    encoder_graph,
    full_length,
    ragged,
    with_attention,
    with_vectors,
    write_identifiers,
    write_zoo,
)
from tests.runtime.spoil import Cases, Spoil, each, graph, outside, refuses

TOY = ToyGenerator("alpha", cross=True)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_zoo(tmp_path_factory.mktemp("pristine"), TOY)
    write_bundle(path, Toy("beta"))
    assert Zoo.open(path).refused == []
    return path


# --- ways to spoil a bundle's folder


def entries(**changes: Any) -> Spoil:
    return lambda f: seal(f, **changes)


def say(**changes: Any) -> Spoil:
    """Changes what the manifest says of the generator."""
    return lambda f: amend(f, generator=changes)


def without(file: str) -> Spoil:
    return lambda f: ((f / file).unlink(), seal(f))


def whole_items_of_items(folder: Path) -> None:
    with_attention(folder, TOY, whole=True)
    amend(folder, attention={"unit": "items"})


def codes(change: Callable[[list[Any]], object], **columns: pa.Array) -> Spoil:
    def spoil(folder: Path) -> None:
        rows = TOY.identifiers.codes.tolist()
        change(rows)
        write_identifiers(folder, rows, **columns)
        seal(folder)

    return spoil


def identifiers_without_codes(folder: Path) -> None:
    pa.parquet.write_table(pa.table({"item": pa.array(range(ITEMS), pa.int32())}), folder / "identifiers.parquet")
    seal(folder)


def no_short_identifier(folder: Path) -> None:
    say(levels=4, sizes=[4] * 4, ends=True, vocabulary=17)(folder)
    write_identifiers(folder, full_length(sizes=(4, 4, 4, 4)).codes.tolist())
    decoder(replace(TOY, identifiers=ragged(shared=False)))(folder)


def decoder(toy: ToyGenerator, change: Callable[[onnx.GraphProto], object] = bool) -> Spoil:
    model = decoder_graph(toy)
    change(model.graph)
    return graph(model, "decoder.onnx")


def encoder(change: Callable[[onnx.GraphProto], object]) -> Spoil:
    model = encoder_graph(TOY)
    change(model.graph)
    return graph(model)


def retyped(name: str, kind: int, shape: list[str | int]) -> Callable[[onnx.GraphProto], None]:
    def change(graph: onnx.GraphProto) -> None:
        for value in (*graph.input, *graph.output):
            if value.name == name:
                value.CopyFrom(helper.make_tensor_value_info(name, kind, shape))

    return change


def vectors(latents: np.ndarray | None = None, books: np.ndarray | None = None) -> Spoil:
    latents = np.zeros((ITEMS, 5), np.float32) if latents is None else latents
    books = np.zeros((3, 6, 2), np.float32) if books is None else books
    return lambda f: with_vectors(f, latents, books)


INT32, INT64, FLOAT = TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT
OTHER_BOOKS = np.zeros((3, 6, 2), np.float32)
OTHER_BOOKS[1, 2] = np.nan

CASES: Cases = {
    "manifest.json": {
        "no identifiers": ("identifiers.parquet is not listed", without("identifiers.parquet")),
        "version 1": ("schema_version is 1, but what is described belongs to 2", entries(schema_version=1)),
        "version 2 without a generator": (
            "schema_version is 2, but what is described belongs to 1", entries(generator=None)
        ),
        "an index": (
            "belong together; here are dense and one", entries(index={"kind": "dense", "geometry": "none"})
        ),
        "a name too few": ("3 sizes and 1 names for 3 levels", say(names=["colour"])),
        "shared levels of different size": ("have one size", say(shared=True)),
        "a token too many": ("vocabulary 16 where the levels come to 15", say(vocabulary=16)),
        "keys beyond memory": (
            "layers × heads × head_dim is 64,000,000, more than", say(layers=1000, heads=1000, head_dim=64)
        ),
        "a beam of a million": ("generator.beam: Input should be", say(beam=1_000_000)),
        "neighbours without latents": (
            "item rows can be compared",
            lambda f: amend(f, capabilities={"neighbours": True}),
        ),
        "whole items of items": ("whole_items is said of positions that are items", whole_items_of_items),
    },
    "identifiers.parquet": {
        "identifiers without codes": ("the column codes is missing", identifiers_without_codes),
        "items out of order": (
            "row i must be item i, for all 40 items", codes(bool, item=pa.array(range(ITEMS)[::-1], pa.int32()))
        ),
        "a code of another level": ("a code lies outside its level", codes(lambda rows: rows[5].__setitem__(0, 5))),
        "a code below zero": ("it may hold 0 to 5", codes(lambda rows: rows[5].__setitem__(2, -1))),
        "a long identifier": ("identifiers have 3 to 4 codes, not 1 to 3", codes(lambda rows: rows[5].append(0))),
        "a short identifier": (
            "some of the identifiers are short, the manifest says otherwise", codes(lambda rows: rows[5].pop())
        ),
        "no short identifier": ("none of the identifiers are short", no_short_identifier),
        "codes left out": ("empty", codes(lambda rows: rows.__setitem__(3, None))),
    },
    "decoder.onnx": {
        "the encoder as decoder": (
            "the inputs must be called memory_keys, memory_mask", graph(encoder_graph(TOY), "decoder.onnx")
        ),
        "no cross attention": ("an output must be called cross_attention", decoder(replace(TOY, cross=False))),
        "another vocabulary": (
            "logits must be [any, 15], not [any, 17]", decoder(replace(TOY, identifiers=ragged(shared=False)))
        ),
        "one beam alone": (
            "input tokens must take [any, 1], not [1, 1]", decoder(TOY, retyped("tokens", INT64, [1, 1]))
        ),
        "weights elsewhere": (
            "keeps weights in another file", decoder(TOY, lambda graph: outside(graph.initializer[0]))
        ),
    },
    "encoder.onnx": {
        "the decoder as encoder": ("the one input must be called items", graph(decoder_graph(TOY))),
    },
    "latents.npy": {
        "latents too few": (
            "the shape must be (40, 5), not (39, 5)", vectors(np.zeros((ITEMS - 1, 5), np.float32))
        ),
    },
    "codebooks.npy": {
        "codebooks of NaN": ("level 1 holds NaN or infinity", vectors(books=OTHER_BOOKS)),
    },
}  # fmt: skip


@each(CASES)
def test_refused(path: Path, file: str, says: str, spoil: Spoil) -> None:
    refuses(path, file, says, spoil)


# --- what shows when it runs


def later(output: str, op: str, *constants: np.ndarray, **attributes: Any) -> Spoil:
    """One more operation before an output of the graph that has it."""
    of_encoder = output.startswith("memory")
    model = (encoder_graph if of_encoder else decoder_graph)(TOY)
    for node in model.graph.node:
        for names in (node.output, node.input):
            for place, name in enumerate(names):
                names[place] = "before" if name == output else name
    more = [f"extra{place}" for place in range(len(constants))]
    model.graph.initializer.extend(map(onnx.numpy_helper.from_array, constants, more))
    model.graph.node.append(helper.make_node(op, ["before", *more], [output], **attributes))
    for value in model.graph.output:
        if value.name == output:
            value.type.tensor_type.ClearField("shape")
    return graph(model, "encoder.onnx" if of_encoder else "decoder.onnx")


def table_too_short(graph: onnx.GraphProto) -> None:
    graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(TOY.embeddings[:2], graph.initializer[0].name))


NAN, INFINITY, ONE = np.float32(np.nan), np.float32(np.inf), np.float32(1)
LATER: Cases = {
    "decoder.onnx": {
        "logits of NaN": ("answered with NaN or infinity", later("logits", "Mul", NAN)),
        "logits of another width": (
            "where float32 [1, 15] was promised", later("logits", "Concat", np.zeros((1, 3), np.float32), axis=1)
        ),
        "keys that do not grow": (
            "where float32 [1, 2, 3, 1, 4] was promised",
            later("values", "Slice", np.array([0]), np.array([0]), np.array([3])),
        ),
        "a table too short": ("the graph failed", decoder(TOY, table_too_short)),
    },
    "encoder.onnx": {
        "nothing to look at": (
            "memory_mask must be 0 or −inf, and 0 somewhere", later("memory_mask", "Sub", INFINITY)
        ),
        "a mask of NaN": ("memory_mask must be 0 or −inf", later("memory_mask", "Mul", NAN)),
    },
}  # fmt: skip


@each(LATER)
def test_what_shows_only_when_it_runs(
    path: Path, file: str, says: str, spoil: Spoil, capfd: pytest.CaptureFixture[str]
) -> None:
    spoil(path / "alpha")
    zoo = Zoo.open(path)
    assert zoo.refused == []
    bundle = zoo.bundles["alpha"]
    for ask in (
        bundle.warm,
        lambda: bundle.trace([1, 2]),
        lambda: bundle.leave_one_out([1, 2], 3),
        lambda: bundle.recommend_one([1, 2], 3),
    ):
        with pytest.raises(BundleError) as caught:
            ask()
        assert caught.value.file == file and (says in caught.value.reason or says.endswith("promised"))
    assert says in caught.value.reason
    assert capfd.readouterr() == ("", "")


def test_weights_that_are_no_shares(path: Path) -> None:
    later("cross_attention", "Mul", np.float32(3))(path / "alpha")
    with pytest.raises(BundleError, match="shares that sum to at most 1"):
        Zoo.open(path).bundles["alpha"].cross_attention([1, 2], 3)
    say(lead=2)(path / "alpha")
    with pytest.raises(BundleError, match="a memory of 6 places, not 5 for each of 2 items"):
        Zoo.open(path).bundles["alpha"].cross_attention([1, 2], 3)


def test_too_many_codes(pristine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.bundle.tokenizers.CELLS", 100)
    zoo = Zoo.open(pristine)
    assert [refusal.file for refusal in zoo.refused] == ["identifiers.parquet"]
    assert "40 items of 3 codes are more than are read here" in zoo.refused[0].reason


@pytest.mark.parametrize("file", ["decoder.onnx", "identifiers.parquet"])
def test_large_files_are_checked_before_their_first_use(path: Path, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("bundle", "generator", "sessions"):
        monkeypatch.setattr(f"engine.runtime.{module}.EAGER_BYTES", 0)
    flip(path / "alpha" / file, 150)
    bundle = Zoo.open(path).bundles["alpha"]
    for _ in range(2):
        with pytest.raises(BundleError, match=rf"{file}: .*sha256 differs"):
            bundle.recommend_one([1, 2], 3)
