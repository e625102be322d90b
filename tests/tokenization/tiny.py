"""A small catalogue whose items come in groups of groups, and one small recipe per tokenizer."""

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from engine.data.ragged import Ragged
from engine.tokenizers.base import Learning, LearningConfig, Material, Tokenizer, tokenizers
from engine.training.optimiser import OptimiserConfig
from engine.training.recipe import build_table

ITEMS, OUTER, INNER = 320, 4, 4

CONFIGS: dict[str, dict[str, Any]] = {
    "rqvae": {"levels": 2, "codes": 8, "dim": 8, "hidden": [32]},
    "letter": {"levels": 3, "codes": 8, "dim": 8, "hidden": [32], "clusters": 3, "alpha": 0.1},
    "residual-kmeans": {"levels": 2, "codes": 8},
    "p5-tid": {"words": 60, "length": 5},
    "p5-semid": {},
    "p5-cid": {"clusters": 4, "leaf": 20},
    "random": {"levels": 2, "codes": 16},
}


def groups(items: int = ITEMS) -> tuple[np.ndarray, np.ndarray]:
    """The outer group of each item, and its inner group (numbered through all outer ones)."""
    inner = np.arange(items) % (OUTER * INNER)
    return inner // INNER, inner


def planted(items: int = ITEMS, dim: int = 12, seed: int = 0, spread: float = 0.05) -> np.ndarray:
    """Vectors of groups of groups: outer centres far apart, inner ones near, items nearer still."""
    centres = np.random.default_rng(7)  # the same for every catalogue
    outer = centres.normal(size=(OUTER, dim)) * 3
    inner = centres.normal(size=(OUTER * INNER, dim))
    first, second = groups(items)
    noise = np.random.default_rng(seed).normal(size=(items, dim)) * spread
    return (outer[first] + inner[second] + noise).astype(np.float32)


def material(items: int = ITEMS, seed: int = 0, prefix: str = "i", spread: float = 0.05) -> Material:
    outer, inner = groups(items)
    rng = np.random.default_rng(seed)
    words = ["red", "blue", "soft", "hard", "만화", "große"]
    paths = [["Shop", f"outer {o}", f"inner {i}"] for o, i in zip(outer, inner, strict=True)]
    table = pa.table(
        {
            "item": pa.array(np.arange(items, dtype=np.int32)),
            "item_id": [f"{prefix}{number}" for number in range(items)],
            "title": [f"{words[o]} thing {words[rng.integers(6)]} {prefix}{i}" for i, o in enumerate(outer)],
            "categories": [path[: 3 if number % 7 else 2] for number, path in enumerate(paths)],  # some end early
        }
    )
    people = [
        rng.permutation(np.flatnonzero(inner == group))[:6].tolist() for group in rng.integers(0, OUTER * INNER, 300)
    ]
    return Material(table, planted(items, seed=seed, spread=spread), teacher(items), Ragged.of(people))


def teacher(items: int = ITEMS, dim: int = 8) -> np.ndarray:
    """Collaborative vectors by the inner group alone."""
    centres = np.random.default_rng(3).normal(size=(OUTER * INNER, dim))
    return centres[groups(items)[1]].astype(np.float32)


def learning(epochs: int = 30, **changes: Any) -> Learning:
    optimiser = OptimiserConfig(name="adamw", lr=0.005, beta2=0.999, weight_decay=1e-4)
    return replace(Learning(optimiser, LearningConfig(epochs=epochs, batch_size=64)), **changes)


def config(name: str, **changes: Any) -> Any:
    return build_table(tokenizers()[name].Config, CONFIGS[name] | changes, name)


def fit(name: str, given: Material, seed: int = 1, epochs: int = 30, **changes: Any) -> Tokenizer:
    return tokenizers()[name].fit(given, config(name, **changes), np.random.default_rng(seed), learning(epochs))


@functools.cache
def fitted(name: str) -> Tokenizer:
    """No test may change it."""
    return fit(name, material(), epochs=10)
