"""Runs: what they leave in their folder, what they refuse, and that nothing held out is ever learned from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.data.dataset import Dataset
from engine.errors import SeqscopeError
from engine.training import checkpoint
from engine.training.run import open_run, train
from tests.models.contract import MATCHING
from tests.training.tiny import RECIPES, cycles, interrupted, mixed, recipe, same, write_log

LEARNED = list(RECIPES)
SHORT = {"epochs": 2}


@pytest.fixture(scope="session")
def small_dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return write_log(tmp_path_factory.mktemp("small") / "data", cycles(40, 30), 30)


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


def test_what_a_run_holds(dataset: Dataset, run_of: Callable[[str], Path]) -> None:
    for name in MATCHING:
        folder = run_of(name)
        files = {path.name for path in folder.iterdir()} - {".lock"}
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


@pytest.mark.parametrize("name", LEARNED)
def test_one_seed_one_result(small_dataset: Dataset, tmp_path: Path, name: str) -> None:
    for folder, seed in (("one", 1), ("same", 1), ("other", 2)):
        torch.manual_seed(hash(folder) % 1000)  # what happened before does not matter
        train(recipe(name, training=SHORT | {"seed": seed}), small_dataset, tmp_path / folder, device="cpu")
    assert same(tmp_path / "one" / "best.safetensors", tmp_path / "same" / "best.safetensors")
    assert same(tmp_path / "one" / "checkpoint.safetensors", tmp_path / "same" / "checkpoint.safetensors")
    assert not same(tmp_path / "one" / "best.safetensors", tmp_path / "other" / "best.safetensors")


# --- nothing held out is learned from


@pytest.mark.parametrize("name", list(MATCHING))
def test_nothing_held_out_is_learned_from(tmp_path: Path, name: str) -> None:
    """Two datasets that differ in nothing but their validation and test items give one and the same model."""
    sequences = cycles(40, 30)
    rng = np.random.default_rng(0)
    poisoned = [[*s[:-2], *rng.integers(0, 30, 2).tolist()] for s in sequences]
    folders = []
    for which, log in (("true", sequences), ("poisoned", poisoned)):
        data = write_log(tmp_path / which / "data", log, 30, time_unit="second")
        train(recipe(name, training=SHORT if name in LEARNED else {}), data, tmp_path / which / "run", device="cpu")
        folders.append(tmp_path / which / "run")
    file = "checkpoint.safetensors" if name in LEARNED else "best.safetensors"
    assert same(folders[0] / file, folders[1] / file)
    losses = [[e["loss"] for e in json.loads((f / "run.json").read_text("utf-8"))["curve"]] for f in folders]
    assert losses[0] == losses[1]
    if name in LEARNED:  # the difference was there to be seen
        scores = [[e["valid_ndcg"] for e in json.loads((f / "run.json").read_text("utf-8"))["curve"]] for f in folders]
        assert scores[0] != scores[1]


def test_validation_is_ranked_as_evaluation_does(dataset: Dataset, run_of: Callable[[str], Path]) -> None:
    from engine.evaluation import metrics
    from engine.evaluation.ranks import full_ranks

    for name in LEARNED:
        model, _, record, _ = open_run(run_of(name))
        ranks = full_ranks(model, dataset.cases("valid"), trained_users=model.trained_users).ranks
        assert record["valid_ndcg"] == pytest.approx(metrics.accuracy(ranks)["NDCG@10"], abs=1e-6)


def test_validation_folds_people_in_where_a_recipe_says_so(small_dataset: Dataset, tmp_path: Path) -> None:
    from engine.evaluation import metrics
    from engine.evaluation.ranks import full_ranks

    settled = recipe("lightgcn", training=SHORT | {"valid_fold_in": True})
    record = train(settled, small_dataset, tmp_path / "run", device="cpu")
    model, *_ = open_run(tmp_path / "run")
    by_history, by_vector = (
        metrics.accuracy(full_ranks(model, small_dataset.cases("valid"), trained_users=trained).ranks)["NDCG@10"]
        for trained in (False, True)
    )
    assert record["valid_ndcg"] == pytest.approx(by_history, abs=1e-6) != pytest.approx(by_vector, abs=1e-6)


def test_validation_among_frozen_negatives(tmp_path: Path) -> None:
    data = write_log(tmp_path / "data", mixed(), 150)
    record = train(recipe("sasrec", training=SHORT | {"valid_protocol": "u100"}), data, tmp_path / "run", device="cpu")
    assert (tmp_path / "data" / "negatives-u100-valid.npy").exists()
    assert 0 < record["valid_ndcg"] < 1


def test_validation_of_some_users(dataset: Dataset, tmp_path: Path) -> None:
    values = set()
    for seed in (1, 2):
        record = train(
            recipe("sasrec", training=SHORT | {"valid_users": 5, "seed": seed}),
            dataset,
            tmp_path / str(seed),
            device="cpu",
        )
        values.add(record["valid_ndcg"])
    assert all(0 <= value <= 1 for value in values)


# --- what a folder refuses


def test_a_finished_run_is_left_as_it_is(small_dataset: Dataset, tmp_path: Path) -> None:
    train(recipe("sasrec", training=SHORT), small_dataset, tmp_path / "run", device="cpu")
    before = (tmp_path / "run" / "best.safetensors").read_bytes()
    record = train(recipe("sasrec", training=SHORT), small_dataset, tmp_path / "run", device="cpu")
    assert record["epochs"] == 2
    assert (tmp_path / "run" / "best.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    "other",
    [
        ("sasrec", {"training": {"epochs": 3}}),
        ("sasrec", {"optimiser": {"name": "adagrad"}}),
        ("attrec", {}),
        ("popularity", {}),
    ],
    ids=str,
)
def test_another_recipe_is_refused_and_nothing_is_lost(
    small_dataset: Dataset, tmp_path: Path, other: tuple[str, dict[str, dict[str, object]]]
) -> None:
    train(recipe("sasrec", training=SHORT), small_dataset, tmp_path, device="cpu")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(SeqscopeError, match=r"holds a training with other settings or other data.*--restart"):
        train(recipe(other[0], **other[1]), small_dataset, tmp_path, device="cpu")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_counting_model_is_not_replaced_either(small_dataset: Dataset, tmp_path: Path) -> None:
    train(recipe("popularity"), small_dataset, tmp_path, device="cpu")
    for name in ("markov", "sasrec"):
        with pytest.raises(SeqscopeError, match="other settings"):
            train(recipe(name), small_dataset, tmp_path, device="cpu")
    train(recipe("popularity"), small_dataset, tmp_path, device="cpu")


def test_other_data_are_refused(small_dataset: Dataset, tmp_path: Path) -> None:
    train(recipe("sasrec", training=SHORT), small_dataset, tmp_path / "run", device="cpu")
    other = write_log(tmp_path / "data", cycles(40, 30, seed=1), 30)
    with pytest.raises(SeqscopeError, match="other data"):
        train(recipe("sasrec", training=SHORT), other, tmp_path / "run", device="cpu")


def test_restart_replaces_a_run(small_dataset: Dataset, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(recipe("sasrec", training=SHORT), small_dataset, folder, device="cpu")
    (folder / "ranks.parquet").write_bytes(b"of the old one")
    record = train(recipe("attrec", training=SHORT), small_dataset, folder, device="cpu", restart=True)
    assert record["recipe"]["family"] == "attrec"
    assert not (folder / "ranks.parquet").exists()
    train(recipe("sasrec", training=SHORT), small_dataset, tmp_path / "new", device="cpu", restart=True)


def test_restart_mends_a_damaged_run(small_dataset: Dataset, tmp_path: Path) -> None:
    train(recipe("sasrec", training=SHORT), small_dataset, tmp_path / "run", device="cpu")
    (tmp_path / "run" / "checkpoint.safetensors").write_bytes(b"damaged")
    with pytest.raises(SeqscopeError, match=r"damaged.*--restart"):
        train(recipe("sasrec", training=SHORT), small_dataset, tmp_path / "run", device="cpu")
    assert (
        train(recipe("sasrec", training=SHORT), small_dataset, tmp_path / "run", device="cpu", restart=True)["epochs"]
        == 2
    )


def test_restart_throws_nothing_away_that_is_no_run(small_dataset: Dataset, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("irreplaceable")
    for folder in (tmp_path / "thesis", tmp_path, small_dataset.path):
        with pytest.raises(SeqscopeError, match="not a run"):
            train(recipe("popularity"), small_dataset, folder, device="cpu", restart=True)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "irreplaceable"
    assert (small_dataset.path / "dataset.json").exists()


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


def test_what_diverges_keeps_its_best(small_dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = recipe("sasrec", training={"epochs": 4})
    monkeypatch.setattr("engine.training.loop.learning_rate", lambda config, step, total: 0.001 if step < 5 else 1e30)
    with pytest.raises(
        SeqscopeError, match=r"(nan|inf|diverged).*best model so far \(epoch \d+\) is kept.*optimiser\.lr"
    ):
        train(settings, small_dataset, tmp_path / "run", device="cpu")
    assert checkpoint.read_state(tmp_path / "run" / "best.safetensors").best_epoch in (1, 2)
    train(settings, small_dataset, tmp_path / "run", device="cpu", finish=True)
    model, *_ = open_run(tmp_path / "run")
    assert all(torch.isfinite(p).all() for p in model.parameters())


# --- what cannot be trained on


def test_nobody_has_two_training_events(tmp_path: Path) -> None:
    data = write_log(tmp_path / "data", [[1, 2, 3], [2, 3, 1], [3], [1, 3, 2]], 4)
    in_order = [
        name for name in LEARNED if MATCHING[name].reads_order
    ]  # who took one item says something to the others
    for name in in_order:
        with pytest.raises(SeqscopeError, match="nothing to learn from"):
            train(recipe(name), data, tmp_path / name, device="cpu")
    for name in ("markov", "popularity"):
        train(recipe(name), data, tmp_path / name, device="cpu")


def test_the_smallest_log_that_can_be_trained_on(tmp_path: Path) -> None:
    data = write_log(tmp_path / "data", [[0, 1, 2, 3], [3], [0, 1], [2, 2, 2]], 4, time_unit="second")
    for name in MATCHING:
        train(recipe(name, training=SHORT if name in LEARNED else {}), data, tmp_path / name, device="cpu")
        open_run(tmp_path / name)


# --- opening


def test_what_is_no_finished_run(small_dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(SeqscopeError, match="no such folder"):
        open_run(tmp_path / "nothing")
    interrupted(recipe("sasrec", training={"epochs": 3}), small_dataset, tmp_path / "half", after=1)
    with pytest.raises(SeqscopeError, match="not finished"):
        open_run(tmp_path / "half")
    (tmp_path / "file").write_text("")
    with pytest.raises(SeqscopeError, match="file"):
        open_run(tmp_path / "file")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}", b'"text"', b"\xff\xfe", b'{"recipe": 3}', b'{"recipe": {"family": "sasrec", "model": {"dim": 0}}}',
     b'{"recipe": {"family": "sasrec"}, "dataset_path": "DATA"}'],
)  # fmt: skip
def test_a_record_that_cannot_be_used(small_dataset: Dataset, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.json").write_bytes(content.replace(b"DATA", str(small_dataset.path).encode()))
    with pytest.raises(SeqscopeError, match=r"run\.json cannot be used.*--restart") as fault:
        open_run(tmp_path)
    assert "\n" not in str(fault.value)


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


def test_a_run_without_its_model(small_dataset: Dataset, tmp_path: Path) -> None:
    train(recipe("popularity"), small_dataset, tmp_path, device="cpu")
    (tmp_path / "best.safetensors").unlink()
    with pytest.raises(SeqscopeError, match=r"best\.safetensors"):
        open_run(tmp_path)


def test_who_is_read_in_part_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_log(tmp_path / "data", [[*range(3 + length)] for length in (1, 2, 3, 4, 5)], 8)
    longest = {"model": {"max_length": 3}, "training": SHORT}
    train(recipe("sasrec", **longest), data, tmp_path / "sasrec", device="cpu")
    assert "3 of 5 users (60%) have more than 3 training events" in "".join(capsys.readouterr())
    train(recipe("popularity"), data, tmp_path / "popularity", device="cpu")
    assert "training events" not in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("histories", "reason"), [([[0, 1, 2, 3]], "two users"), ([[0, 1, 2], [0, 2, 1]], "two items")]
)
def test_a_log_without_a_graph_is_refused(tmp_path: Path, histories: list[list[int]], reason: str) -> None:
    with pytest.raises(SeqscopeError, match=reason):
        train(recipe("lightgcn"), write_log(tmp_path / "data", histories, 4), tmp_path / "run", device="cpu")
    assert not (tmp_path / "run" / "checkpoint.safetensors").exists()
