"""Recommending: right answers, the same alone and in a batch, whatever the lengths, ties and counts."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from engine.errors import SeqscopeError
from engine.runtime import STILL_IMPROVING, BundleError, CapabilityError, QuestionError, Zoo, rank_similarity
from tests.runtime.bundles import TOYS, Toy, as_refit, count_repeats, make_zoo, manifest, seal

ALPHA = TOYS[0]
RNG = np.random.default_rng(1)
HISTORIES = [RNG.integers(0, ALPHA.items, n).tolist() for n in (1, 7, 30)]  # max_length is 8


@pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.name)
@pytest.mark.parametrize("history", HISTORIES, ids=len)
def test_scores_are_the_model_s_and_the_best_come_first_without_the_history(
    zoo: Zoo, toy: Toy, history: list[int]
) -> None:
    bundle = zoo.bundles[toy.name]
    scores = bundle.scores(history)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, toy.scores(history), atol=2e-6)
    expected = [int(i) for i in np.lexsort((np.arange(toy.items), -scores)) if i not in history]  # ties by number
    for k in (1, 3, toy.items):
        items, found = bundle.recommend_one(history, k)
        assert items.tolist() == expected[:k]
        np.testing.assert_array_equal(found, scores[items])


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
        ([1.5], 3, "whole numbers"),
        ([[1]], 3, "whole numbers"),
        ([True], 3, "whole numbers"),
        ([1], 0, "1 or more, not 0"),
        ([1], 2.5, "whole number"),
    ],
)
def test_questions_that_have_no_answer(zoo: Zoo, history: list, k: int, says: str) -> None:
    with pytest.raises(QuestionError, match=says) as caught:
        zoo.bundles["alpha"].recommend_one(history, k)
    assert isinstance(caught.value, SeqscopeError)


def test_the_latest_items_of_a_history_are_read(zoo: Zoo) -> None:
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


def test_an_item_without_a_vector_has_no_neighbours(tmp_path: Path) -> None:
    """One without words, say: every cosine with it is 0, which makes nothing near."""
    path = make_zoo(tmp_path, (ALPHA,))
    index = ALPHA.rows
    index[5] = 0
    np.save(path / "alpha" / "index.npy", index)
    seal(path / "alpha")
    with pytest.raises(QuestionError, match="no vector"):
        Zoo.open(path).bundles["alpha"].neighbours(5, 4)


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


def test_without_a_curve_the_manifest_says_whether_validation_was_improving(tmp_path: Path) -> None:
    folder = make_zoo(tmp_path, (ALPHA,)) / ALPHA.name
    (folder / "curve.parquet").unlink()
    made = manifest(ALPHA)["training"] | {"best_epoch": 2}
    for changes, expected in (({}, None), ({"improving": True}, STILL_IMPROVING)):
        seal(folder, training=made | changes)
        assert Zoo.open(folder.parent).bundles[ALPHA.name].unsettled == expected


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
        assert f"latest {ALPHA.max_length} items" in (reason or "")  # which these are does depend on the order


def test_errors_survive_a_pickle() -> None:
    # caches and process pools send them
    error = pickle.loads(pickle.dumps(BundleError("a", "b.npy", "c")))  # noqa: S301
    assert (error.bundle, error.file, error.reason, str(error)) == ("a", "b.npy", "c", "a/b.npy: c")
