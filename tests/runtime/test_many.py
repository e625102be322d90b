"""`Bundle.recommend_many` answers as `recommend_one` does, whatever is in the batch."""

from pathlib import Path

import numpy as np
import pytest

from engine.runtime import QuestionError, Zoo, retrieval
from tests.runtime.bundles import Toy, make_zoo
from tests.runtime.generators import ToyGenerator, write_generator


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    path = make_zoo(tmp_path_factory.mktemp("exports"))
    write_generator(path, ToyGenerator())
    return Zoo.open(path)


def histories(items: int, many: int = 30) -> list[list[int]]:
    rng = np.random.default_rng(0)
    drawn = [rng.integers(0, items, length).tolist() for length in [0, 1, 2, *rng.integers(0, 30, many)]]
    return [*drawn, list(range(items))]  # the last has everything


@pytest.mark.parametrize(("k", "tokens"), [(5, 7), (100, 16_384)])
@pytest.mark.parametrize("name", ["alpha", "popular", "writer"])
def test_as_one_by_one(zoo: Zoo, name: str, k: int, tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In batches of any size."""
    monkeypatch.setattr(retrieval, "_TOKENS", tokens)
    bundle = zoo.bundles[name]
    asked = histories(len(zoo))
    found = bundle.recommend_many(asked, k)
    assert found.items.shape == (len(asked), min(k, len(zoo))) and found.items.dtype == np.int32
    for row, history in enumerate(asked):
        if len(history) < bundle.manifest.encoder.min_history:
            assert found.valid[row] == 0 and (found.items[row] == -1).all() and (found.scores[row] == -np.inf).all()
            continue
        alone, valid = bundle.recommend_one(history, k), int(found.valid[row])
        assert found.items[row, :valid].tolist() == alone.items.tolist() and (found.items[row, valid:] == -1).all()
        assert np.allclose(found.scores[row, :valid], alone.scores, rtol=1e-5, atol=1e-6)
        assert (found.scores[row, valid:] == -np.inf).all()
    assert found.valid[-1] == 0 and found.valid[1] == min(k, len(zoo) - 1)


def test_questions_without_an_answer(zoo: Zoo) -> None:
    bundle = zoo.bundles["alpha"]
    assert bundle.recommend_many([], 5).items.shape == (0, 5)
    with pytest.raises(QuestionError, match="no item number 40"):
        bundle.recommend_many([[1], [40]], 5)
    with pytest.raises(QuestionError, match="k must be 1 or more"):
        bundle.recommend_many([[1]], 0)


def test_equal_items_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """Of 400 items many have the very same row: a matrix product alone would shuffle them by their last bits."""

    class Alike(Toy):
        @property
        def rows(self) -> np.ndarray:
            table = np.random.default_rng(1).standard_normal((self.items, self.dim + 1)).astype(np.float32)
            table[100:300] = table[100]
            return table

    bundle = Zoo.open(make_zoo(tmp_path, (Alike("alike", items=400, attention=None),))).bundles["alike"]
    asked = histories(400, 60)
    found = bundle.recommend_many(asked, 50)
    for row, history in enumerate(asked):
        if history:
            assert found.items[row, : found.valid[row]].tolist() == bundle.recommend_one(history, 50).items.tolist()
    assert any(len(set(range(100, 300)) & set(items.tolist())) > 20 for items in found.items)
