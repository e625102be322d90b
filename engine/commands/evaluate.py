"""Rank every test user's held-out item with the best model of a run, and print the metrics.

Full ranking over the whole catalogue, items of the history excluded, is always done. The ranks are stored in the run folder.

A model that knows items by their words can be asked about a catalogue it never saw: --dataset names it, and the ranks go to
RUN/elsewhere/<dataset>.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder of a finished training")
    parser.add_argument(
        "--dataset", type=Path, metavar="DIR", help="where the dataset is now, if it moved; or another one"
    )
    parser.add_argument(
        "--protocol", action="append", choices=("u100", "p100"), default=[],
        help="also rank among 100 frozen uniform or popular negatives, to compare with papers",
    )  # fmt: skip
    parser.add_argument("--keep-history", action="store_true", help="also rank with items of the history as candidates")
    parser.add_argument("--exact", action="store_true", help="score all items of a generator, however many identifiers")
    parser.add_argument("--beam", type=int, metavar="N", help="width of a generator's beam (default: its recipe's)")
    parser.add_argument(
        "--agreement", type=int, default=0, metavar="N",
        help="compare beams of several widths with exact scores on N histories (generators; into generation.json)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the metrics as JSON")


def run(args: argparse.Namespace) -> int:
    from engine.errors import UsageError
    from engine.evaluation.evaluate import evaluate
    from engine.training.run import open_run

    model, recipe, record, dataset = open_run(args.run, args.dataset, elsewhere=True)
    own = dataset.info.fingerprint == record["fingerprint"]
    folder = args.run if own else args.run / "elsewhere" / dataset.info.name
    if args.beam is not None and args.beam < 1:
        raise UsageError(f"--beam {args.beam}: keep at least one identifier")
    found = evaluate(
        model, dataset, folder, protocols=args.protocol, keep_history=args.keep_history,
        exact=args.exact, beam=args.beam, histories=max(0, args.agreement),
    )  # fmt: skip
    if args.json:
        print(json.dumps({"run": str(folder), "fingerprint": dataset.info.fingerprint, "metrics": found}))
        return 0
    print(
        f"{dataset.info.name}, {recipe.name}: {dataset.info.counts['test']} test users, split {dataset.info.split['kind']}"
    )
    print(f"fingerprint {dataset.info.fingerprint}")
    if not own:
        print(f"never trained on: it was trained on {record['dataset']} ({folder})")
    cold = int((dataset.popularity[dataset.cases("test").targets] == 0).sum())
    if cold:
        print(f"{cold} of the test users are asked for an item that nobody has in training")
    for protocol, values in found.items():
        print(f"\n{protocol}")
        names = list(dict.fromkeys(name.partition("@")[0] for name in values))
        cuts = list(dict.fromkeys(name.partition("@")[2] for name in values))
        print("".join(f"{head:>10}" for head in ["@", *cuts]))
        for name in names:
            print(
                f"{name:>10}"
                + "".join(f"{values[f'{name}@{k}']:>10.4f}" if f"{name}@{k}" in values else " " * 10 for k in cuts)
            )
    return 0
