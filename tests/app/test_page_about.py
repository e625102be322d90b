"""About: every entry has its meaning in two sentences and a source, and every model and dataset its card."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import glossary
from app.screens.about import cards as views
from app.text import md
from engine.runtime import STILL_IMPROVING, Zoo
from tests.runtime.bundles import TOYS, make_zoo, seal


@pytest.mark.parametrize("entry", list(glossary.TERMS.values()), ids=lambda entry: entry.term)
def test_two_sentences_and_a_source(entry: glossary.Entry) -> None:
    assert len(re.findall(r"[.](?: |$)", entry.meaning)) == 2, entry.meaning
    assert entry.source


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = make_zoo(tmp_path / "exports")
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(path.parent))
    return path


def test_cards(path: Path) -> None:
    zoo = Zoo.open(path)
    card = views.data_card(zoo.info)
    assert card["People"] == "4, **simulated**" and card["Licence"] == md("None needed.")
    assert card["Time"] == "the order of events alone" and "left out of the candidates" in card["Repeats"]
    for bundle in zoo.bundles.values():
        card = views.model_card(bundle)
        assert card["From"] == md("None.") and "does not have" in card["Recommends"]
    made = zoo.bundles["alpha"].manifest.training.model_dump()
    for best, words in ((1, False), (2, True)):
        seal(path / "alpha", training=made | {"epochs": 2, "best_epoch": best})
        assert (STILL_IMPROVING in views.model_card(Zoo.open(path).bundles["alpha"])["Trained"]) is words
    assert any("Counts have no neighbours" in words for words in views.cannot(zoo.bundles["popular"]))


def test_a_card_says_how_far_the_fold_in_is_from_the_vectors_of_training(path: Path) -> None:
    figures = {"full": {"NDCG@10": 0.6124}, "full+user": {"NDCG@10": 0.6131}, "u100+user": {"NDCG@10": 0.9}}
    for lacking in ("full", "full+user", ""):
        seal(path / "alpha", metrics={protocol: found for protocol, found in figures.items() if protocol != lacking})
        card = views.model_card(Zoo.open(path).bundles["alpha"])
        assert ("Fold-in" in card) is not bool(lacking)
    assert card["Fold-in"].index("0.6124") < card["Fold-in"].index("0.6131")


def _script() -> None:
    import runpy

    from app import zoo
    from app.session import state

    state.sync(list(zoo.datasets()), zoo.open_zoo)
    runpy.run_path("app/screens/about/page.py", run_name="about")


def test_what_to_bear_in_mind_stands_apart_from_the_source(path: Path) -> None:
    file = path / "dataset.json"
    said = json.loads(file.read_text("utf-8")) | {"source": "Made up.\nNobody *chose*.\n\nNew ones dominate."}
    file.write_text(json.dumps(said), "utf-8")
    assert views.data_card(Zoo.open(path).info)["Source"] == md("Made up.")
    page = AppTest.from_function(_script, default_timeout=60).run()
    assert f"- {md('Nobody *chose*.')}\n- {md('New ones dominate.')}" in [markdown.value for markdown in page.markdown]


def test_the_page_shows_foreign_text_as_text(path: Path) -> None:
    title, summary = "$x$ <script>a</script>", "=HYPERLINK() **bold** 한국어 [link](https://example.org)"
    seal(path / "alpha", title=title, summary=summary)
    seal(path / "beta", fingerprint="cd" * 32)  # refused, and said so
    page = AppTest.from_function(_script, default_timeout=60).run()
    assert not page.exception and not page.error
    assert len(page.subheader) == len(TOYS) - 1
    assert page.subheader[0].value.endswith(md(title))
    texts = [markdown.value for markdown in page.markdown]
    assert md(summary) in texts
    assert any("Refused" in warning.value for warning in page.warning)
    assert [header.value for header in page.header] == [
        "The data",
        "The models",
        "Metrics",
        "Codes of items",
        "Views",
        "Limits",
    ]
