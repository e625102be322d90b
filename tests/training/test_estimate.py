"""Estimates: what they are made of, that they leave nothing behind, and what they say of trainings that cannot begin.

Whether they are right is a matter of the machine: benchmarks/estimates.py compares them with real trainings.
"""

import itertools
import json
import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from app.jobs import estimate as asked
from engine.data.dataset import Dataset
from engine.data.prepare import fill_catalogue
from engine.errors import SeqscopeError, UsageError
from engine.registry import MODELS
from engine.training import estimate as module
from engine.training.estimate import estimate
from engine.training.run import train
from tests.training.tiny import recipe


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.05)


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is timed takes one second, however busy the machine is."""
    ticks = itertools.count()
    monkeypatch.setattr(module, "time", SimpleNamespace(**{**vars(time), "monotonic": lambda: float(next(ticks))}))


def files(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


@pytest.mark.parametrize("name", ["lightgcn", "recformer"])
def test_the_parts_of_an_estimate(dataset: Dataset, tmp_path: Path, steady: None, name: str) -> None:
    before = files(dataset.path)
    short, long = (
        estimate(recipe(name, training={"epochs": epochs, "patience": 5}), dataset, tmp_path / "run", device="cpu")
        for epochs in (2, 40)
    )
    assert short.steps >= 1 and short.step > 0 and short.at_most and short.done == 0
    parts = (short.start, short.train, short.validate, short.evaluate, short.export)
    assert min(parts) > 0 and short.seconds == pytest.approx(sum(parts))
    assert short.train >= short.epochs * short.steps * short.step
    assert (long.train, long.validate) == pytest.approx((20 * short.train, 20 * short.validate))
    assert files(dataset.path) == before and not (tmp_path / "run").exists()
    assert json.loads(json.dumps(long.to_dict()))["epochs"] == 40


def test_ranks_are_timed_as_they_are_taken(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Validation searches with a generator's own beam whatever the tree; a small tree is scored whole for the test."""
    widths: list[int | None] = []
    monkeypatch.setattr(module, "full_ranks", lambda *_, beam, **__: widths.append(beam))
    generator: Any = SimpleNamespace(walks=True, beam=20)
    for lists, width in ((False, 20), (True, None)):
        widths.clear()
        module._ranking(generator, dataset.cases("valid"), lists=lists)
        assert set(widths) == {width}


@pytest.mark.parametrize("name", ["markov", "tfidf"])
def test_what_only_counts(dataset: Dataset, tmp_path: Path, name: str) -> None:
    found = estimate(recipe(name), dataset, tmp_path, device="cpu")
    assert (found.epochs, found.steps, found.validate, found.at_most) == (0, 0, 0.0, False)
    assert found.train < found.start and found.export < found.start / 3  # no graph is traced for it


@pytest.mark.parametrize("name", ["ease", "item-knn", "counting"])
def test_a_search_on_validation_makes_no_more_fits(
    dataset: Dataset, tmp_path: Path, steady: None, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(module, "_ranking", lambda *_, **__: 0.0)
    once, search = (estimate(recipe(name, model={"search": s}), dataset, tmp_path, device="cpu") for s in (False, True))
    assert search.at_most and not once.at_most and once.train == 1
    kind: Any = MODELS[name]
    relation, fits = kind.relation, []
    monkeypatch.setattr(kind, "relation", lambda self, *given: fits.append(1) or relation(self, *given))
    train(recipe(name, model={"search": True}), dataset, tmp_path / "run", device="cpu")
    assert len(fits) <= search.train <= len(fits) + 5  # of how many settings the best was the last that was tried


def test_what_was_done_before_is_not_to_be_done_again(dataset: Dataset, tmp_path: Path, steady: None) -> None:
    longer = recipe("sasrec", training={"epochs": 6, "patience": 0})
    whole = estimate(longer, dataset, tmp_path / "none", device="cpu")
    train(recipe("sasrec", training={"epochs": 4, "patience": 0}), dataset, tmp_path / "run", device="cpu")
    rest = estimate(longer, dataset, tmp_path / "run", device="cpu")
    assert (whole.done, rest.done) == (0, 4) and not rest.at_most
    assert rest.train == pytest.approx(whole.train * 2 / 6)
    wider = recipe("sasrec", model={"dropout": 0.4}, training={"epochs": 6, "patience": 0})
    assert estimate(wider, dataset, tmp_path / "run", device="cpu").done == 0
    shorter = recipe("sasrec", training={"epochs": 3, "patience": 0})
    assert estimate(shorter, dataset, tmp_path / "run", device="cpu").done == 0
    (tmp_path / "run" / "checkpoint.safetensors").write_bytes(b"damaged")
    assert estimate(longer, dataset, tmp_path / "run", device="cpu").done == 0


def test_what_cannot_be_trained(dataset: Dataset, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    items = pa.table({"item_id": ["a", "b"], "title": ["A", "B"]})
    fill_catalogue(tmp_path / "shop", name="shop", title="Shop", source="x", licence="x", items=items)
    with pytest.raises(SeqscopeError, match="a catalogue without a log"):
        estimate(recipe("sasrec"), Dataset(tmp_path / "shop"), tmp_path, device="cpu")
    with pytest.raises(UsageError, match="learns nothing"):
        estimate(recipe("text-neighbours"), dataset, tmp_path, device="cpu")


# --- as the app asks


@pytest.fixture
def folder(dataset: Dataset, tmp_path: Path) -> Path:
    """A dataset's folder as jobs have it."""
    shutil.copytree(dataset.path, tmp_path / "data")
    return tmp_path


def test_the_app_asks_a_process_of_its_own(folder: Path) -> None:
    found = asked.estimate(folder, "markov", {"model.alpha": 0.5})
    assert found.seconds > 0 and found.validation == 0
    assert found is asked.estimate(folder, "markov", {"model.alpha": 0.5})  # it is kept
    assert asked.JobEstimate.model_validate_json(found.model_dump_json()) == found


def test_what_nobody_can_say(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "TIMEOUT", 0.5)
    program = tmp_path / "program"
    monkeypatch.setattr(asked.sys, "executable", str(program))
    answers = {
        "not said in a form": "#!/bin/sh\necho hello\n",
        "could not be found out within": "#!/bin/sh\nsleep 30\n",
        "no reason given": "#!/bin/sh\nexit 1\n",
        "No process could be started": "",
    }
    for number, (says, script) in enumerate(answers.items()):
        program.unlink(missing_ok=True)
        if script:
            program.write_text(script)
            program.chmod(0o700)
        with pytest.raises(SeqscopeError, match=says):
            asked.estimate(folder, "popularity", {"x.y": number})
