"""A home of its own for every test of the store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.store.database import Store


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """SEQSCOPE_HOME, not made yet; no quota is set."""
    for name in ("BYTES", "ROWS", "DATASETS", "JOBS", "SERVER"):
        monkeypatch.delenv(f"SEQSCOPE_QUOTA_{name}", raising=False)
    monkeypatch.delenv("SEQSCOPE_KEEP_DAYS", raising=False)
    monkeypatch.setenv("SEQSCOPE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def store(own_home: Path) -> Iterator[Store]:
    opened = Store()
    yield opened
    opened.close()
