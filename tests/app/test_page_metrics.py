"""The page Metrics: its choices in the address, its sections, and bundles with and without evaluation."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from app import zoo
from app.analysis import evaluation, metrics
from app.screens import PAGES
from app.screens.metrics.choices import MetricsChoices
from app.session import state
from engine.bundle.manifest import ZeroShot
from engine.runtime import NOT_SETTLED, STILL_IMPROVING, BundleError, Zoo, judge
from tests.app.conftest import Open, alone, run_without_fault, told
from tests.app.test_page_addresses import GOOD
from tests.runtime.bundles import TOYS, count_repeats, describe, make_zoo, retrain, rewrite, seal, with_columns


def standing(page: AppTest) -> pd.DataFrame:
    """The table of all models' metrics."""
    return next(table.value for table in page.dataframe if "Model" in table.value)


@pytest.fixture
def opened(open_changed: Open) -> Open:
    return partial(open_changed, "metrics")


def test_a_damaged_file_is_no_end_of_the_address(models: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise BundleError("alpha", "ranks.parquet", "it is damaged")

    monkeypatch.setattr("app.screens.metrics.evaluation.people", broken)
    now = state.parse({"ds": "toys", **GOOD["metrics"]}, ["toys"], zoo.open_zoo, PAGES["metrics"])
    assert len(now.problems) == 1 and "ranks.parquet: it is damaged" in now.problems[0]
    assert now.own["by"] == "length" and "baseline" not in now.own


def differ(path: Path) -> None:
    """Beta ranks other items high than the rest."""
    rewrite(path / "beta" / "ranks.parquet", rank=[9.0, 1.0, 1.0, 2.0])


def test_sections_show_what_the_address_says_and_a_choice_goes_into_it(opened: Open) -> None:
    page = opened(differ, **GOOD["metrics"])
    for section, key, value in (
        ("comparison", f"metrics_baseline_toys_{len(TOYS)}", "beta"),
        ("slices", "metrics_slice_toys", "length"),
        ("runs", "metrics_along", "seconds"),
    ):
        page.query_params["section"] = section
        run_without_fault(page)
        shown = {widget.key: widget.value for widget in (*page.selectbox, *page.segmented_control)}
        assert (shown["metrics_name"], shown["metrics_k"], shown[key]) == ("HR", "5", value) and not page.warning
    run_without_fault(page.segmented_control(key="metrics_name").set_value("MRR"))
    own = page.session_state["seqscope_state"].own
    assert own["metric"] == page.query_params["metric"] == "MRR" and own["baseline"] == "beta"


def _trained_on_all_but(path: Path, *cold: int) -> None:
    items = pq.read_table(path / "items.parquet")["item"].to_pylist()
    rewrite(path / "items.parquet", popularity=[0 if item in cold else 5 for item in items])


def test_cold_and_warm_items_are_judged_apart(opened: Open) -> None:
    def one_cold(path: Path) -> None:
        _trained_on_all_but(path, pq.read_table(path / "alpha" / "ranks.parquet")["target"][0].as_py())

    page = opened(one_cold, by="cold", section="slices")
    assert not page.warning and page.selectbox(key="metrics_slice_toys").value == "cold"
    assert "can know an item unseen in training" in told(page)
    models = zoo.open_zoo("toys")
    asked = evaluation.people(models, "full")[0]["alpha"]
    shown = evaluation.slices(models, "full", "cold", "HR@10")
    cold = int((models.popularity[asked.target] == 0).sum())
    sizes = shown.drop_duplicates("slice").set_index("slice")["n"].to_dict()
    assert sizes == {"unseen in training": cold, "seen in training": len(asked) - cold} and cold


def test_who_comes_back_to_an_item_is_judged_apart_where_repeats_count(opened: Open) -> None:
    page = opened(count_repeats, section="slices")
    models = zoo.open_zoo("toys")
    assert page.selectbox(key="metrics_slice_toys").value == evaluation.REPEATED  # what is shown first
    asked = next(iter(evaluation.people(models, "full")[0].values()))
    again = [row["user"] for row in models.users.to_pylist() if row["target"] in row["history"]]
    groups = evaluation.by_repeat(asked, models.users)
    assert asked.user[groups["repeats an item of the history"]].tolist() == again != []
    assert (groups["is new to the user"] == ~groups["repeats an item of the history"]).all()


def test_without_cold_items_there_is_nothing_to_set_apart(opened: Open) -> None:
    page = opened(_trained_on_all_but, by="cold", section="slices")
    assert "cold" not in evaluation.sliceable(zoo.open_zoo("toys"), "full")
    assert any("“cold”" in problem for problem in page.session_state["seqscope_state"].problems)
    assert page.selectbox(key="metrics_slice_toys").value != "cold"


@pytest.mark.parametrize("ties", [4, 0])
def test_the_page_opens_with_what_held_out_items_are_the_verdict_and_the_table(opened: Open, ties: int) -> None:
    held_out = {"ties": ties, "repeats": 0, "negative": 0}
    page = opened(lambda path: describe(path, held_out=held_out), metric="HR", at="5")
    opening = evaluation.verdict(zoo.open_zoo("toys"), "full", "HR@5")
    assert opening is not None and opening.untrained is not None and opening.untrained.name == "popular"
    assert bool(page.warning) == bool(ties) and len(standing(page)) == len(TOYS)
    elements = [one for one in page.main if one.type in ("markdown", "caption", "warning", "dataframe")]
    place = next(at for at, one in enumerate(elements) if one.type == "dataframe")
    texts = [one.value for one in elements[:place]]
    (counted,) = (at for at, text in enumerate(texts) if "share their time" in text)
    assert counted < texts.index(evaluation.in_markdown(zoo.open_zoo("toys"), opening))
    assert "4 users" in told(page) and "simulated" in told(page)
    assert "no training" in texts[-1] and "HR@5" in texts[-1]


def test_what_the_page_opens_with_is_computed_before_anybody_opens_it(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ahead(path: Path) -> None:
        evaluation.compute_ahead(Zoo.open(path))
        for module, name in ((metrics, "standing"), (metrics, "against"), (judge, "verdict")):
            monkeypatch.setattr(module, name, None)

    assert len(standing(opened(ahead))) == len(TOYS)


def test_the_verdict_takes_trainings_with_several_seeds_together_and_knows_what_follows_from_counts(
    tmp_path: Path,
) -> None:
    path = make_zoo(tmp_path / "exports")
    recipe = {"family": "toy", "training": {"seed": 1}}
    retrain(path / "alpha", recipe=recipe, seed=1)
    retrain(path / "gamma", recipe=recipe | {"training": {"seed": 2}}, seed=2)
    ranks = pq.read_table(path / "alpha" / "ranks.parquet").slice(0, 4)
    kinds = pa.array([1, 2, 0, 0], pa.int8())
    pq.write_table(ranks.select(["user", "target"]).append_column("memorised", kinds)[::-1], path / "held_out.parquet")
    models = Zoo.open(path)
    people = evaluation.people(models, "full")[0]
    trainings = {one.name: len(one.ranks) for one in evaluation.contenders(models, people)}
    assert trainings["alpha"] == 2 and "gamma" not in trainings and trainings["popular"] == 1
    more = pq.read_table(path / "beta" / "ranks.parquet")
    seeds = pa.concat_tables(
        [more.append_column("seed", pa.array([seed] * len(more), pa.int64())) for seed in (1, 2, 3)]
    )
    pq.write_table(seeds.slice(0, 11), path / "beta" / "seeds.parquet")  # one person lacks the third
    seal(path / "beta")
    carried = {one.name: len(one.ranks) for one in evaluation.contenders(Zoo.open(path), people)}
    assert carried["beta"] == len({1, 2, TOYS[1].seed})
    beta = f"{models.bundles['beta'].manifest.title} ({carried['beta']} seeds)"
    words = evaluation.over_seeds(Zoo.open(path), "full")
    assert words.startswith(metrics.ONE_SEED) and "(2 seeds)" in words and beta in words
    (path / "beta" / "seeds.parquet").unlink()
    seal(path / "beta")
    assert beta not in evaluation.over_seeds(Zoo.open(path), "full")
    known = evaluation.memorised(models, people["alpha"])
    assert known is not None and known.tolist() == kinds.to_pylist()
    unknown = dict(zip(("user", "target"), ([9], [9]), strict=True))
    assert evaluation.memorised(models, judge.Ranks(*map(np.array, unknown.values()), np.ones(1), np.ones(1))) is None


def test_models_that_nothing_says_are_one_training_are_several(tmp_path: Path) -> None:
    path = make_zoo(tmp_path / "exports")
    stated: dict[str, object] = {"training": {"seed": 1}}
    source = {"bundle": "alpha", "dataset": "other", "title": "Other", "cut": 0, "words": "0" * 64, "digest": "0" * 64}
    for recipe, fingerprints in (({}, [None, None]), (stated, ["1" * 64, "2" * 64]), (stated, [None, "1" * 64])):
        for name in ("alpha", "gamma"):
            retrain(path / name, recipe=recipe, seed=1)
        models = Zoo.open(path)
        for name, fingerprint in zip(("alpha", "gamma"), fingerprints, strict=True):
            if fingerprint is not None:
                carried = ZeroShot(**source, fingerprint=fingerprint)
                models.bundles[name].manifest = models.bundles[name].manifest.model_copy(update={"zero_shot": carried})
        several = evaluation.contenders(models, evaluation.people(models, "full")[0])
        assert {"alpha", "gamma"} <= {one.name for one in several}


def test_of_copies_of_one_training_the_ranks_are_those_of_the_one_that_is_named(tmp_path: Path) -> None:
    path = make_zoo(tmp_path / "exports")
    for name in ("alpha", "gamma"):
        retrain(path / name, recipe={"training": {"seed": 1}}, seed=1)
    models = Zoo.open(path)
    people = evaluation.people(models, "full")[0]
    (both,) = (one for one in evaluation.contenders(models, people) if one.name in ("alpha", "gamma"))
    assert len(both.ranks) == 1 and both.ranks[0] is people[both.name]


def test_slices_are_chosen_and_an_item_with_several_values_counts_in_each(opened: Open) -> None:
    def as_text(path: Path) -> None:
        genres = pq.read_table(path / "items.parquet")["genres"].to_pylist()
        targets = pq.read_table(path / "alpha" / "ranks.parquet")["target"].to_pylist()
        genres[targets[0]] = []
        rewrite(path / "items.parquet", genres=pa.array([", ".join(values) for values in genres]))

    page = opened(as_text, by="attribute:genres", section="slices")
    assert "Slices overlap" in told(page)
    assert "In no slice: 1 held-out item without a value." in told(page)
    shown = evaluation.slices(zoo.open_zoo("toys"), "full", "attribute:genres", "HR@10")
    assert set(shown["slice"]) <= {"wood", "tin", "plush"} and {"tin", "plush"} <= set(shown["slice"])
    for by in ("popularity-10", "attribute:year"):
        run_without_fault(page.selectbox(key="metrics_slice_toys").select(by))
        assert "fewer than 30" in told(page)


def test_slices_of_many_models_that_need_no_training_show_more_than_one_of_them(opened: Open) -> None:
    def change(path: Path) -> None:
        for number in range(9):
            shutil.copytree(path / "popular", path / f"count{number}")
            seal(path / f"count{number}", name=f"count{number}")
        for name in ("alpha", "beta", "gamma", "plain"):
            shutil.rmtree(path / name)

    page = opened(change, section="slices")
    assert "Shown: the 8 best of 10. The table" in told(page)


def test_the_floor_stands_first_and_what_trained_too_briefly_says_so(opened: Open) -> None:
    def change(path: Path) -> None:
        seal(path / "plain", family="markov", title="Markov chain")
        seal(path / "popular", family="toy")
        retrain(path / "beta", epochs=2, best_epoch=2)
        retrain(path / "gamma", epochs=2, best_epoch=1, recipe={"training": {"patience": 2}})
        file = path / "alpha" / "ranks.parquet"
        worse, known = with_columns(file, rank=[30.0, 30.0, 30.0, 40.0]), with_columns(file, protocol=["full+user"] * 4)
        pq.write_table(pa.concat_tables([worse, known]), file)
        seal(path / "alpha")

    page = opened(change, protocol="full+user", section="runs")
    assert not page.session_state["seqscope_state"].problems
    shown = standing(page).set_index("Model")["Note"]
    names = [name.split("\u00a0")[1] for name in shown.index]
    assert names[0] == "Markov chain"  # the floor, then the best
    assert names.index("Alpha, user vectors") < names.index("Alpha")
    assert shown.iloc[names.index("Beta")] == STILL_IMPROVING and shown.iloc[names.index("Gamma")] == NOT_SETTLED
    assert "**Alpha** has a lower mean than **Markov chain**" in told(page)
    assert "Of the models that need no training, Popularity" in told(page)


def test_models_of_one_kind_stand_beside_the_floor(root: Path) -> None:
    shown = MetricsChoices(Zoo.open(root / "exports" / "sample"), "full", "NDCG", 10, "Text")
    assert set(shown.rows) == {"popularity", "markov", "counting", "recformer"}
    assert set(shown.of_kind(evaluation.standing(shown.models, "full", 10))["model"]) == set(shown.rows)
    counted = MetricsChoices(shown.models, "full", "NDCG", 10, "Counting")
    assert set(counted.rows) == {"popularity", "markov", "counting"}
    assert list(shown.people) == [
        name for name in shown.models.bundles if name in shown.rows
    ]  # the choice of a baseline


def test_what_is_compared_with_models_of_all_kinds_says_so_where_one_kind_is_shown(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(root / "exports"))
    page = run_without_fault(alone("metrics", ds="sample", kind="Text", section="comparison"))
    rows = len(evaluation.people(zoo.open_zoo("sample"), "full")[0])
    assert f"adjusted by Holm for {rows - 1} comparisons" in told(page)
    page = run_without_fault(alone("metrics", ds="sample", kind="Generative", protocol="u100", at="20"))
    hits = evaluation.standing(zoo.open_zoo("sample"), "u100", 20).query("metric == 'HR@20'").set_index("model")["mark"]
    assert hits["sasrec"] == "best" and hits["lc-rec"] == "level"  # and the first is not shown
    assert "**Bold**: the best of all kinds; ≈" in told(page)


def test_whoever_was_validated_otherwise_is_named_beside_the_curves(opened: Open) -> None:
    """By vectors of users that are not folded in, or among sampled items."""

    def change(path: Path) -> None:
        settings = {"alpha": (False, "full"), "beta": (True, "full"), "gamma": (True, "u100"), "plain": (True, 7)}
        for name, (folded, protocol) in settings.items():
            retrain(path / name, recipe={"training": {"valid_fold_in": folded, "valid_protocol": protocol}})
            seal(path / name, metrics={"full": {"NDCG@10": 0.5}, "full+user": {"NDCG@10": 0.5}})

    words = told(opened(change, section="runs"))
    assert "Alpha: validated with trained user vectors" in words and "Gamma: validated among 100 sampled items" in words
    assert "Beta: validated" not in words and "Plain: validated" not in words


def test_protocols_are_never_mixed(opened: Open) -> None:
    def more(path: Path) -> None:
        file = path / "beta" / "ranks.parquet"
        again = with_columns(file, rank=[1.0] * 4, protocol=["u100"] * 4)
        pq.write_table(pa.concat_tables([pq.read_table(file), again]), file)
        seal(path / "beta")

    page = opened(more, protocol="u100", section="beyond")
    table = standing(page)
    assert (table["NDCG@10"] == "n/a").sum() == len(TOYS) - 1
    assert table["Note"].str.contains("not evaluated under").sum() == len(TOYS) - 1
    assert any("n/a" in info.value for info in page.info)  # no lists for u100
    assert not page.session_state["seqscope_state"].problems


def _not_evaluated(path: Path) -> None:
    for toy in TOYS:
        for file in ("ranks.parquet", "exposure.parquet", "curve.parquet"):
            (path / toy.name / file).unlink()
        seal(path / toy.name)


def _other_users(path: Path) -> None:
    rewrite(path / "alpha" / "ranks.parquet", user=[7, 8, 9, 10])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_not_evaluated, "seqscope evaluate"),
        (lambda path: [shutil.rmtree(path / toy.name) for toy in TOYS], "No model of this dataset"),
        (_other_users, "cannot be compared"),
    ],
    ids=["nothing evaluated", "no models", "different users"],
)
def test_where_nothing_can_be_compared_it_says_why(opened: Open, change: Callable[[Path], object], says: str) -> None:
    assert says in told(opened(change))


def test_figures_from_elsewhere_stand_beside_those_of_the_same_method_here(opened: Open) -> None:
    measured_here = {"HR@10": 0.5, "NDCG@10": 0.25}
    elsewhere = {"title": "Beta", "metrics": {"NDCG@10": 0.75}, "source": "measured by others"}

    def change(path: Path) -> None:
        seal(path / "beta", metrics={"full": measured_here, "full, warm": {"NDCG@10": 0.5}})
        named = [{"model": model, "protocol": "full, warm", **elsewhere} for model in ("beta", "unknown")]
        describe(path, references=named)

    page = opened(change, protocol="full", section="protocol")
    table = next(table.value for table in page.dataframe if "Method" in table.value)
    assert table["NDCG@10, elsewhere"].tolist() == [0.75, 0.75]
    assert table["NDCG@10, here"].tolist()[0] == 0.5 and np.isnan(table["NDCG@10, here"].iloc[1])
    assert "measured by others" in told(page) and "in somebody's training" in told(page)


def test_a_zero_shot_model_was_trained_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = Zoo.open(make_zoo(tmp_path / "exports"))
    verdict = evaluation.verdict(models, "full", "HR@5")
    assert verdict is not None and verdict.neural is not None and verdict.untrained is not None
    assert "was not trained on this dataset" not in evaluation.in_markdown(models, verdict)
    bundle = models.bundles[verdict.neural.name]
    elsewhere = SimpleNamespace(zero_shot=SimpleNamespace(title="Other *catalogue*"))
    monkeypatch.setitem(models.bundles, bundle.name, SimpleNamespace(manifest=elsewhere))
    assert "was not trained on this dataset but on **Other \\*catalogue\\***" in evaluation.in_markdown(models, verdict)
