"""What the tests of training, evaluation, export, generation and identifiers share; their conftest.py import it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

import tests.exporter  # noqa: F401 (for what it does)
from engine.data.dataset import Dataset
from tests.training.tiny import tiny_dataset, tiny_run

RunOf = Callable[[str], Path]
"""What `run_of` is."""


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    """Small tensors: a second thread only waits for the first."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of these tests have in common, for what `once` makes."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"


@pytest.fixture(scope="session")
def dataset(shared: Path) -> Dataset:
    """A small dataset that no test may change."""
    return tiny_dataset(shared)


@pytest.fixture(scope="session")
def run_of(shared: Path) -> RunOf:
    """run_of("sasrec"): the folder of a small run, trained and evaluated, that no test may change."""
    return lambda name: tiny_run(shared, name)
