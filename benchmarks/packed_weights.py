"""What it costs to keep fewer and coarser weights between items: size of a bundle's item_to_item.npz against NDCG@10.

    python -m benchmarks.packed_weights data/films [--model counting] [--kept 4975 680 230]

Rows for docs/models.md: each number of weights kept an item, as half floats and rounded to 256 values, on the test items among
all.
"""

import argparse
import dataclasses
import itertools
import tempfile
from pathlib import Path
from typing import Any

from engine.data.dataset import Dataset
from engine.evaluation import metrics
from engine.evaluation.ranks import full_ranks
from engine.export.staging import Draft
from engine.export.vectors import write_item_to_item
from engine.models.item_to_item import LEVELS
from engine.runtime.item_to_item import FILE
from engine.training.materials import gather
from engine.training.recipe import Recipe, load
from engine.training.run import build_model, training_log


def measured(recipe: Recipe, dataset: Dataset, kept: int, coarse: bool) -> tuple[float, int, float]:
    """(weights an item, bytes, NDCG@10)"""
    settings = dataclasses.replace(recipe.model, kept=kept, coarse=coarse, search=False)  # type: ignore[type-var]
    changed = dataclasses.replace(recipe, model=settings)
    materials = gather(changed, dataset, Path())
    model: Any = build_model(changed, dataset.num_items, dataset.num_users, materials).eval()
    model.fit(*training_log(dataset))
    cases, count = dataset.cases("test"), len(model.entries)
    with tempfile.TemporaryDirectory() as folder:
        write_item_to_item(model, Draft(Path(folder), Path(), Path(), changed, dataset, cases))
        size = (Path(folder) / FILE).stat().st_size
    ranks = full_ranks(model, cases).ranks
    return count / dataset.num_items, size, float(metrics.per_user("NDCG@10", ranks, "full", cases.users).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--model", default="counting")
    parser.add_argument("--kept", nargs="+", type=int, default=[4975, 680, 450, 230])
    args = parser.parse_args()
    dataset = Dataset(args.dataset)
    recipe = load(args.model, dataset.info.name, None, [])
    print("| weights an item | values | MB | NDCG@10 |\n|---|---|---|---|")
    for kept, coarse in itertools.product(args.kept, (False, True)):
        weights, size, ndcg = measured(recipe, dataset, kept, coarse)
        print(f"| {weights:.0f} | {LEVELS if coarse else 'all'} | {size / 1e6:.1f} | {ndcg:.4f} |", flush=True)


if __name__ == "__main__":
    main()
