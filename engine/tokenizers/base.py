"""What every item tokenizer is: something fitted to one catalogue that gives any item, also of another catalogue, a few codes.

tokenizer = Rqvae.fit(material, config, generator, learning)
tokenizer.identify(material)        # int32 [items, levels], before items that collide are told apart
tokenizer.identify(other_material)  # the same for a catalogue that it never saw
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from engine.cards import TOKENIZERS, Card, require
from engine.data.identifiers import NONE
from engine.data.ragged import Ragged
from engine.errors import SeqscopeError, first_line
from engine.plugins import classes
from engine.training.optimiser import OptimiserConfig

CPU = torch.device("cpu")
Codes = npt.NDArray[np.int32]
Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Material:
    """A catalogue and what is known of its items, row i being item i."""

    items: pa.Table
    """item, item_id, title, attributes (items.parquet)."""
    vectors: Vectors | None = None
    """[items, d]: what an item's text says."""
    collaborative: Vectors | None = None
    """[items, k]: what the log says, learned from training events alone."""
    training: Ragged | None = None
    """Item numbers, one row per user, training events alone."""

    def __post_init__(self) -> None:
        for name in ("vectors", "collaborative"):
            vectors = getattr(self, name)
            if vectors is None:
                continue
            if vectors.ndim != 2 or len(vectors) != len(self) or not vectors.size or vectors.dtype != np.float32:
                raise ValueError(f"{name} must be float32 [{len(self)}, d], not {vectors.dtype} {vectors.shape}")
            if not np.isfinite(vectors).all():
                raise ValueError(f"{name} hold values that are no numbers")

    def __len__(self) -> int:
        return int(self.items.num_rows)

    def of(self, name: str) -> Any:
        """`name` of this material, which the tokenizer needs. Raises ValueError where it is not there."""
        value = getattr(self, name)
        if value is None:
            raise ValueError(f"this tokenizer reads {name}, and there are none")
        return value

    def take(self, rows: npt.NDArray[Any]) -> Material:
        """The items `rows` alone, without the log."""
        parts = (None if array is None else array[rows] for array in (self.vectors, self.collaborative))
        return Material(self.items.take(pa.array(rows)), *parts)

    def digest(self) -> str:
        """sha256 of all that a tokenizer may read."""
        hasher = hashlib.sha256()
        for name in self.items.column_names:
            hasher.update(f"{name}\0{self.items[name].to_pylist()!r}\1".encode())
        training = () if self.training is None else (self.training.values, self.training.offsets)
        for array in (self.vectors, self.collaborative, *training):
            hasher.update(b"\2" if array is None else np.ascontiguousarray(array).tobytes())
        return hasher.hexdigest()


@dataclass(frozen=True)
class LearningConfig:
    """The table `training` of a tokenizer's recipe."""

    epochs: int = 200
    """Passes over the catalogue; read by tokenizers that learn by gradient alone."""
    batch_size: int = 1024
    """Items per step."""
    seed: int = 1
    checkpoint_seconds: float = 30.0
    """A checkpoint is written at least this often, at the end of an epoch."""


@dataclass(frozen=True)
class Learning:
    """How and where a tokenizer that learns by gradient does so."""

    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    training: LearningConfig = field(default_factory=LearningConfig)
    device: torch.device = CPU
    folder: Path | None = None
    """Where checkpoints go; None writes none."""
    identity: str = ""
    """Digest of what determines the result: a checkpoint of another one is refused."""
    label: str = "tokenizer"


class Tokenizer(ABC):
    """A tokenizer that recipes may name declares here all that the rest of Seqscope knows of it; one without a `name` is a base.

    Attributes:
        name: the family in recipes.
        Config: the dataclass of its settings, the table `tokenizer` of recipes.
        card: what people are told of it. One with a variant that a page trains has a setting `codes`, the codes of a level.
        needs: what it reads of a Material besides the items (where its settings decide: `needs_of`).
        learns: by gradient, so that the table `training` counts.
        shared: see Identifiers.
    """

    name: ClassVar[str]
    Config: ClassVar[type[Any]]
    card: ClassVar[Card]
    learns: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ()
    shared: ClassVar[bool] = False

    config: Any
    record: dict[str, Any]
    """What happened while it was fitted: epochs, curve, …; empty where nothing is learned."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            require(cls, "Config", "card")
            if any(variant.page for variant in cls.card.variants):
                require(cls.Config, "codes")

    @classmethod
    def needs_of(cls, config: Any) -> tuple[str, ...]:
        """What it needs with these settings (its `Config`)."""
        return cls.needs

    @classmethod
    @abstractmethod
    def fit(cls, material: Material, config: Any, generator: np.random.Generator, learning: Learning) -> Self:
        """A tokenizer for this catalogue. Raises ValueError where the material does not serve, SeqscopeError where learning
        fails."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """Codes per level."""

    @abstractmethod
    def identify(self, material: Material) -> Codes:
        """int32 [items, levels], each code from 0 to the size of its level less 1, or −1 in trailing places; items that collide
        are not told apart yet."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"level {level}" for level in range(1, len(self.sizes) + 1))

    def latents(self, material: Material) -> Vectors | None:
        """float32 [items, d]: what is quantised; None where there are no vectors."""
        return None

    def quantised(self, codes: Codes) -> Vectors | None:
        """float32 [items, d]: what the codes stand for, in the space of `latents`."""
        return None

    def codebooks(self) -> Vectors | None:
        """float32 [levels, codes, d]: the vector of each code; None where codes have none."""
        return None

    def lost(self, material: Material, codes: Codes) -> float | None:
        """Share of the variance of the item vectors that codes do not reproduce: 0 nothing, 1 all."""
        return None

    @abstractmethod
    def parts(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and JSON facts from which, with its settings, `restore` makes the same tokenizer."""

    @classmethod
    @abstractmethod
    def restore(cls, config: Any, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Self: ...


def codes_of(tokenizer: Tokenizer, material: Material) -> Codes:
    """int32 [items, levels]: what `tokenizer.identify` answers. Raises SeqscopeError, with its name, where these are no
    codes of its levels."""
    answer = tokenizer.identify(material)
    try:
        codes = np.asarray(answer)
    except ValueError as error:
        raise SeqscopeError(f"the tokenizer {tokenizer.name} gives items no codes: {first_line(error)}") from None
    shape, sizes = (len(material), len(tokenizer.sizes)), np.array(tokenizer.sizes)
    if codes.shape != shape or codes.dtype.kind not in "iu":
        raise SeqscopeError(
            f"the tokenizer {tokenizer.name} gives codes of {codes.dtype} {list(codes.shape)}; they must be whole numbers, "
            f"{list(shape)}: a row for each item, a column for each level"
        )
    absent = codes == NONE
    bad = (codes < NONE) | (codes >= sizes)
    bad[:, :1] |= absent[:, :1]
    bad[:, 1:] |= absent[:, :-1] & ~absent[:, 1:]
    if bad.any():
        item, level = np.argwhere(bad)[0]
        raise SeqscopeError(
            f"the tokenizer {tokenizer.name} gives item {item} the codes {codes[item].tolist()}; on level {level + 1} they go "
            f"from 0 to {sizes[level] - 1}, and {NONE} stands in trailing places alone"
        )
    return codes.astype(np.int32, copy=False)


# --- Item vectors brought to a common scale, by the mean and deviation of the catalogue that a tokenizer was fitted to.


@dataclass(frozen=True)
class Scaling:
    """mean, scale: float32 [d]; a vector x becomes (x − mean) · scale."""

    mean: Vectors
    scale: Vectors

    @classmethod
    def of(cls, vectors: Vectors, standardise: bool) -> Self:
        """Mean 0 and deviation 1 per dimension, or nothing at all. A dimension that never changes becomes 0."""
        if not len(vectors):
            raise ValueError("there are no items")
        mean = vectors.mean(0, dtype=np.float64)
        if not standardise:
            return cls(np.zeros_like(mean, np.float32), np.ones_like(mean, np.float32))
        deviation = vectors.std(0, dtype=np.float64)
        flat = deviation < 1e-6 * max(float(deviation.max()), 1e-12)
        scale = np.where(flat, 0.0, 1 / np.where(flat, 1, deviation))
        return cls(mean.astype(np.float32), scale.astype(np.float32))

    def __call__(self, vectors: Vectors) -> Vectors:
        if vectors.shape[1] != len(self.mean):
            raise ValueError(f"vectors have {vectors.shape[1]} dimensions, the tokenizer reads {len(self.mean)}")
        return ((vectors - self.mean) * self.scale).astype(np.float32)

    @staticmethod
    def lost(vectors: Vectors, reconstruction: Vectors) -> float:
        """Share of the variance of `vectors` that `reconstruction` does not reproduce."""
        spread = np.square(vectors - vectors.mean(0), dtype=np.float64).sum()
        return float(np.square(vectors - reconstruction, dtype=np.float64).sum() / max(float(spread), 1e-12))


# --- every tokenizer


@cache
def tokenizers() -> dict[str, type[Tokenizer]]:
    return classes(Tokenizer, ("engine.tokenizers",), TOKENIZERS)


def card_of(name: str, family: str) -> Card | None:
    """Of the run `name` of a tokenizer; None where there is no such family."""
    kind = tokenizers().get(family)
    if kind is None:
        return None
    variant = kind.card.variant(name)
    return replace(
        kind.card,
        order=kind.card.order if variant.order is None else variant.order,
        summary=variant.summary or kind.card.summary,
        paper=variant.paper or kind.card.paper,
    )
