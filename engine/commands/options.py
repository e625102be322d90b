"""Options that several commands take."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.console import note
from engine.errors import OtherRun


def dataset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", required=True, type=Path, metavar="DIR", help="prepared dataset folder")


def settings(parser: argparse.ArgumentParser, *, recipe: str, setting: str) -> None:
    """Of what is made of a recipe and a dataset; recipe, setting: examples."""
    dataset(parser)
    parser.add_argument("--recipe", metavar="R", help=f"recipe name ({recipe}) or TOML file")
    help_line = f"override one setting, such as {setting}"
    parser.add_argument("--set", action="append", default=[], metavar="TABLE.KEY=VALUE", help=help_line)
    parser.add_argument("--out", type=Path, metavar="DIR", help="run folder (default: runs/<dataset>/<recipe>)")


def device(parser: argparse.ArgumentParser, help_line: str | None = None) -> None:
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help=help_line)


def restart(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--restart", action="store_true", help="throw away what the run folder holds")
    help_line = "the same where that is another run than this one, or damaged; else go on with it"
    parser.add_argument("--restart-other", action="store_true", help=help_line)


def begun(args: argparse.Namespace, begin: Callable[[bool], dict[str, Any]]) -> dict[str, Any]:
    """What `begin` answers, which is told whether to restart."""
    try:
        return begin(args.restart)
    except OtherRun as error:
        if not args.restart_other or args.restart:
            raise
        note(f"{str(error).partition('. ')[0]}: it is replaced")
        return begin(True)


def exports(parser: argparse.ArgumentParser, example: str = "") -> None:
    help_line = "export folder of the dataset" + (f", such as {example}" if example else "")
    parser.add_argument("--to", required=True, type=Path, metavar="DIR", help=help_line)


def users(parser: argparse.ArgumentParser) -> None:
    help_line = "users to offer for trying models (default 2000)"
    parser.add_argument("--users", type=int, default=2000, metavar="N", help=help_line)


def json(parser: argparse.ArgumentParser, printed: str) -> None:
    parser.add_argument("--json", action="store_true", help=f"print the {printed} as JSON")


def new_dataset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="data/NAME", help="the dataset folder to write")


def overwrite(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--overwrite", action="store_true", help="replace the dataset at --out")
