"""Where nothing validates, in a dataset or in a stage that teaches something else: training runs its epochs, keeps the last, and
claims no more than that."""

import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from engine.data.dataset import Dataset
from engine.data.split import SplitOptions
from engine.errors import SeqscopeError
from engine.models.s3rec import S3Rec
from engine.training import checkpoint
from engine.training.materials import gather
from engine.training.run import build_model, open_run, train
from tests.training.tiny import clusters, recipe, stopped, write_log

SETTINGS = {"epochs": 3, "patience": 1, "validate_every": 1}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    split = SplitOptions("users", held_out_users=(0, 30))
    return write_log(tmp_path_factory.mktemp("unvalidated") / "data", clusters(150), 60, split=split)


def test_the_last_epoch_is_kept(dataset: Dataset, tmp_path: Path) -> None:
    record = train(recipe("sasrec", training=SETTINGS), dataset, tmp_path / "run", device="cpu")
    assert (record["epochs"], record["best_epoch"]) == (3, 3)
    assert record["valid_ndcg"] is None and record["improving"] is None
    assert [entry["valid_ndcg"] for entry in record["curve"]] == [None] * 3
    last, _, _, _ = open_run(tmp_path / "run", dataset.path)
    best = {name: value.clone() for name, value in last.state_dict().items()}
    checkpoint.load(tmp_path / "run" / "checkpoint.safetensors", last, None)
    assert all(bool((best[name] == value).all()) for name, value in last.state_dict().items())


def test_what_is_finished_before_its_end_is_where_it_stood(dataset: Dataset, tmp_path: Path) -> None:
    unhurried = SETTINGS | {"epochs": 50, "checkpoint_seconds": 0.0}
    with stopped(lambda trainer: trainer.state.epoch == 2):
        train(recipe("sasrec", training=unhurried), dataset, tmp_path / "run", device="cpu")
    record = train(recipe("sasrec", training=unhurried), dataset, tmp_path / "run", device="cpu", finish=True)
    assert (record["epochs"], record["best_epoch"]) == (2, 2)
    assert open_run(tmp_path / "run", dataset.path)[0].num_items == dataset.num_items


def test_an_order_that_is_not_there_is_not_learned_from(tmp_path: Path) -> None:
    unordered = write_log(tmp_path / "data", clusters(50), 60, split=SplitOptions("users"), time_unit="none")
    with pytest.raises(SeqscopeError, match=r"markov learns from the order.*popularity"):
        train(recipe("markov"), unordered, tmp_path / "run", device="cpu")
    assert not (tmp_path / "run" / "run.json").exists()


def test_of_items_without_an_order_no_search_drops_the_first(tmp_path: Path) -> None:
    """Though validation is better by those that happen to stand last."""
    noise = torch.Generator().manual_seed(0)
    sets = [torch.randperm(60, generator=noise)[:20].tolist() + group for group in clusters(60)]
    unordered = write_log(
        tmp_path / "data", [list(dict.fromkeys(s)) for s in sets], 60, split=SplitOptions("users"), time_unit="none"
    )
    record = train(recipe("item-knn", model={"search": True}), unordered, tmp_path / "run", device="cpu")
    assert record["search"] and not any("max_length" in tried for tried in record["search"])
    assert open_run(tmp_path / "run")[0].max_length >= unordered.events.lengths.max()


def test_s3rec_is_tuned_from_what_it_was_pretrained_to(tmp_path: Path) -> None:
    """Items of a group have a word in common and come in any order: what belongs together lies together before anything is
    recommended."""
    group = torch.arange(60) // 10
    dataset = write_log(
        tmp_path / "data", clusters(150), 60, titles=[f"Item, part {number}" for number in group.tolist()]
    )
    tuned = recipe("s3rec", model={"start": "before"}, training=SETTINGS)
    with pytest.raises(SeqscopeError, match="seqscope train before"):
        train(tuned, dataset, tmp_path / "tuned", device="cpu")
    pretrained = recipe("s3rec", model={"pretrain": True}, training=SETTINGS | {"epochs": 10})
    record = train(pretrained, dataset, tmp_path / "before", device="cpu")
    assert (record["epochs"], record["best_epoch"], record["valid_ndcg"]) == (10, 10, None)
    model = build_model(tuned, 60, 150, gather(tuned, dataset, tmp_path / "tuned"))
    assert isinstance(model, S3Rec) and model.tasks is None
    rows = F.normalize(model.table[:60] - model.table[:60].mean(0), dim=1)
    alike, together = rows @ rows.T, group[:, None] == group
    assert alike[together].mean() > alike[~together].mean() + 0.1
    with pytest.raises(
        SeqscopeError, match=r"model.start does not fit: its items.weight is \(62, 16\), here \(62, 8\)"
    ):
        narrow = recipe("s3rec", model={"start": "before", "dim": 8}, training=SETTINGS)
        train(narrow, dataset, tmp_path / "narrow", device="cpu")
    # other data of as many items, whose numbers mean others
    other = write_log(tmp_path / "other", clusters(151), 60, titles=[f"Item {number}" for number in range(60)])
    with pytest.raises(SeqscopeError, match="other data"):
        train(tuned, other, tmp_path / "tuned", device="cpu")


def test_unisrec_is_tuned_from_another_dataset(dataset: Dataset, tmp_path: Path) -> None:
    """With the text encoder of its start; blocks and positions stay as they were."""
    before = write_log(tmp_path / "before" / "data", clusters(60), 60, name="before")
    pretrained = recipe("unisrec", model={"pretrain": True}, training=SETTINGS | {"epochs": 1})
    train(pretrained, before, tmp_path / "before" / "run", device="cpu")
    start = {"start": str(tmp_path / "before" / "run"), "ids": True}
    train(
        recipe("unisrec", model=start | {"encoder": "auto"}, training=SETTINGS), dataset, tmp_path / "run", device="cpu"
    )
    first, *_ = open_run(tmp_path / "before" / "run")
    tuned, *_ = open_run(tmp_path / "run")
    assert torch.equal(tuned.positions.weight, first.positions.weight)
    assert not torch.equal(tuned.adaptor.whitening, first.adaptor.whitening)
    about = tmp_path / "before" / "run" / "text_vectors.json"
    about.write_text(json.dumps(json.loads(about.read_text("utf-8")) | {"digest": "of another encoder"}))
    with pytest.raises(SeqscopeError, match=r"leave model\.encoder=auto"):
        train(recipe("unisrec", model=start), dataset, tmp_path / "other", device="cpu")
