"""Every model's list for many histories, through the command `seqscope report batch`: seconds, and the process's peak memory.

    python -m benchmarks.batch_speed [--histories 10000 100000] [--models sasrec bert4rec attrec] [--zoo exports/sample]

Histories are drawn anew: lengths as those of the dataset's people, items by popularity, one CSV row per event, in the order of
time and not of people. The numbers include reading and sorting that file and writing the output.
"""

import argparse
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


# VmHWM belongs to the program itself; the peak that wait4 tells is inherited from the process that started it.
_PEAK = """
import os, sys
from engine.cli import main
code = main(sys.argv[1:])
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(peak / 1e3, sum(os.times()[:2]))
sys.exit(code)
"""


def measure(words: list[str]) -> tuple[float, float, float]:
    """(seconds, seconds of all cores together, MB of peak memory) of a command that must succeed."""
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", _PEAK, *words], check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stderr}")
    memory, cores = map(float, done.stdout.split()[-2:])
    return time.perf_counter() - began, cores, memory


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
                words = ["report", "batch", str(args.zoo), str(source), "--to", str(out)]
                seconds, cores, memory = measure([*words, "--models", *args.models, "-k", "10"])
                rows = (
                    pq.ParquetFile(out).metadata.num_rows if ending == "parquet" else sum(1 for _ in out.open("rb")) - 1
                )
                print(
                    f"{histories:>9,} histories ({events:,} events) × {len(args.models)} models → {rows:,} rows of {ending}, "
                    f"{out.stat().st_size / 1e6:,.1f} MB: {seconds:,.1f} s ({cores:,.1f} s of cores), {memory:,.0f} MB at most",
                    flush=True,
                )


if __name__ == "__main__":
    main()
