"""Text neighbours against plain numpy, one history at a time, and what an item without words is to it."""

import numpy as np
import pytest
import torch

from engine.models.text_neighbours import TextNeighbours, TextNeighboursConfig
from tests.models.contract import ITEMS, batch, build, histories, vectors


def by_hand(history: list[int], *, decay: float, centre: bool, longest: int) -> np.ndarray:
    """The cosine of every item with what the history says."""
    table = vectors().astype(np.float64)
    said = [item for item in range(ITEMS) if table[item].any()]
    mean = sum(table[item] for item in said) / len(said) if centre else np.zeros(table.shape[1])
    rows = np.zeros_like(table)
    for item in said:
        apart = table[item] - mean
        rows[item] = apart / np.sqrt((apart**2).sum())
    query = np.zeros(table.shape[1])
    for age, item in enumerate(reversed(history[-longest:])):
        query += decay**age * rows[item]
    length = np.sqrt((query**2).sum())
    return rows @ query / length if length else np.zeros(ITEMS)


@pytest.mark.parametrize(("decay", "centre"), [(1.0, True), (0.3, False)])
def test_scores_are_cosines_computed_by_hand(decay: float, centre: bool) -> None:
    model = build("text-neighbours", decay=decay, centre=centre, max_length=5)
    for history in [*histories(model, 12), [4], [4, 4, 3]]:
        expected = by_hand(history, decay=decay, centre=centre, longest=5)
        got = model.scores(batch(model, [history[-5:]]))[0].numpy()
        np.testing.assert_allclose(got, expected, atol=1e-6)
        assert (np.abs(got) <= 1 + 1e-6).all()


def test_vectors_of_other_items_are_refused() -> None:
    with pytest.raises(ValueError, match=f"{ITEMS} vectors for 5 items"):
        TextNeighbours(TextNeighboursConfig(), 5, 1, torch.Generator(), vectors())
