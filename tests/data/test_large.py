"""A log that is larger than the toys: the same answer as straight-line Python, in bounded memory."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from engine.data.dataset import Dataset
from tests.data.conftest import item_ids, user_ids

ROWS = 100_000
LIMIT = """
import sys
from engine.cli import main
code = main(sys.argv[1:])
# VmHWM belongs to this program; getrusage's peak is inherited from the process that started it
with open("/proc/self/status") as status:
    print("peak", next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM")))
sys.exit(code)
"""


def test_a_hundred_thousand_rows(tmp_path: Path, root: Path) -> None:
    rng = np.random.default_rng(5)
    users, items = rng.integers(0, 3_000, ROWS), (2_000 * rng.random(ROWS) ** 3).astype(int)
    times = rng.integers(1_000_000_000, 1_000_100_000, ROWS)
    events: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    with (tmp_path / "log.csv").open("w") as file:
        file.write("user_id,item_id,timestamp\n")
        for row, (user, item, time) in enumerate(zip(users, items, times, strict=True)):
            file.write(f"user-{user},item-{item},{time}\n")
            events[f"user-{user}"].append((int(time), row, f"item-{item}"))

    options = ["--out", tmp_path / "big", "--memory", "200MB", "--duplicates", "keep"]
    words = ["data", "import", tmp_path / "log.csv", *options]
    command = [sys.executable, "-c", LIMIT, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < 700  # MB, most of it the libraries themselves

    dataset = Dataset(tmp_path / "big")
    ids = item_ids(dataset)
    assert len(dataset.events.values) == ROWS and ids == sorted(ids)
    assert user_ids(dataset) == sorted(events)
    for number, user in enumerate(sorted(events)):
        assert [ids[item] for item in dataset.events[number]] == [item for _, _, item in sorted(events[user])]
