"""report.json: what a report holds, with a version, a JSON Schema (docs/report.schema.json) and a seal over its content.

Every figure, table and sentence of a report is made from this document alone, so that a report can be drawn anew, and checked,
without the program's memory of how it was made. Texts are as the data has them: escape them where they are shown. What a part
holds is declared with the part (app/reports/parts).
"""

from __future__ import annotations

import ast
import datetime
import functools
import hashlib
import inspect
import json
import textwrap
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field, ValidationError, create_model, model_validator
from pydantic.json_schema import GenerateJsonSchema

from app.limits import DEFAULT_K, MAX_HISTORY, MAX_K
from app.reports.fields import ItemId, Name, ReportModel, Sha256, SummaryLine
from app.reports.part import Part as ReportPart
from app.reports.parts import PARTS as _PARTS
from app.styles import Style
from app.text import clean, slug
from engine.bundle.errors import complaints
from engine.bundle.manifest import ZERO_SHOT
from engine.errors import SeqscopeError
from engine.files import expect_file
from engine.machine import without_collector
from engine.runtime import NOT_SETTLED, STILL_IMPROVING

SCHEMA_VERSION = 2
"""The newest that is read. 1: `Ranked.share` is a softmax whatever the scores are, and `Ranked.strength` what bars show."""
MAX_BYTES = 64 << 20
MAX_DEPTH = 32
_ALONE = threading.Lock()
PARTS: tuple[str, ...] = tuple(_PARTS)
_ORIGINAL = {"history", "lists", "what_ifs", "effects", "overlap", "attention", "codes", "map", "metrics"}
"""The parts of the first reports, written even where they say nothing; later ones are not, so that old seals still fit."""
if TYPE_CHECKING:
    Part = str
else:
    Part = Literal[PARTS]


class Asked(ReportModel):
    """What a report is to hold: enough to make it again."""

    parts: list[Part] = Field(default=list(PARTS))
    history: list[ItemId] | None = Field(default=[], max_length=MAX_HISTORY)
    """Oldest first; None in a report that was made without its history, whose lists cannot be asked for again."""
    edited: list[ItemId] | None = Field(default=None, max_length=MAX_HISTORY)
    """The edited history of the what-if."""
    models: list[Name] | None = None
    """Names; None: all."""
    k: int = Field(default=DEFAULT_K, ge=1, le=MAX_K)
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


class Program(ReportModel):
    version: str
    python: str
    platform: str
    packages: dict[str, str]


class Dataset(ReportModel):
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


class Model(ReportModel):
    LATER = ("improving", "refit", "unsettled")
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
    refit: bool = False
    """Fitted on training and validation events, so that its figures stand under protocols of refits alone."""
    unsettled: bool = False
    """Training stopped before validation had settled, though its last validation was not its best."""

    @property
    def zero_shot(self) -> bool:
        """It was not trained on the dataset of the report, as its title says."""
        return self.title.endswith(ZERO_SHOT)

    @property
    def early(self) -> str | None:
        """What has to be said of a training that ended before validation had settled."""
        return STILL_IMPROVING if self.improving else NOT_SETTLED if self.unsettled else None

    @property
    def style(self) -> Style:
        return Style(self.colour, self.marker, self.sign, self.dash)


class _Document(ReportModel):
    """The document. A part that was not wanted is None."""

    LATER = ("summary", *(part.field for part in _PARTS.values() if part.field not in _ORIGINAL))

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
    summary: list[SummaryLine] = []
    """What it opens with (app/reports/summary.py); empty in reports of before."""

    @model_validator(mode="after")
    def _adds_up(self) -> Any:
        """No part names a model that is not told of, and what belongs together is of one length: readers rely on it."""
        try:
            aware = datetime.datetime.fromisoformat(self.created).tzinfo is not None
        except ValueError:
            aware = False
        if not aware:
            raise ValueError("created is no time with its zone")
        known = {model.name for model in self.models}
        for part, content in self.content():
            unknown = next((name for name in part.named(content) if name not in known), None)
            if unknown is not None:
                raise ValueError(f"{part.field} names the model {unknown}, which is not among the models")
            part.check(content, self)  # type: ignore[arg-type]
        return self

    def content(self) -> Iterator[tuple[ReportPart[Any], Any]]:
        """The parts that are there, in their order, with what they hold."""
        for part in _PARTS.values():
            content = part.of(self)  # type: ignore[arg-type]
            if content is not None:
                yield part, content

    @property
    def title(self) -> str:
        return self.asked.title or f"{self.dataset.title}: what comes next?"

    @property
    def stem(self) -> str:
        """Of the names of its files."""
        title = slug(self.asked.title or self.dataset.title, default="report")[:60].strip("-")
        return f"seqscope-{title}-{self.created[:10]}"

    @property
    def titles(self) -> dict[str, str]:
        """Name → title of every model; with the name behind it where another one is called the same."""
        titles = [model.title for model in self.models]
        return {
            model.name: clean(model.title if titles.count(model.title) == 1 else f"{model.title} ({model.name})", 80)
            for model in self.models
        }

    @property
    def item_titles(self) -> dict[str, str]:
        """item_id → title of every item that the report tells of; of the first part that has it."""
        parts = [*self.content()][::-1]
        return {item.item_id: item.title for part, content in parts for item in part.items(content)}

    @property
    def early(self) -> dict[str, list[str]]:
        """`Model.early` → names of the models of which it has to be said."""
        names: dict[str, list[str]] = {}
        for model in self.models:
            if model.early is not None:
                names.setdefault(model.early, []).append(model.name)
        return names

    def model(self, name: str) -> Model:
        return next(model for model in self.models if model.name == name)


if TYPE_CHECKING:

    class Report(_Document):
        notes: list[str]
        seal: str

        def __getattr__(self, field: str) -> Any:
            """The content of a part."""

else:
    _fields: dict[str, tuple[Any, Any]] = {part.field: (part.content | None, None) for part in _PARTS.values()}
    _fields["notes"] = (list[str], Field(default=[], description="What has to be known to read it."))
    _seal = "sha256 of the document without the seal: an accident or a careless hand shows, a forger can make it anew."
    _fields["seal"] = (str, Field(default="", description=_seal))
    Report = create_model("Report", __base__=_Document, __doc__=_Document.__doc__, __module__=__name__, **_fields)


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
        raw = json.loads(content.decode("utf-8-sig"), parse_constant=_refuse, parse_int=_whole)
        _check_depth(raw)
        text = json.dumps(raw, ensure_ascii=False).encode()  # a lone surrogate parses, and cannot be written again
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
        return Report.model_validate_json(text)
    except ValidationError as error:
        raise SeqscopeError(f"{name} is a damaged report: {complaints(error)}. Export it again.") from None


def load(path: Path) -> Report:
    """`read` of a file."""
    expect_file(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SeqscopeError(f"{path} is too large for a report ({path.stat().st_size:,} bytes).")
        return read(path.read_bytes(), str(path))
    except OSError as error:
        raise SeqscopeError(f"{path} cannot be read ({error.strerror}).") from None


def schema() -> str:
    """The JSON Schema of report.json (docs/report.schema.json)."""
    # Python 3.11 fails where another thread parses meanwhile, or the collector lets one
    with _ALONE, without_collector():
        return _schema()


@functools.cache
def _schema() -> str:
    whole = Report.model_json_schema(mode="serialization", schema_generator=_Schema)
    later = {model.__name__: model.LATER for model in _models(ReportModel)}
    for name, part in [("Report", whole), *whole["$defs"].items()]:
        if later.get(name):
            part["required"] = [field for field in part["required"] if field not in later[name]]
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **whole, "title": "A report of Seqscope"}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


class _Schema(GenerateJsonSchema):
    """`ReportModel` writes what its fields say; without this, its serializer would hide them. What stands below a field describes
    it: read off the source here, since pydantic's own `use_attribute_docstrings` reads it at every start of the app."""

    def ser_schema(self, schema: Any) -> None:
        return None

    def model_schema(self, schema: Any) -> dict[str, Any]:
        return _described(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        return _described(super().dataclass_schema(schema), schema["cls"])


def _described(written: dict[str, Any], model: type) -> dict[str, Any]:
    """The JSON Schema of a class, each property with what stands below its field."""
    # `create_model` has made the last: Python 3.13 knows no source of it
    without_source = (object, BaseModel, Report)
    for base in reversed([base for base in model.__mro__ if base not in without_source]):
        (declared,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        for field, below in pairwise(getattr(declared, "body", ())):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as words)):
                    if name in written["properties"]:
                        written["properties"][name]["description"] = inspect.cleandoc(words)
    return written


def _models(base: type[ReportModel]) -> Iterator[type[ReportModel]]:
    for model in base.__subclasses__():
        yield model
        yield from _models(model)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def _whole(digits: str) -> int:
    """Raises ValueError beyond what JSON's readers agree on (RFC 8259, section 6): sums of fewer fit into 64 bits."""
    number = int(digits)
    if abs(number) >= 2**53:
        raise ValueError(f"{digits[:40]} is too large a number")
    return number


def _check_depth(value: Any, levels: int = MAX_DEPTH) -> None:
    """Raises RecursionError where lists and objects lie deeper within each other than `levels`."""
    if not isinstance(value, dict | list):
        return
    if not levels:
        raise RecursionError
    for inner in value.values() if isinstance(value, dict) else value:
        _check_depth(inner, levels - 1)
