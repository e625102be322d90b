"""Metrics: what is computed from ranks, and its words."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from app import zoo
from app.analysis import evaluation, floor, metrics
from app.figures import metrics as figures
from app.zoo import Style
from engine.cards import declarations
from engine.runtime import judge

LOOKS = {name: Style("#0072b2", "circle", "●", "solid") for name in "abcd"}
FAMILIES = {"a": "sasrec", "b": "tiger", "c": "popularity", "d": "markov"}
TITLES = {"a": "A", "b": "<script>B</script>", "c": "$C$", "d": "D"}


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


def test_full_ranking_comes_first_and_figures_with_times_or_vectors_of_users_are_rows() -> None:
    several = {"a": table({"u100": np.ones(2), "full": np.ones(2)}), "b": table({"full+user": np.ones(2)}), "c": None}
    assert metrics.protocols(several) == ["full", "u100"]
    tables = {"a": table({"full": np.ones(3), "full+times": np.full(3, 2.0)}), "b": table({"full": np.ones(3)})}
    assert metrics.protocols(tables) == ["full"]
    ranked = metrics.ranked(tables, {"a": {}, "b": {}}, "full")
    assert {row: ranks.rank[0] for row, ranks in ranked.items()} == {"a": 1.0, "a+times": 2.0, "b": 1.0}
    assert metrics.titled(TITLES, ranked)["a+times"] == "A, told the times"
    with_users = table({"full": np.ones(3), "full+user": np.full(3, 2.0)})
    found = metrics.ranked(
        {"a": with_users, "b": table({"full": np.ones(3)}), "c": None}, {"a": {}, "b": {}, "c": {}}, "full"
    )
    assert {row: one.rank[0] for row, one in found.items()} == {"a": 1.0, "a+user": 2.0, "b": 1.0}
    assert metrics.titled(TITLES, found)["a+user"] == "A, user vectors"
    look = LOOKS["a"]
    assert zoo.dotted(look).marker != look.marker and zoo.dotted(look).sign != look.sign


def test_a_beam_says_nothing_beyond_its_width() -> None:
    measured = {"a": {"full": {"outside@20": 0.5}}, "b": {}}
    tables = {"a": table({"full": np.array([1.0, 3, 21, 300])}), "b": table({"full": np.array([2.0, 4, 40, 50])})}
    found = metrics.ranked(tables, measured, "full")
    judged = metrics.standing(found, ["HR@20", "HR@50"]).set_index(["model", "metric"])
    assert judged.loc[("a", "HR@20"), "mean"] == 0.5 and judged.loc[("b", "HR@20"), "mark"] == "level"
    assert judged.loc[("a", "HR@50"), "note"] == "beam of 20" and np.isnan(judged.loc[("a", "HR@50"), "mean"])
    assert judged.loc[("b", "HR@50"), "mark"] == ""  # nobody to be better than
    assert metrics.against(found, "b", "HR@50").empty and metrics.against(found, "a", "HR@50").empty
    lists = metrics.beyond({"a": None, "b": None}, found, "full", 50, np.ones(9, np.int64)).set_index("model")
    assert lists.loc["a", "note"] == "beam of 20" and "no lists for “full” at 50" in lists.loc["b", "note"]
    everybody = {"all": np.ones(4, bool)}
    assert set(evaluation.means_by_slice(found, everybody, "HR@50")["model"]) == {"b"}
    figures.dots(judged.loc[(slice(None), "HR@50"), :].reset_index(), "HR@50", TITLES, LOOKS, FAMILIES)


def test_only_people_of_every_model_with_the_same_target_are_compared_each_once() -> None:
    of_b = ranks(np.ones(3), np.array([2, 3, 9]))
    shared, left_out = judge.common({"a": ranks(np.ones(3), np.array([1, 2, 3])), "b": of_b})
    assert [one.user.tolist() for one in shared.values()] == [[2, 3], [2, 3]]
    assert left_out == 2
    other = judge.Ranks(np.array([1], np.int32), np.array([4], np.int32), np.array([1], np.int32), np.ones(1))
    shared, left_out = judge.common({"a": ranks(np.ones(1), np.array([1])), "b": other})
    assert len(shared["a"]) == 0 and left_out == 1
    assert judge.common({}) == ({}, 0)
    user, target = np.array([1, 1, 1, 2], np.int32), np.array([4, 5, 6, 4], np.int32)
    whole = judge.Ranks(user, target, np.ones(4, np.int32), np.ones(4), protocol="held-out users")
    shared, left_out = judge.common({"a": whole, "b": whole.take(np.array([0, 3]))})
    assert shared["a"].target.tolist() == [4, 4] and left_out == 1


def test_a_random_order_is_among_the_candidates_of_the_protocol() -> None:
    """Histories have three items each."""
    some = ranks(np.ones(2))
    for protocol, candidates in {"full": 17, "full, repeats": 20, "full, history kept": 20, "u100+user": 101}.items():
        chance = metrics.by_chance(dataclasses.replace(some, protocol=protocol), "HR@10", 20)
        assert chance == pytest.approx(10 / candidates)
    assert metrics.by_chance(some, "NDCG@10", 3) == 1.0  # nothing is left to rank but the held-out item
    assert "say little" in metrics.chance_words(1.0, "HR@10") and "little" not in metrics.chance_words(0.01, "HR@10")


def test_standing_marks_the_best_and_what_chance_could_explain_and_its_cells_give_reasons() -> None:
    standing = metrics.standing(people(a=0.50, b=0.50, c=0.48, d=0.2), ["HR@10"]).set_index("model")
    assert standing.loc["a", "mark"] == "best"
    assert standing.loc["b", "mark"] == "level"  # the same ranks
    assert standing.loc["d", "mark"] == ""
    assert standing.loc["a", "mean"] == pytest.approx(judge.accuracy(people(a=0.5)["a"].rank)["HR@10"])
    assert (standing["low"] <= standing["mean"]).all() and (standing["mean"] <= standing["high"]).all()
    assert set(metrics.standing(people(a=0.5), ["HR@10"])["mark"]) == {""}  # one model alone is not crowned
    standing = metrics.standing(people(a=0.5, b=0.5), ["NDCG@10", "HR@10"])
    signs = dict.fromkeys(TITLES, "●")
    grid = metrics.grid(standing, {"c": "not evaluated", "d": "not evaluated"}, TITLES, signs)
    assert list(grid.columns) == ["Model", "NDCG@10", "HR@10", "Note"]
    assert grid["NDCG@10"].iloc[0].startswith("0.5") and grid["NDCG@10"].iloc[1].endswith("≈")
    assert grid["NDCG@10"].iloc[2] == "n/a" and grid["Note"].iloc[2] == "not evaluated"


def test_models_below_the_floor_and_what_is_missing_of_it_and_needs_no_training_are_named() -> None:
    assert "baselines markov" in floor.missing({"a": "sasrec", "c": "popularity"})
    called = metrics.bold(TITLES)
    assert floor.below({"a": 0.5, "d": 0.2}, FAMILIES, called) == ""
    assert "**A** has a lower mean than **D** (0.900)" in floor.below({"a": 0.1, "d": 0.9}, FAMILIES, called)
    words = floor.below({"a": 0.1, "b": 0.2, "d": 0.9, "c": 0.3}, FAMILIES, called)
    assert "**A** and **\\<script\\>B\\</script\\>** both have a lower mean than **D**" in words
    assert floor.first("abcd", FAMILIES) == ["c", "d", "a", "b"]
    counting = {name for name, model in declarations().models.items() if not model.learns}
    assert {"popularity", "markov", "text-neighbours"} <= counting
    assert all(floor.needs_training(name) == (name not in counting) for name in declarations().models)
    assert floor.needs_training("of another installation")


def test_a_model_with_two_rows_counts_once_below_the_floor_and_among_the_better() -> None:
    families = FAMILIES | {"a+user": "sasrec"}
    called = metrics.titled(TITLES, families)
    both = floor.below({"a": 0.1, "a+user": 0.2, "d": 0.9}, families, called)
    assert both.split(" a lower mean ")[0].strip() == "A has"
    one = floor.below({"a": 0.95, "a+user": 0.2, "d": 0.9}, families, called)
    assert "A, user vectors has a lower mean than D" in one
    rows = {f"{number}{second}": 0.1 for number in range(9) for second in ("", metrics.USERS)} | {"8": 0.95}
    families = dict.fromkeys(rows, "sasrec") | {"d": "markov"}
    many = floor.below(rows | {"d": 0.9}, families, {"d": "D"} | {row: row for row in rows})
    assert "8 of 9 trained models have a lower mean than D" in many
    scored = people(a=0.9, d=0.1)
    compared = metrics.against(
        {"a": scored["a"], "a+user": scored["a"], "c": scored["d"], "d": scored["d"]}, "d", "HR@10"
    )
    called = metrics.titled(TITLES, [*compared["model"], "d"])
    words = metrics.better_words(compared, "d", called)
    assert "1 of 2 other models is significantly better than D" in words and "user vectors" not in words
    compared = metrics.against({"a": scored["d"], "a+user": scored["a"], "c": scored["a"]}, "a", "HR@10")
    words = metrics.better_words(compared, "a", called)
    assert "1 of 1 other model is" in words and words.endswith("A, user vectors is better than A.")


def test_against_a_baseline_with_holm_and_both_figures_have_the_same_rows() -> None:
    found = metrics.against(people(a=0.5, b=0.5, c=0.1, d=0.9), "a", "HR@10").set_index("model")
    assert found["verdict"].to_dict() == {"b": "level", "c": "worse", "d": "better"}
    assert found["holm"].tolist() == judge.holm(found["p"].tolist())
    best = metrics.standing(people(a=0.5, b=0.5, c=0.1, d=0.9), ["HR@10"]).set_index("model")["holm"]
    others = metrics.against(people(a=0.5, b=0.5, c=0.1, d=0.9), "d", "HR@10").set_index("model")["holm"]
    assert best.dropna().to_dict() == others.to_dict()  # adjusted p are called so in both tables
    ranked = people(a=0.5, b=0.3, c=0.1, d=0.4)
    table = metrics.standing(ranked, ["HR@10"])
    rows = figures.ordered(table, "mean", FAMILIES)["model"].tolist()
    left = figures.dots(table, "HR@10", TITLES, LOOKS, FAMILIES)
    right = figures.differences(metrics.against(ranked, "d", "HR@10"), rows, "d", "HR@10", TITLES, LOOKS)
    assert left.layout.yaxis == right.layout.yaxis and left.layout.height == right.layout.height
    (baseline,) = (trace for trace in right.data if trace.y[0] == rows.index("d"))
    assert baseline.x[0] == 0 and baseline.error_x.array is None and "0.0" not in baseline.hovertemplate


def test_of_many_comparisons_those_that_are_sure_stay_so() -> None:
    many = people(best=0.9, **{f"worse{number}": 0.1 for number in range(60)})
    assert set(metrics.standing(many, ["HR@10"])["mark"]) == {"best", ""}
    against = metrics.against(many, "best", "HR@10")
    assert set(against["verdict"]) == {"worse"}
    assert f"60 comparisons, with 2,400 samples {against['holm'].min():.3f} at least" in metrics.adjusted(60)


def test_beyond_accuracy_or_the_reason() -> None:
    source = pa.table({"protocol": ["full"] * 2, "k": [10, 10], "item": [0, 1], "count": [5, 5]})
    popularity, of_u100 = np.array([8, 8, 0, 0]), source.set_column(0, "protocol", pa.array(["u100"] * 2))
    shown = {"a": source, "b": of_u100, "c": None}
    found = metrics.beyond(shown, people(a=0.5, b=0.5, c=0.5), "full", 10, popularity).set_index("model")
    assert found.loc["a", ["coverage", "gini", "novelty"]].tolist() == pytest.approx([0.5, 0.5, 1.0])
    assert found.loc[["b", "c"], "note"].str.contains("no lists").all()
    assert found.loc[["b", "c"], "coverage"].isna().all()


def test_groups_by_numbers_lists_and_categories() -> None:
    found = evaluation.by_number(np.arange(100), 10, "event", "events")
    assert [int(mask.sum()) for mask in found.values()] == [10] * 10
    assert next(iter(found)) == "0 – 9 events"
    same = evaluation.by_number(np.array([1, 1, 1, 1, 7]), 3, "event", "events")
    assert {label: int(mask.sum()) for label, mask in same.items()} == {"1 event": 4, "7 events": 1}
    assert evaluation.by_number(np.array([np.nan]), 3, "", "") == {}
    assert list(evaluation.by_year(np.array([1995, 1996, 2001, 2002]), 2)) == ["1995 – 1996", "2001 – 2002"]
    lists = pa.chunked_array([pa.array([["x", "y"], ["x"], None, [], ["z", "z"]])])
    found = evaluation.by_value(lists, np.array([0, 1, 2, 3, 4, 0]))
    assert {label: int(mask.sum()) for label, mask in found.items()} == {"x": 3, "y": 2, "z": 1}
    blank = pa.chunked_array([pa.array([["", "x"], [""]])])
    assert list(evaluation.by_value(blank, np.array([0, 1]))) == ["x"], "an empty text is no value, alone or in a list"
    few = evaluation.by_value(lists, np.array([0, 1, 4, 0]), most=2)
    assert {label: int(mask.sum()) for label, mask in few.items()} == {"x": 3, "any of 2 others": 3}
    flags = evaluation.by_attribute(pa.chunked_array([pa.array([True, False, None])]), np.array([0, 1, 1, 2]))
    assert {label: int(mask.sum()) for label, mask in flags.items()} == {"False": 2, "True": 1}
    alike = evaluation.by_value(pa.chunked_array([pa.array(["a", "a\t"])]), np.array([0, 1]))
    assert list(alike) == ["a", "a (2)"]
    nothing = pa.chunked_array([pa.array([None, None], pa.int32())])
    assert evaluation.by_attribute(nothing, np.array([0, 1])) == {}


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.large_list(pa.large_string())])
def test_groups_by_lists_of_either_kind_overlap(kind: pa.DataType) -> None:
    toys = SimpleNamespace(
        items=pa.table({"made of": pa.array([["tin", "plush"], ["wood"]], kind), "year": [1999, 2001]})
    )
    assert evaluation.overlap(toys, "attribute:made of")  # type: ignore[arg-type]
    assert not evaluation.overlap(toys, "attribute:year")  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [np.arange(10_000_001, 10_000_101), 1 + np.arange(100) / 1e9])
def test_groups_of_numbers_that_look_alike_leave_nobody_out(values: np.ndarray) -> None:
    groups = evaluation.by_attribute(pa.chunked_array([pa.array(values)]), np.arange(100))
    assert [int(mask.sum()) for mask in groups.values()] == [20] * 5
    unknown = evaluation.by_attribute(pa.chunked_array([pa.array([1.5, math.nan])]), np.array([0, 1]))
    assert list(unknown) == ["1.5"], "no number is no group"


def test_slices_with_few_people_are_marked_and_drawn_pale() -> None:
    found = people(a=0.5, b=0.3)
    mask = np.zeros(600, bool)
    mask[:29] = True
    frame = evaluation.means_by_slice(found, {"few": mask, "<b>many</b>": ~mask}, "HR@10")
    assert frame.groupby("slice")["few"].first().to_dict() == {"few": True, "<b>many</b>": False}
    fig = figures.slices(frame, "HR@10", TITLES, LOOKS)
    assert [trace.opacity for trace in fig.data] == [1, 0.45, 1, 0.45]
    assert "<b>" not in fig.to_json() and "<script>" not in fig.to_json()


def test_on_a_phone_panels_stand_two_in_a_row_and_the_legend_takes_nothing_of_the_figure() -> None:
    names = [f"m{place}" for place in range(8)]
    curve = pa.table(
        {"step": [1, 2], "epoch": [1.0, 2.0], "seconds": [1.0, 2.0], "loss": [2.0, None], "valid_ndcg": [None, 0.1]}
    )
    trained = metrics.curves(dict.fromkeys(names, curve) | {"not trained": None})
    assert trained["model"].unique().tolist() == names and metrics.curves({}).empty
    drawn = (trained, "epoch", "epochs", dict.fromkeys(names, "Model"), dict.fromkeys(names, LOOKS["a"]))
    wide, narrow = (figures.validation(*drawn, on_phone) for on_phone in (False, True))
    assert narrow.layout.height - narrow.layout.margin.b >= wide.layout.height - 60 and wide.layout.xaxis.dtick == 1
    panels = [figures.losses(*drawn, on_phone) for on_phone in (False, True)]
    assert [len({panel.x for panel in shown.layout.annotations}) for shown in panels] == [4, 2]
    for shown in panels:
        assert {(axis.title.text, axis.dtick) for axis in shown.select_xaxes()} == {("epochs", 1)}  # no half epochs
        assert {axis.title.text for axis in shown.select_yaxes(col=1)} == {"loss"}
