"""Give every item of a prepared dataset an identifier, and write a tokenizer's run.

The settings come from a recipe, engine/recipes/<dataset or default>/<recipe>.toml unless --recipe names another, and from
--set. Interrupted at any moment, the same command goes on where it stopped.

  seqscope tokenize rqvae --dataset data/beauty
  seqscope tokenize letter --dataset data/beauty --set tokenizer.teacher=lightgcn

With --from the items get the codes of a tokenizer that was fitted to another catalogue: new items beside the ones it knows.

  seqscope tokenize --from runs/beauty/rqvae --dataset data/beauty-2027
"""

import argparse
import json
from pathlib import Path

from engine import cards
from engine.commands import options
from engine.writing import count


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recipe_name",
        metavar="RECIPE",
        nargs="?",
        help=f"a tokenizer ({', '.join(cards.names(cards.TOKENIZERS))}) or a recipe (lc-rec-rqvae, a file, …)",
    )
    parser.add_argument(
        "--from", dest="source", type=Path, metavar="RUN", help="finished run of a tokenizer, in place of a recipe"
    )
    options.settings(parser, recipe="beauty/letter", setting="tokenizer.levels=4")
    parser.add_argument(
        "--vectors",
        type=Path,
        metavar="FILE",
        help="item vectors, .npy float32 [items, d], in place of a text encoder's",
    )
    parser.add_argument(
        "--judge",
        type=Path,
        metavar="RUN",
        help="run of SASRec, LightGCN or NGCF for the report's collaborative figures (default: one beside)",
    )
    options.device(parser)
    options.restart(parser)
    options.json(parser, "report")


def run(args: argparse.Namespace) -> int:
    import numpy as np

    from engine.data.dataset import Dataset
    from engine.errors import UsageError
    from engine.files import expect_file
    from engine.tokenizers.recipe import load
    from engine.tokenizers.report import table
    from engine.tokenizers.run import tokenize, transfer

    if (args.recipe_name is None) == (args.source is None):
        raise UsageError("give the name of a recipe, or the run of a fitted tokenizer with --from")
    if args.source is not None and (args.recipe or args.set):
        raise UsageError("--from takes the settings of its run; --recipe and --set do not go with it")
    dataset = Dataset(args.dataset)
    vectors = None
    if args.vectors:
        expect_file(args.vectors)
        try:
            vectors = np.load(args.vectors, allow_pickle=False)
        except (ValueError, EOFError):
            vectors = None
        if not isinstance(vectors, np.ndarray):
            raise UsageError(
                f"--vectors {args.vectors}: it is no .npy file; numpy.save writes one, a row for each item"
            )
    how = {"device": args.device, "vectors": vectors, "judge": args.judge}
    runs = Path("runs") / dataset.info.name
    if args.source is not None:
        folder = args.out or runs / args.source.resolve().name
        report = options.begun(args, lambda restart: transfer(args.source, dataset, folder, restart=restart, **how))
    else:
        recipe = load(args.recipe_name, dataset.info.name, args.recipe, args.set)
        folder = args.out or runs / recipe.name
        report = options.begun(args, lambda restart: tokenize(recipe, dataset, folder, restart=restart, **how))
    if args.json:
        print(json.dumps(report))
        return 0
    print(f"{folder}: {count(report['items'], 'item')}")
    print(table(report))
    return 0
