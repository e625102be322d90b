"""How steps are computed: measured with a clock of the test's own, remembered, and kept by who goes on."""

import dataclasses
import json
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from engine.data.dataset import Dataset
from engine.training import checkpoint, compute
from engine.training.compute import Compute, Way, fastest, on_threads
from engine.training.run import train
from tests.training.tiny import check_apart, recipe, same, stopped, trainer

CPU = torch.device("cpu")
BOTH = ["float32", "bfloat16"]
Seconds = dict[tuple[str, int] | tuple[str, int, str], float]


class Machine:
    """What a step takes on a machine that is not this one: the clock goes on by as much as the table says."""

    def __init__(self, seconds: Seconds) -> None:
        self.seconds, self.now = seconds, 0.0
        self.tried: list[tuple[str, int] | tuple[str, int, str]] = []

    def step(self, way: Way) -> None:
        threads = torch.get_num_threads()
        self.tried.append((way.precision, way.threads, "apart") if way.apart else (way.precision, threads))
        assert not way.apart or threads == 1
        self.now += self.seconds[self.tried[-1]]

    def clock(self) -> float:
        return self.now


def test_a_gpu_is_taken_without_attention_whose_gradient_is_not_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    allowed = torch.backends.cuda.cudnn_sdp_enabled()
    try:
        torch.backends.cuda.enable_cudnn_sdp(True)
        assert compute.choose("auto").type == "cuda" and not torch.backends.cuda.cudnn_sdp_enabled()
    finally:
        torch.backends.cuda.enable_cudnn_sdp(allowed)


@pytest.mark.parametrize(
    ("float32", "bfloat16", "chosen"),
    [(0.112, 0.071, "bfloat16"), (0.092, 0.120, "float32"), (0.100, 0.095, "float32")],
    ids=["bfloat16 is faster", "bfloat16 is slower", "level"],
)
def test_what_is_faster_is_taken_and_float32_where_they_are_level(float32: float, bfloat16: float, chosen: str) -> None:
    machine = Machine({("float32", 1): float32, ("bfloat16", 1): bfloat16})
    found = fastest(BOTH, CPU, machine.step, machine.clock)
    assert (found.precision, found.threads) == (chosen, 1)
    assert found.milliseconds == {"float32, 1 thread": 1e3 * float32, "bfloat16, 1 thread": 1e3 * bfloat16}
    assert f"{chosen}, 1 thread: measured" in str(found) and f"{1e3 * float32:.1f} ms" in str(found)


@pytest.mark.parametrize(("one", "two", "threads"), [(0.009, 0.005, 2), (0.004, 0.004, 1), (0.1, 2.3, 1)], ids=str)
def test_threads_of_a_small_step(one: float, two: float, threads: int) -> None:
    machine = Machine({("float32", 1): one, ("float32", 2): two})
    with on_threads(2, CPU):
        found = fastest(["float32"], CPU, machine.step, machine.clock)
        assert torch.get_num_threads() == 2
    assert (found.threads, found.available) == (threads, 2)


def test_threads_compute_apart_where_they_may_and_that_is_as_fast() -> None:
    machine = Machine({("float32", 1): 0.009, ("float32", 4): 0.004, ("float32", 4, "apart"): 0.003})
    machine.seconds["float32", 2, "apart"] = 0.005
    with on_threads(4, CPU):
        fast = fastest(["float32"], CPU, machine.step, machine.clock, apart=True)
        machine.seconds["float32", 2, "apart"] = 0.0032
        fewer = fastest(["float32"], CPU, machine.step, machine.clock, apart=True)
    assert (fast.threads, fast.apart) == (4, True) and "float32, 4 threads apart" in str(fast)
    assert (fewer.threads, fewer.apart, fewer.available) == (2, True, 4)


def test_a_long_step_is_not_tried_on_one_thread() -> None:
    machine = Machine({("float32", 2): 3.0, ("bfloat16", 2): 2.0})
    with on_threads(2, CPU):
        assert fastest(BOTH, CPU, machine.step, machine.clock).precision == "bfloat16"
    assert ("float32", 1) not in machine.tried


def test_a_slow_first_time_decides_nothing() -> None:
    machine = Machine({("float32", 1): 0.4, ("bfloat16", 1): 0.5})

    def step(way: Way) -> None:
        machine.step(way)
        machine.now += 2.0 * (machine.tried.count((way.precision, 1)) == 1)

    assert fastest(BOTH, CPU, step, machine.clock).precision == "float32"


def test_where_there_is_one_way_nothing_is_measured() -> None:
    assert fastest(["float32"], CPU, pytest.fail, pytest.fail).milliseconds == {}


# --- in a training


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Both precisions can be had, and this test says what they take."""
    machine = Machine({("float32", 1): 0.2, ("bfloat16", 1): 0.1})
    monkeypatch.setattr(compute, "supported", lambda device: BOTH)
    monkeypatch.setattr(
        compute,
        "fastest",
        lambda names, device, step, clock, apart: fastest(names, device, machine.step, machine.clock),
    )
    yield machine


AUTO = recipe("sasrec", training={"precision": "auto", "epochs": 1})


def test_a_training_keeps_its_precision_on_another_machine(dataset: Dataset, tmp_path: Path, machine: Machine) -> None:
    one = trainer(AUTO, dataset, tmp_path)
    one.resume("mine")
    one.run()
    assert one.compute.precision == "bfloat16"
    machine.seconds |= {("float32", 2): 0.01, ("bfloat16", 2): 0.05}  # another machine, of two threads, fast in float32
    other = trainer(AUTO, dataset, tmp_path)
    other.resume("mine")
    with on_threads(2, CPU):
        other.choose_compute()
    assert (other.compute.precision, other.compute.threads) == ("bfloat16", 2)


def test_a_training_whose_threads_computed_apart_shares_where_they_may_not(
    dataset: Dataset, tmp_path: Path, machine: Machine
) -> None:
    one = trainer(AUTO, dataset, tmp_path)
    one.apart = False  # as where processes train together, whose gradients are averaged
    one.state.compute = dataclasses.asdict(Compute("float32", 2, 2, "measured", apart=True))
    machine.seconds["float32", 2] = 0.01
    with on_threads(2, CPU):
        one.choose_compute()
    assert (one.compute.precision, one.compute.apart) == ("float32", False)


def test_a_training_begun_before_this_was_measured_goes_on_in_bfloat16(
    dataset: Dataset, tmp_path: Path, machine: Machine
) -> None:
    machine.seconds["float32", 1] = 0.01
    one = trainer(AUTO, dataset, tmp_path)
    one.state.total_steps = 7
    one.choose_compute()
    assert one.compute.precision == "bfloat16"


@pytest.mark.parametrize("name", ["mult-vae", "recformer"])
def test_measuring_changes_nothing(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A training that measures, and ends up in float32, is to the last bit the one whose recipe says float32."""
    monkeypatch.setattr(compute, "supported", lambda device: BOTH)
    monkeypatch.setattr(compute, "LEVEL", float("inf"))  # all are as good: the plainest is taken
    settings = {"epochs": 1, "precision": "auto"}
    record = train(recipe(name, training=settings), dataset, tmp_path / "auto", device="cpu")
    train(recipe(name, training=settings | {"precision": "float32"}), dataset, tmp_path / "set", device="cpu")
    assert same(tmp_path / "auto" / "checkpoint.safetensors", tmp_path / "set" / "checkpoint.safetensors")
    assert record["compute"]["precision"] == "float32" and len(record["compute"]["milliseconds"]) == 2
    assert record["compute"]["processor"] in record["device"]
    chosen = checkpoint.read_state(tmp_path / "auto" / "checkpoint.safetensors").compute
    assert record["compute"] == {**chosen, "processor": record["compute"]["processor"]}
    assert json.loads((tmp_path / "set" / "run.json").read_text("utf-8"))["compute"]["milliseconds"] == {}


def test_the_precision_reaches_the_products(dataset: Dataset, tmp_path: Path, machine: Machine) -> None:
    """bfloat16 gives another model than float32, near it."""
    found = {}
    for name in BOTH:
        wanted = recipe("sasrec", training={"precision": name, "epochs": 1})
        record = train(wanted, dataset, tmp_path / name, device="cpu")
        found[name] = record["curve"][0]["loss"]
    assert found["float32"] != found["bfloat16"] == pytest.approx(found["float32"], rel=0.02)
    assert machine.tried == []  # what a recipe says is not measured


# --- in which memory


ALLOCATING = """
import resource
from engine.machine import keep_memory
def step():
    alive = []
    for _ in range(12):
        alive = [*alive[-3:], b"x" * 40_000_000]
def pages():
    for _ in range(5):
        step()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(pages())
keep_memory()
print(pages())
"""


@pytest.mark.long
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library keeps memory as it likes")
def test_a_step_has_the_memory_of_the_step_before() -> None:
    found = subprocess.run([sys.executable, "-c", ALLOCATING], capture_output=True, check=True).stdout
    given_back, kept = map(int, found.split())
    assert kept < given_back / 10


@pytest.mark.parametrize("name", ["sasrec", "narm", "esasrec", "hstu", "bert4rec", "fdsa"])
def test_threads_apart_have_the_gradient_of_the_batch(dataset: Dataset, tmp_path: Path, name: str) -> None:
    check_apart(trainer(recipe(name), dataset, tmp_path))


def test_a_training_whose_threads_compute_apart_goes_on_to_the_same_end(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compute, "fastest", lambda *_: Compute("float32", 2, 2, "measured", apart=True))
    with on_threads(2, CPU):
        train(AUTO, dataset, tmp_path / "whole", device="cpu")
        steps = iter([False] * 2)
        with stopped(lambda _: next(steps, True)):
            train(AUTO, dataset, tmp_path / "cut", device="cpu")
        record = train(AUTO, dataset, tmp_path / "cut", device="cpu")
    assert record["compute"]["apart"]
    assert same(tmp_path / "whole" / "best.safetensors", tmp_path / "cut" / "best.safetensors")
