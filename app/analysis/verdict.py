"""The verdict on a dataset's models (engine/evaluation/verdict.py), from their bundles."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from app.analysis import evaluation, floor, metrics
from app.analysis.cache import cached, of_content
from app.text import md
from engine.runtime import Zoo, judge


@cached(100, by=of_content, spinner="Weighing training against counting …")
def verdict(models: Zoo, protocol: str, metric: str) -> judge.Verdict | None:
    """Of all models of the dataset, over the people whom each was asked for; None where none has a figure."""
    people = evaluation.people(models, protocol)[0]
    if not people:
        return None
    return judge.verdict(
        contenders(models, people), metric, models.popularity, memorised(models, next(iter(people.values()))),
        seed=metrics.SEED, samples=metrics.SAMPLES,
    )  # fmt: skip


def in_markdown(verdict: judge.Verdict) -> str:
    return judge.sentences(verdict, lambda title: f"**{md(title)}**")


def contenders(models: Zoo, people: dict[str, judge.Ranks]) -> list[judge.Contender]:
    """Rows of one table; those of models that differ in their seed alone are one. people: row → ranks, of the same people."""
    titles = metrics.titled({name: bundle.manifest.title for name, bundle in models.bundles.items()}, people)
    trainings: dict[tuple[str, ...], list[str]] = {}
    for row in people:
        about = models.bundles[metrics.model_of(row)].manifest
        learns = floor.needs_training(about.family)
        alike = judge.without_seed(about.training.recipe) if learns else about.name
        trainings.setdefault((about.family, alike, str(row.endswith(metrics.USERS))), []).append(row)
    return [_contender(models, rows, people, titles[rows[0]]) for rows in trainings.values()]


def _contender(models: Zoo, rows: list[str], people: dict[str, judge.Ranks], title: str) -> judge.Contender:
    about = [models.bundles[metrics.model_of(row)].manifest for row in rows]
    return judge.Contender(
        name=rows[0],
        title=title,
        learns=floor.needs_training(about[0].family),
        ranks=tuple(_by_seed(models, rows, people).values()),
        seconds=float(np.mean([manifest.training.seconds for manifest in about])),
        parameters=about[0].training.parameters,
        milliseconds=about[0].check.milliseconds,
    )


def _by_seed(models: Zoo, rows: list[str], people: dict[str, judge.Ranks]) -> dict[int, judge.Ranks]:
    """Seed → ranks: of bundles that differ in it alone, and of the trainings whose ranks they carry beside their own."""
    by_seed = {models.bundles[metrics.model_of(row)].manifest.training.seed: people[row] for row in rows}
    for row in rows:
        bundle, own_ranks = models.bundles[metrics.model_of(row)], people[row]
        table = bundle.seeds_table()
        if table is None or not floor.needs_training(bundle.manifest.family):
            continue
        protocol = metrics.with_users(own_ranks.protocol) if row.endswith(metrics.USERS) else own_ranks.protocol
        for seed in table["seed"].unique().to_pylist():
            other = judge.ranks(table.filter(pc.equal(table["seed"], seed)), protocol, own_ranks.width)
            same, _ = judge.common({row: own_ranks} if other is None else {row: own_ranks, "": other})
            if len(same) == 2 and len(same[""]) == len(own_ranks):
                by_seed.setdefault(seed, same[""])
    return by_seed


def memorised(models: Zoo, ranks: judge.Ranks) -> npt.NDArray[np.int8] | None:
    """Whether each held-out item follows from counts of the training log; None where the export does not say so of every one."""
    if models.held_out is None:
        return None
    return ranks.lookup(*(models.held_out[name].to_numpy() for name in ("user", "target", "memorised")))
