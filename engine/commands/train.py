"""Train a model on a prepared dataset folder.

The settings come from a recipe, engine/recipes/<dataset>/<model>.toml unless --recipe names another, and from --set.
Interrupted at any moment, the same command goes on where it stopped. With several GPUs, or to try it with two processes:

  torchrun --nproc-per-node 2 -m engine train sasrec --dataset data/ml-1m

When it has finished, the same command with --refit trains the recipe once more, on training and validation events, for as many
epochs as were best; its figures never stand beside the others.
"""

import argparse
import json
from pathlib import Path

from engine import cards
from engine.commands import options
from engine.writing import count


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        help=f"a model ({', '.join(cards.names(cards.MODELS))}) or a recipe (tiger, ml-1m/sasrec-ce, a file, …)",
    )
    options.settings(parser, recipe="ml-1m/sasrec-ce", setting="training.seed=2")
    options.device(parser)
    options.restart(parser)
    parser.add_argument(
        "--finish", action="store_true", help="end an interrupted training here and keep its best model"
    )
    parser.add_argument(
        "--refit",
        action="store_true",
        help="when the run has finished: train once more on training + validation events, for as many epochs as its best "
        "model had, into <run folder>-refit",
    )
    parser.add_argument(
        "--estimate",
        action="store_true",
        help="train nothing; say as JSON how long it would take, with evaluation and export",
    )
    options.json(parser, "run's record")


def run(args: argparse.Namespace) -> int:
    from engine.bundle.curve import WITH_VALIDATION, unsettled, validated
    from engine.console import duration
    from engine.data.dataset import Dataset
    from engine.errors import UsageError
    from engine.evaluation import protocols
    from engine.training import refit
    from engine.training.distributed import joined
    from engine.training.recipe import load
    from engine.training.run import train

    dataset = Dataset(args.dataset)
    recipe = load(args.model, dataset.info.name, args.recipe, args.set)
    folder = args.out or Path("runs") / dataset.info.name / recipe.name
    selection = None
    if args.finish and args.restart:
        raise UsageError("--finish keeps the best model so far, and --restart throws it away; leave one out")
    if args.refit:
        if args.finish:
            raise UsageError("--finish: a refit has as many epochs as were selected, and no earlier end; leave it out")
        selection, folder = refit.select(recipe, dataset, folder), refit.folder_of(folder)
    if args.estimate:
        from engine.training.estimate import estimate

        print(json.dumps(estimate(recipe, dataset, folder, device=args.device, selection=selection).to_dict()))
        return 0
    with joined(args.device) as world:
        record = options.begun(
            args,
            lambda restart: train(
                recipe, dataset, folder, device=args.device, world=world, restart=restart, finish=args.finish,
                selection=selection,
            ),
        )  # fmt: skip
        if not world.leads:
            return 0
    if args.json:
        print(json.dumps(record))
        return 0
    ndcg = record["valid_ndcg"]
    best = f"best epoch {record['best_epoch']} of {record['epochs']}, " if ndcg is not None and record["epochs"] else ""
    sampled = protocols.parse(recipe.training.valid_protocol).sampled
    among = f" among {sampled:,} sampled negatives" if sampled else ""
    best += "" if ndcg is None else f"validation NDCG@10 {ndcg:.4f}{among}, "
    early = unsettled(record["best_epoch"], validated(record["curve"]), record["recipe"])
    if early is not None:
        best += f"{early}, "
    if selection is not None:
        best = f"fitted on {WITH_VALIDATION} events, "
        if selection.epochs:
            best += f"for the {count(selection.epochs, 'epoch')} that {selection.run} selected, "
    print(f"{folder}: {best}{duration(record['seconds'])} on {record['device']}")
    print(f"split {dataset.info.split['kind']}, fingerprint {dataset.info.fingerprint}")
    return 0
