"""The tables of benchmarks/README.md on quality, from the results that `python -m benchmarks.quality record` kept."""

import dataclasses
import functools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import verdicts
from engine.bundle.curve import refitted, unsettled
from engine.cards import declarations, untrained
from engine.evaluation.protocols import in_order, parse
from engine.evaluation.protocols import main as main_protocol

RESULTS = Path(__file__).resolve().parent / "results"
# result → protocol → metric → goal; the bands are those of the papers and of independent replications
GOALS: dict[str, dict[str, dict[str, float]]] = {
    "ml-1m-sasrec": {"u100": {"HR@10": 0.815, "NDCG@10": 0.585}},
    "ml-1m-sasrec-ce": {"full": {"HR@10": 0.303, "NDCG@10": 0.175}},
    "beauty-sasrec-ce": {"full": {"HR@10": 0.085, "NDCG@10": 0.050}},
    "ml-1m-bert4rec": {"full": {"HR@10": 0.258, "NDCG@10": 0.139}},
    "films-sasrec": {"full, warm": {"HR@10": 0.260, "NDCG@10": 0.150}},
    "ml-1m-attrec": {"u100+user": {"HR@10": 0.787, "NDCG@10": 0.536}},
    "ml-1m-bpr-mf": {"u100+user": {"HR@10": 0.574, "NDCG@10": 0.325}},
    "ml-1m-fmc": {"u100": {"HR@10": 0.699, "NDCG@10": 0.467}},
    "ml-1m-fpmc": {"u100+user": {"HR@10": 0.760, "NDCG@10": 0.517}},
    "beauty-hgn": {"full": {"HR@10": 0.0512, "NDCG@10": 0.0266}},
    "beauty-gru4rec-plus": {"full": {"HR@10": 0.050, "NDCG@10": 0.027}},
    "ml-1m-gru4rec-plus": {"u100": {"HR@10": 0.750, "NDCG@10": 0.551}},
    "ml-1m-caser": {"u100+user": {"HR@10": 0.780, "NDCG@10": 0.545}},
    "ml-1m-transrec": {"u100+user": {"HR@10": 0.641, "NDCG@10": 0.397}},
    "gowalla-lightgcn": {"given split+user": {"Recall@20": 0.170, "NDCG@20": 0.143}},
    "gowalla-ngcf": {"given split+user": {"Recall@20": 0.150, "NDCG@20": 0.125}},
    "gowalla-mult-vae": {"given split": {"Recall@20": 0.160, "NDCG@20": 0.130}},
}
METRICS = ("HR@10", "NDCG@10")
OF_SETS = ("Recall@20", "NDCG@20")
"""Of protocols with several held-out items a user, as their papers report them."""
SEEDS = (1, 2, 3)
"""Of training.seed: tables are of the first, and what was trained with all of them has a table of its own."""
PLAINEST = ("popularity", "markov")
"""What comparisons name beside the two that they are of: what is below has learned less than these count."""
_FIRST = (*PLAINEST, "counting", "counting-text")  # what everything else is held against
FLOORS = (*_FIRST, *(family for family in untrained(declarations().models) if family not in _FIRST))
"""The families that need no training, in the order in which they stand first in every table."""
REFIT = "-refit"
"""Behind the recipe of what was fitted on validation events, too."""


def shown(protocol: str) -> tuple[str, str]:
    """The two metrics that tables of a protocol show; the second one orders them."""
    return OF_SETS if parse(protocol).sets else METRICS


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
        for name in PLAINEST
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
    """The table of all results on one dataset below its verdict, those that need no training first, and whether its goals are
    met. models: refits, or none of them."""
    some = next(iter(models.values()))
    order = in_order([_for_all(name) for one in models.values() for name in one["metrics"]])
    hit, gain = shown(main_protocol(None, some["split"]))
    # sets have no order that a chain could read
    floor = ("markov", "the chain's") if (hit, gain) == METRICS else ("popularity", "popularity's")
    how = ", ".join(f"{name} {value}" for name, value in some.get("options", {}).items() if value is not None)
    lines = [
        f"**{dataset}**: {some['users']:,} users, {some['items']:,} items, fingerprint {some['fingerprint'][:12]}; "
        f"imported with {how}{'; **fitted on training and validation events**' if refitted(some) else ''}",
        "",
        verdicts.sentence(RESULTS, dataset, some["fingerprint"], list(order), models),
        "",
        f"| protocol | model | {hit} | {gain} | of {floor[1]} | goal | epochs (best) | seconds | device |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    met = True
    rows: list[tuple[Any, list[str]]] = []
    for recorded, result in models.items():
        name, goals = result["recipe"]["name"], GOALS.get(f"{dataset}-{recorded}", {})
        for protocol, values in result["metrics"].items():
            without = _for_all(protocol)
            low = result["intervals95"][protocol]
            goal = goals.get(protocol, {})
            passed = all(values[metric] >= least for metric, least in goal.items())
            met &= passed
            words = " · ".join(f"{metric} ≥ {least:.3f}" for metric, least in goal.items())
            counted = floors(dataset, without).get(floor[0])
            epochs = f"{result['epochs']} ({result['best_epoch']})" if result["epochs"] else ""
            early = _unsettled(result)
            if early is not None:
                epochs += f", {early}"
            cells = [
                without,
                name
                + ", vector of the training user" * parse(protocol).trained_users
                + ", told the times" * parse(protocol).with_times,
                *(f"{values[m]:.4f} ({low[m][0]:.3f}–{low[m][1]:.3f})" for m in (hit, gain)),
                f"{values[gain] / counted:.2f}" if counted and name != floor[0] else "",
                f"{words} {'met' if passed else '**missed**'}" if goal else "",
                epochs,
                f"{result['seconds']:,.0f}" if result["epochs"] else "",
                result["device"] if result["epochs"] else "",
            ]
            base = result["metrics"].get(without, values)[gain]
            rows.append(((order.index(without), _place(result), -base, name, protocol != without), cells))
    lines += ["| " + " | ".join(cells) + " |" for _, cells in sorted(rows, key=lambda row: row[0])]
    return lines, met


def _for_all(protocol: str) -> str:
    """The protocol as models are asked that have no vectors of users and read no times."""
    return str(dataclasses.replace(parse(protocol), trained_users=False, with_times=False))


def _place(result: dict[str, Any]) -> int:
    """In a table: those that need no training first."""
    family = result["recipe"]["family"]
    return FLOORS.index(family) if family in FLOORS else len(FLOORS)


def _unsettled(result: dict[str, Any]) -> str | None:
    """As the function of the curve, which results do not hold: their validations are those of the recipe, none while the rate
    still climbed."""
    if result.get("improving", False) is None:  # nothing was validated; results of before do not say
        return None
    training = result["recipe"].get("training", {})
    every, most = training.get("validate_every", 1), training.get("epochs", 0)
    done = range(1, result["epochs"] + 1)
    validated = dict.fromkeys([epoch for epoch in done if epoch % every == 0 or epoch == most], math.inf)
    return unsettled(result["best_epoch"], validated, result["recipe"])


def ties(dataset: str, there: dict[str, dict[str, dict[str, Any]]]) -> list[str]:
    """What the order of events at one time does: the same models on the same log, its ties in file order and shuffled."""
    one, other = there[dataset], there[f"{dataset}-shuffled"]
    lines = [
        f"| {dataset}, full ranking, NDCG@10 (HR@10) | ties in the order of the file | ties shuffled | change of NDCG@10 |",
        "|---|---|---|---|",
    ]
    runs = {name: run for models in (one, other) for name, run in models.items() if not refitted(run)}
    names = sorted(runs, key=lambda name: (_place(runs[name]), name))
    for name in names:
        cells = [name]
        for models in (one, other):
            values = models[name]["metrics"]["full"] if name in models else None
            cells.append(f"{values['NDCG@10']:.4f} ({values['HR@10']:.4f})" if values else "not run")
        if name not in one or name not in other:
            cells.append("")
        elif _alike(one[name]["recipe"], other[name]["recipe"]):
            before, after = (models[name]["metrics"]["full"]["NDCG@10"] for models in (one, other))
            cells.append(f"{after / before - 1:+.0%}")
        else:
            cells.append("other settings")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _alike(one: Any, other: Any) -> bool:
    """Whether two recipes have the same settings, as far as both name them: some were added later."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(_alike(one[key], other[key]) for key in one.keys() & other.keys())
    return bool(one == other)


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
