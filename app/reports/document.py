"""report.json: what a report holds, with a version, a JSON Schema (docs/report.schema.json) and a seal over its content.

Every figure, table and sentence of a report is made from this document alone, so that a report can be drawn anew, and checked,
without the program's memory of how it was made. Texts are as the data has them: escape them where they are shown.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema

from engine.errors import SeqscopeError
from engine.runtime import judge, rank_move

SCHEMA_VERSION = 2
"""The newest that is read. 1: `Ranked.share` is a softmax whatever the scores are, and `Ranked.strength` what bars show."""
MAX_BYTES = 64 << 20
MAX_DEPTH = 32
Part = Literal["history", "lists", "what-ifs", "effects", "overlap", "attention", "codes", "graph", "map", "metrics"]
PARTS: tuple[Part, ...] = get_args(Part)

ItemId = Annotated[str, Field(max_length=10_000)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
Rank = Annotated[float, Field(ge=1)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Strict(BaseModel):
    """Nothing unknown, nothing coerced, no NaN: a field means one thing to every reader."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, strict=True, use_attribute_docstrings=True
    )
    LATER: ClassVar[tuple[str, ...]] = ()
    """Fields that came after the first reports were made: written where they say something, so that an older report is written
    as it was, and its seal still fits."""

    @model_serializer(mode="wrap")
    def _as_it_was(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        entries: dict[str, Any] = write(self)
        fields = type(self).model_fields
        return {
            name: value for name, value in entries.items() if name not in self.LATER or value != fields[name].default
        }

    def unsaid(self) -> dict[str, Any]:
        """The fields that came later and say nothing here."""
        fields = type(self).model_fields
        return {name: fields[name].default for name in self.LATER if getattr(self, name) == fields[name].default}


class Item(Strict):
    item_id: ItemId
    title: str
    """As people see it, not escaped."""


# --- what was asked for


class Asked(Strict):
    """What a report is to hold: enough to make it again."""

    parts: list[Part] = list(PARTS)
    history: list[ItemId] | None = Field(default=[], max_length=200)
    """Oldest first; None in a report that was made without its history, whose lists cannot be asked for again."""
    edited: list[ItemId] | None = Field(default=None, max_length=200)
    """The edited history of the what-if."""
    models: list[Name] | None = None
    """Names; None: all."""
    k: int = Field(default=10, ge=1, le=100)
    """Length of the lists."""
    item: ItemId | None = None
    """The item whose score is explained; None: the first one of the first list."""
    attention: list[Name] | None = None
    """Models to look into; None: all those shown that attend."""
    view: Literal["mean", "rollout"] = "mean"
    """Of attention: the mean over the heads of the last layer, or rollout through all layers."""
    map: Name | None = None
    """The model whose map is drawn; None: the first one shown that has one."""
    codes: list[Name] | None = None
    """Tokenizers; None: all."""
    slow: bool = False
    """Effects of models that take long for them are wanted, too."""
    protocol: str | None = Field(default=None, max_length=100)
    """Of the metrics; None: full ranking, or the first there is."""
    rows: bool = False
    """Rows of the data itself: categories and titles of the items on the map, the name of the person whose history this is."""
    user: str | None = Field(default=None, max_length=10_000)
    """The person whose history this is; kept where rows are."""
    title: str = Field(default="", max_length=200)
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    """Of the bootstrap and of the sample of points."""


# --- where it comes from


class Program(Strict):
    version: str
    python: str
    platform: str
    packages: dict[str, str]


class Dataset(Strict):
    LATER = ("repeats", "measured")
    name: str
    title: str
    fingerprint: Sha256
    """sha256 over item ids, events and roles."""
    items: int
    users: int
    events: int
    simulated: bool
    source: str
    licence: str
    split: dict[str, Any]
    repeats: Literal["count", "first"] | None = None
    """Whether items that a user comes back to count; None: not asked when the dataset was made."""
    measured: dict[str, float] = {}
    """Shares of events and of held-out items that repeat an earlier item of the same user, where they were measured."""


class Model(Strict):
    LATER = ("improving",)
    name: Name
    title: str
    family: str
    digest: Sha256
    """Of the bundle: changes with any content of it."""
    provider: str
    """ONNX Runtime's execution provider that answered."""
    colour: str = Field(pattern=r"^#[0-9a-f]{6}$")
    sign: str = Field(max_length=2)
    marker: str = Field(pattern=r"^[a-z-]{1,40}$")
    dash: str = Field(pattern=r"^[a-z]{1,40}$")
    seed: int
    commit: str | None
    command: str
    device: str
    created: str
    improving: bool = False
    """Validation was still improving when training stopped."""


# --- what was found


class Ranked(Item):
    place: int
    score: float
    """In the model's own units: comparable within this list alone."""
    share: float | None
    """The probability that it comes next, among all items that could be recommended; of a model that writes codes, that of the
    item's. None where the model gives none."""
    strength: float | None = Field(default=None, exclude_if=lambda value: value is None)
    """Of format 1 alone: the score within the model, from an item in the middle of the catalogue (0) to its best one (1)."""
    ties: list[ItemId] = []
    """Items that the model cannot tell apart from this one."""


class Listing(Strict):
    model: Name
    cannot: str | None = None
    """Why there is no list."""
    read: int = 0
    """The latest so many events that the model reads."""
    items: list[Ranked] = []
    target_rank: float | None = None
    """The rank of what truly came next, where that is known and was wanted."""


class Moved(Item):
    before: int | None
    """Place in the list of the history as it is; None: not there."""
    after: int | None
    score_before: float | None
    score_after: float | None
    change: Literal["up", "down", "same", "new", "dropped"]


class Moves(Strict):
    model: Name
    cannot: str | None = None
    items: list[Moved] = []


class WhatIf(Strict):
    name: Literal["edited", "without-last", "swapped", "nothing"]
    words: str
    history: list[ItemId]
    models: list[Moves]


class Effect(Strict):
    LATER: ClassVar[tuple[str, ...]] = ("log_probability",)

    model: Name
    cannot: str | None = None
    rank: Rank | None = None
    effect: list[float | None] = []
    """Score with each event minus the score without it, in the model's units; None where there is nothing to ask."""
    rank_without: list[Rank | None] = []
    """Among the same candidates as `rank`: all items but those of the history, and the item itself."""
    log_probability: list[float | None] = []
    """With each event minus without it: natural logarithms of the item's probability among the candidates, of a model that writes
    codes of the probability of its codes. Empty where the model gives none, and in reports of before."""

    @property
    def moves(self) -> list[float | None]:
        """Powers of ten that the rank would grow by without each event (`rank_move`); above 0 the event speaks for the item."""
        if self.rank is None:
            return []
        found = rank_move(self.rank, [math.nan if one is None else one for one in self.rank_without]).tolist()
        return [None if math.isnan(one) else one for one in found]


class Effects(Item):
    """Where one item would stand without each event of the history."""

    models: list[Effect]


class Overlap(Strict):
    models: list[Name]
    """Those that answered; rows and columns of the matrices."""
    shared: list[list[int]]
    jaccard: list[list[float]]
    rbo: list[list[float]]
    rbo_p: float
    rbo_weight: float
    """The share of RBO's weight on the places that there are."""
    different: int
    """Items in all lists together."""
    by_all: int
    by_one: int


class Position(Strict):
    place: int | None
    """In the history, from 1; None: the position of the next item."""
    item_id: ItemId | None


class Written(Item):
    """What a model that writes codes looked at in the history while it wrote those of one item."""

    positions: list[Position]
    weights: list[float]
    """Per position; means over codes, heads and layers. What is missing from 1 went to codes already written."""


class Attention(Strict):
    LATER: ClassVar[tuple[str, ...]] = ("written",)

    model: Name
    cannot: str | None = None
    view: Literal["mean", "rollout"] = "mean"
    layers: int = 0
    heads: int = 0
    causal: bool = False
    pooled: bool = False
    grouped: bool = False
    """True: the model reads codes; they are taken together by item."""
    positions: list[Position] = []
    last: list[float] = []
    """What the last position looked at, or all where they are pooled, per position: in a model that writes codes with attention
    to the history, not what the prediction looked at, which is `written`."""
    written: Written | None = None
    """In place of `last`, where the codes that are written look at the history; None in reports of before."""
    matrix: list[list[float | None]] = []
    """Rows look, columns are looked at; None where looking is impossible. The latest positions alone, `positions` has all."""

    @property
    def looked(self) -> tuple[list[Position], list[float]]:
        """(positions, weights): what the prediction looked at."""
        return (self.positions, self.last) if self.written is None else (self.written.positions, self.written.weights)


class Level(Strict):
    size: int
    used: int
    perplexity: float
    gini: float
    counts: list[int]
    """Items per code, the most used first."""


class Coded(Item):
    codes: list[int]
    shared_with: int
    """Other items with the same codes."""


class Codes(Strict):
    tokenizer: Name
    title: str
    digest: Sha256
    kind: str
    levels: list[Level]
    excess: float
    """(items − different identifiers) / items, as the tokenizer gave them."""
    sharing: float
    """Share of items whose identifier is another one's as well, as the tokenizer gave them."""
    excess_in_use: float
    sharing_in_use: float
    reconstruction: float | None
    items: list[Coded]
    """Of the history and the lists, each once."""


class PathEnd(Item):
    """Items that the people of a branch have, where paths history → item → people → item end."""

    people: int
    """How many have both."""
    weight: float
    """Of the walks through them."""
    adds: float | None
    """To the score of the item that is explained; None where a score is no sum over paths."""


class PathBranch(Item):
    """What comes of one item of the history. What it adds, and what its parts add, is None where a score is no sum over paths."""

    weight: float
    people: int
    """Who has it in training."""
    itself: float | None
    through_people: float | None
    """What the vectors of these people add."""
    ends: list[PathEnd]
    """The strongest ones, of the branches that matter most."""
    others: int
    """Further items that such paths reach."""
    others_add: float | None
    deeper: float | None
    """What longer paths add."""


class WithoutLayer(Item):
    ranks: list[Annotated[int, Field(ge=1)]]
    """With all layers, then without layer 0, 1, …"""


class Layers(Strict):
    adds: Annotated[list[Annotated[list[float], Field(min_length=1)]], Field(min_length=1)]
    """To the score of the item that is explained. Rows are layers of the history; columns layers of the item, or one column where
    each layer meets the same layer of the item alone."""
    items: list[WithoutLayer]
    """The first of the list, with all layers."""


class Walks(Strict):
    model: Name
    cannot: str | None = None
    branches: list[PathBranch] = []
    """Those that matter most first; empty in a report without its history."""
    layers: Layers | None = None
    """None where a bundle does not tell them apart."""


class Graph(Item):
    """The paths through people and items that lead from the history to one item, of models that carry such a graph."""

    models: list[Walks]


class Mark(Item):
    place: int
    x: float
    y: float


class Map(Strict):
    LATER: ClassVar[tuple[str, ...]] = ("latents",)

    model: Name
    cannot: str | None = None
    method: str = ""
    trustworthiness: float = 0.0
    neighbours: int = 0
    total: int = 0
    """Items on the map; where more than are drawn, a sample is."""
    x: list[float] = []
    y: list[float] = []
    groups: list[str] = []
    """Categories, where rows of the data were wanted; else empty."""
    group: list[int] = []
    """Per point, a place in `groups`."""
    titles: list[str] = []
    """Per point, where rows of the data were wanted."""
    column: str = ""
    """What the groups are of."""
    history: list[Mark] = []
    following: list[Mark] = []
    latents: bool = False
    """True: the model writes codes and has no vectors of items; drawn are those that its tokenizer made the codes of."""


class Estimate(Strict):
    LATER = ("users",)
    model: Name
    users: bool = False
    """True: with the model's vectors of training users, in place of what it makes of the history alone."""
    metric: str
    mean: float
    low: float
    high: float
    people: int
    mark: Literal["best", "level", ""]
    """level: its difference to the best could be chance."""
    p: float | None
    """Of the paired bootstrap against the best, after Holm; None for the best itself."""


class Beyond(Strict):
    LATER = ("users", "others")
    model: Name
    users: bool = False
    """As `Estimate.users`; a row of the metrics is a model, with these vectors or without."""
    coverage: float | None
    gini: float | None
    novelty: float | None
    others: dict[str, float | None] = {}
    """Metrics that an installation adds to these three, by their names in lowercase."""
    note: str

    def value(self, field: str) -> float | None:
        """Of a metric by its name in lowercase; None where the report does not have it."""
        value: float | None = getattr(self, field) if field in type(self).model_fields else self.others.get(field)
        return value


class Slice(Strict):
    """A metric over some of the people."""

    words: str
    """Whose held-out item …"""
    model: Name
    users: bool
    """As `Estimate.users`."""
    metric: str
    mean: float
    low: float
    high: float
    people: int


class Metrics(Strict):
    LATER = ("beams", "repeats", "held_out")

    protocol: str
    words: str
    """What the protocol does."""
    k: int
    people: int
    left_out: int
    """People that not every model was evaluated on."""
    samples: int
    seed: int
    estimates: list[Estimate]
    beyond: list[Beyond]
    absent: list[Name]
    """Models that were not evaluated so."""
    held_out: list[str] = []
    """What has to be known of the held-out items before any verdict, in sentences: ties, repeats, cancellations."""
    beams: dict[Name, Annotated[int, Field(ge=1)]] = {}
    """Models whose ranks come from a beam, and its width; such a model has no estimates where k is more than that."""
    repeats: list[Slice] = []
    """Where repeats count: apart for held-out items that repeat one of the history, and for new ones."""

    @property
    def rows(self) -> list[tuple[str, bool]]:
        """(model, users) of every row."""
        return [(one.model, one.users) for one in self.beyond]

    def cannot(self, model: str) -> str | None:
        """Why a row of the model is empty, such as "beam of 20"."""
        return judge.beyond_beam(self.k, self.beams.get(model))


class History(Strict):
    items: list[Item]
    edited: list[Item] | None = None
    person: str | None = None
    target: Item | None = None
    """What truly came next."""


class Report(Strict):
    """The document. A part that was not wanted is None."""

    LATER = ("graph",)

    format: Literal["seqscope-report"] = "seqscope-report"
    schema_version: Literal[1, 2] = 2
    created: str
    """UTC, ISO 8601."""
    address: str | None
    """The page that shows the same, where there is one."""
    program: Program
    dataset: Dataset
    asked: Asked
    models: list[Model]
    history: History | None = None
    lists: list[Listing] | None = None
    what_ifs: list[WhatIf] | None = None
    effects: Effects | None = None
    overlap: Overlap | None = None
    attention: list[Attention] | None = None
    codes: list[Codes] | None = None
    graph: Graph | None = None
    map: Map | None = None
    metrics: Metrics | None = None
    notes: list[str] = []
    """What has to be known to read it."""
    seal: str = ""
    """sha256 of the document without the seal: an accident or a careless hand shows, a forger can make it anew."""

    @model_validator(mode="after")
    def _adds_up(self) -> Report:
        """No part names a model that is not told of, and what belongs together is of one length: readers rely on it."""
        _moment(self.created)
        for one in self.lists or []:
            if any((item.strength is None) != (self.schema_version == 2) for item in one.items):
                raise ValueError("strength belongs to lists of format 1, and to no others")
        known = {one.name for one in self.models}
        _known("lists", known, [one.model for one in self.lists or []])
        _known("attention", known, [one.model for one in self.attention or []])
        for edit in self.what_ifs or []:
            _known("what_ifs", known, [one.model for one in edit.models])
        if self.effects is not None:
            _known("effects", known, [one.model for one in self.effects.models])
            lengths = {len(numbers) for one in self.effects.models for numbers in (one.effect, one.rank_without)} - {0}
            lengths |= {len(one.log_probability) for one in self.effects.models} - {0}
            if len(lengths) > 1 or any(len(one.effect) != len(one.rank_without) for one in self.effects.models):
                raise ValueError("effects are of different lengths")
            if self.asked.history is not None and lengths - {len(self.asked.history)}:
                raise ValueError("effects are of another length than the history")
            if any(one.effect and one.rank is None for one in self.effects.models):
                raise ValueError("effects without a rank")
        if self.overlap is not None:
            _known("overlap", known, self.overlap.models)
            for matrix in (self.overlap.shared, self.overlap.jaccard, self.overlap.rbo):
                _square("overlap", matrix, len(self.overlap.models))
        for seen in self.attention or []:
            if len(seen.last) != len(seen.positions) or len(seen.matrix) > len(seen.positions):
                raise ValueError("attention has more or fewer weights than positions")
            if seen.written is not None and len(seen.written.weights) != len(seen.written.positions):
                raise ValueError("attention has more or fewer weights than positions")
            _square("attention", seen.matrix, len(seen.matrix))
        if self.graph is not None:
            _known("graph", known, [one.model for one in self.graph.models])
            for layers in (one.layers for one in self.graph.models if one.layers is not None):
                if any(len(row) not in (1, len(layers.adds)) or len(row) != len(layers.adds[0]) for row in layers.adds):
                    raise ValueError("graph has layers that do not fit each other")
                if any(len(one.ranks) != len(layers.adds) + 1 for one in layers.items):
                    raise ValueError("graph has more or fewer ranks than layers")
        if self.map is not None:
            _known("map", known, [self.map.model])
            size = len(self.map.x)
            if len(self.map.y) != size or any(len(one) not in (0, size) for one in (self.map.group, self.map.titles)):
                raise ValueError("map has lists of different lengths")
            if any(not 0 <= at < len(self.map.groups) for at in self.map.group):
                raise ValueError("map has a group without a name")
        if self.metrics is not None:
            _known("metrics", known, [one.model for one in self.metrics.estimates])
            rows = [one.model for one in self.metrics.beyond]
            _known("metrics", known, [*rows, *self.metrics.absent, *self.metrics.beams])
            kinds = {one.metric for one in self.metrics.estimates}
            cells = {(one.model, one.users, one.metric) for one in self.metrics.estimates}
            told = [row for row in self.metrics.rows if self.metrics.cannot(row[0]) is None]
            if cells != {(*row, kind) for row in told for kind in kinds}:
                raise ValueError("metrics lack a model or a metric")
            if any((one.model, one.users) not in self.metrics.rows for one in self.metrics.repeats):
                raise ValueError("metrics tell repeats of a model that they do not have")
        return self

    @property
    def title(self) -> str:
        return self.asked.title or f"{self.dataset.title}: what comes next?"

    def model(self, name: str) -> Model:
        return next(one for one in self.models if one.name == name)


def _moment(created: str) -> None:
    try:
        aware = datetime.datetime.fromisoformat(created).tzinfo is not None
    except ValueError:
        aware = False
    if not aware:
        raise ValueError("created is no time with its zone")


def _known(part: str, known: set[str], named: Sequence[str]) -> None:
    unknown = next((name for name in named if name not in known), None)
    if unknown is not None:
        raise ValueError(f"{part} names the model {unknown}, which is not among the models")


def _square(part: str, matrix: Sequence[Sequence[object]], size: int) -> None:
    if len(matrix) != size or any(len(row) != size for row in matrix):
        raise ValueError(f"{part} has a matrix that is not {size} by {size}")


def seal(report: Report) -> str:
    """What `Report.seal` must be."""
    plain = report.model_dump(mode="json", exclude={"seal"})
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def sealed(report: Report) -> Report:
    return report.model_copy(update={"seal": seal(report)})


def write(report: Report) -> bytes:
    """report.json."""
    return (json.dumps(report.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n").encode()


def read(content: bytes, name: str = "the file") -> Report:
    """A report.json that came from anywhere. Raises SeqscopeError with one message; does not look at the seal."""
    if len(content) > MAX_BYTES:
        raise SeqscopeError(f"{name} has {len(content):,} bytes, more than the {MAX_BYTES:,} that a report may have.")
    try:
        raw = json.loads(content.decode("utf-8-sig"), parse_constant=_refused)
        _checked(raw)
    except RecursionError:
        raise SeqscopeError(f"{name} is no report: it is nested deeper than {MAX_DEPTH} levels.") from None
    except ValueError as error:
        raise SeqscopeError(f"{name} is no report: it is not valid JSON ({error}).") from None
    if not isinstance(raw, dict) or raw.get("format") != "seqscope-report":
        raise SeqscopeError(f"{name} is no report of Seqscope: export one as JSON from the page Report.")
    version = raw.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise SeqscopeError(
            f"{name} was made by a newer Seqscope (report format {version}; this one reads {SCHEMA_VERSION}). Update this one."
        )
    try:
        return Report.model_validate_json(json.dumps(raw))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        more = f", and {error.error_count() - 1} more" if error.error_count() > 1 else ""
        raise SeqscopeError(f"{name} is a damaged report: {where}: {first['msg']}{more}. Export it again.") from None


def load(path: Path) -> Report:
    """`read` of a file."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SeqscopeError(f"{path} is too large for a report ({path.stat().st_size:,} bytes).")
        return read(path.read_bytes(), str(path))
    except OSError as error:
        raise SeqscopeError(f"{path} cannot be read ({error.strerror}).") from None


def schema() -> str:
    """The JSON Schema of report.json (docs/report.schema.json)."""
    found = Report.model_json_schema(mode="serialization", schema_generator=_Schema)
    for part, later in [(found, Report.LATER), *((found["$defs"][one.__name__], one.LATER) for one in _parts())]:
        if later:
            part["required"] = [field for field in part["required"] if field not in later]
    found = {"$schema": "https://json-schema.org/draft/2020-12/schema", **found, "title": "A report of Seqscope"}
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


class _Schema(GenerateJsonSchema):
    """`Strict` writes what its fields say; without this, its serializer would hide them."""

    def ser_schema(self, schema: Any) -> None:
        return None


def _parts() -> list[type[Strict]]:
    return [one for one in (*Strict.__subclasses__(), *Item.__subclasses__()) if one is not Report]


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def _checked(value: Any, level: int = 1) -> None:
    """Not too deep, and no text that could not be written again (a lone surrogate parses)."""
    if level > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, dict):
        for key, inner in value.items():
            key.encode("utf-8")
            _checked(inner, level + 1)
    elif isinstance(value, list):
        for inner in value:
            _checked(inner, level + 1)
