"""Negatives: distinct, nobody's own, drawn once and for all."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from engine.data.dataset import Dataset
from engine.errors import SeqscopeError
from engine.evaluation.ranks import COUNT, draw, frozen, full_ranks, sampled_ranks
from tests.evaluation.fakes import Fixed, cases
from tests.training.tiny import mixed, write_log


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A dataset whose negatives nobody else draws."""
    return write_log(tmp_path_factory.mktemp("negatives") / "data", mixed(), 150)


def test_uniform_is_uniform_and_popular_is_popular() -> None:
    some = cases([[0]] * 400, [1] * 400)
    counts = np.bincount(draw(some, np.ones(1000), 2).ravel(), minlength=1000)[2:]
    expected = 400 * COUNT / 998
    chi = ((counts - expected) ** 2 / expected).sum()
    assert abs(chi - 997) < 5 * np.sqrt(2 * 997)
    weights = np.concatenate([np.full(500, 9.0), np.full(400, 1.0), np.zeros(100)])
    counts = np.bincount(draw(some, weights, 3).ravel(), minlength=1000)
    assert counts[2:500].mean() > 5 * counts[500:900].mean() > counts[900:].max() == 0


def test_by_popularity_one_after_the_other_without_those_that_are_taken() -> None:
    """How often each item is drawn is as by exponential keys, which draw so at once (Efraimidis & Spirakis 2006)."""
    many, items = 3_000, 160
    weights = np.round(3_000 / np.arange(1, items + 1) ** 1.2) + 1
    shares = np.bincount(draw(cases([[0]] * many, [1] * many), weights, 4).ravel(), minlength=items)[2:] / many
    keys = np.random.default_rng(8).exponential(size=(20_000, items - 2)) / weights[2:]
    expected = np.bincount(np.argpartition(keys, COUNT, 1)[:, :COUNT].ravel(), minlength=items - 2) / len(keys)
    errors = np.sqrt(expected * (1 - expected) * (1 / many + 1 / len(keys)))
    assert (np.abs(shares - expected) <= 4.5 * errors).all() and expected.min() < 0.5 < 0.99 < expected.max()


def test_a_rank_among_uniform_negatives_is_drawn_of_the_full_rank() -> None:
    """Of the items that are better than the target so many are among the negatives as in any sample without replacement."""
    rng, many, items = np.random.default_rng(1), 2_000, 400
    some = cases([[n % items] for n in range(many)], ((np.arange(many) + 1) % items).tolist())
    model = Fixed(rng.normal(size=(items, items)))
    better = full_ranks(model, some).ranks.astype(int) - 1
    ranks = sampled_ranks(model, some, draw(some, np.ones(items), 2)).ranks
    for k in (1, 10, 50):
        expected = stats.hypergeom(items - 2, better, COUNT).cdf(k - 1)
        assert abs((ranks <= k).sum() - expected.sum()) < 4 * np.sqrt((expected * (1 - expected)).sum())


def test_exactly_enough_is_enough() -> None:
    found = draw(cases([[0, 0, 1]], [2]), np.ones(COUNT + 3), 5)
    assert sorted(found[0].tolist()) == list(range(3, COUNT + 3))
    # what was never taken cannot be drawn by popularity, whether it is one's own or not
    weights = np.concatenate([np.ones(COUNT), np.zeros(5)])
    found = draw(cases([[COUNT, COUNT + 1]], [COUNT + 2]), weights, 6)
    assert sorted(found[0].tolist()) == list(range(COUNT))


def test_too_few_is_said() -> None:
    with pytest.raises(SeqscopeError, match="leaves 99, and 100 negatives"):
        draw(cases([[0, 1]], [2]), np.ones(COUNT + 2), 7)
    with pytest.raises(SeqscopeError, match="leaves 99"):
        draw(cases([[0]], [COUNT + 3]), np.concatenate([np.ones(COUNT), np.zeros(9)]), 7)


@pytest.mark.parametrize(("protocol", "split"), [("u100", "valid"), ("p100", "test")])
def test_they_are_frozen(own: Dataset, protocol: str, split: str) -> None:
    first = frozen(own, split, protocol)
    path = own.path / f"negatives-{protocol}-{split}.npy"
    assert path.stat().st_mode & 0o444 == 0o444  # others may read them
    path.unlink()
    assert np.array_equal(frozen(own, split, protocol), first)  # whoever draws them draws these
    np.save(path, first[:, ::-1])
    assert np.array_equal(frozen(own, split, protocol), first[:, ::-1])  # what is in the file counts
    path.unlink()
    some = own.cases(split)
    for row in range(len(some)):
        kept = set(first[row].tolist())
        assert len(kept) == COUNT and not kept & {*some.history[row].tolist(), int(some.targets[row])}


def test_protocols_and_splits_have_their_own(own: Dataset) -> None:
    one, other = frozen(own, "test", "u100"), frozen(own, "valid", "u100")
    assert not np.array_equal(one[0], other[0])
    assert not np.array_equal(one, frozen(own, "test", "p100"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path, good: path.write_bytes(path.read_bytes()[:200]),
        lambda path, good: np.save(path, good[:-1]),
        lambda path, good: np.save(path, good.astype(np.float64)),
        lambda path, good: np.save(path, np.array([{}, None]), allow_pickle=True),
    ],
    ids=["cut", "other shape", "other numbers", "objects"],
)
def test_a_file_that_cannot_be_used_is_named(own: Dataset, damage: Callable[[Path, np.ndarray], object]) -> None:
    path = own.path / "negatives-u100-valid.npy"
    damage(path, frozen(own, "valid", "u100"))
    try:
        with pytest.raises(SeqscopeError, match=r"negatives-u100-valid\.npy.*Delete it"):
            frozen(own, "valid", "u100")
    finally:
        path.unlink()


def test_a_folder_that_cannot_be_written(own: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    (own.path / "negatives-u100-test.npy").unlink(missing_ok=True)
    monkeypatch.setattr(np, "save", lambda *_, **__: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    with pytest.raises(SeqscopeError, match="Permission denied"):
        frozen(own, "test", "u100")
    assert not [path.name for path in own.path.iterdir() if path.name.endswith(".part")]
