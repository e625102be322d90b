"""Recipes: everything a paper's table of hyper-parameters would print, typed, from TOML and `--set key=value`.

A recipe has four tables: `model` (the model's configuration), `objective` (how training examples are made and which loss they
get), `optimiser` and `training`. A key that does not exist, or a value of the wrong type, is refused by name.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from engine.cards import added
from engine.errors import SeqscopeError, UsageError
from engine.plugins import folders
from engine.registry import MODELS
from engine.training.objectives import OBJECTIVES
from engine.training.optimiser import OptimiserConfig
from engine.training.settings import build_table, retired, typed

RECIPES = Path(__file__).resolve().parent.parent / "recipes"
GROUP = "seqscope.recipes"
"""Entry points of other packages: anything → a package with recipes, laid out as engine/recipes."""


@dataclass(frozen=True)
class TrainingConfig:
    epochs: int = 200
    """At most so many passes over the training examples."""
    batch_size: int = 128
    """Examples (sequences, or windows) per step, over all processes together."""
    seed: int = 1
    validate_every: int = 5
    """Epochs between validations."""
    patience: int = 10
    """Stop after so many validations without a better NDCG@10; 0 never stops early. Those at steps at which the rate still climbs
    (optimiser.warmup_steps) do not count: a small log has few steps an epoch, and its warm-up takes many epochs."""
    valid_protocol: Literal["full", "u100"] = "full"
    """What NDCG@10 on the validation items is computed against: the whole catalogue, or 100 frozen negatives."""
    valid_users: int = 10_000
    """Validation uses at most so many users, drawn once."""
    valid_fold_in: bool = added(False)
    """Validate by histories alone, as visitors are answered, also where the model has vectors of its users.
    Of models that do not read order these differ most: vectors know what a user likes, the latest items what comes next."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of matrix products (sums, softmax and parameters stay float32). auto: measured when a training starts, together with the
    number of threads (engine/training/compute.py); a precision that is named is taken, on all threads."""
    compile: bool = False
    """torch.compile the layers of the model, or all of one without stacks of them (needs a C++ compiler; pays off on a GPU)."""
    checkpoint_seconds: float = 60.0
    """Between epochs a checkpoint is written at least this often."""


@dataclass(frozen=True)
class Recipe:
    name: str
    """What the run is called; the file's name."""
    family: str
    """Name of the model, a key of engine.registry.MODELS."""
    model: Any
    objective: Any
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    title: str = ""
    """Name for people; the model's own where empty."""

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def identity(self) -> dict[str, Any]:
        """As `to_dict`, without settings that were `added` and hold their default and with those that are `retired`: what tells
        this training from others."""
        tables = self.to_dict()
        for name in ("model", "objective", "optimiser", "training"):
            tables[name] |= retired(type(getattr(self, name)))
            for setting in dataclasses.fields(getattr(self, name)):
                if setting.metadata.get("added") and tables[name][setting.name] == setting.default:
                    del tables[name][setting.name]
        return tables


def from_dict(raw: dict[str, Any], where: str) -> Recipe:
    """A recipe from the tables of a TOML file or of run.json; raises UsageError with `where` in it."""
    raw = dict(raw)
    family = raw.pop("family", None)
    if not isinstance(family, str) or family not in MODELS:
        raise UsageError(f"{where}: family {family!r} is not a model; there are {', '.join(MODELS)}")
    tables = {key: raw.pop(key, {}) for key in ("model", "objective", "optimiser", "training")}
    title, name = (typed(raw.pop(key, ""), str, f"{where}: {key}") for key in ("title", "name"))
    if raw:
        raise UsageError(f"{where}: unknown entries {', '.join(sorted(raw))}")
    model = MODELS[family]
    if model.objective not in OBJECTIVES:
        raise SeqscopeError(
            f"{model.__module__}.{model.__qualname__} has the objective {model.objective!r}, which is none; there are "
            + ", ".join(OBJECTIVES)
        )
    return Recipe(
        name=name,
        family=family,
        title=title,
        model=build_table(model.Config, tables["model"], f"{where}: model"),
        objective=build_table(OBJECTIVES[model.objective].Config, tables["objective"], f"{where}: objective"),
        optimiser=build_table(OptimiserConfig, tables["optimiser"], f"{where}: optimiser"),
        training=build_table(TrainingConfig, tables["training"], f"{where}: training"),
    )


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text  # a bare word is a string


def read(name: str, dataset: str, recipe: str | None, overrides: list[str], tables: Sequence[str]) -> dict[str, Any]:
    """The tables of a recipe as they stand in its file, with `overrides` ("table.key=value") put in, and its name.

    recipe: a path to a TOML file, or DATASET/NAME or NAME under engine/recipes or such a folder of another package; None takes
    recipes/<dataset>/<name>.toml, or recipes/default/<name>.toml for a dataset without recipes of its own, or has all of it in
    the name. tables: those that may be overridden.
    """
    roots = [RECIPES, *folders(GROUP)]
    parts = (dataset, "default", "") if recipe is None else ("", dataset)
    recipe_name = name if recipe is None else recipe
    file_name = f"{recipe_name.removesuffix('.toml')}.toml"
    candidates = [Path(recipe_name), *(root / part / file_name for part in parts for root in roots)]
    path = next((p for p in candidates if p.suffix == ".toml" and p.is_file()), None)
    if path is None:
        there = [str(p.relative_to(root).with_suffix("")) for root in roots for p in sorted(root.glob("*/*.toml"))]
        near = difflib.get_close_matches(recipe_name, [*there, *(text.partition("/")[2] for text in there)], cutoff=0.7)
        meant = f"did you mean {' or '.join(dict.fromkeys(near))}? " if near else ""
        near_by = [text for text in there if text.startswith((f"{dataset}/", "default/"))]
        raise UsageError(
            f"no recipe {recipe_name!r}; {meant}for this dataset there are {', '.join(near_by)}, or give the path of a TOML file"
        )
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}") from None
    for text in overrides:
        key, sign, value = text.partition("=")
        table, dot, entry = key.strip().partition(".")
        if not sign or not dot or table not in tables:
            raise UsageError(
                f"--set {text}: write it as table.key=value with {', '.join(tables[:-1])} or {tables[-1]} as table"
            )
        if not isinstance(raw.setdefault(table, {}), dict):
            raise UsageError(f"{path}: {table} is not a table of settings")
        raw[table][entry] = _value(value.strip())
    raw["name"] = path.stem
    return raw


def load(model: str, dataset: str, recipe: str | None, overrides: list[str]) -> Recipe:
    """The recipe for `model` on `dataset`: a model's name, or that of a recipe. The others are as `read` takes them."""
    raw = read(model, dataset, recipe, overrides, ("model", "objective", "optimiser", "training"))
    where, family = f"{raw['name']}.toml", raw.get("family")
    if isinstance(family, str) and model in MODELS and family in MODELS and family != model:
        raise UsageError(f"{recipe or where} is a recipe for {family}, not for {model}")
    return from_dict(raw, where)
