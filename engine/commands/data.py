"""Import, fetch and describe datasets.

seqscope data import PATH … --out data/NAME    make a dataset of raw files
seqscope data describe data/NAME               what a dataset holds
seqscope data fetch ml-1m --to raw             download a public set
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import options
from engine.errors import SeqscopeError, UsageError
from engine.writing import count

if TYPE_CHECKING:
    from engine.data.options import ImportOptions
    from engine.data.prepare import ImportResult
    from engine.data.split import SplitOptions
    from engine.tabular.findings import Finding

FORMATS = """\
formats (--source; guessed from the layout where it is not given):
  ml-1m      ratings.dat, movies.dat: fields separated by ::           k-core 5
  ml-100k    u.data, u.item                                            k-core 0
  ml-20m     ratings.csv, movies.csv (also 25M, 32M, latest)           k-core 0
  movietweetings  ratings.dat, movies.dat as of ml-1m, in UTF-8        k-core 10
  user-item  text lines "user item", oldest first                      k-core 0
  user-items text lines "user item item …", without order; --test      k-core 0
  letter     one JSON object of user -> list of items                  k-core 0
  amazon     review JSON lines with metadata, plain or .gz             k-core 5
  table      any CSV, TSV, JSON lines or Parquet with a header         k-core 0

What is left out, in this order: bad rows, low ratings, rows logged twice, repeats that do not count,
what is outside the k-core, items nobody has.
docs/data.md describes every option.
"""

OF_SPLITS = {
    "time": ("valid_from", "test_from", "quantiles"), "given": ("valid_share",), "users": ("held_out_users", "fold_in"),
}  # fmt: skip
"""Options that say something of one kind of split alone."""


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _configure_import(actions)
    describe = actions.add_parser("describe", help="say what a prepared dataset holds")
    describe.add_argument("dataset", type=Path, help="a dataset folder, such as data/ml-1m")
    describe.add_argument("--json", action="store_true", help="print dataset.json instead")
    fetch = actions.add_parser(
        "fetch",
        help="download a public set",
        description="Download a public set, checked and whole; repeat to continue.",
    )
    fetch.add_argument(
        "name",
        help="ml-100k, ml-1m, ml-20m, movietweetings, goodbooks-10k, online-retail, amazon-beauty, amazon-sports or amazon-toys",
    )
    fetch.add_argument(
        "--to", type=Path, required=True, metavar="DIR", help="folder for raw files; the set goes to DIR/NAME"
    )
    fetch.add_argument("--accept-licence", action="store_true", help="accept the terms of the set without being asked")
    fetch.add_argument(
        "--base-url", metavar="URL", help="a mirror: the folder that holds the files; default: the publisher's"
    )
    fetch.add_argument(
        "--stall", type=float, default=30.0, metavar="SECONDS", help="give a silent connection up; default: 30"
    )


def run(args: argparse.Namespace) -> int:
    return {"import": _import, "describe": _describe, "fetch": _fetch}[args.action](args)


def _configure_import(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "import",
        help="make a dataset of raw files",
        description="Read a log and its catalogue, check every row, and write one dataset folder.",
        epilog=FORMATS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="files of the log, or one folder that holds them"
    )
    options.new_dataset(parser)
    parser.add_argument("--test", type=Path, metavar="FILE", help="user-items: the held-out items, in the same form")
    options.overwrite(parser)
    parser.add_argument("--source", metavar="FORMAT", help="see below")

    files = parser.add_argument_group("files")
    files.add_argument(
        "--items", type=Path, metavar="FILE", help="catalogue: CSV, TSV, JSON, Parquet, movies.dat or u.item"
    )
    files.add_argument(
        "--item-map", type=Path, metavar="FILE", help='lines "number id": what the log\'s item numbers stand for'
    )
    for name, where in (
        ("user", "log"),
        ("item", "log"),
        ("time", "log; - for none"),
        ("clock", "log: the time of day, where times are days"),
        ("rating", "log"),
        ("quantity", "log"),
        ("item-id", "item file"),
        ("title", "item file"),
    ):
        files.add_argument(f"--{name}-column", metavar="NAME", help=f"in the {where}; default: by its name")
    files.add_argument(
        "--list-column", action="append", default=[], metavar="NAME", help="item file: holds values with | between"
    )
    files.add_argument(
        "--no-header", action="store_true", help="tables: the first row is data; columns are numbers from 1"
    )
    files.add_argument(
        "--delimiter", metavar="TEXT", help="tables: default: the one that the first row shows; \\t is a tab"
    )
    files.add_argument("--encoding", metavar="NAME", help="default: utf-8, or latin-1 where MovieLens uses it")
    files.add_argument(
        "--time-unit", choices=("s", "ms", "us", "ns"), help="of numeric times; default: the one that fits most rows"
    )

    files.add_argument(
        "--time-format", metavar="PATTERN",
        help="of written times, such as '%%d.%%m.%%Y %%H:%%M'; default: ISO, or the usual pattern that reads most rows",
    )  # fmt: skip

    events = parser.add_argument_group("events")
    events.add_argument("--min-rating", type=float, metavar="R", help="leave out events rated lower; default: none")
    events.add_argument(
        "--drop-negative", action="store_true", help="leave out events of a negative quantity (cancellations)"
    )
    events.add_argument(
        "--duplicates", default="exact", metavar="{exact,keep}",
        help="rows logged twice, with the same user, item and time: drop the copies (default), or keep them",
    )  # fmt: skip
    events.add_argument(
        "--repeats", choices=("count", "first", "auto"), default="auto",
        help="items that a user comes back to: they count, or the first event alone is used; default: as measured",
    )  # fmt: skip
    events.add_argument(
        "--k-core", type=int, metavar="K", help="every user and item keeps at least K events; default: by format"
    )
    events.add_argument(
        "--min-history", type=int, default=1, metavar="N", help="leave out users with fewer events; default: 1"
    )
    events.add_argument(
        "--ties", choices=("file", "known", "item", "shuffle"), default="file",
        help="order among events of one user at one time: as in the file (default), as in the file and known to be the "
        "true one, by item, or drawn by --seed",
    )  # fmt: skip
    events.add_argument(
        "--seed", type=int, default=0, help="for --ties shuffle, --valid-share and --split users; default: 0"
    )
    events.add_argument("--keep-unused-items", action="store_true", help="keep items that no user has in the catalogue")

    split = parser.add_argument_group("split")
    split.add_argument(
        "--split", choices=("leave-one-out", "time", "users"),
        help="default: leave-one-out, or what --test gives; users: strong generalisation, to users held out whole",
    )  # fmt: skip
    split.add_argument(
        "--valid-from", metavar="DATE", help="split by time: ISO date or unix seconds; default: see --quantiles"
    )
    split.add_argument(
        "--test-from", metavar="DATE", help="split by time: ISO date or unix seconds; default: see --quantiles"
    )
    split.add_argument(
        "--quantiles", type=float, nargs=2, metavar=("V", "T"),
        help="split by time: shares of events before validation and before test; default: 0.8 0.9",
    )  # fmt: skip
    split.add_argument(
        "--valid-share", type=float, metavar="S",
        help="with --test: share of each user's training items that validate; default: 0.1; 0: none",
    )  # fmt: skip
    split.add_argument(
        "--held-out-users", type=float, nargs=2, metavar=("V", "T"),
        help="split by users: how many validate and test, below 1 as shares of all; default: 0.1 0.1",
    )  # fmt: skip
    split.add_argument(
        "--fold-in", type=float, metavar="S",
        help="split by users: share of a held-out user's items that is known; default: 0.8",
    )  # fmt: skip

    about = parser.add_argument_group("about the dataset")
    about.add_argument("--name", help="name in addresses and of recipes; default: the last part of --out")
    about.add_argument("--title", help="name for people; default: the format's")
    about.add_argument("--about", metavar="TEXT", help="where the log comes from, in a sentence; default: the format's")
    about.add_argument("--licence", metavar="TEXT", help="terms of the data, in a sentence; default: the format's")

    rows = parser.add_argument_group("bad rows and resources")
    rows.add_argument(
        "--strict", action="store_true", help="stop at bad rows, after reporting all of them; write nothing"
    )
    rows.add_argument(
        "--report", type=Path, metavar="FILE.csv", help="write every bad row there, over a list of before"
    )
    rows.add_argument("--memory", default="2GB", help="for DuckDB, the rest goes to disk beside --out; default: 2GB")


def _import(args: argparse.Namespace) -> int:
    from engine.console import stage
    from engine.data.prepare import import_dataset

    stage("reading the log and the catalogue")
    options = chosen(
        args, paths=tuple(args.paths), header=not args.no_header, split=_split(args),
        delimiter=args.delimiter and args.delimiter.replace("\\t", "\t").replace("\x01", "␁"),
    )  # fmt: skip
    return show(import_dataset, options, args)


def _split(args: argparse.Namespace) -> SplitOptions:
    from engine.data.split import SplitOptions

    kind = args.split or ("leave-one-out" if args.test is None else "given")
    given = {
        name: value for names in OF_SPLITS.values() for name in names if (value := getattr(args, name)) is not None
    }
    for of, names in OF_SPLITS.items():
        if of != kind and (stray := given.keys() & names):
            flags = " and ".join(f"--{name.replace('_', '-')}" for name in names if name in stray)
            raise UsageError(f"{flags}: only with {'--test' if of == 'given' else f'--split {of}'}")
    if quantiles := given.pop("quantiles", None):
        given["valid_quantile"], given["test_quantile"] = quantiles
    for name in given.keys() & {"valid_from", "test_from"}:
        given[name] = _moment(given[name], f"--{name.replace('_', '-')}")
    if numbers := given.get("held_out_users"):
        given["held_out_users"] = tuple(numbers)
    return SplitOptions(kind=kind, seed=args.seed, **given)


def chosen(args: argparse.Namespace, **more: object) -> ImportOptions:
    """The options of an import: `more`, and whatever else the arguments say under the name of an option."""
    from engine.data.options import Columns, ImportOptions

    said = {name: value for name, value in vars(args).items() if value is not None}
    columns = Columns(**{f.name: said.get(f"{f.name}_column") for f in dataclasses.fields(Columns)})
    more = {"list_columns": tuple(args.list_column), "columns": columns} | more
    names = {field.name for field in dataclasses.fields(ImportOptions)} & said.keys() - more.keys()
    return ImportOptions(**{name: said[name] for name in names}, **more)  # type: ignore[arg-type]


def _moment(text: str, flag: str) -> int:
    """Unix seconds of a date (UTC where it names no zone) or of a number."""
    try:
        if text.isdecimal():
            return int(text)
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{flag} {text}: write a date as 2003-01-31, or unix seconds")
    return int((moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp())


def show(imported: Callable[..., ImportResult], options: ImportOptions, args: argparse.Namespace) -> int:
    """Import, and say what was imported and what was wrong with it. args: out and report."""
    from engine.data.dataset import describe
    from engine.data.prepare import BadRows

    try:
        result = imported(options, say=lambda line: print(line, file=sys.stderr))
    except BadRows as error:
        _show_problems(error.problems, error.counts, args.report)
        raise
    _show_problems(result.problems, result.problem_counts, args.report)
    for line in result.notices:
        print(f"note: {line}", file=sys.stderr)
    print(describe(result.info))
    print(f"{'written':<12} {args.out}")
    return 0


def _show_problems(problems: Sequence[Finding], counts: dict[str, int], report: Path | None) -> None:
    if not counts:
        return
    total = sum(counts.values())
    print(f"{count(total, 'bad row')}:", file=sys.stderr)
    for reason, rows in counts.items():
        print(f"  {rows:>9,}  {reason}", file=sys.stderr)
    for problem in problems:
        print(f"  {problem}", file=sys.stderr)
    if total > len(problems):
        rest = f"  … and {total - len(problems):,} more; " + (
            f"all are in {report}" if report else "--report FILE.csv writes all"
        )
        print(rest, file=sys.stderr)


def _describe(args: argparse.Namespace) -> int:
    from engine.data.dataset import DatasetInfo, describe

    if not args.dataset.exists():
        raise SeqscopeError(f"{args.dataset} does not exist. Make a dataset with `seqscope data import`.")
    info = DatasetInfo.read(args.dataset / "dataset.json")
    print(info.to_json() if args.json else describe(info), end="" if args.json else "\n")
    return 0


def _fetch(args: argparse.Namespace) -> int:
    from engine.data.download import Patience
    from engine.data.fetch import PUBLIC, fetch

    if args.name not in PUBLIC:
        raise UsageError(f"no public set is called {args.name!r}; there are {', '.join(PUBLIC)}")
    if not 0 < args.stall < 1e6:
        raise UsageError(f"--stall {args.stall:g}: give seconds, more than 0")
    print(f"{PUBLIC[args.name].terms}\n\nknown problems:\n{PUBLIC[args.name].problems}\n")
    if not args.accept_licence:
        if not sys.stdin.isatty():
            raise UsageError("nothing was fetched: accept these terms with --accept-licence")
        if input("Do you accept these terms? [y/N] ").strip().lower() not in ("y", "yes"):
            raise SeqscopeError("nothing was fetched: the terms were not accepted.")
    folder = fetch(args.name, args.to, base_url=args.base_url, patience=Patience(stall=args.stall))
    print(f"next: seqscope data import {PUBLIC[args.name].next_step.format(folder=shlex.quote(str(folder)))}")
    return 0
