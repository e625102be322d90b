"""Bundles of models that add up weights between items: scores taken apart, ranked again as docs/bundle.md says, or refused."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

from engine.bundle.errors import BundleError, CapabilityError
from engine.export.counted import write_item_to_item
from engine.models.item_to_item import ItemToItem
from engine.registry import MODELS
from engine.runtime import Zoo
from engine.runtime.bundle import Bundle
from tests.models.contract import ITEMS, USERS, small
from tests.runtime.bundles import seal

SUMS = sorted(name for name, model in MODELS.items() if issubclass(model, ItemToItem))
EXAMPLE = re.search(r"```python\n(import json\n.*?)```", Path("docs/bundle.md").read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("name", SUMS)
def test_a_score_is_what_its_events_gave(exports: Path, name: str) -> None:
    bundle = Zoo.open(exports).bundles[name]
    rng = np.random.default_rng(3)
    for length in (1, 4, bundle.manifest.encoder.max_length + 3):
        history = rng.integers(0, bundle.manifest.num_items, length).tolist()
        history[-1] = history[0]  # twice
        scores = bundle.scores(history)
        for item in (int(scores.argmax()), history[0], 0):
            parts = bundle.contributions(history, item)
            assert len(parts.events) == length
            assert not parts.events[: bundle.used(history).start].any()
            assert parts.score == pytest.approx(scores[item], rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", SUMS)
def test_a_stranger_ranks_it_again(exports: Path, name: str) -> None:
    assert EXAMPLE is not None
    bundle = Zoo.open(exports).bundles[name]
    for history in ([2], [5, 1, 5, 3, 0]):
        given: dict[str, Any] = {"folder": exports / name, "history": history}
        exec(EXAMPLE[1], given)  # noqa: S102 (of our own docs)
        expected = bundle.scores(history)
        expected[history] = -np.inf
        np.testing.assert_allclose(given["scores"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["markov", "item-knn"])
def test_where_nothing_follows_from_anything_the_prior_is_left(tmp_path: Path, name: str) -> None:
    """As of a log in which everybody has one event."""
    model = MODELS[name](small(name), ITEMS, USERS, torch.Generator())
    model.fit(torch.arange(ITEMS), torch.arange(ITEMS + 1))
    draft: Any = SimpleNamespace(folder=tmp_path)
    write_item_to_item(model, draft)
    items = np.array([[1, 2, 3]])[:, : model.max_length]
    (query,) = onnxruntime.InferenceSession(tmp_path / "encoder.onnx").run(None, {"items": items})
    assert draft.item_to_item.entries == 0 and query.shape == (1, ITEMS) and not query.any()


def test_a_model_that_adds_nothing_up_says_so(exports: Path) -> None:
    with pytest.raises(CapabilityError, match="no sums"):
        Zoo.open(exports).bundles["sasrec"].contributions([1], 2)


def damage(folder: Path, file: str, change: Any) -> None:
    array = np.load(folder / file)
    change(array)
    np.save(folder / file, array)


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        ("starts.npy", lambda array: array.__setitem__(1, -1), "do not ascend"),
        ("starts.npy", lambda array: array.__setitem__(-1, array[-1] + 1), "do not ascend"),
        ("entries.npy", lambda array: array.__setitem__(0, 32_000), "beyond the catalogue"),
        ("entries.npy", lambda array: array.__setitem__(slice(None), 0), "each once"),
        ("entry_weights.npy", lambda array: array.__setitem__(0, np.inf), "NaN or infinity"),
        ("position_weights.npy", lambda array: array.__setitem__(0, np.nan), "NaN or infinity"),
    ],
)
def test_damaged_weights_are_refused(exports: Path, tmp_path: Path, file: str, change: Any, words: str) -> None:
    shutil.copytree(exports, tmp_path / "tiny")
    folder = tmp_path / "tiny" / "counting"
    damage(folder, file, change)
    seal(folder)
    with pytest.raises(BundleError, match=words) as refused:
        Zoo.open(tmp_path / "tiny").bundles["counting"].contributions([1, 2], 3)
    assert refused.value.file == file


def test_a_manifest_that_promises_them_lists_them(exports: Path, tmp_path: Path) -> None:
    shutil.copytree(exports, tmp_path / "tiny")
    folder = tmp_path / "tiny" / "counting"
    raw = json.loads((folder / "manifest.json").read_text("utf-8"))
    del raw["files"]["entries.npy"]
    (folder / "manifest.json").write_text(json.dumps(raw), "utf-8")
    zoo = Zoo.open(tmp_path / "tiny")
    assert "counting" not in zoo.bundles
    assert isinstance(zoo.bundles["popularity"], Bundle)
