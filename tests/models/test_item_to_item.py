"""Models that add up weights between items, against the definitions of their papers, entry by entry."""

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from engine.errors import UsageError
from engine.models.counting import Counting, CountingConfig, CountingText, CountingTextConfig, bytes_of_transitions
from engine.models.ease import EASE, EASEConfig
from engine.models.item_knn import ItemKNN, ItemKNNConfig
from engine.models.item_to_item import ItemToItem, TrainingLog
from engine.models.markov import Markov, MarkovConfig
from engine.models.sequential_rules import SequentialRules, SequentialRulesConfig
from engine.models.tfidf import TfidfConfig, TfidfNeighbours, cosines, vectors
from engine.registry import MODELS
from engine.training.recipe import from_dict
from engine.training.run import build_model
from tests.models.contract import ITEMS, USERS, batch, log, materials, small, words

HISTORIES = [[3], [3, 7], [1, 1, 5, 2], [4, 9, 4, 12, 0, 22, 8]]
EXACT = {"rtol": 2e-3, "atol": 2e-3}  # weights are half floats


def fitted(kind: Callable[..., ItemToItem], config: Any, **needs: Any) -> ItemToItem:
    model = kind(config, ITEMS, USERS, torch.Generator(), **needs)
    model.fit(*log())
    return model


def sequences() -> list[list[int]]:
    items, offsets = log()
    return [items[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def followed(window: int, weight: Callable[[int], float]) -> np.ndarray:
    """Σ weight(distance) over all pairs of places, [items, items]."""
    counts = np.zeros((ITEMS, ITEMS))
    for row in sequences():
        for place, item in enumerate(row):
            for later in range(place + 1, min(place + window, len(row) - 1) + 1):
                counts[item, row[later]] += weight(later - place)
    return counts


def agree(model: ItemToItem, expected: Callable[[list[int]], np.ndarray]) -> None:
    scores = model.scores(batch(model, HISTORIES)).numpy()
    for row, history in zip(scores, HISTORIES, strict=True):
        np.testing.assert_allclose(row, expected(history), **EXACT)


@pytest.mark.parametrize("recent", [0, 2])
def test_counting_transitions(recent: int) -> None:
    config = CountingConfig(window=3, smoothing=50.0, recent=recent, decay=0.6, popularity=-0.3, max_length=7)
    evidence = np.log(1 + ITEMS * followed(3, lambda k: k**-0.5) / 50)
    count = Counter(item for row in sequences() for item in row)
    prior = [-0.3 * math.log((count[item] + 1) / (count.total() + ITEMS)) for item in range(ITEMS)]

    def expected(history: list[int]) -> np.ndarray:
        newest = history[::-1]
        head = min(recent or len(history), len(history))
        kappa = [0.6**age for age in range(head)]
        kappa = [value / sum(kappa) for value in kappa]
        if len(history) > head:
            kappa = [0.8 * value for value in kappa] + [0.2 / (len(history) - head)] * (len(history) - head)
        return np.array(prior) + sum(value * evidence[item] for value, item in zip(kappa, newest, strict=True))

    agree(fitted(Counting, config), expected)


def test_counts_in_a_table_and_in_a_sparse_matrix_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    table = fitted(Counting, CountingConfig())
    monkeypatch.setattr("engine.models.counting._DENSE", 0)
    sparse = fitted(Counting, CountingConfig())
    assert all(torch.equal(value, sparse.state_dict()[name]) for name, value in table.state_dict().items())


@pytest.mark.parametrize("rarity", [False, True])
def test_sequential_rules(rarity: bool) -> None:
    config = SequentialRulesConfig(
        window=4, distance="logarithmic", rules=3, rarity=rarity, age="inverse", max_length=7
    )
    rules = followed(4, lambda d: 1 / math.log10(d + 1.7))
    if rarity:
        count = np.bincount([item for row in sequences() for item in row], minlength=ITEMS)
        raw = np.log(USERS / np.maximum(count, 1))
        raw = (raw - raw[count > 0].min()) / (raw[count > 0].max() - raw[count > 0].min())
        rules *= np.where(count > 0, raw, 0)[:, None]
    for row in rules:
        row[np.argsort(-row, kind="stable")[3:]] = 0
    agree(
        fitted(SequentialRules, config),
        lambda history: sum(rules[item] / (age + 1) for age, item in enumerate(history[::-1])),  # type: ignore[arg-type,return-value]
    )


def taken() -> np.ndarray:
    """Who took what, [users, items] of 0 and 1."""
    return np.array([[item in row for item in range(ITEMS)] for row in sequences()], float)


def test_item_knn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.models.item_knn._AT_A_TIME", 3 * ITEMS)  # of three items, beside all others
    both = taken().T @ taken()
    people = np.diag(both)
    near = both / (np.sqrt(np.outer(people, people)) + 2)
    np.fill_diagonal(near, 0)
    for row in near:
        row[np.argsort(-row, kind="stable")[4:]] = 0
    model = fitted(ItemKNN, ItemKNNConfig(neighbours=4, shrinkage=2.0, max_length=7))
    agree(model, lambda history: near[sorted(set(history))].sum(0))


def test_ease_predicts_every_item_from_the_others_best() -> None:
    """Each column of B is a ridge regression of its item on all others."""
    people, expected = taken(), np.zeros((ITEMS, ITEMS))
    for item in range(ITEMS):
        others = np.delete(np.arange(ITEMS), item)
        x = people[:, others]
        expected[others, item] = np.linalg.solve(x.T @ x + 5 * np.eye(ITEMS - 1), x.T @ people[:, item])
    model = fitted(EASE, EASEConfig(regularisation=5.0, max_length=7))
    agree(model, lambda history: expected[sorted(set(history))].sum(0))
    with pytest.raises(
        ValueError, match="at least"
    ):  # SciPy's inverse of a matrix that is singular by rounding may crash
        fitted(EASE, EASEConfig(regularisation=1e-9, max_length=7))


def text_cosines() -> np.ndarray:
    """By hand: (1 + ln tf) · (ln((1 + n) / (1 + df)) + 1), rows of unit length, no item with itself."""
    bags = [Counter(" ".join(value for _, value in pairs).split()) for pairs in words()]
    vocabulary = sorted({word for bag in bags for word in bag})
    df = {word: sum(word in bag for bag in bags) for word in vocabulary}
    table = np.zeros((ITEMS, len(vocabulary)))
    for row, bag in zip(table, bags, strict=True):
        for place, word in enumerate(vocabulary):
            if bag[word]:
                row[place] = (1 + math.log(bag[word])) * (math.log((1 + ITEMS) / (1 + df[word])) + 1)
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    near = table @ table.T
    np.fill_diagonal(near, 0)
    return near


def test_tfidf_neighbours_and_their_sum_with_counts() -> None:
    near = text_cosines()
    model = fitted(TfidfNeighbours, TfidfConfig(decay=1.0, max_length=7), attributes=words())
    agree(model, lambda history: near[history].mean(0))
    settings: dict[str, Any] = {"decay": 1.0, "max_length": 7}
    counting = fitted(Counting, CountingConfig(**settings))
    with_words = fitted(CountingText, CountingTextConfig(text=2.0, **settings), attributes=words())
    items = batch(counting, HISTORIES)
    expected = counting.scores(items).numpy() + np.array([2 * near[history].mean(0) for history in HISTORIES])
    np.testing.assert_allclose(with_words.scores(items).numpy(), expected, **EXACT)


def test_counts_beyond_half_floats_keep_their_order() -> None:
    """150,000 times 0 → 1, half as often 1 → 0 and 1 → 2."""
    items = np.tile([0, 1, 0, 1, 2], 75_000)
    model = Markov(MarkovConfig(), 3, 1, torch.Generator())
    model.fit(torch.from_numpy(items), torch.tensor([0, len(items)]))
    assert torch.isfinite(model.weights.float()).all()
    scores = model.scores(torch.tensor([[0], [1]])).double().numpy()
    assert scores[0].argmax() == 1 and scores[1, 0] == pytest.approx(scores[1, 2], rel=1e-3)
    assert scores[0, 1] / scores[1, 0] == pytest.approx(2, rel=2e-3)


def test_the_largest_weights_of_all_items_are_kept() -> None:
    whole, cut = fitted(Counting, CountingConfig()), fitted(Counting, CountingConfig(kept=2))
    assert len(cut.weights) == 2 * ITEMS < len(whole.weights)
    assert torch.equal(cut.weights.sort().values, whole.weights.sort().values[-2 * ITEMS :])


def test_every_item_keeps_as_many_of_equal_weights() -> None:
    """Where items are described by a category alone, hardly any cosine differs from others."""
    attributes = [[("category", "red lipstick" if item % 2 else "blue shampoo")] for item in range(60)]
    model = TfidfNeighbours(TfidfConfig(kept=3), 60, 1, torch.Generator(), attributes)
    model.fit(*log())
    assert model.starts.diff().tolist() == [3] * 60 + [0]


def test_no_more_cosines_are_made_than_memory_was_asked_for() -> None:
    table = vectors([[("category", "one for all")]] * 60)
    assert cosines(table, 3).nnz == 60 * 4 * 3


def test_a_search_finds_what_is_planted() -> None:
    """An item is followed by the next number three places later: a window of one sees nothing of it."""
    rng = np.random.default_rng(0)
    starts = rng.integers(0, ITEMS, (60, 3))  # three ways at a time, in turns
    rows = [[int(start[place % 3] + place // 3) % ITEMS for place in range(12)] for start in starts]
    items = torch.tensor([item for row in rows for item in row])
    offsets = torch.arange(len(rows) + 1) * 12
    model = Counting(CountingConfig(window=1, max_length=1, search=True), ITEMS, len(rows), torch.Generator())

    def judge() -> float:
        scores = model.scores(torch.arange(ITEMS)[:, None])
        return float((scores.argmax(1) == (torch.arange(ITEMS) + 1) % ITEMS).float().mean())

    tried = model.fit(items, offsets, judge)
    assert model.chosen["window"] >= 3
    assert judge() == max(choice["valid_ndcg"] for choice in tried) > 0.9


@pytest.mark.parametrize(
    "name", [name for name, model in MODELS.items() if issubclass(model, ItemToItem) and model.grid]
)
def test_a_search_ends_with_what_its_choice_would_be_fitted_to(name: str) -> None:
    """Whatever it kept of what it tried before."""
    searched = MODELS[name](small(name, search=True), ITEMS, USERS, torch.Generator(), **materials(name))
    scores = iter(np.random.default_rng(1).random(200).tolist())
    searched.fit(*log(), lambda: next(scores))  # type: ignore[operator]
    settled = MODELS[name](
        dataclasses.replace(small(name), **searched.chosen), ITEMS, USERS, torch.Generator(), **materials(name)
    )
    settled.fit(*log())  # type: ignore[operator]
    assert all(torch.equal(value, settled.state_dict()[key]) for key, value in searched.state_dict().items())


def test_what_cannot_be_fitted_says_what_would_do_instead() -> None:
    recipe = from_dict({"family": "ease", "name": "ease"}, "a test")
    with pytest.raises(UsageError, match=r"50,000 items would take 30.0 of .* item-knn"):
        build_model(recipe, 50_000, 10)


@pytest.mark.parametrize(("kind", "config"), [(TfidfNeighbours, TfidfConfig()), (CountingText, CountingTextConfig())])
def test_words_that_are_nowhere_are_not_compared(kind: Any, config: Any) -> None:
    with pytest.raises(ValueError, match=r"no item has words.*take counting"):
        fitted(kind, config, attributes=[[] for _ in words()])


def test_windows_are_as_wide_as_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would take too much is refused before it is counted, with a window that would do; a search leaves such windows out."""
    items, offsets = log()
    training = TrainingLog(items.numpy(), offsets.numpy(), ITEMS)
    monkeypatch.setattr("engine.models.counting._DENSE", 0)
    needed = {window: bytes_of_transitions(training, window) for window in (3, 4)}
    assert needed[3] == (72 + 32) * int(followed(3, lambda k: 1).sum()) < needed[4]
    for module in ("counting", "item_to_item"):
        monkeypatch.setattr(f"engine.models.{module}.LARGEST", needed[4] - 1)
    for kind, config in ((Counting, CountingConfig(window=9)), (SequentialRules, SequentialRulesConfig(window=9))):
        with pytest.raises(ValueError, match=rf"{ITEMS} items and {len(items)} events .* model.window to 3 or less"):
            fitted(kind, config)
    model = Counting(CountingConfig(window=2, search=True), ITEMS, USERS, torch.Generator())
    tried = model.fit(items, offsets, lambda: 0.0)
    assert {choice["window"] for choice in tried} == {2, 3}
    monkeypatch.setattr("engine.models.item_to_item.LARGEST", 1)
    with pytest.raises(ValueError, match="take popularity"):
        fitted(Markov, MarkovConfig())
