"""Quality on public data: what a finished run measured, kept as a small file, and the table of all of them.

    seqscope train sasrec --dataset data/ml-1m
    python -m benchmarks.quality record runs/ml-1m/sasrec          evaluates (full, u100, p100), writes benchmarks/results/
    python -m benchmarks.quality compare A B                       two evaluated runs, the same people: A − B with its interval
    python -m benchmarks.quality zero-shot RUN data/OTHER          a model of words against popularity, on another catalogue
    python -m benchmarks.quality options data/beauty …             import options into the results of the same fingerprint
    python -m benchmarks.quality verdict runs/ml-1m …              whether the best neural model there is worth its training
    python -m benchmarks.quality table                             prints the tables of benchmarks/README.md, with the goals

A result names its command, recipe, seconds, device, commit, split fingerprint and import options, so that it can be had again.
Record popularity, markov and what else needs no training, too: every table begins with them (of sets without an order, with those
that read none). `verdict` judges all evaluated runs of a folder, or the bundles of one of exports, seeds of a recipe together;
the sentence stands above the table.
Refits (`seqscope train --refit`) have files, protocols and comparisons of their own.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch

from benchmarks import quality_tables as tables
from benchmarks import verdicts
from benchmarks.quality_tables import REFIT, SEEDS, shown
from engine.bundle.curve import TRAINING, refitted
from engine.console import Progress
from engine.data.dataset import Dataset, DatasetInfo
from engine.evaluation import metrics
from engine.evaluation.evaluate import evaluate
from engine.evaluation.protocols import parse
from engine.evaluation.ranks import frozen, full_ranks, sampled_ranks
from engine.evaluation.significance import interval, paired
from engine.files import write_json
from engine.registry import MODELS
from engine.training.run import open_run, training_log

OF_THE_RUN = (
    "recipe", "command", "commit", "device", "seconds", "epochs", "best_epoch", "parameters", "versions", "started",
)  # fmt: skip
"""What a result has of run.json as it is there."""
Ranks = dict[str, tuple[np.ndarray, np.ndarray]]
"""Protocol → ranks, float64 [targets], and whose they are, int [targets]."""


def per_user(metric: str, ranks: Ranks, protocol: str) -> np.ndarray:
    """float64 [users]"""
    return metrics.per_user(metric, ranks[protocol][0], protocol, ranks[protocol][1])


def stored(folder: Path, dataset: Dataset) -> Ranks:
    """Of the test items; full rankings also apart for targets that training has (warm) or lacks (cold)."""
    table = pq.read_table(folder / "ranks.parquet")
    cases = dataset.cases("test")
    cold = dataset.popularity[cases.targets] == 0
    found: Ranks = {}
    for protocol in table["protocol"].unique().to_pylist():
        part = table.filter(pc.equal(table["protocol"].cast("string"), protocol))
        if not np.array_equal(part["target"].to_numpy(), cases.targets):
            raise SystemExit(f"{folder} was not evaluated on {dataset.path}")
        ranks, users = part["rank"].to_numpy().astype(np.float64), part["user"].to_numpy()
        found[protocol] = ranks, users
        if parse(protocol).full and cold.any():
            found |= {
                f"{protocol}, {word}": (ranks[rows], users[rows]) for word, rows in (("cold", cold), ("warm", ~cold))
            }
    return found


def record(run: Path, as_it_is: bool, called: str = "") -> Path:
    """as_it_is: with the metrics of its last evaluation, where sampled candidates would take an hour. called: a name for other
    settings than those of the recipe's file."""
    model, recipe, kept, dataset = open_run(run)
    if called:
        kept["recipe"]["name"] = called
    if as_it_is:
        found = json.loads((run / "metrics.json").read_text("utf-8"))
    else:
        sampled = () if dataset.info.sets else ("u100", "p100")
        found = evaluate(model, dataset, run, protocols=sampled, refit=refitted(kept))
    ranks = stored(run, dataset)
    intervals: dict[str, dict[str, list[float]]] = {}
    for protocol in found:
        for name in shown(protocol):
            estimate = interval(per_user(name, ranks, protocol))
            intervals.setdefault(protocol, {})[name] = [round(estimate.low, 4), round(estimate.high, 4)]
    result: dict[str, Any] = {
        "dataset": dataset.info.name,
        "split": dataset.info.split["kind"],
        "fingerprint": dataset.info.fingerprint,
        "options": options(dataset.info),
        "users": dataset.info.counts["test"],
        "items": dataset.num_items,
        **{key: kept[key] for key in OF_THE_RUN},
        "improving": kept.get("improving"),
        "fitted_on": kept.get("fitted_on", TRAINING),
        "compute": kept.get("compute"),
        "metrics": {p: {k: round(v, 7) for k, v in values.items()} for p, values in found.items()},
        "intervals95": intervals,
    }
    seed = recipe.training.seed
    name = f"{dataset.info.name}-{called or recipe.name}{REFIT if refitted(kept) else ''}"
    path = tables.RESULTS / f"{name}{'' if seed == SEEDS[0] else f'-seed{seed}'}.json"
    write_json(path, result)
    return path


def compare(first: Path, second: Path) -> Path:
    """Paired differences first − second on every protocol that both have, kept as a file."""
    dataset = Dataset(Path("data") / first.parent.name)
    return _keep(dataset, first.name, second.name, stored(first, dataset), stored(second, dataset))


def zero_shot(run: Path, other: Path, people: int) -> Path:
    """A model that knows items by their words against popularity, on a catalogue that it never saw; on `people` test users.

    Among all items, and among negatives drawn by popularity (p100): there what is asked is what words say beyond popularity.
    """
    model, recipe, _, dataset = open_run(run, other, elsewhere=True)
    cases, negatives = dataset.cases("test"), frozen(dataset, "test", "p100")
    if people < len(cases):
        some = np.linspace(0, len(cases) - 1, people).astype(int)
        cases, negatives = cases.take(some), negatives[some]
    popular = MODELS["popularity"](
        MODELS["popularity"].Config(), dataset.num_items, dataset.num_users, torch.Generator()
    )
    popular.fit(*training_log(dataset))
    progress = Progress(len(cases), "zero-shot")
    ours = {"full": (full_ranks(model.eval(), cases, progress=progress.update).ranks, cases.users)}
    theirs = {"full": (full_ranks(popular.eval(), cases).ranks, cases.users)}
    ours["p100"] = sampled_ranks(model, cases, negatives).ranks, cases.users
    theirs["p100"] = sampled_ranks(popular, cases, negatives).ranks, cases.users
    return _keep(dataset, f"{recipe.name}-of-{run.parent.name}", "popularity", ours, theirs)


def _keep(dataset: Dataset, first: str, second: str, ours: Ranks, theirs: Ranks) -> Path:
    if not ours.keys() & theirs.keys():
        raise SystemExit(
            f"{first} was evaluated under {', '.join(ours)}, {second} under {', '.join(theirs)}: there is nothing to compare"
        )
    differences: dict[str, dict[str, dict[str, float]]] = {}
    for protocol in [protocol for protocol in ours if protocol in theirs]:
        for metric in shown(protocol):
            a, b = (per_user(metric, ranks, protocol) for ranks in (ours, theirs))
            found = paired(a, b)
            differences.setdefault(protocol, {})[metric] = {
                "first": round(float(a.mean()), 5),
                "second": round(float(b.mean()), 5),
                "difference": round(found.mean, 5),
                "low": round(found.low, 5),
                "high": round(found.high, 5),
                "users": len(a),
            }
    name = dataset.info.name
    path = tables.RESULTS / f"{name}-{first}-over-{second}.json"
    fingerprint = dataset.info.fingerprint
    write_json(
        path,
        {
            "dataset": name,
            "fingerprint": fingerprint,
            "options": options(dataset.info),
            "first": first,
            "second": second,
            "paired95": differences,
        },
    )
    return path


def options(info: DatasetInfo) -> dict[str, Any]:
    """What of a dataset's import decides what a figure on it means."""
    kept = info.options
    names = [
        "ties",
        *(["seed"] if kept.get("ties") == "shuffle" else []),
        "k_core",
        "min_rating",
        "duplicates",
        "repeats",
    ]
    split = kept.get("split") or {}
    drawn = {"given": ("valid_share", "seed"), "users": ("held_out_users", "fold_in", "seed")}.get(
        split.get("kind"), ()
    )
    return {name: kept[name] for name in names if name in kept} | {name: split[name] for name in drawn}


def add_options(datasets: list[Path]) -> list[Path]:
    """Write the import options of `datasets` into every result of the same fingerprint; returns the files that changed."""
    by_fingerprint = {dataset.info.fingerprint: options(dataset.info) for dataset in map(Dataset, datasets)}
    changed = []
    for path in sorted(tables.RESULTS.glob("*.json")):
        result = json.loads(path.read_text("utf-8"))
        known = by_fingerprint.get(result.get("fingerprint"))
        if known and result.get("options") != known:
            entries = list(result.items())
            place = 1 + [name for name, _ in entries].index("fingerprint")
            rest = [entry for entry in entries[place:] if entry[0] != "options"]
            write_json(path, dict([*entries[:place], ("options", known), *rest]))
            changed.append(path)
    return changed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    kept = actions.add_parser("record", help="evaluate runs and keep their results")
    kept.add_argument("runs", nargs="+", type=Path)
    kept.add_argument("--as-it-is", action="store_true", help="keep what `seqscope evaluate` found")
    kept.add_argument("--called", default="", help="a name for a run with other settings than its recipe's file")
    pair = actions.add_parser("compare", help="keep the paired difference of two evaluated runs")
    pair.add_argument("first", type=Path)
    pair.add_argument("second", type=Path)
    shot = actions.add_parser("zero-shot", help="keep how a run does on a catalogue that it never saw")
    shot.add_argument("run", type=Path)
    shot.add_argument("dataset", type=Path)
    shot.add_argument("--people", type=int, default=4000, help="test users who are asked, spread evenly")
    imported = actions.add_parser("options", help="write import options into results of the same fingerprint")
    imported.add_argument("datasets", nargs="+", type=Path)
    judged = actions.add_parser(
        "verdict", help="keep whether neural models are worth their training, of all runs of a folder"
    )
    judged.add_argument("folders", nargs="+", type=Path, metavar="runs/DATASET")
    actions.add_parser("table", help="print the tables; exit code 1 where a goal is missed")
    args = parser.parse_args()
    files: dict[str, Callable[[], Iterable[Path]]] = {
        "record": lambda: (record(run, args.as_it_is, args.called) for run in args.runs),
        "compare": lambda: [compare(args.first, args.second)],
        "zero-shot": lambda: [zero_shot(args.run, args.dataset, args.people)],
        "options": lambda: add_options(args.datasets),
        "verdict": lambda: (verdicts.record(folder, tables.RESULTS, options) for folder in args.folders),
    }
    if args.action in files:
        for path in files[args.action]():
            print(path)
        return
    text, met = tables.table()
    print(text)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
