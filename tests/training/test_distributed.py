"""Two processes train to what one trains to, and leave one run."""

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file

from engine.data.dataset import Dataset
from engine.errors import UsageError
from engine.training import checkpoint
from engine.training.distributed import joined
from engine.training.run import train
from tests.training.tiny import cycles, same, write_log
from tests.training.together import CUT, MODELS, SCRATCH, settings

ALONE = 17  # sequences: with batches of 8 the last batch has one, which two processes cannot share


@pytest.fixture(scope="module")
def both(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs of two processes in two/ and those of one in one/, of each model."""
    base = tmp_path_factory.mktemp("distributed")
    data = write_log(base / "data", cycles(ALONE, 30), 30)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "tests.training.together", str(data.path), str(base / "two")]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("tiny/sasrec 100%") == 2  # one of them speaks, of two trainings
    assert "FutureWarning" not in done.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.text.scratch.DEFAULT", SCRATCH)
        for name in MODELS:
            train(settings(name), Dataset(data.path), base / "one" / name, device="cpu")
    return base


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", MODELS)
def test_two_processes_train_as_one_and_leave_one_run(both: Path, name: str) -> None:
    one, two = (json.loads((both / which / name / "run.json").read_text("utf-8")) for which in ("one", "two"))
    assert len(one["curve"]) == len(two["curve"])
    for alone, shared in zip(one["curve"], two["curve"], strict=True):
        assert shared["loss"] == pytest.approx(alone["loss"], rel=1e-4)
        assert shared["step"] == alone["step"]
    assert one["best_epoch"] == two["best_epoch"]
    mine, theirs = (load_file(both / which / name / "best.safetensors") for which in ("one", "two"))
    for key in mine:
        if "key.bias" in key or "key__bias" in key:  # a softmax does not see it: rounding alone moves it
            continue
        torch.testing.assert_close(theirs[key], mine[key], atol=1e-3, rtol=1e-3)
    files = {path.name for path in (both / "two" / name).iterdir()}
    assert files == {path.name for path in (both / "one" / name).iterdir()}
    assert not any(file.endswith(".part") for file in files)


@pytest.mark.long
def test_two_processes_go_on_within_an_epoch_and_end_as_if_nothing_had_happened(both: Path) -> None:
    assert checkpoint.read_state(both / "two" / "left.safetensors").step == CUT
    for file in ("best.safetensors", "checkpoint.safetensors"):
        assert same(both / "two" / "sasrec" / file, both / "two" / "cut" / file)


# --- how processes are joined


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """What this process, the second of two, joins."""
    joins = Mock()
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    for name in ("barrier", "get_rank", "destroy_process_group"):
        monkeypatch.setattr(dist, name, Mock(return_value=1))
    monkeypatch.setattr(dist, "init_process_group", joins)
    return joins


def test_processes_wait_while_the_leader_validates_for_hours(group: Mock) -> None:
    with joined("cpu") as world:
        assert (world.rank, world.size, world.leads) == (1, 2, False)
    assert group.call_args.kwargs["timeout"] >= timedelta(days=1)


def test_more_processes_than_gpus_are_refused(group: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(UsageError, match="has 1"), joined("auto"):
        pass
    assert not group.called
