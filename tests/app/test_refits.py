"""Models that were fitted on validation events, too: named wherever they are, and never beside the figures of others."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.analysis import evaluation, floor, recommend
from app.analysis.model_card import shown
from app.reports import provenance
from app.reports.parts.metrics import measure
from app.screens.about.cards import model_card
from engine.runtime import Zoo
from tests.app.conftest import alone, run_without_fault, told
from tests.runtime.bundles import TOYS, as_refit, make_zoo

ALPHA = replace(TOYS[0], family="sasrec")
NAMES = ("alpha", "alpha-refit", "counts", "counts-refit")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    counts = replace(ALPHA, name="counts", family="popularity", seed=3)
    toys = (ALPHA, replace(ALPHA, name="alpha-refit"), counts, replace(counts, name="counts-refit"))
    path = make_zoo(tmp_path / "exports", toys)
    for name in ("alpha-refit", "counts-refit"):
        as_refit(path / name)
    return path


def test_no_figure_of_a_refit_stands_beside_another_models(path: Path) -> None:
    models = Zoo.open(path)
    assert not models.refused
    assert evaluation.protocols(models) == ["full", "full, refit"]
    for protocol, names in (("full", ["counts", "alpha"]), ("full, refit", ["counts-refit", "alpha-refit"])):
        assert list(evaluation.people(models, protocol)[0]) == names
        assert set(evaluation.standing(models, protocol, 10)["model"]) == set(names)
        assert set(evaluation.beyond(models, protocol, 10)["model"]) == set(names)
        weighed = evaluation.verdict(models, protocol, "NDCG@10")
        assert weighed is not None and weighed.neural is not None and weighed.untrained is not None
        assert [weighed.untrained.name, weighed.neural.name] == names
        report = measure(models, NAMES, protocol, 10)
        assert report is not None and {row.model for row in report.estimates} == set(names)
        assert set(report.absent) == set(NAMES) - set(names)
    assert "--refit" in floor.missing({}, "full, refit") and "--refit" not in floor.missing({}, "full")


def test_a_refit_is_named_as_one_and_shown_when_somebody_chooses_it(path: Path) -> None:
    models = Zoo.open(path)
    card = model_card(models.bundles["alpha-refit"])
    assert "Full ranking, refit" in card["Fitted on"] and "as validation had selected" in card["Trained"]
    assert "Fitted on" not in model_card(models.bundles["alpha"])
    notes = {name: recommend._note(models, name, 3) for name in NAMES}
    assert "refit" in notes["alpha-refit"] and "refit" not in notes["alpha"]
    assert [provenance.model(models, name).refit for name in NAMES] == [False, True, False, True]
    assert set(shown(models, None)) == {"alpha", "counts"}
    assert set(shown(models, ("alpha", "alpha-refit"))) == {"alpha", "alpha-refit"}
    for name in ("alpha", "counts"):
        del models.bundles[name]
    assert set(shown(models, None)) == {"alpha-refit", "counts-refit"}


def test_metrics_shows_them_under_a_protocol_of_their_own(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(path.parent))
    page = run_without_fault(alone("metrics", protocol="full, refit", section="runs"))
    assert "fitted on training and validation events" in told(page)
    assert "These runs had no validation" in told(page)
    (made,) = (table for table in page.table if "Model" in table.value)
    models = page.dataframe[0].value["Model"].tolist()
    assert len(models) == 2 and all("refit" in model for model in models)
    assert made.value["Fitted on"].tolist().count("training and validation") == 2
