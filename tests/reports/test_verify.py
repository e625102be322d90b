"""A report holds against the models that made it, and does not once either was changed."""

import copy
import functools
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from pydantic_core import to_json

from app.reports import document, parts, provenance, verify
from app.reports.build import build
from app.reports.document import PARTS, Asked, Report
from app.reports.fields import SummaryLine
from app.reports.part import TOLERANCE
from app.reports.parts import metrics
from app.reports.parts.metrics import verdict
from app.reports.summary import _signless, summary
from engine.bundle.manifest import ZERO_SHOT
from engine.errors import SeqscopeError
from engine.runtime import Zoo
from tests.reports.conftest import HISTORY, Change, tampered, with_user_vectors
from tests.runtime.bundles import describe, retrain, rewrite, seal

pytestmark = pytest.mark.usefixtures("asked_once")


def wrong(report: Report, models: Zoo) -> dict[str, str]:
    return {one.subject: one.words for one in verify.verify(report, models) if one.holds is not True}


def test_it_holds(report: Report, models: Zoo) -> None:
    found = list(verify.verify(report, models))
    assert all(one.holds for one in found), [one for one in found if not one.holds]
    whats = {one.subject for one in found}
    assert {"with the edited history: Alpha", "overlap", "metrics", "map", "history"} <= whats
    assert {f"list of {report.titles[one.name]}" for one in report.models} <= whats
    assert verify.broken(report) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda items: items.insert(0, items.pop(1)), "place 1 was"),
        (lambda items: items[0].update(score=9.0), "the same 5 items in the same order, but items 1.score was"),
        (lambda items: items.pop(), "place 5 was “nothing”"),
    ],
)
def test_what_became_of_a_list_is_told(
    report: Report, models: Zoo, change: Callable[[list[dict[str, Any]]], object], words: str
) -> None:
    claims = wrong(tampered(report, lambda raw: change(raw["lists"][0]["items"])), models)
    assert set(claims) == {"list of Alpha"} and words in claims["list of Alpha"]


def test_rounding_holds_and_more_does_not(report: Report, models: Zoo) -> None:
    def by(amount: float) -> dict[str, str]:
        return wrong(tampered(report, lambda raw: raw["lists"][0]["items"][0].update(score=first + amount)), models)

    first = (report.lists or [])[0].items[0].score
    assert by(0.5 * TOLERANCE) == {}
    assert by(3 * TOLERANCE * max(1, abs(first))) != {}


def test_a_summary_of_before_still_holds(copied: Path) -> None:
    """In five lines without held-out items, in six with a line on them, and in other words."""
    describe(copied, held_out={"ties": Zoo.open(copied).info.counts["test"], "repeats": 0})
    models = Zoo.open(copied)
    report = build(models, Asked(parts=["metrics"]))

    def told(*abouts: str) -> list[str]:
        """What does not hold of a report with these lines."""
        lines = {line.about: line for line in report.summary}
        return list(wrong(report.model_copy(update={"summary": [lines[about] for about in abouts]}), models))

    assert told("Compared", "Best", "For whom", "Beware", "Check") == []
    assert (
        told("Compared", "Best", "For whom", "Check")
        == told("Compared", "Beware", "Best", "For whom", "Check")
        == ["summary"]
    )
    assert report.metrics is not None
    assert "seqscope-hostile-2" not in report.stem  # the name of its folder, after which files were named
    older = [
        line.model_copy(update={"text": re.sub(r"seqscope-\S+-(?=\d{4}-)", "seqscope-hostile-", line.text)})
        for line in report.summary
    ]
    assert older != report.summary and wrong(report.model_copy(update={"summary": older}), models) == {}
    held_out = report.metrics.held_out[0]
    texts = {line.about: line.text.replace("−", "-") for line in report.summary} | {"Held-out items": held_out}
    texts["Compared"] = texts["Compared"].removesuffix(f" {held_out}").replace("“Full ranking”", "“full”")
    texts["Beware"] = texts["Beware"].replace("Metrics are of one seed per model:", "One seed per model:")
    texts["Check"] = texts["Check"].replace(f"{report.stem}.json", "report.json")
    note = "One seed per model: intervals are over people, not over trainings."
    notes = [note if text == metrics.PART.note else text for text in report.notes]
    assert note in notes and "“full”" in texts["Compared"] and "report.json" in texts["Check"]

    def told_before(**changes: str) -> list[str]:
        order = ("Compared", "Held-out items", "Beware", "Best", "For whom", "Check")
        lines = [SummaryLine(about=about, text=changes.get(about, texts[about])) for about in order]
        return list(wrong(report.model_copy(update={"summary": lines, "notes": notes}), models))

    assert told_before() == [] and told_before(Best="All are alike.") == ["summary"]


def test_of_before_are_shares_rounded_to_nothing_and_one_item_in_the_plural(copied: Path) -> None:
    counts = Zoo.open(copied).info.counts | {"test": 1_000}
    describe(copied, counts=counts, held_out={"ties": 1, "repeats": 998})
    models = Zoo.open(copied)
    report = build(models, Asked(parts=["metrics"]))
    raw = document.write(report).decode()
    assert raw.count(" 1 (<1%) shares ") == raw.count("998 (>99%)") == 2 and wrong(report, models) == {}
    plural = raw.replace("shares its time with the event before it", "share their time with the event before them")
    rounded = plural.replace("(<1%)", "(0%)").replace("(>99%)", "(100%)")
    for before in (plural, rounded):
        assert wrong(document.read(json.dumps(json.loads(before)).encode()), models) == {}


def test_among_equals_a_report_of_before_may_have_marked_another_one(copied: Path) -> None:
    for path in copied.glob("*/ranks.parquet"):
        rewrite(path, rank=[1.0] * 4)
        seal(path.parent)
    models = Zoo.open(copied)
    report = build(models, Asked(parts=["metrics"]))
    assert report.metrics is not None
    (best,) = (e for e in report.metrics.estimates if e.mark == "best" and e.metric == "NDCG@10")
    level = next(e for e in report.metrics.estimates if e.mark == "level" and e.metric == "NDCG@10")

    def holds(**changes: float) -> bool:
        """Whether the report does where the two have changed places."""
        swapped = {(e.model, e.metric): {"mark": o.mark, "p": o.p} for e, o in ((best, level), (level, best))}
        estimates = [
            e.model_copy(update=swapped[e.model, e.metric] | changes) if (e.model, e.metric) in swapped else e
            for e in report.metrics.estimates
        ]
        older = report.model_copy(update={"metrics": report.metrics.model_copy(update={"estimates": estimates})})
        return wrong(older.model_copy(update={"summary": summary(older)}), models) == {}

    assert holds() and not holds(mean=0.5)


def test_a_report_of_before_does_not_say_whether_validation_had_settled(copied: Path) -> None:
    for name in ("alpha", "gamma"):
        retrain(copied / name, best_epoch=1, recipe={"training": {"patience": 2}})
    models = Zoo.open(copied)
    report = build(models, Asked(parts=["metrics"]))
    unsettled = {model.name: model.unsettled for model in report.models}
    assert [name for name in unsettled if unsettled[name]] == ["alpha", "gamma"] and wrong(report, models) == {}

    def told(unsettled: dict[str, bool]) -> list[str]:
        """What does not hold of a report that says so of its models."""
        some = [model.model_copy(update={"unsettled": unsettled[model.name]}) for model in report.models]
        return list(wrong(report.model_copy(update={"models": some}), models))

    assert told(dict.fromkeys(unsettled, False)) == []
    assert told(unsettled | {"beta": True}) == [f"model {report.titles['beta']}"]
    assert "model Gamma" in told(unsettled | {"gamma": False})  # which says so of another one


def test_a_report_of_before_has_no_width_where_all_users_differ_alike(copied: Path) -> None:
    models = Zoo.open(copied)
    report = build(models, Asked(parts=["metrics"]))

    def of_before(end: float) -> dict[str, str]:
        def narrow(raw: dict[str, Any]) -> None:
            verdict = raw["metrics"]["verdict"]
            for entry in (verdict, *verdict["groups"]):
                assert entry["difference"] == 0 and entry["low"] == -entry["high"] < -0.5
                entry.update(low=-end, high=end)

        return wrong(tampered(report, narrow), models)

    assert "metrics" not in of_before(0.0) and "metrics" in of_before(0.1)


def test_a_report_of_before_has_its_models_in_the_order_of_their_manifests(copied: Path) -> None:
    seal(copied / "alpha", family="item-knn", order=1)  # the first there, and now among the last
    models = Zoo.open(copied)
    then = copy.copy(models)
    then.bundles = dict(sorted(models.bundles.items(), key=lambda entry: (entry[1].manifest.order, entry[0])))
    before = build(then, Asked(history=HISTORY, k=5))
    assert [entry.name for entry in before.models] == list(then.bundles) != list(models.bundles)
    assert wrong(before, models) == {}
    assert "models" in wrong(tampered(before, lambda raw: raw["models"].reverse()), models)


def test_a_model_that_changed_or_went(report: Report, copied: Path) -> None:
    shutil.rmtree(copied / "plain")
    gone = wrong(report, Zoo.open(copied))
    assert gone["model Plain"] == "it is not here any more" and "list of Alpha" not in gone
    table = np.load(copied / "alpha" / "index.npy")
    np.save(copied / "alpha" / "index.npy", table[::-1].copy())
    seal(copied / "alpha")
    found = wrong(report, Zoo.open(copied))
    assert "its bundle is another one now" in found["model Alpha"] and "place 1 was" in found["list of Alpha"]
    assert "list of Gamma" not in found


def test_of_several_exports_of_a_dataset_that_of_the_report_is_asked(report: Report, copied: Path) -> None:
    fewer = Path(shutil.copytree(copied, copied.with_name("a")))
    shutil.rmtree(fewer / "plain")
    assert verify.find(copied.parent, report) == copied


def test_another_dataset_or_an_item_that_went_is_one_message(report: Report, copied: Path, models: Zoo) -> None:
    with pytest.raises(SeqscopeError, match="No dataset of the fingerprint abababab"):
        verify.find(copied / "alpha", report)
    assert verify.find(copied, report) == copied
    assert verify.find(copied.parent, report) == copied
    other = tampered(report, lambda raw: raw["dataset"].update(fingerprint="0" * 64))
    with pytest.raises(SeqscopeError, match="another dataset"):
        list(verify.verify(other, Zoo.open(copied)))
    gone = tampered(report, lambda raw: raw["asked"]["history"].__setitem__(8, "gone"))
    with pytest.raises(SeqscopeError, match="has no item “gone”"):
        list(verify.verify(gone, models))


@pytest.fixture(scope="module")
def untold(models: Zoo) -> Report:
    """Of everything but the history."""
    return build(models, Asked(history=HISTORY, parts=[part for part in PARTS if part != "history"]))


def test_without_its_history_lists_cannot_be_asked(models: Zoo, untold: Report) -> None:
    found = list(verify.verify(untold, models))
    unasked = "lists, what-ifs, effects, overlap, attention, codes, graph and map"
    assert [one.subject for one in found if one.holds is None] == [unasked]
    holds = [one.subject for one in found if one.holds and not one.subject.startswith("model ")]
    assert holds == ["dataset", "notes", *(name for name, part in parts.PARTS.items() if not part.of_history)]


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
def test_a_history_cannot_be_half_there(untold: Report, models: Zoo, change: Change, words: str) -> None:
    assert any(words in one.words for one in verify.verify(tampered(untold, change), models) if one.holds is False)


def test_metrics_of_format_1_hold_under_the_protocol_that_they_name(copied: Path) -> None:
    with_user_vectors(copied / "alpha", [1.0, 2, 3, 4])
    models = Zoo.open(copied)
    report = build(models, Asked(parts=["metrics"], models=["alpha", "beta"]))
    assert report.metrics is not None
    rows = {
        part: [one.model_copy(update={"users": False}) for one in getattr(report.metrics, part) if one.users]
        for part in ("estimates", "beyond")
    }
    metrics = report.metrics.model_copy(update={"protocol": "full+user", "verdict": None, **rows})
    asked = report.asked.model_copy(update={"protocol": "full+user"})
    old = report.model_copy(update={"schema_version": 1, "asked": asked, "metrics": metrics, "summary": []})
    assert wrong(old, models) == {} and "NDCG@10" in str(old.metrics)
    later = old.model_copy(update={"metrics": metrics.model_copy(update={"verdict": report.metrics.verdict})})
    assert wrong(later, models) == {"metrics": "format 1 had no verdict"}
    assert list(wrong(old.model_copy(update={"summary": report.summary}), models)) == ["summary"]
    halves = [one.model_copy(update={"mean": one.mean / 2}) for one in rows["estimates"]]
    forged = old.model_copy(update={"metrics": metrics.model_copy(update={"estimates": halves})})
    assert "metrics" in wrong(forged, models)


def test_earlier_words_of_a_difference_that_could_be_chance_say_the_same() -> None:
    def said(best: str, for_whom: str) -> list[tuple[str, str]]:
        return _signless([SummaryLine(about="Best", text=best), SummaryLine(about="For whom", text=for_whom)])

    now = said(
        "A, one of 2, is not significantly different from B in NDCG@10 (0.3; 0.2).",
        "A is not significantly different in any group.",
    )
    assert now == said("A, one of 2, and B are level by NDCG@10 (0.3; 0.2).", "A is level in every group.")
    assert now != said("A, one of 2, and C are level by NDCG@10 (0.3; 0.2).", "A is level in every group.")
    groups = said("", "A is furthest ahead on rare items (0.1) and not significantly different on long histories.")
    assert groups == said("", "A is furthest ahead on rare items (0.1) and level on long histories.")


def test_a_model_that_never_saw_the_log_says_so_where_its_training_would_stand(report: Report) -> None:
    assert report.metrics is not None and report.metrics.verdict is not None
    assert report.metrics.verdict.neural is not None
    name = report.metrics.verdict.neural.name

    def carry(raw: dict[str, Any]) -> None:
        (entry,) = (entry for entry in raw["models"] if entry["name"] == name)
        entry["title"] += ZERO_SHOT

    carried = tampered(report, carry)
    assert carried.metrics is not None
    assert "was not trained on this dataset but on another dataset" in verdict(carried.metrics, carried)
    assert "not trained on this dataset" not in verdict(report.metrics, report)
    assert "zero-shot: not trained on this dataset" in str(provenance.blocks(carried))


# --- who forges a report and makes its seal anew is found out: every field is compared, or docs/report.md names it


Place = tuple[str | int, ...]


FREE = {
    "address", "program.version", "program.python", "program.platform", "program.packages", "models.provider", "asked.seed",
    "asked.slow", "asked.map", "asked.protocol", "codes", "metrics.verdict", "metrics.verdict.p", "summary",
}  # fmt: skip
"""What nobody can ask again, as docs/report.md says: of what was asked for, where what is there does not depend on it, or where
it only says in words what would be taken anyway; of the code tables, that one was left out where all were asked for; that there
was a verdict, its p or a summary, as reports of before have none. A time and a title of one's own are in the name of the file,
which the summary tells."""
TEXTS = (
    "mean", "rollout", "up", "down", "same", "new", "dropped", "best", "level", "edited", "nothing", "without-last", "swapped",
    "alpha", "beta", "gamma", "rqvae", "letter", "full", "toy-9", "toy-20", "#123456", "0" * 64, "★", "star", "dot", "",
    "2026-01-01T00:00:00+00:00",
)  # fmt: skip
"""So that some fits wherever only some texts do."""


def leaves(value: Any, path: Place = ()) -> Iterator[Place]:
    """Every place of a document, lists and objects among them."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from leaves(one, (*path, key))


def kind(path: Place) -> str:
    """lists.items.score"""
    return ".".join(str(step) for step in path if isinstance(step, str))


def others(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, max(0, value - 1)]
    if isinstance(value, float):
        return [value + 0.01 * max(1.0, abs(value)), None]
    if isinstance(value, str):
        return [f"{value}x", None]
    if isinstance(value, list):
        return [value[::-1], value[:-1], [*value, *value[-1:]], [], None]
    if value is None:
        return ["x", 1, 0.5, "alpha", "toy-9", "toy-20", [], ["toy-9"], ["alpha"], ["rqvae"], "u1", "full"]
    return [None]


def at(raw: Any, path: Place) -> Any:
    return functools.reduce(lambda value, step: value[step], path, raw)


def forged(raw: dict[str, Any], path: Place, other: Any) -> Report | None:
    """None where no reader takes it. A forger makes the seal anew; who verifies claims does not look at it."""
    holder, key = at(raw, path[:-1]), path[-1]
    value, holder[key] = holder[key], other
    content = to_json(raw)
    holder[key] = value
    try:  # as document.read does, but for depth and size, which no change here touches
        return Report.model_validate_json(content)
    except ValidationError:
        return None


def holds(report: Report, models: Zoo) -> bool:
    """As the command sees it."""
    try:
        return all(one.holds for one in verify.verify(report, models))
    except SeqscopeError:
        return False


def test_no_field_can_be_changed_unnoticed(report: Report, models: Zoo) -> None:
    """Of a report that is as short as one with every field can be: it is checked hundreds of times."""
    every = set(map(kind, leaves(json.loads(document.write(report)))))
    shorter = report.asked.model_copy(update={"history": HISTORY[:3], "edited": HISTORY[:2], "k": 2})
    report = build(models, shorter, address=report.address, at=report.created)
    assert holds(report, models)
    raw = json.loads(document.write(report))
    assert set(map(kind, leaves(raw))) == every
    seen, slipped, tried = set(), set(), Counter[str]()
    for path in leaves(raw):
        name = kind(path)
        if name in seen or tried[name] == 3 or name in ("", "seal", "format", "schema_version"):
            continue  # one of a kind stands for all, and three where readers refuse whatever it is changed to
        tried[name] += 1
        value = at(raw, path)
        made_of = [found for other in others(value) if (found := forged(raw, path, other)) is not None]
        if isinstance(value, str) and not made_of:
            made_of = [found for other in TEXTS if other != value and (found := forged(raw, path, other)) is not None]
        if any(one != report for one in made_of):
            seen.add(name)
        if any(one != report and holds(one, models) for one in made_of):
            slipped.add("program.packages" if name.startswith("program.packages.") else name)
    assert slipped == FREE
    assert {"lists.items.share", "models.title", "map.trustworthiness", "metrics.estimates.p", "dataset.items"} <= seen


def swapped(raw: dict[str, Any]) -> None:
    one, other = raw["models"][0], raw["models"][1]
    one["title"], other["title"] = other["title"], one["title"]


def only_asked_for_history(raw: dict[str, Any]) -> None:
    raw["asked"]["parts"] = ["history"]
    for one in raw["lists"]:
        one["items"].reverse()


def another_tokenizer(raw: dict[str, Any]) -> None:
    raw["codes"][0]["tokenizer"] = "nobodys"
    raw["codes"][0]["levels"] = []


def a_table_taken_out(raw: dict[str, Any]) -> None:
    raw["asked"]["codes"] = ["rqvae", "letter"]
    raw["codes"] = raw["codes"][:1]


@pytest.mark.parametrize(
    ("change", "what", "words"),
    [
        (only_asked_for_history, "lists", "although it was not asked for"),
        (only_asked_for_history, "list of Alpha", "place 1 was"),
        (swapped, "model Alpha", "title was “Alpha”"),
        (another_tokenizer, "codes of <b>LETTER</b>", "nothing here that it could be compared with"),
        (lambda raw: raw["asked"].update(models=[]), "models", "asked for were none"),
        (a_table_taken_out, "codes of RQVAE", "missing from the report"),
        (lambda raw: raw["lists"].pop(0), "list of Alpha", "missing from the report"),
        (lambda raw: raw["lists"].append(raw["lists"][0]), "list of Alpha", "twice"),
        (lambda raw: raw["lists"].reverse(), "lists", "another order"),
        (lambda raw: raw.update(overlap=None), "overlap", "missing from the report"),
        (lambda raw: raw["what_ifs"].pop(1), "without the last item", "missing from the report"),
        (lambda raw: raw["effects"]["models"][0]["log_probability"].__setitem__(0, 9.0), "effects of Alpha", "was"),
        (lambda raw: raw["graph"]["models"][1]["layers"]["adds"][1].__setitem__(0, 9.0), "paths of Plain", "was"),
        (lambda raw: raw["summary"][2].update(text="Alpha is the best by far."), "summary", "does not say"),
    ],
)
def test_forgeries_are_told_in_words(report: Report, models: Zoo, change: Change, what: str, words: str) -> None:
    made = tampered(report, change)
    assert made != report and verify.broken(made) is None
    broken = [(one.subject, one.words) for one in verify.verify(made, models) if one.holds is False]
    assert any(called == what and words in why for called, why in broken), broken


def test_a_code_table_that_was_left_out_is_told_and_a_time_that_is_none_refused(report: Report, models: Zoo) -> None:
    """Nobody can know whether its tokenizer was there when the report was made; the line on the dataset says so."""
    assert report.codes is not None
    claims = list(verify.verify(tampered(report, lambda raw: raw["codes"].pop()), models))
    assert all(one.holds for one in claims)
    assert f"says nothing of {report.codes[-1].tokenizer}: added since then, or left out" in claims[0].words
    for wrong in ("yesterday", "2026-11-20T12:00:00", ""):
        with pytest.raises(SeqscopeError, match="created is no time"):
            document.read(json.dumps({**json.loads(document.write(report)), "created": wrong}).encode())
