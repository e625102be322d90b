"""A study says what is so: a variant that learns is better than one that does not, and the same again is the same."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from engine.cli import main
from engine.data.dataset import Dataset
from engine.data.split import SplitOptions
from engine.runtime import judge
from engine.runtime.bundle import Catalogue
from engine.runtime.studies import Study, read
from engine.studies import run
from engine.studies.run import carry_out
from tests.studies.plans import PLAN, PUBLISHED, RECIPES, SWEEP, plan
from tests.training.tiny import clusters, write_log

CHAIN = """
title = "A chain"
runs = ["teacher.toml", "codes.toml", "writer.toml"]
baseline = "few"
[set]
teacher = ["training.epochs=1"]
[[variants]]
name = "few"
title = "few codes"
[[variants]]
name = "many"
title = "many codes"
set.codes = ["tokenizer.codes=16"]
[[variants]]
name = "sharp"
title = "a lower temperature"
set.writer = ["objective.temperature=0.5"]
"""


GRAPH = """
family = "lightgcn"
model = { dim = 8, layers = 2 }
optimiser = { lr = 0.05 }
training = { epochs = 2, batch_size = 256, validate_every = 2, precision = "float32" }
"""
DEPTH = """
title = "Depth"
runs = ["graph.toml"]
[sweep]
title = "layers"
run = "graph"
setting = "model.layers"
values = [1, 2]
"""
PUBLISHED_OF_SETS = """
[[published]]
metric = "Recall@20"
dataset = "Gowalla"
protocol = "given split"
source = "A & B 2020"
differs = "Another log."
figures = { 1 = 0.1, 2 = 0.2 }
"""


@pytest.fixture(scope="module")
def study(circle: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """PLAN, carried out."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "teacher.toml").write_text(RECIPES["teacher"], "utf-8")
    text = PLAN.replace("teacher.toml", str(folder / "teacher.toml"))
    return carry_out(plan(folder, text), circle, folder / "runs", device="cpu", command="seqscope study")


def test_learning_is_better_and_the_same_is_the_same(study: Study, circle: Dataset) -> None:
    assert study.people == circle.info.counts["test"] and study.fingerprint == circle.info.fingerprint
    assert study.variant("learns").figure("HR@10") > 0.9 > 0.6 > study.variant("idle").figure("HR@10")
    learns, again, baseline = (
        np.mean([outcome.per_person("NDCG@10") for outcome in study.variant(name).outcomes], axis=0)
        for name in ("learns", "again", study.baseline)
    )
    difference = judge.paired(learns, baseline)
    assert difference.low > 0.2 and difference.p < 0.01
    assert np.array_equal(again, baseline)


def test_seeds_are_trainings_of_their_own(study: Study) -> None:
    for variant in study.variants:
        first, second = variant.outcomes
        assert (first.seed, second.seed) == (1, 2)
        assert [one.steps[0].recipe["training"]["seed"] for one in variant.outcomes] == [1, 2]
        assert first.ranks != second.ranks
        mean = (first.per_person("HR@10").mean() + second.per_person("HR@10").mean()) / 2
        assert variant.figure("HR@10") == pytest.approx(mean)


def test_what_a_step_says_of_itself(study: Study) -> None:
    (step,) = study.variant("learns").outcomes[0].steps
    assert step.run == "teacher" and step.epochs == 6 and step.device.endswith("1 thread") and step.seconds > 0
    assert (
        step.commands[0].startswith("seqscope train teacher --dataset") and "--set training.seed=1" in step.commands[0]
    )
    assert step.commands[1].startswith("seqscope evaluate ")
    assert step.recipe["model"]["dim"] == 16
    assert study.variant("idle").settings == {"teacher": ["optimiser.lr=1e-12"]}


def test_it_is_read_as_it_was_written(study: Study, tmp_path: Path) -> None:
    path = run.write_study(study, tmp_path)
    assert read(path, Catalogue("circle", study.fingerprint, 30)) == study
    lines = path.read_text("utf-8").splitlines()
    assert sum(line.lstrip().startswith('"ranks": [') for line in lines) == 6  # one line each
    assert not list(tmp_path.glob(".*"))


def test_what_papers_have_and_what_differs_goes_into_the_file(here: Path, circle: Dataset, tmp_path: Path) -> None:
    """And people who have a vector are asked for by it, where the plan says so."""
    text = PLAN.replace("[1, 2]", "[1]\ntrained_users = true").replace(
        'title = "the same again"\nset.teacher = ["optimiser.lr=1.0e-12"]',
        'title = "a vector of the user"\ndiffers = "Said without a figure."\nset.teacher = ["model.user_vector=true"]',
    )
    study = carry_out(plan(here, text + PUBLISHED), circle, here / "runs", device="cpu")
    assert study.schema_version == 2 and study.trained_users
    assert [entry.figures for entry in study.published] == [{"idle": 0.1, "learns": 0.5}]
    assert [variant.differs for variant in study.variants] == ["", "Said without a figure.", ""]
    assert read(run.write_study(study, tmp_path), Catalogue("circle", study.fingerprint, 30)) == study
    for variant, protocol in (("learns", "full"), ("again", "full+user")):
        folder = study.variant(variant).outcomes[0].steps[0].commands[1].rpartition(" ")[2]
        table = pq.read_table(Path(folder) / "ranks.parquet")
        names = table["protocol"].to_pylist()
        assert ("full+user" in names) == (variant == "again")
        ranks = [rank for rank, name in zip(table["rank"].to_pylist(), names, strict=True) if name == protocol]
        assert study.variant(variant).outcomes[0].ranks == [rank if rank <= 50 else 0 for rank in ranks]
    sweep = SWEEP + PUBLISHED.replace("idle =", "8 =").replace("learns =", "16 =").replace("NDCG@10", "perplexity")
    assert run.resolved(plan(here, sweep), circle, here / "runs").published[0].figures == {"8": 0.1, "16": 0.5}


def test_several_held_out_items_are_judged_by_their_own_metrics(here: Path) -> None:
    split = SplitOptions("users", held_out_users=(20, 40))
    dataset = write_log(here / "data" / "sets", clusters(120), 60, name="sets", split=split, time_unit="none")
    (here / "graph.toml").write_text(GRAPH, "utf-8")
    study = carry_out(plan(here, DEPTH + PUBLISHED_OF_SETS), dataset, here / "runs", device="cpu")
    assert (study.schema_version, study.protocol, study.people) == (3, "held-out users", 40)
    for variant in study.variants:
        folder = Path(variant.outcomes[0].steps[0].commands[1].rpartition(" ")[2])
        measured = json.loads((folder / "metrics.json").read_text("utf-8"))["held-out users"]
        assert variant.outcomes[0].figures.keys() == {"NDCG@20", "Recall@20"}
        for metric in ("NDCG@20", "Recall@20", "Recall@5"):
            assert variant.figure(metric) == pytest.approx(measured[metric], abs=1e-6)
    assert read(run.write_study(study, here), Catalogue("sets", study.fingerprint, 60)) == study


def test_settings_that_are_added_leave_runs_where_they_are(here: Path, circle: Dataset) -> None:
    """A run's name follows from what tells it from others, not from settings that are at a default of later."""
    small = plan(here, PLAN.replace("[1, 2]", "[1]"))
    named = run.resolved(small, circle, here / "runs").chains["learns", 1][0].folder.name
    changed = plan(here, PLAN.replace("[1, 2]", '[1]\nset.teacher = ["model.user_vector=false"]'))
    assert run.resolved(changed, circle, here / "runs").chains["learns", 1][0].folder.name == named


def test_a_chain_finds_what_came_before_and_shares_it(here: Path, circle: Dataset) -> None:
    found = carry_out(plan(here, CHAIN), circle, here / "runs", device="cpu")
    names = sorted(path.name.rpartition("-")[0] for path in (here / "runs").iterdir())
    assert names == ["codes", "codes", "teacher", "writer", "writer", "writer"]
    few, many, sharp = found.variants
    assert [step.run for step in few.outcomes[0].steps] == ["teacher", "codes", "writer"]
    written = {one.name: one.outcomes[0].steps[2].recipe["model"]["identifiers"] for one in found.variants}
    assert written["few"] == written["sharp"] != written["many"]  # names of folders, so that no path is kept
    assert (here / "runs" / written["few"] / "identifiers.parquet").exists() and "/" not in written["few"]
    assert sharp.outcomes[0].steps[1] == few.outcomes[0].steps[1]
    # the tokenizer's figures are there, against the SASRec of the chain
    assert few.figure("perplexity") < 8 < many.figure("perplexity") < 16
    report = json.loads((here / "runs" / written["few"] / "report.json").read_text("utf-8"))
    assert few.figure("similarity") == report["neighbours"]["shared_by_cosine"]
    assert few.figure("excess") == report["before"]["excess"]
    # ranks are those of the evaluation
    run = few.outcomes[0].steps[2].commands[1].rpartition(" ")[2]
    ranks = pq.read_table(Path(run) / "ranks.parquet")["rank"].to_numpy()
    assert few.outcomes[0].ranks == ranks.tolist()


def test_a_shared_tokenizer_is_judged_by_the_sasrec_of_each_chain(here: Path, circle: Dataset) -> None:
    text = CHAIN.partition("[[variants]]")[0].replace(', "writer.toml"]', "]").replace('"few"', '"short"')
    text += '[[variants]]\nname = "short"\ntitle = "short"\n'
    text += '[[variants]]\nname = "long"\ntitle = "long"\nset.teacher = ["training.epochs=6"]\n'
    outcome = carry_out(plan(here, text), circle, here / "runs", device="cpu")
    assert sorted(path.name.rpartition("-")[0] for path in (here / "runs").iterdir()) == ["codes", "teacher", "teacher"]
    assert outcome.variant("short").figure("expressed") != outcome.variant("long").figure("expressed")
    again = carry_out(plan(here, text), circle, here / "runs", device="cpu")
    assert again.model_copy(update={"created": outcome.created}) == outcome


def test_what_is_done_is_not_repeated_and_what_was_interrupted_goes_on(
    here: Path, circle: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[str] = []
    real = run.train

    def counted(recipe: Any, dataset: Dataset, folder: Path, **more: Any) -> Any:
        trained.append(folder.name)
        if len(trained) == 2:
            raise KeyboardInterrupt
        return real(recipe, dataset, folder, **more)

    monkeypatch.setattr(run, "train", counted)
    small = plan(here, PLAN.replace("[1, 2]", "[1]"))
    with pytest.raises(KeyboardInterrupt):
        carry_out(small, circle, here / "runs", device="cpu")
    found = carry_out(small, circle, here / "runs", device="cpu")
    idle, interrupted, learns = trained  # "again" is the run of "idle"
    assert idle != interrupted == learns
    again = carry_out(small, circle, here / "runs", device="cpu")
    assert len(trained) == 3
    assert again.model_copy(update={"created": found.created}) == found


def test_the_command_and_a_sweep_of_a_tokenizer_which_needs_no_people(
    here: Path, circle: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "mine.toml").write_text(SWEEP, "utf-8")
    exports = here / "exports" / "circle"
    words = ["study", "mine.toml", "--dataset", str(circle.path), "--to", str(exports), "--device", "cpu"]
    assert main(words) == 0
    out, path = capsys.readouterr().out, exports / "studies" / "mine.json"
    assert "mine: 4 (1 of 3), seed 1" in out and str(path) in out
    found = read(path, Catalogue("circle", circle.info.fingerprint, 30))
    assert found.command.startswith("seqscope study mine.toml --dataset")
    assert (here / "runs" / "circle" / "studies").is_dir()
    assert (found.people, found.baseline) == (None, "8")
    assert found.axis is not None and found.axis.setting == "tokenizer.codes"
    assert [variant.value for variant in found.variants] == [4, 8, 16]
    perplexities = [variant.figure("perplexity") for variant in found.variants]
    assert perplexities == sorted(perplexities)
    assert "NDCG@10" not in found.figures and all(one.outcomes[0].ranks is None for one in found.variants)
    # an export folder of other data would never show it
    info = (circle.path / "dataset.json").read_text("utf-8")
    (exports / "dataset.json").write_text(info.replace(circle.info.fingerprint, "0" * 64), "utf-8")
    assert main(words) == 2
    assert "is of other data" in capsys.readouterr().err
