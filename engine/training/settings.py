"""A table of settings: a dataclass, of which every value is typed and within its limits, whatever file it comes from."""

from __future__ import annotations

import math
import types
import typing
from typing import Any, ClassVar, Literal

from engine.data.ragged import LONGEST
from engine.errors import UsageError

POSITIVE = 1e-12
LIMITS: dict[str, tuple[float, float]] = {
    # networks
    "dim": (1, math.inf), "blocks": (0, 1024), "layers": (1, 1024), "heads": (1, math.inf), "inner": (1, math.inf),
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
    "head_dim": (1, math.inf), "user_tokens": (0, math.inf), "beam": (1, 10_000), "rank": (1, 4096),
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
    "levels": (1, 16), "codes": (2, 1 << 20), "hidden": (1, math.inf), "commitment": (0, math.inf), "beta": (0, math.inf),
    "dead_after": (0, math.inf), "rounds": (0, math.inf), "iterations": (1, math.inf), "epsilon": (0, math.inf),
    "clusters": (1, math.inf), "words": (1, 1 << 20), "least": (1, math.inf), "leaf": (1, math.inf), "depth": (1, 60),
    "length": (1, 60), "scale": (0, math.inf),
}  # fmt: skip
"""Number → the smallest and the largest value that anything can be trained with, both included, whatever table it is in."""

LARGEST = (1 << 31) - 1
"""The largest of whole numbers that have no other end, as sizes of tensors, and products of a few of them, have to be counted."""


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
