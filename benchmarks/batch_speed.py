"""Every model's list for many histories, through the command `seqscope report batch`: seconds, and the process's peak memory.

    python -m benchmarks.batch_speed [--histories 10000 100000] [--models sasrec bert4rec attrec] [--zoo exports/sample]

Histories are drawn anew: lengths as those of the dataset's people, items by popularity, one CSV row per event, in the order of
time and not of people. The numbers include reading and sorting that file and writing the output.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from engine.runtime import Zoo


def draw(zoo: Zoo, histories: int, path: Path) -> int:
    """Writes user, item, time; returns the events."""
    rng = np.random.default_rng(0)
    lengths = rng.choice(np.diff(zoo.users["history"].combine_chunks().offsets.to_numpy()), histories)
    share = (zoo.popularity + 1) / (zoo.popularity + 1).sum()
    user = np.repeat(np.arange(histories), lengths)
    item = rng.choice(len(zoo), len(user), p=share)
    order = rng.permutation(len(user))
    table = pa.table(
        {
            "user": pa.array(user[order]),
            "item": zoo.items["item_id"].combine_chunks().take(pa.array(item[order])),
            "time": np.arange(len(user)),
        }
    )
    pa.csv.write_csv(table, path)
    return len(user)


def measure(command: list[str]) -> tuple[float, float]:
    """(seconds, MB of peak memory) of a command that must succeed."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return time.perf_counter() - began, usage.ru_maxrss / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--models", nargs="+", default=["sasrec", "bert4rec", "attrec"])
    parser.add_argument("--zoo", type=Path, default=Path("exports/sample"))
    parser.add_argument("--ending", nargs="+", default=["parquet"], choices=["parquet", "csv"])
    args = parser.parse_args()
    zoo = Zoo.open(args.zoo)
    for histories in args.histories:
        with tempfile.TemporaryDirectory() as name:
            source = Path(name) / "events.csv"
            events = draw(zoo, histories, source)
            for ending in args.ending:
                out = Path(name) / f"lists.{ending}"
                words = [
                    sys.executable,
                    "-m",
                    "engine",
                    "report",
                    "batch",
                    str(args.zoo),
                    str(source),
                    "--to",
                    str(out),
                ]
                seconds, memory = measure([*words, "--models", *args.models, "-k", "10"])
                rows = (
                    pq.ParquetFile(out).metadata.num_rows if ending == "parquet" else sum(1 for _ in out.open("rb")) - 1
                )
                print(
                    f"{histories:>9,} histories ({events:,} events) × {len(args.models)} models → {rows:,} rows of {ending}, "
                    f"{out.stat().st_size / 1e6:,.1f} MB: {seconds:,.1f} s, {memory:,.0f} MB at most",
                    flush=True,
                )


if __name__ == "__main__":
    main()
