"""Bundles of models that add up weights between items: scores taken apart, ranked again as docs/bundle.md says, or refused."""

import re
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from engine.bundle.errors import BundleError
from engine.bundle.files import Folder
from engine.export.staging import file_of
from engine.export.vectors import write_item_to_item
from engine.models.item_to_item import LEVELS
from engine.registry import MODELS
from engine.runtime import Zoo
from engine.runtime.item_to_item import FILE, ItemToItemWeights, unpack
from tests.export.conftest import BundleOf
from tests.models.contract import ITEMS, USERS, small
from tests.runtime.bundles import amend, edit, entries, seal

SUMS = ["counting", "item-knn"]
"""One that weighs what is recent more, and one that reads no order."""
EXAMPLE = re.search(r"```python\n(import json\n.*?)```", Path("docs/bundle.md").read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("name", SUMS)
def test_a_score_is_what_its_events_gave(bundle_of: BundleOf, name: str) -> None:
    bundle = bundle_of(name)
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
def test_a_stranger_ranks_it_again(bundle_of: BundleOf, name: str) -> None:
    assert EXAMPLE is not None
    bundle = bundle_of(name)
    for history in ([2], [5, 1, 5, 3, 0]):
        given: dict[str, Any] = {"folder": bundle.folder.path, "history": history}
        exec(EXAMPLE[1], given)  # noqa: S102 (of our own docs)
        expected = bundle.scores(history)
        expected[history] = -np.inf
        np.testing.assert_allclose(given["scores"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["markov", "item-knn"])
def test_where_nothing_follows_from_anything_the_prior_is_left(tmp_path: Path, name: str) -> None:
    """As of a log in which everybody has one event."""
    model = MODELS[name](small(name), ITEMS, USERS, torch.Generator())
    model.fit(torch.arange(ITEMS), torch.arange(ITEMS + 1))
    weights = written(model, tmp_path)
    assert not len(weights.entries) and not weights.run(np.array([[1, 2, 3]])[:, : model.max_length]).any()


@pytest.mark.parametrize(("items", "rounded"), [(50, True), (70_000, True), (50, False)])
def test_packed_weights_are_those_of_the_model(tmp_path: Path, items: int, rounded: bool) -> None:
    """Where items are near one another, and where they are so far apart that a gap takes more than two bytes."""
    model: Any = MODELS["item-knn"](small("item-knn"), items, USERS, torch.Generator())
    rng = np.random.default_rng(4)
    rows, columns = rng.integers(0, items, (2, 900))
    values = rng.standard_normal(900).astype(np.float32)
    model.keep(sparse.csr_matrix((values, (rows, columns)), (items, items)), 50, rounded)
    weights = written(model, tmp_path)
    assert np.array_equal(weights.starts, model.starts[:-1]) and np.array_equal(weights.entries, model.entries)
    assert np.array_equal(weights.weights, model.weights)
    assert (len(np.unique(weights.weights)) <= LEVELS) == rounded


def written(model: Any, folder: Path) -> ItemToItemWeights:
    draft: Any = SimpleNamespace(folder=folder, checks=[])
    write_item_to_item(model, draft)
    longest = model.max_length if model.reads_order else None
    files = {FILE: file_of(folder / FILE)}
    return unpack(Folder(folder, folder.name), files, model.num_items, draft.item_to_item, longest)


Arrays = dict[str, np.ndarray]


def arrays(folder: Path) -> Arrays:
    with np.load(folder / FILE) as stored:
        return dict(stored)


def changed(change: Callable[[Arrays], Any]) -> Callable[[Path], None]:
    """What damages a bundle by changing its arrays."""

    def damage(folder: Path) -> None:
        stored = arrays(folder)
        change(stored)
        np.savez_compressed(folder / FILE, **stored)  # type: ignore[arg-type]

    return damage


def rezipped(folder: Path, method: int = zipfile.ZIP_DEFLATED, last: str = "levels.npy") -> None:
    """The same members, packed by another method, and the last one called something else."""
    with zipfile.ZipFile(folder / FILE) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(folder / FILE, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(last if name == "levels.npy" else name, content)


def promised(folder: Path) -> None:
    """More entries than any machine has room for."""
    amend(folder, item_to_item={"entries": 1_900_000_000})


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (changed(lambda stored: stored["gaps"].__setitem__((0, 5), 0)), "do not ascend"),
        (changed(lambda stored: stored["gaps"].__setitem__((slice(None), slice(None)), 255)), "do not ascend"),
        (changed(lambda stored: stored["levels"].__setitem__(0, np.inf)), "NaN or infinity"),
        (changed(lambda stored: stored.update(codes=stored["codes"][1:])), "the shape must be"),
        (changed(lambda stored: stored.update(levels=stored["levels"].astype(object))), "numbers must be float16"),
        (partial(rezipped, last="../levels.npy"), "nothing else"),
        (partial(rezipped, last="codes.npy"), "each once"),
        (partial(rezipped, method=zipfile.ZIP_LZMA), "must be deflated"),
        (lambda folder: (folder / FILE).write_bytes((folder / FILE).read_bytes()[:-30]), "can be read"),
        (promised, "more than the 200,000,000"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_damaged_weights_are_refused(copied: Callable[..., Path], damage: Callable[[Path], None], words: str) -> None:
    out = copied("counting")
    damage(out / "counting")
    seal(out / "counting")
    with pytest.raises(BundleError, match=words) as refused:
        Zoo.open(out).bundles["counting"].contributions([1, 2], 3)
    assert refused.value.file == FILE


def test_a_manifest_that_promises_them_lists_them(copied: Callable[..., Path]) -> None:
    out = copied("counting", "popularity")
    files = entries(out / "counting")["files"]
    del files[FILE]
    edit(out / "counting", files=files)
    assert list(Zoo.open(out).bundles) == ["popularity"]
