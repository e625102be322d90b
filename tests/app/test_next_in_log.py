"""What people of a log had next: as counted person by person, and said where it cannot be known."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.analysis import next_in_log
from engine.runtime import Zoo
from tests.runtime.bundles import TOYS, make_zoo


def opened(path: Path, logs: list[list[int]]) -> Zoo:
    """A zoo whose people have these events, the last one held out; in several row groups, as large files come."""
    make_zoo(path.parent, TOYS[:1], name=path.name)
    users = {
        "user": pa.array(range(len(logs)), pa.int32()),
        "user_id": [f"u{row}" for row in range(len(logs))],
        "history": pa.array([log[:-1] for log in logs], pa.list_(pa.int32())),
        "target": pa.array([log[-1] for log in logs], pa.int32()),
    }
    pq.write_table(pa.table(users), path / "users.parquet", row_group_size=7)
    return Zoo.open(path)


@pytest.mark.parametrize(
    "items", [3, 30]
)  # so few that two in a row are common and repeat, and so many that they are not
def test_people_are_counted_by_what_came_directly_after(tmp_path: Path, items: int) -> None:
    rng = np.random.default_rng(items)
    logs = [rng.integers(0, items, rng.integers(1, 15)).tolist() for _ in range(40)]
    models = opened(tmp_path / "toys", logs)
    for history in ((1,), (0, 1), (2, 2), (0, 2, 1)):
        found = next_in_log.count_next(models, history)
        assert found is not None
        size = len(found.after)
        expected = [
            {log[at] for at in range(size, len(log)) if tuple(log[at - size : at]) == found.after} for log in logs
        ]
        people = sum(map(bool, expected))
        times = Counter(item for following in expected for item in following)
        assert found.after == history[-size:] and found.people == people
        assert size == 1 or people >= next_in_log.ENOUGH
        assert dict(zip(found.items, found.shares, strict=True)) == pytest.approx(
            {item: times[item] / people for item in found.items}
        )
        most = sorted((n for n in times.values() if n > 1), reverse=True)[: next_in_log.SHOWN]
        assert [times[item] for item in found.items] == most
    assert (len(next_in_log.count_next(models, (0, 1)).after) == 2) is (items == 3)  # type: ignore[union-attr]


def test_what_cannot_be_known_is_said(tmp_path: Path) -> None:
    models = opened(tmp_path / "toys", [[1, 2, 3], [2, 1, 4]])
    assert next_in_log.sentence(models, ()) == ""
    assert "No user" in next_in_log.sentence(models, (9,))
    assert "each a different one" in next_in_log.sentence(models, (2,))
    (tmp_path / "toys" / "users.parquet").unlink()
    assert "not exported" in next_in_log.sentence(Zoo.open(tmp_path / "toys"), (2,))
