"""What torchrun starts for test_distributed: python -m torch.distributed.run … -m tests.training.together DATA OUT"""

import shutil
import sys
from pathlib import Path

import torch

from engine.data.dataset import Dataset
from engine.text import scratch
from engine.text.scratch import ScratchConfig
from engine.training.distributed import World, joined
from engine.training.recipe import Recipe
from engine.training.run import train
from tests.training.tiny import recipe, stopped

MODELS = ("sasrec", "recformer", "zesrec", "popularity")
SETTINGS = {"epochs": 2, "batch_size": 8, "checkpoint_seconds": 0.0}
SCRATCH = ScratchConfig(vocabulary=300, dim=16, layers=1, heads=2, steps=2)
"""Of the encoder of words that is not there yet."""
CUT = 2
"""Steps of its second epoch, of three, after which a training is interrupted."""


def settings(name: str) -> Recipe:
    """Without dropout, which every process draws for itself."""
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
    return recipe(name, **tables)


def interrupted(data: Dataset, folder: Path, world: World) -> None:
    """Trains as `settings` says, is interrupted, leaves a copy of its checkpoint beside `folder`, and goes on."""
    with stopped(lambda trainer: (trainer.state.epoch, trainer.state.step) == (1, CUT)):
        train(settings("sasrec"), data, folder, device="cpu", world=world)
    if world.leads:
        shutil.copyfile(folder / "checkpoint.safetensors", folder.with_name("left.safetensors"))
    train(settings("sasrec"), data, folder, device="cpu", world=world)


if __name__ == "__main__":
    torch.set_num_threads(1)
    scratch.DEFAULT = SCRATCH
    with joined("cpu") as world:
        data, out = Dataset(sys.argv[1]), Path(sys.argv[2])
        for name in MODELS:
            train(settings(name), data, out / name, device="cpu", world=world)
        interrupted(data, out / "cut", world)
