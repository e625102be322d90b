"""Bundles whose scores are sums over parts of the query, side by side in it or added up to it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.bundle.errors import CapabilityError
from engine.data.dataset import Dataset
from engine.errors import SeqscopeError
from engine.export import vectors
from engine.models.caser import Caser
from engine.models.factorisation import TASTE
from engine.runtime import Zoo
from engine.training.run import open_run
from tests.export.conftest import BundleOf
from tests.runtime.bundles import edit, entries

SIDE_BY_SIDE = ["attrec", "caser", *(pytest.param(name, marks=pytest.mark.long) for name in ("fpmc", "prme"))]
HISTORY = [5, 1, 4, 3, 9, 8, 2, 6]


@pytest.mark.parametrize(("name", "added"), [("hgn", True), ("attrec", False), ("caser", False)])
def test_a_score_is_what_its_parts_gave(bundle_of: BundleOf, name: str, added: bool) -> None:
    bundle = bundle_of(name)
    assert bundle.cannot("contributions") is None and bundle.manifest.adds_parts == added
    for history in (HISTORY, [3], [1, 3, 9, 5, 21, 4] * 3):
        scores = bundle.scores(history)
        for item in (int(scores.argmax()), 0):
            given = bundle.contributions(history, item)
            assert given.score == pytest.approx(scores[item], rel=1e-5, abs=1e-5) and not len(given.events)
            assert list(given.parts)[1:] == list(bundle.manifest.index.parts)


@pytest.mark.parametrize("name", ["hgn", *SIDE_BY_SIDE])
def test_taste_knows_no_order_and_what_is_recent_nothing_of_before(bundle_of: BundleOf, name: str) -> None:
    bundle = bundle_of(name)
    before, order = [7, *HISTORY[1:]], [*HISTORY[1:-1], HISTORY[0], HISTORY[-1]]
    given, of_other, of_order = (bundle.contributions(events, 0) for events in (HISTORY, before, order))
    recent = [part for part in bundle.manifest.index.parts if part != TASTE][-1]
    assert given.parts[recent] == pytest.approx(of_other.parts[recent]) and given.parts[recent] != 0
    assert given.parts[TASTE] == pytest.approx(of_order.parts[TASTE]) != of_other.parts[TASTE]


@pytest.mark.parametrize("output", ["query_parts", "gates"])
def test_an_export_compares_what_explains(
    bundle_of: BundleOf, run_of: Callable[[str], Path], dataset: Dataset, output: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    folder, (model, *_) = bundle_of("hgn").folder.path, open_run(run_of("hgn"))
    assert vectors.compare(folder, model, dataset.cases("test"), 1).max_abs_difference < 1e-5
    answer = getattr(model, output)
    monkeypatch.setattr(model, output, lambda items: answer(items).flip(1))
    with pytest.raises(SeqscopeError, match="not exported"), torch.no_grad():
        vectors.compare(folder, model, dataset.cases("test"), 1)


def test_matches_of_filters_are_those_of_pytorch(bundle_of: BundleOf, run_of: Callable[[str], Path]) -> None:
    """Of rows that end with an item of the history: padding matches nothing."""
    bundle, (model, *_) = bundle_of("caser"), open_run(run_of("caser"))
    assert isinstance(model, Caser)
    for history in (HISTORY, [3], [1, 9]):
        with torch.no_grad():
            _, expected = model.query_with_matches(torch.tensor([history[-model.max_length :]]))
        matches = bundle.matches(history)
        assert len(matches) == len(expected) == model.filter_window
        for rows, of_pytorch in zip(matches, expected, strict=True):
            assert len(rows) == min(len(history), of_pytorch.shape[1])
            assert not of_pytorch[0, : -len(rows)].any()
            np.testing.assert_allclose(rows, of_pytorch[0, -len(rows) :], atol=1e-5)
    np.testing.assert_allclose(bundle.manifest.encoder.filters, model.place_weights.tolist())
    assert bundle.cannot("filters") is None and bundle_of("hgn").cannot("filters") is not None
    with pytest.raises(CapabilityError, match="no filters that slide"):
        bundle_of("hgn").matches(HISTORY)


def test_a_bundle_of_before_opens_and_says_nothing_of_parts(bundle_of: BundleOf, copied: Callable[..., Path]) -> None:
    out = copied("hgn")
    raw = entries(out / "hgn")
    del raw["index"]["parts"], raw["encoder"]["gates"]
    edit(out / "hgn", **raw)
    older = Zoo.open(out).bundles["hgn"]
    with pytest.raises(CapabilityError, match="no sums"):
        older.contributions(HISTORY, 0)
    with pytest.raises(CapabilityError, match="no gates"):
        older.gates(HISTORY)
    assert np.array_equal(older.scores(HISTORY), bundle_of("hgn").scores(HISTORY))
