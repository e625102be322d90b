"""How long a new catalogue waits for what it gets without training: each step of the job that the app would start.

    python -m benchmarks.zero_shot_speed [--items 10000] [--zoo exports] [--all]

Items have a title of 5 words, a brand of 2, a category and a description of 16, drawn from the titles of the sample's films; no
two are the same. The goal: what scores them is there within three minutes on two cores. --all: words, identifiers and maps, too.
CPU seconds tell more than the clock on a machine that does other things as well.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app import work
from app.jobs import kinds
from app.jobs.runner import NICE, environment
from benchmarks.upload_speed import used

GOAL = 180.0


def catalogue(path: Path, items: int, zoo: Path) -> None:
    chance = np.random.default_rng(1)
    titles = pq.read_table(zoo / "sample" / "items.parquet")["title"].to_pylist()
    vocabulary = np.array(sorted({word for title in titles for word in title.split() if word.isalpha()}))

    def text(words: int) -> list[str]:
        return [" ".join(row) for row in vocabulary[chance.integers(len(vocabulary), size=(items, words))]]

    path.parent.mkdir(parents=True)
    columns = {"title": [f"{title} {n}" for n, title in enumerate(text(4))], "brand": text(2), "category": text(1)}
    pq.write_table(pa.table({"item_id": [f"i{n}" for n in range(items)], **columns, "description": text(16)}), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--zoo", type=Path, default=Path("exports"), help="the server's exports")
    parser.add_argument("--all", action="store_true", help="all steps, not only up to the first model that answers")
    args = parser.parse_args()
    sources = work.sources(args.zoo.absolute())
    if not sources:
        sys.exit(f"{args.zoo} has no model that knows items by their words")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} of other work, niceness {os.nice(NICE['prepare'])}")
    with tempfile.TemporaryDirectory(prefix="zero-shot-speed-") as name:
        folder = Path(name) / "dataset"
        catalogue(folder / kinds.ITEMS, args.items, args.zoo)
        job = kinds.prepare(
            "job", folder, Path(name), name="shop", title="A shop", items=args.items, sources=sources[:1]
        )
        whole, cores = time.monotonic(), used()
        for step in job.steps:
            clock, cpu = time.monotonic(), used()
            command = [sys.executable, "-m", step.program, *step.words]
            done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f"{step.title}: {done.stderr}")
            print(f"{step.title:<40} {time.monotonic() - clock:7.1f} s {used() - cpu:7.1f} s of cores", flush=True)
            if step.words[0] == "zero-shot":
                seconds = time.monotonic() - whole
                met = "met" if seconds < GOAL else "missed"
                print(f"{args.items:,} items scored: {seconds:.1f} s ({used() - cores:.1f} s of cores), "
                      f"goal {GOAL:.0f} s {met}", flush=True)  # fmt: skip
                if not args.all:
                    return
        print(f"all of it: {time.monotonic() - whole:.1f} s ({used() - cores:.1f} s of cores)")


if __name__ == "__main__":
    main()
