"""The JSON that every folder beside or within an export begins with: what it is, of which format, and of which catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from engine.bundle.manifest import File
from engine.runtime.faults import complaints
from engine.runtime.files import JSON_BYTES, Folder

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Catalogue:
    """What a bundle must fit: the dataset folder it lies in."""

    name: str
    fingerprint: str
    items: int
    repeats: str | None = None
    """As of `DatasetInfo`: where "count", items of the history are candidates like all others."""
    split: str | None = None
    """The kind of its split, as of `DatasetInfo`."""


class Described(Protocol):
    """What `fit` looks at."""

    name: str
    fingerprint: str
    num_items: int
    files: dict[str, File]


def read(folder: Folder, file: str, kind: type[M], newest: int, *, limit: int = JSON_BYTES) -> M:
    """The object in `file`; newest: the greatest schema_version that this program reads. Raises BundleError."""
    raw = folder.json(file, limit=limit)
    version = raw.get("schema_version", newest)
    if isinstance(version, int) and version > newest:
        raise folder.fault(
            file, f"written by a newer Seqscope (format {version}, this one reads {newest}); update this Seqscope"
        )
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        raise folder.fault(file, complaints(error)) from None


def fit(folder: Folder, file: str, about: Described, catalogue: Catalogue, what: str, again: str) -> None:
    """Raises BundleError where `about` (in `file`) has another name than its folder, is of another catalogue, or names files that
    are missing or of another size. what: it is, in a word; again: what to do where the catalogue is another."""
    if about.name != folder.path.name:
        raise folder.fault(file, f"it names the {what} {about.name}, its folder {folder.path.name}")
    if about.num_items != catalogue.items or about.fingerprint != catalogue.fingerprint:
        raise folder.fault(
            file,
            f"made for another dataset or another state of it ({about.num_items:,} items, fingerprint "
            f"{about.fingerprint[:8]}…; {catalogue.name} has {catalogue.items:,}, {catalogue.fingerprint[:8]}…); {again}",
        )
    for name, expected in about.files.items():
        folder.size(name, limit=expected.bytes, expected=expected)
