"""Metrics, each declared once, and what makes them of ranks and lists: pure numpy.

METRICS holds every declaration: the command line, bundles, pages, reports and About read them and name no metric themselves.
docs/extending.md says how to add one. With one held-out item per user, HR@k is Recall@k and the ideal DCG is 1.

With several (protocols of sets), ranks are those of all items of a user, each among the whole catalogue, its fellows included:

    Recall@k   given split     hits / |T|            NGCF (SIGIR 2019) and LightGCN (SIGIR 2020) in their code
               held-out users  hits / min(k, |T|)    Mult-VAE (WWW 2018), section 4.2
    NDCG@k     both            DCG@k / ideal DCG of min(k, |T|) items
"""

import itertools
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.errors import SeqscopeError
from engine.evaluation.protocols import SETS, parse
from engine.plugins import take
from engine.writing import in_percent

CUTOFFS = (1, 5, 10, 20, 50)
HEADLINE = "NDCG"
"""The metric by which models are chosen and compared where nobody says otherwise."""
GROUP = "seqscope.metrics"
"""Entry points of other packages that add metrics: each leads to a `Metric`."""
SHARE = "{:.1%}"
_FALLING = ("HR", "NDCG", "MRR")
"""Of one held-out item: none is below the next."""
_OUTSIDE = re.compile(r"outside@([1-9]\d{0,6})")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{0,31}")

OfUsers = Callable[[np.ndarray, np.ndarray, int, str], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """What every declaration says. It is one of the two kinds below."""

    name: str
    """Before the @ in files, tables and addresses: NDCG. Letters and digits."""
    title: str
    """On the page About: NDCG@k."""
    meaning: str
    """What it measures, in two sentences."""
    source: str
    """Where it is defined."""
    later: bool = True
    """It came after the first reports, so that one without it is whole. False of those that every report has."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name == "outside":  # which a beam has (`beam_width`)
            raise SeqscopeError(f"The metric {self.name!r} needs another name: letters and digits, a letter first.")
        for entry in ("title", "meaning", "source"):
            if not getattr(self, entry):
                raise SeqscopeError(f"The metric {self.name} has no {entry}.")

    def _try(self, function: str, values: Any, shape: tuple[int, ...]) -> None:
        if np.shape(values) != shape or not np.isfinite(values).all():
            raise SeqscopeError(
                f"The metric {self.name}: {function} answers {values!r}, not finite numbers of shape {shape}."
            )


@dataclass(frozen=True, kw_only=True)
class Accuracy(Metric):
    """Over people, from the ranks of their held-out items."""

    gain: Callable[[np.ndarray, int], np.ndarray]
    """(ranks, k) → what each held-out item is worth: float64 of the same shape, 0 for ranks beyond k. Ranks: float, from 1."""
    of_one: bool = True
    """It is measured where each person has one held-out item; a person's value is then the gain."""
    at_k: bool = True
    """False: it is one figure over all places, and k is beyond every rank."""
    of_sets: OfUsers | None = None
    """(sums of gains, numbers of held-out items, k, protocol) → each person's value, where a person may have several: all of
    shape [people]. None: it is not measured there."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._try("gain", self.gain(np.array([1.0, 2.5, 70.0]), 10), (3,))
        if self.of_sets is not None:
            self._try("of_sets", self.of_sets(np.array([0.0, 1.5]), np.array([1, 2]), 10, SETS["given"]), (2,))


@dataclass(frozen=True, kw_only=True)
class Beyond(Metric):
    """Of the lists that all people get together."""

    of_lists: Callable[[np.ndarray, np.ndarray], float]
    """(how often each item is in a list, its training events) → value. Both int64 [items]."""
    form: str = "{:.3f}"
    """How a value is written; SHARE is never all or nothing where it only rounds to it."""
    unit: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        value = self.of_lists(np.array([3, 0, 1]), np.array([5, 1, 0]))
        self._try("of_lists", value, ())
        self.text(value)

    @property
    def field(self) -> str:
        """Its name in tables that are computed with."""
        return self.name.casefold()

    @property
    def head(self) -> str:
        """Its name above a column: novelty, bits."""
        return f"{self.name}, {self.unit}" if self.unit else self.name

    @property
    def capital(self) -> str:
        """Its name at the beginning of a line."""
        return self.name[:1].upper() + self.name[1:]

    def at(self, k: int) -> str:
        """Its name above a column, with the cut-off: Novelty@10, bits."""
        return f"{self.capital}@{k}" + (f", {self.unit}" if self.unit else "")

    def text(self, value: float | None) -> str:
        """A value, written; n/a for None and NaN."""
        if value is None or value != value:
            return "n/a"
        return in_percent(value, 1) if self.form == SHARE else self.form.format(value)


def beam_width(metrics: Mapping[str, Mapping[str, float]], protocol: str) -> int | None:
    """The width of the beam that the ranks under `protocol` come from; None where every candidate was scored.

    metrics: protocol → metric → value, as in metrics.json and in a bundle's manifest. A full ranking by a beam has the metric
    outside@<width> there; all full rankings of an evaluation have one beam, and the few candidates of a sampled protocol are
    scored one by one.
    """
    if not parse(protocol).full:
        return None
    widths = (_OUTSIDE.fullmatch(name) for name in itertools.chain.from_iterable(metrics.values()))
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


def _recall(gained: np.ndarray, sizes: np.ndarray, k: int, protocol: str) -> np.ndarray:
    return gained / (sizes if protocol == SETS["given"] else np.minimum(sizes, k))


def _over_ideal(gained: np.ndarray, sizes: np.ndarray, k: int, protocol: str) -> np.ndarray:
    ideal = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))])
    return gained / ideal[np.minimum(sizes, k)]


def coverage(exposure: np.ndarray, popularity: np.ndarray | None = None) -> float:
    """Share of the catalogue that is in somebody's list. exposure: int [items], how often each item was."""
    return float((exposure > 0).mean())


def gini(exposure: np.ndarray, popularity: np.ndarray | None = None) -> float:
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


METRICS: dict[str, Metric] = {}
"""Name → declaration, in the order of tables and of About."""


def register(metrics: Iterable[Any]) -> None:
    """Adds declarations to METRICS. Raises SeqscopeError for what is none, or has a name that is taken."""
    for metric in metrics:
        if not isinstance(metric, Accuracy | Beyond):
            raise SeqscopeError(f"{metric!r} is no metric: declare an Accuracy or a Beyond (docs/extending.md).")
        if metric.name.casefold() in (name.casefold() for name in METRICS):
            raise SeqscopeError(f"Two metrics are called {metric.name}. Give one of them another name.")
        METRICS[metric.name] = metric


register(
    (
        Accuracy(
            name="HR",
            title="HR@k, hit rate",
            meaning="The share of users whose held-out item is among the first k. With one held-out item per user it "
            "equals recall@k.",
            source="Deshpande & Karypis, TOIS 2004",
            later=False,
            gain=hit,
        ),
        Accuracy(
            name="Recall",
            title="Recall@k",
            meaning="With several held-out items per user: how many are among the first k, divided by their number (given "
            "split) or by the smaller of that and k (held-out users). The mean over users.",
            source="Wang et al., SIGIR 2019 (NGCF), and Liang et al., WWW 2018 (Mult-VAE)",
            later=False,
            gain=hit,
            of_one=False,
            of_sets=_recall,
        ),
        Accuracy(
            name="NDCG",
            title="NDCG@k",
            meaning="A hit at rank r ≤ k counts 1 / log₂(r + 1), so 1 at the top, and nothing beyond k; several held-out items "
            "are summed and divided by the sum of a perfect list. The mean over users.",
            source="Järvelin & Kekäläinen, TOIS 2002",
            later=False,
            gain=ndcg,
            of_sets=_over_ideal,
        ),
        Accuracy(
            name="MRR",
            title="MRR@k",
            meaning="A hit counts 1 / rank, so the second place is worth half of the first. The mean over users, with 0 "
            "beyond rank k.",
            source="Voorhees, TREC-8 1999",
            later=False,
            gain=reciprocal_rank,
        ),
        Beyond(
            name="coverage",
            title="Coverage@k",
            meaning="The share of the catalogue in the top k of at least one user. It is k of n items if all users get "
            "the same list.",
            source="Ge, Delgado-Battenfeld & Jannach, RecSys 2010",
            later=False,
            of_lists=coverage,
            form=SHARE,
        ),
        Beyond(
            name="Gini",
            title="Gini@k",
            meaning="How unequally the items are shown: 0 where all appear equally often, towards 1 where one takes "
            "every place. Items in no list count, too.",
            source="Gini 1912; Fleder & Hosanagar, Management Science 2009",
            later=False,
            of_lists=gini,
        ),
        Beyond(
            name="novelty",
            title="Novelty@k",
            meaning="The mean of −log₂ of an item's share of all training events (of one at least) over everything shown, in "
            "bits. One bit more means half as well known.",
            source="Zhou et al., PNAS 2010",
            later=False,
            of_lists=novelty,
            form="{:.2f}",
            unit="bits",
        ),
    )
)
take(GROUP, lambda _, metric: register([metric]))

ACCURACY = {name: metric for name, metric in METRICS.items() if isinstance(metric, Accuracy)}
BEYOND = {name: metric for name, metric in METRICS.items() if isinstance(metric, Beyond)}


def names(protocol: str) -> tuple[str, ...]:
    """The metrics over people that are measured under a protocol."""
    sets = parse(protocol).sets
    return tuple(name for name, metric in ACCURACY.items() if (metric.of_sets is not None if sets else metric.of_one))


def key(name: str, k: int) -> str:
    """What a figure is called in files, tables and addresses: NDCG@10, or the name alone where a metric has no cut-off."""
    return f"{name}@{k}" if ACCURACY[name].at_k else name


def cutoff_of(metric: str) -> int:
    """10 of "NDCG@10"; more than there are places where it has none."""
    return int(metric.partition("@")[2] or sys.maxsize)


def per_user(metric: str, ranks: np.ndarray, protocol: str = "full", users: np.ndarray | None = None) -> np.ndarray:
    """Each user's share in `metric`, such as "NDCG@10": float64 [users], ascending; its mean is the metric.

    ranks: float [targets]; users: int [targets], whose they are; None where each user has one. Raises KeyError for a metric that
    the protocol does not have.
    """
    name, _, cutoff = metric.partition("@")
    if name not in names(protocol) or bool(cutoff) != ACCURACY[name].at_k:
        raise KeyError(metric)
    return _over_users(metric, ACCURACY[name].gain(ranks, cutoff_of(metric)), protocol, users)


def by_chance(metric: str, candidates: np.ndarray, protocol: str = "full", users: np.ndarray | None = None) -> float:
    """The metric of a random order, in expectation. candidates: int [targets], among how many each of them is ranked, itself
    included; the rest as of `per_user`."""
    gains = ACCURACY[metric.partition("@")[0]].gain(np.arange(1.0, candidates.max() + 1), cutoff_of(metric))
    expected = np.cumsum(gains) / np.arange(1, len(gains) + 1)
    return float(_over_users(metric, expected[candidates - 1], protocol, users).mean())


def _over_users(metric: str, gains: np.ndarray, protocol: str, users: np.ndarray | None) -> np.ndarray:
    """float64 [users]: what the targets of each gain, float [targets], as the metric has it; the rest as of `per_user`."""
    declared, k = ACCURACY[metric.partition("@")[0]], cutoff_of(metric)
    if declared.of_sets is None or not parse(protocol).sets:
        return gains
    owners = np.arange(len(gains)) if users is None else users
    _, owner, sizes = np.unique(owners, return_inverse=True, return_counts=True)
    return declared.of_sets(np.bincount(owner, gains, len(sizes)), sizes, k, parse(protocol).base)


def accuracy(
    ranks: np.ndarray, width: int | None = None, protocol: str = "full", users: np.ndarray | None = None
) -> dict[str, float]:
    """The metrics that the protocol has at every cut-off; where ranks come from a beam at those within its width.

    ranks, users: as of `per_user`. Raises ValueError where HR ≥ NDCG ≥ MRR ≥ 0 fails, or a mean over sets is not between 0 and
    1: the ranks are wrong then."""
    keys = dict.fromkeys(key(name, k) for k in CUTOFFS for name in names(protocol))
    values = {
        metric: float(per_user(metric, ranks, protocol, users).mean()) if len(ranks) else float("nan")
        for metric in keys
        if not beyond_beam(cutoff_of(metric), width)
    }
    for k in CUTOFFS if len(ranks) else ():
        known = [values[f"{name}@{k}"] for name in (*_FALLING, "Recall") if f"{name}@{k}" in values]
        falling = [1 + 1e-9, *(known if not parse(protocol).sets else known and [max(known)]), 0]
        if not all(more >= less for more, less in itertools.pairwise(falling)):
            raise ValueError(f"impossible metrics at {k}: {values}")
    return values


def beyond_accuracy(exposure: Mapping[int, np.ndarray], popularity: np.ndarray) -> dict[str, float]:
    """What is beyond accuracy at every cut-off that `exposure` has."""
    return {
        f"{name}@{k}": metric.of_lists(counts, popularity)
        for k, counts in exposure.items()
        for name, metric in BEYOND.items()
    }
