"""Rebuild exports/sample: simulate the log, train, evaluate and export its models. `make exports` runs this.

    python -m benchmarks.build_sample [--out exports/sample] [--runs build/sample-runs] [--keep-data]

Interrupted, it goes on with the training that was under way. The new folder takes the place of the old one only when every
bundle has been checked.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

from engine.console import duration
from engine.data.dataset import Dataset
from engine.runtime import Zoo
from engine.training.recipe import RECIPES

MODELS = ("sasrec", "bert4rec", "attrec", "markov", "popularity")
LIMIT = 20_000_000
"""Bytes that the committed folder may take."""


def run(*words: str) -> None:
    """One command, in a process of its own: making a map changes how many threads its process trains with."""
    code = subprocess.run([sys.executable, "-m", "engine", *words], check=False).returncode
    if code:
        sys.exit(code)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data/sample"))
    parser.add_argument("--out", type=Path, default=Path("exports/sample"))
    parser.add_argument("--runs", type=Path, default=Path("build/sample-runs"))
    parser.add_argument("--keep-data", action="store_true", help="use the log as it is instead of simulating it again")
    args = parser.parse_args()
    began = time.monotonic()
    if not args.keep_data:
        run("sample", "build", "--out", str(args.data))
    # other data or other recipes are other trainings: they get a folder of their own, and an interrupted one goes on in its own
    key = hashlib.sha256(Dataset(args.data).info.fingerprint.encode())
    for recipe in sorted((RECIPES / "sample").glob("*.toml")):
        key.update(recipe.read_bytes())
    runs = args.runs / key.hexdigest()[:12]
    staged = runs / "exports"
    shutil.rmtree(staged, ignore_errors=True)
    for model in MODELS:
        folder = str(runs / model)
        run("train", model, "--dataset", str(args.data), "--out", folder)
        run("evaluate", folder, "--protocol", "u100")
        run("export", folder, "--to", str(staged))
    zoo = Zoo.open(staged, warm=True)
    size = sum(path.stat().st_size for path in staged.rglob("*") if path.is_file())
    if zoo.refused or set(zoo.bundles) != set(MODELS) or size > LIMIT:
        sys.exit(
            f"not put in place: {zoo.refused or ''} {sorted(zoo.bundles)} {size / 1e6:.1f} MB (at most {LIMIT / 1e6:.0f})"
        )
    old = runs / "old"
    shutil.rmtree(old, ignore_errors=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    if args.out.exists():
        args.out.rename(old)
    staged.rename(args.out)
    print(f"{args.out}: {len(MODELS)} bundles, {size / 1e6:.1f} MB, in {duration(time.monotonic() - began)}")


if __name__ == "__main__":
    main()
