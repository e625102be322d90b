from __future__ import annotations

from pathlib import Path

import pytest

from engine.runtime import Zoo
from tests.runtime.bundles import make_zoo


@pytest.fixture(scope="package")
def zoo_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A zoo that no test may change."""
    return make_zoo(tmp_path_factory.mktemp("exports"))


@pytest.fixture(scope="package")
def zoo(zoo_path: Path) -> Zoo:
    return Zoo.open(zoo_path)
