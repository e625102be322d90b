"""What several exported models find together: HR@10 and NDCG@10 of the mean of their probabilities over the catalogue, beside
each of them. How far it lies above the best tells how much that one could learn from the others.

    python -m benchmarks.ensemble exports/films sasrec hstu bert4rec counting
"""

import argparse
from pathlib import Path

import numpy as np

from engine.bundle.index import mean_rank
from engine.evaluation import metrics
from engine.runtime import Zoo


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exports", type=Path)
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    zoo = Zoo.open(args.exports)
    users = zoo.users.to_pydict()
    bundles = [zoo.bundles[name] for name in args.models]
    ranks = np.empty((len(bundles) + 1, zoo.users.num_rows))
    for user, (history, target) in enumerate(zip(users["history"], users["target"], strict=True)):
        shares = np.stack([_probabilities(bundle.scores(history), bundle.candidates(history)) for bundle in bundles])
        scores = np.vstack([shares, shares.mean(0)])
        ranks[:, user] = mean_rank(scores, scores[:, target])
    warm = zoo.popularity[np.asarray(users["target"])] > 0
    print("| full, warm | HR@10 | NDCG@10 |\n|---|---|---|")
    for name, each in zip([*args.models, "the mean of their probabilities"], ranks[:, warm], strict=True):
        print(f"| {name} | {metrics.hit(each, 10).mean():.4f} | {metrics.ndcg(each, 10).mean():.4f} |")


def _probabilities(scores: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Softmax over the candidates, float64 [items]; 0 elsewhere."""
    shares = np.where(candidates, np.exp(scores.astype(np.float64) - scores[candidates].max()), 0)
    return shares / shares.sum()


if __name__ == "__main__":
    main()
