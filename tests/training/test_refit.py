"""Refits: the recipe that validation selected, trained once more on training and validation events, and kept apart."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from engine.cli import main
from engine.data.dataset import Dataset, Role
from engine.data.split import SplitOptions
from engine.errors import SeqscopeError
from engine.evaluation.evaluate import evaluate
from engine.export.bundle import export_run
from engine.runtime import Zoo
from engine.tokenizers import teacher
from engine.training import refit
from engine.training.recipe import Recipe
from engine.training.run import open_run, train
from tests.training.fixtures import RunOf
from tests.training.tiny import clusters, cycles, interrupted, mixed, recipe, same, write_log


def refitted(settings: Recipe, data: Dataset, run: Path) -> dict[str, object]:
    """The record of the refit of `run`, which is trained before where it is not there."""
    if not run.exists():
        train(settings, data, run, device="cpu")
    return train(settings, data, refit.folder_of(run), device="cpu", selection=refit.select(settings, data, run))


def same_model(one: Path, other: Path) -> bool:
    return same(one / "best.safetensors", other / "best.safetensors")


@pytest.fixture(scope="module")
def runs(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SASRec, validated and refit."""
    folder = tmp_path_factory.mktemp("runs")
    refitted(recipe("sasrec"), dataset, folder / "sasrec")
    return folder


# --- what it is fitted on

T, V, E, L, B = Role.TRAIN, Role.VALID, Role.TEST, Role.LATER, Role.BETWEEN


@pytest.mark.parametrize(
    ("kind", "roles", "refit_roles"),
    [
        ("leave-one-out", [T, T, V, E, T, T], [T, T, T, E, T, T]),
        ("given", [T, V, T, E, T, E], [T, T, T, E, T, E]),
        # the second user came in the validation period, and everything before the test period has happened
        ("time", [T, V, B, E, B, L], [T, T, T, E, T, L]),
        # the first user validates; the second one tests, and stays out of everybody's training
        ("users", [B, B, V, B, B, E], [T, T, T, B, B, E]),
    ],
)
def test_what_validation_held_back_trains_too(
    tmp_path: Path, kind: str, roles: list[Role], refit_roles: list[Role]
) -> None:
    first = 4 if kind != "users" else 3
    data = write_log(tmp_path / "data", [list(range(first)), list(range(first, 6))], 6)
    data.info = dataclasses.replace(data.info, split={"kind": kind})
    data.roles = np.array(roles, np.int8)
    before = data.cases("test"), data.popularity
    whole = data.with_validation()
    assert whole.roles.tolist() == refit_roles
    assert whole.popularity.tolist() == [int(role == T) for role in refit_roles]
    assert not whole.validates and not len(whole.cases("valid"))
    after = whole.cases("test")
    assert after.targets.tolist() == before[0].targets.tolist()
    assert after.history.values.tolist() == before[0].history.values.tolist()
    assert data.roles.tolist() == roles and data.popularity.tolist() == before[1].tolist()


def test_the_test_item_is_never_learnt_from(tmp_path: Path) -> None:
    """Logs that differ in test items alone give one refit, those that differ in validation items another one."""
    sequences, rng = cycles(40, 30), np.random.default_rng(0)
    folders = {}
    for poisoned in ("nothing", "test", "valid"):
        drawn = rng.integers(0, 30, len(sequences)).tolist()
        place = {"nothing": None, "test": -1, "valid": -2}[poisoned]
        log = [list(sequence) for sequence in sequences]
        for sequence, item in zip(log, drawn, strict=True):
            if place is not None:
                sequence[place] = item
        data = write_log(tmp_path / poisoned / "data", log, 30)
        refitted(recipe("lightgcn", training={"epochs": 1}), data, tmp_path / poisoned / "run")
        folders[poisoned] = tmp_path / poisoned / "run-refit"
    assert same_model(folders["nothing"], folders["test"])
    assert not same_model(folders["nothing"], folders["valid"])


def test_a_counting_model_is_fitted_on_both_and_its_bundle_says_so(dataset: Dataset, tmp_path: Path) -> None:
    record = refitted(recipe("popularity"), dataset, tmp_path / "popularity")
    before, after = (open_run(tmp_path / name) for name in ("popularity", "popularity-refit"))
    both = np.isin(dataset.roles, (Role.TRAIN, Role.VALID))
    expected = np.bincount(dataset.events.values[both], minlength=dataset.num_items)
    assert after[0].index().bias.tolist() == expected.tolist()
    assert (before[2]["fitted_on"], record["fitted_on"]) == ("training", "training and validation")
    assert after[3].popularity.tolist() == dataset.popularity.tolist()  # what figures are measured by stays
    for (model, *_), name in ((before, "popularity"), (after, "popularity-refit")):
        evaluate(model, dataset, tmp_path / name, refit=name != "popularity")
        export_run(tmp_path / name, tmp_path / "exports")
    bundles = Zoo.open(tmp_path / "exports").bundles
    assert {name: (bundle.manifest.title, bundle.protocol) for name, bundle in bundles.items()} == {
        "popularity": ("Popularity", "full"),
        "popularity-refit": ("Popularity, refit", "full, refit"),
    }
    measured = evaluate(
        after[0], dataset, tmp_path / "popularity-refit", protocols=["u100"], keep_history=True, refit=True
    )
    assert set(measured) == {"full, refit", "u100, refit", "full, history kept, refit"}
    evaluate(after[0], dataset, tmp_path / "popularity-refit")  # as if it were no refit
    with pytest.raises(SeqscopeError, match="fitted on training and validation events"):
        export_run(tmp_path / "popularity-refit", tmp_path / "exports")


# --- how long, and from where


def test_it_takes_the_epochs_of_the_best_model_and_validates_nothing(runs: Path) -> None:
    selecting, record = open_run(runs / "sasrec")[2], open_run(runs / "sasrec-refit")[2]
    assert record["epochs"] == record["best_epoch"] == selecting["best_epoch"] < selecting["epochs"]
    assert record["recipe"] == selecting["recipe"]
    assert record["valid_ndcg"] is None and record["improving"] is None
    assert [entry["valid_ndcg"] for entry in record["curve"]] == [None] * record["epochs"]
    assert not same_model(runs / "sasrec", runs / "sasrec-refit")


def test_its_learning_rates_are_those_of_the_whole_recipe(
    dataset: Dataset, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[tuple[int, int]] = []
    monkeypatch.setattr(
        "engine.training.loop.learning_rate", lambda config, step, total: steps.append((step, total)) or 0.01
    )
    selection = refit.select(recipe("sasrec"), dataset, runs / "sasrec")
    train(recipe("sasrec"), dataset, tmp_path / "run", device="cpu", selection=selection)
    (total,) = {total for _, total in steps}
    assert total * selection.epochs == len(steps) * recipe("sasrec").training.epochs


def test_an_interrupted_refit_goes_on(dataset: Dataset, runs: Path) -> None:
    selection = refit.select(recipe("sasrec"), dataset, runs / "sasrec")
    interrupted(recipe("sasrec"), dataset, runs / "cut", after=1, selection=selection)
    with pytest.raises(SeqscopeError, match="not finished"):
        open_run(runs / "cut")
    with pytest.raises(SeqscopeError, match="other settings"):  # without --refit it is another training
        train(recipe("sasrec"), dataset, runs / "cut", device="cpu")
    assert train(recipe("sasrec"), dataset, runs / "cut", device="cpu", selection=selection)["epochs"] == 2
    assert same_model(runs / "cut", runs / "sasrec-refit")


# --- what is refused


def test_a_run_that_selected_nothing_yet(dataset: Dataset, tmp_path: Path) -> None:
    settings = recipe("sasrec")
    with pytest.raises(SeqscopeError, match=r"selects them, .*run, is missing.*without --refit"):
        refit.select(settings, dataset, tmp_path / "run")
    (tmp_path / "run").mkdir()
    with pytest.raises(SeqscopeError, match="has not finished"):
        refit.select(settings, dataset, tmp_path / "run")
    (tmp_path / "run" / "run.json").write_text("[]")
    with pytest.raises(SeqscopeError, match="cannot be used"):
        refit.select(settings, dataset, tmp_path / "run")


def test_another_recipe_other_data_and_a_refit_of_a_refit(dataset: Dataset, runs: Path, tmp_path: Path) -> None:
    with pytest.raises(SeqscopeError, match=r"other settings \(model.dim 16 instead of 8\)"):
        refit.select(recipe("sasrec", model={"dim": 8}), dataset, runs / "sasrec")
    with pytest.raises(SeqscopeError, match="other data"):
        refit.select(recipe("sasrec"), write_log(tmp_path / "data", mixed(seed=5), 150), runs / "sasrec")
    with pytest.raises(SeqscopeError, match="a refit itself"):
        refit.select(recipe("sasrec"), dataset, runs / "sasrec-refit")


def test_where_nothing_was_held_out_for_validation_or_nothing_is_learnt(dataset: Dataset, tmp_path: Path) -> None:
    split = SplitOptions("users", held_out_users=(0, 10))
    data = write_log(tmp_path / "data", clusters(60), 60, split=split)
    for settings in (recipe("popularity"), recipe("sasrec")):
        with pytest.raises(SeqscopeError, match="holds nothing out for validation"):
            refit.select(settings, data, tmp_path / "run")
    data.info = dataclasses.replace(data.info, split={"kind": "given", "valid_share": 0.0})
    with pytest.raises(SeqscopeError, match=r"split given, with a valid_share of 0\)"):
        refit.select(recipe("popularity"), data, tmp_path / "run")
    with pytest.raises(SeqscopeError, match="learns nothing from a log"):
        refit.select(recipe("text-neighbours"), dataset, tmp_path / "run")


def test_what_kept_its_start_would_be_the_same_model(tmp_path: Path) -> None:
    data = write_log(tmp_path / "data", cycles(40, 30), 30)
    train(recipe("recformer", training={"epochs": 1}), data, tmp_path / "stage1", device="cpu")
    frozen = recipe(
        "recformer",
        model={"start": "stage1"},
        objective={"stage": "frozen"},
        optimiser={"lr": 1e-12},
        training={"epochs": 1},
    )
    with pytest.raises(SeqscopeError, match="best with no step of its own"):
        refitted(frozen, data, tmp_path / "recformer")


def test_nothing_learns_from_a_refit(dataset: Dataset, run_of: RunOf, runs: Path, tmp_path: Path) -> None:
    with pytest.raises(SeqscopeError, match="was fitted on validation events, too"):
        teacher.table(runs / "sasrec-refit", dataset)
    copy = shutil.copytree(run_of("recformer"), tmp_path / "recformer-refit")
    record = json.loads((copy / "run.json").read_text("utf-8"))
    (copy / "run.json").write_text(json.dumps(record | {"fitted_on": "training and validation"}), "utf-8")
    with pytest.raises(SeqscopeError, match="was fitted on validation events, too"):
        train(recipe("recformer", model={"start": "recformer-refit"}), dataset, tmp_path / "second", device="cpu")


# --- the command


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "data", mixed(), 150)
    command = ["train", "markov", "--dataset", "data"]
    assert main([*command, "--refit"]) == 1
    assert "runs/tiny/markov, is missing" in capsys.readouterr().err
    assert main(command) == 0
    assert main([*command, "--refit"]) == 0
    assert "runs/tiny/markov-refit: fitted on training and validation events" in capsys.readouterr().out
    assert main([*command, "--refit", "--finish"]) == 2
    assert main(["evaluate", "runs/tiny/markov-refit"]) == 0
    printed = capsys.readouterr().out
    assert "not to be compared" in printed and "full, refit\n" in printed
