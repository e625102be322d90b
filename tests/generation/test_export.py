"""A generator's bundle: graphs that answer as PyTorch does, tables, and a manifest that the runtime reads."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.data.dataset import Dataset
from engine.errors import SeqscopeError
from engine.evaluation.evaluate import evaluate
from engine.export import generator
from engine.export.bundle import export_run
from engine.generation import Generator
from engine.generation.search import beam_search
from engine.runtime import Zoo
from engine.training.run import open_run, train
from tests.generation.learn import ITEMS, circle, recipe, store
from tests.runtime.generators import ended, written
from tests.training.tiny import cycles, write_log

FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "both-ways": ("encoder-decoder", {"layers": 2}),
    "left-to-right": ("encoder-decoder", {"causal": True, "user_tokens": 5, "tied": False}),
    "alone": ("decoder-only", {}),
}


NAMES = ["both-ways", *(pytest.param(name, marks=pytest.mark.long) for name in ("left-to-right", "alone"))]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generators")
    write_log(folder / "data" / "tiny", cycles(60, ITEMS), ITEMS)
    codes = folder / "runs" / "codes"
    store(dataclasses.replace(circle(), about={"tokenizer": "letter", "family": "letter"}), codes)
    np.save(codes / "latents.npy", np.random.default_rng(0).normal(size=(ITEMS, 4)).astype(np.float32))
    return folder


@pytest.fixture
def name() -> str:
    return "both-ways"


@pytest.fixture
def made(base: Path, name: str) -> tuple[Path, Path]:
    """The folder of the runs and that of their bundles, those of `name` among them. No test may change them."""
    runs, exports, dataset = base / "runs", base / "exports" / "tiny", Dataset(base / "data" / "tiny")
    for wanted in {"both-ways", name}:
        if not (runs / wanted).exists():
            family, model = FAMILIES[wanted]
            training = {"epochs": 2, "validate_every": 2}
            train(recipe(family, model=model, training=training), dataset, runs / wanted, device="cpu")
            evaluate(open_run(runs / wanted)[0], dataset, runs / wanted)
            export_run(runs / wanted, exports)
    return runs, exports


@pytest.mark.parametrize("name", NAMES)
def test_the_runtime_answers_as_the_model(made: tuple[Path, Path], name: str) -> None:
    runs, exports = made
    model, *_ = open_run(runs / name)
    bundle = Zoo.open(exports).bundles[name]
    for history in ([3], [5, 6, 7], list(range(20, 33))):
        with torch.no_grad():
            wanted = model.query(torch.tensor([history[-model.max_length :]]))[0].numpy()
        np.testing.assert_allclose(bundle.scores(history), wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("width", "without"), [(4, True), (20, False)])
@pytest.mark.parametrize("name", NAMES)
def test_the_beam_is_that_of_the_evaluation(made: tuple[Path, Path], name: str, width: int, without: bool) -> None:
    """The app's search, with numpy and ONNX, against the one that metrics were measured with, in PyTorch."""
    runs, exports = made
    model, *_ = open_run(runs / name)
    assert isinstance(model, Generator)
    bundle = Zoo.open(exports).bundles[name]
    for history in ([3], [5, 6, 7], list(range(20, 33)), list(range(0, 30, 2))):
        blocked = torch.zeros(1, model.num_items, dtype=torch.bool)
        blocked[0, history] = without
        with torch.no_grad():
            memory = model.encode(torch.tensor([history[-model.max_length :]]))
            wanted = beam_search(model, memory, width, blocked=blocked)
        real = wanted.scores[0] > -torch.inf
        bundle.excludes_history = without
        trace = bundle.trace(history, width)
        np.testing.assert_allclose(trace.scores[ended(trace)], wanted.scores[0, real].numpy(), atol=1e-4, rtol=1e-4)
        np.testing.assert_array_equal(written(trace), wanted.tokens[0, real].numpy())


@pytest.mark.parametrize("name", NAMES)
def test_the_manifest_says_what_the_graphs_are(made: tuple[Path, Path], name: str) -> None:
    manifest = Zoo.open(made[1]).bundles[name].manifest
    described, family = manifest.generator, FAMILIES[name][0]
    assert (manifest.schema_version, manifest.family) == (5, family) and described is not None
    assert (described.kind, described.levels, described.sizes) == (family, 3, [6, 5, 2])
    assert (described.vocabulary, described.ends, described.lead) == (13, False, int(family == "decoder-only"))
    assert described.latents == 4 and manifest.capabilities.neighbours and manifest.capabilities.map
    assert manifest.paper.endswith("(LETTER)")
    # after the same with TIGER's identifiers
    assert manifest.order == {"encoder-decoder": 52, "decoder-only": 62}[family]
    assert {"encoder.onnx", "decoder.onnx", "attention.onnx", "identifiers.parquet"} <= manifest.files.keys()
    assert "index.npy" not in manifest.files


@pytest.mark.parametrize("name", NAMES)
def test_attention_has_a_place_per_code(made: tuple[Path, Path], name: str) -> None:
    bundle = Zoo.open(made[1]).bundles[name]
    seen = bundle.attention([5, 6, 7])
    assert seen.weights.shape[-2:] == (9, 9)
    crossed = bundle.cross_attention([5, 6, 7], 8)
    assert crossed.weights.shape[0] == 3


@pytest.mark.parametrize("part", ["encoder.0.attention.query", "decoder.1.own.key"])
def test_a_graph_that_differs_is_refused(made: tuple[Path, Path], part: str) -> None:
    """The graphs of one model and, in PyTorch, another that differs in one matrix."""
    model, recipe, _, data = open_run(made[0] / "both-ways")
    cases = data.cases("test")
    generator.compare(made[1] / "both-ways", model, cases, recipe.training.seed)  # type: ignore[arg-type]
    with torch.no_grad():
        model.get_submodule(part).weight += 0.3  # type: ignore[operator]
    with pytest.raises(SeqscopeError, match="differs from PyTorch"):
        generator.compare(made[1] / "both-ways", model, cases, recipe.training.seed)  # type: ignore[arg-type]
