"""What torchrun starts for test_distributed: python -m torch.distributed.run … -m tests.training.together DATA OUT"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from engine.data.dataset import Dataset
from engine.training.distributed import World, joined
from engine.training.run import train
from tests.training.tiny import recipe

MODELS = ("sasrec", "recformer", "zesrec", "popularity")
SETTINGS = {"epochs": 2, "batch_size": 8}


def run(name: str, data: Dataset, out: Path, world: World) -> None:
    """Trains without dropout, which every process draws for itself."""
    tables: dict[str, dict[str, object]] = {}
    if name in ("sasrec", "recformer"):
        tables["model"] = {"dropout": 0.0}
    if name == "sasrec":
        tables["objective"] = {"loss": "gbce", "negatives": 4}
    if name == "recformer":  # without hidden words, which every process draws for itself
        tables["objective"] = {"stage": "pre-train", "masked_weight": 0.0}
    if name == "zesrec":  # with vectors of words by an encoder that is not there yet
        tables["model"] = {"encoder": "scratch"}
    if name != "popularity":
        tables["training"] = SETTINGS
    train(recipe(name, **tables), data, out / name, device="cpu", world=world, restart=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    with joined("cpu") as world:
        for name in MODELS:
            run(name, Dataset(sys.argv[1]), Path(sys.argv[2]), world)
