"""Quality on public data: what a finished run measured, kept as a small file, and the table of all of them.

    seqscope train sasrec --dataset data/ml-1m
    python -m benchmarks.quality record runs/ml-1m/sasrec          evaluates (full, u100, p100), writes benchmarks/results/
    python -m benchmarks.quality table                             prints the table of benchmarks/README.md, with the goals

A result names its command, recipe, seconds, device, commit and split fingerprint, so that it can be had again.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.evaluation import metrics
from engine.evaluation.evaluate import evaluate
from engine.evaluation.significance import interval
from engine.files import write_json
from engine.training.run import open_run

RESULTS = Path(__file__).resolve().parent / "results"
# result → protocol → metric → goal; the bands are those of the papers and of independent replications
GOALS: dict[str, dict[str, dict[str, float]]] = {
    "ml-1m-sasrec": {"u100": {"HR@10": 0.815, "NDCG@10": 0.585}},
    "ml-1m-sasrec-ce": {"full": {"HR@10": 0.303, "NDCG@10": 0.175}},
    "beauty-sasrec-ce": {"full": {"HR@10": 0.085, "NDCG@10": 0.050}},
    "ml-1m-bert4rec": {"full": {"HR@10": 0.258, "NDCG@10": 0.139}},
    "ml-1m-attrec": {"u100+user": {"HR@10": 0.787, "NDCG@10": 0.536}},
}


def record(run: Path) -> Path:
    model, recipe, kept, dataset = open_run(run)
    found = evaluate(model, dataset, run, protocols=("u100", "p100"))
    table = pq.read_table(run / "ranks.parquet")
    intervals: dict[str, dict[str, list[float]]] = {}
    for protocol in found:
        ranks = table.filter(pc.equal(table["protocol"].cast("string"), protocol))["rank"].to_numpy().astype(np.float64)
        for name in ("HR@10", "NDCG@10"):
            estimate = interval(metrics.per_user(name, ranks))
            intervals.setdefault(protocol, {})[name] = [round(estimate.low, 4), round(estimate.high, 4)]
    result: dict[str, Any] = {
        "dataset": dataset.info.name,
        "split": dataset.info.split["kind"],
        "fingerprint": dataset.info.fingerprint,
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
        "metrics": {p: {k: round(v, 5) for k, v in values.items()} for p, values in found.items()},
        "intervals95": intervals,
    }
    path = RESULTS / f"{dataset.info.name}-{recipe.name}.json"
    write_json(path, result)
    return path


def table() -> tuple[str, bool]:
    """The Markdown table of all results, and whether every goal is met."""
    lines = [
        "| result | protocol | HR@10 | NDCG@10 | goal | epochs (best) | seconds | device | fingerprint |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    met = True
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text("utf-8"))
        if "intervals95" not in result:
            continue  # of another benchmark
        goals = GOALS.get(path.stem, {})
        for protocol, values in result["metrics"].items():
            low = result["intervals95"][protocol]
            goal = goals.get(protocol, {})
            passed = all(values[name] >= least for name, least in goal.items())
            met &= passed
            words = " · ".join(f"{name} ≥ {least:.3f}" for name, least in goal.items())
            cells = [
                path.stem,
                protocol,
                *(f"{values[m]:.4f} ({low[m][0]:.3f}–{low[m][1]:.3f})" for m in ("HR@10", "NDCG@10")),
                f"{words} {'met' if passed else '**missed**'}" if goal else "",
                f"{result['epochs']} ({result['best_epoch']})",
                f"{result['seconds']:,.0f}",
                result["device"],
                result["fingerprint"][:12],
            ]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines), met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("record", help="evaluate runs and keep their results").add_argument("runs", nargs="+", type=Path)
    actions.add_parser("table", help="print the table; exit code 1 where a goal is missed")
    args = parser.parse_args()
    if args.action == "record":
        for run in args.runs:
            print(record(run))
        return
    text, met = table()
    print(text)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
