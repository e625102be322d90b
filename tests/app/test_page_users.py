"""Users: ranks aligned with users, who is listed in which order, similar users, and the page."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from app import zoo
from app.analysis import users
from app.analysis.users import UserFilter
from app.components import widgets
from app.figures import metrics as figures
from app.styles import Style
from engine.runtime import Zoo, judge
from tests.app.conftest import alone, run_without_fault
from tests.runtime.bundles import describe, make_zoo, rewrite, seal

HISTORIES = [[1, 2, 3, 4], [2, 3, 4, 5, 2], [9], [1, 30]]
BETA = [9.0, 1.0, 30.0, 2.0]
"""Ranks by user; alpha's are 1, 2.5, 7 and 40."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = make_zoo(tmp_path_factory.mktemp("exports"))
    rewrite(path / "users.parquet", history=HISTORIES, target=[5, 1, 2, 3])
    rewrite(path / "beta" / "ranks.parquet", rank=BETA)
    return path


@pytest.fixture
def toys(shown: Path) -> Zoo:
    return zoo.open_zoo(shown.name)


def test_a_user_has_the_best_rank_of_several_held_out_items_and_none_beyond_a_beam() -> None:
    ranks = judge.Ranks(
        np.array([4, 4, 7, 8], np.int32), np.arange(4, dtype=np.int32), np.ones(4, np.int32),
        np.array([9.0, 3.0, 21.0, 1.0]), width=20,
    )  # fmt: skip
    by_user = users._by_user(ranks, np.array([7, 5, 4], np.int32))
    assert by_user[0] == np.inf and np.isnan(by_user[1]) and by_user[2] == 3.0


@pytest.mark.parametrize(
    ("selection", "rows"),
    [
        (UserFilter(), [0, 1, 2, 3]),
        (UserFilter(sort="rank.beta"), [1, 3, 0, 2]),
        (UserFilter(sort="difference", pair=("alpha", "beta"), falling=True), [3, 0, 2, 1]),  # 20, 9, 4.3 and 2.5 times
        (UserFilter(hits="first", pair=("alpha", "beta"), k=5), [0]),
        (UserFilter(hits="second", pair=("alpha", "beta"), k=5), [3]),
        (UserFilter(hits="both", pair=("alpha", "beta"), k=5), [1]),
        (UserFilter(least=2, most=4), [0, 3]),
        (UserFilter(text="U2"), [2]),
        (UserFilter(text="3", sort="rank.alpha"), [3]),
        (UserFilter(text="nobody"), []),
    ],
)
def test_who_is_listed(toys: Zoo, selection: UserFilter, rows: list[int]) -> None:
    assert users.rows(toys, selection).tolist() == rows


def test_users_that_are_exported_anew_are_those_who_are_listed(changed: Path) -> None:
    """With a tokenizer, say: that leaves all bundles as they are."""
    before, people = users.table(Zoo.open(changed)).length, pq.read_table(changed / "users.parquet")
    pq.write_table(people.slice(1), changed / "users.parquet")
    assert users.table(Zoo.open(changed)).length.tolist() == before[1:].tolist()


def test_who_is_meant_comes_first(changed: Path) -> None:
    rewrite(changed / "users.parquet", user_id=["u12", "u21", "u3", "u1"])
    assert users.rows(zoo.open_zoo("toys"), UserFilter(text="1")).tolist() == [3, 0, 1]


def test_whose_rank_is_unknown_beyond_a_beam_is_no_miss() -> None:
    ranks = np.array([[1.0, 1.0, 90.0], [np.inf, 3.0, np.inf]])
    table = users.UserTable(("exact", "beam"), ranks, (None, 50), np.ones(3, np.int64))
    told = {k: {name: rows.tolist() for name, rows in users.hits(table, table.models, k).items()} for k in (50, 100)}
    assert told[50]["first"] == [True, False, False] and told[50]["neither"] == [False, False, True]
    assert told[100]["both"] == [False, True, False]
    assert not any(told[100]["first"]) and not any(told[100]["neither"])


def test_ranks_that_are_known_are_compared_as_they_are_and_one_beyond_a_beam_as_its_next_place() -> None:
    ranks = np.array([[49.0, np.inf, np.inf, 2.0, np.nan], [2000.0, 2.0, 900.0, 5.0, 3.0]])
    table = users.UserTable(("beam", "exact"), ranks, (50, None), np.ones(5, np.int64))
    expected = [2000 / 49, 2 / 51, 1, 5 / 2, np.nan]
    assert 2 ** users.difference(table, table.models) == pytest.approx(expected, nan_ok=True)


def test_similar_users_share_items_and_repeats_count_once(toys: Zoo) -> None:
    similar = users.similar(toys, 0)
    assert similar.rows.tolist() == [1, 3]
    assert similar.shared.tolist() == [3, 1]
    assert similar.similarity.tolist() == pytest.approx([3 / 5, 1 / 5])
    assert similar.have_target == 1  # item 5, which user 1 has
    assert not len(users.similar(toys, 2).rows)


def test_models_of_one_title_have_marks_of_their_own() -> None:
    look, at = Style("#0072b2", "circle", "●", "solid"), np.array([1, 10, 100])
    curves = [figures.Curve("SASRec", look, at, np.array([0.1, 0.5, 1.0]), mark) for mark in (3.0, 40.0, None)]
    drawn = figures.distribution(curves, 10)
    assert [trace.x[0] for trace in drawn.data if trace.mode == "markers"] == [3.0, 40.0]


def test_a_curve_is_the_share_of_users_up_to_a_rank() -> None:
    at, shares = users.curve(np.array([1.0, 3.0, np.inf, np.nan]), 4, 100)
    assert dict(zip(at.tolist(), shares.tolist(), strict=True)) == pytest.approx(
        {1: 1 / 3, 2: 1 / 3, 3: 2 / 3, 4: 2 / 3}
    )


# --- the page

Drawn = tuple[AppTest, list[dict[str, Any]]]
"""The page, and what its table was given in each run."""
Draw = Callable[..., Drawn]


@pytest.fixture
def draw(changed: Path, monkeypatch: pytest.MonkeyPatch) -> Draw:
    tables: list[dict[str, Any]] = []

    def remember(columns: object, rows: object, **more: object) -> None:
        tables.append({"columns": columns, "rows": rows, **more})

    monkeypatch.setattr(widgets, "rank_table", remember)

    def drawn(change: Callable[[Path], object] = lambda path: None, **address: str) -> Drawn:
        change(changed)
        return run_without_fault(alone("users", **address)), tables

    return drawn


def test_the_page_shows_what_the_address_says(draw: Draw) -> None:
    page, tables = draw(first="alpha", second="beta", sort="difference", order="down", hits="neither", k="5")
    assert [row["id"] for row in tables[-1]["rows"]] == ["u2"] and tables[-1]["chosen"] == "u2"
    assert any("Share of the listed user whose" in caption.value for caption in page.caption)
    page.segmented_control(key="users_hits_toys").set_value("all").run()
    assert [row["id"] for row in tables[-1]["rows"]] == ["u3", "u0", "u2", "u1"]
    assert any("Share of all 4 users whose" in caption.value for caption in page.caption)
    assert [cell["text"] for cell in tables[-1]["rows"][0]["cells"]][3:5] == ["40", "2"]
    assert "hits" not in page.query_params and page.query_params["sort"] == "difference"
    page.query_params["user"] = "u0"
    run_without_fault(page).button(key="users_like_1").click().run()
    assert tables[-1]["chosen"] == "u1" == page.query_params["user"]


def test_the_first_user_of_a_page_is_shown_beside_it(draw: Draw, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("app.screens.users", "app.screens.users.listing"):
        monkeypatch.setattr(f"{module}.PER_PAGE", 1)
    page, tables = draw()
    page.query_params["page"] = "3"
    run_without_fault(page)
    assert [row["id"] for row in tables[-1]["rows"]] == ["u2"] and tables[-1]["chosen"] == "u2"
    assert any(caption.value.startswith("None of the other users listed") for caption in page.caption)


def test_clicks_in_the_table(draw: Draw) -> None:
    page, _ = draw()
    parameters: dict[str, str] = {}
    for click, changes in (
        ({"do": "sort", "by": "rank.nobody"}, {}),
        ({"do": "choose", "id": "nobody"}, {}),
        ({"do": "open", "id": "nobody"}, {}),
        ({"do": "open", "id": 3}, {}),
        ({"do": "sort", "by": "user"}, {"sort": "user", "order": "down"}),  # it was sorted by that
        ({"do": "sort", "by": "length"}, {"sort": "length", "order": "down"}),
        ({"do": "sort", "by": "rank.beta"}, {"sort": "rank.beta", "order": "up"}),
        ({"do": "choose", "id": "u2"}, {"user": "u2"}),
    ):
        page.session_state["clicked"] = ("app.screens.users.listing", click)
        parameters |= changes
        assert run_without_fault(page).session_state["seqscope_state"].own == parameters


def test_users_without_a_known_rank_are_in_no_group_and_counted(draw: Draw) -> None:
    def beam(path: Path) -> None:
        manifest = json.loads((path / "alpha" / "manifest.json").read_text("utf-8"))
        seal(path / "alpha", metrics={"full": manifest["metrics"]["full"] | {"outside@5": 0.5}})

    page, _ = draw(beam, first="alpha", second="beta", k="10")
    assert any(caption.value.startswith("2 users") for caption in page.caption)
    page.query_params["k"] = "5"
    assert not any("groups" in caption.value for caption in run_without_fault(page).caption)


def test_users_that_an_export_left_out_are_counted(draw: Draw) -> None:
    def more(path: Path) -> None:
        describe(path, counts=Zoo.open(path).info.counts | {"users": 9, "test": 7})

    page, _ = draw(more)
    assert any(
        "4 of 7 simulated users with a held-out item that no model saw, drawn at random" in m.value
        for m in page.markdown
    )
    assert not any("all 4 users" in caption.value for caption in page.caption)


def _not_evaluated(path: Path) -> None:
    for file in path.glob("*/ranks.parquet"):
        file.unlink()
        seal(file.parent)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda path: (path / "users.parquet").unlink(), "without its users"),
        (_not_evaluated, "4 simulated users"),
    ],
    ids=["no users", "no model evaluated"],
)
def test_less_than_all_is_shown(draw: Draw, change: Callable[[Path], object], words: str) -> None:
    page, _ = draw(change)
    assert any(words in element.value for element in [*page.info, *page.markdown])
