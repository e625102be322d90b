"""Every page on a catalogue without a log: nobody in it, nothing measured, and no word that assumes people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from app.analysis import model_card
from engine import cli
from engine.data.prepare import fill_catalogue
from tests.app.test_item_panel import panels
from tests.training.tiny import text_encoder

PAGES = ("compare", "catalogue", "attention", "semantic_ids", "graph", "map", "metrics", "about")
BRANDS = ("Ruby", "Dune", "Fjord")
WRONG = ("0 people", "popular", "0 events", "most taken", "less taken", "split", "real person")


def make(root: Path, out: Path, name: str, columns: dict[str, list[object]], source: Path) -> None:
    """A zoo without a log: a model carried over, one that was never trained, and identifiers."""
    data, runs, zoo = out / "data" / name, out / "runs" / name, out / "exports" / name
    data.mkdir(parents=True)
    count = len(columns["title"])
    items = pa.table({"item_id": [f"p{n}" for n in range(count)], **columns})
    fill_catalogue(data, name=name, title=f"The {name}", source="Made up.", licence="None.", items=items)
    settings = ["--set", f"words.encoder={text_encoder()}", "--set", "tokenizer.codes=4", "--set", "tokenizer.levels=2"]
    for words in (
        ["zero-shot", str(source), "--dataset", str(data), "--to", str(zoo)],
        ["train", "text-neighbours", "--dataset", str(data), "--out", str(runs / "text-neighbours"),
         "--set", f"model.encoder={text_encoder()}"],
        ["export", str(runs / "text-neighbours"), "--to", str(zoo)],
        ["tokenize", "residual-kmeans", "--dataset", str(data), "--out", str(runs / "residual-kmeans"), *settings],
        ["export", str(runs / "residual-kmeans"), "--to", str(zoo)],
    ):  # fmt: skip
        assert cli.main(words) == 0


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[Path]:
    """shop: 40 items with attributes; titles: ten items of which nothing but a title is known."""
    base = tmp_path_factory.mktemp("alone")
    shop: dict[str, list[object]] = {
        "title": [f"{('Red', 'Blue', 'Gold')[n % 3]} thing {n % 25}" for n in range(40)],
        "brand": [BRANDS[n % 3] if n % 5 else None for n in range(40)],
        "categories": [["Beauty", ("Skin", "Hair")[n % 2]] for n in range(40)],
        "price": [1.5 * n for n in range(40)],
        "year": [1990 + n % 7 for n in range(40)],
        "description": [f"A {('dry', 'rich')[n % 2]} thing for everybody, by the sea." for n in range(40)],
    }
    titles: dict[str, list[object]] = {"title": [f"Thing {n}" for n in range(10)]}
    source = root / "exports" / "sample" / "recformer"
    make(root, base, "shop", shop, source)
    make(root, base, "titles", titles, source)
    yield base / "exports"


def _in_full(value: object) -> str:
    """A table with all of its cells, which its own text leaves out."""
    return value.to_csv() if isinstance(value, pd.DataFrame) else str(value)


def said(test: AppTest) -> list[str]:
    """All that a visitor reads but what About says of terms."""
    kinds = (
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
    )
    elements = [element for kind in kinds for element in getattr(test, kind)]
    texts = [f"{getattr(element, 'label', '')} {_in_full(element.value)}" for element in elements]
    return [text for text in texts if ":small[:gray[" not in text and "\n- " not in text]


@pytest.mark.parametrize(
    ("dataset", "page"),
    [*(("shop", page) for page in PAGES), *(("titles", page) for page in ("compare", "map", "about"))],
)
def test_every_page_opens_and_assumes_nobody(
    alone: Path, open_app: Callable[..., AppTest], dataset: str, page: str
) -> None:
    more = {"section": "text"} if page == "about" else {}
    test = open_app(alone, page="" if page == "compare" else page, ds=dataset, **more)
    assert not test.error
    warnings = [one.value for one in test.warning]
    if page == "about":  # the text encoder of these tests knows next to nothing, and Recformer enough
        assert warnings.pop() == model_card.FEW_KNOWN
    assert not warnings
    texts = said(test)
    assert any("a catalogue without a log" in text for text in texts)
    wrong = [text for text in texts if any(word in text for word in WRONG)]
    assert not wrong


def test_what_each_page_says_instead(alone: Path, open_app: Callable[..., AppTest]) -> None:
    test = open_app(alone, ds="shop")
    assert "this history is nobody's" in " ".join(one.value for one in test.caption)
    test.switch_page("screens/metrics/page.py").run()
    assert "no model can be judged" in test.info[0].value
    test = open_app(alone, page="attention", ds="shop", section="average")
    assert any("this is a catalogue without a log" in one.value for one in test.info)
    test = open_app(alone, page="about", ds="shop", section="text")
    for name in ("recformer", "text-neighbours"):
        test.session_state[f"about_card_{name}"] = True
    test.run()
    cards = " ".join(str(cell) for one in test.table for cell in one.value.to_numpy().ravel())
    assert "not on this dataset" in cards


def test_an_item_s_card(alone: Path, open_app: Callable[..., AppTest]) -> None:
    test = open_app(alone, page="catalogue", ds="shop", item="p4")
    (panel,) = panels(test)
    assert panel["attributes"] and not panel["standing"]  # nobody took anything, so nothing is popular


def test_models_answer(alone: Path, open_app: Callable[..., AppTest]) -> None:
    from engine.runtime import Zoo

    for name in ("shop", "titles"):
        zoo = Zoo.open(alone / name, warm=True)
        assert not zoo.refused and not zoo.has_log
        assert list(zoo.bundles) == ["recformer", "text-neighbours"] and list(zoo.tokenizations) == ["residual-kmeans"]
        for bundle in zoo.bundles.values():
            assert len(bundle.recommend_one([0, 3], 5).items) == 5
            assert np.isfinite(bundle.score_new([0], [{"title": "A red thing"}])).all() or bundle.name != "recformer"
