"""Make a dataset of a catalogue alone, without a log.

seqscope catalogue import items.csv --out data/shop       CSV, TSV, JSON, JSON lines or Parquet
seqscope zero-shot exports/sample/recformer --dataset data/shop --to exports/shop

Models that know items by their words serve such a dataset at once, and tokenizers give its items identifiers; whatever learns
from what users interact with needs a log (`seqscope data import`).
"""

import argparse
from pathlib import Path

from engine.commands import options


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=type(parser))
    made = actions.add_parser("import", help="make a dataset of an item file")
    made.add_argument("path", type=Path, metavar="FILE", help="CSV, TSV, JSON, JSON lines or Parquet, plain or .gz")
    options.new_dataset(made)
    options.overwrite(made)
    made.add_argument("--name", help="the dataset's name in addresses; default: the last part of --out")
    made.add_argument("--item-id-column", metavar="NAME", help="default: by its name")
    made.add_argument("--title-column", metavar="NAME", help="default: by its name")
    made.add_argument(
        "--list-column", action="append", default=[], metavar="NAME", help="holds values with | between them"
    )
    made.add_argument("--encoding", metavar="NAME", help="default: utf-8")
    made.add_argument("--title", help="name for people")
    made.add_argument("--about", metavar="TEXT", help="where the catalogue comes from, in a sentence")
    made.add_argument("--licence", metavar="TEXT", help="terms of the data, in a sentence")
    made.add_argument("--strict", action="store_true", help="stop at bad rows, after reporting all; write nothing")
    made.add_argument(
        "--report", type=Path, metavar="FILE.csv", help="write every bad row there, over a list of before"
    )
    made.add_argument("--memory", default="2GB", help="for DuckDB; default: 2GB")


def run(args: argparse.Namespace) -> int:
    from engine.commands.data import chosen, show
    from engine.console import stage
    from engine.data.prepare import import_catalogue

    stage("reading the catalogue")
    return show(import_catalogue, chosen(args, paths=(args.path,)), args)
