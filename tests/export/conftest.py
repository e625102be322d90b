from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.data.dataset import Dataset
from engine.export import projection
from engine.export.bundle import export_run
from engine.models import MODELS
from tests.training.tiny import tiny_dataset, tiny_run


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    """Small tensors: a second thread only waits for the first."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A small dataset that no test may change."""
    return tiny_dataset(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """run_of("sasrec"): the folder of a small run, trained and evaluated, that no test may change."""
    return lambda name: tiny_run(tmp_path_factory.getbasetemp(), name)


def quick_umap(rows: np.ndarray, metric: str, seed: int) -> tuple[np.ndarray, dict[str, object]]:
    """In place of projection.umap, which takes seconds."""
    return np.random.default_rng(seed).normal(size=(len(rows), 2)).astype(np.float32), {"metric": metric}


@pytest.fixture
def no_umap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "umap", quick_umap)


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory, run_of: Callable[[str], Path], dataset: Dataset) -> Path:
    """The bundles of all small runs; the map of sasrec is a real one. No test may change them."""
    out = tmp_path_factory.mktemp("exports") / "tiny"
    for name in MODELS:
        with pytest.MonkeyPatch.context() as patch:
            if name != "sasrec":
                patch.setattr(projection, "umap", quick_umap)
            export_run(run_of(name), out)
    return out
