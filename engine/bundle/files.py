"""Reading files nobody vouches for: only plain files inside their folder, of the announced size and content."""

import contextlib
import hashlib
import json
import logging
import math
import os
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from engine.bundle.errors import BundleError, complaints
from engine.bundle.manifest import File

log = logging.getLogger("seqscope.runtime")
EAGER_BYTES = 16 << 20
"""Files up to this size are read and checked when a zoo opens, larger ones on first use."""
JSON_BYTES = 2 << 20
JSON_DEPTH = 32
LEADS_OUT = "the folder is a link that leads out of the dataset's folder"

# Windows has neither flag; the checks after opening still hold there. O_NONBLOCK: opening a pipe must not wait for a writer.
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_FLAGS |= getattr(os, "O_BINARY", 0)


@dataclass(frozen=True)
class Folder:
    """A bundle's folder (or the dataset's), and the way its files are read. `name` is what messages call it."""

    path: Path
    name: str

    def fault(self, file: str, reason: str, cause: BaseException | None = None) -> BundleError:
        """reason: our words, for pages. cause: what a library said, which is for the log alone."""
        if cause is not None:
            log.warning("%s/%s: %s: %s: %.500s", self.name, file, reason, type(cause).__name__, cause)
        return BundleError(self.name, file, reason)

    @contextlib.contextmanager
    def open(self, file: str, *, limit: int, expected: File | None = None) -> Iterator[tuple[BinaryIO, int]]:
        """Yields (stream, bytes). `file` is a plain name; links, pipes and folders are refused, as is any size over `limit`."""
        if file != os.path.basename(file) or file in ("", ".", ".."):
            raise self.fault(file, "the name leads out of the bundle's folder")
        try:
            descriptor = os.open(self.path / file, _FLAGS)
        except FileNotFoundError:
            raise self.fault(file, "the file is missing") from None
        except OSError as error:
            if (self.path / file).is_symlink():
                raise self.fault(file, "the file is a link; a bundle holds its own files") from None
            raise self.fault(file, f"the file cannot be opened ({error.strerror})") from None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise self.fault(file, "this is not a plain file")
            if expected is not None and status.st_size != expected.bytes:
                raise self.fault(file, f"the file has {status.st_size:,} bytes, the manifest says {expected.bytes:,}")
            if status.st_size > limit:
                reason = f"the file has {status.st_size:,} bytes, more than the {limit:,} this program reads"
                raise self.fault(file, reason)
            with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as stream:
                yield stream, status.st_size
        finally:
            os.close(descriptor)

    def size(self, file: str, *, limit: int, expected: File | None = None) -> int:
        """Bytes of the file; all checks except that of the content."""
        with self.open(file, limit=limit, expected=expected) as (_, size):
            return size

    def read(self, file: str, *, limit: int, expected: File | None = None) -> bytes:
        """The whole file, its content checked against `expected`."""
        with self.open(file, limit=limit, expected=expected) as (stream, size):
            content = bytearray(size)
            filled = fill(stream, memoryview(content))
        if filled != size:
            raise self.fault(file, "the file grew shorter while it was read")
        if expected is not None:
            self.check(file, hashlib.sha256(content).hexdigest(), expected)
        return bytes(content)

    def check(self, file: str, sha256: str, expected: File) -> None:
        if sha256 != expected.sha256:
            raise self.fault(
                file, "the content is not what the manifest announces (sha256 differs); copy or export it again"
            )

    def json(self, file: str, *, limit: int = JSON_BYTES) -> dict[str, Any]:
        """The object in a JSON file: at most `limit` bytes, 32 levels, finite numbers, no key twice, text that can be shown."""
        content = self.read(file, limit=limit)
        try:
            raw = json.loads(content.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=_unique)
            _shallow(raw)
        except RecursionError:
            raise self.fault(file, f"nested deeper than {JSON_DEPTH} levels") from None
        except json.JSONDecodeError as error:
            reason = f"not valid JSON (line {error.lineno}, column {error.colno})"
            raise self.fault(file, reason, error) from None
        except UnicodeError as error:
            raise self.fault(file, "not valid JSON (text that is not UTF-8)", error) from None
        except ValueError as error:
            raise self.fault(file, f"not valid JSON ({error})") from None
        if not isinstance(raw, dict):
            raise self.fault(file, "not a JSON object")
        return raw


def leads_out(folder: Path, root: Path) -> bool:
    return folder.is_symlink() and not folder.resolve().is_relative_to(root.resolve())


def fill(stream: BinaryIO, buffer: memoryview) -> int:
    """Reads until `buffer` (bytes) is full or the file ends; returns the bytes read. One system call may bring less."""
    filled = 0
    while filled < len(buffer):
        # A negative or zero answer ends it: the file is shorter than its size said.
        count = stream.readinto(buffer[filled : filled + (1 << 30)])  # type: ignore[attr-defined]
        if not count:
            break
        filled += count
    return filled


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return entries


def _shallow(value: Any, level: int = 1) -> None:
    if level > JSON_DEPTH:
        raise ValueError(f"nested deeper than {JSON_DEPTH} levels")
    if isinstance(value, str):
        value.encode("utf-8")  # a lone surrogate parses, and fails later in the page that shows it
    elif isinstance(value, dict):
        for key, inner in value.items():
            key.encode("utf-8")
            _shallow(inner, level + 1)
    elif value in (math.inf, -math.inf):  # as Python reads 1e999
        raise ValueError("a number that no float holds")
    elif isinstance(value, list) and (  # numbers alone may be millions
        not set(map(type, value)) <= {int, float} or math.inf in value or -math.inf in value
    ):
        for inner in value:
            _shallow(inner, level + 1)


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


def read_document(folder: Folder, file: str, kind: type[M], newest: int, *, limit: int = JSON_BYTES) -> M:
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


def read_about(
    folder: Folder, file: str, kind: type[M], newest: int, catalogue: Catalogue, noun: str, again: str
) -> tuple[M, str]:
    """As `read_document`, and the digest of what it says, hex. BundleError, too, where it has another name than its folder,
    is of another catalogue, or names files that are missing or of another size.

    kind: a model with name, num_items, fingerprint and files; noun: what it is, in a word; again: what to do where the
    catalogue is another.
    """
    about: Any = read_document(folder, file, kind, newest)
    if about.name != folder.path.name:
        raise folder.fault(file, f"it names the {noun} {about.name}, its folder {folder.path.name}")
    if about.num_items != catalogue.items or about.fingerprint != catalogue.fingerprint:
        raise folder.fault(
            file,
            f"made for another dataset or another state of it ({about.num_items:,} items, fingerprint "
            f"{about.fingerprint[:8]}…; {catalogue.name} has {catalogue.items:,}, {catalogue.fingerprint[:8]}…); {again}",
        )
    for name, expected in about.files.items():
        folder.size(name, limit=expected.bytes, expected=expected)
    return about, hashlib.sha256(about.model_dump_json().encode()).hexdigest()


T = TypeVar("T")


class Lazy(Generic[T]):
    """`value()` calls `make` the first time; a BundleError it raises is kept and raised again, without the work.

    functools.cached_property is no substitute: it may make the value twice when two threads come at once.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make: Callable[[], T] | None = make
        self._lock = threading.Lock()
        self._value: T | None = None
        self._fault: BundleError | None = None

    def value(self) -> T:
        if self._make is not None:
            with self._lock:
                if self._make is not None:
                    try:
                        self._value = self._make()
                    except BundleError as fault:
                        self._fault = fault
                    self._make = None  # last: other threads look at it without the lock
        if self._fault is not None:
            raise BundleError(self._fault.bundle, self._fault.file, self._fault.reason)
        return self._value  # type: ignore[return-value]  # made above
