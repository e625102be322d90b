"""Metrics from ranks: pure numpy. With one held-out item per user, HR@k is Recall@k and the ideal DCG is 1.

With several (protocols of sets), ranks are those of all items of a user, each among the whole catalogue, its fellows included:

    Recall@k   given split     hits / |T|            NGCF (SIGIR 2019) and LightGCN (SIGIR 2020) in their code
               held-out users  hits / min(k, |T|)    Mult-VAE (WWW 2018), section 4.2
    NDCG@k     both            DCG@k / ideal DCG of min(k, |T|) items
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

import numpy as np

from engine.evaluation.protocols import SETS, parse

CUTOFFS = (1, 5, 10, 20, 50)
_OUTSIDE = re.compile(r"outside@([1-9]\d{0,6})")


def beam_width(found: Mapping[str, Mapping[str, float]], protocol: str) -> int | None:
    """The width of the beam that the ranks under `protocol` come from; None where every candidate was scored.

    found: protocol → metric → value, as in metrics.json and in a bundle's manifest. A full ranking by a beam has the metric
    outside@<width> there; all full rankings of an evaluation have one beam, and the few candidates of a sampled protocol are
    scored one by one.
    """
    if not parse(protocol).full:
        return None
    widths = (_OUTSIDE.fullmatch(name) for name in itertools.chain.from_iterable(found.values()))
    return next((int(width[1]) for width in widths if width), None)


def beyond_beam(k: int, width: int | None) -> str | None:
    """Why nothing can be said of the first k places, such as "beam of 20"; None where it can. A beam knows no more places than
    it is wide: targets that it misses share those after it, so that HR@50 of a beam of 20 would be its HR@20."""
    return f"beam of {width}" if width is not None and k > width else None


def hit(ranks: np.ndarray, k: int) -> np.ndarray:
    """1 where the held-out item is among the first k. ranks: float [users] from 1; returns float64 [users]."""
    return (ranks <= k).astype(np.float64)


def ndcg(ranks: np.ndarray, k: int) -> np.ndarray:
    """1 / log2(rank + 1) where the item is among the first k, else 0 (Järvelin & Kekäläinen 2002, binary gain, one item)."""
    return np.where(ranks <= k, 1 / np.log2(ranks + 1), 0.0)


def reciprocal_rank(ranks: np.ndarray, k: int) -> np.ndarray:
    """1 / rank where the item is among the first k, else 0."""
    return np.where(ranks <= k, 1 / ranks, 0.0)


PER_USER = {"HR": hit, "NDCG": ndcg, "MRR": reciprocal_rank}
OF_SETS = {"Recall": hit, "NDCG": ndcg}


def names(protocol: str) -> tuple[str, ...]:
    """What is measured under a protocol."""
    return tuple(OF_SETS if parse(protocol).sets else PER_USER)


def per_user(metric: str, ranks: np.ndarray, protocol: str = "full", users: np.ndarray | None = None) -> np.ndarray:
    """Each user's share in `metric`, such as "NDCG@10": float64 [users], ascending; its mean is the metric.

    ranks: float [targets]; users: int [targets], whose they are; None where each user has one. Raises KeyError for a metric that
    the protocol does not have.
    """
    name, _, k = metric.partition("@")
    if not parse(protocol).sets:
        return PER_USER[name](ranks, int(k))
    return _of_sets(name, int(k), ranks, np.arange(len(ranks)) if users is None else users, parse(protocol).base)


def _of_sets(name: str, k: int, ranks: np.ndarray, users: np.ndarray, base: str) -> np.ndarray:
    _, owner, sizes = np.unique(users, return_inverse=True, return_counts=True)
    gained = np.bincount(owner, OF_SETS[name](ranks, k), len(sizes))
    reachable = np.minimum(sizes, k)
    if name == "NDCG":
        ideal = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))])
        return gained / ideal[reachable]
    return gained / (sizes if base == SETS["given"] else reachable)


def accuracy(
    ranks: np.ndarray, width: int | None = None, protocol: str = "full", users: np.ndarray | None = None
) -> dict[str, float]:
    """HR, NDCG and MRR at every cut-off, of sets Recall and NDCG; where ranks come from a beam at those within its width.

    ranks, users: as of `per_user`. Raises ValueError where HR ≥ NDCG ≥ MRR ≥ 0 fails, or a mean over sets is not between 0 and
    1: the ranks are wrong then."""
    found: dict[str, float] = {}
    for k in CUTOFFS:
        if beyond_beam(k, width):
            continue
        values = {
            name: float(per_user(f"{name}@{k}", ranks, protocol, users).mean()) if len(ranks) else float("nan")
            for name in names(protocol)
        }
        falling = [1 + 1e-9, *values.values(), 0] if not parse(protocol).sets else [1 + 1e-9, max(values.values()), 0]
        if len(ranks) and not all(more >= less for more, less in itertools.pairwise(falling)):
            raise ValueError(f"impossible metrics at {k}: {values}")
        found |= {f"{name}@{k}": value for name, value in values.items()}
    return found


def coverage(exposure: np.ndarray) -> float:
    """Share of the catalogue that is in somebody's list. exposure: int [items], how often each item was."""
    return float((exposure > 0).mean())


def gini(exposure: np.ndarray) -> float:
    """0 where every item is shown equally often, towards 1 where one item takes all lists (Gini 1912)."""
    ordered = np.sort(exposure.astype(np.float64))
    total = ordered.sum()
    if total == 0:
        return float("nan")
    n = len(ordered)
    return float((2 * np.arange(1, n + 1) - n - 1) @ ordered / (n * total))


def novelty(exposure: np.ndarray, popularity: np.ndarray) -> float:
    """Mean self-information of what is shown, −log2 of an item's share of training events, in bits (Zhou et al., PNAS 2010).

    An item without training events counts as one with a single event.
    """
    share = np.maximum(popularity, 1) / max(popularity.sum(), 1)
    return float(exposure @ -np.log2(share) / max(exposure.sum(), 1))


def beyond_accuracy(exposure: dict[int, np.ndarray], popularity: np.ndarray) -> dict[str, float]:
    """Coverage, Gini and novelty at every cut-off that `exposure` has."""
    found: dict[str, float] = {}
    for k, counts in exposure.items():
        found[f"coverage@{k}"] = coverage(counts)
        found[f"Gini@{k}"] = gini(counts)
        found[f"novelty@{k}"] = novelty(counts, popularity)
    return found
