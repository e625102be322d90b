"""Procedural data has the shape of a real log, exactly the asked size, and nothing real in it."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from engine import cli
from engine.data.dataset import Dataset
from engine.errors import UsageError
from engine.sample.procedural import SERIES, ProceduralStory, procedural_items, procedural_log

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]
STORY = ProceduralStory(items=3_000, events=200_000)


@pytest.fixture(scope="module")
def log() -> Arrays:
    return procedural_log(STORY, np.random.default_rng(0))


@pytest.mark.parametrize(("items", "events"), [(100, 5), (101, 24), (5_000, 12_345), (250, 9_999), (1_000_000, 50_000)])
def test_every_size_is_exact(items: int, events: int) -> None:
    story = ProceduralStory(items=items, events=events)
    user, item, timestamp = procedural_log(story, np.random.default_rng(1))
    lengths = np.bincount(user)
    assert len(item) == len(timestamp) == lengths.sum() == events
    assert story.min_events <= lengths.min() and lengths.max() <= story.longest
    assert item.min() >= 0 and item.max() < items
    assert len(np.unique(user.astype(np.int64) * items + item)) == events
    assert np.all(np.diff(timestamp)[np.diff(user) == 0] >= 0)
    assert timestamp.min() >= story.start
    assert timestamp.max() < story.start + story.days * 86_400


def test_popularity_is_a_power_law(log: Arrays) -> None:
    counts = np.sort(np.bincount(log[1], minlength=STORY.items))[::-1]
    assert counts[: STORY.items // 10].sum() > 0.4 * counts.sum()
    assert counts[0] < 0.02 * counts.sum()


def test_groups_last_and_series_go_on(log: Arrays) -> None:
    user, item, _ = log
    table = procedural_items(STORY)
    group = table["group"].to_numpy()
    order = table["series_order"].to_numpy(zero_copy_only=False)
    same = np.diff(user) == 0
    assert np.mean((group[item[1:]] == group[item[:-1]])[same]) > 0.6
    goes_on = same & (order[item[:-1]] < SERIES)
    onward = (order[item[1:]] == order[item[:-1]] + 1) & (group[item[1:]] == group[item[:-1]])
    assert 0.3 < np.mean(onward[goes_on]) < 0.6


def test_blocks_are_only_a_matter_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.sample.procedural.BLOCK", 100)
    ready: list[int] = []
    story = ProceduralStory(items=500, events=20_000)
    user, item, _ = procedural_log(story, np.random.default_rng(0), ready.append)
    assert ready == sorted(ready)
    assert ready[-1] == 20_000
    assert len(ready) == -(-(int(user[-1]) + 1) // 100)
    assert len(np.unique(user.astype(np.int64) * 500 + item)) == 20_000


def test_the_command_writes_a_dataset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "load"
    command = ["sample", "procedural", "--items", "1000", "--events", "20000", "--out", str(out)]
    assert cli.main(command) == 0
    dataset = Dataset(out)
    assert dataset.info.counts["events"] == 20_000
    assert dataset.num_items == 1_000
    assert dataset.info.simulated
    assert pq.read_table(out / "items.parquet").num_rows == 1_000
    assert cli.main(command) == 1
    assert "--overwrite" in capsys.readouterr().err
    assert cli.main([*command, "--overwrite"]) == 0
    assert Dataset(out).info.fingerprint == dataset.info.fingerprint


@pytest.mark.parametrize(("items", "events"), [(99, 500), (10**20, 500), (100, 10**20), (100, 0)])
def test_what_no_machine_holds_is_refused_before_anything_is_made(items: int, events: int) -> None:
    with pytest.raises(UsageError, match=r"at (least|most)"):
        ProceduralStory(items=items, events=events)
