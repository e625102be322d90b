"""Quality on public data: what a finished run measured, kept as a small file, and the table of all of them.

    seqscope train sasrec --dataset data/ml-1m
    python -m benchmarks.quality record runs/ml-1m/sasrec          evaluates (full, u100, p100), writes benchmarks/results/
    python -m benchmarks.quality compare A B                       two evaluated runs, the same people: A − B with its interval
    python -m benchmarks.quality zero-shot RUN data/OTHER          a model of words against popularity, on another catalogue
    python -m benchmarks.quality options data/beauty …             import options into the results of the same fingerprint
    python -m benchmarks.quality table                             prints the tables of benchmarks/README.md, with the goals

A result names its command, recipe, seconds, device, commit, split fingerprint and import options, so that it can be had again.
Record popularity and markov of a dataset, too: every table begins with them (of sets without an order, with popularity).
Refits (`seqscope train --refit`) have files, protocols and comparisons of their own.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch

from engine.bundle.curve import STILL_IMPROVING, improving
from engine.bundle.fitted import TRAINING, refitted
from engine.console import Progress
from engine.data.dataset import Dataset
from engine.evaluation import metrics
from engine.evaluation.evaluate import evaluate
from engine.evaluation.negatives import frozen
from engine.evaluation.protocols import in_order, parse
from engine.evaluation.protocols import main as main_protocol
from engine.evaluation.ranks import full_ranks, sampled_ranks
from engine.evaluation.significance import interval, paired
from engine.files import write_json
from engine.registry import MODELS
from engine.training.run import open_run

RESULTS = Path(__file__).resolve().parent / "results"
# result → protocol → metric → goal; the bands are those of the papers and of independent replications
GOALS: dict[str, dict[str, dict[str, float]]] = {
    "ml-1m-sasrec": {"u100": {"HR@10": 0.815, "NDCG@10": 0.585}},
    "ml-1m-sasrec-ce": {"full": {"HR@10": 0.303, "NDCG@10": 0.175}},
    "beauty-sasrec-ce": {"full": {"HR@10": 0.085, "NDCG@10": 0.050}},
    "ml-1m-bert4rec": {"full": {"HR@10": 0.258, "NDCG@10": 0.139}},
    "films-sasrec": {"full, warm": {"HR@10": 0.260, "NDCG@10": 0.150}},
    "ml-1m-attrec": {"u100+user": {"HR@10": 0.787, "NDCG@10": 0.536}},
    "gowalla-lightgcn": {"given split+user": {"Recall@20": 0.170, "NDCG@20": 0.143}},
    "gowalla-ngcf": {"given split+user": {"Recall@20": 0.150, "NDCG@20": 0.125}},
    "gowalla-mult-vae": {"given split": {"Recall@20": 0.160, "NDCG@20": 0.130}},
}
METRICS = ("HR@10", "NDCG@10")
OF_SETS = ("Recall@20", "NDCG@20")
"""Of protocols with several held-out items a user, as their papers report them."""
SEEDS = (1, 2, 3)
"""Of training.seed: tables are of the first, and what was trained with all of them has a table of its own."""
FLOORS = ("popularity", "markov")
"""They stand first in every table: what is below them has learned less than they count."""
REFIT = "-refit"
"""Behind the recipe of what was fitted on validation events, too."""
Ranks = dict[str, tuple[np.ndarray, np.ndarray]]
"""Protocol → ranks, float64 [targets], and whose they are, int [targets]."""


def shown(protocol: str) -> tuple[str, str]:
    """The two metrics that tables of a protocol show; the second one orders them."""
    return OF_SETS if parse(protocol).sets else METRICS


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


def record(run: Path, as_it_is: bool) -> Path:
    """as_it_is: with the metrics of its last evaluation, where sampled candidates would take an hour."""
    model, recipe, kept, dataset = open_run(run)
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
        "options": options(dataset),
        "users": dataset.info.counts["test"],
        "items": dataset.num_items,
        **{
            key: kept[key]
            for key in (
                "recipe",
                "command",
                "commit",
                "device",
                "seconds",
                "epochs",
                "best_epoch",
                "parameters",
                "versions",
                "started",
            )
        },
        "improving": kept.get("improving"),
        "fitted_on": kept.get("fitted_on", TRAINING),
        "compute": kept.get("compute"),
        "metrics": {p: {k: round(v, 5) for k, v in values.items()} for p, values in found.items()},
        "intervals95": intervals,
    }
    seed = recipe.training.seed
    name = f"{dataset.info.name}-{recipe.name}{REFIT if refitted(kept) else ''}"
    path = RESULTS / f"{name}{'' if seed == SEEDS[0] else f'-seed{seed}'}.json"
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
    training = dataset.training
    popular = MODELS["popularity"](
        MODELS["popularity"].Config(), dataset.num_items, dataset.num_users, torch.Generator()
    )
    popular.fit(torch.from_numpy(training.values.astype(np.int64)), torch.from_numpy(training.offsets))
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
    path = RESULTS / f"{name}-{first}-over-{second}.json"
    fingerprint = dataset.info.fingerprint
    write_json(
        path,
        {
            "dataset": name,
            "fingerprint": fingerprint,
            "options": options(dataset),
            "first": first,
            "second": second,
            "paired95": differences,
        },
    )
    return path


def options(dataset: Dataset) -> dict[str, Any]:
    """What of a dataset's import decides what a figure on it means."""
    kept = dataset.info.options
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
    by_fingerprint = {dataset.info.fingerprint: options(dataset) for dataset in map(Dataset, datasets)}
    changed = []
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text("utf-8"))
        known = by_fingerprint.get(result.get("fingerprint"))
        if known and result.get("options") != known:
            entries = list(result.items())
            place = 1 + [name for name, _ in entries].index("fingerprint")
            rest = [entry for entry in entries[place:] if entry[0] != "options"]
            write_json(path, dict([*entries[:place], ("options", known), *rest]))
            changed.append(path)
    return changed


@functools.cache
def results(seed: int = SEEDS[0]) -> dict[str, dict[str, dict[str, Any]]]:
    """dataset → recipe → result, of all that were recorded with `seed`; of a refit the recipe's name with REFIT behind it."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text("utf-8"))
        # what has no intervals is of another benchmark
        if "intervals95" in result and result["recipe"]["training"]["seed"] == seed:
            name = result["recipe"]["name"] + REFIT * refitted(result)
            found.setdefault(result["dataset"], {})[name] = result
    return found


def seeds(dataset: str) -> list[str]:
    """The table of what was trained with several seeds: each of them, their mean and standard deviation (of a sample)."""
    runs = [{name: run for name, run in results(seed).get(dataset, {}).items() if not refitted(run)} for seed in SEEDS]
    protocol = main_protocol(None, next(iter(runs[0].values()))["split"]) if runs[0] else "full"
    protocol += ", warm" if all(f"{protocol}, warm" in run["metrics"] for run in runs[0].values()) else ""
    hit, gain = shown(protocol)
    lines = [
        f"| {dataset}, {protocol}, {gain} | {' | '.join(f'seed {seed}' for seed in SEEDS)} | mean ± deviation | {hit} |",
        "|---|" + "---|" * (len(SEEDS) + 2),
    ]
    rows = []
    for name in [name for name in runs[0] if all(name in run for run in runs[1:])]:
        gains, hits = (np.array([run[name]["metrics"][protocol][metric] for run in runs]) for metric in (gain, hit))
        cells = [name, *(f"{gain:.4f}" for gain in gains), f"{gains.mean():.4f} ± {gains.std(ddof=1):.4f}"]
        rows.append((-gains.mean(), [*cells, f"{hits.mean():.4f} ± {hits.std(ddof=1):.4f}"]))
    return [*lines, *("| " + " | ".join(cells) + " |" for _, cells in sorted(rows)), ""] if rows else []


def floors(dataset: str, protocol: str) -> dict[str, float]:
    """NDCG of popularity and of the Markov chain, where they were recorded: what a model has to beat, a refit that of refits."""
    there, refit = results().get(dataset, {}), REFIT * parse(protocol).refit
    return {
        name: there[name + refit]["metrics"][protocol][shown(protocol)[1]]
        for name in FLOORS
        if protocol in there.get(name + refit, {}).get("metrics", {})
    }


def comparisons(hits: str, gains: str) -> list[str]:
    """The table of all pairs under the protocols that show these two metrics."""
    head = [
        f"| on | protocol (users) | popularity · chain, {gains} | model | {hits} | {gains} | against | {hits} | {gains} "
        f"| difference of {gains} (95 %, over users; one seed) |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines = []
    there = results()
    for path in sorted(RESULTS.glob("*-over-*.json")):
        result = json.loads(path.read_text("utf-8"))
        for protocol, found in result["paired95"].items():
            if shown(protocol) != (hits, gains):
                continue
            hit, gain = found[hits], found[gains]
            floor = floors(result["dataset"], protocol)
            all_users = next(iter(there[result["dataset"]].values()))["users"]
            part = protocol.rpartition(", ")[2] in ("cold", "warm") or gain["users"] == all_users
            cells = [result["dataset"], f"{protocol} ({gain['users']:,})"]
            cells.append(" · ".join(f"{value:.4f}" for value in floor.values()) + ("" if part else " over all users"))
            for side in ("first", "second"):
                cells += [result[side], f"{hit[side]:.4f}", f"{gain[side]:.4f}"]
            sure = "" if gain["low"] <= 0 <= gain["high"] else ", without 0"
            below = ", both below the chain" if max(gain["first"], gain["second"]) < floor.get("markov", 0.0) else ""
            cells.append(f"{gain['difference']:+.4f} ({gain['low']:+.4f} to {gain['high']:+.4f}{sure}){below}")
            lines.append("| " + " | ".join(cells) + " |")
    return [*head, *lines] if lines else []


def of_one_log(dataset: str, models: dict[str, dict[str, Any]]) -> tuple[list[str], bool]:
    """The table of all results on one dataset, popularity and the chain first, and whether its goals are met. models: refits, or
    none of them."""
    some = next(iter(models.values()))
    hit, gain = shown(main_protocol(None, some["split"]))
    # sets have no order that a chain could read
    floor = ("markov", "the chain's") if (hit, gain) == METRICS else ("popularity", "popularity's")
    how = ", ".join(f"{name} {value}" for name, value in some.get("options", {}).items() if value is not None)
    lines = [
        f"**{dataset}**: {some['users']:,} users, {some['items']:,} items, fingerprint {some['fingerprint'][:12]}; "
        f"imported with {how}{'; **fitted on training and validation events**' if refitted(some) else ''}",
        "",
        f"| protocol | model | {hit} | {gain} | of {floor[1]} | goal | epochs (best) | seconds | device |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    met = True
    rows: list[tuple[Any, list[str]]] = []
    plain = [
        str(dataclasses.replace(parse(name), trained_users=False)) for one in models.values() for name in one["metrics"]
    ]
    order = in_order(plain)
    for recorded, result in models.items():
        name, goals = result["recipe"]["name"], GOALS.get(f"{dataset}-{recorded}", {})
        for protocol, values in result["metrics"].items():
            without = str(dataclasses.replace(parse(protocol), trained_users=False))
            low = result["intervals95"][protocol]
            goal = goals.get(protocol, {})
            passed = all(values[metric] >= least for metric, least in goal.items())
            met &= passed
            words = " · ".join(f"{metric} ≥ {least:.3f}" for metric, least in goal.items())
            counted = floors(dataset, without).get(floor[0])
            epochs = f"{result['epochs']} ({result['best_epoch']})" if result["epochs"] else ""
            if _improving(result):
                epochs += f", {STILL_IMPROVING}"
            cells = [
                without,
                name + (", vector of the training user" if protocol != without else ""),
                *(f"{values[m]:.4f} ({low[m][0]:.3f}–{low[m][1]:.3f})" for m in (hit, gain)),
                f"{values[gain] / counted:.2f}" if counted and name != floor[0] else "",
                f"{words} {'met' if passed else '**missed**'}" if goal else "",
                epochs,
                f"{result['seconds']:,.0f}" if result["epochs"] else "",
                result["device"] if result["epochs"] else "",
            ]
            place = FLOORS.index(name) if name in FLOORS else len(FLOORS)
            base = result["metrics"].get(without, values)[gain]
            rows.append(((order.index(without), place, -base, name, protocol != without), cells))
    lines += ["| " + " | ".join(cells) + " |" for _, cells in sorted(rows, key=lambda row: row[0])]
    return lines, met


def _improving(result: dict[str, Any]) -> bool | None:
    """None where nothing was validated."""
    if "improving" in result:
        known: bool | None = result["improving"]
        return known
    # a result of before it was recorded
    training = result["recipe"].get("training", {})
    every, most = training.get("validate_every", 1), training.get("epochs", 0)
    done = range(1, result["epochs"] + 1)
    return improving(result["best_epoch"], [epoch for epoch in done if epoch % every == 0 or epoch == most])


def ties(dataset: str, there: dict[str, dict[str, dict[str, Any]]]) -> list[str]:
    """What the order of events at one time does: the same models on the same log, its ties in file order and shuffled."""
    one, other = there[dataset], there[f"{dataset}-shuffled"]
    lines = [
        f"| {dataset}, full ranking, NDCG@10 (HR@10) | ties in the order of the file | ties shuffled | change of NDCG@10 |",
        "|---|---|---|---|",
    ]
    names = sorted(
        {name for models in (one, other) for name, run in models.items() if not refitted(run)},
        key=lambda name: (FLOORS.index(name) if name in FLOORS else len(FLOORS), name),
    )
    for name in names:
        cells = [name]
        for models in (one, other):
            values = models[name]["metrics"]["full"] if name in models else None
            cells.append(f"{values['NDCG@10']:.4f} ({values['HR@10']:.4f})" if values else "not run")
        if name in one and name in other:
            before, after = (models[name]["metrics"]["full"]["NDCG@10"] for models in (one, other))
            cells.append(f"{after / before - 1:+.0%}")
        else:
            cells.append("")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def table() -> tuple[str, bool]:
    """The Markdown tables of all results, and whether every goal is met."""
    there = results()
    lines, met = [], True
    for dataset in sorted(there):
        for refit in (False, True):
            models = {name: run for name, run in there[dataset].items() if refitted(run) == refit}
            some, passed = of_one_log(dataset, models) if models else ([], True)
            lines += [*some, *([""] if some else [])]
            met &= passed
    for dataset in sorted(there):
        lines += seeds(dataset)
    for dataset in sorted(there):
        if f"{dataset}-shuffled" in there:
            lines += [*ties(dataset, there), ""]
    of_sets = comparisons(*OF_SETS)
    return "\n".join([*lines, *comparisons(*METRICS), *([""] if of_sets else []), *of_sets]), met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    kept = actions.add_parser("record", help="evaluate runs and keep their results")
    kept.add_argument("runs", nargs="+", type=Path)
    kept.add_argument("--as-it-is", action="store_true", help="keep what `seqscope evaluate` found")
    pair = actions.add_parser("compare", help="keep the paired difference of two evaluated runs")
    pair.add_argument("first", type=Path)
    pair.add_argument("second", type=Path)
    shot = actions.add_parser("zero-shot", help="keep how a run does on a catalogue that it never saw")
    shot.add_argument("run", type=Path)
    shot.add_argument("dataset", type=Path)
    shot.add_argument("--people", type=int, default=4000, help="test users who are asked, spread evenly")
    imported = actions.add_parser("options", help="write import options into results of the same fingerprint")
    imported.add_argument("datasets", nargs="+", type=Path)
    actions.add_parser("table", help="print the tables; exit code 1 where a goal is missed")
    args = parser.parse_args()
    if args.action == "record":
        for run in args.runs:
            print(record(run, args.as_it_is))
        return
    if args.action == "zero-shot":
        print(zero_shot(args.run, args.dataset, args.people))
        return
    if args.action == "options":
        for path in add_options(args.datasets):
            print(path)
        return
    if args.action == "compare":
        print(compare(args.first, args.second))
        return
    text, met = table()
    print(text)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
