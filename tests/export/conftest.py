from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.export.bundle import export_run
from tests.models.contract import MATCHING
from tests.training.fixtures import dataset, one_thread, run_of, shared
from tests.training.tiny import once

__all__ = ["dataset", "exports", "one_thread", "run_of", "shared"]


@pytest.fixture(scope="session")
def exports(shared: Path, run_of: Callable[[str], Path]) -> Path:
    """The bundles of all small runs. No test may change them."""
    out = shared / "exports" / "tiny"
    with once(out) as first:
        for name in MATCHING if first else ():
            export_run(run_of(name), out)
    return out
