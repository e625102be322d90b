"""Maps of all three shapes against numpy, and the summaries against their definitions written out."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.runtime import (
    AttentionMap,
    BundleError,
    CapabilityError,
    QuestionError,
    Zoo,
    entropy,
    last_row,
    mean_distance,
    mean_over_heads,
    rollout,
)
from tests.runtime.bundles import TOYS, Toy, amend, attention_graph, make_zoo, seal

RNG = np.random.default_rng(3)
ATTENDING = [toy for toy in TOYS if toy.attention]
toys = pytest.mark.parametrize("toy", ATTENDING, ids=lambda toy: toy.name)


@toys
@pytest.mark.parametrize("length", [2, 20])
def test_maps_are_the_model_s(zoo: Zoo, toy: Toy, length: int) -> None:
    history = RNG.integers(0, toy.items, length).tolist()
    found = zoo.bundles[toy.name].attention(history)
    expected = toy.maps(history)
    assert found.weights.dtype == np.float32 and found.weights.shape == expected.shape
    np.testing.assert_allclose(np.nan_to_num(found.weights), expected, atol=1e-6)
    np.testing.assert_allclose(np.nansum(found.weights, -1), 1, atol=1e-5)
    hidden = np.zeros(expected.shape[-2:], bool)
    if toy.attention == "causal":
        hidden = np.triu(np.ones_like(hidden), 1)
    if toy.attention == "pooled":
        hidden = np.eye(len(hidden), dtype=bool)
    np.testing.assert_array_equal(np.isnan(found.weights), np.broadcast_to(hidden, expected.shape))
    window = 3 if toy.attention == "pooled" else toy.max_length
    places = list(range(length))[-window:]
    last = [None] if toy.attention == "token" else []
    assert list(found.positions) == places + last
    assert list(found.items) == [history[place] for place in places] + last


def test_one_event(zoo: Zoo) -> None:
    alpha = zoo.bundles["alpha"].attention([5])
    assert alpha.weights.tolist() == [[[[1.0]], [[1.0]]]] * 2 and alpha.positions == (0,)
    assert len(zoo.bundles["beta"].attention([5])) == 2
    gamma = zoo.bundles["gamma"].attention([5])  # where there is nothing else, it does look at itself
    assert gamma.weights.tolist() == [[[[1.0]], [[1.0]]]] * 2
    assert last_row(gamma).tolist() == [1.0]


def example(pooled: bool = False) -> AttentionMap:
    raw = np.random.default_rng(4).random((3, 2, 4, 4)).astype(np.float32)
    raw[..., np.triu(np.ones((4, 4), bool), 1)] = 0
    raw /= raw.sum(-1, keepdims=True)
    raw[..., np.triu(np.ones((4, 4), bool), 1)] = np.nan
    return AttentionMap(raw, (0, 1, 2, 3), (9, 8, 7, 6), True, False, False, pooled)


def test_rollout_written_out() -> None:
    attention = example()
    weights = np.nan_to_num(attention.weights).astype(np.float64)
    first, second, third = (0.5 * np.eye(4) + 0.5 * (layer[0] + layer[1]) / 2 for layer in weights)
    np.testing.assert_allclose(rollout(attention), third @ second @ first, atol=1e-6)
    np.testing.assert_allclose(rollout(attention).sum(-1), 1, atol=1e-6)
    assert (rollout(attention)[np.triu_indices(4, 1)] == 0).all()


def test_no_rollout_where_it_is_not_defined(zoo: Zoo, tmp_path: Path) -> None:
    gamma = zoo.bundles["gamma"]  # without a residual connection
    assert "residual" in (gamma.cannot("rollout") or "") and zoo.bundles["alpha"].cannot("rollout") is None
    with pytest.raises(CapabilityError, match="residual"):
        rollout(gamma.attention([1, 2, 3]))
    path = make_zoo(tmp_path, (TOYS[0],))
    amend(path / "alpha", attention={"no_rollout": "Its layers stand side by side."})
    alpha = Zoo.open(path).bundles["alpha"]
    assert alpha.cannot("rollout") == "Its layers stand side by side." and alpha.cannot("attention") is None
    with pytest.raises(CapabilityError, match="side by side"):
        rollout(alpha.attention([1, 2, 3]))


def test_what_the_prediction_looked_at() -> None:
    attention = example()
    np.testing.assert_allclose(last_row(attention), attention.weights[2].mean(0)[-1])
    np.testing.assert_allclose(last_row(attention, 0, 1), attention.weights[0, 1, -1])
    pooled = last_row(example(pooled=True), layer=1)
    np.testing.assert_allclose(pooled, np.nan_to_num(attention.weights[1]).mean(axis=(0, 1)), atol=1e-6)
    assert last_row(attention).sum() == pytest.approx(1)


def test_means_entropy_and_distance() -> None:
    attention = example()
    assert mean_over_heads(attention).shape == (4, 4) and np.isnan(mean_over_heads(attention, 1)[0, 1])
    np.testing.assert_allclose(mean_over_heads(attention, 1), attention.weights[1].mean(0))
    weights = np.nan_to_num(attention.weights)
    bits, apart = entropy(attention), mean_distance(attention)
    assert not np.signbit(bits).any()  # the first position has no choice: 0 bits, not -0
    assert bits.shape == apart.shape == (3, 2, 4)
    for layer, head, row in np.ndindex(3, 2, 4):
        shares = weights[layer, head, row]
        expected = -sum(share * np.log2(share) for share in shares if share > 0)
        assert bits[layer, head, row] == pytest.approx(expected, abs=1e-5)
        expected = sum(share * abs(row - column) for column, share in enumerate(shares))
        assert apart[layer, head, row] == pytest.approx(expected, abs=1e-5)


def test_entropy_and_distance_of_weights_without_what_a_position_gave_to_itself() -> None:
    """AttRec with model.diagonal=after drops it, so that rows sum to less than 1."""
    even, alone = np.full((4, 4), 0.25, np.float32), np.array([[0.9, 0.1], [0, 1]], np.float32)
    for weights, bits, apart in ((even, np.log2(3), [2, 4 / 3, 4 / 3, 2]), (alone, 0, [1, 0])):
        np.fill_diagonal(weights, np.nan)
        places = tuple(range(len(weights)))
        seen = AttentionMap(weights[None, None], places, places, False, False, True, True)
        np.testing.assert_allclose(entropy(seen)[0, 0], bits, atol=1e-6)
        np.testing.assert_allclose(mean_distance(seen)[0, 0], apart, atol=1e-6)


def test_a_graph_that_is_not_what_the_manifest_says(tmp_path: Path) -> None:
    toy = TOYS[0]
    path = make_zoo(tmp_path, (toy,))
    folder = path / "alpha"
    (folder / "attention.onnx").write_bytes(attention_graph(replace(toy, attention="token")).SerializeToString())
    seal(folder)
    with pytest.raises(BundleError, match="must sum to 1"):  # the mask position takes its share, and is cut off
        Zoo.open(path).bundles["alpha"].attention([1, 2])
    amend(folder, attention={"causal": False, "next_token": True})
    assert len(Zoo.open(path).bundles["alpha"].attention([1, 2])) == 3
    (folder / "attention.onnx").write_bytes(attention_graph(replace(toy, attention="pooled")).SerializeToString())
    amend(folder, attention={"causal": False, "next_token": False})
    with pytest.raises(BundleError, match="3 × 3 positions where 4 were asked for"):
        Zoo.open(path).bundles["alpha"].attention([1, 2, 3, 4])


def test_weights_dropped_on_the_diagonal_are_missing_from_the_sum(tmp_path: Path) -> None:
    # AttRec as its authors' code has it: the softmax sees the diagonal, which is then set to zero
    toy = TOYS[2]
    path = make_zoo(tmp_path, (toy,))
    folder = path / toy.name
    model = attention_graph(replace(toy, attention=None))
    (folder / "attention.onnx").write_bytes(model.SerializeToString())
    amend(folder, attention={"window": 5})
    found = Zoo.open(path).bundles[toy.name].attention([1, 2, 3, 4])
    sums = np.nansum(found.weights, -1)
    assert (sums < 1).all() and (sums > 0).all() and np.isnan(found.weights[0, 0]).diagonal().all()


def test_maps_beyond_any_page_are_not_computed(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.runtime.bundle._WEIGHTS", 100)
    with pytest.raises(QuestionError, match="6 positions is too large"):
        zoo.bundles["alpha"].attention(range(6))
