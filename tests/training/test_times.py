"""Models that read when the items of a history were (HSTU with time bias, SASRec with periods): what the time decides is learnt,
when the target was has no say, figures with times stand apart, and nothing else changes."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from engine.data.dataset import Cases, Dataset, Role
from engine.data.ragged import Ragged
from engine.errors import SeqscopeError
from engine.evaluation import metrics
from engine.evaluation.evaluate import evaluate
from engine.evaluation.ranks import full_ranks, sampled_ranks
from engine.evaluation.run_verdict import main_protocol
from engine.export.bundle import export_run
from engine.models import NO_TIME, Recommender
from engine.models.hstu import HSTU
from engine.runtime import Zoo
from engine.training.estimate import estimate
from engine.training.materials import gather
from engine.training.objectives.sequences import NextItem, NextItemConfig
from engine.training.recipe import Recipe, load
from engine.training.run import open_run, train
from tests.training.tiny import recipe, write_log

HALF, READ, MINUTE, DAY, MONTH = 30, 4, 60, 86_400, 2_592_000


def planted(people: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """int64 [people, 7] items and times: four of the first half of the items, then that of the second that belongs to the one
    of them that was taken a day ago (those before it were a month ago, those after it minutes), then two of the first, held out.
    """
    rng = np.random.default_rng(seed)
    read, which, place = rng.integers(0, HALF, (people, READ)), rng.integers(0, READ - 1, people), np.arange(READ)
    ago = np.select([place < which[:, None], place == which[:, None]], [MONTH, DAY], MINUTE) + READ - place
    target, rest = HALF + read[np.arange(people), which], rng.integers(0, HALF, (people, 2))
    later = np.tile(MINUTE * np.arange(1, 4), (people, 1))
    return np.column_stack([read, target, rest]), 2 * MONTH + np.column_stack([-ago, later])


def timed(**training: int) -> Recipe:
    return recipe(
        "hstu", model={"time_bias": True}, objective={"loss": "cross-entropy", "shared_negatives": 0},
        training={"batch_size": 64, **training},
    )  # fmt: skip


def hits(model: Recommender, items: np.ndarray, times: np.ndarray, name: str) -> tuple[float, float]:
    """Of the item after the first READ, without and with when these were."""
    offsets = READ * np.arange(len(items) + 1)
    histories, moments = (Ragged(values[:, :READ].ravel(), offsets) for values in (items, times))
    cases = Cases.of(np.zeros(len(items), np.int32), histories, items[:, READ], moments)
    without, known = (
        metrics.accuracy(full_ranks(model, cases, with_times=timed).ranks)[name] for timed in (False, True)
    )
    return without, known


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """data, and an evaluated run."""
    folder = tmp_path_factory.mktemp("times")
    items, times = planted(300, 0)
    dataset = write_log(folder / "data", items.tolist(), 2 * HALF, time_unit="second", times=times.tolist())
    train(timed(epochs=80, validate_every=80), dataset, folder / "run", device="cpu")
    evaluate(open_run(folder / "run")[0], dataset, folder / "run", keep_history=True)
    return folder


def test_what_the_time_between_items_decides_is_learnt(trained: Path) -> None:
    """Without times each of three items may be the one: the best that can be is a third at the first place."""
    without, known = hits(open_run(trained / "run")[0], *planted(300, 1), "HR@1")  # other people
    assert without < 0.35 and known > 0.75


def test_what_is_taken_in_a_period_is_learnt(tmp_path: Path) -> None:
    """Six weeks with five items each: whatever was read, the next item is one of its week."""

    def drifting(seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        week = rng.integers(0, 6, (300, 1))
        items = np.column_stack([rng.integers(0, HALF, (300, READ)), HALF + 5 * week + rng.integers(0, 5, (300, 3))])
        return items, 7 * DAY * week + MINUTE * np.arange(READ + 3)

    items, times = drifting(0)
    dataset = write_log(tmp_path / "data", items.tolist(), 2 * HALF, time_unit="second", times=times.tolist())
    by_week = recipe("sasrec", model={"period": 7}, objective={"loss": "cross-entropy"}, training={"epochs": 40})
    train(by_week, dataset, tmp_path / "run", device="cpu")
    without, known = hits(open_run(tmp_path / "run")[0], *drifting(1), "HR@5")  # other people
    assert without < 0.35 and known > 0.75


def test_gaps_are_those_before_the_validation_items(tmp_path: Path) -> None:
    gaps = np.array([5, 1, 3]) * DAY
    times = np.column_stack([0 * gaps, 20 * DAY + 0 * gaps, 20 * DAY + gaps, 90 * DAY + 0 * gaps])
    dataset = write_log(tmp_path / "data", [[0, 1, 2, 3]] * 3, 4, time_unit="second", times=times.tolist())
    by_week = recipe("sasrec", model={"period": 7}, objective={"loss": "cross-entropy"})
    for fitted_on in (dataset, dataset.with_validation()):  # a refit's, too, of which nothing validates any more
        assert set(gather(by_week, fitted_on, tmp_path, None)["gaps"].value) == set(gaps)


def test_when_the_target_was_has_no_say(trained: Path) -> None:
    dataset, (model, *_) = Dataset(trained / "data"), open_run(trained / "run")

    def ranks(of: Dataset) -> list[np.ndarray]:
        return [full_ranks(model, of.cases("test"), with_times=known).ranks for known in (False, True)]

    def elsewhere(moved: np.ndarray) -> Dataset:
        """The dataset with some times (bool [events]) a year later."""
        other = Dataset(trained / "data")
        other.timestamps = other.timestamps + 12 * MONTH * moved
        return other

    without, known = ranks(dataset)
    assert not np.array_equal(without, known)
    assert all(map(np.array_equal, ranks(elsewhere(dataset.roles == Role.TEST)), (without, known)))
    first = np.zeros(len(dataset.roles), bool)
    first[dataset.events.offsets[:-1]] = True
    altered = ranks(elsewhere(~first))  # how long ago the first item was
    assert np.array_equal(altered[0], without) and not np.array_equal(altered[1], known)


def test_in_training_no_state_knows_when_its_target_was() -> None:
    config = HSTU.Config(dim=8, max_length=4, time_bias=True, without_times=0.5)
    items, offsets = torch.arange(60), torch.arange(0, 61, 3)
    times = np.arange(60) * DAY
    drawn = []
    for moved in (0, MONTH):
        moments = times.copy()
        moments[2::3] += moved  # of each person's last item, which is a target alone
        model = HSTU(config, 60, 20, torch.Generator().manual_seed(1), moments)
        what = NextItem(NextItemConfig(loss="cross-entropy"), model, items, offsets, 20)  # type: ignore[arg-type]
        drawn.append(what.draw(torch.arange(20), torch.Generator().manual_seed(2)))
    assert all(map(torch.equal, *drawn))
    inputs, _, seconds = drawn[0]
    without = (seconds == NO_TIME).all(1)
    assert 3 <= without.sum() <= 17  # about half of the sequences, and all of each
    assert torch.equal(seconds[~without], inputs[~without] * DAY)
    # a state reads no times but of the items up to it
    states = model.eval().hidden(inputs, times=seconds)
    seconds[:, 1] += MONTH
    assert torch.equal(model.hidden(inputs, times=seconds)[:, 0], states[:, 0])


def test_figures_with_times_stand_beside_those_without(trained: Path) -> None:
    model, *_, dataset = open_run(trained / "run")
    measured = json.loads((trained / "run" / "metrics.json").read_text("utf-8"))
    history_kept = {"full, history kept", "full, history kept+times"}
    assert set(measured) == {"full", "full+times", *history_kept} and main_protocol(measured) == "full"
    table = pq.read_table(trained / "run" / "ranks.parquet").to_pydict()
    names, ranks = np.array(table["protocol"]), np.array(table["rank"])
    for known, name in enumerate(("full", "full+times")):
        found = full_ranks(model, dataset.cases("test"), with_times=bool(known)).ranks
        np.testing.assert_array_equal(ranks[names == name], found.astype(np.float32))
    cases = dataset.cases("test")
    negatives = np.random.default_rng(1).permuted(np.tile(np.arange(2 * HALF), (len(cases), 1)), axis=1)[:, :9]
    few = [sampled_ranks(model, cases, negatives, with_times=known).ranks for known in (False, True)]
    assert not np.array_equal(*few) and max(map(np.max, few)) <= 10


@pytest.mark.long  # in films, hstu is such a bundle: tests/export/test_evaluator_from_docs.py
def test_a_bundle_answers_as_without_times(trained: Path, tmp_path: Path) -> None:
    model, *_, dataset = open_run(trained / "run")
    bundle = Zoo.open(export_run(trained / "run", tmp_path / "out").parent).bundles["run"]
    history = dataset.cases("test").history[0]
    with torch.no_grad():
        expected = model.scores(torch.from_numpy(history[None].astype(np.int64)))[0]
    np.testing.assert_allclose(bundle.scores(history.tolist()), expected, atol=1e-4)
    assert bundle.protocol == "full" and "full+times" in bundle.manifest.metrics


def test_a_log_without_times_is_refused_and_another_way_is_said(tmp_path: Path) -> None:
    items, _ = planted(20, 0)
    dataset = write_log(tmp_path / "data", items.tolist(), 2 * HALF)
    for ask in (train, estimate):
        with pytest.raises(
            SeqscopeError, match=r"does not say when its events were.*--time-column, or take hstu without"
        ):
            ask(timed(), dataset, tmp_path / "run")
    assert not (tmp_path / "run").exists() or not any((tmp_path / "run").iterdir())
    with pytest.raises(SeqscopeError, match="or take popularity"):
        gather(load("recent-popularity", "tiny", None, []), dataset, tmp_path / "run")
