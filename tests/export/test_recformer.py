"""Recformer behind the door: ONNX Runtime answers as PyTorch at every length, new items are read, words are shown."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from engine.bundle.manifest import Manifest
from engine.data.dataset import Dataset
from engine.runtime import Bundle, BundleError, CapabilityError, QuestionError, Zoo
from tests.export.conftest import BundleOf
from tests.runtime.bundles import entries, retrain

ITEMS = 150


@pytest.fixture(scope="module")
def bundle(bundle_of: BundleOf) -> Bundle:
    """Of a windowed model that reads 20 tokens."""
    return bundle_of("recformer")


def test_new_items_are_read_as_those_of_the_catalogue(bundle: Bundle, dataset: Dataset) -> None:
    titles = pq.read_table(dataset.path / "items.parquet").sort_by("item")["title"].to_pylist()
    assert bundle.cannot("unseen_items") is None
    rows = bundle.encode([{"title": title} for title in titles])
    expected = np.load(bundle.folder.path / "index.npy")[:, :-1]
    np.testing.assert_allclose(rows, expected, atol=1e-4)
    lines = [f"{title}\n".replace(" ", "\t ") for title in titles]  # of which an import makes one
    np.testing.assert_allclose(bundle.encode([{"title": title} for title in lines]), expected, atol=1e-4)
    history = [3, 1, 4]
    asked = [{"title": titles[7]}, {}]
    scores = bundle.score_new(history, asked)
    assert scores[0] == pytest.approx(bundle.scores(history)[7], abs=1e-3)
    assert np.isfinite(scores).all()
    assert bundle.encode([]).shape == (0, 16)
    with pytest.raises(QuestionError, match="does not read 'colour'; it reads title"):
        bundle.encode([{"colour": "red"}])
    with pytest.raises(QuestionError, match="texts by attribute"):
        bundle.encode([{"title": 3}])  # type: ignore[dict-item]


def test_new_items_are_read_no_further_than_those_of_the_catalogue(copied: Callable[..., Path]) -> None:
    out = copied("recformer")
    recipe = entries(out / "recformer")["training"]["recipe"]
    retrain(out / "recformer", recipe=recipe | {"model": recipe["model"] | {"fields": ["title:2"]}})
    rows = Zoo.open(out).bundles["recformer"].encode([{"title": "Item 9"}, {"title": "Item 9 of gold"}])
    np.testing.assert_array_equal(*rows)


def test_which_words_were_looked_at(bundle: Bundle) -> None:
    assert bundle.cannot("words") is None
    history = [9, 10]
    found = bundle.word_attention(history)
    said = [word.word for word in found.words if word.item == 9]
    assert "".join(said) == "titleitem9은"
    assert next(word.key for word in found.words if word.item == 9)
    assert {word.position for word in found.words} == {0, 1}
    # over the words of an item it is what the map says of the item
    map_ = bundle.attention(history).weights[:, :, -1]
    for place in (0, 1):
        own = [number for number, word in enumerate(found.words) if word.position == place]
        np.testing.assert_allclose(found.weights[:, :, own].sum(-1), map_[:, :, place], atol=1e-5)
    long = bundle.word_attention(np.arange(20))
    assert min(word.position for word in long.words) == 14


def test_what_the_manifest_says(bundle: Bundle) -> None:
    raw = json.loads((bundle.folder.path / "manifest.json").read_text("utf-8"))
    assert raw["schema_version"] == 5
    assert raw["text"]["fields"] == ["title"]
    assert raw["capabilities"]["unseen_items"]
    for change in ({"schema_version": 1}, {"text": None}, {"index": {"kind": "identity", "geometry": "cosine"}}):
        with pytest.raises(ValueError, match=r"schema_version|a text|identity"):
            Manifest.model_validate(raw | change)
    for name in ("item_encoder.onnx", "tokenizer.json", "words.parquet"):
        with pytest.raises(ValueError, match=re.escape(name)):
            Manifest.model_validate(raw | {"files": {k: v for k, v in raw["files"].items() if k != name}})


def test_damaged_files_are_named(copied: Callable[..., Path]) -> None:
    out = copied("recformer")
    file = out / "recformer" / "tokenizer.json"
    file.write_bytes(file.read_bytes()[:-1] + b" ")
    bundle = Zoo.open(out).bundles["recformer"]
    with pytest.raises(BundleError, match=r"tokenizer\.json"):
        bundle.encode([{"title": "gold"}])


def test_models_of_numbers_say_that_they_cannot(bundle_of: BundleOf) -> None:
    numbers = bundle_of("popularity")
    assert numbers.cannot("words") is not None
    with pytest.raises(CapabilityError, match=r"\.$"):
        numbers.encode([{"title": "x"}])
