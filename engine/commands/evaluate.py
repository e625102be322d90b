"""Rank every test user's held-out items with the best model of a run, and print the metrics.

Full ranking over the whole catalogue is always done, items of the history excluded unless repeats count in the dataset. The ranks
are stored in the run folder. Where other runs of the dataset lie beside it, evaluated likewise, the verdict on all of them
follows: whether the best neural model beats the best that needs no training.

A model that knows items by their words can be asked about a catalogue it never saw: --dataset names it, and the ranks go to
RUN/elsewhere/<dataset>.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import options
from engine.evaluation.metrics import CUTOFFS, beam_width, beyond_beam, cutoff_of
from engine.writing import count, in_percent

if TYPE_CHECKING:
    from engine.evaluation.verdict import Verdict


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder of a finished training")
    parser.add_argument(
        "--dataset", type=Path, metavar="DIR", help="where the dataset is now, if it moved; or another one"
    )
    parser.add_argument(
        "--protocol", action="append", choices=("u100", "p100"), default=[],
        help="also rank among 100 frozen uniform or popular negatives, to compare with papers",
    )  # fmt: skip
    parser.add_argument(
        "--keep-history",
        action="store_true",
        help="also rank with items of the history as candidates, as some papers do",
    )
    parser.add_argument("--exact", action="store_true", help="score all items of a generator, however many identifiers")
    parser.add_argument(
        "--beam", type=int, metavar="N", help="width of a generator's beam (default: its recipe's, at least 50)"
    )
    parser.add_argument(
        "--agreement", type=int, default=0, metavar="N",
        help="compare beams of several widths with exact scores on N histories (generators; into generation.json)",
    )  # fmt: skip
    options.device(parser, "what ranks; a list's cost is always measured on the CPU")
    options.json(parser, "metrics")


def run(args: argparse.Namespace) -> int:
    from engine.bundle.curve import WITH_VALIDATION, refitted
    from engine.data.repeats import UNTRAINED, about_held_out
    from engine.errors import UsageError
    from engine.evaluation.evaluate import evaluate
    from engine.evaluation.protocols import of_people
    from engine.evaluation.run_verdict import main_protocol, of_runs
    from engine.evaluation.tables import ELSEWHERE
    from engine.evaluation.verdict import sentences
    from engine.files import tidied
    from engine.training.compute import choose
    from engine.training.run import open_run

    if args.beam is not None and args.beam < 1:
        raise UsageError(f"--beam {args.beam}: keep at least one identifier")
    if args.agreement < 0:
        raise UsageError(f"--agreement {args.agreement}: name a number of histories")
    model, recipe, record, dataset = open_run(args.run, args.dataset, elsewhere=True)
    if model.beam is None and (args.exact or args.beam is not None or args.agreement):
        raise UsageError(f"--exact, --beam and --agreement are of generators; {recipe.family} always scores all items")
    model.to(choose(args.device))
    same_data = dataset.info.fingerprint == record["fingerprint"]
    folder = args.run if same_data else args.run / ELSEWHERE / dataset.info.name
    with tidied(folder):
        for path in () if same_data else (folder.parent, folder):
            path.mkdir(exist_ok=True)  # never the run's own: it may have been deleted
        metrics = evaluate(
            model, dataset, folder, protocols=args.protocol, keep_history=args.keep_history,
            exact=args.exact, beam=args.beam, histories=args.agreement, refit=same_data and refitted(record),
        )  # fmt: skip
    protocol = main_protocol(metrics)
    judged = of_runs(args.run.absolute().parent.iterdir(), dataset, protocol, of_people(protocol)[0])
    held_out = about_held_out(dataset.info.held_out, dataset.info.held_out_items, dataset.info.options)
    if args.json:
        answer = {"run": str(folder), "fingerprint": dataset.info.fingerprint, "held_out": held_out, "metrics": metrics}
        print(json.dumps(answer | {"verdict": judged and {**asdict(judged), "sentences": sentences(judged)}}))
        return 0
    users = count(dataset.info.counts["test"], "test user")
    print(f"{dataset.info.name}, {recipe.name}: {users}, split {dataset.info.split['kind']}")
    print(f"fingerprint {dataset.info.fingerprint}")
    if refitted(record):
        print(f"fitted on {WITH_VALIDATION} events: not to be compared with models fitted on training events alone")
    if not same_data:
        print(f"never trained on: it was trained on {record['dataset']} ({folder})")
    cold = int((dataset.popularity[dataset.cases("test").targets] == 0).sum())
    if cold and UNTRAINED not in dataset.info.held_out:  # else a sentence below counts them
        print(f"{count(cold, 'held-out item is', 'held-out items are')} in nobody's training")
    if held_out:
        print(" ".join(held_out))
    for protocol in metrics:
        print("\n".join(["", protocol, *table(metrics, protocol)]))
    if judged is not None:
        print("\n".join(["", sentences(judged), *_groups(judged)]))
    return 0


def _groups(judged: Verdict) -> list[str]:
    """Lines: for whom, in every group; none where there are no groups."""
    from engine.evaluation.verdict import GROUP_COLUMNS, group_rows

    rows = [GROUP_COLUMNS, *group_rows(judged)] if judged.groups else []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]


def table(metrics: Mapping[str, Mapping[str, float]], protocol: str) -> list[str]:
    """Lines: a row per metric, a column per cut-off; a dash where the beam says nothing, and why. metrics: of `evaluate`."""
    values, width = metrics[protocol], beam_width(metrics, protocol)
    names = list(dict.fromkeys(name.partition("@")[0] for name in values if not name.startswith("outside@")))
    lines = ["".join(f"{head:>10}" for head in ["@", *CUTOFFS])]
    for name in names:
        keys = [name] if name in values else [f"{name}@{k}" for k in CUTOFFS]  # the first: without a cut-off
        cells = ["–" if beyond_beam(cutoff_of(key), width) else f"{values[key]:.4f}" for key in keys]
        lines.append("".join(f"{cell:>10}" for cell in [name, *cells]))
    if any(beyond_beam(k, width) for k in CUTOFFS):
        lines.append(f"–: beyond the beam of {width}, which says nothing of places after its last")
    if f"outside@{width}" in values:
        lines.append(
            f"{in_percent(values[f'outside@{width}'], 1)} of the held-out items are not reached by the beam of {width}"
        )
    return lines
