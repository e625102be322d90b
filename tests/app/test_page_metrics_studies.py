"""Studies on the page Metrics: what is computed from them, what may be claimed, and the page with and without any."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.analysis import studies
from app.figures import studies as figures
from engine.evaluation.significance import paired_over_seeds
from engine.runtime import Study, Zoo, judge
from tests.app.conftest import Open, run_without_fault, told
from tests.runtime.bundles import TOYS, make_zoo
from tests.runtime.studies import outcome, published, study, toy_studies, write

METRIC = "NDCG@10"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Study]:
    path = make_zoo(tmp_path_factory.mktemp("studies"), TOYS[:1])
    toy_studies(path)
    return Zoo.open(path).studies.found


def made(**variants: list[dict[str, object]]) -> Study:
    return Study.model_validate(json.loads(json.dumps(study("made", variants))))


def by_user(these: Study, variant: str) -> np.ndarray:
    """[seeds, users]."""
    return np.array([run.per_person(METRIC) for run in these.variant(variant).outcomes])


# --- what is computed


def test_the_table_by_hand(found: dict[str, Study]) -> None:
    pieces = found["pieces"]
    table = studies.table(pieces, METRIC).set_index("variant")
    assert table["verdict"].to_dict() == {"plain": "baseline", "better": "better", "level": "level", "torn": "level"}
    assert table["mean"].to_dict() == pytest.approx({one.name: one.figure(METRIC) for one in pieces.variants})
    better, plain = (by_user(pieces, name) for name in ("better", "plain"))
    test = paired_over_seeds(better, plain)
    shown = table.loc["better", ["difference", "lowest", "highest", "p"]].tolist()
    assert shown == [test.mean, test.low, test.high, test.p]
    others = table[table["verdict"] != "baseline"]
    assert others["holm"].tolist() == judge.holm(others["p"].tolist())
    assert np.isnan(table.loc["plain", "difference"])
    ranks = np.array(pieces.variant("plain").outcomes[0].ranks)
    gains = np.where((ranks > 0) & (ranks <= 5), 1 / np.maximum(ranks, 1), 0)
    assert studies.table(pieces, "MRR@5")["mean"].iloc[0] == pytest.approx(gains.mean())


def test_seeds_apart_and_an_interval_that_contains_zero_are_no_claim(found: dict[str, Study]) -> None:
    pieces = found["pieces"]
    table = studies.table(pieces, METRIC).set_index("variant")
    row = table.loc["torn"]
    torn, plain = (by_user(pieces, name).mean(0) for name in ("torn", "plain"))
    assert judge.paired(torn, plain).low > 0 > row["lowest"] and row["verdict"] == "level"  # by users alone: better
    up, down = studies.by_seed(pieces, "torn", METRIC)
    assert row["spread"] == pytest.approx(up - down)
    assert "intervals of differences are over seeds, too" in studies.how_sure(pieces, table.reset_index())
    width = found["width"]
    both = studies.of_seeds([width, pieces], [studies.table(width, METRIC), table])
    assert f"up to {table['spread'].max():.3f} apart" in both
    ranks = [1.0] * 50 + [0.0] * 50
    close = made(a=[outcome(ranks)], b=[outcome([1.0] * 51 + [0.0] * 49)])
    table = studies.table(close, METRIC)
    assert table["verdict"].tolist() == ["baseline", "level"] and table["difference"].iloc[1] > 0
    assert "No variant is significantly different" in studies.verdicts(close, table, METRIC)
    far = made(a=[outcome(ranks)], b=[outcome([0.0] * 100)], c=[outcome(ranks)])
    words = studies.verdicts(far, studies.table(far, METRIC), METRIC)
    assert words.startswith("**b** (−0.500) is significantly worse than a in NDCG@10.")
    assert words.endswith("**c** is not significantly different from it.")
    assert "One seed each" in studies.how_sure(far, studies.table(far, METRIC))


@pytest.mark.parametrize(
    ("settings", "whose"), [([], "recipe"), (["model.dimension=3"], "recipe"), (["model.dim=2"], "study")]
)
def test_a_sweep_says_whose_value_its_baseline_has(found: dict[str, Study], settings: list[str], whose: str) -> None:
    width = found["width"].model_copy(update={"settings": {"toy": settings}})
    assert f"than 2, the {whose}'s own, in NDCG@10" in studies.verdicts(width, studies.table(width, METRIC), METRIC)


def test_the_grid_says_verdicts_differences_and_what_codes_were_measured(found: dict[str, Study]) -> None:
    grid = studies.grid(found["pieces"], studies.table(found["pieces"], METRIC), METRIC)
    assert list(grid.columns) == ["Variant", METRIC, "Difference", "Verdict"]
    assert grid["Difference"].iloc[0] == "baseline"
    assert grid["Verdict"].tolist() == ["", "**better**", "not significant", "not significant"]
    narrow = studies.grid(found["pieces"], studies.table(found["pieces"], METRIC), METRIC, narrow=True)
    assert "Verdict" not in narrow and " **better** :small[" in narrow["Difference"].iloc[1]
    both = made(a=[outcome([1.0], perplexity=7.0, lost=0.25)], b=[outcome([1.0], perplexity=8.0, lost=0.5)])
    grid = studies.grid(both, studies.table(both, METRIC), METRIC)
    assert grid["Perplexity, level 1"].tolist() == ["7.00", "8.00"]
    assert grid["Variance lost"].tolist() == ["0.2500", "0.5000"]
    pieces = found["pieces"]
    table = studies.table(pieces, METRIC)
    table.loc[table["variant"] == "better", ["difference", "lowest", "highest"]] = [-0.0001, -0.04, 0.0]
    grid = studies.grid(pieces, table, METRIC).set_index("Variant")
    assert "0.000 :small[(−0.040\u00a0…\u00a00.000)]" in grid["Difference"].tolist()


def test_the_floor_stands_before_the_variants(found: dict[str, Study]) -> None:
    pieces = found["pieces"]
    table = studies.table(pieces, METRIC)
    counted = [studies.Counted("markov", "markov", "Markov chain", 0.99, 0.98, 1.0)]
    assert studies.grid(pieces, table, METRIC, counted)["Verdict"].tolist()[:2] == ["the floor", ""]
    assert "have a lower mean than **Markov chain** (0.990)" in studies.below(table, counted)
    assert studies.below(table, [counted[0]._replace(mean=0.0)]) == "" == studies.below(table, [])


def test_what_is_downloaded_is_all_there_is(found: dict[str, Study]) -> None:
    table = studies.download(list(found.values()))
    assert len(table) == 4 * 2 * 2 + 3 + 3 * 2 + 3 * 2 * 4
    of_paper = table[table["source"] != ""]
    assert of_paper["variant"].tolist() == ["plain", "better", "torn"] and of_paper["seed"].isna().all()
    row = table[(table["study"] == "Study alpha") & (table["seed"] == 2) & (table["measure"] == "perplexity")]
    assert row["figure"].tolist() == [2.5, 2.0, 7.0] and row["low"].isna().all()


def test_a_paper_and_this_study_are_each_set_against_their_own_baseline(found: dict[str, Study]) -> None:
    pieces = found["pieces"]
    table = studies.beside(pieces, 0).set_index("variant")
    here = pieces.variant("plain").figure(METRIC)
    test = studies.table(pieces, METRIC).set_index("variant").loc["better"]
    assert table.loc["better", ["change", "lowest", "highest"]].tolist() == pytest.approx(
        [100 * test[name] / here for name in ("difference", "lowest", "highest")]
    )
    assert table["published_change"].dropna().to_dict() == pytest.approx({"better": 20, "torn": -50})
    assert np.isnan(table.loc["plain", "change"]) and np.isnan(table.loc["level", "published"])
    grid = studies.beside_grid(pieces)
    assert list(grid.columns) == ["Variant", "Here, NDCG@10", "ML-\\<b\\>1M, NDCG@\u206010"]
    assert grid.iloc[0].tolist() == ["plain", f"baseline :small[({here:.4f})]", "baseline :small[(0.5000)]"]
    assert grid.iloc[1, 2] == "+20.0% :small[(0.6000)]" and grid.iloc[2, 2] == "–"
    assert "A & B 2018, table 4, among 100 negatives. Another log." in studies.beside_words(pieces)[1]
    assert studies.beside_words(found["width"]) == []


def test_other_figures_than_those_of_the_file_stand_beside_a_paper_s() -> None:
    variants = {key: [outcome([1, 2, 15], similarity=0.5)] for key in ("a", "b")}
    variants["b"][0]["steps"] = 3 * variants["b"][0]["steps"]
    tables = [
        published("Recall@20", beside="HR@20", a=0.1, b=0.2),
        published("training time", beside="seconds", a=60, b=600),
        published("code similarity", beside="similarity", a=0.1, b=0.2),
    ]
    written = study("made", variants, schema_version=2, published=tables, trained_users=True)
    both = Study.model_validate(json.loads(json.dumps(written)))
    grid = studies.beside_grid(both)
    assert [column.replace("\u2060", "").partition(",")[2].strip() for column in grid.columns[1:]] == [
        "HR@20", "Recall@20", "time", "training time", "Code similarity", "code similarity",
    ]  # fmt: skip
    changes = [cell.partition("%")[0] for cell in grid.iloc[1, 1:]]
    assert changes == ["0.0", "+100.0", "+200.0", "+900.0", "0.0", "+100.0"]
    assert "known by the vectors that they were trained with" in studies.judged_by(both)


# --- figures


def test_a_sweep_stands_in_order_and_its_default_is_marked(found: dict[str, Study]) -> None:
    table = studies.table(found["width"], METRIC)
    table["title"] = [f"<b>{title}</b>" for title in table["title"]]
    assert figures.sweep(table, METRIC, "width", (0, 1)).data[0].customdata[0][0] == "&lt;b&gt;1&lt;/b&gt;"
    table = studies.table(found["width"], METRIC)
    fig = figures.sweep(table, METRIC, "<b>width</b>", (0, 1))
    assert list(fig.layout.xaxis.ticktext) == ["1", "2", "4"]
    assert list(fig.data[0].marker.symbol) == ["circle", "diamond", "circle"]
    assert list(fig.data[0].y) == sorted(fig.data[0].y)
    assert "<b>" not in fig.to_json() and tuple(fig.layout.yaxis.range) == (0, 1)
    assert figures.PALE not in fig.data[0].marker.color  # both others differ


def test_panels_of_codes_have_the_scale_they_are_given_which_shows_everything_and_no_noise(
    found: dict[str, Study],
) -> None:
    names = ["perplexity", "lost"]
    frame = studies.measured(found["alpha"], names)
    reach = {"perplexity": (0.0, 9.0), "lost": (0.0, 1.0)}
    fig = figures.sweep_of_codes(frame, names, "α", 0.1, reach)
    assert tuple(fig.layout.yaxis.range) == (0, 9) and tuple(fig.layout.yaxis2.range) == (0, 1)
    seeds, mean = fig.data[0], fig.data[1]
    assert len(seeds.x) == 6 and list(mean.y) == [1.5, 2.0, 6.5]
    assert list(mean.marker.symbol) == ["circle", "diamond", "circle"]
    low, high = figures.reach([1.0, 2.0])
    assert low < 1 and high > 2
    low, high = figures.reach([0.500, 0.501])
    assert high - low > 0.05


def test_dots_stand_in_the_studys_order_and_a_paper_has_a_panel_and_a_scale_of_its_own(found: dict[str, Study]) -> None:
    pieces = found["pieces"]
    singles = {one.name: studies.by_seed(pieces, one.name, METRIC) for one in pieces.variants}
    fig = figures.differences(studies.table(pieces, METRIC), singles, METRIC, "<i>plain</i>")
    assert list(fig.layout.yaxis.ticktext) == ["better", "level", "torn"]
    dots = [trace for trace in fig.data if trace.error_x.array is not None]
    assert [dot.marker.color for dot in dots] == [figures.COLOUR, "rgba(0,0,0,0)", "rgba(0,0,0,0)"]
    assert "<i>" not in fig.to_json()
    assert fig.layout.xaxis.labelalias == {"+0.000": "0.000"}  # Plotly's format writes a sign before zero, too
    fig = figures.beside(studies.beside(found["pieces"], 0), "Here, NDCG@10", "ML-<b>1M, NDCG@10", True)
    here, paper = (trace for trace in fig.data if trace.mode == "markers")
    assert (here.xaxis, paper.xaxis) == ("x", "x2") and fig.layout.xaxis2.matches is None
    assert list(fig.layout.yaxis.ticktext) == ["better", "level", "torn"]
    assert list(here.marker.color) == [figures.COLOUR, "rgba(0,0,0,0)", "rgba(0,0,0,0)"]  # as the verdict has it
    assert list(paper.x[[0, 2]]) == pytest.approx([20, -50]) and np.isnan(paper.x[1])
    assert fig.layout.xaxis.labelalias == fig.layout.xaxis2.labelalias == {"+0 %": "0 %"}
    assert "<b>" not in fig.to_json()


# --- the page


@pytest.fixture
def opened(open_changed: Open) -> Open:
    def make(change: Callable[[Path], object] = toy_studies, section: str = "ablations") -> AppTest:
        return open_changed("metrics", change, section=section)

    return make


def test_the_page_shows_a_study_beside_its_papers_and_follows_the_metric(opened: Open) -> None:
    page = opened()
    assert not page.warning
    text = told(page)
    assert "<b>pieces" not in text + " ".join(heading.value for heading in page.subheader)
    assert "**better** (+" in text and "are not significantly different from it" in text
    assert "Paired over the same 400 users" in text and "Means of 2 seeds" in text
    assert next(table for table in page.table if "Verdict" in table.value.columns).value["Variant"].tolist() == [
        "plain", "better", "level", "torn",
    ]  # fmt: skip
    assert "Published figures" in [heading.value for heading in page.header]
    beside = next(table for table in page.table if "Here, NDCG@10" in table.value.columns)
    assert beside.value["Variant"].tolist() == ["plain", "better", "level", "torn"]
    run_without_fault(page.segmented_control(key="metrics_k").select("5"))
    table = next(table for table in page.table if "Verdict" in table.value.columns)
    assert "NDCG@5" in table.value.columns and "NDCG@5" in told(page)


def test_of_several_ablations_one_is_shown_and_the_address_says_which(opened: Open) -> None:
    def two(path: Path) -> None:
        toy_studies(path)
        write(path, study("others", {"a": [outcome([1.0] * 9)], "b": [outcome([2.0] * 9)]}, order=9))

    page = opened(two)
    assert page.header[0].value == "What \\<b\\>pieces\\</b\\> add"
    run_without_fault(page.segmented_control(key="metrics_study_of_2").select("others"))
    assert [heading.value for heading in page.header] == ["Study others"]
    assert page.query_params["study"] in ("others", ["others"])


def test_sweeps_have_a_section_of_their_own_and_alone_leave_none_of_ablations(opened: Open) -> None:
    def leave_sweeps(path: Path) -> None:
        toy_studies(path)
        (path / "studies" / "pieces.json").unlink()

    page = opened(leave_sweeps, section="sweeps")
    assert not page.warning and "Ablations" not in [tab.label for tab in page.tabs]
    assert len(page.get("plotly_chart")) == 2 and [heading.value for heading in page.header] == ["Of the tokenizer"]


def test_without_studies_it_says_how_to_make_one(opened: Open) -> None:
    page = opened(lambda path: None)
    assert "`seqscope study`" in told(page) and "Hyper-parameter sweeps" not in [tab.label for tab in page.tabs]


def test_one_of_other_data_is_not_shown_and_the_rest_is(opened: Open) -> None:
    def spoil(path: Path) -> None:
        toy_studies(path)
        write(path, study("stale", {"a": [outcome([1])], "b": [outcome([2])]}, fingerprint="cd" * 32))

    page = opened(spoil)
    (warning,) = page.warning
    assert "studies/stale.json" in warning.value.replace("\\", "") and "another dataset" in warning.value
    assert "**better** (+" in told(page)


def test_an_ablation_of_tokenizers_alone(opened: Open) -> None:
    variants = {"a": [outcome(None, perplexity=3.0)], "b": [outcome(None, perplexity=5.0)]}
    page = opened(lambda path: write(path, study("codes", variants)))
    frame = next(one.value for one in page.dataframe if "perplexity" in one.value.columns)
    assert frame["perplexity"].tolist() == [3.0, 5.0]
    assert "without ranking items for users" in told(page) and "by full ranking" not in told(page)
