"""A model of sequences learns what is planted in the sample, and finds nothing in the same log with its films dealt out anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import probes
from benchmarks.sample_story import trained, write_log
from engine.evaluation import metrics
from engine.evaluation.significance import Difference, paired
from engine.sample.build import Log, scattered
from engine.sample.films import Film
from engine.sample.viewers import World

QUICK = ["training.epochs=8", "training.validate_every=8", "training.precision=float32"]


def over(log: Log, films: list[Film], world: World, folder: Path, probe: str) -> Difference:
    """How far NDCG@10 of a SASRec trained for a few epochs on `log` exceeds that of a probe."""
    held = probes.Held.of(log.events)
    floor = probes.ranks(held, getattr(probes, probe)(held.training, world.num_films))
    ranks = trained("sasrec", write_log(folder / "data", films, log, "control"), folder / "run", QUICK)
    return paired(metrics.ndcg(ranks, 10), metrics.ndcg(floor, 10))


@pytest.mark.long
def test_order_is_learned(log: Log, films: list[Film], world: World, tmp_path: Path) -> None:
    assert over(log, films, world, tmp_path, "markov").low > 0


@pytest.mark.long
def test_nothing_is_found_where_nothing_is(log: Log, films: list[Film], world: World, tmp_path: Path) -> None:
    control = scattered(log, np.random.default_rng(1))
    assert over(control, films, world, tmp_path, "popularity").low <= 0
