"""A tokenizer's identifiers of one catalogue: exports/<dataset>/identifiers/<name>/, beside the models' bundles.

    about.json           `About`: what the folder says of itself
    identifiers.parquet  item, codes: every item's codes, as in the bundle of a generator
    codebooks.npy        float32 [own levels, codes, dim], where codes have vectors
    latents.npy          float32 [items, dim], what was quantised, where that is small
    codes_map.parquet    level, code, x, y, cluster: the vectors of the codes on a plane, one per level
    codebooks_map.parquet  level, code, x, y: the vectors of all levels on one plane
    latents_map.parquet  item, x, y: latents.npy on a plane

What a page needs beyond that follows from the codes. Nothing is believed until it is checked.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from engine.bundle.errors import CapabilityError
from engine.bundle.files import Catalogue, Folder, Lazy, read_about
from engine.bundle.index import Float32, Neighbours, nearest
from engine.bundle.manifest import File, Generator, Name, Order, Projection, Sha256, Strict
from engine.bundle.tables import Column, read_matrix, read_places, read_table
from engine.data.identifiers import NONE, Identifiers

IDENTIFIERS = "identifiers.parquet"
CELLS = 1 << 26
"""Items times levels that are read."""


def read_identifiers(folder: Folder, expected: File, items: int, shape: CodeShape | Generator) -> Identifiers:
    """The identifiers of all `items`, read-only. Raises BundleError where they are not what `shape` announces."""
    if items * shape.levels > CELLS:
        raise folder.fault(IDENTIFIERS, f"{items:,} items of {shape.levels} codes are more than are read here")
    columns = {
        "item": Column(pa.int32(), 0, items - 1),
        "codes": Column(pa.list_(pa.int32()), 0, max(shape.sizes) - 1),
    }
    table = read_table(folder, IDENTIFIERS, columns, expected=expected)
    if not np.array_equal(table["item"].to_numpy(), np.arange(items)):
        raise folder.fault(IDENTIFIERS, f"row i must be item i, for all {items:,} items")
    rows = table["codes"].combine_chunks()
    lengths = np.diff(rows.offsets.to_numpy())
    if lengths.min() < 1 or lengths.max() > shape.levels:
        raise folder.fault(
            IDENTIFIERS, f"identifiers have {lengths.min()} to {lengths.max()} codes, not 1 to {shape.levels}"
        )
    codes = np.full((items, shape.levels), NONE, np.int32)
    codes[np.arange(shape.levels) < lengths[:, None]] = rows.flatten().to_numpy()
    try:
        identifiers = Identifiers(codes, tuple(shape.sizes), shape.shared, tuple(shape.names))
    except ValueError as error:
        raise folder.fault(IDENTIFIERS, f"these are no identifiers ({error})") from None
    if identifiers.ends != shape.ends:
        words = "some" if identifiers.ends else "none"
        raise folder.fault(IDENTIFIERS, f"{words} of the identifiers are short, the manifest says otherwise")
    codes.flags.writeable = False
    return identifiers


ABOUT = "about.json"
SCHEMA_VERSION = 2
"""The newest that is read: 2 with places of codebooks or latents on a plane, 1 without."""
CODEBOOKS_MAP, LATENTS_MAP = "codebooks_map.parquet", "latents_map.parquet"
_FILES = ("identifiers.parquet", "codebooks.npy", "latents.npy", "codes_map.parquet", CODEBOOKS_MAP, LATENTS_MAP)
_OLD = "This export is older than maps of it. Export the tokenizer again."
_TOO_LARGE = "The vectors that it makes its codes of are too large to be part of an export."


class CodeShape(Strict):
    """How the identifiers are built."""

    levels: int = Field(ge=1, le=64)
    sizes: list[int] = Field(min_length=1, max_length=64)
    """Codes of each level, used or not."""
    names: list[str] = Field(default=[], max_length=64)
    """What each level is called; empty where there is nothing better than its number."""
    shared: bool
    """True: a code means the same at every level."""
    ends: bool
    """True: some identifiers are shorter than others."""
    own: list[int] = Field(min_length=1, max_length=64)
    """Codes of each level that the tokenizer itself gives. Levels after these, and codes from these numbers on, only count the
    items that would share an identifier otherwise: they say nothing of the item."""

    @model_validator(mode="after")
    def _adds_up(self) -> CodeShape:
        if len(self.sizes) != self.levels or len(self.names) not in (0, self.levels) or len(self.own) > self.levels:
            raise ValueError(f"{len(self.sizes)} sizes and {len(self.names)} names for {self.levels} levels")
        if min(self.sizes) < 1 or max(self.sizes) > 1 << 24 or min(self.own) < 1:
            raise ValueError("every level has at least one code")
        if any(given > size for given, size in zip(self.own, self.sizes, strict=False)):
            raise ValueError("a level has more codes of its own than codes")
        return self


class Collisions(Strict):
    """How many items cannot be told apart."""

    different: int = Field(ge=1)
    """Identifiers that differ."""
    excess: float = Field(ge=0, le=1)
    """(items − different) / items."""
    sharing: float = Field(ge=0, le=1)
    """Share of items whose identifier is another item's as well."""
    groups: int = Field(ge=0)
    largest: int = Field(ge=1)


class Alike(Strict):
    """Whether items that people take together have like codes."""

    of: str
    """The model whose vectors say who is whose neighbour."""
    shared: float = Field(ge=0)
    """Mean number of levels at which an item and the item of the largest dot product have the same code (LETTER, section
    4.3.2, as its published codes and vectors give the paper's figure)."""
    shared_by_cosine: float = Field(ge=0)
    """The same with the item of the largest cosine, which is seldom one of the few longest vectors."""
    chance: float = Field(ge=0)
    """The same for items paired at random."""


class RankedByCodes(Strict):
    """Whether codes tell a model of the log what its own item vectors tell it: NDCG@10 over the test items."""

    of: str
    """That model."""
    own: float = Field(ge=0, le=1)
    """With its own item vectors."""
    quantised: float = Field(ge=0, le=1)
    """With the sums of code vectors that come nearest to them."""


class Teacher(Strict):
    """The run whose item vectors the tokenizer learned from; it saw training events alone."""

    run: str = Field(max_length=200)
    commit: str | None
    best_epoch: int | None
    """Chosen on validation."""
    valid_ndcg: float | None
    """NDCG@10 there."""
    digest: Sha256
    """sha256 of its weights."""
    kept: float = Field(ge=0)
    """Share of the vectors' squared length that is left in the tokenizer's dimensions."""


class Figures(Strict):
    """What was measured when the identifiers were made, and needs more than the codes."""

    LATER = ("ranking",)

    before: Collisions
    """As the tokenizer gave them."""
    after: Collisions
    """Once items that collided were told apart, as far as the policy goes."""
    moved: int = Field(ge=0)
    """Items that were given other codes for that."""
    reconstruction: float | None = None
    """Share of the variance of the item vectors that codes do not reproduce; None where no vectors are quantised."""
    neighbours: Alike | None = None
    ranking: RankedByCodes | None = None


class Plane(Strict):
    """How codes_map.parquet was made."""

    method: str = Field(max_length=200)
    shares: list[float] = Field(max_length=64)
    """Of each level: the share of the variance of its codes' vectors that the plane shows."""
    clusters: int = Field(ge=1, le=1_000)
    source: str = Field(max_length=200)
    """Where the clusters are from."""


class About(Strict):
    LATER = ("unknown", "teacher")

    schema_version: Literal[1, 2] = 1
    name: Name
    """The name of its folder."""
    title: str = Field(min_length=1, max_length=60)
    tokenizer: str = Field(max_length=64)
    """The engine's name of its kind: rqvae, letter, …"""
    summary: str = Field(max_length=2_000)
    paper: str = Field(max_length=2_000)
    order: Order = 100
    dataset: str
    fingerprint: Sha256
    num_items: int = Field(ge=1)
    shape: CodeShape
    policy: str = Field(max_length=64)
    """What was done about items with the same codes: append, needed, sinkhorn or keep."""
    codebooks: int | None = Field(default=None, ge=1, le=2_000_000)
    """Columns of codebooks.npy."""
    latents: int | None = Field(default=None, ge=1, le=2_000_000)
    """Columns of latents.npy."""
    plane: Plane | None = None
    codebooks_map: Projection | None = None
    """How codebooks_map.parquet was made, where there is one."""
    latents_map: Projection | None = None
    """How latents_map.parquet was made, where there is one."""
    unknown: float | None = Field(default=None, ge=0, le=1)
    """Share of the catalogue's words that its text encoder does not know, where it reads words by one (engine/text)."""
    teacher: Teacher | None = None
    figures: Figures
    recipe: dict[str, Any]
    command: str
    commit: str | None
    device: str
    seconds: float = Field(ge=0)
    versions: dict[str, str]
    started: str
    created: str
    created_by: str
    files: dict[str, File]

    @field_validator("files")
    @classmethod
    def _known(cls, files: dict[str, File]) -> dict[str, File]:
        unknown = sorted(set(files) - set(_FILES))
        if unknown:
            raise ValueError(f"file name {unknown[0]!r} is not one of identifiers")
        return files

    @model_serializer(mode="wrap")
    def _plain(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what format 1 does not know, where there is none of it."""
        new = ("codebooks_map", "latents_map")
        return {
            name: value for name, value in self._written(write).items() if name not in new or self.schema_version > 1
        }

    @model_validator(mode="after")
    def _complete(self) -> About:
        mapped = {CODEBOOKS_MAP: self.codebooks_map, LATENTS_MAP: self.latents_map}
        maps = {file for file, how in mapped.items() if how is not None}
        if (self.schema_version == 2) != bool(maps):
            raise ValueError("schema_version 2 and a map of codebooks or latents belong together")
        if (self.codebooks_map and self.codebooks is None) or (self.latents_map and self.latents is None):
            raise ValueError("there is a map of vectors that are not there")
        needed = {"identifiers.parquet"} | maps
        needed |= {"codebooks.npy"} if self.codebooks is not None else set()
        needed |= {"latents.npy"} if self.latents is not None else set()
        needed |= {"codes_map.parquet"} if self.plane is not None else set()
        if needed != set(self.files):
            raise ValueError(f"the files should be {', '.join(sorted(needed))}, not {', '.join(sorted(self.files))}")
        if self.plane is not None and len(self.plane.shares) != len(self.shape.own):
            raise ValueError("plane.shares has another number of levels")
        return self


class Tokenization:
    """One tokenizer's identifiers. All methods may be called from many threads at once.

    Attributes: name, the folder's name; about (`About`); digest, hex, changes with any content (for cache keys). What is read on
    first use raises BundleError where its file is damaged.
    """

    def __init__(self, folder: Folder, about: About, digest: str) -> None:
        self.folder, self.about, self.digest = folder, about, digest
        self.name, self.order = about.name, about.order
        files, items, sizes = about.files, about.num_items, about.shape.own
        self._identifiers = Lazy(lambda: read_identifiers(folder, files[IDENTIFIERS], items, about.shape))
        self._codebooks = Lazy(lambda: self._read("codebooks.npy", (len(sizes), max(sizes), about.codebooks or 1)))
        self._latents = Lazy(lambda: self._read("latents.npy", (items, about.latents or 1)))
        self._plane = Lazy(self._read_plane)
        self._codebooks_map = Lazy(lambda: self._read_codes(CODEBOOKS_MAP, {}) if about.codebooks_map else None)
        self._latents_map = Lazy(
            lambda: read_places(folder, LATENTS_MAP, files[LATENTS_MAP], items) if about.latents_map else None
        )

    @classmethod
    def open(cls, path: Path, catalogue: Catalogue) -> Tokenization:
        """Raises BundleError where about.json or a file it names is missing, of another size, or of another catalogue."""
        folder = Folder(path, f"identifiers/{path.name}")
        again = "make the identifiers again and export them"
        return cls(folder, *read_about(folder, ABOUT, About, SCHEMA_VERSION, catalogue, "tokenizer", again))

    def __repr__(self) -> str:
        return f"Tokenization({self.name!r}, {self.about.title!r})"

    def warm(self) -> None:
        """Reads the identifiers and all planes now."""
        _ = self.identifiers, self.plane, self.codebooks_map(), self.latents_map()

    def cannot(self, capability: Literal["codebooks_map", "latents_map", "neighbours"]) -> str | None:
        """None where it can show its codes, or what was quantised, on a map, or compare that. Else why not, in a sentence."""
        about = self.about
        if capability == "codebooks_map":
            if about.codebooks is None:
                return "Its codes have no vectors."
            return None if about.codebooks_map is not None else _OLD
        if about.latents is None:
            return "It quantises no vectors." if about.codebooks is None else _TOO_LARGE
        return None if capability == "neighbours" or about.latents_map is not None else _OLD

    @property
    def identifiers(self) -> Identifiers:
        """The identifiers as generators write them."""
        return self._identifiers.value()

    @functools.cached_property
    def learned(self) -> npt.NDArray[np.int32]:
        """int32 [items, own levels]: the codes that the tokenizer itself gave, without numbers that only count; −1 in trailing
        places. Items with the same row collide."""
        sizes = np.array(self.about.shape.own, np.int64)
        codes = self.identifiers.codes[:, : len(sizes)]
        tokenizer_codes = np.where(codes >= sizes, NONE, codes).astype(np.int32)
        tokenizer_codes.flags.writeable = False
        return tokenizer_codes

    @property
    def codebooks(self) -> Float32 | None:
        """float32 [own levels, codes, dim]; None where codes have no vectors."""
        return None if self.about.codebooks is None else self._codebooks.value()

    @property
    def latents(self) -> Float32 | None:
        """float32 [items, dim]: what was quantised; None where nothing was, or where it is too large to come along."""
        return None if self.about.latents is None else self._latents.value()

    @property
    def plane(self) -> pa.Table | None:
        """level int32 (from 0), code int32, x float32, y float32, cluster int32 (from 0); None where codes have no vectors."""
        return self._plane.value()

    def codebooks_map(self) -> pa.Table | None:
        """The codes of all levels on one plane: level int32 (from 0), code int32, x float32, y float32. None: see `cannot`."""
        return self._codebooks_map.value()

    def latents_map(self) -> pa.Table | None:
        """What was quantised on a plane: item int32 (each at most once), x float32, y float32. None: see `cannot`."""
        return self._latents_map.value()

    def neighbours(self, item: int, k: int) -> Neighbours:
        """The k items whose latents are nearest to the item's by Euclidean distance, which is how they are quantised; by exact
        comparison with all. Raises CapabilityError where there are no latents."""
        rows, reason = self.latents, self.cannot("neighbours")
        if rows is None or reason is not None:
            raise CapabilityError(reason or "It quantises no vectors.")
        return nearest(rows, item, k, "euclidean")

    def _read(self, file: str, shape: tuple[int, ...]) -> Float32:
        return read_matrix(self.folder, file, self.about.files[file], shape)

    def _read_plane(self) -> pa.Table | None:
        plane = self.about.plane
        if plane is None:
            return None
        return self._read_codes("codes_map.parquet", {"cluster": Column(pa.int32(), 0, plane.clusters - 1)})

    def _read_codes(self, file: str, further: dict[str, Column]) -> pa.Table:
        """Places of codes: every one at most once, and of a level that has it."""
        sizes = self.about.shape.own
        columns = {
            "level": Column(pa.int32(), 0, len(sizes) - 1),
            "code": Column(pa.int32(), 0, max(sizes) - 1),
            "x": Column(pa.float32()),
            "y": Column(pa.float32()),
            **further,
        }
        table = read_table(self.folder, file, columns, expected=self.about.files[file])
        levels, codes = table["level"].to_numpy(), table["code"].to_numpy()
        different = np.unique(np.stack([levels, codes]), axis=1)
        if (codes >= np.array(sizes)[levels]).any() or different.shape[1] != len(codes):
            raise self.folder.fault(file, "a code stands on its plane twice, or its level does not have it")
        return table
