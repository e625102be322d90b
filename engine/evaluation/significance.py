"""How sure a figure and a difference are: bootstrap over users, and over seeds; Holm's correction. Pure numpy."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference(Interval):
    """Mean difference between two models over the same users, its 95 % interval and two-sided p."""

    p: float


def _resampled_means(values: np.ndarray, rng: np.random.Generator, samples: int) -> np.ndarray:
    """float64 [samples]: means of bootstrap samples of `values` (float [users])."""
    # Users fall into few distinct values (a rank's gain), so drawing how often each occurs is drawing users, and much quicker.
    distinct, counts = np.unique(values, return_counts=True)
    n = len(values)
    if len(distinct) <= 4096:
        return rng.multinomial(n, counts / n, samples) @ distinct / n
    means = np.empty(samples)
    for i in range(samples):
        means[i] = values[rng.integers(0, n, n)].mean()
    return means


def interval(values: np.ndarray, *, seed: int = 0, samples: int = 2000) -> Interval:
    """Percentile bootstrap over users (Efron & Tibshirani 1993, ch. 13). values: float [users], from 0, and to 1 mostly.

    Where all are equal, as where nobody has a hit, it would have no width: then as many users have another value as one sample in
    40 of this size would miss (Clopper & Pearson 1934).
    """
    if not len(values):
        return Interval(float("nan"), float("nan"), float("nan"))
    if (values == values[0]).all():
        return Interval(float(values[0]), *_missed(values, 0.0))
    means = _resampled_means(values, np.random.default_rng(seed), samples)
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(values.mean()), float(low), float(high))


def _missed(equal: np.ndarray, least: float) -> tuple[float, float]:
    """Ends of the interval of values that are all equal, float [users] from `least`, and mostly to 1."""
    value, others = float(equal[0]), 1 - 0.025 ** (1 / len(equal))
    return (1 - others) * value + others * min(value, least), (1 - others) * value + others * max(value, 1.0)


def paired(
    values: np.ndarray, baseline: np.ndarray, *, seed: int = 0, samples: int = 2000, with_interval: bool = True
) -> Difference:
    """Paired bootstrap of `values − baseline`, float [users] each, the same users in the same order, or [seeds, users]
    (`paired_over_seeds`).

    p is twice the smaller share of bootstrap means on either side of 0 (with one added, so it is never 0), and not below 2 / 2ᵈ,
    where d users differ: the exact test of their signs has no smaller one (Fisher 1935; the bootstrap finds p = .001 for a single
    user). Where that is above .05, the interval reaches to 0; where all differ alike, it is as wide as that of `interval`, of
    differences from −1 to 1. with_interval: False where p alone is needed: of a difference so
    clear that no sample can lie beyond 0 nobody is drawn, and the interval is NaN.
    """
    if not with_interval and values.ndim == 1 and (difference := _clear(values - baseline, samples)):
        return difference
    return paired_over_seeds(np.atleast_2d(values), np.atleast_2d(baseline), seed=seed, samples=samples)


def _clear(delta: np.ndarray, samples: int) -> Difference | None:
    """What `paired` has of a difference where, but for one chance in 10⁹, none of the samples has a mean beyond 0 (Bernstein's
    inequality; Boucheron, Lugosi & Massart 2013, th. 2.10); else None. delta: float [users]."""
    if not len(delta) or (delta == delta[0]).all():
        return None
    mean = float(delta.mean())
    spread = float(delta.var()) + float(np.abs(delta - mean).max()) * abs(mean) / 3
    if len(delta) * mean**2 <= 2 * np.log(samples * 1e9) * spread:
        return None
    return Difference(mean, float("nan"), float("nan"), _p(delta, 0, samples))


def _p(delta: np.ndarray, beyond: int, samples: int) -> float:
    """beyond: how many of the samples' means are on the side of 0 that fewer are on."""
    return min(1.0, max(_least(delta), 2 * (beyond + 1) / (samples + 1)))


def _least(delta: np.ndarray) -> float:
    return 2.0 ** (1 - int(np.count_nonzero(delta)))


def holm(p: list[float]) -> list[float]:
    """Adjusted p-values for several comparisons at once (Holm 1979), in the order given."""
    order = np.argsort(p, kind="stable")
    adjusted, running = [0.0] * len(p), 0.0
    for place, i in enumerate(order):
        running = max(running, min(1.0, (len(p) - place) * p[i]))
        adjusted[i] = running
    return adjusted


def paired_over_seeds(values: np.ndarray, baseline: np.ndarray, *, seed: int = 0, samples: int = 2000) -> Difference:
    """As `paired`, where models were trained with several seeds. values, baseline: float [seeds, users], of any number of seeds.

    Two sources of chance add up: which users were drawn (bootstrap of the difference of means over seeds, paired) and which
    seeds: for each model with S > 1 of them, s / √S · t with S − 1 degrees of freedom, s the deviation of its means over seeds.
    That is the Behrens–Fisher distribution (Box & Tiao, Bayesian Inference in Statistical Analysis 1973, 2.5), wide where seeds
    are few. With one seed the interval is over users alone.
    """
    if values.shape[1] != baseline.shape[1]:
        raise ValueError(
            f"{values.shape[1]} users against {baseline.shape[1]}: a paired comparison needs the same users"
        )
    rng = np.random.default_rng(seed)
    delta = values.mean(0) - baseline.mean(0)
    means = _resampled_means(delta, rng, samples)
    for runs in (values.mean(1), baseline.mean(1)):
        if len(runs) > 1:
            means = means + runs.std(ddof=1) / np.sqrt(len(runs)) * rng.standard_t(len(runs) - 1, samples)
    low, high = np.quantile(means, [0.025, 0.975])
    side = min(int((means <= 0).sum()), int((means >= 0).sum()))
    ends = _missed(delta, -1.0) if (delta == delta[0]).all() else (low, high)
    if _least(delta) > 0.05:
        ends = (*ends, 0.0)
    low, high = min(low, *ends), max(high, *ends)
    return Difference(float(delta.mean()), float(low), float(high), _p(delta, side, samples))
