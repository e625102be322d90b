"""Apply a model that reads words to a catalogue it was never trained on, and write it there as a bundle.

seqscope zero-shot exports/sample/recformer --dataset data/shop --to exports/shop

The bundle lies beside the dataset.json of what it was trained on. Items are read once; what was read is kept with the dataset and
found again as long as neither the bundle nor the words change. Where people of the dataset have held-out items, they are ranked.
"""

import argparse
import json
import time
from pathlib import Path

from engine.commands import options
from engine.writing import count

MEND = "its answers say little here. seqscope train text-neighbours learns to read them, recformer too where there is a log"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", type=Path, metavar="BUNDLE", help="a bundle that knows items by their words")
    options.dataset(parser)
    options.exports(parser)
    parser.add_argument("--name", help="name of the bundle (default: that of BUNDLE)")
    parser.add_argument("--title", help="name for people (default: that of BUNDLE, marked)")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="where rows are kept (default: <dataset>/words)")
    options.users(parser)
    options.json(parser, "findings")


def run(args: argparse.Namespace) -> int:
    from engine.errors import UsageError
    from engine.export.transfer import carry

    if args.users < 1:
        raise UsageError(f"--users {args.users}: offer at least one user")
    start = time.monotonic()
    result = carry(
        args.bundle, args.dataset, args.to, name=args.name, title=args.title, cache=args.cache, users=args.users
    )
    seconds = time.monotonic() - start
    if args.json:
        facts = {
            "path": str(result.folder), "items": result.items, "cut": result.cut, "mapped": result.mapped,
            "found": result.found, "unknown_share": round(result.known.share, 4), "seconds": round(seconds, 2),
        }  # fmt: skip
        print(json.dumps(facts))
        return 0
    how = "was there already" if result.found else f"{seconds:.1f} s"
    print(f"{result.folder}: {count(result.items, 'item')}, {how}")
    print(result.known.sentence(args.bundle.resolve().name, MEND))
    if result.cut:
        print(
            f"{count(result.cut, 'item has', 'items have')} more words than the model takes; the last ones are not read"
        )
    if result.mapped < result.items:
        print(
            f"{result.mapped:,} items are on the map, drawn at random" if result.mapped else "too few items for a map"
        )
    return 0
