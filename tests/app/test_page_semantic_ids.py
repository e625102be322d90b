"""Semantic IDs: the page with two tokenizers, with one, with none, with damaged ones, and with hostile titles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app import zoo
from app.components import item_picker
from app.screens import PAGES, semantic_ids
from app.session import state
from tests.app.conftest import HOSTILE, at_page, rename
from tests.app.test_page_catalogue import failed
from tests.runtime.bundles import TOYS, make_zoo
from tests.runtime.generators import ToyGenerator, write_generator
from tests.runtime.tokenizations import toy_codes, write_tokenization


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset with hostile titles and three tokenizers, one of them without vectors."""
    path = make_zoo(tmp_path / "exports", TOYS[:2])
    rename(path, HOSTILE, [f"toy-{i}" for i in range(len(HOSTILE))])
    write_tokenization(path, "rqvae", order=1, title="<b>RQ</b> $x$")
    write_tokenization(path, "letter", seed=1, order=2)
    short = np.array([[n % 3, n % 4 if n % 5 else -1] for n in range(40)], np.int32)
    write_tokenization(path, "words", short, own=(3, 4), vectors=False, order=3, policy="keep")
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(path.parent))
    return path


def opened(root: Path, **address: str) -> AppTest:
    return at_page(root, "semantic_ids", **address).run()


def words(app: AppTest) -> str:
    return " ".join([one.value for one in [*app.caption, *app.markdown, *app.info, *app.success]]).replace("\\", "")


def test_two_tokenizers_side_by_side(root: Path, path: Path) -> None:
    app = opened(root)
    assert not failed(app) and not app.warning
    assert app.selectbox(key="semantic_left_toys").value == "rqvae"
    assert app.selectbox(key="semantic_right_toys").value == "letter"
    assert len(app.get("plotly_chart")) == 8  # use, inequality, popularity, two planes, two trees, purity
    assert [one.value for one in app.subheader] == [
        "An item's codes",
        "How the codes are used",
        "Popularity by code, level 1",
        "Where the codes lie, level 1",
        "The tree of codes",
        "Do prefixes mean something?",
        "Items with the same codes",
        "What models write",
        "Items by their codes",
    ]
    assert "<script>" not in app.markdown[1].value
    assert "None of this dataset's models writes identifiers" in words(app)
    groups = [table.value for table in app.dataframe if "Titles" in table.value.columns]
    assert len(groups) == 2 and groups[0]["Items"].is_monotonic_decreasing


def test_choices_are_in_the_address(root: Path, path: Path) -> None:
    app = opened(root, left="letter", right="words", level="2", item="toy-9", of="words", prefix="1", colour="genres")
    assert not failed(app) and not app.warning
    assert app.selectbox(key="semantic_left_toys").value == "letter"
    assert "Its codes have no vectors" in words(app) and "they are tied" in words(app)
    table = app.dataframe[-1].value
    assert sorted(table["Item id"]) == sorted(f"toy-{n}" for n in range(40) if n % 3 == 1)
    app.selectbox(key="semantic_right_toys").set_value(semantic_ids.NOBODY).run()
    assert not failed(app) and state_of(app).own["right"] == "none"
    assert "prefix" not in state_of(app).own  # another pair of tokenizers has other codes


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ({"left": "nobody"}, "a tokenizer that this dataset does not have"),
        ({"level": "9"}, "possible is 1 to 2"),
        ({"prefix": "99"}, "does not have"),
        ({"prefix": "1-x"}, "does not have"),
        ({"item": "nothing"}, "an item that this dataset does not have"),
        ({"colour": "nothing"}, "which this catalogue does not have"),
    ],
)
def test_links_to_nothing_are_told(path: Path, address: dict[str, str], says: str) -> None:
    now = state.parse({"ds": "toys", **address}, ["toys"], zoo.open_zoo, PAGES["semantic_ids"])
    assert len(now.problems) == 1 and says in now.problems[0] and not set(address) & set(now.own)


def test_an_item_its_path_and_its_siblings(root: Path, path: Path) -> None:
    app = opened(root, item="toy-9")
    codes = toy_codes()
    chips = [button for button in app.button if (button.key or "").startswith("semantic_chip_rqvae_")]
    assert [chip.label for chip in chips] == [str(code) for code in codes[9, :2]]
    first, both = codes[:, 0] == codes[9, 0], (codes[:, :2] == codes[9, :2]).all(1)
    assert f"{int((first & ~both).sum())} more items with the first code" in words(app)
    sibling = next(button for button in app.button if (button.key or "").startswith("semantic_sibling_rqvae_1_"))
    other = int((sibling.key or "").rsplit("_", 1)[1])
    assert codes[other, 0] == codes[9, 0] and codes[other, 1] != codes[9, 1]
    app.button(key="semantic_chip_rqvae_1").click().run()
    assert not failed(app) and state_of(app).own["prefix"] == str(codes[9, 0])
    before = state_of(app).history
    app.button(key="semantic_item_add").click().run()
    assert state_of(app).history == (*before, "toy-9")
    app.button(key=sibling.key).click().run()
    assert not failed(app) and state_of(app).item == f"toy-{other}"


def test_codes_are_chosen_level_by_level_and_sent_on(root: Path, path: Path) -> None:
    codes = toy_codes()
    app = opened(root)
    assert app.button(key="semantic_add").disabled and app.button(key="semantic_map").disabled
    app.selectbox(key="semantic_prefix_rqvae_0").set_value(2).run()
    app.selectbox(key="semantic_prefix_rqvae_1").set_value(int(codes[codes[:, 0] == 2][0, 1])).run()
    assert not failed(app)
    wanted = np.flatnonzero((codes[:, :2] == codes[codes[:, 0] == 2][0, :2]).all(1))
    assert len(app.dataframe[-1].value) == len(wanted)
    before = state_of(app).history
    app.button(key="semantic_add").click().run()
    assert set(state_of(app).history[len(before) :]) == {f"toy-{item}" for item in wanted}
    app.button(key="semantic_map").click().run()
    prefix = "-".join(map(str, codes[codes[:, 0] == 2][0, :2]))
    assert not failed(app) and app.query_params["area"] == f"prefix.rqvae~{prefix}"
    assert app.title[0].value == "Map" and len(app.dataframe[0].value) == len(wanted)


def test_what_is_in_the_history_is_not_added_again(root: Path, path: Path) -> None:
    codes = toy_codes()
    alike = np.flatnonzero(codes[:, 0] == 2).tolist()
    known = f"toy-{alike[1]}"
    app = opened(root, h=known, prefix="2")
    button = app.button(key="semantic_add")
    assert button.label == f"Add the other {len(alike) - 1} to the history" and button.help == "1 item is in it already"
    button.click().run()
    assert not failed(app)
    assert sorted(state_of(app).history) == sorted(f"toy-{item}" for item in alike)
    assert app.button(key="semantic_add").disabled
    assert app.button(key="semantic_add").label == "All in the history already"


@pytest.mark.parametrize(
    ("added", "new", "there", "says"),
    [
        (1, 1, 0, "Add it to the history"),
        (12, 12, 0, "Add all 12 to the history"),
        (11, 11, 1, "Add the other 11 to the history"),
        (20, 30, 0, "Add the most taken 20 to the history"),
        (20, 30, 2, "Add the most taken 20 of the others to the history"),
        (0, 0, 3, "All in the history already"),
    ],
)
def test_a_button_says_how_many_it_adds(added: int, new: int, there: int, says: str) -> None:
    assert item_picker.add_label(added, new, there, "most taken") == says


def state_of(app: AppTest) -> state.State:
    found: state.State = app.session_state["seqscope_state"]
    return found


def test_without_tokenizers_the_page_is_not_in_the_menu_and_says_why(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_zoo(tmp_path / "plain", TOYS[:1])
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(tmp_path / "plain"))
    app = opened(root)
    assert not failed(app) and "no tokenizer's codes yet" in app.info[0].value
    assert "seqscope tokenize" in app.code[0].value


def test_a_damaged_one_is_told_and_the_others_go_on(root: Path, path: Path) -> None:
    (path / "identifiers" / "letter" / "about.json").write_text("{}")
    app = opened(root)
    assert not failed(app) and "Refused: identifiers/letter" in words(app)
    assert app.selectbox(key="semantic_right_toys").value == "words"


def test_one_alone(root: Path, path: Path) -> None:
    for name in ("letter", "words"):
        (path / "identifiers" / name / "about.json").write_text("{}")
    app = opened(root)
    assert not failed(app) and app.selectbox(key="semantic_right_toys").disabled
    assert semantic_ids.tokenizers(zoo.open_zoo("toys"), {}) == ("rqvae", None)


def test_what_a_generator_writes(root: Path, path: Path) -> None:
    write_generator(path, ToyGenerator())
    app = opened(root)
    assert not failed(app)
    assert "would have to move to be alike" in words(app)
    assert len(app.get("plotly_chart")) == 9
