"""Evaluate one model on a dataset's test items and keep the ranks, from which everything else is computed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.console import Progress
from engine.data.dataset import Dataset
from engine.errors import SeqscopeError
from engine.evaluation import metrics
from engine.evaluation.faithful import agreement
from engine.evaluation.metrics import beyond_beam
from engine.evaluation.negatives import frozen
from engine.evaluation.ranks import full_ranks, sampled_ranks, search_width
from engine.evaluation.tables import write_tables
from engine.files import write_json
from engine.generation import Generator
from engine.models import Recommender


def evaluate(
    model: Recommender,
    dataset: Dataset,
    folder: Path,
    *,
    protocols: Sequence[str] = (),
    keep_history: bool = False,
    exact: bool = False,
    beam: int | None = None,
    histories: int = 0,
) -> dict[str, dict[str, float]]:
    """Protocol → metric → value on the test items. Writes ranks.parquet, exposure.parquet and metrics.json into `folder`.

    Protocols are "full" (always), those of `protocols` ("u100", "p100") and, for a model with vectors of training users, the
    same again with "+user": plain names use the fold-in, as the app does. "full, history kept" does not exclude the history.
    "full, cold" is the part of "full" whose targets nobody has in training, "full, warm" the rest, where there are both.

    A generator's full ranking scores all items where its trie is small or `exact` asks for it, and searches with a beam of width
    `beam` elsewhere (default: its own, or the largest cut-off where that is wider); generation.json says which, and with
    `histories`, how far beams agree with exact scores on so many. The share of targets that the beam did not reach is the metric
    outside@<width> of a full ranking; beyond its width there are no metrics and no lists.
    """
    model.eval()
    width = None if exact else search_width(model, beam)
    cases = dataset.cases("test")
    if not len(cases):
        raise SeqscopeError(f"{dataset.path}: nobody has a held-out item, so there is nothing to evaluate")
    progress = Progress(len(cases), "evaluate")
    found: dict[str, dict[str, float]] = {}
    ranks: dict[str, np.ndarray] = {}
    exposures: dict[str, dict[int, np.ndarray]] = {}
    missed: dict[str, dict[str, float]] = {}
    for trained in (False, True) if model.trained_users else (False,):
        suffix = "+user" if trained else ""
        full = full_ranks(model, cases, trained_users=trained, lists=True, beam=width, progress=progress.update)
        ranks["full" + suffix] = full.ranks
        exposures["full" + suffix] = {k: shown for k, shown in full.exposure.items() if not beyond_beam(k, width)}
        if width is not None:
            missed["full" + suffix] = {f"outside@{width}": full.outside / max(len(cases), 1)}
        if keep_history:
            kept = full_ranks(model, cases, trained_users=trained, exclude_history=False, beam=width)
            ranks["full, history kept" + suffix] = kept.ranks
        for protocol in protocols:
            negatives = frozen(dataset, "test", protocol)
            ranks[protocol + suffix] = sampled_ranks(model, cases, negatives, trained_users=trained).ranks
    for protocol, values in ranks.items():
        beyond = metrics.beyond_accuracy(exposures.get(protocol, {}), dataset.popularity)
        few = protocol.removesuffix("+user") in protocols  # each of which is scored
        found[protocol] = metrics.accuracy(values, None if few else width) | beyond | missed.get(protocol, {})
    cold = dataset.popularity[cases.targets] == 0
    if cold.any() and not cold.all():
        for protocol in exposures:
            for word, rows in (("cold", cold), ("warm", ~cold)):
                found[f"{protocol}, {word}"] = metrics.accuracy(ranks[protocol][rows], width)
    write_tables(folder, cases, ranks, exposures)
    if isinstance(model, Generator):
        about: dict[str, object] = {"ranked": "all items" if width is None else "beam", "beam": width}
        if histories:
            watch = Progress(min(histories, len(cases)), "agreement")
            about["agreement"] = agreement(model, cases, histories=histories, progress=watch.update)
        write_json(folder / "generation.json", about)
    write_json(folder / "metrics.json", found)
    return found
