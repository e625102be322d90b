"""report.json: what is written is read again to the letter, and nothing else is."""

import gc
import hashlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from app.reports import document, verify
from app.reports.document import PARTS, Report
from app.reports.parts.lists import bar, bars
from engine.errors import SeqscopeError
from engine.evaluation.metrics import names
from engine.runtime import Zoo


def test_everything_is_in_it_fits_the_schema_and_is_read_again_to_the_letter(
    report: Report, root: Path, models: Zoo
) -> None:
    content = document.write(report)
    again = document.read(content)
    assert again == report and document.write(again) == content
    assert document.seal(again) == again.seal == report.seal != ""
    schema = json.loads((root / "docs" / "report.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(document.write(report)), schema)
    assert report.asked.parts == list(PARTS) == [part.name for part, _ in report.content()]
    assert report.dataset.fingerprint == models.info.fingerprint
    assert {one.name: one.digest for one in report.models} == {n: b.digest for n, b in models.bundles.items()}
    assert report.program.packages["numpy"] and report.created == "2026-11-20T12:00:00+00:00"
    assert report.metrics is not None
    assert len(report.metrics.estimates) == len(names(report.metrics.protocol)) * len(report.models)


def test_threads_may_ask_for_the_schema_at_the_same_time() -> None:
    """As visitors do who take a zip away; the collector of a busy server lets another thread go on in the middle."""

    def collects(phase: str, info: object) -> None:
        time.sleep(0)

    thresholds = gc.get_threshold()
    gc.set_threshold(50)
    gc.callbacks.append(collects)
    document._schema.cache_clear()
    try:
        with ThreadPoolExecutor(4) as pool:
            answers = [pool.submit(document.schema) for _ in range(4)]
            assert len({answer.result() for answer in answers}) == 1
    finally:
        gc.callbacks.remove(collects)
        gc.set_threshold(*thresholds)


def changed(report: Report, **changes: Any) -> bytes:
    return json.dumps(json.loads(document.write(report)) | changes).encode()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not valid JSON"),
        (b"[1, 2]", "no report of Seqscope"),
        (b'{"format": "seqscope-report", "created": NaN}', "not valid JSON"),
        (b'{"format": "seqscope-report", "title": "\\ud800"}', "not valid JSON"),
        (b'{"format": "seqscope-report", "codes": [-9223372036854775808]}', "not valid JSON"),
        (b"[" * 100_000 + b"]" * 100_000, "nested deeper"),
        (b'{"format": "seqscope-report", "a": ' + b"[" * 100 + b"]" * 100 + b"}", "nested deeper"),
        (b'{"format": "seqscope-report"}', "damaged report: created"),
    ],
)
def test_what_is_no_report(content: bytes, words: str) -> None:
    with pytest.raises(SeqscopeError, match=words) as error:
        document.read(content, "r.json")
    assert str(error.value).startswith("r.json") and "\n" not in str(error.value)


@pytest.mark.parametrize("level", [{"size": 0}, {"size": 10**12}, {"used": -1}, {"counts": [-5, 3]}])
def test_a_level_of_codes_that_cannot_be_is_a_damaged_report(report: Report, level: dict[str, Any]) -> None:
    raw = json.loads(document.write(report))
    raw["codes"][0]["levels"][0] |= level
    with pytest.raises(SeqscopeError, match="damaged report: codes"):
        document.read(json.dumps(raw).encode())


def test_a_newer_one_is_not_guessed_at(report: Report) -> None:
    with pytest.raises(SeqscopeError, match=r"newer Seqscope \(report format 3; this one reads 2\)"):
        document.read(changed(report, schema_version=3, surprise={}))


@pytest.mark.usefixtures("asked_once")
def test_format_1_opens_and_keeps_its_seal_its_bars_and_what_they_mean(report: Report, models: Zoo) -> None:
    """It has no log-probabilities, no verdict, no summary, nor what written codes looked at, and a seal over what it has."""
    raw = json.loads(document.write(report)) | {"schema_version": 1}
    for one in raw["lists"]:
        for place, item in enumerate(one["items"]):
            item.update(share=0.5, strength=1 - place / 10)
    for one in raw["effects"]["models"]:
        one.pop("log_probability", None)
    for one in raw["attention"]:
        one.pop("written", None)
    raw["map"].pop("latents", None)
    del raw["metrics"]["verdict"], raw["summary"], raw["seal"]
    raw["seal"] = hashlib.sha256(json.dumps(raw, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    old = document.read(json.dumps(raw).encode())
    assert verify.broken(old) is None and all(one.holds for one in verify.verify(old, models))
    assert [bar(old.lists[0], item) for item in old.lists[0].items] == [1, 0.9, 0.8, 0.7, 0.6]  # type: ignore[index]
    assert "middle of the catalogue" in bars(old) and "probability" in bars(report)
    with pytest.raises(SeqscopeError, match="strength"):
        document.read(json.dumps(raw | {"schema_version": 2}).encode())


def with_layers(graph: dict[str, Any], **changes: Any) -> dict[str, Any]:
    first: dict[str, Any] = graph["models"][0]
    return first | {"layers": first["layers"] | changes}


@pytest.mark.parametrize(
    ("part", "change", "words"),
    [
        ("lists", lambda lists: [lists[0] | {"model": "nobody"}], "names the model nobody"),
        ("overlap", lambda overlap: overlap | {"rbo": [[1.0]]}, "not 6 by 6"),
        ("map", lambda one: one | {"y": []}, "different lengths"),
        ("map", lambda one: one | {"group": [99] * len(one["x"])}, "group without a name"),
        ("graph", lambda one: one | {"models": [one["models"][0] | {"model": "nobody"}]}, "names the model nobody"),
        ("graph", lambda one: one | {"models": [with_layers(one, adds=[[1.0, 2.0], [3.0]])]}, "do not fit each other"),
        ("graph", lambda one: one | {"models": [with_layers(one, adds=[[1.0]])]}, "ranks than layers"),
        ("attention", lambda seen: [seen[0] | {"last": []}], "weights than positions"),
        ("effects", lambda one: one | {"models": [one["models"][0] | {"effect": [1.0]}]}, "different lengths"),
        ("metrics", lambda one: one | {"beyond": []}, "lack a model"),
        ("models", lambda some: [some[0] | {"colour": "red;x"}], "colour"),
    ],
)
def test_what_does_not_belong_together_is_refused(report: Report, part: str, change: Any, words: str) -> None:
    raw = json.loads(document.write(report))
    raw[part] = change(raw[part])
    with pytest.raises(SeqscopeError, match=words) as error:
        document.read(json.dumps(raw).encode())
    assert "Value error" not in str(error.value)  # the validator's word, and no reader's
