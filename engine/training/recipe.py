"""Recipes: everything a paper's table of hyper-parameters would print, typed, from TOML and `--set key=value`.

A recipe has four tables: `model` (the model's configuration), `objective` (how training examples are made and which loss they
get), `optimiser` and `training`. A key that does not exist, or a value of the wrong type, is refused by name.
"""

import dataclasses
import difflib
import math
import tomllib
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from engine.cards import TOKENIZERS, added, names
from engine.console import note
from engine.data.ragged import LONGEST
from engine.errors import SeqscopeError, UsageError
from engine.files import load_toml
from engine.plugins import folders
from engine.registry import MODELS
from engine.training.objectives import OBJECTIVES
from engine.training.optimiser import OptimiserConfig

RECIPES = Path(__file__).resolve().parent.parent / "recipes"
GROUP = "seqscope.recipes"
"""Entry points of other packages: anything → a package with recipes, laid out as engine/recipes."""

POSITIVE = 1e-12
WIDEST = 1 << 16
"""Of a layer. Beyond it a training is not refused for want of memory, but ended by the system without a word."""
LIMITS: dict[str, tuple[float, float]] = {
    # networks
    "dim": (1, WIDEST), "blocks": (0, 1024), "layers": (1, 1024), "heads": (1, WIDEST), "inner": (1, WIDEST),
    "hidden_layers": (0, 1), "experts": (1, 1024), "offset_precision": (0, math.inf),
    "dropout": (0, 0.99), "input_dropout": (0, 0.99), "attention_dropout": (0, 0.99), "message_dropout": (0, 0.99),
    "node_dropout": (0, 0.99), "adaptor_dropout": (0, 0.99), "without_times": (0, 1), "period": (0, 36_525),
    "max_length": (1, LONGEST), "window": (1, math.inf), "fold_in": (1, math.inf), "omega": (0, 1), "preference": (0, 1),
    "init_std": (POSITIVE, math.inf), "alpha": (0, math.inf), "successors": (1, math.inf),
    "attributes": (1, 100), "attribute_tokens": (1, 10_000), "max_tokens": (2, 1 << 20), "vocabulary": (1, 1 << 20),
    "decay": (POSITIVE, 1), "horizontal": (1, math.inf), "vertical": (1, math.inf),
    # weights between items
    "distance_power": (0, 10), "distance_decay": (POSITIVE, 1), "smoothing": (POSITIVE, math.inf), "recent": (0, math.inf),
    "recent_share": (0, 1), "popularity": (-100, 100), "kept": (1, 1_000_000), "rules": (0, math.inf),
    "neighbours": (1, math.inf), "shrinkage": (0, math.inf), "regularisation": (POSITIVE, math.inf), "text": (0, math.inf),
    "latest": (POSITIVE, 1),
    "head_dim": (1, WIDEST), "user_tokens": (0, math.inf), "beam": (1, 10_000), "rank": (1, 4096),
    # objectives
    "temperature": (POSITIVE, math.inf), "per_user": (0, math.inf), "masked_weight": (0, math.inf),
    "attributes_weight": (0, math.inf), "masked_items_weight": (0, math.inf), "masked_attributes_weight": (0, math.inf),
    "segments_weight": (0, math.inf), "sequence_weight": (0, math.inf), "drop_share": (0, 0.99),
    "negatives": (1, math.inf), "gbce_t": (0, 1), "mask_share": (POSITIVE, 1), "max_masked": (1, math.inf), "last_only": (0, 1),
    "shared_negatives": (0, 1 << 20), "popularity_power": (0, 10), "score_penalty": (0, math.inf), "consistency": (0, math.inf),
    "step": (0, 1), "targets": (1, math.inf), "margin": (0, math.inf), "l2": (0, math.inf), "anneal_steps": (0, math.inf),
    "covariance": (0, math.inf), "examples": (0, math.inf),
    # optimiser and training
    "lr": (POSITIVE, math.inf), "beta1": (0, 0.999999), "beta2": (0, 0.999999), "eps": (1e-30, math.inf),
    "weight_decay": (0, math.inf), "initial_accumulator": (0, math.inf), "warmup_steps": (0, math.inf),
    "clip_norm": (0, math.inf), "average": (0, 0.999999),
    "epochs": (1, math.inf), "batch_size": (1, math.inf), "validate_every": (1, math.inf),
    "patience": (0, math.inf), "seed": (0, (1 << 63) - 1), "valid_users": (1, math.inf), "checkpoint_seconds": (0, math.inf),
    # tokenizers
    "levels": (1, 16), "codes": (2, 1 << 20), "hidden": (1, WIDEST), "commitment": (0, math.inf), "beta": (0, math.inf),
    "dead_after": (0, math.inf), "rounds": (0, math.inf), "iterations": (1, math.inf), "epsilon": (0, math.inf),
    "clusters": (1, math.inf), "words": (1, 1 << 20), "least": (1, math.inf), "leaf": (1, math.inf), "depth": (1, 60),
    "length": (1, 60), "scale": (0, math.inf),
}  # fmt: skip
"""Number → the smallest and the largest value that anything can be trained with, both included, whatever table it is in."""

LARGEST = (1 << 31) - 1
"""The largest of whole numbers that have no other end, as sizes of tensors, and products of a few of them, have to be counted."""


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
        other = "it is a tokenizer, for `seqscope tokenize`" if family in names(TOKENIZERS) else ""
        raise UsageError(f"{where}: family {family!r} is not a model; {other or 'there are ' + ', '.join(MODELS)}")
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


def retired(kind: type) -> dict[str, Any]:
    """Settings of a dataclass that are no more (its class attribute RETIRED) → the value under which files that still state them
    say what is so now."""
    return dict(getattr(kind, "RETIRED", {}))


def typed(value: Any, hint: Any, where: str) -> Any:
    """`value` as the type `hint` says, or a UsageError that names `where`."""
    if typing.get_origin(hint) is Literal:
        choices = typing.get_args(hint)
        if value not in choices:
            raise UsageError(f"{where}: {value!r} is not one of {', '.join(map(str, choices))}")
        return value
    if isinstance(hint, types.UnionType):
        raise UsageError(f"{where}: cannot be set")
    if typing.get_origin(hint) is tuple:  # tuple[int, ...] or tuple[str, ...], a list in TOML
        if not isinstance(value, list | tuple):
            raise UsageError(f"{where}: {value!r} is not a list")
        return tuple(typed(entry, typing.get_args(hint)[0], where) for entry in value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise UsageError(f"{where}: {value!r} is not of type {hint.__name__}")
    return value


def _bounded(value: Any, where: str) -> Any:
    """`value`, or a UsageError where it is a number (or holds one) out of its `LIMITS`."""
    if isinstance(value, tuple):
        return tuple(_bounded(entry, where) for entry in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    low, high = LIMITS.get(where.rpartition(".")[2], (-math.inf, math.inf))
    if isinstance(value, int) and high == math.inf:
        high = LARGEST
    if not math.isfinite(value) or not low <= value <= high:
        least, most = (f"{end:,}" if isinstance(end, int) else f"{end:g}" for end in (low, high))
        ends = f"at least {least}" if high == math.inf else f"between {least} and {most}"
        raise UsageError(f"{where}: {value!r} is out of range; it must be {ends}")
    return value


def build_table(kind: type[Any], table: dict[str, Any], where: str) -> Any:
    """The dataclass `kind` from one table of a recipe, every key typed and within its limits, or a UsageError."""
    hints = {
        name: hint for name, hint in typing.get_type_hints(kind).items() if typing.get_origin(hint) is not ClassVar
    }
    if not isinstance(table, dict):
        raise UsageError(f"{where}: {table!r} is not a table of settings")
    table = {key: value for key, value in table.items() if key in hints or value != retired(kind).get(key)}
    unknown = sorted(table.keys() - hints.keys())
    if unknown:
        raise UsageError(f"{where}: no setting {', '.join(unknown)}; there are {', '.join(hints) or 'none'}")
    values = {key: typed(value, hints[key], f"{where}.{key}") for key, value in table.items()}
    return kind(**{key: _bounded(value, f"{where}.{key}") for key, value in values.items()})


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
        near_by = [text for text in there if text.startswith((f"{dataset}/", "default/"))]
        close = difflib.get_close_matches(
            recipe_name, [*there, *(text.partition("/")[2] for text in near_by)], cutoff=0.7
        )
        near = [text for text in there if text.endswith(f"/{recipe_name}")] or close  # the first: of other datasets
        meant = f"did you mean {' or '.join(dict.fromkeys(near))}? " if near else ""
        raise UsageError(
            f"no recipe {recipe_name!r}; {meant}for this dataset there are {', '.join(near_by)}, or give the path of a TOML file"
        )
    raw = load_toml(path)
    given = set[str]()
    for text in overrides:
        key, sign, value = text.partition("=")
        table, dot, entry = key.strip().partition(".")
        if not sign or not dot or table not in tables:
            raise UsageError(
                f"--set {text}: write it as table.key=value with {', '.join(tables[:-1])} or {tables[-1]} as table"
            )
        if not isinstance(raw.setdefault(table, {}), dict):
            raise UsageError(f"{path}: {table} is not a table of settings")
        if key.strip() in given:
            note(f"--set {key.strip()} is given more than once; the later one counts: {value.strip()}")
        given.add(key.strip())
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
