"""Fixtures that every test may use."""

import os
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from engine.commands.doctor import find_public_data

ROOT = Path(__file__).resolve().parents[1]
STAND_IN = ROOT / "tests" / "stand_in"
LONGEST = (
    "export/test_bundle.py",
    *(f"browser/test_{name}.py" for name in (
        "whole_path", "pages", "report", "owner", "compare", "map", "phone", "attention", "films", "catalogue",
        "semantic_ids", "metrics", "users",
    )),
    "jobs/test_engine.py", "test_extending.py", "generation/test_export.py",
)  # fmt: skip
"""Files that take longest, in that order: begun last, one of them would keep its worker busy when all the others are done. The
browser's stand together, so that a worker has several in a row, and one browser for them."""
COLLECTED = Path(tempfile.gettempdir(), f"seqscope-collected-{os.environ.get('PYTEST_XDIST_TESTRUNUID')}")
"""There once the first worker of this run has collected."""


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Where tests that are coroutines run."""
    return "asyncio"


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return ROOT


@pytest.fixture(scope="session", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What the app keeps for its visitors lies in a folder of this run of the tests, one per worker: one process holds it."""
    os.environ["SEQSCOPE_HOME"] = str(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session", autouse=True)
def _quick_maps() -> None:
    """Tests, and the commands that they start, place items without UMAP, unless they ask for it."""
    sys.path.insert(0, str(STAND_IN))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(STAND_IN), *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.fixture(scope="session")
def sample_exports(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exports with the simulated sample alone: for tests that need its items, its models or what was planted in it."""
    folder = tmp_path_factory.mktemp("sample-alone")
    (folder / "sample").symlink_to(root / "exports" / "sample")
    return folder


@pytest.fixture(scope="session")
def public_data() -> Path:
    """The folder of public logs (ml-1m/, ml-100k/, …); tests that ask for it are skipped where there is none."""
    folder = find_public_data(ROOT)
    assert folder is not None
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """In a fresh clone the first worker collects before the others: else all compile the same thousands of files at once."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker == "gw0":
        try:
            return (yield)
        finally:
            COLLECTED.touch()
    fresh = not list((ROOT / "tests" / "words" / "__pycache__").glob("test_*-pytest-*.pyc"))  # what is collected last
    if worker is not None and fresh and not sys.dont_write_bytecode:
        deadline = time.monotonic() + 120
        while not COLLECTED.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
    return (yield)


def pytest_sessionfinish() -> None:
    if os.environ.get("PYTEST_XDIST_WORKER") == "gw0":  # the others began with it, or after it
        COLLECTED.unlink(missing_ok=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {ROOT / "tests" / name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path, len(place)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if sys.platform != "linux" and item.get_closest_marker("linux"):
        pytest.skip("no other system than Linux does this")
    # Skipped here and not in the fixture: pytest then sums all of them up in one line.
    folder = find_public_data(ROOT)
    if "public_data" in getattr(item, "fixturenames", ()) and (folder is None or not folder.is_dir()):
        pytest.skip("public logs not found: set SEQSCOPE_DATA to their folder")
