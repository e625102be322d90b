"""About: every entry has its meaning and a source, and every model and dataset its card."""

import dataclasses
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app import glossary, home
from app.analysis import model_card
from app.screens import PAGES
from app.screens.about import cards
from app.screens.about import cards as views
from app.text import md
from engine.cards import KINDS, declarations
from engine.data.write import describe_time
from engine.runtime import Zoo
from tests.app.conftest import alone, run_without_fault
from tests.app.own import ANNA, page, ready, said
from tests.app.readers import READER, make_readers
from tests.runtime.bundles import TOYS, describe, make_zoo, seal
from tests.runtime.tokenizations import write_tokenization


@pytest.mark.parametrize("name", [name for name in PAGES if name != "about"])
def test_terms_bear_their_meanings_where_they_are_labels(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(root / "exports"))
    page = alone(name, ds="sample", user="person-0001")
    for section in getattr(import_module(f"app.screens.{name}"), "SECTIONS", ["none"]):
        page.query_params["section"] = section
        for label, help_ in _labels(page.run()):
            assert glossary.tooltip(label) == "" or help_, (section, label)
        assert not page.exception


def _labels(page: AppTest) -> Iterator[tuple[str, str]]:
    """(label, tooltip) of all headings, controls, metrics and columns."""
    for element in page.main:
        proto = getattr(element, "proto", None)
        if element.type in ("title", "header", "subheader"):
            yield proto.body, proto.help
        elif element.type == "dataframe" and proto.columns:
            columns = json.loads(proto.columns)
            yield from ((str(name), (columns.get(str(name)) or {}).get("help") or "") for name in element.value)
        elif hasattr(proto, "help"):
            yield getattr(proto, "label", ""), proto.help


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = make_zoo(tmp_path / "exports")
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(path.parent))
    return path


def test_cards(path: Path) -> None:
    zoo = Zoo.open(path)
    card = views.data_card(zoo.info)
    shares = (0.825, 0.99998, 0.9999996)
    sparse = [views.data_card(dataclasses.replace(zoo.info, sparsity=share))["Sparsity"] for share in shares]
    assert [words.partition(" ")[0] for words in sparse] == ["82.50%", "99.998%", "99.99996%"]
    assert card["Users"] == "4, **simulated**" and card["Licence"] == md("None needed.")
    assert card["Per user"] == "3 to 14 events, median 5.5, mean 7.0"
    assert card["Time"] == "the order of events alone" and "left out of the candidates" in card["Repeats"]
    for bundle in zoo.bundles.values():
        card = views.model_card(bundle)
        assert card["Paper"] == md("None.") and "not in the history" in card["Recommends"]
    assert zoo.bundles["popular"].cannot("neighbours") == "Counts have no neighbours."
    assert any("not a place for each item" in words for words in views.cannot(zoo.bundles["popular"]))


def test_a_card_says_what_is_read_and_has_no_vectors_where_a_model_has_none(root: Path) -> None:
    films = Zoo.open(root / "exports" / "films").bundles
    cards = {name: views.model_card(films[name]) for name in ("popularity", "markov", "sasrec")}
    assert (
        cards["markov"]["Parity"] == "no difference from the trained model, on 24 histories"
    )  # numpy reads it, not ONNX Runtime
    assert cards["sasrec"]["ONNX parity"].startswith("9e-07 from")
    assert [card["Reads"] for card in cards.values()] == [
        "nothing: it recommends the same to everybody", "the last item", "the latest 100 items",
    ]  # fmt: skip
    assert ["embedding size" in card["Size"] for card in cards.values()] == [False, False, True]


def test_ties_are_told_as_they_are_counted(path: Path) -> None:
    alike = np.zeros(3, np.int64)  # three events of one user on one day
    tied = dataclasses.replace(Zoo.open(path).info, time=describe_time(alike, alike, "day"))
    assert views.data_card(tied)["Time"].endswith("2 events share their day with the event before them")


def test_a_card_says_what_its_family_says_now_and_how_far_the_fold_in_is_from_the_vectors_of_training(
    path: Path,
) -> None:
    seal(path / "beta", summary="People move.")
    seal(path / "gamma", summary="A model of somebody else.")
    bundles = Zoo.open(path).bundles
    assert model_card.summary(bundles["beta"]) == declarations().models["attrec"].card.summary
    assert model_card.summary(bundles["gamma"]) == "A model of somebody else."
    figures = {"full": {"NDCG@10": 0.6124}, "full+user": {"NDCG@10": 0.6131}}
    seal(path / "alpha", metrics=figures)
    seal(path / "gamma", metrics={"full": figures["full"], "u100+user": {"NDCG@10": 0.9}})
    bundles = Zoo.open(path).bundles
    words = views.model_card(bundles["alpha"])["User vectors"]
    assert words.index("0.6124") < words.index("0.6131") < words.index("Full ranking")
    assert "User vectors" not in views.model_card(bundles["gamma"])


def test_models_of_one_family_that_differ_say_in_what(root: Path) -> None:
    films = Zoo.open(root / "exports" / "films").bundles
    for family in ("sasrec", "sasrec-bce", "sasrec-time"), ("tiger", "letter-tiger"):
        assert len({model_card.summary(films[name]) for name in family}) == len(family)
    sample = Zoo.open(root / "exports" / "sample").bundles
    assert any(words.startswith("**Unique IDs**") for words in views.cannot(sample["lc-rec"]))


def test_what_to_bear_in_mind_stands_apart_from_the_source(path: Path) -> None:
    describe(path, source="Made up.\nNobody *chose*.\n\nNew ones dominate.")
    assert views.data_card(Zoo.open(path).info)["Source"] == md("Made up.")
    page = alone("about").run()
    assert f"- {md('Nobody *chose*.')}\n- {md('New ones dominate.')}" in [markdown.value for markdown in page.markdown]


def test_a_section_per_kind_of_model_and_cards_closed_until_opened(path: Path) -> None:
    title, summary = "$x$ <script>a</script>", "=HYPERLINK() **bold** 한국어 [link](https://example.org)"
    seal(path / "alpha", title=title, summary=summary)
    seal(path / "beta", fingerprint="cd" * 32)  # refused, and said so
    page = run_without_fault(alone("about"))
    assert any("Refused" in warning.value for warning in page.warning)
    kinds = {kind: KINDS[kind] for kind in KINDS if KINDS[kind] in model_card.by_kind(Zoo.open(path))}
    assert [tab.label for tab in page.tabs] == ["Dataset", "Protocol", *kinds.values(), "Terms", "Limits"]
    shown = []
    for kind in kinds:
        page.query_params["section"] = kind
        assert not run_without_fault(page).table
        shown += [markdown.value for markdown in page.markdown]
    assert sum("\n" in text for text in shown) == len(TOYS) - 1
    assert any(md(title) in text and text.endswith(md(summary)) for text in shown)


@pytest.mark.parametrize(("title", "folder"), [("七人の侍", "七人の侍"), ("Café №1", "café-1"), ("🎬", "dataset")])
def test_a_bundle_unpacks_into_a_folder_of_its_dataset(
    path: Path, monkeypatch: pytest.MonkeyPatch, title: str, folder: str
) -> None:
    """Which no other dataset of the same title has."""
    about = json.loads((path / "dataset.json").read_text("utf-8"))
    (path / "dataset.json").write_text(json.dumps(about | {"title": title}), "utf-8")
    offered: list[Callable[[], bytes]] = []
    monkeypatch.setattr("app.server.downloads.button", lambda label, make, *rest, **more: offered.append(make))
    page = alone("about", section="sequential")
    page.session_state["about_card_alpha"] = True
    run_without_fault(page)
    archive = zipfile.ZipFile(io.BytesIO(offered[0]()))
    assert {name.partition("/")[0] for name in archive.namelist()} == {f"{folder}-{about['fingerprint'][:8]}"}


def test_an_open_card_offers_the_bundle(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = alone("about", section="sequential")
    page.session_state["about_card_alpha"] = True
    (button,) = run_without_fault(page).get("download_button")
    assert button.proto.label.startswith("Bundle of ")
    monkeypatch.setattr("engine.runtime.zoo.PACKED_BYTES", 1)
    assert not run_without_fault(page).get("download_button")
    assert any("too much to be packed" in caption.value for caption in page.caption)


def test_terms_are_found_by_their_meaning(path: Path) -> None:
    page = alone("about", section="terms").run()
    assert len([text for text in page.markdown if text.value.startswith("**")]) == len(glossary.TERMS)
    assert all(entry.source for entry in glossary.TERMS.values())
    page.text_input(key="about_term").set_value("holm").run()
    found = [text.value for text in page.markdown if text.value.startswith("**")]
    assert not page.exception and any("Holm" in text for text in found) and len(found) < 5
    page.text_input(key="about_term").set_value("NDCG@10").run()  # as it is called on other pages
    assert any(text.value.startswith("**NDCG@") for text in page.markdown)
    page.text_input(key="about_term").set_value("no *such* term").run()
    assert "“no \\*such\\* term”" in page.info[0].value


# --- how many words of a catalogue a model knows, on the pages About and Your data


FEW = "5% of the words of this catalogue"


def test_known_words_in_a_sentence() -> None:
    for unknown, words in ((0.95, "5%"), (0, "every word"), (0.999, "less than 1%"), (0.001, "more than 99%")):
        assert words in model_card.known_words(unknown)
        assert model_card.too_few_known(unknown) == (unknown > 0.5)
    for wrong in (None, True, 1.1, float("nan"), "<b>1</b>"):
        assert model_card.known_words(wrong) == "" and not model_card.too_few_known(wrong)


def test_known_words_on_a_models_card(tmp_path: Path) -> None:
    """The warning on the page is in test_catalogue_alone.py."""
    path = make_readers(tmp_path)
    manifest = json.loads((path / READER / "manifest.json").read_text("utf-8"))
    seal(path / READER, text=manifest["text"] | {"unknown": 0.95})
    models = Zoo.open(path)
    assert FEW in cards.model_card(models.bundles[READER])["Known words"]
    assert "Known words" not in cards.model_card(models.bundles["sasrec"])


@pytest.mark.usefixtures("launcher")
def test_known_words_of_what_answers_on_your_data(root: Path) -> None:
    exports = home.here().dataset(ANNA, ready(ANNA, "My shop").id).exports
    (exports / "carried").mkdir()
    about = {"title": "Recformer <b>", "zero_shot": {"title": "Films"}, "text": {"unknown": 0.95}}
    (exports / "carried" / "manifest.json").write_text(json.dumps(about))
    write_tokenization(exports, "rqvae")
    codes = exports / "identifiers" / "rqvae" / "about.json"
    codes.write_text(json.dumps(json.loads(codes.read_text("utf-8")) | {"unknown": 0.1}))
    test = page(root, ANNA)
    (warning,) = [one.value for one in test.warning if "may say little" in one.value]
    assert FEW in warning and "Recformer \\<b\\>" in warning
    text = said(test)
    assert FEW in text.partition("texts are read")[2]
    assert "Made semantic IDs of the items' texts. It knows 90% of the words" in text
