"""A dataset whose titles and ids try to be more than text, with models of every kind, and the report of one history of it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.reports import document, verify
from app.reports.build import build
from app.reports.document import Asked, Report
from engine.runtime import Zoo
from tests.app.conftest import HOSTILE, ODD_IDS, rename
from tests.app.writers import WRITER
from tests.runtime.bundles import make_zoo, seal, some_log, with_columns, with_graph
from tests.runtime.generators import with_attention, write_generator
from tests.runtime.tokenizations import write_tokenization

HISTORY = [*ODD_IDS, "toy-9"]
"""All hostile items, then a plain one."""


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nobody changes it; see `copied`."""
    path = make_zoo(tmp_path_factory.mktemp("exports"), name="hostile")
    rename(path, HOSTILE, ODD_IDS)
    with_graph(path / "alpha", some_log())
    with_graph(path / "plain", some_log(), dim=None, layers=2, layer_dim=2)
    seal(path / "beta", title="<script>window.hit = 1</script> $x$")
    with_attention(write_generator(path, WRITER), WRITER, whole=True)
    write_tokenization(path, maps=True)
    write_tokenization(path, "letter", seed=3, title="<b>LETTER</b>")
    return path


@pytest.fixture(scope="session")
def models(hostile: Path) -> Zoo:
    found = Zoo.open(hostile)
    assert not found.refused and len(found.bundles) == 6
    return found


@pytest.fixture
def copied(hostile: Path, tmp_path: Path) -> Path:
    """The same dataset, to be changed."""
    return Path(shutil.copytree(hostile, tmp_path / "hostile"))


@pytest.fixture(scope="session")
def answers() -> dict[str, Report]:
    """What was asked of `models` → the report of it."""
    return {}


@pytest.fixture
def asked_once(models: Zoo, answers: dict[str, Report], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever verifies reports of `models`, which nobody changes, asks each question once in all tests."""

    def remembered(zoo: Zoo, asked: Asked, *, at: str) -> Report:
        if zoo is not models:
            return build(zoo, asked, at=at)
        key = asked.model_dump_json()
        if key not in answers:
            answers[key] = build(zoo, asked, at="2026-01-01T00:00:00+00:00")
        return answers[key]

    monkeypatch.setattr(verify, "build", remembered)


@pytest.fixture(scope="session")
def report(models: Zoo) -> Report:
    """Of everything."""
    asked = Asked(history=HISTORY, edited=HISTORY[:3], k=5, rows=True, title="<img src=x onerror=alert(1)>")
    return build(models, asked, address="https://app.example.org/report?v=1&ds=hostile", at="2026-11-20T12:00:00+00:00")


Change = Callable[[dict[str, Any]], object]
"""Of what report.json says."""


def tampered(report: Report, change: Change) -> Report:
    """By somebody who knows how seals are made."""
    raw = json.loads(document.write(report))
    change(raw)
    return document.sealed(document.read(json.dumps(raw).encode()))


def with_user_vectors(bundle: Path, ranks: list[float]) -> None:
    """Adds ranks that a model reaches with its users' vectors."""
    file = bundle / "ranks.parquet"
    known = with_columns(file, protocol=["full+user"] * 4, rank=ranks)
    pq.write_table(pa.concat_tables([pq.read_table(file), known]), file)
    seal(bundle)
