"""Trainings of several steps, with the engine's own commands: Recformer from what was carried over, TIGER from identifiers."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from app.jobs import estimate, kinds
from app.jobs.estimate import JobEstimate
from app.jobs.spec import Job, JobStep
from app.parts import data_train
from engine.cli import main
from engine.runtime import Zoo
from tests.jobs.test_engine import CarryOut, place  # noqa: F401  (a fixture)
from tests.training.tiny import text_encoder

LOG = ("user", "item", "time")
TINY = {"training.epochs": 2, "training.patience": 0, "training.precision": "float32", "training.valid_users": 50}


def lightened(step: JobStep) -> JobStep:
    """With a text encoder of next to no size, and fewer rounds."""
    words = {"words.encoder=auto": f"words.encoder={text_encoder()}", "training.epochs=1500": "training.epochs=2"}
    return step.model_copy(update={"words": tuple(words.get(word, word) for word in step.words)})


def lighter(job: Job, *only: str) -> Job:
    """only: the commands of the steps that are wanted."""
    steps = [lightened(step) for step in job.steps if not only or step.words[0] in only or step.program != "engine"]
    kept = {step.key for step in steps}
    steps = [one.model_copy(update={"needs": tuple(need for need in one.needs if need in kept)}) for one in steps]
    return job.model_copy(update={"steps": tuple(steps)})


@pytest.fixture
def estimated_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, which need not import torch again."""

    def tried(folder: Path, model: str, words: Sequence[str], look: Callable[[], None]) -> JobEstimate:
        command = ["train", model, "--dataset", "data", "--out", f"runs/{model}", *words, "--estimate"]
        with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as out:
            assert main(command) == 0
        return JobEstimate.model_validate_json(out.getvalue().splitlines()[-1])

    monkeypatch.setattr(estimate, "_tried", tried)


@pytest.mark.timeout(900)
def test_models_that_come_after_others(
    place: Path,  # noqa: F811
    tmp_path: Path,
    root: Path,
    carry_out: CarryOut,
    estimated_here: None,
) -> None:
    jobs = tmp_path / "jobs"
    source = root / "exports" / "sample" / "recformer"
    first = kinds.prepare("first", place, jobs, name="x", title="A shop", items=41, log=LOG, sources=[source])
    first = lighter(first, "data", "zero-shot", "tokenize")
    ended = carry_out(first)
    assert (ended.state, ended.notes) == ("done", ()), ended.message
    assert (place / "runs" / "rqvae" / "identifiers.json").is_file()

    tuned = data_train._tried(place, kinds.choose(place, "recformer-tuned", TINY))
    tiger = data_train._tried(place, kinds.choose(place, "tiger", {**TINY, "model.dim": 16, "model.beam": 5}))
    assert [one.epochs for one in (*tuned.estimates, *tiger.estimates)] == [2, 2, 2]
    assert tuned.estimates[0].export == 0 < tuned.estimates[1].export
    job = lighter(kinds.train("second", place, jobs, [tuned, tiger], name="x", title="A shop", log=LOG))
    assert job.timed
    ended = carry_out(job)
    assert (ended.state, ended.notes) == ("done", ()), (jobs / "second" / "log.txt").read_text()
    assert {part.state for part in ended.parts} == {"done"}
    for choice in (tuned.before, tuned, tiger):
        assert choice is not None and len(json.loads((place / choice.run / "curve.json").read_text())) == 2

    zoo = Zoo.open(place / "exports", warm=True)
    assert not zoo.refused and set(zoo.bundles) == {"recformer", "recformer-tuned", "tiger"}
    titles = {name: bundle.manifest.title for name, bundle in zoo.bundles.items()}
    assert titles["recformer-tuned"] == "Recformer, fine-tuned" and titles["tiger"] == "TIGER"
    for name in ("recformer-tuned", "tiger"):
        bundle = zoo.bundles[name]
        assert bundle.manifest.metrics["full"]["NDCG@10"] > 0 and bundle.ranks_table() is not None
        assert len(bundle.recommend_one([1, 2, 3], 5)[0]) == 5
        manifest = (place / "exports" / name / "manifest.json").read_text()
        assert str(tmp_path) not in manifest and str(root) not in manifest
    # what was not learned from the log is as it was carried over; the other has moved away from it
    tuned_rows, carried_rows = (zoo.bundles[name].index.table for name in ("recformer-tuned", "recformer"))
    assert tuned_rows.shape == carried_rows.shape and abs(tuned_rows - carried_rows).max() > 1e-4
