import functools
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.export.bundle import export_run
from engine.runtime import Bundle, Zoo
from tests.training.fixtures import dataset, one_thread, run_of, shared
from tests.training.tiny import once

BundleOf = Callable[[str], Bundle]
"""What `bundle_of` is."""
__all__ = ["copied", "dataset", "exported", "one_thread", "run_of", "shared"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """The first test of a worker that asks for the bundles makes them, which takes minutes on a busy machine."""
    if "exported" in getattr(item, "fixturenames", ()) and item.get_closest_marker("timeout") is None:
        item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def exported(shared: Path, run_of: Callable[[str], Path]) -> Callable[[str], Path]:
    """exported("sasrec"): the folder of the bundles of small runs, that of SASRec among them. No test may change them."""
    out = shared / "exports" / "tiny"

    def export(name: str) -> Path:
        for model in ("popularity", name):  # the first writes the dataset's side
            with once(shared / "exported" / model) as first:
                if first:
                    export_run(run_of(model), out)
        return out

    return export


@pytest.fixture(scope="session")
def bundle_of(exported: Callable[[str], Path]) -> BundleOf:
    """bundle_of("sasrec"): the bundle of a small run, opened once."""
    return functools.cache(lambda name: Zoo.open(exported(name)).bundles[name])


@pytest.fixture
def copied(exported: Callable[[str], Path], tmp_path: Path) -> Callable[..., Path]:
    """copied("sasrec"): a folder of exports with these bundles alone, to be changed."""

    def copy(*names: str) -> Path:
        folder = tmp_path / "copied" / "tiny"
        for name in names:
            shutil.copytree(exported(name) / name, folder / name)
        for file in ("dataset.json", "items.parquet", "users.parquet", "held_out.parquet"):
            shutil.copy(exported("popularity") / file, folder)
        return folder

    return copy
