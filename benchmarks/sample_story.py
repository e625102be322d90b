"""What can be learned from the sample's log, and from the same log with its structure destroyed: the tables of docs/sample.md.

    python -m benchmarks.sample_story [--models counting sasrec] [--seed 0]

Simulates the committed sample again (so that the reasons are known), writes it and its controls to a scratch folder, trains the
models on each with the same recipe, and ranks the last film of every viewer, in the whole catalogue without the history.
Results are kept in benchmarks/results/sample-story.json, those of models that were not asked for too, and are shown with 95 %
bootstrap intervals over viewers.
"""

import argparse
import dataclasses
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import probes
from benchmarks.quality_tables import RESULTS
from engine.data.dataset import Dataset
from engine.data.ragged import Ragged
from engine.data.write import write_dataset
from engine.evaluation import metrics
from engine.evaluation.ranks import full_ranks
from engine.evaluation.significance import interval, paired
from engine.files import write_json
from engine.sample.build import FILMS, Log, film_table, numbered, simulate
from engine.sample.films import Film, read_films
from engine.sample.story import Story
from engine.sample.viewers import Reason
from engine.training.recipe import load
from engine.training.run import open_run, train

OUT = RESULTS / "sample-story.json"
REASONS = ("sequel", "mood", "taste", "popular", "noise")


def shuffled(log: Log, rng: np.random.Generator) -> Log:
    """Control 1: each viewer's films in random order, at the old moments. Tastes stay, order is gone."""
    order = np.lexsort((rng.random(len(log.timestamps)), log.viewers))
    return _rearranged(log, order)


def scattered(log: Log, rng: np.random.Generator) -> Log:
    """Control 2: all films dealt out anew over all events. Popularity and lengths stay, tastes and order are gone.

    No viewer gets a film twice: repeats are swapped with random other events until none is left.
    """
    viewers = log.viewers.astype(np.int64)
    width = int(log.events.values.max()) + 1
    order = rng.permutation(len(viewers))
    for _ in range(1_000):
        pairs = viewers * width + log.events.values[order]
        ranked = np.argsort(pairs, kind="stable")
        repeats = ranked[1:][np.diff(pairs[ranked]) == 0]
        if not len(repeats):
            return _rearranged(log, order)
        others = rng.choice(len(order), len(repeats), replace=False)
        apart = ~np.isin(others, repeats)
        here, there = repeats[apart], others[apart]
        order[here], order[there] = order[there], order[here]
    raise ValueError("a film was watched by nearly every viewer; its events cannot be dealt out without repeats")


def _rearranged(log: Log, order: np.ndarray) -> Log:
    return dataclasses.replace(
        log,
        events=Ragged(log.events.values[order], log.events.offsets),
        reasons=log.reasons[order],
        moods=log.moods[order],
    )


def write_log(folder: Path, films: list[Film], log: Log, name: str) -> Dataset:
    """`log` as a prepared dataset in `folder`."""
    write_dataset(
        folder, name=name, title=name, source="A control of the sample.", licence="Apache-2.0", simulated=True,
        items=film_table(films), users=numbered("simulated-viewer", len(log.events)),
        user=log.viewers, item=log.events.values, timestamp=log.timestamps, time_unit="second",
    )  # fmt: skip
    return Dataset(folder)


def trained(model: str, data: Dataset, folder: Path, changes: Sequence[str] = ()) -> np.ndarray:
    """float64 [viewers]: rank of each viewer's last film by `model`, trained on `data` with the sample's recipe and `changes`."""
    train(load(model, "sample", None, [*changes]), data, folder)
    ready, *_ = open_run(folder)
    return full_ranks(ready, data.cases("test")).ranks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data/sample"), help="the folder with films.jsonl")
    parser.add_argument("--models", nargs="+", default=["counting", "sasrec"])
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    films = read_films(args.data / FILMS)
    log, world = simulate(films, Story(), np.random.default_rng(args.seed))
    logs = {
        "as simulated": log,
        "shuffled": shuffled(log, np.random.default_rng(1)),
        "scattered": scattered(log, np.random.default_rng(1)),
    }
    ranks: dict[str, dict[str, np.ndarray]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, events in logs.items():
            held = probes.Held.of(events.events)
            ranks[name] = {
                probe.__name__: probes.ranks(held, probe(held.training, world.num_films))
                for probe in (probes.popularity, probes.markov, probes.companions)
            }
            if name == "as simulated":
                ranks[name]["storyteller"] = probes.ranks(held, probes.storyteller(held.training, world))
            data = write_log(Path(scratch) / name, films, events, f"sample-{name.replace(' ', '-')}")
            for model in args.models:
                ranks[name][model] = trained(model, data, Path(scratch) / f"{name}-{model}")
    reasons = np.array([Reason(reason).name.lower() for reason in log.reasons[log.events.offsets[1:] - 1]])
    found = {
        "command": "python -m benchmarks.sample_story",
        "fingerprint": Dataset(args.data).info.fingerprint,
        "recipes": {model: load(model, "sample", None, []).to_dict() for model in args.models},
        "ndcg@10": {name: {who: measured(found) for who, found in by.items()} for name, by in ranks.items()},
        "hr@10": {who: hits(found, reasons) for who, found in ranks["as simulated"].items()},
        "over": {name: {who: over(by, who) for who in args.models} for name, by in ranks.items()},
    }
    before = json.loads(OUT.read_text("utf-8")) if OUT.exists() else {}
    if before.get("fingerprint") == found["fingerprint"]:
        found = joined(before, found)
    write_json(OUT, found)
    print(tables(found))


def joined(before: Any, now: Any) -> Any:
    """Results of before under those of now, table by table."""
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return now
    return before | {name: joined(before.get(name), value) for name, value in now.items()}


def measured(ranks: np.ndarray) -> list[float]:
    """NDCG@10 and its interval."""
    gains = metrics.ndcg(ranks, 10)
    bounds = interval(gains)
    return [round(float(value), 4) for value in (gains.mean(), bounds.low, bounds.high)]


def hits(ranks: np.ndarray, reasons: np.ndarray) -> dict[str, float]:
    """HR@10 of all films and of those watched for one reason."""
    by = {"all": np.ones(len(ranks), bool)} | {reason: reasons == reason for reason in REASONS}
    return {reason: round(float(metrics.hit(ranks[rows], 10).mean()), 4) for reason, rows in by.items()}


def over(ranks: dict[str, np.ndarray], model: str) -> dict[str, list[float]]:
    """By how much NDCG@10 of `model` exceeds that of each probe, with the interval of the paired difference."""
    found = {}
    for probe in ("popularity", "markov", "companions"):
        difference = paired(metrics.ndcg(ranks[model], 10), metrics.ndcg(ranks[probe], 10))
        found[probe] = [round(float(x), 4) for x in (difference.mean, difference.low, difference.high)]
    return found


def tables(found: dict[str, dict[str, dict[str, list[float]]]]) -> str:
    lines = ["| HR@10 | " + " | ".join(("all", *REASONS)) + " |", "|---|" + "---|" * (len(REASONS) + 1)]
    for who, hit in found["hr@10"].items():
        lines.append(f"| {who} | " + " | ".join(f"{hit[reason]:.3f}" for reason in ("all", *REASONS)) + " |")
    names = list(found["ndcg@10"])
    lines += ["", "| NDCG@10 | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for who in found["ndcg@10"][names[0]]:
        cells = [found["ndcg@10"][name].get(who) for name in names]
        lines.append(
            f"| {who} | " + " | ".join("" if c is None else f"{c[0]:.3f} ({c[1]:.3f}–{c[2]:.3f})" for c in cells) + " |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
