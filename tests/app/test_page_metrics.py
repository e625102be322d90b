"""Metrics: what is computed from ranks, its words, and the page on bundles with and without evaluation."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from app import zoo
from app.analysis import evaluation, floor, metrics, verdict
from app.figures import metrics as figures
from app.screens import PAGES
from app.screens.metrics.choices import MetricsChoices
from app.session import state
from app.zoo import Style
from engine.cards import declarations
from engine.runtime import BundleError, Zoo, judge
from tests.runtime.bundles import TOYS, count_repeats, make_zoo, seal

Opened = Callable[..., AppTest]

LOOKS = {name: Style("#0072b2", "circle", "●", "solid") for name in "abcd"}
FAMILIES = {"a": "sasrec", "b": "tiger", "c": "popularity", "d": "markov"}
TITLES = {"a": "A", "b": "<script>B</script>", "c": "$C$", "d": "D"}


def standing(page: AppTest) -> pd.DataFrame:
    """The table of all models' metrics."""
    return next(table.value for table in page.table if "Model" in table.value)


def ranks(values: np.ndarray, users: np.ndarray | None = None) -> judge.Ranks:
    n = len(values)
    user = np.arange(n, dtype=np.int32) if users is None else users.astype(np.int32)
    return judge.Ranks(user, user % 5, np.full(n, 3, np.int32), np.asarray(values, float))


def table(protocols: dict[str, np.ndarray]) -> pa.Table:
    parts = [
        pa.table(
            {
                "user": pa.array(np.arange(len(values))[::-1].copy(), pa.int32()),
                "target": pa.array(np.arange(len(values))[::-1] % 5, pa.int32()),
                "history_length": pa.array(np.full(len(values), 3), pa.int32()),
                "protocol": [protocol] * len(values),
                "rank": values[::-1].astype(float),
            }
        )
        for protocol, values in protocols.items()
    ]
    return pa.concat_tables(parts)


def people(**means: float) -> dict[str, judge.Ranks]:
    """Models whose chance of rank 1 is as given, else rank 100."""
    rng = np.random.default_rng(1)
    draw = rng.random(600)
    return {name: ranks(np.where(draw < mean, 1.0, 100.0)) for name, mean in means.items()}


def test_protocols_start_with_full_ranking() -> None:
    found = metrics.protocols(
        {"a": table({"u100": np.ones(2), "full": np.ones(2)}), "b": table({"full+user": np.ones(2)}), "c": None}
    )
    assert found == ["full", "u100"]


def test_vectors_of_users_are_a_second_row_of_the_model() -> None:
    tables = {
        "a": table({"full": np.ones(3), "full+user": np.full(3, 2.0)}),
        "b": table({"full": np.ones(3)}),
        "c": None,
    }
    found = metrics.ranked(tables, {"a": {}, "b": {}, "c": {}}, "full")
    assert {row: one.rank[0] for row, one in found.items()} == {"a": 1.0, "a+user": 2.0, "b": 1.0}
    assert metrics.titled(TITLES, found)["a+user"] == "A, user vectors"


def test_a_beam_says_nothing_beyond_its_width() -> None:
    measured = {"a": {"full": {"outside@20": 0.5}}, "b": {}}
    tables = {"a": table({"full": np.array([1.0, 3, 21, 300])}), "b": table({"full": np.array([2.0, 4, 40, 50])})}
    found = metrics.ranked(tables, measured, "full")
    judged = metrics.standing(found, ["HR@20", "HR@50"]).set_index(["model", "metric"])
    assert judged.loc[("a", "HR@20"), "mean"] == 0.5 and judged.loc[("b", "HR@20"), "mark"] == "level"
    assert judged.loc[("a", "HR@50"), "note"] == "beam of 20" and np.isnan(judged.loc[("a", "HR@50"), "mean"])
    assert judged.loc[("b", "HR@50"), "mark"] == ""  # nobody to be better than
    assert metrics.against(found, "b", "HR@50").empty and metrics.against(found, "a", "HR@50").empty
    shown, why = metrics.exposures({"a": None, "b": None}, found, "full", 50, 9)
    assert shown["a"] is None and why["a"] == "beam of 20" and "no lists" in why["b"]
    assert set(
        evaluation.means_by_slice(found, evaluation.Slicing({"all": np.ones(4, bool)}, False), "HR@50")["model"]
    ) == {"b"}
    assert metrics.wins(found["a"], found["b"]) == (2, 0, 2)  # beyond the beam nobody's place is known
    assert metrics.disputed(found["a"], found["b"])["user"].tolist() == [0, 1]
    figures.dots(judged.loc[(slice(None), "HR@50"), :].reset_index(), "HR@50", TITLES, LOOKS, FAMILIES)


@pytest.mark.parametrize("model", ["attrec", "lightgcn", "ngcf"])
def test_a_row_with_users_vectors_looks_other_than_the_model_beside_it(tmp_path: Path, model: str) -> None:
    look = zoo.style(Zoo.open(make_zoo(tmp_path, TOYS[:1])), model)
    assert zoo.with_users(look).marker != look.marker and zoo.with_users(look).sign != look.sign


def test_ranks_are_of_one_protocol_in_the_order_of_people() -> None:
    source = table({"full": np.array([1.0, 2, 3]), "u100": np.array([9.0, 9, 9])})
    found = judge.ranks(source, "full")
    assert found is not None
    assert found.user.tolist() == [0, 1, 2] and found.rank.tolist() == [1, 2, 3]
    assert judge.ranks(source, "full+user") is None


def test_only_people_of_every_model_are_compared() -> None:
    shared, left_out = judge.common(
        {"a": ranks(np.ones(3), np.array([1, 2, 3])), "b": ranks(np.ones(3), np.array([2, 3, 9]))}
    )
    assert [one.user.tolist() for one in shared.values()] == [[2, 3], [2, 3]]
    assert left_out == 2
    assert judge.common({}) == ({}, 0)


def test_the_same_person_with_another_target_is_not_compared() -> None:
    other = judge.Ranks(np.array([1], np.int32), np.array([4], np.int32), np.array([1], np.int32), np.ones(1))
    shared, left_out = judge.common({"a": ranks(np.ones(1), np.array([1])), "b": other})
    assert len(shared["a"]) == 0 and left_out == 1


def test_who_lacks_several_held_out_items_is_one_person() -> None:
    user, target = np.array([1, 1, 1, 2], np.int32), np.array([4, 5, 6, 4], np.int32)
    whole = judge.Ranks(user, target, np.ones(4, np.int32), np.ones(4), protocol="held-out users")
    shared, left_out = judge.common({"a": whole, "b": whole.take(np.array([0, 3]))})
    assert shared["a"].target.tolist() == [4, 4] and left_out == 1


def test_standing_marks_the_best_and_what_chance_could_explain() -> None:
    found = metrics.standing(people(a=0.50, b=0.50, c=0.48, d=0.2), ["HR@10"]).set_index("model")
    assert found.loc["a", "mark"] == "best"
    assert found.loc["b", "mark"] == "level"  # the same ranks
    assert found.loc["d", "mark"] == ""
    assert found.loc["a", "mean"] == pytest.approx(judge.accuracy(people(a=0.5)["a"].rank)["HR@10"])
    assert (found["low"] <= found["mean"]).all() and (found["mean"] <= found["high"]).all()
    again = metrics.standing(people(a=0.50, b=0.50, c=0.48, d=0.2), ["HR@10"]).set_index("model")
    pd.testing.assert_frame_equal(found, again)


def test_one_model_alone_is_not_crowned() -> None:
    assert set(metrics.standing(people(a=0.5), ["HR@10"])["mark"]) == {""}


def test_models_below_the_floor_are_named() -> None:
    called = metrics.bold(TITLES)
    assert floor.below({"a": 0.5, "d": 0.2}, FAMILIES, called) == ""
    assert "**A** is below **D** (0.900)" in floor.below({"a": 0.1, "d": 0.9}, FAMILIES, called)
    means = {"a": 0.1, "b": 0.2, "d": 0.9, "c": 0.3}
    assert "**A** and **\\<script\\>B\\</script\\>** are both below **D**" in floor.below(means, FAMILIES, called)
    assert floor.first("abcd", FAMILIES) == ["c", "d", "a", "b"]
    assert "baselines markov" in floor.missing({"a": "sasrec", "c": "popularity"})


def test_what_needs_no_training_is_what_declares_so() -> None:
    counting = {name for name, model in declarations().models.items() if not model.learns}
    assert {"popularity", "markov", "text-neighbours"} <= counting
    assert all(floor.needs_training(name) == (name not in counting) for name in declarations().models)
    assert floor.needs_training("of another installation")


def test_grid_escapes_and_gives_reasons() -> None:
    found = metrics.standing(people(a=0.5, b=0.5), ["NDCG@10", "HR@10"])
    signs = dict.fromkeys(TITLES, "●")
    grid = metrics.grid(found, {"c": "not evaluated", "d": "not evaluated"}, TITLES, signs)
    assert list(grid.columns) == ["Model", "NDCG@10", "HR@10", "Note"]
    assert grid["NDCG@10"].iloc[0].startswith("**") and "≈" in grid["NDCG@10"].iloc[1]
    assert grid["NDCG@10"].iloc[2] == "n/a" and grid["Note"].iloc[2] == "not evaluated"
    assert "\\$C\\$" in grid["Model"].iloc[2]


def test_against_a_baseline_with_holm() -> None:
    found = metrics.against(people(a=0.5, b=0.5, c=0.1, d=0.9), "a", "HR@10").set_index("model")
    assert found["verdict"].to_dict() == {"b": "level", "c": "worse", "d": "better"}
    assert found["holm"].tolist() == judge.holm(found["p"].tolist())


def test_a_model_with_two_rows_counts_once_among_the_better() -> None:
    found = people(a=0.9, d=0.1)
    compared = metrics.against({"a": found["a"], "a+user": found["a"], "c": found["d"], "d": found["d"]}, "d", "HR@10")
    called = metrics.titled(TITLES, [*compared["model"], "d"])
    assert "1 of 2 other models is better than D" in metrics.better_words(compared, "d", called)
    compared = metrics.against({"a": found["d"], "a+user": found["a"], "c": found["a"]}, "a", "HR@10")
    words = metrics.better_words(compared, "a", called)
    assert "1 of 1 other model is" in words and words.endswith("A, user vectors is better than A.")


def test_beyond_accuracy_or_the_reason() -> None:
    source = pa.table({"protocol": ["full"] * 2, "k": [10, 10], "item": [0, 1], "count": [5, 5]})
    popularity = np.array([8, 8, 0, 0])
    shown = {
        "a": metrics.exposure(source, "full", 10, 4),
        "b": metrics.exposure(source, "u100", 10, 4),
        "c": metrics.exposure(None, "full", 10, 4),
    }
    found = metrics.beyond(shown, popularity, dict.fromkeys("bc", "no lists")).set_index("model")
    assert found.loc["a", ["coverage", "gini", "novelty"]].tolist() == pytest.approx([0.5, 0.5, 1.0])
    assert found.loc[["b", "c"], "note"].tolist() == ["no lists", "no lists"]
    assert found.loc["b", "coverage"] != found.loc["b", "coverage"]


def test_numbers_are_cut_into_groups_of_about_equal_size() -> None:
    found = evaluation.by_number(np.arange(100), 10, "event", "events")
    assert [int(mask.sum()) for mask in found.groups.values()] == [10] * 10
    assert next(iter(found.groups)) == "0 – 9 events"
    same = evaluation.by_number(np.array([1, 1, 1, 1, 7]), 3, "event", "events")
    assert {label: int(mask.sum()) for label, mask in same.groups.items()} == {"1 event": 4, "7 events": 1}
    assert evaluation.by_number(np.array([np.nan]), 3, "", "").groups == {}
    assert list(evaluation.by_year(np.array([1995, 1996, 2001, 2002]), 2).groups) == ["1995 – 1996", "2001 – 2002"]


def test_items_in_nobodys_training_are_a_group_of_their_own() -> None:
    found = evaluation.by_training(np.array([0, 3, 0, 9, 1]))
    assert {label: np.flatnonzero(mask).tolist() for label, mask in found.groups.items()} == {
        "in nobody's training": [0, 2],
        "in somebody's training": [1, 3, 4],
    }
    assert list(evaluation.by_training(np.array([1, 2])).groups) == ["in somebody's training"]


def test_values_of_lists_and_categories() -> None:
    lists = pa.chunked_array([pa.array([["x", "y"], ["x"], None, [], ["z", "z"]])])
    found = evaluation.by_value(lists, np.array([0, 1, 2, 3, 4, 0]))
    assert {label: int(mask.sum()) for label, mask in found.groups.items()} == {"x": 3, "y": 2, "z": 1}
    few = evaluation.by_value(lists, np.array([0, 1, 4, 0]), most=2)
    assert {label: int(mask.sum()) for label, mask in few.groups.items()} == {"x": 3, "any of 2 others": 3}
    flags = evaluation.by_attribute(pa.chunked_array([pa.array([True, False, None])]), np.array([0, 1, 1, 2]))
    assert {label: int(mask.sum()) for label, mask in flags.groups.items()} == {"False": 2, "True": 1}
    alike = evaluation.by_value(pa.chunked_array([pa.array(["a", "a\t"])]), np.array([0, 1]))
    assert list(alike.groups) == ["a", "a (2)"]
    assert (
        evaluation.by_attribute(pa.chunked_array([pa.array([None, None], pa.int32())]), np.array([0, 1])).groups == {}
    )


def test_slices_with_few_people_are_marked_and_drawn_pale() -> None:
    found = people(a=0.5, b=0.3)
    mask = np.zeros(600, bool)
    mask[:29] = True
    frame = evaluation.means_by_slice(found, evaluation.Slicing({"few": mask, "<b>many</b>": ~mask}, False), "HR@10")
    assert frame.groupby("slice")["few"].first().to_dict() == {"few": True, "<b>many</b>": False}
    fig = figures.slices(frame, "HR@10", TITLES, LOOKS)
    assert [trace.opacity for trace in fig.data] == [1, 0.45, 1, 0.45]
    assert "<b>" not in fig.to_json() and "<script>" not in fig.to_json()


def test_disputed_people_come_first() -> None:
    first, second = ranks(np.array([1.0, 50, 100, 3])), ranks(np.array([64.0, 100, 2, 3]))
    found = metrics.disputed(first, second)
    assert found["user"].tolist() == [0, 2, 1]
    assert found["ratio"].tolist() == pytest.approx([64, 50, 2])
    assert metrics.wins(first, second) == (2, 1, 1)
    assert metrics.disputed(first, first).empty


def test_people_without_a_history_are_listed_but_cannot_be_opened(opened: Opened) -> None:
    page = opened(lambda path: (path / "users.parquet").unlink())
    assert not page.exception and not page.error
    assert "metrics_open" not in {button.key for button in page.button}


def test_the_button_takes_over_a_persons_history(opened: Opened) -> None:
    def differ(path: Path) -> None:
        source = pq.read_table(path / "beta" / "ranks.parquet")
        pq.write_table(source.set_column(4, "rank", pa.array([9.0, 1.0, 1.0, 2.0])), path / "beta" / "ranks.parquet")
        seal(path / "beta")

    page = opened(differ)
    assert not page.exception and not page.error
    people_ = page.selectbox(key="metrics_person_alpha_beta")
    assert people_.options[0] == "u3"  # from rank 40 to 2
    assert metrics.among(ranks(np.ones(3)), [2, 0, 9]).tolist() == [0, 2]


def test_curves_of_models_that_were_trained() -> None:
    curve = pa.table(
        {"step": [1, 2], "epoch": [1.0, 2.0], "seconds": [1.0, 2.0], "loss": [2.0, None], "valid_ndcg": [None, 0.1]}
    )
    found = metrics.curves({"a": curve, "b": None})
    assert found["model"].tolist() == ["a", "a"]
    assert found["ndcg"].isna().tolist() == [True, False]
    assert metrics.curves({}).empty
    figures.validation(found, "epoch", "epochs", TITLES, LOOKS)
    figures.losses(found, "epoch", "epochs", TITLES, LOOKS)


def test_spans() -> None:
    assert [metrics.span(x) for x in (0.0, 10.6, 120, 7200)] == ["0.0 s", "10.6 s", "2.0 min", "2.0 h"]


# --- the page


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    def make(change: Callable[[Path], None] = lambda path: None, **address: str) -> AppTest:
        path = make_zoo(tmp_path / "exports")
        change(path)
        monkeypatch.setenv("SEQSCOPE_EXPORTS", str(path.parent))
        page = AppTest.from_function(_script, default_timeout=60)
        for name, value in address.items():
            page.query_params[name] = value
        return page.run()

    return make


def _script() -> None:
    import runpy

    from app import zoo
    from app.screens import PAGES
    from app.session import state

    state.sync(list(zoo.datasets()), zoo.open_zoo, PAGES["metrics"])
    runpy.run_path("app/screens/metrics/page.py", run_name="metrics")


def words(page: AppTest) -> str:
    return " ".join(one.value for kind in (page.markdown, page.caption, page.info) for one in kind)


GOOD = {
    "protocol": "full", "metric": "HR", "at": "5", "baseline": "beta", "by": "length", "first": "beta", "second": "gamma",
    "person": "u1", "along": "seconds",
}  # fmt: skip


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Zoo:
    path = make_zoo(tmp_path / "exports")
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(path.parent))
    return zoo.open_zoo("toys")


def test_all_choices_are_read_and_written(toys: Zoo) -> None:
    now = state.parse({"ds": "toys", "h": "toy-1", **GOOD}, ["toys"], zoo.open_zoo, PAGES["metrics"])
    assert now.own == GOOD and not now.problems
    assert state.parse(state.params(now), ["toys"], zoo.open_zoo, PAGES["metrics"]) == now


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("protocol", "luck", "protocol “luck”, which no model here was evaluated under; there is full"),
        ("metric", "AUC", "metric “AUC”; possible is NDCG, HR or MRR"),
        ("at", "11", "cut-off “11”; possible is 1, 5, 10, 20 or 50"),
        ("at", "٥", "cut-off"),
        ("baseline", "nobody", "not evaluated under this protocol, or that is not here: “nobody”"),
        ("by", "attribute:smell", "groups people by “attribute:smell”"),
        ("first", "<b>", "that is not here: “<b>”"),
        ("second", "beta", "the model “beta” with itself"),
        ("person", "u99", "the person “u99”, whom this dataset does not have"),
        ("along", "miles", "possible is epoch, seconds or step"),
    ],
)
def test_a_bad_choice_gets_one_message_and_the_rest_is_kept(toys: Zoo, name: str, text: str, says: str) -> None:
    now = state.parse({"ds": "toys", **GOOD, name: text}, ["toys"], zoo.open_zoo, PAGES["metrics"])
    assert len(now.problems) == 1 and says in now.problems[0]
    assert now.own == {other: value for other, value in GOOD.items() if other != name}


def test_a_damaged_file_is_no_end_of_the_address(toys: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise BundleError("alpha", "ranks.parquet", "it is damaged")

    monkeypatch.setattr("app.screens.metrics.parameters.evaluation.people", broken)
    now = state.parse({"ds": "toys", **GOOD}, ["toys"], zoo.open_zoo, PAGES["metrics"])
    assert len(now.problems) == 3 and "ranks.parquet: it is damaged" in now.problems[0]
    assert now.own["by"] == "length" and "baseline" not in now.own


def test_the_page_shows_what_the_address_says(opened: Opened) -> None:
    def differ(path: Path) -> None:
        source = pq.read_table(path / "beta" / "ranks.parquet")
        pq.write_table(source.set_column(4, "rank", pa.array([9.0, 1.0, 1.0, 2.0])), path / "beta" / "ranks.parquet")
        seal(path / "beta")

    page = opened(differ, **GOOD)
    assert not page.exception and not page.error and not page.warning
    assert page.segmented_control(key="metrics_name").value == "HR"
    assert page.segmented_control(key="metrics_k").value == "5"
    assert page.selectbox(key=f"metrics_baseline_toys_{len(TOYS)}").value == "beta"
    assert page.selectbox(key="metrics_slice_toys").value == "length"
    assert page.selectbox(key=f"metrics_second_beta_{len(TOYS)}").value == "gamma"
    assert page.selectbox(key="metrics_person_beta_gamma").value == "u1"
    assert page.segmented_control(key="metrics_along").value == "seconds"
    page.segmented_control(key="metrics_name").set_value("MRR").run()
    page.selectbox(key=f"metrics_first_{len(TOYS)}").set_value("alpha").run()
    own = page.session_state["seqscope_state"].own
    assert own["metric"] == "MRR" and own["first"] == "alpha" and own["baseline"] == "beta"
    assert "second" not in own and "person" not in own  # they were of another pair
    assert page.query_params["metric"] == "MRR" and not page.exception and not page.error


def _one_cold(path: Path) -> None:
    """The item that the first person is asked for is in nobody's training; all others are."""
    target = pq.read_table(path / "alpha" / "ranks.parquet")["target"][0].as_py()
    items = pq.read_table(path / "items.parquet")
    popularity = pa.array([0 if item == target else 5 for item in items["item"].to_pylist()], pa.int64())
    where = items.column_names.index("popularity")
    pq.write_table(items.set_column(where, "popularity", popularity), path / "items.parquet")


def _all_warm(path: Path) -> None:
    items = pq.read_table(path / "items.parquet")
    where = items.column_names.index("popularity")
    warm = pa.array([5] * items.num_rows, pa.int64())
    pq.write_table(items.set_column(where, "popularity", warm), path / "items.parquet")


def test_cold_and_warm_items_are_judged_apart(opened: Opened) -> None:
    page = opened(_one_cold, by="cold")
    assert not page.exception and not page.error and not page.warning
    assert page.selectbox(key="metrics_slice_toys").value == "cold"
    assert "in nobody's training only those models" in words(page)
    models = zoo.open_zoo("toys")
    asked = evaluation.people(models, "full")[0]["alpha"]
    shown = evaluation.slices(models, "full", "cold", "HR@10")
    sizes = shown.drop_duplicates("slice").set_index("slice")["n"].to_dict()
    cold = int((models.popularity[asked.target] == 0).sum())
    assert sizes == {"in nobody's training": cold, "in somebody's training": len(asked) - cold} and cold
    assert (shown["low"] <= shown["mean"]).all() and (shown["mean"] <= shown["high"]).all()


def test_who_comes_back_to_an_item_is_judged_apart_where_repeats_count(opened: Opened) -> None:
    page = opened(lambda path: count_repeats(path) and None)
    assert not page.exception and not page.error
    models = zoo.open_zoo("toys")
    assert page.selectbox(key="metrics_slice_toys").value == evaluation.REPEATED  # what is shown first
    asked = next(iter(evaluation.people(models, "full")[0].values()))
    again = [row["user"] for row in models.users.to_pylist() if row["target"] in row["history"]]
    groups = evaluation.by_repeat(asked, models.users).groups
    assert asked.user[groups["repeats an item of the history"]].tolist() == again != []
    assert (groups["is new to the user"] == ~groups["repeats an item of the history"]).all()


def test_without_cold_items_there_is_nothing_to_set_apart(opened: Opened) -> None:
    page = opened(_all_warm, by="cold")
    assert not page.exception and not page.error
    assert "cold" not in evaluation.sliceable(zoo.open_zoo("toys"), "full")
    assert any("“cold”" in problem for problem in page.session_state["seqscope_state"].problems)
    assert page.selectbox(key="metrics_slice_toys").value != "cold"


def test_the_page(opened: Opened) -> None:
    page = opened()
    assert not page.exception and not page.error
    assert [heading.value for heading in page.subheader] == [
        "Which model is best",
        "Against a baseline",
        "Beyond accuracy",
        "For whom",
        "People on whom two models differ",
        "Training",
        "How it was made",
        "What each piece adds",
    ]
    text = words(page)
    assert "Full ranking" in text and "seed 0" in text and "4 people" in text and "simulated" in text
    opening = verdict.verdict(zoo.open_zoo("toys"), "full", "NDCG@10")
    assert opening is not None and opening.untrained is not None and opening.untrained.name == "popular"
    assert page.markdown[1].value == verdict.in_markdown(opening)


def test_the_verdict_takes_trainings_with_several_seeds_together_and_knows_what_follows_from_counts(
    tmp_path: Path,
) -> None:
    path = make_zoo(tmp_path / "exports")
    made_of_beta = json.loads((path / "beta" / "manifest.json").read_text("utf-8"))["training"]
    recipe = {"family": "toy", "training": {"seed": 1}}
    seal(path / "alpha", training={**made_of_beta, "recipe": recipe, "seed": 1})
    seal(path / "gamma", training={**made_of_beta, "recipe": recipe | {"training": {"seed": 2}}, "seed": 2})
    ranks = pq.read_table(path / "alpha" / "ranks.parquet").slice(0, 4)
    kinds = pa.array([1, 2, 0, 0], pa.int8())
    pq.write_table(ranks.select(["user", "target"]).append_column("memorised", kinds)[::-1], path / "held_out.parquet")
    models = Zoo.open(path)
    people = evaluation.people(models, "full")[0]
    trained = {one.name: len(one.ranks) for one in verdict.contenders(models, people)}
    assert trained["alpha"] == 2 and "gamma" not in trained and trained["popular"] == 1
    more = pq.read_table(path / "beta" / "ranks.parquet")
    seeds = pa.concat_tables(
        [more.append_column("seed", pa.array([seed] * len(more), pa.int64())) for seed in (1, 2, 3)]
    )
    pq.write_table(seeds.slice(0, 11), path / "beta" / "seeds.parquet")  # one person lacks the third
    seal(path / "beta")
    carried = {one.name: len(one.ranks) for one in verdict.contenders(Zoo.open(path), people)}
    assert carried["beta"] == len({1, 2, made_of_beta["seed"]})
    known = verdict.memorised(models, people["alpha"])
    assert known is not None and known.tolist() == kinds.to_pylist()
    unknown = dict(zip(("user", "target"), ([9], [9]), strict=True))
    assert verdict.memorised(models, judge.Ranks(*map(np.array, unknown.values()), np.ones(1), np.ones(1))) is None


@pytest.mark.parametrize("by", ["popularity-10", "attribute:year"])
def test_every_slice(opened: Opened, by: str) -> None:
    page = opened()
    page.selectbox(key="metrics_slice_toys").select(by).run()
    assert not page.exception and not page.error
    assert "fewer than 30" in words(page)


def test_an_item_with_several_values_counts_in_each_slice(opened: Opened) -> None:
    def as_text(path: Path) -> None:
        items = pq.read_table(path / "items.parquet")
        texts = pa.array([", ".join(values) for values in items["genres"].to_pylist()])
        pq.write_table(items.set_column(items.column_names.index("genres"), "genres", texts), path / "items.parquet")

    page = opened(as_text, by="attribute:genres")
    assert not page.exception and not page.error and "Slices overlap" in words(page)
    shown = evaluation.slices(zoo.open_zoo("toys"), "full", "attribute:genres", "HR@10")
    assert set(shown["slice"]) <= {"wood", "tin", "plush"} and {"tin", "plush"} <= set(shown["slice"])


def test_a_bundle_without_evaluation_is_listed_with_the_reason(opened: Opened) -> None:
    def strip(path: Path) -> None:
        (path / "alpha" / "ranks.parquet").unlink()
        seal(path / "alpha")

    page = opened(strip)
    assert not page.exception and not page.error
    assert standing(page)["Note"].str.contains("not evaluated under").sum() == 1


def test_the_floor_stands_first_and_what_trained_too_briefly_says_so(opened: Opened) -> None:
    def change(path: Path) -> None:
        seal(path / "plain", family="markov", title="Markov chain")
        seal(path / "popular", family="toy")
        made = json.loads((path / "beta" / "manifest.json").read_text("utf-8"))["training"]
        seal(path / "beta", training={**made, "epochs": 2, "best_epoch": 2, "improving": True})
        ranks = pq.read_table(path / "alpha" / "ranks.parquet")
        worse = ranks.set_column(4, "rank", pa.array([30.0, 30.0, 30.0, 40.0]))
        known = ranks.set_column(3, "protocol", pa.array(["full+user"] * 4))
        pq.write_table(pa.concat_tables([worse, known]), path / "alpha" / "ranks.parquet")
        seal(path / "alpha")

    page = opened(change, protocol="full+user")
    assert not page.exception and not page.error and not page.session_state["seqscope_state"].problems
    shown = standing(page).set_index("Model")["Note"]
    names = [name.split("\u00a0")[1] for name in shown.index]
    assert names[0] == "Markov chain" and names.index("Alpha, user vectors") < names.index(
        "Alpha"
    )  # the floor, then the best
    assert shown.iloc[names.index("Beta")] == "still improving when stopped"
    (made,) = (one.value for one in page.table if "Epochs" in one.value)
    assert made["Epochs"].tolist().count("2 (best 2, still improving when stopped)") == 1
    assert page.selectbox(key="metrics_baseline_toys_6").value == "plain"
    assert "**Alpha** is below **Markov chain**" in words(page) and "Of what needs no training, Popularity" in words(
        page
    )


def test_models_of_one_kind_stand_beside_the_floor(root: Path) -> None:
    shown = MetricsChoices(Zoo.open(root / "exports" / "films"), "full", "NDCG", 10, "Text")
    assert shown.rows == ["popularity", "markov", "counting", "recformer"]
    assert set(shown.of_kind(evaluation.standing(shown.models, "full", 10))["model"]) == set(shown.rows)


def test_protocols_are_never_mixed(opened: Opened) -> None:
    def sampled(path: Path) -> None:
        source = pq.read_table(path / "beta" / "ranks.parquet")
        again = source.set_column(3, "protocol", pa.array(["u100"] * 4)).set_column(4, "rank", pa.array([1.0] * 4))
        pq.write_table(pa.concat_tables([source, again]), path / "beta" / "ranks.parquet")
        seal(path / "beta")

    page = opened(sampled)
    page.segmented_control(key="metrics_protocol_toys").select("u100").run()
    assert not page.exception and not page.error
    table = standing(page)
    assert (table["NDCG@10"] == "n/a").sum() == len(TOYS) - 1
    assert any("n/a" in info.value for info in page.info)  # no lists for u100


def test_nothing_was_evaluated(opened: Opened) -> None:
    def strip(path: Path) -> None:
        for toy in TOYS:
            for file in ("ranks.parquet", "exposure.parquet", "curve.parquet"):
                (path / toy.name / file).unlink()
            seal(path / toy.name)

    page = opened(strip)
    assert not page.exception and not page.error
    assert "seqscope evaluate" in words(page)


def test_no_models_at_all(opened: Opened) -> None:
    page = opened(lambda path: [shutil.rmtree(path / toy.name) for toy in TOYS] and None)
    assert not page.exception and not page.error


def test_different_people_cannot_be_compared(opened: Opened) -> None:
    def move(path: Path) -> None:
        file = path / "alpha" / "ranks.parquet"
        source = pq.read_table(file)
        pq.write_table(source.set_column(0, "user", pa.array([7, 8, 9, 10], pa.int32())), file)
        seal(path / "alpha")

    page = opened(move)
    assert not page.exception and not page.error
    assert "cannot be compared" in words(page)
