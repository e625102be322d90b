"""How faithful a beam search is to the scores that it searches in, by its width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from engine.data.dataset import Cases
from engine.evaluation.ranks import inputs, next_device
from engine.generation import Generator, beam_search
from engine.generation.search import OUTSIDE, exact_scores, item_scores

WIDTHS = (1, 5, 10, 20, 50, 100)
BATCH = 16


@torch.no_grad()
def agreement(
    model: Generator,
    cases: Cases,
    *,
    exclude_history: bool = True,
    histories: int = 200,
    k: int = 10,
    widths: Sequence[int] = WIDTHS,
    seed: int = 0,
    progress: Callable[[int], None] = lambda done: None,
) -> dict[str, Any]:
    """Beams against the exact first k of the catalogue, over `histories` cases drawn once; exclude_history: without items of the
    history.

    Per width: `overlap`, the mean share of the exact first k that the beam has among its first k (agreement@k; items that tie
    with the k-th count as found where enough of them are); `same`, the share of histories whose best item is the same;
    `invalid`, the share of identifiers of an unconstrained beam of that width that no item has.
    """
    model.eval()
    device = next_device(model)
    if len(cases) > histories:
        cases = cases.take(np.sort(np.random.default_rng(seed).choice(len(cases), histories, replace=False)))
    k = min(k, model.num_items)
    sums = {width: np.zeros(3) for width in widths}
    for start in range(0, len(cases), BATCH):
        part = cases.take(np.arange(start, min(start + BATCH, len(cases))))
        memory = model.encode(*inputs(model, part, False, device))
        blocked = torch.zeros(len(part), model.num_items, dtype=torch.bool, device=device)
        if exclude_history:
            row = torch.as_tensor(np.repeat(np.arange(len(part)), part.history.lengths), device=device)
            blocked[row, torch.as_tensor(part.history.values.astype(np.int64), device=device)] = True
        exact = exact_scores(model, memory).masked_fill(blocked, -torch.inf)
        best = exact.topk(k, dim=1)
        for width in widths:
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
