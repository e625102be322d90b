"""Several held-out items a user: ranks, Recall and NDCG by hand and against loops; with one each, what leave-one-out gives."""

import itertools
import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from engine.data.dataset import Cases, Dataset
from engine.data.ragged import Ragged
from engine.errors import UsageError
from engine.evaluation import metrics
from engine.evaluation.evaluate import evaluate
from engine.evaluation.ranks import frozen, full_ranks
from engine.training.refit import select
from engine.training.run import open_run, train, validation
from tests.data.conftest import Bench
from tests.data.conftest import bench as bench  # noqa: PLC0414 (a fixture)
from tests.evaluation.fakes import Fixed
from tests.evaluation.test_repeats import popularity
from tests.training.tiny import recipe

PROTOCOLS = ("given split", "held-out users")


def random_sets(rng: np.random.Generator, people: int, items: int) -> Cases:
    """Person u's history starts with item u (so that `Fixed` knows it); targets are new to them."""
    histories, targets = [], []
    for user in range(people):
        own = [user, *rng.permutation(np.delete(np.arange(items), user))[: rng.integers(2, 20)].tolist()]
        cut = rng.integers(1, len(own))
        histories.append(own[:cut])
        targets.append(own[cut:])
    return Cases(np.arange(people, dtype=np.int32), Ragged.of(histories), Ragged.of(targets))


def test_each_target_is_ranked_among_all_but_the_history() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(30, 60)).astype(np.float32)
    some, model = random_sets(rng, 30, 60), Fixed(table)
    ranks = full_ranks(model, some, batch_size=7).ranks
    for place, (row, target) in enumerate(zip(some.owner, some.targets, strict=True)):
        rivals = np.delete(table[row], some.history[row])
        assert ranks[place] == 1 + (rivals > table[row, target]).sum()
    assert len(model.asked) == 30  # a history is read once, however many items are asked for


def test_ties_stand_in_random_order() -> None:
    """The mean over many orders of a catalogue that all ties; one mean rank for all would put too many into the first k."""
    rng = np.random.default_rng(1)
    table = np.round(rng.normal(size=(4, 40)))
    some = random_sets(rng, 4, 40)
    ranks = full_ranks(Fixed(table), some).ranks
    for row in range(4):
        own = np.sort(ranks[some.owner == row])
        drawn = []
        for _ in range(3_000):
            order = np.lexsort((rng.random(40), -table[row]))
            drawn.append(np.flatnonzero(np.isin(order[~np.isin(order, some.history[row])], some.held_out[row])) + 1)
        np.testing.assert_allclose(own, np.mean(drawn, 0), atol=0.7)
    for k in (1, 3, 10):
        for protocol in PROTOCOLS:
            values = metrics.per_user(f"NDCG@{k}", ranks, protocol, some.owner)
            assert (values <= 1 + 1e-12).all()


def test_a_score_that_is_no_number_ranks_last() -> None:
    table = np.zeros((3, 10))
    table[0, 4:6], table[1, 9] = np.nan, np.nan
    some = Cases(np.arange(3, dtype=np.int32), Ragged.of([[0], [1], [2]]), Ragged.of([[4, 8], [3, 5], [6, 7]]))
    ranks = full_ranks(Fixed(table), some, exclude_history=False).ranks
    assert ranks[0] == 10 and ranks[1] > 3 and ranks[2:4].tolist() == pytest.approx([1 + 10 / 3, 1 + 20 / 3])


def test_by_hand() -> None:
    """One user has ranks 1 and 3 of two items, one has rank 2 of three."""
    ranks, users = np.array([3.0, 1.0, 50.0, 2.0, 7.0]), np.array([4, 4, 6, 6, 6])
    second = 1 / math.log2(3)
    ideal = 1 + second
    for protocol in PROTOCOLS:
        assert metrics.per_user("NDCG@2", ranks, protocol, users) == pytest.approx([1 / ideal, second / ideal])
        assert metrics.per_user("NDCG@5", ranks, protocol, users) == pytest.approx(
            [1.5 / ideal, second / (ideal + 0.5)]
        )
    assert metrics.per_user("Recall@2", ranks, "given split", users) == pytest.approx([1 / 2, 1 / 3])
    assert metrics.per_user("Recall@2", ranks, "held-out users", users) == pytest.approx([1 / 2, 1 / 2])
    assert metrics.per_user("Recall@10", ranks, "held-out users", users) == pytest.approx([1, 2 / 3])


def test_a_random_order_by_all_of_them() -> None:
    """One user has two of four candidates held out, one has one of three."""
    users, candidates = np.array([0, 0, 1]), np.array([4, 4, 3])
    orders = [(*two, one) for two in itertools.permutations(range(1, 5), 2) for one in range(1, 4)]
    for metric, protocol in itertools.product(("Recall@1", "Recall@2", "NDCG@2", "NDCG@50"), PROTOCOLS):
        by_hand = np.mean([metrics.per_user(metric, np.array(order, float), protocol, users) for order in orders])
        assert metrics.by_chance(metric, candidates, protocol, users) == pytest.approx(by_hand)
    assert metrics.by_chance("HR@2", np.array([4, 1])) == pytest.approx((1 / 2 + 1) / 2)
    assert metrics.by_chance("MRR@50", np.array([3])) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


def test_with_one_item_each_nothing_changes() -> None:
    ranks = np.random.default_rng(2).integers(1, 80, 300) + 0.5
    plain = metrics.accuracy(ranks)
    for protocol in PROTOCOLS:
        measured = metrics.accuracy(ranks, protocol=protocol, users=np.arange(300))
        assert set(measured) == {f"{name}@{k}" for name in ("Recall", "NDCG") for k in metrics.CUTOFFS}
        assert all(value == plain[name.replace("Recall", "HR")] for name, value in measured.items())


def split(bench: Bench, *words: object) -> Dataset:
    rng = np.random.default_rng(3)
    weights = 1 / np.arange(1, 61)
    rows = [rng.choice(60, rng.integers(6, 25), replace=False, p=weights / weights.sum()) for _ in range(50)]
    train = bench.write("train.txt", "".join(f"{u} {' '.join(map(str, row[3:]))}\n" for u, row in enumerate(rows)))
    test = bench.write("test.txt", "".join(f"{u} {' '.join(map(str, row[:3]))}\n" for u, row in enumerate(rows)))
    return bench.load(*(words or (train, "--test", test)), *([train] if words else []))


def test_evaluation_under_a_given_split(bench: Bench, tmp_path: Path) -> None:
    dataset = split(bench)
    measured = evaluate(popularity(dataset), dataset, tmp_path)["given split"]
    table = pq.read_table(tmp_path / "ranks.parquet")
    cases, scores = dataset.cases("test"), dataset.popularity
    for user, target, rank in zip(*(table[name].to_pylist() for name in ("user", "target", "rank")), strict=True):
        rivals = np.delete(scores, cases.history[user])
        above, level = (rivals > scores[target]).sum(), (rivals == scores[target]).sum()
        assert above < rank < above + level + 1
    again = metrics.accuracy(table["rank"].to_numpy(), None, "given split", table["user"].to_numpy())
    assert again == pytest.approx({name: measured[name] for name in again})
    assert table.num_rows == 150 and measured["coverage@10"] > 0
    with pytest.raises(UsageError, match="several"):
        frozen(dataset, "test", "u100")


def test_vectors_of_users_are_asked_for_unless_people_are_held_out(bench: Bench, tmp_path: Path) -> None:
    """Validation is by what the test is asked with: their vectors, and the histories of people who have none."""
    for words, names in (
        ((), {"given split", "given split+user"}),
        (("--split", "users", "--held-out-users", 10, 10), {"held-out users"}),
    ):
        dataset, run = split(bench, *words), tmp_path / str(len(names))
        record = train(recipe("lightgcn", training={"epochs": 2}), dataset, run, device="cpu")
        model, trained, _, _ = open_run(run, dataset.path)
        measured = evaluate(model, dataset, run)
        assert {name for name in measured if ", " not in name} == names
        check = validation(trained, dataset, model)
        assert check is not None and np.all(check.trained_users) == (len(names) == 2)
        assert check(model) == pytest.approx(record["valid_ndcg"], abs=1e-6)


def test_where_items_have_no_order_none_is_the_latest(bench: Bench, tmp_path: Path) -> None:
    """A recipe that folds users in from their latest two items reads all of them there, and is the same when it is refitted."""
    dataset, latest_two = split(bench), recipe("lightgcn", model={"max_length": 2}, training={"epochs": 1})
    train(latest_two, dataset, tmp_path / "run", device="cpu")
    histories = dataset.cases("test").history
    assert open_run(tmp_path / "run", dataset.path)[0].max_length == histories.lengths.max() > 2
    assert select(latest_two, dataset, tmp_path / "run").run == tmp_path / "run"
