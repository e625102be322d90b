"""manifest.json: what a bundle says of itself. Written by `engine.export`, believed by nobody until it is checked."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from engine.bundle.curve import TRAINING
from engine.data.ragged import LONGEST
from engine.text.tokenizer import TOLERABLE

SCHEMA_VERSION = 7
"""The newest that is read: 7 for models that add up item-to-item weights (6: not packed), 5 where graphs keep tensors in
weights.npy or index.npy, 4 for models that carry a graph of people, 3 for models that were carried to another catalogue or ask a
text encoder, 2 for others that write identifiers or read words, 1 for the rest."""
TOO_MANY = TOLERABLE
"""From this share of unknown words on, pages warn of a model."""
_FILE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\.(onnx|npy|npz|parquet)|tokenizer\.json")
NAME = r"^[a-z0-9][a-z0-9_-]{0,63}$"
"""Of bundles and of what lies beside them: a folder or a file, a word in addresses and on the command line."""
Name = Annotated[str, Field(pattern=NAME)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Order = Annotated[int, Field(ge=0, le=10_000)]
"""Where pages list it: smaller numbers first, equal ones by name."""


class Strict(BaseModel):
    """Nothing unknown, nothing coerced ("5" is not 5), no NaN: a field means one thing to every reader."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)
    LATER: ClassVar[tuple[str, ...]] = ()
    """Fields that came after the first files were written: stated where they say something, so that readers that are older, which
    know no such entries, read the rest, and an older file is written as it was."""

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        entries: dict[str, Any] = write(self)
        fields = type(self).model_fields
        return {
            name: value for name, value in entries.items() if name not in self.LATER or value != fields[name].default
        }


class File(Strict):
    sha256: Sha256
    bytes: int = Field(ge=0)


class Encoder(Strict):
    """history → query. Input `items`: int64 [batch, length], left-padded; output `query`: float32 [batch, dim], and where that
    is a sum (`Manifest.adds_parts`) output `parts`: float32 [batch, parts, dim], and where there are gates output `gates`:
    float32 [batch, gates], 0 to 1, the latest item's last. Where filters slide, output `matches`: float32 [batch, rows, filters],
    0 or more: the rows of 1 item each, oldest first, then those of 2, …, at last the one of all `Encoder.matches` latest items.

    The encoder of a generator answers with its memory instead, see `Generator`."""

    LATER = ("gates", "filters", "matches")

    dim: int = Field(ge=1, le=2_000_000)
    """Of the query; of a generator: the width of its hidden states."""
    max_length: int = Field(ge=1, le=LONGEST)
    """The encoder reads at most this many of the latest items; the runtime cuts longer histories."""
    min_history: int = Field(ge=0, le=1)
    """0 where the model can answer for somebody without any history."""
    gates: int | None = Field(default=None, ge=1, le=10_000)
    """How many of the latest items have a gate each, which says how far the item is let through; absent where none has."""
    filters: list[Annotated[list[float], Field(min_length=1, max_length=1_000)]] | None = Field(
        default=None, min_length=1, max_length=64
    )
    """What each filter weighs each of the latest items with, whatever the history: [filter][place], the latest item last; absent
    where there are none."""
    matches: int | None = Field(default=None, ge=1, le=100)
    """Over how many of the latest items filters slide, which match 1, 2, … of them in a row; absent where none do."""


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
    unit: Literal["items", "codes"] = "items"
    """What a position is. codes (generators alone): one code of an item, so that each item has `generator.levels` positions."""
    whole_items: bool = False
    """True (units of codes alone): a causal model's position sees all codes of its own item, those after it, too."""
    no_rollout: str | None = Field(default=None, min_length=1, max_length=1_000)
    """Why rollout through the layers is not defined, in one sentence; absent where it is, with `masked_diagonal`, and in a
    model that reads words."""

    @model_serializer(mode="wrap")
    def _plain(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what is of codes alone where positions are items: readers of format 1 know no such fields."""
        new = ("unit", "whole_items") if self.unit == "items" else ()
        unsaid = ("no_rollout",) if self.no_rollout is None else ()
        return {name: value for name, value in write(self).items() if name not in (*new, *unsaid)}


class Generator(Strict):
    """A model that writes identifiers: encoder.onnx reads the history once, decoder.onnx writes one code after the other.

    encoder.onnx: items → `memory_keys`, `memory_values` float32 [batch, layers, heads, memory, head_dim], and `memory_mask`
    float32 [batch, memory], 0 or −inf, added to logits. decoder.onnx: see `engine/runtime/decoder.py`. The identifiers of all
    items stand in identifiers.parquet; codes become tokens as in `engine.data.identifiers.Identifiers.tokens`.
    """

    kind: Literal["encoder-decoder", "decoder-only"]
    """What the memory is: keys and values for cross-attention, or those of the prefix for self-attention. For people; both are
    asked in the same way."""
    levels: int = Field(ge=1, le=64)
    """Codes of an identifier, at most."""
    sizes: list[int] = Field(min_length=1, max_length=64)
    """Codes of each level, used or not."""
    names: list[str] = Field(default=[], max_length=64)
    """What each level is called; empty where there is nothing better than its number."""
    shared: bool
    """True: a code means the same at every level, and all levels draw from one vocabulary."""
    ends: bool
    """True: some identifiers are shorter than others, and the last token of the vocabulary ends them."""
    vocabulary: int = Field(ge=1, le=1 << 24)
    """Tokens that can be written; the number `vocabulary` itself is what the decoder reads first."""
    layers: int = Field(ge=1, le=1_000)
    """Of the decoder."""
    heads: int = Field(ge=1, le=1_000)
    head_dim: int = Field(ge=1, le=65_536)
    beam: int = Field(default=20, ge=1, le=1_024)
    """How many prefixes are kept at a step, where a question asks for no more items than that."""
    cross_attention: bool = False
    """True: decoder.onnx has the output `cross_attention`, and the memory has `lead` + `levels` places for each item read."""
    lead: int = Field(default=0, ge=0, le=8)
    """Places before each item's codes in the memory."""
    latents: int | None = Field(default=None, ge=1, le=2_000_000)
    """Columns of latents.npy (what was quantised, one row per item), where the bundle carries it."""
    codebooks: int | None = Field(default=None, ge=1, le=2_000_000)
    """Columns of codebooks.npy (the vector of each code), where the bundle carries it."""

    @property
    def cell(self) -> int:
        """Numbers that one token leaves in the keys, and again in the values."""
        return self.layers * self.heads * self.head_dim

    @model_validator(mode="after")
    def _adds_up(self) -> Generator:
        if len(self.sizes) != self.levels or len(self.names) not in (0, self.levels):
            raise ValueError(f"{len(self.sizes)} sizes and {len(self.names)} names for {self.levels} levels")
        if min(self.sizes) < 1 or (self.shared and len(set(self.sizes)) > 1):
            raise ValueError("every level has at least one code, and levels that share a vocabulary have one size")
        vocabulary = (self.sizes[0] if self.shared else sum(self.sizes)) + int(self.ends)
        if self.vocabulary != vocabulary:
            raise ValueError(f"vocabulary {self.vocabulary} where the levels come to {vocabulary}")
        if self.cell > 1 << 22:
            raise ValueError(f"layers × heads × head_dim is {self.cell:,}, more than {1 << 22:,}")
        return self


class Text(Strict):
    """A model that knows items by their words: item_encoder.onnx, tokenizer.json, words.parquet, see `engine/runtime/text.py`.

    An item is the tokens of its attributes, each the key's and then the value's; [CLS] is put in front by the graphs.
    """

    LATER = ("unknown",)

    fields: list[str] = Field(min_length=1, max_length=100)
    """The keys of the attributes, in the order in which they are read."""
    limit: int = Field(ge=1, le=100_000)
    """Tokens read of one attribute, its key among them."""
    max_tokens: int = Field(ge=2, le=1 << 20)
    """Tokens read of a history, and of an item, [CLS] among them."""
    longest: int = Field(ge=1, le=1 << 20)
    """Tokens of the item that has most; the last size of the output `words` of attention.onnx."""
    vocabulary: int = Field(ge=1, le=1 << 24)
    unknown: float | None = Field(default=None, ge=0, le=1)
    """Share of the catalogue's words that the tokenizer spells letter by letter, or has no token for (engine/text)."""


class Sentence(Strict):
    """A model that knows items by vectors of their words, made by a text encoder that lies outside the bundle (docs/words.md).

    The row of an item is the vector of its text (engine/text) less centre.npy, float32 [1, dim], at unit length; zeros where
    it has no words.
    """

    LATER = ("unknown",)

    encoder: Name
    """The name of the encoder's folder."""
    title: str = Field(min_length=1, max_length=200)
    digest: Sha256
    """Of the encoder: vectors of another one cannot be compared."""
    fields: list[str] = Field(min_length=1, max_length=100)
    """Columns that make up the text, in order; "title:16" where another number of words is kept than usual."""
    without: int = Field(ge=0)
    """Items of the catalogue that have no words."""
    unknown: float | None = Field(default=None, ge=0, le=1)
    """Share of the catalogue's words that the encoder does not know, as `Text.unknown`."""


class PeopleGraph(Strict):
    """A model that learnt along the graph of people and items, with that graph: people.parquet has a row for each of them,
    `items` list<int32>, what they have in training, each item once and ascending. See `engine/runtime/graph_paths.py`."""

    LATER = ("dim", "layer_dim")

    layers: int = Field(ge=1, le=16)
    """How often vectors are propagated."""
    people: int = Field(ge=1, le=50_000_000)
    edges: int = Field(ge=1, le=100_000_000)
    dim: int | None = Field(default=None, ge=1, le=65_536)
    """Columns of embeddings.npy, float32 [items + people, dim], the vectors before any layer; absent where a score is no sum over
    paths."""
    layer_dim: int | None = Field(default=None, ge=1, le=65_536)
    """Columns of a query and of a row of index.npy that are one layer's, where layers 0 … `layers` stand side by side and a score
    is the sum over them; absent where it is not, and in bundles of before."""


class ItemToItem(Strict):
    """A model whose score is a sum of what each item of the history gives: item_to_item.npz in place of encoder.onnx. See
    `engine/runtime/item_to_item.py`."""

    entries: int = Field(ge=0, le=2_000_000_000)
    """Weights that are not zero, over all pairs of items."""
    levels: Literal[0, 256] = 256
    """Different weights, of which a byte says which; 0: each is a half float."""


ZERO_SHOT = " (zero-shot)"
"""What the title of a model ends in that was carried to another catalogue, unless it was given another one."""


class ZeroShot(Strict):
    """The model was trained on another catalogue, and meets this one without having learned anything from it."""

    bundle: Name
    """The bundle that it was made from."""
    digest: Sha256
    """Of that bundle."""
    dataset: str
    """What that was trained on: its name, its name for people, its fingerprint."""
    title: str = Field(max_length=300)
    fingerprint: Sha256
    words: Sha256
    """Digest of this catalogue's words as the model reads them."""
    cut: int = Field(ge=0)
    """Items that have more words than the model's graphs take; their last ones are not read."""


class Index(Strict):
    LATER = ("centred", "parts")

    kind: Literal["dense", "identity", "generated"]
    """dense: score = query · row + bias. identity: the query is the score vector, plus bias. generated: there is none; the
    score of an item is the log-probability of its identifier."""
    geometry: Literal["cosine", "euclidean", "none"]
    """How nearness of two item rows is meant by the model; "none": rows carry no meaning to compare. Of a generator: of its
    latents."""
    centred: bool | None = None
    """True: rows have one large direction in common, so nearness is that of rows less their mean; scores are of the rows as they
    are. Absent: nearness is of the rows as they are."""
    parts: dict[Annotated[str, Field(min_length=1, max_length=100)], Annotated[int, Field(ge=1)]] = Field(
        default={}, max_length=64
    )
    """Of a dense index whose scores are sums over parts: what each is called, as in "the user’s taste", and how many columns of
    the query and of a row are its, in order: all of them where the query is a sum (`Manifest.adds_parts`). Absent where a score
    is one thing."""


class Capabilities(Strict):
    """What the model can do, and in a sentence a page can show, why it cannot do the rest."""

    LATER = ("reads_order",)

    attention: bool
    neighbours: bool
    map: bool
    unseen_items: bool
    trained_users: bool
    """True: the model has a vector per training user; in the app it works from the fold-in."""
    reads_order: bool = True
    """False: a history is a set, and no order of its items changes the answer. Stated only where it is False."""
    reasons: dict[str, str] = {}
    """For each capability that is False: why, in one sentence."""


class Training(Strict):
    LATER = ("improving", "fitted_on")

    recipe: dict[str, Any]
    """The resolved recipe: model and training settings."""
    command: str
    commit: str | None
    device: str
    seconds: float
    seed: int
    epochs: int
    best_epoch: int
    improving: bool | None = None
    """True: the last validation was the best. Bundles of before do not say; ask `Bundle.unsettled`, which also knows whether
    patience had run out."""
    fitted_on: Literal["training", "training and validation"] = "training"
    """The events that its parameters were learnt from; the second of a refit (`seqscope train --refit`), whose epochs were
    selected before. Stated only of a refit."""
    parameters: int
    versions: dict[str, str]
    started: str


SAMPLE = 2_000
"""Points of a map over which its trustworthiness is averaged where it has more."""


class Projection(Strict):
    """How map.parquet was made, and how far it can be trusted."""

    method: str
    parameters: dict[str, Any]
    trustworthiness: float
    """1 where the k nearest items of each one on the map are among its k nearest in the model's space, about .5 by chance: others
    cost the more, the further away they are there (Venna & Kaski 2001); k is `neighbours`."""
    neighbours: int


class Check(Strict):
    """What was compared before the bundle was put in place."""

    LATER = ("milliseconds",)

    histories: int
    lengths: list[int]
    max_abs_difference: float
    """ONNX against PyTorch: the largest difference of any score, relative to the largest score where that exceeds 1."""
    milliseconds: float | None = Field(default=None, ge=0)
    """Of processor time for a list of ten after one history, the median of some, on the machine that exported (engine/evaluation/
    tables.py). Bundles of before do not say."""


class Manifest(Strict):
    LATER = ("generator", "text", "sentence", "zero_shot", "graph", "item_to_item")

    schema_version: Literal[1, 2, 3, 4, 5, 6, 7] = 1
    name: Name
    """The name of its folder."""
    title: str = Field(min_length=1, max_length=60)
    family: str
    """One of the engine's model names: sasrec, bert4rec, attrec, lightgcn, ngcf, mult-vae, popularity, markov, …"""
    summary: str = Field(max_length=2_000)
    """Two sentences for the model's card."""
    paper: str = Field(max_length=2_000)
    """Where the model comes from."""
    order: Order = 100
    dataset: str
    fingerprint: Sha256
    num_items: int = Field(ge=1)
    encoder: Encoder
    attention: Attention | None
    generator: Generator | None = None
    """Where it writes identifiers; schema_version is at least 2 then."""
    text: Text | None = None
    """Where it knows items by their words; schema_version is at least 2 then."""
    sentence: Sentence | None = None
    """Where it knows items by vectors of their words; schema_version is at least 3 then."""
    zero_shot: ZeroShot | None = None
    """Where it was trained on another catalogue; schema_version is at least 3 then."""
    graph: PeopleGraph | None = None
    """Where it learnt along a graph and carries it; schema_version is at least 4 then."""
    item_to_item: ItemToItem | None = None
    """Where its scores are sums of weights between items; schema_version is at least 6 then."""
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
        return files

    @property
    def refitted(self) -> bool:
        """Whether it was fitted on this dataset's validation events, too, so that its figures stand beside those of other refits
        alone."""
        return self.training.fitted_on != TRAINING and self.zero_shot is None

    @property
    def unknown(self) -> float | None:
        """Share of the catalogue's words that the model does not know; None where it reads none, or does not say."""
        part = self.text or self.sentence
        return None if part is None else part.unknown

    @property
    def adds_parts(self) -> bool:
        """Whether each part of a score is as wide as the query and they add up to it: encoder.onnx then has an output `parts`."""
        return bool(self.index.parts) and sum(self.index.parts.values()) != self.encoder.dim

    @model_validator(mode="after")
    def _complete(self) -> Manifest:
        """The version, the kind of index and the files are those of one kind of model."""
        writes, reads = self.generator is not None, self.text is not None
        carried, asks = self.zero_shot is not None, self.sentence is not None
        sums = self.item_to_item is not None
        least = 6 if sums else 4 if self.graph is not None else 3 if carried or asks else 2 if writes or reads else 1
        other = 7 if sums else 5
        if self.schema_version not in (least, other):
            raise ValueError(
                f"schema_version is {self.schema_version}, but what is described belongs to {least} or {other}"
            )
        if sums and self.index.kind != "identity":
            raise ValueError("item_to_item belongs to an index of the kind identity")
        widths, dim = list(self.index.parts.values()), self.encoder.dim
        if widths and (self.index.kind != "dense" or (sum(widths) != dim and set(widths) != {dim})):
            raise ValueError(
                f"index.parts have {', '.join(map(str, widths))} columns, the query has {dim}; only a dense index has parts, and "
                "their columns add up, or each has all of them"
            )
        if "weights.npy" in self.files and self.schema_version < 5:
            raise ValueError("weights.npy belongs to schema_version 5")
        if self.graph is not None and (writes or reads or asks or self.index.kind != "dense"):
            raise ValueError("a graph belongs to an index of the kind dense, without a generator, a text or a sentence")
        width = self.graph.layer_dim if self.graph is not None else None
        if self.graph is not None and width is not None and self.encoder.dim != width * (self.graph.layers + 1):
            raise ValueError(
                f"{self.graph.layers + 1} layers of {width} side by side are no query of {self.encoder.dim} numbers"
            )
        if carried and not reads:
            raise ValueError("only a model with a text can meet a catalogue without training")
        if asks and (writes or reads or self.index.kind != "dense"):
            raise ValueError("a sentence belongs to an index of the kind dense, without a generator or a text")
        if reads and (writes or self.index.kind != "dense"):
            raise ValueError("a text belongs to an index of the kind dense, without a generator")
        if writes != (self.index.kind == "generated"):
            raise ValueError(
                "an index of the kind generated and a generator belong together; "
                f"here are {self.index.kind} and {'one' if writes else 'none'}"
            )
        needed = [] if sums else ["encoder.onnx"]
        needed += ["decoder.onnx", "identifiers.parquet"] if writes else ["index.npy"]
        needed += ["item_encoder.onnx", "tokenizer.json", "words.parquet"] * reads + ["centre.npy"] * asks
        if self.schema_version == 7:
            needed += ["item_to_item.npz"]
        elif sums:
            needed += ["starts.npy", "entries.npy", "entry_weights.npy"]
            needed += ["position_weights.npy"] * self.capabilities.reads_order
        if self.graph is not None:
            needed += ["people.parquet"] + ["embeddings.npy"] * (self.graph.dim is not None)
        if self.generator is not None:
            needed += ["latents.npy"] * (self.generator.latents is not None)
            needed += ["codebooks.npy"] * (self.generator.codebooks is not None)
        for file in needed:
            if file not in self.files:
                raise ValueError(f"{file} is not listed")
        return self

    @model_validator(mode="after")
    def _agrees(self) -> Manifest:
        """What one part says, no other part denies: pages may rely on a capability without looking further."""
        can = self.capabilities
        comparable = self.index.kind == "dense" or (self.generator is not None and self.generator.latents is not None)
        for claim, basis, words in (
            (can.attention, self.attention is not None, "attention is described"),
            (can.attention, "attention.onnx" in self.files, "attention.onnx is listed"),
            (can.map, self.projection is not None, "a projection is described"),
            (can.map, "map.parquet" in self.files, "map.parquet is listed"),
            (can.unseen_items, self.text is not None or self.sentence is not None, "a text is described"),
            (can.neighbours, comparable and self.index.geometry != "none", "item rows can be compared"),
        ):
            if claim and not basis:
                raise ValueError(f"a capability is claimed, but it is not so that {words}")
        if self.index.kind == "identity" and self.encoder.dim != self.num_items:
            raise ValueError(
                f"an identity index needs encoder.dim = num_items, not {self.encoder.dim} and {self.num_items}"
            )
        for name, latest in (("gates", self.encoder.gates), ("matches", self.encoder.matches)):
            if latest is not None and latest > self.encoder.max_length:
                raise ValueError(f"encoder.{name} {latest} exceeds encoder.max_length {self.encoder.max_length}")
            if latest is not None and (self.generator is not None or self.item_to_item is not None):
                raise ValueError(f"encoder.{name} belong to an encoder that answers with a query")
        if self.encoder.filters is not None and len({len(weights) for weights in self.encoder.filters}) != 1:
            raise ValueError("encoder.filters weigh different numbers of items")
        if self.encoder.filters is not None and len(self.encoder.filters[0]) > self.encoder.max_length:
            raise ValueError(f"encoder.filters weigh more items than encoder.max_length {self.encoder.max_length}")
        if self.attention is not None and self.attention.window > self.encoder.max_length:
            raise ValueError(
                f"attention.window {self.attention.window} exceeds encoder.max_length {self.encoder.max_length}"
            )
        if self.attention is not None and self.attention.unit == "codes" and self.generator is None:
            raise ValueError("attention.unit is codes, but the model has no identifiers")
        if self.attention is not None and self.attention.unit == "items" and self.attention.whole_items:
            raise ValueError("attention.whole_items is said of positions that are items")
        return self
