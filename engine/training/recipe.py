"""Recipes: everything a paper's table of hyper-parameters would print, typed, from TOML and `--set key=value`.

A recipe has four tables: `model` (the model's configuration), `objective` (how training examples are made and which loss they
get), `optimiser` and `training`. A key that does not exist, or a value of the wrong type, is refused by name.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import tomllib
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from engine.errors import UsageError
from engine.registry import MODELS

RECIPES = Path(__file__).resolve().parent.parent / "recipes"

POSITIVE = 1e-12
LIMITS: dict[str, tuple[float, float]] = {
    # networks
    "dim": (1, math.inf), "blocks": (0, math.inf), "layers": (1, math.inf), "heads": (1, math.inf), "inner": (1, math.inf),
    "dropout": (0, 0.99), "attention_dropout": (0, 0.99), "message_dropout": (0, 0.99), "node_dropout": (0, 0.99),
    "max_length": (1, math.inf), "window": (1, math.inf), "fold_in": (1, math.inf), "omega": (0, 1),
    "init_std": (POSITIVE, math.inf), "alpha": (0, math.inf), "successors": (1, math.inf),
    "attributes": (1, 100), "attribute_tokens": (1, 10_000), "max_tokens": (2, 1 << 20), "vocabulary": (1, 1 << 20),
    "decay": (POSITIVE, 1),
    "head_dim": (1, math.inf), "user_tokens": (0, math.inf), "beam": (1, 10_000), "rank": (1, 4096),
    # objectives
    "temperature": (POSITIVE, math.inf), "per_user": (0, math.inf), "masked_weight": (0, math.inf),
    "negatives": (1, math.inf), "gbce_t": (0, 1), "mask_share": (POSITIVE, 1), "max_masked": (1, math.inf), "last_only": (0, 1),
    "step": (0, 1), "targets": (1, math.inf), "margin": (0, math.inf), "l2": (0, math.inf), "anneal_steps": (0, math.inf),
    # optimiser and training
    "lr": (POSITIVE, math.inf), "beta1": (0, 0.999999), "beta2": (0, 0.999999), "eps": (1e-30, math.inf),
    "weight_decay": (0, math.inf), "initial_accumulator": (0, math.inf), "warmup_steps": (0, math.inf),
    "clip_norm": (0, math.inf), "average": (0, 0.999999),
    "epochs": (1, math.inf), "batch_size": (1, math.inf), "validate_every": (1, math.inf),
    "patience": (0, math.inf), "seed": (0, math.inf), "valid_users": (1, math.inf), "checkpoint_seconds": (0, math.inf),
    # tokenizers
    "levels": (1, 16), "codes": (2, 1 << 20), "hidden": (1, math.inf), "commitment": (0, math.inf), "beta": (0, math.inf),
    "dead_after": (0, math.inf), "rounds": (0, math.inf), "iterations": (1, math.inf), "epsilon": (0, math.inf),
    "clusters": (1, math.inf), "words": (1, 1 << 20), "least": (1, math.inf), "leaf": (1, math.inf), "depth": (1, 60),
    "length": (1, 60), "scale": (0, math.inf),
}  # fmt: skip
"""Number → the smallest and the largest value that anything can be trained with, both included, whatever table it is in."""


def added(default: Any) -> Any:
    """A setting that came after trainings had been begun without it: at its default they go on as they were."""
    return field(default=default, metadata={"added": True})


@dataclass(frozen=True)
class NextItemConfig:
    """Every position of a sequence predicts the item after it (SASRec)."""

    loss: Literal["bce", "gbce", "sampled-softmax", "cross-entropy"] = "bce"
    """bce: one or more sampled negatives; gbce: BCE corrected for sampling; cross-entropy: the whole catalogue."""
    negatives: int = 1
    """Uniform negatives per target, outside the user's training items (all losses but cross-entropy)."""
    gbce_t: float = 0.75
    """Calibration t of gBCE."""
    step: float = added(0.0)
    """Windows over sequences longer than max_length start every step · max_length items; 0: the latest window alone (authors)."""


@dataclass(frozen=True)
class ClozeConfig:
    """Items hidden behind [MASK] are filled in (BERT4Rec)."""

    mask_share: float = 0.2
    """Share ρ of items hidden (authors: .6 Beauty, .4 Steam, .2 MovieLens)."""
    max_masked: int = 40
    """At most this many hidden items per sequence (authors: 30 Beauty, 20 Steam, 40 ML-1M, 20 ML-20M)."""
    last_only: float = 0.1
    """Share of examples in which the last item alone is hidden, as at recommendation time (authors: one more copy beside
    10 randomly masked ones)."""
    step: float = 0.5
    """Windows over sequences longer than max_length start every step · max_length items (authors: .5; Beauty .1); 0: the last
    window alone."""


@dataclass(frozen=True)
class WindowConfig:
    """L items in a row predict the T after them (AttRec)."""

    targets: int = 3
    """Items predicted per window, T."""
    negatives: int = 1
    """Negatives per target, uniform outside the user's training items."""
    margin: float = 0.5
    """Hinge margin γ."""
    dropout: float = 0.0
    """On the gathered vectors of users and items (an option of later implementations)."""
    l2: float = 0.001
    """Weight of ½‖·‖² over the vectors that an example touches (authors' code: .001 over whole tables)."""


@dataclass(frozen=True)
class PairsConfig:
    """An item that a user has scores above one that the user has not: BPR (LightGCN, NGCF)."""

    sampling: Literal["pairs", "users"] = "pairs"
    """pairs: every training pair once an epoch, as BPR is defined. users: as many draws of a uniform user and one of their items,
    as both authors' code does, so that users with few items weigh as much as those with many."""
    negatives: int = 1
    """Negatives per pair, uniform outside the user's training items."""
    l2: float = 1e-4
    """λ of ½‖·‖² per example (LightGCN: 10⁻⁴ over the batch's rows of E⁰; NGCF: 10⁻⁵)."""


@dataclass(frozen=True)
class MultinomialConfig:
    """All items of a history are draws of one distribution (Mult-VAE)."""

    beta: float = 0.2
    """Cap of β, the weight of the KL divergence (authors: .2 on ML-20M; best on validation, so each dataset has its own)."""
    anneal_steps: int = 200_000
    """β grows from 0 by 1 / anneal_steps a step until it has its cap, after beta · anneal_steps (authors: 200,000, thus 40,000);
    0: it has its cap from the beginning."""


@dataclass(frozen=True)
class CountConfig:
    """Nothing is learned by gradient: the model counts."""


@dataclass(frozen=True)
class IdentifierConfig:
    """The codes of the next item are written after the codes of the history (TIGER, LETTER, LC-Rec)."""

    temperature: float = 1.0
    """Logits are divided by τ before the softmax (LETTER's ranking-guided loss; 1 is plain cross-entropy)."""
    per_user: int = 0
    """Targets drawn per user and epoch, where each needs a pass of its own (an encoder that looks both ways); 0 takes all."""
    step: float = 0.5
    """Where targets share a pass: windows over sequences longer than max_length start every step · max_length items, and
    every item is a target once."""


@dataclass(frozen=True)
class TextConfig:
    """The text of a history meets the text of the item after it (Recformer)."""

    stage: Literal["pre-train", "fine-tune", "frozen"] = "fine-tune"
    """pre-train: hidden words are filled in, and histories meet the items of their batch. fine-tune: histories meet all items,
    encoded anew before every epoch (stage 1). frozen: the same with the items as they are where training starts (stage 2)."""
    per_user: int = 1
    """Targets drawn per user and epoch (authors: 1); 0 takes all. In pre-training from the later half of the history."""
    masked_weight: float = 0.1
    """λ of the hidden words in pre-training (paper: .1); 0 leaves them out."""
    mask_share: float = 0.15
    """Share of words hidden in pre-training (paper: .15): 80 % become [MASK], 10 % any token, 10 % stay."""


@dataclass(frozen=True)
class InstructionConfig:
    """A language model answers questions about sequences and items in codes and words (LC-Rec)."""

    tasks: str = "seqrec,item2index,index2item,fusionseqrec,itemsearch,preferenceobtain"
    """Which tasks are mixed, of those in engine/generation/prompts.py."""
    words: int = 64
    """Tokens kept of a text in a question or an answer (the last ones)."""
    temperature: float = 1.0
    """Logits are divided by τ before the softmax (LETTER's ranking-guided loss; 1 is plain cross-entropy)."""


@dataclass(frozen=True)
class OptimiserConfig:
    name: Literal["adam", "adamw", "adagrad"] = "adam"
    lr: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.98
    eps: float = 1e-8
    weight_decay: float = 0.0
    """Decoupled for adamw, where biases and LayerNorm are left out of it."""
    initial_accumulator: float = 0.0
    """adagrad alone."""
    warmup_steps: int = 0
    """The rate climbs linearly over so many steps."""
    decay: Literal["none", "linear", "cosine", "inverse-sqrt"] = "none"
    """linear, cosine: to zero at the last of training.epochs; inverse-sqrt (T5, TIGER): lr for warmup_steps without a climb,
    then lr · sqrt(warmup_steps / step)."""
    clip_norm: float = 0.0
    """Global gradient norm limit; 0 leaves gradients alone."""
    average: float = added(0.0)
    """Decay of the exponential moving average of the parameters that is validated and kept; 0: the parameters themselves."""


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
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of matrix products (sums, softmax and parameters stay float32). auto: measured when a training starts, together with the
    number of threads (engine/training/precision.py); a precision that is named is taken, on all threads."""
    compile: bool = False
    """torch.compile the model (needs a C++ compiler; pays off on a GPU)."""
    checkpoint_seconds: float = 60.0
    """Between epochs a checkpoint is written at least this often."""


OBJECTIVES: dict[str, type[Any]] = {
    "sasrec": NextItemConfig,
    "bert4rec": ClozeConfig,
    "attrec": WindowConfig,
    "lightgcn": PairsConfig,
    "ngcf": PairsConfig,
    "mult-vae": MultinomialConfig,
    "recformer": TextConfig,
    "encoder-decoder": IdentifierConfig,
    "decoder-only": IdentifierConfig,
    "language-model": InstructionConfig,
    "markov": CountConfig,
    "popularity": CountConfig,
    "text-neighbours": CountConfig,
}


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
        """As `to_dict`, without settings that were `added` and hold their default: what tells this training from others."""
        tables = self.to_dict()
        for name in ("model", "objective", "optimiser", "training"):
            for setting in dataclasses.fields(getattr(self, name)):
                if setting.metadata.get("added") and tables[name][setting.name] == setting.default:
                    del tables[name][setting.name]
        return tables


def _typed(value: Any, hint: Any, where: str) -> Any:
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
        return tuple(_typed(entry, typing.get_args(hint)[0], where) for entry in value)
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
    if not math.isfinite(value) or not low <= value <= high:
        ends = f"at least {low:g}" if high == math.inf else f"between {low:g} and {high:g}"
        raise UsageError(f"{where}: {value!r} is out of range; it must be {ends}")
    return value


def build_table(kind: type[Any], table: dict[str, Any], where: str) -> Any:
    """The dataclass `kind` from one table of a recipe, every key typed and within its limits, or a UsageError."""
    hints = typing.get_type_hints(kind)
    if not isinstance(table, dict):
        raise UsageError(f"{where}: {table!r} is not a table of settings")
    unknown = sorted(table.keys() - hints.keys())
    if unknown:
        raise UsageError(f"{where}: no setting {', '.join(unknown)}; there are {', '.join(hints) or 'none'}")
    typed = {key: _typed(value, hints[key], f"{where}.{key}") for key, value in table.items()}
    return kind(**{key: _bounded(value, f"{where}.{key}") for key, value in typed.items()})


def from_dict(raw: dict[str, Any], where: str) -> Recipe:
    """A recipe from the tables of a TOML file or of run.json; raises UsageError with `where` in it."""
    raw = dict(raw)
    family = raw.pop("family", None)
    if not isinstance(family, str) or family not in MODELS:
        raise UsageError(f"{where}: family {family!r} is not a model; there are {', '.join(MODELS)}")
    tables = {key: raw.pop(key, {}) for key in ("model", "objective", "optimiser", "training")}
    title, name = (_typed(raw.pop(key, ""), str, f"{where}: {key}") for key in ("title", "name"))
    if raw:
        raise UsageError(f"{where}: unknown entries {', '.join(sorted(raw))}")
    return Recipe(
        name=name,
        family=family,
        title=title,
        model=build_table(MODELS[family][0], tables["model"], f"{where}: model"),
        objective=build_table(OBJECTIVES[family], tables["objective"], f"{where}: objective"),
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

    recipe: a path to a TOML file, or DATASET/NAME or NAME under engine/recipes; None takes recipes/<dataset>/<name>.toml,
    or recipes/default/<name>.toml for a dataset without recipes of its own. tables: those that may be overridden.
    """
    if recipe is None:
        candidates = [RECIPES / dataset / f"{name}.toml", RECIPES / "default" / f"{name}.toml"]
    else:
        named = recipe.removesuffix(".toml")
        candidates = [Path(recipe), RECIPES / f"{named}.toml", RECIPES / dataset / f"{named}.toml"]
    path = next((p for p in candidates if p.suffix == ".toml" and p.is_file()), None)
    if path is None:
        there = [str(p.relative_to(RECIPES).with_suffix("")) for p in sorted(RECIPES.glob("*/*.toml"))]
        wanted = recipe or name
        near = difflib.get_close_matches(wanted, [*there, *(text.partition("/")[2] for text in there)], cutoff=0.7)
        meant = f"did you mean {' or '.join(dict.fromkeys(near))}? " if near else ""
        near_by = [text for text in there if text.startswith((f"{dataset}/", "default/"))]
        raise UsageError(
            f"no recipe {wanted!r}; {meant}for this dataset there are {', '.join(near_by)}, or give the path of a TOML file"
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
