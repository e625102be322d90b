"""manifest.json: what a bundle says of itself. Written by `engine.export`, believed by nobody until it is checked."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

SCHEMA_VERSION = 1
_FILE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\.(onnx|npy|parquet)")
_SHA256 = r"^[0-9a-f]{64}$"
_NAME = r"^[a-z0-9][a-z0-9_-]{0,63}$"


class Strict(BaseModel):
    """Nothing unknown, nothing coerced ("5" is not 5), no NaN: a field means one thing to every reader."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class File(Strict):
    sha256: str = Field(pattern=_SHA256)
    bytes: int = Field(ge=0)


class Encoder(Strict):
    """history → query. Input `items`: int64 [batch, length], left-padded; output `query`: float32 [batch, dim]."""

    dim: int = Field(ge=1, le=2_000_000)
    max_length: int = Field(ge=1, le=10_000)
    """The encoder reads at most this many of the latest items; the runtime cuts longer histories."""
    min_history: int = Field(ge=0, le=1)
    """0 where the model can answer for somebody without any history."""


class Attention(Strict):
    """Output `attention` of attention.onnx: float32 [batch, layers, heads, positions, positions]; rows sum to 1."""

    layers: int = Field(ge=1, le=1_000)
    heads: int = Field(ge=1, le=1_000)
    causal: bool
    """True: position i sees positions ≤ i alone, and what lies above the diagonal is impossible, not zero."""
    window: int = Field(ge=1, le=10_000)
    """The last `window` items of the input are positions, oldest first."""
    next_token: bool
    """True: one more position stands after the items, for the item to predict (BERT4Rec's [MASK])."""
    masked_diagonal: bool = False
    """True: a position does not look at itself (AttRec)."""
    pooled: bool = False
    """True: the query is the mean over all rows (AttRec), else it is read at the last row."""


class Index(Strict):
    kind: Literal["dense", "identity"]
    """dense: score = query · row + bias. identity: the query is the score vector, plus bias."""
    geometry: Literal["cosine", "euclidean", "none"]
    """How nearness of two item rows is meant by the model; "none": rows carry no meaning to compare."""


class Capabilities(Strict):
    """What the model can do, and in a sentence a page can show, why it cannot do the rest."""

    attention: bool
    neighbours: bool
    map: bool
    unseen_items: bool
    trained_users: bool
    """True: the model has a vector per training user; in the app it works from the fold-in."""
    reasons: dict[str, str] = {}
    """For each capability that is False: why, in one sentence."""


class Training(Strict):
    recipe: dict[str, Any]
    """The resolved recipe: model and training settings."""
    command: str
    commit: str | None
    device: str
    seconds: float
    seed: int
    epochs: int
    best_epoch: int
    parameters: int
    versions: dict[str, str]
    started: str


class Projection(Strict):
    """How map.parquet was made, and how far it can be trusted."""

    method: str
    parameters: dict[str, Any]
    trustworthiness: float
    """0..1: share of each item's neighbours on the map that are neighbours in the model's space (Venna & Kaski 2001), k below."""
    neighbours: int


class Check(Strict):
    """What was compared before the bundle was put in place."""

    histories: int
    lengths: list[int]
    max_abs_difference: float
    """ONNX against PyTorch: the largest difference of any score, relative to the largest score where that exceeds 1."""


class Manifest(Strict):
    schema_version: Literal[1] = 1
    name: str = Field(pattern=_NAME)
    """The name of its folder; the word in addresses and on the command line."""
    title: str = Field(min_length=1, max_length=60)
    family: str
    """One of the engine's model names: sasrec, bert4rec, attrec, popularity, markov, …"""
    summary: str = Field(max_length=2_000)
    """Two sentences for the model's card."""
    paper: str = Field(max_length=2_000)
    """Where the model comes from."""
    order: int = Field(default=100, ge=0, le=10_000)
    """Where pages list the model: smaller numbers first, equal ones by name."""
    dataset: str
    fingerprint: str = Field(pattern=_SHA256)
    num_items: int = Field(ge=1)
    encoder: Encoder
    attention: Attention | None
    index: Index
    capabilities: Capabilities
    training: Training
    metrics: dict[str, dict[str, float]]
    """Protocol ("full", "u100", …) → metric ("HR@10", …) → value, on the test set."""
    projection: Projection | None
    check: Check
    created: str
    created_by: str
    files: dict[str, File]

    @field_validator("files")
    @classmethod
    def _plain_names(cls, files: dict[str, File]) -> dict[str, File]:
        for name in files:
            if not _FILE.fullmatch(name):
                raise ValueError(f"file name {name!r} is not allowed in a bundle")
        for needed in ("encoder.onnx", "index.npy"):
            if needed not in files:
                raise ValueError(f"{needed} is not listed")
        return files

    @model_validator(mode="after")
    def _agrees(self) -> Manifest:
        """What one part says, no other part denies: pages may rely on a capability without looking further."""
        can = self.capabilities
        for claim, basis, words in (
            (can.attention, self.attention is not None, "attention is described"),
            (can.attention, "attention.onnx" in self.files, "attention.onnx is listed"),
            (can.map, self.projection is not None, "a projection is described"),
            (can.map, "map.parquet" in self.files, "map.parquet is listed"),
            (can.neighbours, self.index.kind == "dense" and self.index.geometry != "none", "item rows can be compared"),
        ):
            if claim and not basis:
                raise ValueError(f"a capability is claimed, but it is not so that {words}")
        if self.index.kind == "identity" and self.encoder.dim != self.num_items:
            raise ValueError(
                f"an identity index needs encoder.dim = num_items, not {self.encoder.dim} and {self.num_items}"
            )
        if self.attention is not None and self.attention.window > self.encoder.max_length:
            raise ValueError(
                f"attention.window {self.attention.window} exceeds encoder.max_length {self.encoder.max_length}"
            )
        return self
