"""Semantic IDs: the page with two tokenizers, with one, with none, with damaged ones, and with hostile titles."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app import zoo
from app.analysis import prefix_tree
from app.components import item_picker
from app.screens import semantic_ids
from app.screens.semantic_ids import prefixes
from app.session import state
from tests.app.conftest import HOSTILE, at_page, rename
from tests.app.test_page_catalogue import failed
from tests.runtime.bundles import TOYS, make_zoo
from tests.runtime.generators import ToyGenerator, write_generator
from tests.runtime.tokenizations import toy_codes, write_tokenization


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with hostile titles and three tokenizers, one of them without vectors."""
    path = make_zoo(tmp_path_factory.mktemp("exports"), TOYS[:2])
    rename(path, HOSTILE, [f"toy-{i}" for i in range(len(HOSTILE))])
    write_tokenization(path, "rqvae", order=1, title="<b>RQ</b> $x$")
    write_tokenization(path, "letter", seed=1, order=2)
    short = np.array([[n % 3, n % 4 if n % 5 else -1] for n in range(40)], np.int32)
    write_tokenization(path, "words", short, own=(3, 4), vectors=False, order=3, policy="keep")
    return path


@pytest.fixture(autouse=True)
def _shown(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(made.parent))


@pytest.fixture
def path(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, to be changed."""
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(tmp_path))
    return shutil.copytree(made, tmp_path / made.name)


def opened(root: Path, **address: str) -> AppTest:
    return at_page(root, "semantic_ids", **address).run()


def words(app: AppTest) -> str:
    return " ".join([one.value for one in [*app.caption, *app.markdown, *app.info, *app.success]]).replace("\\", "")


def test_two_tokenizers_side_by_side(root: Path) -> None:
    app = opened(root)
    assert not failed(app) and not app.warning
    assert app.selectbox(key="semantic_left_toys").value == "rqvae"
    assert app.selectbox(key="semantic_right_toys").value == "letter"
    levels = app.dataframe[0].value
    assert levels["Level"].tolist() == [1, 1, 2, 2] and "<script>" not in words(app)
    assert (levels["Shared prefix by chance"] <= 100).all() and levels["Utilisation"].gt(0).all()
    assert app.metric[0].help and not app.get("plotly_chart")


@pytest.mark.parametrize(
    ("section", "figures"),
    [("codebooks", 5), ("tree", 3), ("collisions", 0), ("item", 0), ("generated", 0)],
)
def test_the_section_that_is_open_is_drawn_and_no_other(root: Path, section: str, figures: int) -> None:
    app = opened(root, section=section)
    assert not failed(app) and not app.warning
    assert len(app.get("plotly_chart")) == figures
    assert [tab.label for tab in app.tabs if len(tab.children)] == [semantic_ids.SECTIONS[section]]
    groups = [table.value for table in app.dataframe if "Titles" in table.value.columns]
    assert len(groups) == (2 if section == "collisions" else 0)
    assert all(group["Items"].is_monotonic_decreasing for group in groups)  # the largest first


def test_tokenizers_of_other_depth_and_size_are_compared_level_by_level(root: Path, path: Path) -> None:
    write_tokenization(path, "deep", np.arange(40, dtype=np.int32)[:, None] % [3, 5, 7, 40], own=(3, 5, 7, 40), order=4)
    levels = opened(root, left="words", right="deep").dataframe[0].value
    assert levels["Level"].tolist() == [1, 1, 2, 2, 3, 4] and levels["Codes"].tolist() == [3, 3, 4, 5, 7, 40]
    assert levels["Shared prefix by chance"].iloc[-1] < levels["Shared prefix by chance"].iloc[0]


def test_choices_are_in_the_address(root: Path) -> None:
    app = opened(root, left="letter", right="words", level="2", item="toy-9", of="words", prefix="1", colour="genres")
    assert not failed(app) and not app.warning
    assert app.selectbox(key="semantic_left_toys").value == "letter"
    table = app.dataframe[-1].value
    assert sorted(table["Item id"]) == sorted(f"toy-{n}" for n in range(40) if n % 3 == 1)
    app.selectbox(key="semantic_right_toys").set_value(semantic_ids.NOBODY).run()
    assert not failed(app) and state_of(app).own["right"] == "none"
    assert "prefix" not in state_of(app).own  # another pair of tokenizers has other codes


def test_an_item_its_path_and_its_siblings(root: Path) -> None:
    app = opened(root, item="toy-9", section="item")
    codes = toy_codes()
    chips = [button for button in app.button if (button.key or "").startswith("semantic_chip_rqvae_")]
    assert [chip.label for chip in chips] == [str(code) for code in codes[9, :2]]
    first, both = codes[:, 0] == codes[9, 0], (codes[:, :2] == codes[9, :2]).all(1)
    assert f"{int((first & ~both).sum())} more items with the first code" in words(app)
    sibling = next(button for button in app.button if (button.key or "").startswith("semantic_sibling_rqvae_1_"))
    other = int((sibling.key or "").rsplit("_", 1)[1])
    assert codes[other, 0] == codes[9, 0] and codes[other, 1] != codes[9, 1]
    app.button(key="semantic_chip_rqvae_1").click().run()
    assert (
        not failed(app) and state_of(app).own["prefix"] == str(codes[9, 0]) and state_of(app).own["section"] == "tree"
    )
    app.query_params["section"] = "item"
    app.run()
    before = state_of(app).history
    app.button(key="semantic_item_add").click().run()
    assert app.button(key="semantic_item_add").disabled  # once
    assert state_of(app).history == (*before, "toy-9")
    app.button(key=sibling.key).click().run()
    assert not failed(app) and state_of(app).item == f"toy-{other}"


def test_codes_are_chosen_level_by_level_and_sent_on(root: Path) -> None:
    codes = toy_codes()
    app = opened(root, section="tree")
    assert app.button(key="semantic_add").disabled and app.button(key="semantic_map").disabled
    app.selectbox(key="semantic_next_rqvae_").set_value(2).run()
    app.selectbox(key="semantic_next_rqvae_2").set_value(int(codes[codes[:, 0] == 2][0, 1])).run()
    assert not failed(app)
    assert len(app.get("plotly_chart")) == 1  # the branch alone
    wanted = np.flatnonzero((codes[:, :2] == codes[codes[:, 0] == 2][0, :2]).all(1))
    assert len(app.dataframe[-1].value) == len(wanted)
    app.button(key="semantic_crumb_1").click().run()
    assert not failed(app) and state_of(app).own["prefix"] == "2"
    app.selectbox(key="semantic_next_rqvae_2").set_value(int(codes[codes[:, 0] == 2][0, 1])).run()
    before = state_of(app).history
    app.button(key="semantic_add").click().run()
    assert set(state_of(app).history[len(before) :]) == {f"toy-{item}" for item in wanted}


def test_what_is_in_the_history_is_not_added_again(root: Path) -> None:
    codes = toy_codes()
    alike = np.flatnonzero(codes[:, 0] == 2).tolist()
    app = opened(root, h=f"toy-{alike[1]}", prefix="2")
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
        (0, 0, 1, "In the history"),
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


def test_damaged_ones_are_told_and_the_others_go_on_up_to_one_alone(root: Path, path: Path) -> None:
    (path / "identifiers" / "letter" / "about.json").write_text("{}")
    app = opened(root)
    assert not failed(app) and "Refused: identifiers/letter" in words(app)
    assert app.selectbox(key="semantic_right_toys").value == "words"
    (path / "identifiers" / "words" / "about.json").write_text("{}")
    app.run()
    assert not failed(app) and app.selectbox(key="semantic_right_toys").disabled
    assert semantic_ids.tokenizers(zoo.open_zoo("toys"), {}) == ("rqvae", None)


def test_what_a_generator_writes(root: Path, path: Path) -> None:
    write_generator(path, ToyGenerator())
    app = opened(root, section="generated")
    assert not failed(app)
    assert "Total variation distance" in words(app)
    assert len(app.get("plotly_chart")) == 1


class Clicked:
    """As Streamlit keeps what was clicked in a figure or a table."""

    def __init__(self, **selection: object) -> None:
        self.selection = SimpleNamespace(**selection)


@pytest.mark.parametrize(("point", "prefix"), [(1, "0"), (0, None), (-1, ""), (99, ""), ("1", ""), (None, "")])
def test_a_click_on_a_box_opens_its_branch(monkeypatch: pytest.MonkeyPatch, point: object, prefix: str | None) -> None:
    chosen: list[object] = []
    monkeypatch.setattr(prefixes, "choose_prefix", lambda name, codes: chosen.append("-".join(map(str, codes)) or None))
    monkeypatch.setattr(prefixes.st, "session_state", {"tree": Clicked(points=[{"point_index": point}])})
    prefixes._clicked("tree", "rqvae", prefix_tree.build(np.array([[0, 1], [1, 2], [0, 2]])))
    assert chosen == ([] if prefix == "" else [prefix])


@pytest.mark.parametrize(("rows", "selected"), [([1], ["b"]), ([], []), ([2], []), ([-1], []), (["0"], [])])
def test_a_click_on_a_row_selects_its_item(
    monkeypatch: pytest.MonkeyPatch, rows: list[object], selected: list[str]
) -> None:
    chosen: list[str | None] = []
    monkeypatch.setattr(state, "select", chosen.append)
    monkeypatch.setattr(prefixes.st, "session_state", {"items": Clicked(rows=rows)})
    item_picker.on_click("items", ["a", "b"])()
    assert chosen == selected
