"""Evaluate one model on a dataset's test items and keep the ranks, from which everything else is computed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from engine.console import Progress, note
from engine.data.dataset import Cases, Dataset
from engine.errors import SeqscopeError, UsageError
from engine.evaluation import metrics
from engine.evaluation.metrics import beyond_beam
from engine.evaluation.protocols import SETS, Protocol, history_excluded, main, of_dataset, parse
from engine.evaluation.ranks import (
    best_items,
    frozen,
    full_ranks,
    inputs,
    next_device,
    sampled_ranks,
    search_width,
    with_vectors,
)
from engine.evaluation.tables import COST, accuracy_of_parts, milliseconds_per_list, write_tables
from engine.files import alone, write_json
from engine.generation import Generator, beam_search
from engine.generation.search import OUTSIDE, exact_scores, item_scores
from engine.models import Recommender
from engine.writing import count


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
    refit: bool = False,
) -> dict[str, dict[str, float]]:
    """Protocol → metric → value on the test items. Writes ranks.parquet, exposure.parquet, cost.json and metrics.json into
    `folder`. Ranks on the model's device; the model is on the CPU afterwards, where the cost of a list is measured.

    Protocols are "full" (always; where a dataset holds out sets "given split" or "held-out users"), those of `protocols` ("u100",
    "p100") and, for a model with vectors of training users, the same again with "+user": plain names use the fold-in, as the app
    does. Likewise "+times", of a model that reads when the items of histories were: plain names are without, as the app is. Where
    the dataset's repeats count, nobody's history is excluded, and the names say so ("full, repeats"). Elsewhere keep_history adds
    "full, history kept", to compare with papers. refit: the model was fitted on validation events, too, which every name says
    ("full, refit"), so that nothing compares it with others. Parts ("full, cold") are those of `accuracy_of_parts`.

    A generator's full ranking searches with a beam of width `beam`. Without one it scores all items where its trie is small
    or `exact` asks for it, and searches as wide as its own beam, or the largest cut-off, elsewhere; generation.json says
    which, and with `histories`, how far beams agree with exact scores on so many. The share of targets that the beam did not
    reach is the metric outside@<width> of a full ranking; beyond its width there are no metrics and no lists.

    Raises SeqscopeError where another process trains or evaluates in `folder`: it would take half-written files away.
    """
    repeats, split = dataset.info.repeats, dataset.info.split["kind"]
    excluded = history_excluded(repeats)
    if keep_history and not excluded:
        raise UsageError(
            f"--keep-history: repeats count in {dataset.path}, so the history is among the candidates anyway, "
            f"as “{main(repeats, split)}” says. Leave the option out."
        )
    cases = dataset.cases("test")
    if not len(cases):
        raise SeqscopeError(f"{dataset.path}: nobody has a held-out item, so there is nothing to evaluate")
    negatives = {
        protocol: frozen(dataset, "test", protocol) for protocol in protocols
    }  # or refused, before any ranking
    with alone(folder):
        model.eval()
        width = None if exact else search_width(model, beam)
        progress = Progress(len(cases), "evaluate")
        base = SETS.get(split, "full")
        ranks: dict[str, np.ndarray] = {}
        exposures: dict[str, dict[int, np.ndarray]] = {}
        missed: dict[str, dict[str, float]] = {}
        for by_vectors, timed in _variants(model, dataset, cases, refit):
            trained = by_vectors is not False
            full = full_ranks(
                model, cases, exclude_history=excluded, trained_users=by_vectors, with_times=timed, lists=True, beam=width,
                progress=progress.update,
            )  # fmt: skip
            name = of_dataset(base, repeats, trained_users=trained, with_times=timed, refit=refit)
            ranks[name] = full.ranks
            exposures[name] = {k: shown for k, shown in full.exposure.items() if not beyond_beam(k, width)}
            if width is not None:
                missed[name] = {f"outside@{width}": full.outside / max(len(cases.targets), 1)}
            if keep_history:
                with_history = full_ranks(
                    model, cases, trained_users=by_vectors, with_times=timed, exclude_history=False, beam=width
                )
                ranks[str(Protocol(base, "history kept", trained, refit=refit, with_times=timed))] = with_history.ranks
            for protocol, drawn in negatives.items():
                sampled = sampled_ranks(model, cases, drawn, trained_users=by_vectors, with_times=timed)
                name = of_dataset(protocol, repeats, trained_users=trained, with_times=timed, refit=refit)
                ranks[name] = sampled.ranks
        measured = {}
        for protocol, values in ranks.items():
            searched = width if parse(protocol).full else None  # of a few, each is scored
            measured[protocol] = metrics.accuracy(values, searched, protocol, cases.owner)
            measured[protocol] |= metrics.beyond_accuracy(exposures.get(protocol, {}), dataset.popularity)
            measured[protocol] |= missed.get(protocol, {})
        measured |= accuracy_of_parts(ranks, cases, dataset.popularity, width)
        write_tables(folder, cases, ranks, exposures)
        if model.beam is not None:
            about: dict[str, object] = {"ranked": "all items" if width is None else "beam", "beam": width}
            if histories:
                watch = Progress(min(histories, len(cases)), "agreement")
                about["agreement"] = agreement(
                    cast(Generator, model), cases, exclude_history=excluded, histories=histories, progress=watch.update
                )
            write_json(folder / "generation.json", about)
        model.cpu()
        took = milliseconds_per_list(lambda history: best_items(model, history, 10, width), cases)
        write_json(folder / COST, {"milliseconds": took, "device": "cpu"})
        write_json(folder / "metrics.json", measured)
        return measured


def _variants(model: Recommender, dataset: Dataset, cases: Cases, refit: bool) -> list[tuple[bool | np.ndarray, bool]]:
    """How a model is asked: whose vectors of training users it takes (bool [cases], or False for nobody's), and whether with
    times."""
    variants: list[tuple[bool | np.ndarray, bool]] = [(False, False)]
    if model.trained_users:
        known = with_vectors(model, (dataset.with_validation() if refit else dataset).training, cases.users)
        if not known.all():
            unknown = int((~known).sum())
            some = f"{unknown:,} of {count(len(cases), 'user')} {'has' if unknown == 1 else 'have'} too few training events"
            note(f"{some} for a vector: the history is folded in")
        if dataset.info.split["kind"] != "users":  # those are in nobody's training, so no model has vectors of them
            variants.append((known, False))
    if model.reads_times:
        variants.append((False, True))
    return variants


# --- how far beams agree with exact scores


WIDTHS = (1, 5, 10, 20, 50, 100)
"""Of the beams that are compared."""
FIRST = 10
"""Items of the exact list that beams are held against."""
BATCH = 16


@torch.no_grad()
def agreement(
    model: Generator,
    cases: Cases,
    *,
    exclude_history: bool = True,
    histories: int = 200,
    progress: Callable[[int], None] = lambda done: None,
) -> dict[str, Any]:
    """Beams against the exact `FIRST` of the catalogue, over `histories` cases drawn once; exclude_history: without items of the
    history.

    Per width: `overlap`, the mean share of the exact first k that the beam has among its first k (agreement@k; items that tie
    with the k-th count as found where enough of them are); `same`, the share of histories whose best item is the same;
    `invalid`, the share of identifiers of an unconstrained beam of that width that no item has.
    """
    model.eval()
    device = next_device(model)
    if len(cases) > histories:
        cases = cases.take(np.sort(np.random.default_rng(0).choice(len(cases), histories, replace=False)))
    k = min(FIRST, model.num_items)
    sums = {width: np.zeros(3) for width in WIDTHS}
    for start in range(0, len(cases), BATCH):
        part = cases.take(np.arange(start, min(start + BATCH, len(cases))))
        memory = model.encode(*inputs(model, part, False, device))
        blocked = torch.zeros(len(part), model.num_items, dtype=torch.bool, device=device)
        if exclude_history:
            row = torch.as_tensor(part.history.owners, device=device)
            blocked[row, torch.as_tensor(part.history.values.astype(np.int64), device=device)] = True
        exact = exact_scores(model, memory).masked_fill(blocked, -torch.inf)
        best = exact.topk(k, dim=1)
        for width in WIDTHS:
            shares = item_scores(model, beam_search(model, memory, width, blocked=blocked))
            shares = shares.masked_fill(blocked, -torch.inf)
            top = shares.topk(k, dim=1)
            # a beam's item is right where its exact score is among the k best, ties at the end included
            right = (top.values > OUTSIDE) & (exact.gather(1, top.indices) >= best.values[:, -1:])
            free = beam_search(model, memory, width, constrained=False)
            sums[width] += (
                float(right.double().mean(1).sum()),
                float((exact.gather(1, top.indices[:, :1]) >= best.values[:, :1]).sum()),
                float((free.invalid / (free.scores > -torch.inf).sum(1)).sum()),
            )
        progress(start + len(part))
    names = ("overlap", "same", "invalid")
    return {
        "histories": len(cases),
        "k": k,
        "widths": {
            str(width): dict(zip(names, (total / max(len(cases), 1)).tolist(), strict=True))
            for width, total in sums.items()
        },
    }
