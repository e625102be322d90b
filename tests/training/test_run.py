"""Runs: what they leave in their folder, what they refuse, and that nothing held out is ever learned from."""

import json
import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from engine.cli import main
from engine.data.dataset import Dataset
from engine.errors import OtherRun, SeqscopeError
from engine.evaluation import metrics
from engine.evaluation.ranks import full_ranks
from engine.training import checkpoint
from engine.training.loop import Trainer
from engine.training.run import FILES, build_model, open_run, provenance, read_in_part, train, validation
from tests.models.contract import MATCHING
from tests.training.fixtures import RunOf
from tests.training.tiny import RECIPES, cycles, interrupted, mixed, recipe, same, write_log

LEARNED = list(RECIPES)
WAYS = list({(model.objective, model.needs): name for name, model in reversed(MATCHING.items())}.values())
"""One model of each objective with each need: how others are trained differs in nothing but their networks."""
SHORT = {"epochs": 2}
SASREC = recipe("sasrec", training=SHORT)


@pytest.fixture(scope="session")
def small_dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return write_log(tmp_path_factory.mktemp("small") / "data", cycles(40, 30), 30)


@pytest.fixture(scope="session")
def finished(small_dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of `SASREC` that no test may change."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    train(SASREC, small_dataset, folder, device="cpu")
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def test_the_command_of_a_run_can_be_pasted(small_dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["train", "fdsa", "--dataset", "my data/shop", "--set", 'model.fields=["title"]']
    monkeypatch.setattr("sys.argv", ["seqscope", *words])
    command = provenance({}, small_dataset, torch.device("cpu"))["command"]
    assert shlex.split(command) == ["seqscope", *words]


def test_a_run_keeps_the_words_that_it_was_trained_with(tmp_path: Path) -> None:
    """They are no part of the fingerprint: a title may be corrected."""
    of = recipe("fdsa", training={"epochs": 1})
    dataset = write_log(
        tmp_path / "data", cycles(40, 30), 30, titles=[f"{'Red' if n % 2 else 'Blue'} {n}" for n in range(30)]
    )
    train(of, dataset, tmp_path / "run", device="cpu")
    histories = torch.tensor([[1, 2, 3]])
    before = open_run(tmp_path / "run")[0].scores(histories)
    titles = [f"Green {n % 7}" for n in range(30)]
    shutil.rmtree(tmp_path / "data")
    other = write_log(tmp_path / "data", cycles(40, 30), 30, titles=titles)
    assert other.info.fingerprint == dataset.info.fingerprint
    assert torch.equal(open_run(tmp_path / "run")[0].scores(histories), before)


def test_who_may_be_asked_about_another_dataset_is_said(finished: Path, tmp_path: Path) -> None:
    other = write_log(tmp_path / "other", cycles(20, 10), 10)
    with pytest.raises(SeqscopeError, match="know items by their words"):
        open_run(finished, other.path, elsewhere=True)
    with pytest.raises(SeqscopeError, match=r"Train again\.$"):
        open_run(finished, other.path)


def test_what_a_run_holds(dataset: Dataset, run_of: RunOf) -> None:
    for name in WAYS:
        folder = run_of(name)
        files = {path.name for path in folder.iterdir()} - {".lock"}
        assert files <= FILES
        learned = {"checkpoint.safetensors", "curve.json"} if name in LEARNED else set()
        if "vectors" in MATCHING[name].needs:
            learned |= {"text_vectors.npy", "text_vectors.json"}
        if "attributes" in MATCHING[name].needs:
            learned |= {"attributes.json"}
        if "words" in MATCHING[name].needs:
            learned |= {"words.safetensors", "tokenizer.json"}
        assert (
            files
            == {"run.json", "best.safetensors", "ranks.parquet", "exposure.parquet", "metrics.json", "cost.json"}
            | learned
        )
        record = json.loads((folder / "run.json").read_text("utf-8"))
        assert record["fingerprint"] == dataset.info.fingerprint
        assert record["recipe"]["family"] == name
        assert record["device"]
        assert record["versions"].keys() >= {"torch", "numpy", "python", "seqscope"}
        model, used, _, data = open_run(folder)
        assert used == recipe(name)
        assert data.info == dataset.info
        assert not model.training
        assert record["parameters"] == sum(p.numel() for p in model.parameters())
        if name in LEARNED:
            assert [entry["epoch"] for entry in record["curve"]] == [1, 2, 3]
            best = max(record["curve"], key=lambda entry: entry["valid_ndcg"])
            assert (record["best_epoch"], record["valid_ndcg"]) == (best["epoch"], best["valid_ndcg"])
        else:
            assert (record["curve"], record["valid_ndcg"]) == ([], None)


def figures(folder: Path, key: str) -> list[float]:
    return [entry[key] for entry in json.loads((folder / "run.json").read_text("utf-8"))["curve"]]


@pytest.mark.parametrize("name", WAYS)
def test_a_model_follows_from_training_events_and_the_seed_alone(tmp_path: Path, name: str) -> None:
    """Datasets that differ in nothing but their validation and test items give one and the same model, to the last bit."""
    sequences, rng = cycles(40, 30), np.random.default_rng(0)
    poisoned = [[*s[:-2], *rng.integers(0, 30, 2).tolist()] for s in sequences]
    for which, log in (("true", sequences), ("poisoned", poisoned)):
        torch.manual_seed(len(which))  # what happened before does not matter
        data = write_log(tmp_path / f"{which}-data", log, 30, time_unit="second")
        train(recipe(name, training=SHORT if name in LEARNED else {}), data, tmp_path / which, device="cpu")
    true, altered = (tmp_path / which for which in ("true", "poisoned"))
    file = "checkpoint.safetensors" if name in LEARNED else "best.safetensors"
    assert same(true / file, altered / file)
    if name in LEARNED:
        assert figures(true, "loss") == figures(altered, "loss")
        assert figures(true, "valid_ndcg") != figures(altered, "valid_ndcg")  # the difference was there to be seen


def test_another_seed_gives_another_model(small_dataset: Dataset, finished: Path, tmp_path: Path) -> None:
    train(recipe("sasrec", training=SHORT | {"seed": 2}), small_dataset, tmp_path / "run", device="cpu")
    assert not same(finished / "best.safetensors", tmp_path / "run" / "best.safetensors")


# --- validation


def test_validation_is_ranked_as_evaluation_does(dataset: Dataset, run_of: RunOf) -> None:
    for name in ("sasrec", "attrec"):  # the second has vectors of its users
        model, _, record, _ = open_run(run_of(name))
        cases = dataset.cases("valid")
        learnt = (
            dataset.training.lengths[cases.users] > 1
        ) & model.trained_users  # of a single event no vector is learnt
        ranks = full_ranks(model, cases, trained_users=learnt).ranks
        assert record["valid_ndcg"] == pytest.approx(metrics.accuracy(ranks)["NDCG@10"], abs=1e-6)


def test_validation_folds_people_in_where_a_recipe_says_so(small_dataset: Dataset, tmp_path: Path) -> None:
    settled = recipe("lightgcn", training=SHORT | {"valid_fold_in": True})
    record = train(settled, small_dataset, tmp_path / "run", device="cpu")
    model, *_ = open_run(tmp_path / "run")
    by_history, by_vector = (
        metrics.accuracy(full_ranks(model, small_dataset.cases("valid"), trained_users=trained).ranks)["NDCG@10"]
        for trained in (False, True)
    )
    assert record["valid_ndcg"] == pytest.approx(by_history, abs=1e-6) != pytest.approx(by_vector, abs=1e-6)


def test_a_recipe_may_validate_some_users_alone_whom_the_seed_decides(dataset: Dataset) -> None:
    chosen = []
    for seed in (1, 1, 2):
        some = recipe("sasrec", training={"valid_users": 5, "seed": seed})
        validating = validation(some, dataset, build_model(some, dataset.num_items, dataset.num_users))
        assert validating is not None
        chosen.append(validating.cases.users.tolist())
    assert len(chosen[0]) == 5 and chosen[0] == chosen[1] != chosen[2]


@pytest.mark.parametrize("model", ["lightgcn", "bpr-mf"])
def test_a_user_with_too_many_items_is_named_without_a_word_of_graphs(
    model: str, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.models.graph.MOST_ITEMS", 2)
    names = pq.read_table(dataset.path / "users.parquet")["user_id"].to_pylist()
    with pytest.raises(SeqscopeError, match=r"user '.*' has") as refusal:
        train(recipe(model), dataset, tmp_path / "run", device="cpu")
    assert str(refusal.value).split("'")[1] in names and "graph" not in str(refusal.value)


def test_what_learns_from_pairs_says_nothing_of_graphs(
    dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(recipe("bpr-mf", training={"epochs": 1}), dataset, tmp_path / "run", device="cpu")
    assert "graph" not in capsys.readouterr().err


# --- what a folder refuses


def test_another_recipe_is_refused_and_nothing_is_lost(small_dataset: Dataset, run: Path) -> None:
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    for other in (recipe("sasrec", training={"epochs": 1}), recipe("popularity")):
        with pytest.raises(SeqscopeError, match=r"holds a training with other settings or other data.*--restart"):
            train(other, small_dataset, run, device="cpu")
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_a_finished_run_is_left_as_it_is_and_refuses_other_data(
    small_dataset: Dataset, run: Path, tmp_path: Path
) -> None:
    before = (run / "best.safetensors").read_bytes()
    assert train(SASREC, small_dataset, run, device="cpu")["epochs"] == 2
    other = write_log(tmp_path / "data", cycles(40, 30, seed=1), 30)
    with pytest.raises(SeqscopeError, match="other data"):
        train(SASREC, other, run, device="cpu")
    assert (run / "best.safetensors").read_bytes() == before


def test_a_finished_run_goes_on_naming_where_it_was_trained(small_dataset: Dataset, run: Path) -> None:
    record = json.loads((run / "run.json").read_text("utf-8"))
    there = {
        "device": "NVIDIA of another machine",
        "compute": record["compute"] | {"processor": "another"},
        "commit": "of then",
        "command": "seqscope of then",
        "started": "2020-01-01T00:00:00+00:00",
        "versions": {"torch": "1.0"},
    }
    (run / "run.json").write_text(json.dumps(record | there))
    assert train(SASREC, small_dataset, run, device="cpu") == record | there
    longer = recipe("sasrec", training={"epochs": 3})
    assert train(longer, small_dataset, run, device="cpu")["versions"] == record["versions"]


def test_restart_replaces_a_damaged_run_and_begins_where_there_is_none(
    small_dataset: Dataset, run: Path, tmp_path: Path
) -> None:
    (run / "checkpoint.safetensors").write_bytes(b"damaged")
    with pytest.raises(SeqscopeError, match=r"damaged.*--restart"):
        train(SASREC, small_dataset, run, device="cpu")
    (run / "ranks.parquet").write_bytes(b"of the old one")
    for folder in (run, tmp_path / "new"):
        record = train(recipe("popularity"), small_dataset, folder, device="cpu", restart=True)
        assert record["recipe"]["family"] == "popularity"
    assert not (run / "ranks.parquet").exists()


def test_a_training_whose_best_model_is_gone_does_not_pass_for_finished(small_dataset: Dataset, run: Path) -> None:
    (run / "best.safetensors").unlink()
    with pytest.raises(OtherRun, match=r"best\.safetensors is missing.*--restart"):
        train(SASREC, small_dataset, run, device="cpu")


def test_restart_other_goes_on_with_the_same_and_replaces_what_is_another_or_damaged(
    small_dataset: Dataset, tmp_path: Path
) -> None:
    command = ["train", "popularity", "--dataset", str(small_dataset.path), "--out", str(tmp_path / "run")]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "best.safetensors").write_bytes(b"damaged")
    for words, anew in ([], True), ([], False), (["--set", "training.seed=2"], True):
        (tmp_path / "run" / "ranks.parquet").touch()
        assert main([*command, "--restart-other", *words]) == 0
        assert (tmp_path / "run" / "ranks.parquet").exists() is not anew


def test_restart_throws_nothing_away_that_is_no_run(small_dataset: Dataset, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("irreplaceable")
    for folder in (tmp_path / "thesis", tmp_path, small_dataset.path):
        with pytest.raises(SeqscopeError, match="not a run"):
            train(recipe("popularity"), small_dataset, folder, device="cpu", restart=True)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "irreplaceable"
    assert (small_dataset.path / "dataset.json").exists()


@pytest.mark.parametrize("left", [("curve.json",), (".replaced/run.json", ".replaced/best.safetensors")], ids=" ".join)
def test_restart_begins_anew_where_it_was_interrupted_before_a_checkpoint(
    left: tuple[str, ...], small_dataset: Dataset, run: Path, tmp_path: Path
) -> None:
    for name in left:
        (tmp_path / "begun" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(run / Path(name).name, tmp_path / "begun" / name)
    train(recipe("popularity"), small_dataset, tmp_path / "begun", device="cpu", restart=True)
    assert {path.name for path in (tmp_path / "begun").iterdir()} == {".lock", "run.json", "best.safetensors"}


def test_a_training_that_keeps_copies_is_known_as_a_run_before_its_first_checkpoint(
    small_dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trainer, "run", Mock(side_effect=KeyboardInterrupt))
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            train(recipe("fdsa"), small_dataset, tmp_path / "run", device="cpu", restart=True)


def test_restart_replaces_figures_for_other_catalogues_too(small_dataset: Dataset, run: Path) -> None:
    (run / "elsewhere" / "mine").mkdir(parents=True)
    (run / "notes").mkdir()
    (run / "thesis.tex").write_text("irreplaceable")
    before = (run / "run.json").read_bytes()
    with pytest.raises(SeqscopeError, match="heads"):
        train(recipe("sasrec", model={"dim": 8, "heads": 3}), small_dataset, run, device="cpu", restart=True)
    assert (run / "run.json").read_bytes() == before and (run / "elsewhere").exists()
    train(recipe("popularity"), small_dataset, run, device="cpu", restart=True)
    assert not (run / "elsewhere").exists()
    assert (run / "notes").exists() and (run / "thesis.tex").exists()


# --- ending early


def test_finish_takes_the_best_so_far(small_dataset: Dataset, tmp_path: Path) -> None:
    settings = recipe("sasrec", training={"epochs": 4})
    with pytest.raises(SeqscopeError, match="nothing to finish"):
        train(settings, small_dataset, tmp_path / "run", device="cpu", finish=True)
    interrupted(settings, small_dataset, tmp_path / "run", after=2)
    record = train(settings, small_dataset, tmp_path / "run", device="cpu", finish=True)
    assert record["epochs"] == 2
    assert record["best_epoch"] in (1, 2)
    assert open_run(tmp_path / "run")[1] == settings
    assert train(settings, small_dataset, tmp_path / "run", device="cpu")["epochs"] == 2  # and it stays so


def test_finish_takes_no_model_that_the_checkpoint_does_not_tell_of(
    small_dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, save = recipe("sasrec", training={"epochs": 4}), Trainer._save

    def killed(trainer: Trainer) -> None:
        if trainer.state.epoch == 2:
            raise KeyboardInterrupt
        save(trainer)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Trainer, "_save", killed)
        train(settings, small_dataset, tmp_path / "run", device="cpu")
    assert checkpoint.read_state(tmp_path / "run" / "best.safetensors").best_epoch == 2
    with pytest.raises(SeqscopeError, match="without --finish"):
        train(settings, small_dataset, tmp_path / "run", device="cpu", finish=True)
    whole, record = (train(settings, small_dataset, tmp_path / name, device="cpu") for name in ("whole", "run"))
    assert (record["best_epoch"], record["valid_ndcg"]) == (whole["best_epoch"], whole["valid_ndcg"])


def test_more_epochs_go_on_where_a_finished_run_stopped(small_dataset: Dataset, run: Path, tmp_path: Path) -> None:
    longer = recipe("sasrec", training={"epochs": 4})
    (run / "ranks.parquet").write_bytes(b"of the shorter one")
    whole, record = (train(longer, small_dataset, folder, device="cpu") for folder in (tmp_path / "whole", run))
    assert figures(run, "loss") == figures(tmp_path / "whole", "loss")
    assert (record["epochs"], record["best_epoch"]) == (4, whole["best_epoch"])
    assert same(run / "best.safetensors", tmp_path / "whole" / "best.safetensors")
    assert not (run / "ranks.parquet").exists()


def test_more_epochs_begin_nothing_where_every_step_depends_on_their_number(
    small_dataset: Dataset, tmp_path: Path
) -> None:
    short, longer = (recipe("sasrec", training={"epochs": epochs}, optimiser={"decay": "linear"}) for epochs in (1, 2))
    train(short, small_dataset, tmp_path / "run", device="cpu")
    with pytest.raises(SeqscopeError, match="other settings"):
        train(longer, small_dataset, tmp_path / "run", device="cpu")


def test_more_epochs_forget_the_validation_that_the_last_epoch_alone_had(
    small_dataset: Dataset, tmp_path: Path
) -> None:
    """A training of more epochs has none there, and counts one less towards patience."""
    settings = {"patience": 2, "validate_every": 2}
    # a rate of next to nothing: no validation is better than the first
    short, longer = (
        recipe("sasrec", training=settings | {"epochs": epochs}, optimiser={"lr": 1e-12}) for epochs in (3, 9)
    )
    assert train(short, small_dataset, tmp_path / "run", device="cpu")["curve"][2]["valid_ndcg"] is not None
    whole, record = (train(longer, small_dataset, tmp_path / name, device="cpu") for name in ("whole", "run"))
    assert (record["epochs"], record["best_epoch"]) == (whole["epochs"], whole["best_epoch"]) == (6, 2)
    assert figures(tmp_path / "run", "valid_ndcg") == figures(tmp_path / "whole", "valid_ndcg")


def test_more_epochs_leave_a_training_that_settled_as_it_is(small_dataset: Dataset, tmp_path: Path) -> None:
    settings = {"patience": 1, "validate_every": 1}
    # a rate of next to nothing: no validation is better than the first
    short, longer = (
        recipe("sasrec", training=settings | {"epochs": epochs}, optimiser={"lr": 1e-12}) for epochs in (5, 9)
    )
    before = train(short, small_dataset, tmp_path / "run", device="cpu")
    assert before["epochs"] < 5
    (tmp_path / "run" / "ranks.parquet").write_bytes(b"of this very model")
    assert train(longer, small_dataset, tmp_path / "run", device="cpu")["epochs"] == before["epochs"]
    assert (tmp_path / "run" / "ranks.parquet").exists()


# --- what cannot be trained on


def test_nobody_has_two_training_events(tmp_path: Path) -> None:
    data = write_log(tmp_path / "data", [[1, 2, 3], [2, 3, 1], [3], [1, 3, 2]], 4)
    for name in WAYS:
        if name not in LEARNED or not MATCHING[name].reads_order:  # who took one item says something to the others
            continue
        with pytest.raises(SeqscopeError, match="nothing to learn from"):
            train(recipe(name), data, tmp_path / name, device="cpu")
    for name in ("markov", "popularity"):
        train(recipe(name), data, tmp_path / name, device="cpu")


@pytest.mark.parametrize("names", [WAYS, pytest.param(MATCHING, marks=pytest.mark.long)], ids=["ways", "all"])
def test_the_smallest_log_that_can_be_trained_on(tmp_path: Path, names: Iterable[str]) -> None:
    data = write_log(tmp_path / "data", [[0, 1, 2, 3], [3], [0, 1], [2, 2, 2]], 4, time_unit="second")
    for name in names:
        train(recipe(name, training={"epochs": 1} if name in LEARNED else {}), data, tmp_path / name, device="cpu")
        open_run(tmp_path / name)


# --- opening


def test_what_is_no_finished_run(small_dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(SeqscopeError, match="no such folder"):
        open_run(tmp_path / "nothing")
    with pytest.raises(SeqscopeError, match="it holds no training"):
        open_run(small_dataset.path)
    (tmp_path / "file").write_text("")
    with pytest.raises(SeqscopeError, match="file"):
        open_run(tmp_path / "file")
    train(recipe("popularity"), small_dataset, tmp_path / "run", device="cpu")
    (tmp_path / "run" / "best.safetensors").unlink()
    with pytest.raises(SeqscopeError, match=r"best\.safetensors"):
        open_run(tmp_path / "run")


def test_a_run_whose_data_moved_or_changed(tmp_path: Path) -> None:
    data = write_log(tmp_path / "data", cycles(40, 30), 30)
    train(recipe("popularity"), data, tmp_path / "run", device="cpu")
    (tmp_path / "data").rename(tmp_path / "moved")
    with pytest.raises(SeqscopeError, match="data"):
        open_run(tmp_path / "run")
    open_run(tmp_path / "run", tmp_path / "moved")
    write_log(tmp_path / "data", cycles(40, 30, seed=2), 30)
    with pytest.raises(SeqscopeError, match="other data"):
        open_run(tmp_path / "run")


def test_who_is_read_in_part_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_log(tmp_path / "data", [[*range(3 + length)] for length in (1, 2, 3, 4, 5)], 8)
    longest = {"model": {"max_length": 3}, "training": SHORT}
    train(recipe("sasrec", **longest), data, tmp_path / "sasrec", device="cpu")
    assert "3 of 5 users (60%) have more than 3 training events" in "".join(capsys.readouterr())
    train(recipe("popularity"), data, tmp_path / "popularity", device="cpu")
    assert "training events" not in "".join(capsys.readouterr())
    many = write_log(tmp_path / "many", [[*range(6)], *[[0, 1, 2]] * 299], 8)
    assert read_in_part(many, 3).startswith("1 of 300 users (<1%) has")


def test_what_validation_ranked_among_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "data", mixed(), 150)
    command = ["train", "fmc", "--dataset", "data", "--set", "training.epochs=1", "--set", "training.validate_every=1"]
    assert main(command) == 0
    assert "sampled" not in capsys.readouterr().out
    assert main([*command, "--set", "training.valid_protocol=u100", "--restart"]) == 0
    assert "among 100 sampled" in capsys.readouterr().out
