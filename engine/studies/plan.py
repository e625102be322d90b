"""A study's plan: one chain of recipes, and variants of it that differ in some settings. TOML, checked before anything runs.

    title = "What LETTER adds to RQ-VAE"
    about = "…"
    runs = ["sasrec", "letter", "tiger"]          # recipes (names or TOML files), in order; a later one finds the earlier by name
    seeds = [1, 2]                                # training.seed of every run
    baseline = "rq-vae"
    [set]                                         # of all variants: recipe = ["table.key=value", …]
    tiger = ["model.identifiers=letter", "training.epochs=4"]
    [[variants]]
    name = "rq-vae"
    title = "RQ-VAE"
    set.letter = ["tokenizer.alpha=0", "tokenizer.beta=0"]
    …

In place of variants and a baseline, a sweep has the values of one setting, that of the recipe among them:

    [sweep]
    title = "Codes of an identifier"
    run = "letter"
    setting = "tokenizer.levels"
    values = [2, 3, 4, 5]

What a paper has of these variants goes into a table for each metric and log, and is shown beside what was measured:

    [[published]]
    metric = "Recall@20"
    beside = "HR@20"                              # what that is called here, where it is called otherwise
    dataset = "Gowalla"
    protocol = "given split, full ranking"
    source = "Wang et al. 2019, table 3"
    differs = "…"                                 # in a sentence
    figures = { 1 = 0.1556, 2 = 0.1547 }          # variant, or value of the sweep
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, field_validator, model_validator

from engine.bundle.errors import complaints
from engine.bundle.manifest import Name, Order, Strict
from engine.errors import UsageError
from engine.files import load_toml
from engine.runtime.studies import Published

PLANS = Path(__file__).resolve().parent
Settings = dict[str, list[str]]


class PlannedVariant(Strict):
    name: Name
    title: str = Field(min_length=1, max_length=80)
    runs: list[str] = Field(default=[], max_length=16)
    """Where its chain is another than the plan's."""
    set: Settings = Field(default={}, max_length=16)
    value: float | None = None
    """Of a sweep."""
    differs: str = Field(default="", max_length=500)
    """In what it is not the paper's variant, in a sentence."""


class Sweep(Strict):
    title: str = Field(min_length=1, max_length=60)
    run: str
    setting: str = Field(pattern=r"^[a-z_]+\.[a-z_]+$")
    values: list[Annotated[float | int, Field(ge=0)]] = Field(min_length=2, max_length=64)


class Plan(Strict):
    name: Name
    """The file's name."""
    title: str = Field(min_length=1, max_length=80)
    about: str = Field(default="", max_length=2_000)
    order: Order = 100
    runs: list[str] = Field(min_length=1, max_length=16)
    seeds: list[int] = Field(default=[1], min_length=1, max_length=64)
    set: Settings = Field(default={}, max_length=16)
    baseline: str = ""
    variants: list[PlannedVariant] = Field(default=[], max_length=64)
    sweep: Sweep | None = None
    trained_users: bool = False
    """Rank with the vectors of trained users, of variants that have any; else users are known by their histories."""
    published: list[Published] = Field(default=[], max_length=16)

    @field_validator("seeds")
    @classmethod
    def _seeds(cls, seeds: list[int]) -> list[int]:
        if len(set(seeds)) != len(seeds) or min(seeds) < 0:
            raise ValueError("seeds are different numbers from 0")
        return seeds

    @model_validator(mode="after")
    def _whole(self) -> Plan:
        if (self.sweep is None) == (not self.variants):
            raise ValueError("a plan has variants or a sweep, one of the two")
        if self.sweep is not None:
            if self.baseline:
                raise ValueError("the baseline of a sweep is the recipe's own setting; leave it out")
            if self.sweep.run not in map(called, self.runs):
                raise ValueError(f"the sweep changes {self.sweep.run!r}, which is none of the runs")
            if len(set(self.sweep.values)) != len(self.sweep.values):
                raise ValueError("a value of the sweep stands twice")
            _within(self.set, self.runs, "[set]")
            return self
        names = [variant.name for variant in self.variants]
        if len(names) < 2 or len(set(names)) != len(names):
            raise ValueError("there are at least two variants, each with a name of its own")
        if self.baseline not in names:
            raise ValueError(f"the baseline {self.baseline!r} is none of the variants: {', '.join(names)}")
        every = dict.fromkeys(run for variant in self.variants for run in variant.runs or self.runs)
        _within(self.set, list(every), "[set]")
        for variant in self.variants:
            _within(variant.set, variant.runs or self.runs, variant.name)
        return self


def value_name(value: float | str) -> str:
    """What the variant with this value of a sweep is called."""
    written = value if isinstance(value, str) else f"{value:g}"
    return written.replace(".", "_").replace("+", "")


def _within(settings: Settings, runs: list[str], where: str) -> None:
    """A setting of a run that is not made would be lost without a word."""
    names = [called(run) for run in runs]
    if len(set(names)) != len(names):
        raise ValueError(f"{where}: a recipe is run twice; give one of them another name")
    for run in settings:
        if run not in names:
            raise ValueError(f"{where} sets something of {run!r}, which is none of its runs: {', '.join(names)}")


def called(run: str) -> str:
    """What a recipe is called that is given by name or as a file."""
    return Path(run).stem if run.endswith(".toml") else run


def load(path: Path) -> Plan:
    """Raises UsageError where the file is no plan."""
    raw = load_toml(path)
    try:
        return Plan.model_validate({"name": path.stem, **raw})
    except ValidationError as error:
        raise UsageError(f"{path}: {complaints(error)}") from None


def find(names: list[str], dataset: str) -> dict[str, Path]:
    """Name as it was given → the plan's file. A name is a TOML file, or NAME or DATASET/NAME of those that come along; without
    any, all of the dataset's."""
    if not names:
        plans = sorted((PLANS / dataset).glob("*.toml"))
        if not plans:
            raise UsageError(f"no studies come along for {dataset}; give the TOML file of one (docs/training.md)")
        return {path.stem: path for path in plans}
    paths = {}
    for name in names:
        candidates = [Path(name), PLANS / dataset / f"{name}.toml", PLANS / f"{name}.toml"]
        path = next((path for path in candidates if path.suffix == ".toml" and path.is_file()), None)
        if path is None:
            there = ", ".join(str(p.relative_to(PLANS).with_suffix("")) for p in sorted(PLANS.glob("*/*.toml")))
            raise UsageError(f"no study {name!r}; there are {there}, or give the path of a TOML file")
        paths[name] = path
    return paths
