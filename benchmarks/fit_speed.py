"""How long a model that counts takes to fit, on one thread, with the settings of its recipe for each log.

    python -m benchmarks.fit_speed [data/beauty data/ml-1m] [--model counting] [--rounds 5]

Seconds are of processor time, which other programs on the machine change little: median, least and most of the rounds. From the
training log in memory to the model, without the search that settings may have been found by.
"""

import argparse
import dataclasses
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

from engine.data.dataset import Dataset
from engine.training import compute as devices
from engine.training.materials import gather
from engine.training.recipe import load
from engine.training.run import build_model, training_log

GOALS = {"beauty": 0.5, "ml-1m": 3.0}
"""Dataset → seconds, of counting."""


def seconds(name: str, dataset: Dataset, rounds: int) -> list[float]:
    """Of processor time, one per round."""
    recipe = load(name, dataset.info.name, None, [])
    if getattr(recipe.model, "search", False):
        recipe = dataclasses.replace(recipe, model=dataclasses.replace(recipe.model, search=False))
    log, materials = training_log(dataset), gather(recipe, dataset, Path())
    taken = []
    for _ in range(rounds):
        model: Any = build_model(recipe, dataset.num_items, dataset.num_users, materials)
        began = time.process_time()
        model.fit(*log)
        taken.append(time.process_time() - began)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", type=Path, default=[Path("data/beauty"), Path("data/ml-1m")])
    parser.add_argument("--model", default="counting")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"fitting {args.model} on one thread of {devices.processor()}; median of {args.rounds} rounds")
    missed = False
    for folder in args.datasets:
        if not (folder / "dataset.json").exists():
            print(f"  {folder}: not there (benchmarks/README.md says how it is imported)")
            continue
        dataset = Dataset(folder)
        taken = seconds(args.model, dataset, args.rounds)
        middle, goal = statistics.median(taken), GOALS.get(dataset.info.name) if args.model == "counting" else None
        words = "" if goal is None else f", goal ≤ {goal:g} s: {'met' if middle <= goal else 'missed'}"
        missed |= goal is not None and middle > goal
        events = f"{len(dataset.training.values):,} events"
        print(f"  {dataset.info.name:<12} {events:>16}  {middle:5.2f} s ({min(taken):.2f} to {max(taken):.2f}){words}")
    sys.exit(missed)


if __name__ == "__main__":
    main()
