"""How much of a history a trained model should be asked with: NDCG@10 on the validation items by how many of the latest items it
reads. For models whose training does not depend on it, such as those that fold a set of items in; an autoencoder of sets learns
from as many as it reads, so train it with all of them first (--set model.max_length=1000).

    python -m benchmarks.history_length runs/films/lightgcn runs/films/mult-vae [--latest 1 2 3 5 10 1000]
"""

import argparse
from pathlib import Path

from engine.evaluation import metrics
from engine.evaluation.ranks import full_ranks
from engine.training.run import open_run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--latest", nargs="+", type=int, default=[1, 2, 3, 5, 10, 1000])
    args = parser.parse_args()
    print("| model |", " | ".join(f"{latest:,}" for latest in args.latest), "|")
    print("|---" * (1 + len(args.latest)) + "|")
    for folder in args.runs:
        model, _, _, dataset = open_run(folder)
        cases = dataset.cases("valid")
        cells = []
        for latest in args.latest:
            model.max_length = latest
            ranks = full_ranks(model, cases).ranks
            cells.append(f"{metrics.per_user('NDCG@10', ranks, 'full', cases.users).mean():.4f}")
        print(f"| {folder.name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
