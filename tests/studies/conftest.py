from pathlib import Path

import pytest

from engine.data.dataset import Dataset
from tests.studies.plans import RECIPES
from tests.training.fixtures import one_thread
from tests.training.tiny import cycles, write_log

__all__ = ["one_thread"]


@pytest.fixture(scope="session")
def circle(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """What comes next is certain; a model that learns knows it."""
    return write_log(tmp_path_factory.mktemp("circle") / "circle", cycles(120, 30), 30, name="circle")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with small recipes."""
    monkeypatch.chdir(tmp_path)
    for name, text in RECIPES.items():
        (tmp_path / f"{name}.toml").write_text(text, "utf-8")
    return tmp_path
