from pathlib import Path

import numpy as np
import pytest

from engine.data.dataset import Dataset
from tests.training.fixtures import dataset, one_thread, run_of, shared

__all__ = ["dataset", "one_thread", "run_of", "shared", "vectors"]


@pytest.fixture(scope="session")
def vectors(tmp_path_factory: pytest.TempPathFactory, dataset: Dataset) -> Path:
    """Item vectors of that dataset, as a file."""
    path = tmp_path_factory.mktemp("vectors") / "vectors.npy"
    np.save(path, np.random.default_rng(0).normal(size=(dataset.num_items, 6)).astype(np.float32))
    return path
