from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.export.bundle import export_run
from tests.models.contract import MATCHING
from tests.training.fixtures import dataset, one_thread, run_of, shared
from tests.training.tiny import once

__all__ = ["dataset", "exports", "one_thread", "run_of", "shared"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """The first test of a worker that asks for the bundles makes them, which takes minutes on a busy machine."""
    if "exports" in getattr(item, "fixturenames", ()) and item.get_closest_marker("timeout") is None:
        item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def exports(shared: Path, run_of: Callable[[str], Path]) -> Path:
    """The bundles of all small runs. No test may change them. Workers that need them at once share the work: a minute of it."""
    out, names = shared / "exports" / "tiny", list(MATCHING)
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    begin = worker * len(names) // 4  # one after the other they go round, each from a place of its own
    for name in ("popularity", *names[begin:], *names[:begin]):  # the first writes the dataset's side
        with once(shared / "exported" / name) as first:
            if first:
                export_run(run_of(name), out)
    return out
