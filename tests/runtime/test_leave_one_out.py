"""Leave-one-out against asking the model again without the event, one question at a time."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.runtime import QuestionError, Zoo, probabilities
from tests.runtime.bundles import TOYS, Toy, make_zoo, retrain

RNG = np.random.default_rng(2)


@pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.name)
@pytest.mark.parametrize("length", [2, 20])
def test_against_a_loop(zoo: Zoo, toy: Toy, length: int) -> None:
    bundle = zoo.bundles[toy.name]
    history = RNG.integers(0, toy.items, length).tolist()
    if length > 8:
        history[-3] = history[-1]  # what stands twice is removed once
    item = 11
    found = bundle.leave_one_out(history, item)
    assert found.effect.shape == found.rank_without.shape == (length,) and found.effect.dtype == np.float32
    assert found.score == bundle.scores(history)[item]
    assert found.rank == bundle.ranks(history, [item])[0]
    candidates = [i for i in range(toy.items) if i not in history or i == item]

    def log_share(scores: np.ndarray) -> float:
        if toy.family == "attrec":
            return np.nan  # distances
        share = probabilities(toy.family, scores[candidates])[candidates.index(item)]
        return float(np.log(share)) if share > 0 else np.nan

    assert found.log_probability == pytest.approx(log_share(bundle.scores(history)), abs=1e-5, nan_ok=True)
    for place in range(length):
        rest = history[:place] + history[place + 1 :]
        scores = bundle.scores(rest)
        assert found.effect[place] == pytest.approx(found.score - scores[item], abs=3e-6)
        lost = found.log_probability - log_share(scores)
        assert found.log_probability_effect[place] == pytest.approx(lost, abs=1e-5, nan_ok=True)
        rank = 1 + sum(scores[i] > scores[item] for i in candidates)
        rank += sum(scores[i] == scores[item] for i in candidates if i != item) / 2
        assert found.rank_without[place] == rank
        assert 10 ** found.move[place] == pytest.approx(rank / found.rank)
        if place not in found.read:
            assert found.effect[place] == 0 and found.rank_without[place] == found.rank
    assert list(found.read) == list(range(max(0, length - toy.max_length), length))


def test_many_variants_take_several_batches(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = zoo.bundles["alpha"]
    history = RNG.integers(0, 40, 8).tolist()
    whole = bundle.leave_one_out(history, 3)
    monkeypatch.setattr("engine.runtime.retrieval._TOKENS", 21)  # three variants of seven
    np.testing.assert_allclose(bundle.leave_one_out(history, 3).effect, whole.effect, atol=1e-6)


def test_the_only_event_of_a_history(zoo: Zoo) -> None:
    found = zoo.bundles["alpha"].leave_one_out([4], 9)
    assert np.isnan(found.effect).all() and np.isnan(found.rank_without).all() and found.rank >= 1
    plain = zoo.bundles["plain"]
    assert plain.leave_one_out([4], 9).effect[0] == pytest.approx(plain.scores([4])[9] - plain.scores([])[9], abs=1e-6)


def test_what_can_be_asked(zoo: Zoo) -> None:
    alpha = zoo.bundles["alpha"]
    assert alpha.leave_one_out([4, 6, 8], 6).rank == alpha.ranks([4, 6, 8], [6])[0]  # an item of the history
    assert zoo.bundles["popular"].leave_one_out([], 3).effect.shape == (0,)
    for history, item in (([], 3), ([1, 2], 40)):
        with pytest.raises(QuestionError):
            alpha.leave_one_out(history, item)


@pytest.mark.parametrize(
    ("objective", "reason"),
    [
        ({"loss": "cross-entropy", "activation": "tanh"}, None),
        ({"loss": "sampled-softmax", "activation": "tanh"}, "order"),
        ({"loss": "sampled-softmax", "shared_negatives": 256}, None),
        ({"loss": "sampled-softmax", "shared_negatives": 256, "popularity_power": 0.5}, "popularity"),
        ({"loss": "bpr", "batch_negatives": True}, "popularity"),
        ({"stage": "pre-train"}, "popularity"),
        ({"stage": "frozen"}, None),
        ({"loss": "bpr-max", "shared_negatives": 256}, "order"),
        ({"loss": "top1"}, "order"),
        ({"margin": 0.5}, "order"),
        ({"margin": 0.5, "loss": "bce"}, None),
        ({"loss": ["top1"]}, None),
        (["top1"], None),
    ],
)
def test_what_learnt_an_order_alone_gives_no_probabilities(tmp_path: Path, objective: Any, reason: str | None) -> None:
    path = make_zoo(tmp_path, TOYS[:1])
    retrain(path / "alpha", recipe={"objective": objective})
    bundle = Zoo.open(path).bundles["alpha"]
    why = bundle.cannot("probability")
    assert why is None if reason is None else reason in str(why)
    assert np.isnan(bundle.leave_one_out([1, 2], 3).log_probability) == (why is not None)
