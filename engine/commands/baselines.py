"""Fit, evaluate and export the models that need no training, one after the other in one process.

  seqscope baselines --dataset data/mine --to exports/mine

One that cannot be fitted to the data says why, and the others go on.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from engine import cards
from engine.commands import options

if TYPE_CHECKING:
    from engine.data.dataset import Dataset
    from engine.training.recipe import Recipe


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "models", nargs="*", metavar="MODEL",
        help=f"models or recipes that count (default: {', '.join(cards.at_once(cards.declarations().models))})",
    )  # fmt: skip
    options.dataset(parser)
    options.exports(parser)
    parser.add_argument("--runs", type=Path, metavar="DIR", help="where run folders go (default: runs/<dataset>)")
    options.restart(parser)


def run(args: argparse.Namespace) -> int:
    from engine.console import part, warn
    from engine.data.dataset import Dataset
    from engine.errors import SeqscopeError, UsageError, of_system
    from engine.export.staging import exported_fingerprint
    from engine.files import expect_no_file
    from engine.registry import MODELS, learns
    from engine.training.recipe import load

    dataset = Dataset(args.dataset)
    runs = args.runs or Path("runs") / dataset.info.name
    expect_no_file(runs)
    exported_fingerprint(dataset, args.to)  # before anything is computed
    declared = cards.at_once(cards.declarations().models)
    recipes = {name: load(declared.get(name, name), dataset.info.name, None, []) for name in args.models or declared}
    if learning := [name for name, recipe in recipes.items() if learns(recipe.family)]:
        raise UsageError(f"{learning[0]} learns step by step: `seqscope train {learning[0]}`")
    reasons = []
    for number, (name, recipe) in enumerate(recipes.items()):
        title = recipe.title or MODELS[recipe.family].card.title
        try:
            with part(number, len(recipes), title):
                print(_make(args, name, recipe, dataset, runs / name))
        except SeqscopeError as error:
            reasons.append(f"{title}: {error}")
        except OSError as error:
            reasons.append(f"{title}: {of_system(error)}")
        except Exception as error:  # whatever is wrong with one, the others are there
            traceback.print_exc(file=sys.stderr)
            reasons.append(f"{title} could not be made ({type(error).__name__}: {error})")
    if reasons and len(reasons) == len(recipes):
        raise SeqscopeError("\n".join(reasons))
    for reason in reasons:
        warn(reason)
    return 0


def _make(args: argparse.Namespace, name: str, recipe: Recipe, dataset: Dataset, folder: Path) -> str:
    """What became of it, in a line."""
    from engine.console import stage
    from engine.evaluation.evaluate import evaluate
    from engine.evaluation.protocols import main
    from engine.export.bundle import export_run
    from engine.training.run import open_run, train

    stage("fit")
    options.begun(args, lambda restart: train(recipe, dataset, folder, device="cpu", restart=restart))
    protocol = main(dataset.info.repeats, dataset.info.split["kind"])
    figure = "nobody has a held-out item"
    if dataset.info.counts["test"]:
        metrics = evaluate(open_run(folder)[0], dataset, folder)
        figure = f"NDCG@10 {metrics[protocol]['NDCG@10']:.4f}, {protocol}"
    return f"{export_run(folder, args.to, name=name)}: {figure}"
