"""Generators learn what is there to learn, by items and not by strings, and nothing from noise."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from engine.commands.evaluate import table
from engine.data.identifiers import Identifiers
from engine.evaluation import metrics
from engine.evaluation.evaluate import agreement, evaluate
from engine.evaluation.ranks import full_ranks, sampled_ranks
from engine.evaluation.significance import paired
from engine.generation import Generator
from engine.training.run import open_run, train
from tests.generation.learn import ITEMS, apart, circle, recipe, store
from tests.training.tiny import check_apart, cycles, noise, trainer, write_log
from tests.training.tiny import recipe as other_recipe

FAMILIES: list[Any] = [
    ("encoder-decoder", {}, 6),
    pytest.param("encoder-decoder", {"causal": True}, 25, marks=pytest.mark.long),
    ("decoder-only", {}, 45),
]


def trained(folder: Path, sequences: list[list[int]], table: Identifiers, family: str, model: Any, epochs: int) -> Any:
    dataset = write_log(folder / "data", sequences, ITEMS)
    store(table, folder / "runs" / "codes")
    training = {"epochs": epochs, "validate_every": epochs}
    train(recipe(family, model=model, training=training), dataset, folder / "runs" / "run", device="cpu")
    return open_run(folder / "runs" / "run")[0], dataset


@pytest.mark.parametrize(("family", "model", "epochs"), FAMILIES)
def test_what_always_comes_next_is_learned(tmp_path: Path, family: str, model: dict[str, Any], epochs: int) -> None:
    found, dataset = trained(tmp_path, cycles(), apart(), family, model, epochs)
    cases = dataset.cases("test")
    ranks = full_ranks(found, cases).ranks
    assert metrics.accuracy(ranks)["NDCG@10"] > 0.85
    beam = full_ranks(found, cases, beam=20).ranks
    assert np.isclose(metrics.ndcg(beam, 5), metrics.ndcg(ranks, 5)).mean() > 0.95


@pytest.mark.parametrize(("family", "people"), [("encoder-decoder", {"user_tokens": 5}), ("decoder-only", {})])
def test_threads_apart_have_the_gradient_of_the_batch(tmp_path: Path, family: str, people: dict[str, int]) -> None:
    store(apart(), tmp_path / "runs" / "codes")
    settings = recipe(family, model={"dropout": 0.1, **people})
    check_apart(trainer(settings, write_log(tmp_path / "data", cycles(), ITEMS), tmp_path / "runs" / "run"))


@pytest.mark.parametrize("family", ["encoder-decoder", pytest.param("decoder-only", marks=pytest.mark.long)])
def test_nothing_is_learned_from_noise(tmp_path: Path, family: str) -> None:
    model, dataset = trained(tmp_path, noise(), apart(), family, {}, 4)
    train(other_recipe("popularity"), dataset, tmp_path / "popularity", device="cpu")
    popular, *_ = open_run(tmp_path / "popularity")
    gain, base = (metrics.ndcg(full_ranks(m, dataset.cases("test")).ranks, 10) for m in (model, popular))
    assert paired(gain, base).low <= 0
    assert gain.mean() < 0.25


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A model whose items share identifiers, and its dataset."""
    return trained(tmp_path_factory.mktemp("shared"), cycles(), circle(), "encoder-decoder", {}, 4)


def test_items_that_share_an_identifier_are_a_tie(shared: tuple[Generator, Any]) -> None:
    """No better than the mean of the places that they take together, whichever of them was meant."""
    model, dataset = shared
    cases = dataset.cases("test")
    kept = full_ranks(model, cases, exclude_history=False).ranks
    twin = np.isin(cases.targets % 10, (0, 1))
    assert twin.any()
    assert (kept[twin] % 1 == 0.5).all()  # two at the places r and r + 1
    assert (kept[twin] >= 1.5).all()
    assert (kept[~twin] % 1 == 0).all()
    beam = full_ranks(model, cases, exclude_history=False, beam=10).ranks
    assert np.array_equal(beam[kept <= 5], kept[kept <= 5])


def test_targets_that_a_beam_misses_share_what_is_left(shared: tuple[Generator, Any]) -> None:
    model, dataset = shared
    cases = dataset.cases("test")
    exact = full_ranks(model, cases, exclude_history=False).ranks
    ranks = full_ranks(model, cases, exclude_history=False, beam=1, lists=True)
    single = 1 + (ITEMS - 1) / 2 + 0.5  # one item was found: the others share places 2 to 60
    twins = 2 + (ITEMS - 2) / 2 + 0.5
    assert set(ranks.ranks.tolist()) <= {1.0, 1.5, single, twins}
    assert set(ranks.ranks[exact > 5].tolist()) <= {single, twins}
    assert ranks.outside == np.count_nonzero(ranks.ranks >= single)
    assert (ranks.exposure[50].sum() >= len(cases)) and (ranks.exposure[50].sum() <= 2 * len(cases))
    assert ranks.exposure[50].sum() == ranks.exposure[5].sum()  # what was not found is shown to nobody


def test_a_beam_leaves_the_history_out_before_it_ends(shared: tuple[Generator, Any]) -> None:
    """Ten identifiers are searched for, and the history takes none of their places unless all below a prefix was taken."""
    model, dataset = shared
    cases = dataset.cases("test")
    ranks = full_ranks(model, cases, beam=10, lists=True)
    assert 9.9 * len(cases) < ranks.exposure[10].sum() <= 10 * len(cases)


def test_ranks_among_few_are_those_among_all(shared: tuple[Generator, Any]) -> None:
    model, dataset = shared
    cases = dataset.cases("test")
    everything = np.stack([np.delete(np.arange(ITEMS), target) for target in cases.targets])
    assert np.array_equal(
        sampled_ranks(model, cases, everything).ranks, full_ranks(model, cases, exclude_history=False).ranks
    )


def test_a_wide_beam_agrees_with_exact_scores(shared: tuple[Generator, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model, dataset = shared
    monkeypatch.setattr("engine.evaluation.evaluate.FIRST", 5)
    monkeypatch.setattr("engine.evaluation.evaluate.WIDTHS", (1, 5, 60))
    shares = agreement(model, dataset.cases("test"), histories=40)
    assert shares["histories"] == 40
    widths = shares["widths"]
    assert widths["60"]["overlap"] == widths["60"]["same"] == 1
    assert widths["1"]["overlap"] <= widths["5"]["overlap"] <= 1
    assert 0 <= widths["60"]["invalid"] <= 1
    assert widths["60"]["invalid"] > 0  # sixty strings, of which some are nobody's


def test_an_evaluation_says_how_it_ranked(shared: tuple[Generator, Any], tmp_path: Path) -> None:
    model, dataset = shared
    all_items = evaluate(model, dataset, tmp_path, histories=10)
    assert '"ranked": "all items"' in (tmp_path / "generation.json").read_text("utf-8")
    assert '"agreement"' in (tmp_path / "generation.json").read_text("utf-8")
    by_beam = evaluate(model, dataset, tmp_path, beam=60)  # however small the tree
    assert '"beam": 60' in (tmp_path / "generation.json").read_text("utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.generation.base.WALK", 3)
        again = evaluate(model, dataset, tmp_path, exact=True)
        narrow = evaluate(model, dataset, tmp_path, beam=10)
        shown = pq.read_table(tmp_path / "exposure.parquet")["k"].to_pylist()
        assert '"beam": 50' in (
            evaluate(model, dataset, tmp_path) and (tmp_path / "generation.json").read_text("utf-8")
        )
    assert {name for name in narrow["full"] if name.endswith(("@20", "@50"))} == set() and max(shown) == 10
    assert "–" in "".join(table(narrow, "full")) and "–" not in "".join(table(by_beam, "full"))
    assert by_beam["full"]["NDCG@10"] == pytest.approx(all_items["full"]["NDCG@10"], abs=1e-6)
    assert again == all_items
    assert by_beam["full"]["outside@60"] == 0  # which pages show; exact ranks have nothing outside
    assert not any(name.startswith("outside") for name in all_items["full"])
