"""Small studies for tests: exports/<dataset>/studies/<name>.json beside the toy bundles, without torch."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.evaluation.protocols import of_people
from engine.runtime import judge
from tests.runtime.bundles import FINGERPRINT, MADE

Ranks = Sequence[float] | Sequence[list[float]]


def outcome(ranks: Ranks | None = None, seed: int = 1, protocol: str = "full", **figures: float) -> dict[str, Any]:
    """One run: the figures of its ranks, and others as given."""
    found: dict[str, Any] = {name: {"mean": mean} for name, mean in figures.items()}
    if ranks is not None:
        lists = [rank if isinstance(rank, list) else [rank] for rank in ranks]
        flat, owners = np.concatenate(lists), np.repeat(np.arange(len(lists)), [*map(len, lists)])
        for metric in of_people(protocol):
            interval = judge.interval(judge.per_user(metric, np.where(flat == 0, np.inf, flat), protocol, owners))
            found[metric] = {"mean": interval.mean, "low": interval.low, "high": interval.high}
    step = {
        "run": "toy", "commands": ["seqscope train toy"], "recipe": {"training": {"seed": seed}}, "commit": "a" * 40,
        "device": "CPU, 1 thread", "seconds": 12.0, "epochs": 4,
    }  # fmt: skip
    made = {"seed": seed, "steps": [step], "figures": found, "ranks": None if ranks is None else list(ranks)}
    return made if protocol == "full" else {**made, "protocol": protocol}


def study(
    name: str, variants: Mapping[str, Sequence[dict[str, Any]]], *, axis: str = "", **changes: Any
) -> dict[str, Any]:
    """variants: name → outcomes; the first is the baseline. axis: of a sweep, where names are numbers."""
    ranks = next(iter(variants.values()))[0]["ranks"]
    return {
        "schema_version": 1, "name": name, "title": f"Study {name}", "about": "Made up for tests.", "dataset": "toys",
        "fingerprint": FINGERPRINT, "people": None if ranks is None else len(ranks),
        "axis": {"title": axis, "run": "toy", "setting": "model.dim"} if axis else None,
        "baseline": next(iter(variants)).replace(".", "_"),
        "variants": [
            {
                "name": key.replace(".", "_"), "title": key, "value": float(key) if axis else None,
                "settings": {"toy": [f"model.dim={place}"]}, "outcomes": list(outcomes),
            }
            for place, (key, outcomes) in enumerate(variants.items())
        ],
        "command": f"seqscope study {name}", **MADE, **changes,
    }  # fmt: skip


def published(metric: str = "NDCG@10", **figures: Any) -> dict[str, Any]:
    """A table of a paper; figures: by variant, among them entries of the table that are to be others."""
    entry = {
        "metric": metric, "dataset": "ML-<b>1M", "protocol": "among 100 negatives", "source": "A & B 2018, table 4",
        "differs": "Another log.", "figures": {},
    }  # fmt: skip
    entry |= {key: figures.pop(key) for key in ("beside", "dataset", "differs") if key in figures}
    return entry | {"figures": figures}


def write(path: Path, raw: dict[str, Any]) -> Path:
    """Into the dataset folder `path`."""
    file = path / "studies" / f"{raw['name']}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(raw), "utf-8")
    return file


def toy_studies(path: Path, people: int = 400) -> None:
    """An ablation: one variant better, one level and one whose seeds are far apart; sweeps of both kinds."""
    rng = np.random.default_rng(3)
    base = rng.integers(0, 30, people).astype(float)

    def changed(share: float, to: float) -> list[float]:
        ranks = base.copy()
        ranks[: int(share * people)] = to
        return ranks.tolist()

    ablation = {
        "plain": [outcome(base.tolist(), seed) for seed in (1, 2)],
        "better": [outcome(changed(0.2 + 0.01 * seed, 1.0), seed) for seed in (1, 2)],
        "level": [outcome(base.tolist(), seed) for seed in (1, 2)],
        "torn": [outcome(changed(0.5, 1.0), 1), outcome(changed(0.2, 0.0), 2)],
    }
    pieces = study("pieces", ablation, order=1, title="What <b>pieces</b> add")
    write(path, {**pieces, "schema_version": 2, "published": [published(plain=0.5, better=0.6, torn=0.25)]})
    sweep = {"2": [outcome(base.tolist())], "1": [outcome(changed(0.3, 0.0))], "4": [outcome(changed(0.3, 1.0))]}
    write(path, study("width", sweep, axis="width", order=2))
    codes = {
        key: [
            outcome(None, seed, perplexity=5 * float(key) + seed, excess=0.1, similarity=0.5, lost=0.3)
            for seed in (1, 2)
        ]
        for key in ("0.1", "0", "1")
    }
    write(path, study("alpha", codes, axis="α", order=3))
