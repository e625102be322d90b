"""A report holds against the models that made it, and does not once either was changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.reports import document, verify
from app.reports.build import build
from app.reports.document import PARTS, Asked, Report
from app.reports.part import TOLERANCE
from app.reports.parts.metrics import verdict
from engine.errors import SeqscopeError
from engine.runtime import Zoo
from tests.reports.conftest import HISTORY
from tests.runtime.bundles import seal


def tampered(report: Report, change: Callable[[dict[str, Any]], None]) -> Report:
    raw = json.loads(document.write(report))
    change(raw)
    return document.sealed(document.read(json.dumps(raw).encode()))  # by somebody who knows how seals are made


def wrong(report: Report, models: Zoo) -> dict[str, str]:
    return {one.what: one.words for one in verify.verify(report, models) if one.holds is not True}


def test_it_holds(report: Report, models: Zoo) -> None:
    found = list(verify.verify(report, models))
    assert all(one.holds for one in found), [one for one in found if not one.holds]
    whats = {one.what for one in found}
    assert {
        "list of Alpha",
        "with the edited history: Alpha",
        "overlap",
        "metrics",
        "map",
        "history",
        "codes of Rqvae",
    } <= {what.replace("RQ-VAE", "Rqvae").replace("rqvae", "Rqvae") for what in whats} or len(whats) > 30
    assert len([what for what in whats if what.startswith("list of ")]) == len(report.models)
    assert verify.broken(report) is None


def swap(raw: dict[str, Any]) -> None:
    items = raw["lists"][0]["items"]
    items[0], items[1] = items[1], items[0]


def other_item(raw: dict[str, Any]) -> None:
    raw["lists"][0]["items"][2]["item_id"] = "toy-39"


def score(raw: dict[str, Any]) -> None:
    raw["lists"][0]["items"][0]["score"] += 0.01


def shorter(raw: dict[str, Any]) -> None:
    raw["lists"][0]["items"].pop()


def title(raw: dict[str, Any]) -> None:
    raw["lists"][0]["items"][0]["title"] = "Buy this"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (swap, "place 1 was"),
        (other_item, "place 3 was “toy-39”, now it is “"),
        (score, "the same 5 items in the same order, but items 1.score was"),
        (shorter, "place 5 was “nothing”"),
        (title, "items 1.title was “Buy this”"),
    ],
)
def test_a_tampered_list_does_not_hold(
    report: Report, models: Zoo, change: Callable[[dict[str, Any]], None], words: str
) -> None:
    found = wrong(tampered(report, change), models)
    assert set(found) == {"list of Alpha"} and words in found["list of Alpha"]


def test_rounding_holds_and_more_does_not(report: Report, models: Zoo) -> None:
    def by(amount: float) -> dict[str, str]:
        return wrong(tampered(report, lambda raw: raw["lists"][0]["items"][0].update(score=first + amount)), models)

    first = (report.lists or [])[0].items[0].score
    assert by(0.5 * TOLERANCE) == {}
    assert by(3 * TOLERANCE * max(1, abs(first))) != {}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (
            lambda raw: raw["what_ifs"][0]["models"][0]["items"][0].update(before=5, after=5),
            "with the edited history: Alpha",
        ),
        (lambda raw: raw["overlap"]["shared"][0].__setitem__(1, 4), "overlap"),
        (lambda raw: raw["metrics"]["estimates"][0].update(mean=0.99), "metrics"),
        (lambda raw: raw["effects"]["models"][0]["effect"].__setitem__(0, 9.0), "effects of Alpha"),
        (lambda raw: raw["effects"]["models"][0]["log_probability"].__setitem__(0, 9.0), "effects of Alpha"),
        (lambda raw: raw["attention"][0]["last"].__setitem__(0, 0.9), "attention of Alpha"),
        (lambda raw: raw["codes"][0]["items"][0]["codes"].append(4), "codes of <b>LETTER</b>"),
        (lambda raw: raw["graph"]["models"][0]["branches"][0]["ends"][0].update(people=99), "paths of Alpha"),
        (lambda raw: raw["graph"]["models"][1]["layers"]["adds"][1].__setitem__(0, 9.0), "paths of Plain"),
        (lambda raw: raw["map"]["x"].__setitem__(0, 5.0), "map"),
        (lambda raw: raw["history"]["items"][8].update(title="Another"), "history"),
        (lambda raw: raw["summary"][2].update(text="Alpha is the best by far."), "summary"),
        (lambda raw: raw["summary"].pop(1), "summary"),
    ],
)
def test_every_part_is_asked_again(
    report: Report, models: Zoo, change: Callable[[dict[str, Any]], None], what: str
) -> None:
    assert list(wrong(tampered(report, change), models)) == [what]


def test_a_summary_of_before_still_holds(copied: Path) -> None:
    """It has no line on held-out items, and what to beware of behind what is best."""
    about = json.loads((copied / "dataset.json").read_text("utf-8"))
    about["held_out"] = {"ties": about["counts"]["test"], "repeats": 0}
    (copied / "dataset.json").write_text(json.dumps(about), "utf-8")
    models = Zoo.open(copied)
    report = build(models, Asked(parts=["metrics"]))

    def of(*abouts: str) -> Callable[[dict[str, Any]], None]:
        def change(raw: dict[str, Any]) -> None:
            lines = {line["about"]: line for line in raw["summary"]}
            raw["summary"] = [lines[about] for about in abouts]

        return change

    assert wrong(report, models) == {}
    assert wrong(tampered(report, of("Compared", "Best", "For whom", "Beware", "Check")), models) == {}
    assert list(wrong(tampered(report, of("Compared", "Best", "For whom", "Check")), models)) == ["summary"]


def test_a_report_of_before_does_not_say_whether_validation_had_settled(copied: Path) -> None:
    made = json.loads((copied / "alpha" / "manifest.json").read_text("utf-8"))["training"]
    seal(copied / "alpha", training=made | {"best_epoch": 1, "recipe": {"training": {"patience": 2}}})
    models = Zoo.open(copied)
    report = build(models, Asked(parts=["metrics"]))
    unsettled = {model.name: model.unsettled for model in report.models}
    assert unsettled == {model.name: model.name == "alpha" for model in report.models} and wrong(report, models) == {}

    def before(raw: dict[str, Any]) -> None:
        for model in raw["models"]:
            model.pop("unsettled", None)

    def of_beta(raw: dict[str, Any]) -> None:
        next(model for model in raw["models"] if model["name"] == "beta")["unsettled"] = True

    assert wrong(tampered(report, before), models) == {}
    assert list(wrong(tampered(report, of_beta), models)) == [f"model {report.titles['beta']}"]


def test_a_model_that_changed(report: Report, copied: Path) -> None:
    table = np.load(copied / "alpha" / "index.npy")
    np.save(copied / "alpha" / "index.npy", table[::-1].copy())
    seal(copied / "alpha")
    found = wrong(report, Zoo.open(copied))
    assert "its bundle is another one now" in found["model Alpha"] and "place 1 was" in found["list of Alpha"]
    assert "list of Gamma" not in found


def test_a_model_that_went(report: Report, copied: Path) -> None:
    for path in (copied / "plain").iterdir():
        path.unlink()
    (copied / "plain").rmdir()
    found = wrong(report, Zoo.open(copied))
    assert found["model Plain"] == "it is not here any more" and "list of Alpha" not in found


def test_another_dataset_is_refused(report: Report, copied: Path) -> None:
    with pytest.raises(SeqscopeError, match="No dataset of the fingerprint abababab"):
        verify.find(copied / "alpha", report.dataset.fingerprint)
    assert verify.find(copied, report.dataset.fingerprint) == copied
    assert verify.find(copied.parent, report.dataset.fingerprint) == copied
    other = tampered(report, lambda raw: raw["dataset"].update(fingerprint="0" * 64))
    with pytest.raises(SeqscopeError, match="another dataset"):
        list(verify.verify(other, Zoo.open(copied)))


def test_without_its_history_lists_cannot_be_asked(models: Zoo) -> None:
    made = build(models, Asked(history=HISTORY, parts=[part for part in PARTS if part != "history"]))
    found = list(verify.verify(made, models))
    assert [one.what for one in found if one.holds is None] == [
        "lists, what-ifs, effects, overlap, attention, codes, graph and map"
    ]
    assert [one.what for one in found if one.holds and not one.what.startswith("model ")] == [
        "dataset",
        "notes",
        "metrics",
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda raw: raw.update(history={"items": []}), "not asked for"),
        (lambda raw: raw["asked"].update(history=HISTORY), "yet tells it"),
        (lambda raw: raw["asked"].update(user="u1"), "an edit, a user or an address"),
        (lambda raw: raw.update(lists=None), "missing from the report"),
        (lambda raw: raw["asked"].update(parts=["metrics"]), "although it was not asked for"),
    ],
)
def test_a_history_cannot_be_half_there(models: Zoo, change: Callable[[dict[str, Any]], None], words: str) -> None:
    made = build(models, Asked(history=HISTORY, parts=[part for part in PARTS if part != "history"]))
    forged = tampered(made, change)
    assert any(words in one.words for one in verify.verify(forged, models) if one.holds is False)


def test_an_item_that_went_is_one_message(report: Report, models: Zoo) -> None:
    def change(raw: dict[str, Any]) -> None:
        raw["asked"]["history"][8] = "gone"

    with pytest.raises(SeqscopeError, match="has no item “gone”"):
        list(verify.verify(tampered(report, change), models))


def test_metrics_of_format_1_hold_under_the_protocol_that_they_name(copied: Path) -> None:
    ranks = pq.read_table(copied / "alpha" / "ranks.parquet")
    known = ranks.set_column(3, "protocol", pa.array(["full+user"] * 4)).set_column(4, "rank", pa.array([1.0, 2, 3, 4]))
    pq.write_table(pa.concat_tables([ranks, known]), copied / "alpha" / "ranks.parquet")
    seal(copied / "alpha")
    models = Zoo.open(copied)
    report = build(models, Asked(parts=["metrics"], models=["alpha", "beta"]))
    assert report.metrics is not None
    rows = {
        part: [one.model_copy(update={"users": False}) for one in getattr(report.metrics, part) if one.users]
        for part in ("estimates", "beyond")
    }
    metrics = report.metrics.model_copy(update={"protocol": "full+user", **rows})
    asked = report.asked.model_copy(update={"protocol": "full+user"})
    old = report.model_copy(update={"schema_version": 1, "asked": asked, "metrics": metrics})
    assert "metrics" not in wrong(old, models) and "NDCG@10" in verdict(metrics, old)
    halves = [one.model_copy(update={"mean": one.mean / 2}) for one in rows["estimates"]]
    forged = old.model_copy(update={"metrics": metrics.model_copy(update={"estimates": halves})})
    assert "metrics" in wrong(forged, models)
