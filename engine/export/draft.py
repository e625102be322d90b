"""A bundle while it is written; `Recommender.exports` names its parts, modules of this folder with `write(model, draft)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.bundle.manifest import Check, Generator, Graph, Index, Sentence, Text
from engine.data.dataset import Cases, Dataset
from engine.training.recipe import Recipe


@dataclass
class Draft:
    folder: Path
    """Where files go."""
    run: Path
    out: Path
    """The folder of exports, for what bundles share."""
    recipe: Recipe
    data: Dataset
    cases: Cases
    """Histories that graphs are checked on."""
    checks: list[Callable[[], None]] = field(default_factory=list)
    """Called when all parts are written and the graphs share their tensors; each raises SeqscopeError where a graph does not
    answer as PyTorch does."""

    # --- what the manifest says of the parts
    index: Index = field(default_factory=lambda: Index(kind="identity", geometry="none"))
    dim: int = 1
    """Of a query."""
    rows: npt.NDArray[np.float32] | None = None
    """[items, dim], what nearness and the map are about; None where there is nothing of the kind."""
    check: Check | None = None
    generator: Generator | None = None
    text: Text | None = None
    sentence: Sentence | None = None
    graph: Graph | None = None
    order: int = 0
    """To add to the model's place among others."""
    paper: str = ""
    """To add to the model's paper."""
