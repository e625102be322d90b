"""What somebody found by changing one thing at a time: exports/<dataset>/studies/<name>.json, written by `seqscope study`.

A study is a list of variants of one chain of recipes, each run with one or more seeds, judged on the same users of the same
dataset. A file holds what was measured and each person's rank, so that differences are paired by whoever reads it.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import logging
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from engine.bundle.errors import BundleError, Refusal
from engine.bundle.files import LEADS_OUT, Catalogue, Folder, leads_out, read_document
from engine.bundle.manifest import Name, Order, Sha256, Strict
from engine.evaluation.protocols import SETS, of_people, parse
from engine.runtime import judge

log = logging.getLogger("seqscope.runtime")
STUDIES = "studies"
"""The folder of a dataset's studies; no bundle is called so."""
SCHEMA_VERSION = 3
"""3 for several held-out items a user; 2 for studies that state figures of a paper, what differs, or trained users; 1 for the
rest."""
LIMIT = 8 << 20
"""Bytes of one file: some millions of ranks."""
KEPT = max(judge.CUTOFFS)
"""Ranks up to this one are told apart; what stands further down is 0 in the file."""


@dataclass(frozen=True)
class Measure:
    """One figure: its name for people, whether more of it is better (None: neither), and how it is written."""

    title: str
    better: Literal["more", "less"] | None
    form: str
    words: str


MEASURES: dict[str, Measure] = {
    "NDCG@10": Measure("NDCG@10", "more", ".4f", "full ranking of the held-out item"),
    "HR@10": Measure("HR@10", "more", ".4f", "share of users whose held-out item is among the first ten"),
    "NDCG@20": Measure("NDCG@20", "more", ".4f", "full ranking of each user's held-out items"),
    "Recall@20": Measure("Recall@20", "more", ".4f", "share of a user's held-out items that are among the first twenty"),
    "perplexity": Measure("Perplexity, level 1", "more", ".2f", "how many first codes are used, evenly counted"),
    "evenness": Measure(
        "Normalised perplexity", "more", ".3f", "perplexity as a share of the codes, mean over levels"
    ),
    "excess": Measure("Collisions, excess", "less", ".4f", "share of items beyond the different identifiers, as fitted"),
    "sharing": Measure("Collisions, sharing", "less", ".4f", "share of items whose identifier is another's too, as fitted"),
    "lost": Measure("Variance lost", "less", ".4f", "share of the variance of item vectors that codes do not bring back"),
    "similarity": Measure(
        "Code similarity", "more", ".3f", "codes an item shares with the nearest by cosine of SASRec's vectors"
    ),
    "similarity_dot": Measure(
        "Code similarity, dot product", "more", ".3f", "codes an item shares with that of the largest dot product (LETTER)"
    ),
    "expressed": Measure(
        "NDCG@10 by codes", "more", ".4f", "SASRec's own ranking with its item vectors made of the codes"
    ),
}  # fmt: skip
"""Every figure that a study may hold; those over people come first (`of_people`)."""
OF_RUNS = tuple(name for name in MEASURES if "@" not in name)
"""Those that need nobody who is ranked for: a tokenizer's."""
SECONDS = "seconds"
"""What a paper's training time stands beside: how long all runs of a variant took."""


class StudyStep(Strict):
    """One run of a chain: a tokenizer's or a model's."""

    run: str = Field(min_length=1, max_length=64)
    """The recipe's name."""
    commands: list[str] = Field(min_length=1, max_length=4)
    """What was done, as one would type it."""
    recipe: dict[str, Any]
    """Resolved: every setting."""
    commit: str | None
    device: str = Field(max_length=200)
    seconds: float = Field(ge=0)
    epochs: int | None = Field(ge=0)
    """None where nothing is learnt by gradient."""


class Figure(Strict):
    """A figure and, where it is a mean over people, its 95 % bootstrap interval."""

    mean: float
    low: float | None = None
    high: float | None = None


class Outcome(Strict):
    """One variant with one seed."""

    LATER = ("protocol",)

    seed: int = Field(ge=0)
    steps: list[StudyStep] = Field(min_length=1, max_length=16)
    figures: dict[str, Figure] = Field(min_length=1)
    ranks: list[float] | list[list[float]] | None = None
    """Rank of each person's held-out item in the full ranking, people in the order of the dataset; 0 beyond the 50th. Where a
    person has several held-out items, a list of their ranks. None where the chain ends in a tokenizer, which ranks nothing."""
    protocol: str = "full"
    """What the ranks are of: "full", or one of `SETS`."""

    @model_validator(mode="after")
    def _agrees(self) -> Outcome:
        if self.protocol not in ("full", *SETS.values()):
            raise ValueError(f"no protocol {self.protocol!r}; there are full, {', '.join(SETS.values())}")
        if self.ranks is not None:
            sets = parse(self.protocol).sets
            if set(map(type, self.ranks)) != {list if sets else float} or [] in self.ranks:
                raise ValueError(
                    f"of the protocol {self.protocol!r} everybody has {'a list of ranks' if sets else 'a rank'}"
                )
            values, _ = self._flat()
            if ((values != 0) & ((values < 1) | (values > KEPT) | (not sets and values % 0.5 != 0))).any():
                raise ValueError(f"a rank is 0, or from 1 to {KEPT}{'' if sets else ' in halves'}")
        possible = (*of_people(self.protocol), *OF_RUNS)
        unknown = sorted(self.figures.keys() - {*possible})
        if unknown:
            raise ValueError(f"no figure {unknown[0]!r}; there are {', '.join(possible)}")
        for name in of_people(self.protocol):
            if (name in self.figures) != (self.ranks is not None):
                raise ValueError(f"{name} and the ranks belong together")
            if name in self.figures and not math.isclose(
                self.figures[name].mean, float(self.per_person(name).mean()), abs_tol=1e-6
            ):
                raise ValueError(f"{name} is {self.figures[name].mean:.6f}, but not by the ranks in the file")
        return self

    def per_person(self, metric: str) -> npt.NDArray[np.float64]:
        """float64 [people]: each person's share in the metric."""
        ranks, owners = self._flat()
        shares: npt.NDArray[np.float64] = judge.per_user(
            metric, np.where(ranks == 0, np.inf, ranks), self.protocol, owners
        )
        return shares

    def _flat(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """float64 [held-out items]: all ranks, person after person; int64 [held-out items]: whose they are."""
        ranks: list[Any] = self.ranks or []
        people = np.arange(len(ranks))
        if ranks and isinstance(ranks[0], list):
            flat = np.fromiter(itertools.chain.from_iterable(ranks), np.float64)
            return flat, np.repeat(people, list(map(len, ranks)))
        return np.array(ranks, np.float64), people


class StudyVariant(Strict):
    LATER = ("differs",)

    name: Name
    title: str = Field(min_length=1, max_length=80)
    value: float | None = None
    """In a sweep: what the setting is."""
    settings: dict[str, list[str]] = Field(default={}, max_length=16)
    """What sets it apart: recipe → table.key=value, …"""
    outcomes: list[Outcome] = Field(min_length=1, max_length=64)
    differs: str = Field(default="", max_length=500)
    """In what it is not the paper's variant, in a sentence."""

    def figure(self, name: str) -> float:
        """Its mean over seeds: a figure of the file, another metric over people, or `SECONDS`."""
        return float(np.mean([self._figure(outcome, name) for outcome in self.outcomes]))

    def _figure(self, outcome: Outcome, name: str) -> float:
        if name == SECONDS:
            return sum(step.seconds for step in outcome.steps)
        return outcome.figures[name].mean if name in outcome.figures else float(outcome.per_person(name).mean())


class Published(Strict):
    """What a paper (or its authors' code) has of the variants of a study: measured on another log, under a protocol of its own.

    The two are two measurements. What can be held side by side is how far a variant is from the baseline of its own table.
    """

    metric: str = Field(min_length=1, max_length=40)
    """As the source calls it: NDCG@10, Recall@20, training time."""
    beside: str = Field(default="", max_length=40)
    """The figure of the study that it is shown beside, where that is called otherwise (`Study.measures`)."""
    dataset: str = Field(min_length=1, max_length=60)
    protocol: str = Field(min_length=1, max_length=200)
    source: str = Field(min_length=1, max_length=200)
    """The paper and its table."""
    differs: str = Field(min_length=1, max_length=500)
    """What was done otherwise here, in a sentence."""
    figures: dict[str, Annotated[float, Field(ge=0, le=1e9)]] = Field(min_length=2, max_length=64)
    """Variant → the figure, the baseline among them; variants that the source does not have are left out."""

    @property
    def measure(self) -> str:
        """The study's figure that it is shown beside."""
        return self.beside or self.metric

    def fault(self, variants: list[str], baseline: str, protocol: str | None) -> str:
        """Why it is nothing to compare variants with, in a few words; "" where it is. protocol: what people are ranked under;
        None where nobody is ranked for."""
        unknown = sorted(self.figures.keys() - set(variants))
        if unknown:
            return f"no variant {unknown[0]!r}; there are {', '.join(variants)}"
        if not self.figures.get(baseline):
            return f"no figure of the baseline {baseline!r}, or none that others are a share of"
        ranked = protocol is not None and over_people(self.measure, protocol)
        if self.measure not in (*OF_RUNS, SECONDS) and not ranked:
            return f"nothing here is called {self.measure!r}; `beside` names the figure that it is shown beside"
        return ""


def over_people(metric: str, protocol: str) -> bool:
    """Whether it is a metric over people that ranks up to `KEPT` say."""
    try:
        judge.per_user(metric, np.ones(1), protocol)
        return 1 <= judge.cutoff_of(metric) <= KEPT
    except (KeyError, ValueError):
        return False


class Axis(Strict):
    """What a sweep goes along."""

    title: str = Field(min_length=1, max_length=60)
    run: str = Field(min_length=1, max_length=64)
    setting: str = Field(min_length=3, max_length=64)


class Study(Strict):
    LATER = ("published", "trained_users")

    schema_version: Literal[1, 2, 3] = 1
    name: Name
    """The file's name."""
    title: str = Field(min_length=1, max_length=80)
    about: str = Field(max_length=2_000)
    """What is asked, and what was done to answer it in the time there was."""
    order: Order = 100
    """Where pages list it: smaller numbers first, equal ones by name."""
    dataset: str
    fingerprint: Sha256
    people: int | None = Field(ge=1, le=50_000_000)
    """Who was ranked for; None where the chains end in a tokenizer."""
    settings: dict[str, list[str]] = Field(default={}, max_length=16)
    """What all variants set in their recipes."""
    axis: Axis | None = None
    """A sweep; None: an ablation."""
    baseline: str
    """The variant that others are compared with; in a sweep the one with the recipe's own setting."""
    variants: list[StudyVariant] = Field(min_length=2, max_length=64)
    trained_users: bool = False
    """Ranks are those with the vectors of trained users, of variants that have any; else users are known by their histories."""
    published: list[Published] = Field(default=[], max_length=16)
    """What papers have of these variants; the first is drawn, all are tabled."""
    command: str = Field(max_length=2_000)
    created: str
    created_by: str

    @model_validator(mode="after")
    def _compares(self) -> Study:
        names = [variant.name for variant in self.variants]
        if len(set(names)) != len(names):
            raise ValueError("two variants have one name")
        if self.baseline not in names:
            raise ValueError(f"the baseline {self.baseline!r} is none of the variants")
        outcomes = [outcome for variant in self.variants for outcome in variant.outcomes]
        if any(set(outcome.figures) != set(outcomes[0].figures) for outcome in outcomes):
            raise ValueError("not every run has the same figures")
        if any((None if outcome.ranks is None else len(outcome.ranks)) != self.people for outcome in outcomes):
            raise ValueError(f"a run has not as many ranks as there are users, {self.people}")
        if len({outcome.protocol for outcome in outcomes}) > 1:
            raise ValueError("not every run was ranked under the same protocol")
        for variant in self.variants:
            if len({outcome.seed for outcome in variant.outcomes}) != len(variant.outcomes):
                raise ValueError(f"{variant.name} has a seed twice")
        if len({frozenset(outcome.seed for outcome in variant.outcomes) for variant in self.variants}) > 1:
            raise ValueError("not every variant was run with the same seeds")
        values = [variant.value for variant in self.variants]
        if self.axis is None and any(value is not None for value in values):
            raise ValueError("an ablation has no values")
        if self.axis is not None and (None in values or len(set(values)) != len(values)):
            raise ValueError("every variant of a sweep has a value of its own")
        for entry in self.published:
            fault = entry.fault(names, self.baseline, self.protocol)
            if fault:
                raise ValueError(f"published, {entry.source}: {fault}")
        named = [(entry.dataset, entry.metric) for entry in self.published]
        if len(set(named)) != len(named):
            raise ValueError("published has one metric of one dataset twice")
        later = self.published or self.trained_users or any(variant.differs for variant in self.variants)
        if later and self.schema_version < 2:
            raise ValueError("published figures, what differs and trained users belong to schema_version 2")
        if self.schema_version < 3 and outcomes[0].protocol != "full":
            raise ValueError("several held-out items a user belong to schema_version 3")
        return self

    @property
    def protocol(self) -> str | None:
        """What people were ranked under; None where nobody was ranked for."""
        return None if self.people is None else self.variants[0].outcomes[0].protocol

    @property
    def figures(self) -> list[str]:
        """The figures that it has, in the order of `MEASURES`."""
        return [name for name in MEASURES if name in self.variants[0].outcomes[0].figures]

    def variant(self, name: str) -> StudyVariant:
        return next(variant for variant in self.variants if variant.name == name)

    @functools.cached_property
    def digest(self) -> str:
        """Hex; changes with any content."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


@dataclass(frozen=True)
class Studies:
    """found: name → `Study`, in the order of `order`, equal ones by name; refused: what was not taken, and why."""

    found: dict[str, Study]
    refused: list[Refusal]

    @classmethod
    def open(cls, path: Path, catalogue: Catalogue) -> Studies:
        """Those of the dataset folder `path`."""
        folder = path / STUDIES
        studies: list[Study] = []
        refused: list[Refusal] = []
        if leads_out(folder, path):
            return cls({}, [Refusal(STUDIES, "", LEADS_OUT)])
        for file in sorted(folder.glob("*.json")):
            shown = file.name.encode("utf-8", "replace").decode()[:100]
            try:
                studies.append(read(file, catalogue))
            except BundleError as fault:
                refused.append(Refusal(STUDIES, shown, fault.reason))
            except Exception as error:  # one file must not take the others along, whatever it holds
                log.warning("%s cannot be read", file, exc_info=error)
                refused.append(Refusal(STUDIES, shown, "the study cannot be read"))
        studies.sort(key=lambda study: (study.order, study.name))
        return cls({study.name: study for study in studies}, refused)


def read(path: Path, catalogue: Catalogue) -> Study:
    """Raises BundleError where the file is no study, or one of another dataset."""
    folder, file = Folder(path.parent, path.parent.name), path.name
    study = read_document(folder, file, Study, SCHEMA_VERSION, limit=LIMIT)
    if study.name != path.stem:
        raise folder.fault(file, f"it calls itself {study.name}, its file {path.stem}")
    if study.fingerprint != catalogue.fingerprint:
        raise folder.fault(
            file,
            f"made with another dataset or another state of it (fingerprint {study.fingerprint[:8]}…; {catalogue.name} has "
            f"{catalogue.fingerprint[:8]}…); run `seqscope study {study.name}` again",
        )
    return study
