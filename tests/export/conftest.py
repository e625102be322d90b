from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.data.dataset import Dataset
from engine.export import projection
from engine.export.bundle import export_run
from engine.models import MODELS
from tests.training.fixtures import dataset, one_thread, run_of

__all__ = ["dataset", "exports", "no_umap", "one_thread", "run_of"]


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
