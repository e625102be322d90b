"""Where repeats count, lists of reports and batches hold items of the history and say so."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from app.reports import batch, html
from app.reports.build import build
from app.reports.document import Asked
from app.reports.verify import verify
from engine.runtime import Zoo
from tests.runtime.bundles import count_repeats

HISTORY = ["toy-20", "toy-21", "toy-20"]


@pytest.fixture
def counted(copied: Path) -> Zoo:
    return Zoo.open(count_repeats(copied))


def test_a_report_marks_what_the_history_has(counted: Zoo) -> None:
    report = build(counted, Asked(history=HISTORY, parts=["history", "lists"], models=["alpha"], k=40))
    assert report.lists is not None and set(HISTORY) < {item.item_id for item in report.lists[0].items}
    page = html.render(report).decode()
    assert page.count(">in the history<") == 2
    assert "25.0% of held-out items repeat" in page and "Repeats count" in page
    assert all(one.holds for one in verify(report, counted))
    without = build(counted, Asked(history=HISTORY, parts=["lists"], models=["alpha"], k=40))
    assert ">in the history<" not in html.render(without).decode()  # or it would tell the history


def test_a_report_tells_repeats_and_new_items_apart(counted: Zoo, models: Zoo) -> None:
    report = build(counted, Asked(history=HISTORY, parts=["metrics"], models=["alpha", "popular"]))
    assert report.metrics is not None
    asked = {one.words: one.people for one in report.metrics.repeats if one.metric == "HR@10"}
    assert sum(asked.values()) == report.metrics.people and len(asked) == 2
    page = html.render(report).decode()
    assert "where the held-out item repeats an item of the history" in page and "Repeats apart" in page
    before = build(models, Asked(history=HISTORY, parts=["metrics"]))
    assert before.metrics is not None and not before.metrics.repeats


def test_a_batch_says_which_items_the_histories_have(counted: Zoo, models: Zoo, tmp_path: Path) -> None:
    source = tmp_path / "h.txt"
    source.write_text(" ".join(HISTORY), "utf-8")
    batch.run(counted, source, tmp_path / "counted.parquet", names=["alpha", "writer"], k=40)
    rows = pq.read_table(tmp_path / "counted.parquet").to_pylist()
    assert [row["in_history"] for row in rows] == [row["item_id"] in HISTORY for row in rows]
    assert sum(row["in_history"] for row in rows) == 4
    batch.run(models, source, tmp_path / "before.parquet", names=["alpha"], k=40)
    assert "in_history" not in pq.read_table(tmp_path / "before.parquet").column_names
