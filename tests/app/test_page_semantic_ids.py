"""Semantic IDs: the page with two tokenizers, with one, with none, with damaged ones, and with hostile titles."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app import zoo
from app.analysis import prefix_tree
from app.analysis import semantic_ids as codes_of
from app.components import item_picker
from app.figures import item_panel
from app.screens import semantic_ids
from app.screens.semantic_ids import prefixes
from app.session import state
from tests.app.conftest import HOSTILE, at_page, plain, rename, run_without_fault, state_of
from tests.runtime.bundles import TOYS, describe, make_zoo
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


pytestmark = pytest.mark.usefixtures("shown")


def opened(root: Path, **address: str) -> AppTest:
    return run_without_fault(at_page(root, "semantic_ids", **address))


def test_two_tokenizers_side_by_side_and_no_section_but_the_one_that_is_open(root: Path) -> None:
    app = opened(root)
    assert not app.warning and app.selectbox(key="semantic_left_toys").value == "rqvae"
    assert app.selectbox(key="semantic_right_toys").value == "letter"
    levels = app.dataframe[0].value
    assert levels["Level"].tolist() == [1, 1, 2, 2] and "<script>" not in plain(app)
    assert (levels["Shared prefix by chance"] <= 100).all() and levels["Utilisation"].gt(0).all()
    assert app.metric[0].help and not app.get("plotly_chart")
    for section, figures in (("codebooks", 5), ("collisions", 0), ("generated", 0)):
        app.query_params["section"] = section
        run_without_fault(app)
        assert not app.warning and len(app.get("plotly_chart")) == figures
        assert [tab.label for tab in app.tabs if len(tab.children)] == [semantic_ids.SECTIONS[section]]
        groups = [table.value for table in app.dataframe if "Titles" in table.value.columns]
        assert len(groups) == (2 if section == "collisions" else 0), section
        assert all(group["Items"].is_monotonic_decreasing for group in groups)  # the largest first


def test_codes_of_which_some_are_dead_are_not_all_used(root: Path, changed: Path) -> None:
    sizes = (*[40] * 5, 3)
    write_tokenization(changed, "full", np.arange(40, dtype=np.int32)[:, None] % (*[40] * 5, 2), own=sizes, order=0)
    app = opened(root, left="full", right="none")
    assert app.metric[0].value == "99.5%" and "Dead codes at level 6" in plain(app)


def test_tokenizers_of_other_depth_and_size_are_compared_level_by_level(root: Path, changed: Path) -> None:
    sizes = (3, 5, 7, 40, 2, 2, 2)
    write_tokenization(changed, "deep", np.arange(40, dtype=np.int32)[:, None] % sizes, own=sizes, order=4)
    app = opened(root, left="words", right="deep")
    levels = app.dataframe[0].value
    assert levels["Level"].tolist() == [1, 1, 2, 2, 3, 4, 5, 6, 7]
    assert levels["Codes"].tolist() == [3, 3, 4, *sizes[1:]]
    assert levels["Shared prefix by chance"].iloc[-1] < levels["Shared prefix by chance"].iloc[0]
    app.query_params.update(section="codebooks", level="7")
    level = run_without_fault(app).selectbox(key="semantic_level_7")  # of many, a list
    assert level.value == "7"
    run_without_fault(level.set_value("4"))
    assert state_of(app).own["level"] == "4"


def test_choices_are_in_the_address(root: Path) -> None:
    app = opened(root, left="letter", right="words", level="2", item="toy-9", of="words", prefix="1", colour="genres")
    assert not app.warning and app.selectbox(key="semantic_left_toys").value == "letter"
    table = app.dataframe[-1].value
    assert sorted(table["Item id"]) == sorted(f"toy-{n}" for n in range(40) if n % 3 == 1)
    run_without_fault(app.selectbox(key="semantic_right_toys").set_value(semantic_ids.NOBODY))
    assert state_of(app).own["right"] == "none"
    assert "prefix" not in state_of(app).own  # another pair of tokenizers has other codes


def test_an_item_its_path_and_its_siblings(root: Path) -> None:
    app = opened(root, item="toy-9", section="item")
    codes = toy_codes()
    chips = [button for button in app.button if (button.key or "").startswith("semantic_chip_rqvae_")]
    assert [chip.label for chip in chips] == [str(code) for code in codes[9, :2]]
    first, both = codes[:, 0] == codes[9, 0], (codes[:, :2] == codes[9, :2]).all(1)
    assert f"{int((first & ~both).sum())} more items with the first code" in plain(app)
    sibling = next(button for button in app.button if (button.key or "").startswith("semantic_sibling_rqvae_1_"))
    other = int((sibling.key or "").rsplit("_", 1)[1])
    assert codes[other, 0] == codes[9, 0] and codes[other, 1] != codes[9, 1]
    app.button(key="semantic_item_add").click().run()
    assert app.button(key="semantic_item_add").disabled and state_of(app).history.count("toy-9") == 1
    run_without_fault(app.button(key=sibling.key).click())
    assert state_of(app).item == f"toy-{other}"
    run_without_fault(app.button(key="semantic_chip_rqvae_1").click())
    assert (state_of(app).own["prefix"], state_of(app).own["section"]) == (str(codes[other, 0]), "tree")


def test_the_item_panel_has_the_whole_semantic_id() -> None:
    models = zoo.open_zoo("toys")
    rows = {row["name"]: row for row in item_panel.codes(models, 9)}
    for name, tokenization in models.tokenizations.items():
        shown = [code["text"] for code in rows[name]["codes"]] + [rows[name]["rest"]] * bool(rows[name]["rest"])
        whole = codes_of.path(tokenization.identifiers.codes, 9)
        assert " · ".join(shown) == codes_of.spelled(whole) or len(whole) == tokenization.learned.shape[1]
    assert any(row["rest"] for row in rows.values())


def test_codes_are_chosen_level_by_level_and_items_that_are_in_the_history_are_not_added_again(root: Path) -> None:
    codes = toy_codes()
    alike = np.flatnonzero(codes[:, 0] == 2).tolist()
    app = opened(root, section="tree", h=f"toy-{alike[1]}")
    assert app.button(key="semantic_add").disabled and app.button(key="semantic_map").disabled
    app.selectbox(key="semantic_next_rqvae_").set_value(2).run()
    second = int(codes[alike[0], 1])
    run_without_fault(app.selectbox(key="semantic_next_rqvae_2").set_value(second))
    assert len(app.get("plotly_chart")) == 1  # the branch alone
    assert len(app.dataframe[-1].value) == ((codes[:, 0] == 2) & (codes[:, 1] == second)).sum()
    run_without_fault(app.button(key="semantic_crumb_1").click())
    assert state_of(app).own["prefix"] == "2"
    button = app.button(key="semantic_add")
    assert button.label == f"Add the other {len(alike) - 1} to the history" and button.help == "1 item is in it already"
    run_without_fault(button.click())
    assert sorted(state_of(app).history) == sorted(f"toy-{item}" for item in alike)
    assert app.button(key="semantic_add").disabled


def test_without_tokenizers_the_page_is_not_in_the_menu_and_says_why(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_zoo(tmp_path / "plain", TOYS[:1])
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(tmp_path / "plain"))
    app = opened(root)
    assert "no semantic IDs yet" in app.info[0].value
    assert "seqscope tokenize rqvae" in app.code[0].value
    rename(path, *[[f"toy-{item}" for item in range(40)]] * 2)
    describe(path, attributes=[])
    assert "seqscope tokenize p5-cid" in opened(root).code[0].value  # rqvae reads words, and there are none
    monkeypatch.setattr(zoo, "is_own", lambda name: True)  # who uploaded it has no command line
    app = opened(root)
    assert "Your data" in app.info[0].value and not app.code


def test_damaged_ones_are_told_and_the_others_go_on_up_to_one_alone(root: Path, changed: Path) -> None:
    (changed / "identifiers" / "letter" / "about.json").write_text("{}")
    app = opened(root)
    assert "Refused: identifiers/letter" in plain(app)
    assert app.selectbox(key="semantic_right_toys").value == "words"
    (changed / "identifiers" / "words" / "about.json").write_text("{}")
    assert run_without_fault(app).selectbox(key="semantic_right_toys").disabled
    assert semantic_ids.tokenizers(zoo.open_zoo("toys"), {}) == ("rqvae", None)


def test_what_a_generator_writes(root: Path, changed: Path) -> None:
    write_generator(changed, ToyGenerator())
    app = opened(root, section="generated")
    assert "Total variation distance" in plain(app)
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
    item_picker.select_row("items", ["a", "b"])
    assert chosen == selected
