import shutil
from pathlib import Path

import pytest

from engine.runtime import Zoo
from tests.runtime.bundles import TOYS, make_zoo

pytest.register_assert_rewrite("tests.runtime.spoil")


@pytest.fixture(scope="package")
def zoo_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A zoo that no test may change."""
    return make_zoo(tmp_path_factory.mktemp("exports"))


@pytest.fixture(scope="package")
def zoo(zoo_path: Path) -> Zoo:
    return Zoo.open(zoo_path)


@pytest.fixture(scope="package")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `path` is a copy of: alpha and beta, unless a file says otherwise."""
    return make_zoo(tmp_path_factory.mktemp("pristine"), TOYS[:2])


@pytest.fixture
def path(pristine: Path, tmp_path: Path) -> Path:
    """A dataset folder to be changed."""
    return Path(shutil.copytree(pristine, tmp_path / "toys"))
