"""How many words of a catalogue a model knows, on the pages About and Your data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app import home
from app.analysis import model_card
from app.screens.about import cards
from app.text import md
from engine.runtime import Zoo
from tests.app.own import ANNA, page, ready, said
from tests.app.readers import READER, make_readers
from tests.runtime.bundles import seal
from tests.runtime.tokenizations import write_tokenization

FEW = "It knows 5% of the words of this catalogue; the rest is spelt letter by letter, or has no token at all."


def test_in_a_sentence() -> None:
    for unknown, words in ((0.95, "5%"), (0, "every word"), (0.999, "less than 1%"), (0.001, "more than 99%")):
        assert words in model_card.known_words(unknown)
        assert model_card.too_few_known(unknown) == (unknown > 0.5)
    for wrong in (None, True, 1.1, float("nan"), "<b>1</b>"):
        assert model_card.known_words(wrong) == "" and not model_card.too_few_known(wrong)


def test_a_models_card(tmp_path: Path) -> None:
    """The warning on the page is in test_catalogue_alone.py."""
    path = make_readers(tmp_path)
    manifest = json.loads((path / READER / "manifest.json").read_text("utf-8"))
    seal(path / READER, text=manifest["text"] | {"unknown": 0.95})
    models = Zoo.open(path)
    assert cards.model_card(models.bundles[READER])["Known words"] == md(FEW)
    assert "Known words" not in cards.model_card(models.bundles["sasrec"])


@pytest.mark.usefixtures("launcher")
def test_what_answers_on_your_data(root: Path) -> None:
    exports = home.here().dataset(ANNA, ready(ANNA, "My shop").id).exports
    (exports / "carried").mkdir()
    about = {"title": "Recformer <b>", "zero_shot": {"title": "Films"}, "text": {"unknown": 0.95}}
    (exports / "carried" / "manifest.json").write_text(json.dumps(about))
    write_tokenization(exports, "rqvae")
    codes = exports / "identifiers" / "rqvae" / "about.json"
    codes.write_text(json.dumps(json.loads(codes.read_text("utf-8")) | {"unknown": 0.1}))
    test = page(root, ANNA)
    (warning,) = [one.value for one in test.warning if "may say little" in one.value]
    assert warning.endswith(FEW) and "Recformer \\<b\\>" in warning
    text = said(test)
    assert f"items' texts are read. {FEW}" in text
    assert "Made semantic IDs of the items' texts. It knows 90% of the words" in text
