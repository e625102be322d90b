"""Every page on a catalogue without a log: nobody in it, nothing measured, and no word that assumes people."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from app.analysis import model_card, model_flow, recommend
from engine import cli
from engine.data.prepare import fill_catalogue
from engine.runtime import Zoo
from tests.app.conftest import Open, run_without_fault
from tests.app.test_item_panel import panels
from tests.training.tiny import text_encoder

SAYS = "a catalogue without a log"
PAGES: dict[str, tuple[dict[str, str], str]] = {
    "compare": ({}, "this history is nobody's"),
    "catalogue": ({"item": "p4"}, SAYS),
    "attention": ({"section": "average"}, "this is a catalogue without a log"),
    "semantic_ids": ({}, SAYS),
    "map": ({}, SAYS),
    "metrics": ({}, "no model can be judged"),
    "about": ({"section": "text"}, SAYS),
}
"""Page → what of it is asked for, and what it says in place of what it says of people."""
BRANDS = ("Ruby", "Dune", "Fjord")
WRONG = ("0 people", "popular", "0 events", "most taken", "less taken", "split", "real person")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """shop: 40 items with attributes and without a log; a model carried over, one that was never trained, and identifiers."""
    base = tmp_path_factory.mktemp("alone")
    data, runs, zoo = base / "data", base / "runs", base / "exports" / "shop"
    columns: dict[str, list[object]] = {
        "item_id": [f"p{n}" for n in range(40)],
        "title": [f"{('Red', 'Blue', 'Gold')[n % 3]} thing {n % 25}" for n in range(40)],
        "brand": [BRANDS[n % 3] if n % 5 else None for n in range(40)],
        "categories": [["Beauty", ("Skin", "Hair")[n % 2]] for n in range(40)],
        "price": [1.5 * n for n in range(40)],
        "year": [1990 + n % 7 for n in range(40)],
        "description": [f"A {('dry', 'rich')[n % 2]} thing for everybody, by the sea." for n in range(40)],
    }
    data.mkdir()
    fill_catalogue(data, name="shop", title="The shop", source="Made up.", licence="None.", items=pa.table(columns))
    encoder, text, codes = text_encoder(), str(runs / "text-neighbours"), str(runs / "residual-kmeans")
    for words in (
        ["zero-shot", str(root / "exports" / "sample" / "recformer"), "--dataset", str(data), "--to", str(zoo)],
        ["train", "text-neighbours", "--dataset", str(data), "--out", text, "--set", f"model.encoder={encoder}"],
        ["tokenize", "residual-kmeans", "--dataset", str(data), "--out", codes, "--set", f"words.encoder={encoder}",
         "--set", "tokenizer.codes=4", "--set", "tokenizer.levels=2"],
        ["export", text, "--to", str(zoo)],
        ["export", codes, "--to", str(zoo)],
    ):  # fmt: skip
        assert cli.main(words) == 0
    models = Zoo.open(zoo)
    assert not models.refused and not models.has_log and list(models.bundles) == ["recformer", "text-neighbours"]
    return zoo.parent


def _in_full(value: object) -> str:
    """A table with all of its cells, which its own text leaves out."""
    return value.to_csv() if isinstance(value, pd.DataFrame) else str(value)


def said(test: AppTest) -> list[str]:
    """All that a visitor reads but what About says of terms."""
    kinds = [
        "title",
        "header",
        "subheader",
        "caption",
        "info",
        "warning",
        "error",
        "markdown",
        "metric",
        "button",
        "table",
    ]
    elements = [element for kind in kinds for element in getattr(test, kind)]
    texts = [f"{getattr(element, 'label', '')} {_in_full(element.value)}" for element in elements]
    return [text for text in texts if ":small[:gray[" not in text and "\n- " not in text]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_and_assumes_nobody(alone: Path, open_app: Open, page: str) -> None:
    asked, instead = PAGES[page]
    test = open_app(alone, page="" if page == "compare" else page, ds="shop", **asked)
    if page == "about":  # the text encoder of these tests knows next to nothing, and Recformer enough
        assert [one.value for one in test.warning] == [model_card.FEW_KNOWN]
        for name in ("recformer", "text-neighbours"):
            test.session_state[f"about_card_{name}"] = True
        run_without_fault(test)
        cards = " ".join(str(cell) for one in test.table for cell in one.value.to_numpy().ravel())
        assert "not on this dataset" in cards
    else:
        assert not test.warning
    if page == "metrics":  # where a training time would stand
        times = test.table[0].value["Time"].tolist()
        assert sum(time.startswith("not trained on this dataset; ") for time in times) == 1
    assert not test.error
    texts = said(test)
    assert any(SAYS in text for text in texts) and any(instead in text for text in texts)
    assert not [text for text in texts if any(word in text for word in WRONG)]
    for panel in panels(test):
        assert panel["attributes"] and not panel["standing"]  # nobody took anything, so nothing is popular


def test_vectors_that_nothing_was_learned_from_are_no_learned_encoding(alone: Path) -> None:
    models = Zoo.open(alone / "shop")
    flows = {
        name: [step.detail for step in model_flow.steps(models, name, (1, 2), recommend.top_k(models, name, (1, 2), 3))]
        for name in models.bundles
    }
    assert [name for name, details in flows.items() if "nothing is learned" in " ".join(details)] == ["text-neighbours"]
    assert not any("A learned encoding" in detail for detail in flows["text-neighbours"])
