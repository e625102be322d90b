"""Bundles whose scores are sums over parts of the query, side by side in it or added up to it."""

from __future__ import annotations

import functools
import json
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
from engine.runtime.bundle import Bundle
from engine.training.run import open_run

ADDED = ["hgn", "narm", "transrec"]
SIDE_BY_SIDE = ["attrec", "caser", "fpmc", "prme"]
HISTORY = [5, 1, 4, 3, 9, 8, 2, 6]


@pytest.fixture(scope="module")
def bundle_of(exported: Callable[[str], Path]) -> Callable[[str], Bundle]:
    return functools.cache(lambda name: Zoo.open(exported(name)).bundles[name])


@pytest.mark.parametrize("name", [*ADDED, *SIDE_BY_SIDE])
def test_a_score_is_what_its_parts_gave(bundle_of: Callable[[str], Bundle], name: str) -> None:
    bundle = bundle_of(name)
    assert bundle.cannot("contributions") is None and bundle.manifest.adds_parts == (name in ADDED)
    for history in (HISTORY, [3], [1, 3, 9, 5, 21, 4] * 3):
        scores = bundle.scores(history)
        for item in (int(scores.argmax()), 0):
            given = bundle.contributions(history, item)
            assert given.score == pytest.approx(scores[item], rel=1e-5, abs=1e-5) and not len(given.events)
            assert list(given.parts)[1:] == list(bundle.manifest.index.parts)


@pytest.mark.parametrize("name", ["hgn", *SIDE_BY_SIDE])
def test_taste_knows_no_order_and_what_is_recent_nothing_of_before(
    bundle_of: Callable[[str], Bundle], name: str
) -> None:
    bundle = bundle_of(name)
    before, order = [7, *HISTORY[1:]], [*HISTORY[1:-1], HISTORY[0], HISTORY[-1]]
    given, of_other, of_order = (bundle.contributions(events, 0) for events in (HISTORY, before, order))
    recent = [part for part in bundle.manifest.index.parts if part != TASTE][-1]
    assert given.parts[recent] == pytest.approx(of_other.parts[recent]) and given.parts[recent] != 0
    assert given.parts[TASTE] == pytest.approx(of_order.parts[TASTE]) != of_other.parts[TASTE]


def test_a_step_is_the_same_from_everywhere(bundle_of: Callable[[str], Bundle]) -> None:
    """In a bundle, which knows nobody of training."""
    bundle = bundle_of("transrec")
    (stands, step), given = bundle.manifest.index.parts, [bundle.contributions(history, 0) for history in ([4], [5])]
    assert given[0].parts[step] == pytest.approx(given[1].parts[step])
    assert given[0].parts[stands] != pytest.approx(given[1].parts[stands])


@pytest.mark.parametrize(("name", "output"), [*((name, "query_parts") for name in ADDED), ("hgn", "gates")])
def test_an_export_compares_what_explains(
    bundle_of: Callable[[str], Bundle], run_of: Callable[[str], Path], dataset: Dataset, name: str, output: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    folder, (model, *_) = bundle_of(name).folder.path, open_run(run_of(name))
    _, _, worst = vectors.compare(folder, model, dataset.cases("test"), 1)
    assert worst < 1e-5
    answer = getattr(model, output)
    monkeypatch.setattr(model, output, lambda items: answer(items).flip(1))
    with pytest.raises(SeqscopeError, match="not exported"), torch.no_grad():
        vectors.compare(folder, model, dataset.cases("test"), 1)


def test_gates_are_those_of_pytorch(bundle_of: Callable[[str], Bundle], run_of: Callable[[str], Path]) -> None:
    bundle, (model, *_) = bundle_of("hgn"), open_run(run_of("hgn"))
    for history in (HISTORY, [3], list(range(12))):
        gates = bundle.gates(history)
        read = torch.tensor([history[-model.max_length :]])
        with torch.no_grad():
            expected = model.gates(read)[0].tolist()
        assert list(gates) == list(range(len(history)))[-3:] and all(0 < gate < 1 for gate in gates.values())
        assert list(gates.values()) == pytest.approx(expected[-len(gates) :], abs=1e-6)


def test_matches_of_filters_are_those_of_pytorch(
    bundle_of: Callable[[str], Bundle], run_of: Callable[[str], Path]
) -> None:
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
    with pytest.raises(CapabilityError, match="no filters that slide"):
        bundle_of("hgn").matches(HISTORY)


def test_filters_weigh_the_latest_items(bundle_of: Callable[[str], Bundle], run_of: Callable[[str], Path]) -> None:
    """Through the vertical filters alone, the query is what these weights make of the items' vectors."""
    bundle, (model, *_) = bundle_of("caser"), open_run(run_of("caser"))
    assert isinstance(model, Caser)
    assert bundle.cannot("filters") is None and bundle_of("hgn").cannot("filters") is not None
    weights = torch.tensor(bundle.manifest.encoder.filters)
    with torch.no_grad():
        for rows in model.rows:
            rows.zero_()
        vectors_read = model.items(torch.tensor([HISTORY[-weights.shape[1] :]]))[0]
        vertical = (weights @ vectors_read).flatten()
        joined = torch.relu(model.joint.weight[:, -len(vertical) :] @ vertical + model.joint.bias)
        torch.testing.assert_close(model.query(torch.tensor([HISTORY]))[0, : len(joined)], joined)


def test_who_has_no_gates_says_so(bundle_of: Callable[[str], Bundle]) -> None:
    with pytest.raises(CapabilityError, match="no gates"):
        bundle_of("caser").gates(HISTORY)


@pytest.mark.parametrize("name", ["hgn", "attrec"])
def test_a_bundle_of_before_opens_and_says_nothing_of_parts(
    bundle_of: Callable[[str], Bundle], copied: Callable[..., Path], name: str
) -> None:
    out = copied(name)
    manifest = json.loads((out / name / "manifest.json").read_text("utf-8"))
    del manifest["index"]["parts"]
    manifest["encoder"].pop("gates", None)
    (out / name / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    older = Zoo.open(out).bundles[name]
    with pytest.raises(CapabilityError, match="no sums"):
        older.contributions(HISTORY, 0)
    with pytest.raises(CapabilityError, match="no gates"):
        older.gates(HISTORY)
    assert np.array_equal(older.scores(HISTORY), bundle_of(name).scores(HISTORY))
