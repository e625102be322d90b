"""Bundles of real models, read by the runtime as the app reads them: same scores, same ranks, same lists."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pyarrow.parquet as pq
import pytest
import torch

from engine.data.dataset import Dataset
from engine.evaluation import memorisation
from engine.export.weights import LEAST
from engine.models import Recommender
from engine.models.item_to_item import ItemToItem
from engine.models.ngcf import NGCF
from engine.runtime import CapabilityError, QuestionError, Zoo
from engine.training.run import open_run
from tests.export.conftest import BundleOf
from tests.models.contract import MATCHING
from tests.training.fixtures import RunOf
from tests.training.tiny import RECIPES

SCORED = ["popularity", "markov", "item-knn", "fmc", "mult-vae", "attrec", "bert4rec", "sasrec"]
"""By what the runtime does of its own: constants, sums, the last item alone, no vectors, distances, a token for what comes next;
each graph was compared when it was exported."""
CORNERS = {
    *SCORED, "counting", "text-neighbours", "caser", "hgn", "lightgcn", "ngcf", "recformer", "tfidf",
}  # fmt: skip
"""By the parts of a bundle, the kinds of networks and what they need, and all that other files export: others differ in layers
and tables."""
EVERY = [pytest.param(name, marks=[] if name in CORNERS else [pytest.mark.long]) for name in MATCHING]
ATTEND = {"sasrec", "bert4rec", "attrec", "recformer", "narm", "esasrec", "unisrec", "fdsa", "s3rec"}


@pytest.fixture(scope="module")
def exports(exported: RunOf) -> Path:
    """The bundles of small runs, which is a minute of work: no other file asks for as many."""
    for name in MATCHING:
        if name in CORNERS:
            exported(name)
    return exported("popularity")


@pytest.fixture(scope="module")
def zoo(exports: Path) -> Zoo:
    return Zoo.open(exports, warm=True)


def histories(dataset: Dataset, length: int, count: int = 6) -> list[list[int]]:
    """Real histories, repeated end to end where nobody's is long enough."""
    cases = dataset.cases("test")
    return [np.resize(cases.history[row], length).tolist() for row in range(0, len(cases), len(cases) // count)]


def lengths(model: Recommender) -> list[int]:
    longest = model.max_length
    return sorted({n for n in (1, 2, longest - 1, longest, longest + 1, 3 * longest) if n > 0})


def test_models_are_offered_in_their_order(zoo: Zoo) -> None:
    assert zoo.refused == [] and zoo.bundles.keys() >= CORNERS
    assert list(zoo.bundles) == [name for name in MATCHING if name in zoo.bundles]


@pytest.mark.parametrize("name", SCORED)
def test_scores_are_those_of_pytorch(zoo: Zoo, dataset: Dataset, run_of: RunOf, name: str) -> None:
    model, *_ = open_run(run_of(name))
    bundle = zoo.bundles[name]
    for length in [0, *lengths(model)] if model.min_history == 0 else lengths(model):
        for history in histories(dataset, length):
            with torch.no_grad():
                expected = model.scores(torch.tensor([history[-model.max_length :] or [model.pad]]))[0].numpy()
            np.testing.assert_allclose(bundle.scores(history), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["sasrec", "bert4rec", "attrec", pytest.param("narm", marks=pytest.mark.long)])
def test_attention_is_that_of_pytorch(bundle_of: BundleOf, dataset: Dataset, run_of: RunOf, name: str) -> None:
    model, *_ = open_run(run_of(name))
    bundle, shape = bundle_of(name), model.attention
    for length in lengths(model):
        for history in histories(dataset, length, 3):
            found = bundle.attention(history)
            with torch.no_grad():
                _, weights = model.query_with_attention(torch.tensor([history[-model.max_length :]]))
            size = min(length, shape.window) + shape.next_token
            assert len(found) == size
            shown = np.isfinite(found.weights)
            expected = weights[0, :, :, -size:, -size:].numpy()
            np.testing.assert_allclose(found.weights[shown], expected[shown], atol=1e-4)
            assert not expected[~shown].any()
            assert [item for item in found.items if item is not None] == history[-min(length, shape.window) :]


@pytest.mark.parametrize("name", EVERY)
def test_ranks_are_those_of_the_evaluation(bundle_of: BundleOf, dataset: Dataset, run_of: RunOf, name: str) -> None:
    """From training to the app: the rank that a page computes is the rank that the metrics were made of."""
    table = pq.read_table(run_of(name) / "ranks.parquet")
    ranks = table["rank"].to_numpy()[np.array(table["protocol"].to_pylist()) == "full"]
    cases, bundle = dataset.cases("test"), bundle_of(name)
    for row in range(0, len(cases), len(cases) // 20):
        (found,) = bundle.ranks(cases.history[row], [int(cases.targets[row])])
        assert found == ranks[row]
    shown = bundle.ranks_table()
    assert shown["rank"].to_numpy()[np.array(shown["protocol"].to_pylist()) == "full"].tolist() == ranks.tolist()


def test_lists_are_those_of_the_exposure(zoo: Zoo, dataset: Dataset) -> None:
    cases, bundle = dataset.cases("test"), zoo.bundles["sasrec"]
    counts = np.zeros(dataset.num_items, int)
    for row in range(len(cases)):
        # a target that was taken before is a candidate of the evaluation, not of a page
        target = int(cases.targets[row])
        history = cases.history[row]
        scores = bundle.scores(history)
        scores[[i for i in history.tolist() if i != target]] = -np.inf
        counts[np.argsort(-scores)[:10]] += 1
        if target not in history:
            assert set(bundle.recommend_one(history, 10).items.tolist()) == set(np.argsort(-scores)[:10].tolist())
    table = bundle.exposure_table()
    rows = table.to_pylist()
    found = {row["item"]: row["count"] for row in rows if row["protocol"] == "full" and row["k"] == 10}
    assert found == {item: int(count) for item, count in enumerate(counts) if count}


@pytest.mark.parametrize("name", EVERY)
def test_what_a_manifest_says(bundle_of: BundleOf, dataset: Dataset, run_of: RunOf, name: str) -> None:
    model, recipe, record, _ = open_run(run_of(name))
    manifest = bundle_of(name).manifest
    assert (manifest.name, manifest.family, manifest.dataset) == (name, name, "tiny")
    assert manifest.fingerprint == dataset.info.fingerprint
    assert manifest.training.recipe == json.loads(json.dumps(recipe.identity()))  # a tuple is a list there
    assert manifest.training.epochs == record["epochs"]
    assert manifest.training.commit == record["commit"]
    assert (manifest.encoder.max_length, manifest.index.geometry) == (model.max_length, model.geometry)
    assert manifest.metrics == json.loads((run_of(name) / "metrics.json").read_text("utf-8"))
    assert manifest.check.max_abs_difference <= 1e-4 and manifest.check.milliseconds is not None
    assert manifest.check.histories >= 8 * len(manifest.check.lengths)
    assert {1, model.max_length} <= set(manifest.check.lengths)
    can = manifest.capabilities
    assert can.attention == (name in ATTEND)
    assert (can.trained_users, can.reads_order) == (model.trained_users, model.reads_order)
    assert can.unseen_items == (name in ("recformer", "text-neighbours"))
    assert (manifest.graph is not None) == (name in ("lightgcn", "ngcf"))
    assert (manifest.item_to_item is not None) == isinstance(model, ItemToItem)
    for capability in ("attention", "neighbours", "map", "unseen_items", "trained_users"):
        if not getattr(can, capability):
            assert can.reasons[capability].endswith(".")
    if "unseen_items" in can.reasons:
        assert ("by their words" in can.reasons["unseen_items"]) == model.unseen_items


@pytest.mark.parametrize("name", EVERY)
def test_no_tensor_is_stored_twice(bundle_of: BundleOf, name: str) -> None:
    """And a bundle whose graphs read tensors of other files says so to older readers."""
    bundle = bundle_of(name)
    files = bundle.folder.path.glob("*.onnx")
    tensors = [tensor for file in files for tensor in onnx.load(file, load_external_data=False).graph.initializer]
    stored = [tensor.raw_data for tensor in tensors if len(tensor.raw_data) >= LEAST]
    index = np.load(bundle.folder.path / "index.npy")[:, :-1].tobytes()
    assert len(stored) == len(set(stored)) and not any(index and index in tensor for tensor in stored)
    shared = any(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in tensors)
    assert shared == (bundle.manifest.schema_version == 5) and (shared or name not in ATTEND - {"recformer"})


def test_the_graph_is_that_of_training_and_its_paths_add_up_to_the_scores(zoo: Zoo, dataset: Dataset) -> None:
    bundle, training = zoo.bundles["lightgcn"], dataset.training
    people = [np.unique(training[user]).tolist() for user in range(len(training)) if len(training[user])]
    graph, paths = bundle.graph, bundle.paths
    assert [items.tolist() for items in graph.people] == people
    for history in histories(dataset, 3):
        scores = bundle.scores(history)
        np.testing.assert_allclose(paths.scores(history), scores, atol=1e-4)
        adds = [branch.adds for branch in paths.branches(history, 5)]
        assert sum(part for part in adds if part is not None) == pytest.approx(float(scores[5]), abs=1e-4)


def test_layers_side_by_side_add_up_to_the_score(zoo: Zoo, dataset: Dataset, run_of: RunOf) -> None:
    model, layers = open_run(run_of("ngcf"))[0].eval(), zoo.bundles["ngcf"].layers
    assert isinstance(model, NGCF) and layers is not None
    with torch.inference_mode():
        of_items = [items.numpy() for _, items in model.layers()]
        for history in histories(dataset, 3):
            of_history = model.query(torch.tensor([history]))[0].split(model.config.dim)
            each = np.stack([items @ own.numpy() for items, own in zip(of_items, of_history, strict=True)])
            np.testing.assert_allclose(layers.by_layer(history, 5), each[:, 5], atol=1e-4)
            np.testing.assert_allclose(layers.scores(history), each.sum(0), atol=1e-4)
            np.testing.assert_allclose(layers.scores(history, without=1), each.sum(0) - each[1], atol=1e-4)


@pytest.mark.parametrize("name", EVERY)
def test_maps_and_curves(bundle_of: BundleOf, name: str) -> None:
    bundle = bundle_of(name)
    curve, drawn, manifest = bundle.curve_table(), bundle.map_table(), bundle.manifest
    assert ([] if curve is None else curve["epoch"].to_pylist()) == [1, 2, 3] * (name in RECIPES)
    assert (drawn is None) == (manifest.index.geometry == "none")
    if drawn is not None:
        assert drawn["item"].to_pylist() == list(range(150)) and manifest.projection is not None
        assert 0 < manifest.projection.trustworthiness <= 1
        assert name != "sasrec" or manifest.projection.parameters["metric"] == "cosine"


def test_an_item_is_known_by_its_words(zoo: Zoo) -> None:
    """One that the catalogue does not have gets the row that it would have there."""
    bundle = zoo.bundles["text-neighbours"]
    said = [{"title": title} for title in zoo.titles[:5]]
    np.testing.assert_allclose(bundle.encode(said), bundle.index.rows[:5], atol=1e-4)
    new = bundle.score_new([3, 7], [*said, {"title": "   "}])
    np.testing.assert_allclose(new[:5], bundle.scores([3, 7])[:5], atol=1e-4)
    assert new[5] == 0 and bundle.manifest.sentence is not None and bundle.manifest.sentence.without == 0
    with pytest.raises(QuestionError, match="does not read 'colour'"):
        bundle.encode([{"colour": "red"}])
    with pytest.raises(QuestionError, match="at most 1,000"):
        bundle.encode([{"title": "x"}] * 1001)
    with pytest.raises(CapabilityError):
        bundle.word_attention([1])


@pytest.mark.parametrize("how", ["missing", "another", "damaged"])
def test_without_its_text_encoder_a_model_works_but_for_new_items(
    exports: Path, copied: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("SEQSCOPE_WORDS", str(tmp_path / "none"))
    copy = copied("text-neighbours")
    if how != "missing":
        shutil.copytree(exports / "words", copy / "words")
        about = copy / "words" / "scratch" / "words.json"
        raw = json.loads(about.read_text("utf-8"))
        about.write_text("{" if how == "damaged" else json.dumps(raw | {"digest": "0" * 64}), "utf-8")
    zoo = Zoo.open(copy, warm=True)
    assert zoo.refused == []
    bundle = zoo.bundles["text-neighbours"]
    assert "is not installed here" in (bundle.cannot("unseen_items") or "")
    assert len(bundle.recommend_one([1, 2], 5).items) == 5
    with pytest.raises(CapabilityError, match="is not installed here"):
        bundle.encode([{"title": "x"}])
    monkeypatch.setenv("SEQSCOPE_WORDS", str(exports / "words"))
    assert bundle.cannot("unseen_items") is None  # it came later


def test_the_dataset_and_nothing_else_lies_beside_the_bundles(zoo: Zoo, dataset: Dataset, exports: Path) -> None:
    beside = {"dataset.json", "items.parquet", "users.parquet", "held_out.parquet", "words"}
    there = {path.name for path in exports.iterdir()}
    assert there >= beside and CORNERS <= there - beside <= MATCHING.keys()
    assert [path.name for path in (exports / "words").iterdir()] == ["scratch"]
    assert (exports / "dataset.json").read_bytes() == (dataset.path / "dataset.json").read_bytes()
    assert zoo.popularity.tolist() == dataset.popularity.tolist()
    assert zoo.item_ids == [f"i{number}" for number in range(150)]
    table, cases = pq.read_table(exports / "users.parquet"), dataset.cases("test")
    assert table["user"].to_pylist() == cases.users.tolist()
    assert table["user_id"].to_pylist() == [f"u{user}" for user in cases.users]
    assert table["history"].to_pylist() == [cases.history[row].tolist() for row in range(len(cases))]
    assert table["target"].to_pylist() == cases.targets.tolist()
    kinds = memorisation.of_test(dataset)
    assert (
        zoo.held_out["memorised"].to_pylist() == kinds.tolist()
        and zoo.held_out["user"].to_pylist() == cases.users.tolist()
    )


def test_nobodys_vector_is_in_a_graph(exports: Path, run_of: RunOf) -> None:
    """AttRec serves histories by the fold-in: the vectors of training users stay at home."""
    model, *_ = open_run(run_of("attrec"))
    users = model.state_dict()["users.weight"].numpy()
    content = b"".join(
        path.read_bytes() for path in sorted((exports / "attrec").iterdir()) if path.suffix in (".onnx", ".npy")
    )
    assert users.tobytes() not in content
    assert users[3].tobytes() not in content
