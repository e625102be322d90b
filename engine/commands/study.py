"""Carry out studies: one thing changed at a time, each variant trained, evaluated and compared over the same users.

A study is a TOML file (docs/training.md); those of engine/studies/<dataset>/ are named without a path, and without a name all of
them are carried out. Runs that are there already are not repeated, so an interrupted study goes on where it stopped. Results
go to <DIR>/studies/<name>.json, where the page Metrics finds them.

  seqscope study letter-terms temperature --dataset data/sample --to exports/sample
"""

import argparse
import shlex
from pathlib import Path

from engine.commands import options


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("studies", nargs="*", metavar="STUDY", help="names of studies, or TOML files")
    options.dataset(parser)
    options.exports(parser, "exports/ml-1m")
    parser.add_argument("--runs", type=Path, metavar="DIR", help="where runs are (default: runs/<dataset>/studies)")
    options.device(parser)


def run(args: argparse.Namespace) -> int:
    from engine.data.dataset import Dataset
    from engine.errors import UsageError
    from engine.export.staging import exported_fingerprint
    from engine.files import claimed
    from engine.studies.plan import find, load
    from engine.studies.run import carry_out, write_study

    dataset = Dataset(args.dataset)
    if exported_fingerprint(dataset, args.to) not in (None, dataset.info.fingerprint):
        raise UsageError(f"{args.to} is of other data than {args.dataset}; no page would show the study there")
    runs = args.runs or Path("runs") / dataset.info.name / "studies"
    plans = {name: load(path) for name, path in find(args.studies, dataset.info.name).items()}
    with claimed(runs):
        for name, plan in plans.items():
            command = shlex.join(["seqscope", "study", name, "--dataset", str(args.dataset), "--to", str(args.to)])
            study = carry_out(plan, dataset, runs, device=args.device, command=command, say=_say)
            _say(str(write_study(study, args.to / "studies")))
    return 0


def _say(words: str) -> None:
    print(words, flush=True)
