"""Recommending: right answers, the same alone and in a batch, whatever the lengths, ties and counts."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.errors import SeqscopeError
from engine.runtime import (
    NOT_SETTLED,
    STILL_IMPROVING,
    BundleError,
    CapabilityError,
    QuestionError,
    Zoo,
    rank_similarity,
)
from tests.runtime.bundles import TOYS, Toy, as_refit, count_repeats, make_zoo, seal

ALPHA = TOYS[0]
RNG = np.random.default_rng(1)
HISTORIES = [RNG.integers(0, ALPHA.items, n).tolist() for n in (1, 2, 7, 8, 9, 30)]  # max_length is 8
toys = pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.name)
lengths = pytest.mark.parametrize("history", HISTORIES, ids=len)


@toys
@lengths
def test_scores_are_the_model_s(zoo: Zoo, toy: Toy, history: list[int]) -> None:
    scores = zoo.bundles[toy.name].scores(history)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, toy.scores(history), atol=2e-6)


@toys
@lengths
def test_the_best_come_first_ties_by_number_and_the_history_is_left_out(zoo: Zoo, toy: Toy, history: list[int]) -> None:
    bundle = zoo.bundles[toy.name]
    scores = bundle.scores(history)
    expected = [int(i) for i in np.lexsort((np.arange(toy.items), -scores)) if i not in history]
    for k in (1, 3, toy.items):
        items, found = bundle.recommend_one(history, k)
        assert items.tolist() == expected[:k]
        np.testing.assert_array_equal(found, scores[items])


def test_equal_rows_score_equally_wherever_they_stand(tmp_path: Path) -> None:
    # BLAS computes the last rows of a product with another kernel than the first ones; 32 and 64 dimensions show it.
    for dim in (32, 64):
        toy = Toy("equal", items=1003, dim=dim)
        path = make_zoo(tmp_path / str(dim), (toy,))
        rows = np.repeat(toy.rows[:1], toy.items, axis=0)
        rows[5] += 1
        np.save(path / "equal" / "index.npy", rows)
        seal(path / "equal")
        scores = Zoo.open(path).bundles["equal"].scores([1, 2])
        assert len(np.unique(np.delete(scores, 5))) == 1
        assert Zoo.open(path).bundles["equal"].ranks([5], [0, 1002]).tolist() == [501.5, 501.5]


def test_more_than_the_catalogue_holds(zoo: Zoo) -> None:
    bundle = zoo.bundles["alpha"]
    history = list(range(10))
    lists = bundle.recommend_many([history, [0]], 10**9)
    assert lists.items.shape == (2, ALPHA.items)
    assert lists.valid.tolist() == [30, 39]
    assert (lists.items[0, 30:] == -1).all() and (lists.scores[0, 30:] == -np.inf).all()
    assert sorted(lists.items[0, :30]) == list(range(10, 40))
    assert len(bundle.recommend_one(history, 10**9).items) == 30
    nothing = bundle.recommend_one(range(ALPHA.items), 5)
    assert nothing.items.size == nothing.scores.size == 0


def test_where_repeats_count_the_history_is_a_candidate(tmp_path: Path) -> None:
    path = count_repeats(make_zoo(tmp_path, (ALPHA,)))
    bundle, history = Zoo.open(path).bundles["alpha"], [4, 5, 4]
    scores = bundle.scores(history)
    expected = np.lexsort((np.arange(ALPHA.items), -scores)).tolist()
    assert not bundle.excludes_history and bundle.protocol == "full, repeats"
    assert bundle.recommend_one(history, ALPHA.items).items.tolist() == expected
    assert bundle.recommend_many([history], ALPHA.items).items[0].tolist() == expected
    assert bundle.ranks(history, range(ALPHA.items)).tolist() == rank_similarity.mean_ranks(scores).tolist()
    assert bundle.leave_one_out(history, 30).rank == rank_similarity.mean_ranks(scores)[30]


def test_no_histories_at_all(zoo: Zoo) -> None:
    lists = zoo.bundles["alpha"].recommend_many([], 4)
    assert lists.items.shape == (0, 4) and lists.valid.shape == (0,)


def test_an_empty_history_where_the_model_can(zoo: Zoo) -> None:
    assert (
        zoo.bundles["popular"].recommend_one([], 3).items.tolist()
        == np.argsort(-TOYS[3].rows[:, 0], kind="stable")[:3].tolist()
    )
    assert len(zoo.bundles["plain"].recommend_one([], 3).items) == 3
    with pytest.raises(QuestionError, match="Alpha needs at least one item"):
        zoo.bundles["alpha"].recommend_one([], 3)


@pytest.mark.parametrize(
    ("history", "k", "says"),
    [
        ([40], 3, "no item number 40: this catalogue has 0 to 39"),
        ([-1], 3, "no item number -1"),
        ([1, 2**70], 3, "whole numbers"),
        ([1.5], 3, "whole numbers"),
        (["1"], 3, "whole numbers"),
        ([[1]], 3, "whole numbers"),
        ([True], 3, "whole numbers"),
        ([1], 0, "1 or more, not 0"),
        ([1], -4, "1 or more"),
        ([1], 2.5, "whole number"),
    ],
)
def test_questions_that_have_no_answer(zoo: Zoo, history: list, k: int, says: str) -> None:
    with pytest.raises(QuestionError, match=says) as caught:
        zoo.bundles["alpha"].recommend_one(history, k)
    assert isinstance(caught.value, SeqscopeError)


def test_numpy_histories_are_histories(zoo: Zoo) -> None:
    bundle = zoo.bundles["alpha"]
    for dtype in (np.int32, np.int64, np.uint16):
        found = bundle.recommend_one(np.array([1, 2, 3], dtype), np.int64(5))
        assert found.items.tolist() == bundle.recommend_one((1, 2, 3), 5).items.tolist()


def test_what_of_a_history_is_read(zoo: Zoo) -> None:
    bundle = zoo.bundles["alpha"]
    assert [list(bundle.used(range(n))) for n in (0, 1, 8, 10)] == [[], [0], [*range(8)], [*range(2, 10)]]
    old = list(range(30, 38))
    np.testing.assert_array_equal(bundle.scores([1, 2, *old]), bundle.scores(old))


def test_ranks_take_the_mean_of_ties_among_what_is_not_in_the_history(zoo: Zoo) -> None:
    for toy in TOYS:
        bundle = zoo.bundles[toy.name]
        history = [2, 9, 2]
        scores = bundle.scores(history)
        for item in (0, 2, 3, 7, 39):
            others = [i for i in range(toy.items) if i not in history and i != item]
            above = sum(scores[i] > scores[item] for i in others)
            level = sum(scores[i] == scores[item] for i in others)
            assert bundle.ranks(history, [item]).tolist() == [1 + above + level / 2]
        assert bundle.ranks(history, []).shape == (0,)
    both = zoo.bundles["alpha"].ranks([1], [3, 7])  # equal rows
    assert both[0] == both[1] and both[0] % 1 == 0.5


def test_neighbours_by_cosine(zoo: Zoo) -> None:
    rows = ALPHA.rows[:, :-1].astype(np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = zoo.bundles["alpha"].neighbours(3, 5)
    near = rows @ rows[3]
    near[3] = -np.inf
    assert found.items.tolist() == np.argsort(-near)[:5].tolist()
    assert found.items[0] == 7 and found.measure == "cosine"
    np.testing.assert_allclose(found.similarity, np.sort(near)[::-1][:5], atol=1e-6)


def test_neighbours_where_all_rows_point_one_way_are_those_of_rows_less_their_mean(tmp_path: Path) -> None:
    path = make_zoo(tmp_path, (ALPHA,))
    as_it_is = Zoo.open(path).bundles["alpha"].scores([1, 2])
    seal(path / "alpha", index={"kind": "dense", "geometry": "cosine", "centred": True})
    bundle = Zoo.open(path).bundles["alpha"]
    rows = ALPHA.rows[:, :-1].astype(np.float64)
    rows -= rows.mean(0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = bundle.neighbours(3, 5)
    np.testing.assert_allclose(found.similarity, (rows @ rows[3])[found.items], atol=1e-6)
    assert set(np.argsort(-(rows @ rows[3]))[1:6]) == set(found.items.tolist())
    np.testing.assert_array_equal(bundle.scores([1, 2]), as_it_is)


def test_neighbours_by_distance(zoo: Zoo) -> None:
    rows = TOYS[1].rows[:, :-1].astype(np.float64)
    apart = np.linalg.norm(rows - rows[3], axis=1)
    apart[3] = np.inf
    found = zoo.bundles["beta"].neighbours(3, 100)
    assert len(found.items) == 39 and 3 not in found.items
    assert found.items.tolist() == np.argsort(apart, kind="stable")[:39].tolist()
    np.testing.assert_allclose(found.similarity, -np.sort(apart)[:39], atol=1e-5)
    assert found.similarity[0] == 0 and found.measure == "euclidean"


def test_what_a_model_cannot_do_it_says(zoo: Zoo) -> None:
    popular = zoo.bundles["popular"]
    assert popular.cannot("neighbours") == "Counts have no neighbours."
    assert popular.cannot("attention") == "This model has no attention to show."
    assert zoo.bundles["alpha"].cannot("neighbours") is None
    with pytest.raises(CapabilityError, match="Counts have no neighbours"):
        popular.neighbours(0, 3)
    with pytest.raises(CapabilityError, match="no attention"):
        popular.attention([1])
    with pytest.raises(KeyError):
        popular.cannot("fly")


def test_side_tables_have_fixed_types(zoo: Zoo) -> None:
    bundle = zoo.bundles["alpha"]
    ranks, exposure, curve, places = (
        bundle.ranks_table(),
        bundle.exposure_table(),
        bundle.curve_table(),
        bundle.map_table(),
    )
    assert ranks is not None and exposure is not None and curve is not None and places is not None
    assert [str(f.type) for f in ranks.schema] == ["int32", "int32", "int32", "string", "double"]
    assert [str(f.type) for f in exposure.schema] == ["string", "int32", "int32", "int64"]
    assert [str(f.type) for f in curve.schema] == ["int64", "double", "double", "double", "double"]
    assert [str(f.type) for f in places.schema] == ["int32", "float", "float"]
    assert curve["valid_ndcg"].to_pylist() == [None, 0.25]
    assert zoo.bundles["popular"].map_table() is None


def test_whether_validation_had_settled_follows_from_the_curve_and_patience(tmp_path: Path) -> None:
    path = make_zoo(tmp_path, (ALPHA,))
    made = Zoo.open(path).bundles[ALPHA.name].manifest.training.model_dump()
    assert "improving" not in made

    def unsettled(**changes: Any) -> str | None:
        seal(path / ALPHA.name, training=made | changes)
        return Zoo.open(path).bundles[ALPHA.name].unsettled

    patient = {"recipe": {"training": {"patience": 2}}}
    assert unsettled(best_epoch=2, **patient) == unsettled(best_epoch=2) == STILL_IMPROVING
    assert unsettled(best_epoch=1, **patient) == NOT_SETTLED and unsettled(best_epoch=1) is None
    assert unsettled(best_epoch=1, recipe={"training": {"patience": 1}}) is None
    (path / ALPHA.name / "curve.parquet").unlink()
    assert unsettled(best_epoch=1, **patient) is None
    assert unsettled(best_epoch=2, improving=True, **patient) == STILL_IMPROVING


def test_a_refit_says_so_and_bundles_that_mix_its_figures_with_others_are_refused(tmp_path: Path) -> None:
    path = make_zoo(tmp_path, (ALPHA,))
    plain = Zoo.open(path).bundles[ALPHA.name]
    assert not plain.manifest.refitted and plain.protocol == "full"
    assert "fitted_on" not in plain.manifest.training.model_dump()  # as in bundles of before
    as_refit(path / ALPHA.name)
    refit = Zoo.open(path).bundles[ALPHA.name]
    assert refit.manifest.refitted and refit.protocol == "full, refit"
    right = refit.manifest.metrics
    as_of_before = {"training": plain.manifest.training.model_dump(), "metrics": plain.manifest.metrics}
    for changes, file in (
        ({"metrics": {"full": right["full, refit"]}}, "manifest.json"),
        (as_of_before, "ranks.parquet"),
    ):
        seal(path / ALPHA.name, **changes)
        (refusal,) = Zoo.open(path).refused
        assert refusal.file == file and "fitted on training" in refusal.reason


def test_a_model_reads_order_unless_its_bundle_says_that_it_does_not(tmp_path: Path) -> None:
    path = make_zoo(tmp_path, (ALPHA,))
    opened = Zoo.open(path).bundles[ALPHA.name]
    assert opened.cannot("reads_order") is None
    able = opened.manifest.capabilities.model_dump()
    assert "reads_order" not in able  # so that readers of before take the bundle
    for reasons in ({}, {"reads_order": "It reads a history as a set: in any order its list is the same."}):
        seal(path / ALPHA.name, capabilities=able | {"reads_order": False, "reasons": reasons})
        reason = Zoo.open(path).bundles[ALPHA.name].cannot("reads_order")
        assert reason is not None and f"latest {ALPHA.max_length} items" in reason, (
            "which are read does depend on the order"
        )


def test_errors_survive_a_pickle() -> None:
    # caches and process pools send them
    error = pickle.loads(pickle.dumps(BundleError("a", "b.npy", "c")))  # noqa: S301
    assert (error.bundle, error.file, error.reason, str(error)) == ("a", "b.npy", "c", "a/b.npy: c")
