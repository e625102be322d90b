"""Generators whose bundles are damaged or malicious, one way each: refused by file and reason, and the others go on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pytest
from onnx import TensorProto, helper

from engine.runtime import BundleError, Zoo
from tests.runtime.bundles import Toy, seal, write_bundle
from tests.runtime.generators import (
    ITEMS,
    ToyGenerator,
    changed,
    decoder_graph,
    encoder_graph,
    full_length,
    ragged,
    with_attention,
    with_vectors,
    write_identifiers,
    write_zoo,
)

TOY = ToyGenerator("alpha", cross=True)
CASES: dict[str, tuple[str, str, Callable[[Path], None]]] = {}
LATER: dict[str, tuple[str, str, Callable[[Path], None]]] = {}


def case(
    file: str, says: str, cases: dict[str, tuple[str, str, Callable[[Path], None]]] = CASES
) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    """Registers a way to spoil the folder of "alpha": which file is named, and (a part of) the reason."""

    def register(spoil: Callable[[Path], None]) -> Callable[[Path], None]:
        cases[spoil.__name__] = (file, says, spoil)
        return spoil

    return register


def later(file: str, says: str) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    """What shows only when the graphs run."""
    return case(file, says, LATER)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_zoo(tmp_path_factory.mktemp("pristine"), TOY)
    write_bundle(path, Toy("beta"))
    assert Zoo.open(path).refused == []
    return path


def say(folder: Path, **changes: Any) -> None:
    """Changes what the manifest says of the generator."""
    raw = json.loads((folder / "manifest.json").read_text("utf-8"))
    seal(folder, generator=raw["generator"] | changes)


def entries(folder: Path, **changes: Any) -> None:
    seal(folder, **changes)


def graph(folder: Path, model: onnx.ModelProto, file: str = "decoder.onnx") -> None:
    (folder / file).write_bytes(model.SerializeToString())
    seal(folder)


def without(folder: Path, file: str) -> None:
    (folder / file).unlink()
    seal(folder)


def codes_of(change: Callable[[list[list[int]]], None]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        codes = TOY.identifiers.codes.tolist()
        change(codes)
        write_identifiers(folder, codes)
        seal(folder)

    return spoil


# --- manifest.json


@case("manifest.json", "decoder.onnx is not listed")
def no_decoder(folder: Path) -> None:
    without(folder, "decoder.onnx")


@case("manifest.json", "identifiers.parquet is not listed")
def no_identifiers(folder: Path) -> None:
    without(folder, "identifiers.parquet")


@case("manifest.json", "encoder.onnx is not listed")
def no_encoder(folder: Path) -> None:
    without(folder, "encoder.onnx")


@case("manifest.json", "latents.npy is not listed")
def no_latents(folder: Path) -> None:
    say(folder, latents=4)


@case("manifest.json", "codebooks.npy is not listed")
def no_codebooks(folder: Path) -> None:
    say(folder, codebooks=4)


@case("manifest.json", "schema_version is 1, but what is described belongs to 2")
def generator_of_version_1(folder: Path) -> None:
    entries(folder, schema_version=1)


@case("manifest.json", "schema_version is 2, but what is described belongs to 1")
def version_2_without_a_generator(folder: Path) -> None:
    entries(folder, generator=None)


@case("manifest.json", "belong together; here are dense and one")
def generator_with_an_index(folder: Path) -> None:
    entries(folder, index={"kind": "dense", "geometry": "none"})


@case("manifest.json", "2 sizes and 0 names for 3 levels")
def sizes_that_are_not_the_levels(folder: Path) -> None:
    say(folder, sizes=[4, 5])


@case("manifest.json", "3 sizes and 1 names for 3 levels")
def a_name_too_few(folder: Path) -> None:
    say(folder, names=["colour"])


@case("manifest.json", "at least one code")
def a_level_of_nothing(folder: Path) -> None:
    say(folder, sizes=[4, 0, 6], vocabulary=10)


@case("manifest.json", "have one size")
def shared_levels_of_different_size(folder: Path) -> None:
    say(folder, shared=True)


@case("manifest.json", "vocabulary 16 where the levels come to 15")
def a_token_too_many(folder: Path) -> None:
    say(folder, vocabulary=16)


@case("manifest.json", "layers × heads × head_dim is 64,000,000, more than")
def keys_beyond_memory(folder: Path) -> None:
    say(folder, layers=1000, heads=1000, head_dim=64)


@case("manifest.json", "generator.levels: Input should be less than or equal to 64")
def a_million_levels(folder: Path) -> None:
    say(folder, levels=1_000_000)


@case("manifest.json", "generator.beam: Input should be")
def a_beam_of_a_million(folder: Path) -> None:
    say(folder, beam=1_000_000)


@case("manifest.json", "generator.magic: Extra inputs")
def an_unknown_entry(folder: Path) -> None:
    say(folder, magic=1)


@case("manifest.json", "item rows can be compared")
def neighbours_without_latents(folder: Path) -> None:
    raw = json.loads((folder / "manifest.json").read_text("utf-8"))
    entries(folder, capabilities=raw["capabilities"] | {"neighbours": True})


@case("manifest.json", "whole_items is said of positions that are items")
def whole_items_of_items(folder: Path) -> None:
    with_attention(folder, TOY, whole=True)
    raw = json.loads((folder / "manifest.json").read_text("utf-8"))
    entries(folder, attention=raw["attention"] | {"unit": "items"})


# --- identifiers.parquet


@case("identifiers.parquet", "sha256 differs")
def identifiers_of_another_export(folder: Path) -> None:
    file = folder / "identifiers.parquet"
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(content)


@case("identifiers.parquet", "the column codes is missing")
def identifiers_without_codes(folder: Path) -> None:
    pa.parquet.write_table(pa.table({"item": pa.array(range(ITEMS), pa.int32())}), folder / "identifiers.parquet")
    seal(folder)


@case("identifiers.parquet", "row i must be item i, for all 40 items")
def an_item_without_identifier(folder: Path) -> None:
    codes_of(lambda codes: codes.pop())(folder)


@case("identifiers.parquet", "row i must be item i, for all 40 items")
def items_out_of_order(folder: Path) -> None:
    write_identifiers(folder, TOY.identifiers.codes.tolist(), item=pa.array(range(ITEMS)[::-1], pa.int32()))
    seal(folder)


@case("identifiers.parquet", "a code lies outside its level")
def a_code_of_another_level(folder: Path) -> None:
    codes_of(lambda codes: codes[5].__setitem__(0, 5))(folder)


@case("identifiers.parquet", "holds 0 to 6; it may hold 0 to 5")
def a_code_of_no_level(folder: Path) -> None:
    codes_of(lambda codes: codes[5].__setitem__(2, 6))(folder)


@case("identifiers.parquet", "it may hold 0 to 5")
def a_code_below_zero(folder: Path) -> None:
    codes_of(lambda codes: codes[5].__setitem__(2, -1))(folder)


@case("identifiers.parquet", "identifiers have 0 to 3 codes, not 1 to 3")
def an_empty_identifier(folder: Path) -> None:
    codes_of(lambda codes: codes[5].clear())(folder)


@case("identifiers.parquet", "identifiers have 3 to 4 codes, not 1 to 3")
def a_long_identifier(folder: Path) -> None:
    codes_of(lambda codes: codes[5].append(0))(folder)


@case("identifiers.parquet", "some of the identifiers are short, the manifest says otherwise")
def a_short_identifier(folder: Path) -> None:
    codes_of(lambda codes: codes[5].pop())(folder)


@case("identifiers.parquet", "none of the identifiers are short")
def no_short_identifier(folder: Path) -> None:
    longer = ToyGenerator("other", ragged(shared=False))
    full = full_length(sizes=(4, 4, 4, 4))
    say(folder, levels=4, sizes=[4] * 4, ends=True, vocabulary=17)
    write_identifiers(folder, full.codes.tolist())
    graph(folder, decoder_graph(changed(TOY, identifiers=longer.identifiers)))


@case("identifiers.parquet", "empty")
def codes_left_out(folder: Path) -> None:
    codes = TOY.identifiers.codes.tolist()
    codes[3] = None
    write_identifiers(folder, codes)
    seal(folder)


# --- graphs, before they run


@case("decoder.onnx", "the inputs must be called memory_keys, memory_mask")
def the_encoder_as_decoder(folder: Path) -> None:
    graph(folder, encoder_graph(TOY))


@case("encoder.onnx", "the one input must be called items")
def the_decoder_as_encoder(folder: Path) -> None:
    graph(folder, decoder_graph(TOY), "encoder.onnx")


def altered(change: Callable[[onnx.GraphProto], None]) -> onnx.ModelProto:
    model = decoder_graph(TOY)
    change(model.graph)
    return model


def retyped(name: str, kind: int, shape: list[str | int]) -> Callable[[onnx.GraphProto], None]:
    def change(found: onnx.GraphProto) -> None:
        for values in (found.input, found.output):
            for value in values:
                if value.name == name:
                    value.CopyFrom(helper.make_tensor_value_info(name, kind, shape))

    return change


@case("decoder.onnx", "an output must be called logits, not keys, values")
def no_logits(folder: Path) -> None:
    model = decoder_graph(changed(TOY, cross=False))
    del model.graph.output[0]
    graph(folder, model)


@case("decoder.onnx", "an output must be called cross_attention")
def no_cross_attention(folder: Path) -> None:
    graph(folder, decoder_graph(changed(TOY, cross=False)))


@case("decoder.onnx", "output logits must be [any, 15], not [any, 17]")
def another_vocabulary(folder: Path) -> None:
    graph(folder, decoder_graph(changed(TOY, identifiers=ragged(shared=False))))


@case("decoder.onnx", "input tokens must be int64")
def tokens_that_are_numbers(folder: Path) -> None:
    graph(folder, altered(retyped("tokens", TensorProto.INT32, ["beams", 1])))


@case("decoder.onnx", "input tokens must take [any, 1], not [1, 1]")
def one_beam_alone(folder: Path) -> None:
    graph(folder, altered(retyped("tokens", TensorProto.INT64, [1, 1])))


@case("decoder.onnx", "input past_keys must take [any, 2, 3, any, 4], not [any, 2, 3, 1, 4]")
def one_step_alone(folder: Path) -> None:
    graph(folder, altered(retyped("past_keys", TensorProto.FLOAT, ["beams", 2, 3, 1, 4])))


@case("decoder.onnx", "input past_values must take [any, 2, 3, any, 4], not [any, 2, 9, any, 4]")
def heads_too_many(folder: Path) -> None:
    graph(folder, altered(retyped("past_values", TensorProto.FLOAT, ["beams", 2, 9, "step", 4])))


@case("decoder.onnx", "output keys must be [any, 2, 3, any, 4], not [any, 2, 3, any, 5]")
def keys_too_wide(folder: Path) -> None:
    graph(folder, altered(retyped("keys", TensorProto.FLOAT, ["beams", 2, 3, "next", 5])))


@case("encoder.onnx", "output memory_keys must be [any, 2, 3, any, 4]")
def memory_of_other_layers(folder: Path) -> None:
    model = encoder_graph(TOY)
    retyped("memory_keys", TensorProto.FLOAT, ["batch", 7, 3, "memory", 4])(model.graph)
    graph(folder, model, "encoder.onnx")


@case("encoder.onnx", "an output must be called memory_mask")
def memory_without_mask(folder: Path) -> None:
    model = encoder_graph(TOY)
    del model.graph.output[2]
    graph(folder, model, "encoder.onnx")


@case("decoder.onnx", "keeps weights in another file")
def weights_elsewhere(folder: Path) -> None:
    model = decoder_graph(TOY)
    tensor = model.graph.initializer[0]
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "/etc/passwd"
    graph(folder, model)


# --- arrays


@case("latents.npy", "the shape must be (40, 5), not (39, 5)")
def latents_too_few(folder: Path) -> None:
    with_vectors(folder, np.zeros((ITEMS - 1, 5), np.float32), np.zeros((3, 6, 2), np.float32))


@case("latents.npy", "numbers must be float32")
def latents_too_fine(folder: Path) -> None:
    with_vectors(folder, np.zeros((ITEMS, 5)), np.zeros((3, 6, 2), np.float32))


@case("codebooks.npy", "level 1 holds NaN or infinity")
def codebooks_of_nan(folder: Path) -> None:
    books = np.zeros((3, 6, 2), np.float32)
    books[1, 2] = np.nan
    with_vectors(folder, np.zeros((ITEMS, 5), np.float32), books)


@case("codebooks.npy", "the shape must be (3, 6, 2)")
def codebooks_of_other_sizes(folder: Path) -> None:
    with_vectors(folder, np.zeros((ITEMS, 5), np.float32), np.zeros((3, 9, 2), np.float32))


@pytest.mark.parametrize("name", CASES)
def test_refused(pristine: Path, tmp_path: Path, name: str) -> None:
    file, says, spoil = CASES[name]
    path = tmp_path / "toys"
    shutil.copytree(pristine, path)
    spoil(path / "alpha")
    zoo = Zoo.open(path)
    assert list(zoo.bundles) == ["beta"]
    (refusal,) = zoo.refused
    assert refusal.name == "alpha" and refusal.file == file and says in refusal.reason, refusal.reason
    assert len(zoo.bundles["beta"].recommend_one([1], 3).items) == 3


# --- what shows when it runs


def rewired(model: onnx.ModelProto, output: str, op: str, *constants: np.ndarray, **attributes: Any) -> onnx.ModelProto:
    """The graph with one more operation before an output."""
    for node in model.graph.node:
        for place, name in enumerate(node.output):
            if name == output:
                node.output[place] = "before"
        for place, name in enumerate(node.input):
            if name == output:
                node.input[place] = "before"
    names = []
    for place, constant in enumerate(constants):
        names.append(f"extra{place}")
        model.graph.initializer.append(onnx.numpy_helper.from_array(constant, names[-1]))
    model.graph.node.append(helper.make_node(op, ["before", *names], [output], **attributes))
    for value in model.graph.output:
        if value.name == output:
            value.type.tensor_type.ClearField("shape")
    return model


@later("decoder.onnx", "answered with NaN or infinity")
def logits_of_nan(folder: Path) -> None:
    graph(folder, rewired(decoder_graph(TOY), "logits", "Mul", np.float32(np.nan)))


@later("decoder.onnx", "answered with NaN or infinity")
def logits_of_infinity(folder: Path) -> None:
    graph(folder, rewired(decoder_graph(TOY), "logits", "Add", np.float32(np.inf)))


@later("decoder.onnx", "answered with NaN or infinity")
def keys_of_nan(folder: Path) -> None:
    graph(folder, rewired(decoder_graph(TOY), "keys", "Mul", np.float32(np.nan)))


@later("decoder.onnx", "where float32 [1, 15] was promised")
def logits_of_another_width(folder: Path) -> None:
    graph(folder, rewired(decoder_graph(TOY), "logits", "Concat", np.zeros((1, 3), np.float32), axis=1))


@later("decoder.onnx", "was promised")
def logits_turned(folder: Path) -> None:
    graph(folder, rewired(decoder_graph(TOY), "logits", "Transpose", perm=[1, 0]))


@later("decoder.onnx", "where float32 [1, 2, 3, 1, 4] was promised")
def keys_that_do_not_grow(folder: Path) -> None:
    ends = (np.array([0]), np.array([0]), np.array([3]))
    graph(folder, rewired(decoder_graph(TOY), "values", "Slice", *ends))


@later("decoder.onnx", "the graph failed")
def a_table_too_short(folder: Path) -> None:
    model = decoder_graph(TOY)
    table = onnx.numpy_helper.from_array(TOY.embeddings[:2], model.graph.initializer[0].name)
    model.graph.initializer[0].CopyFrom(table)
    graph(folder, model)


@later("encoder.onnx", "memory_mask must be 0 or −inf, and 0 somewhere")
def nothing_to_look_at(folder: Path) -> None:
    graph(folder, rewired(encoder_graph(TOY), "memory_mask", "Sub", np.float32(np.inf)), "encoder.onnx")


@later("encoder.onnx", "memory_mask must be 0 or −inf")
def a_mask_of_nan(folder: Path) -> None:
    graph(folder, rewired(encoder_graph(TOY), "memory_mask", "Mul", np.float32(np.nan)), "encoder.onnx")


@later("encoder.onnx", "memory_mask must be 0 or −inf")
def a_mask_of_ones(folder: Path) -> None:
    graph(folder, rewired(encoder_graph(TOY), "memory_mask", "Add", np.float32(1)), "encoder.onnx")


@later("encoder.onnx", "NaN or infinity")
def a_memory_of_nan(folder: Path) -> None:
    graph(folder, rewired(encoder_graph(TOY), "memory_values", "Mul", np.float32(np.nan)), "encoder.onnx")


@later("encoder.onnx", "where float32 [1, 2, 3, 6, 4] was promised")
def a_memory_longer_than_its_mask(folder: Path) -> None:
    model = rewired(encoder_graph(TOY), "memory_keys", "Concat", np.zeros((1, 2, 3, 5, 4), np.float32), axis=3)
    graph(folder, model, "encoder.onnx")


@pytest.mark.parametrize("name", LATER)
def test_what_shows_only_when_it_runs(
    pristine: Path, tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    file, says, spoil = LATER[name]
    path = tmp_path / "toys"
    shutil.copytree(pristine, path)
    spoil(path / "alpha")
    zoo = Zoo.open(path)
    assert zoo.refused == []
    bundle = zoo.bundles["alpha"]
    for ask in (
        lambda: bundle.recommend_one([1, 2], 3),
        lambda: bundle.scores([1, 2]),
        lambda: bundle.trace([1, 2]),
        lambda: bundle.ranks([1, 2], [3]),
        lambda: bundle.leave_one_out([1, 2], 3),
        bundle.warm,
    ):
        with pytest.raises(BundleError) as caught:
            ask()
        assert caught.value.file == file and (says in caught.value.reason or says.endswith("promised"))
    with pytest.raises(BundleError) as caught:
        bundle.recommend_one([1, 2], 3)
    assert says in caught.value.reason
    assert capfd.readouterr() == ("", "")


def test_weights_that_are_no_shares(pristine: Path, tmp_path: Path) -> None:
    path = tmp_path / "toys"
    shutil.copytree(pristine, path)
    graph(path / "alpha", rewired(decoder_graph(TOY), "cross_attention", "Mul", np.float32(3)))
    with pytest.raises(BundleError, match="shares that sum to at most 1"):
        Zoo.open(path).bundles["alpha"].cross_attention([1, 2], 3)
    say(path / "alpha", lead=2)
    with pytest.raises(BundleError, match="a memory of 6 places, not 5 for each of 2 items"):
        Zoo.open(path).bundles["alpha"].cross_attention([1, 2], 3)


def test_too_many_codes(pristine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.bundle.tokenizers.CELLS", 100)
    zoo = Zoo.open(pristine)
    assert [refusal.file for refusal in zoo.refused] == ["identifiers.parquet"]
    assert "40 items of 3 codes are more than are read here" in zoo.refused[0].reason


def test_large_files_are_checked_before_their_first_use(
    pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("bundle", "generator", "sessions"):
        monkeypatch.setattr(f"engine.runtime.{module}.EAGER_BYTES", 0)
    for file in ("encoder.onnx", "decoder.onnx", "identifiers.parquet"):
        path = tmp_path / file / "toys"
        shutil.copytree(pristine, path)
        content = bytearray((path / "alpha" / file).read_bytes())
        content[150] ^= 1
        (path / "alpha" / file).write_bytes(content)
        bundle = Zoo.open(path).bundles["alpha"]
        for _ in range(2):
            with pytest.raises(BundleError, match=rf"{file}: .*sha256 differs"):
                bundle.recommend_one([1, 2], 3)
