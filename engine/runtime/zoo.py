"""The models of one dataset, exports/<dataset>/: its catalogue, its people, its bundles, and those it had to refuse."""

from __future__ import annotations

import copy
import functools
import hashlib
import io
import json
import logging
import re
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import TypeAdapter, ValidationError

from engine.bundle.embedding_spaces import Space
from engine.bundle.errors import BundleError, BusyError, Refusal, complaints
from engine.bundle.files import LEADS_OUT, Catalogue, Folder, leads_out
from engine.bundle.items import Items, hold, rows
from engine.bundle.manifest import NAME, File
from engine.bundle.tables import Column, read_table
from engine.bundle.tokenizers import ABOUT, Tokenization
from engine.data.dataset import SCHEMA_VERSION, DatasetInfo
from engine.errors import SeqscopeError
from engine.evaluation import memorisation
from engine.runtime.bundle import Bundle
from engine.runtime.studies import STUDIES, Studies
from engine.runtime.text import TEXT_ENCODERS

log = logging.getLogger("seqscope.runtime")
IDENTIFIERS = "identifiers"
"""The folder of a dataset's tokenizations; no bundle is called so."""
SPACES = "spaces"
"""The folder of vectors that no model owns; no bundle is called so either."""
RESERVED = {
    IDENTIFIERS: "tokenizers",
    SPACES: "vectors of items",
    STUDIES: "studies",
    TEXT_ENCODERS: "text encoders",
}
"""Folders of a dataset that hold no bundle → what they hold."""
EMBEDDED = ("films", "sample")
"""The datasets that come with Seqscope, in the order in which they are shown, before all others. The first one that is there is
where the app opens."""
PACKED_BYTES = 256 << 20
"""A bundle of more is not packed, as a ZIP is made in memory."""
_INFO = TypeAdapter(DatasetInfo)
T = TypeVar("T", Bundle, Tokenization, Space)
Paths = list[Path]  # within the class, `list` is its method
_TABLES = ("dataset.json", "items.parquet", "users.parquet", memorisation.FILE)
_NO_USERS = pa.schema(
    [("user", pa.int32()), ("user_id", pa.string()), ("history", pa.list_(pa.int32())), ("target", pa.int32())]
)


def embedded_first(name: str) -> int:
    """A key to sort datasets by: the place of an embedded one, one number behind these for all others."""
    return EMBEDDED.index(name) if name in EMBEDDED else len(EMBEDDED)


class Zoo:
    """A dataset folder, opened. Immutable: to see new exports, open it again (`Zoo.stamp` tells when).

    Attributes:
        path: the folder.
        info: `DatasetInfo`, dataset.json.
        items: pyarrow Table: item int32 (row i is item i), item_id string, title string, popularity int64 (training events),
            then the attributes as they are.
        users: pyarrow Table: user int32, user_id string, history list<int32>, target int32; users with a held-out item (of
            several the first by number). Empty where the folder has no users.parquet (histories may be private).
        held_out: pyarrow Table: user int32, target int32, memorised int8 (engine/evaluation/memorisation.py); None where the
            folder has no held_out.parquet, because it is of before or there is no order to memorise.
        popularity: int64 [items].
        bundles: name → `Bundle`, in the one order of lists (`engine.cards.place`), equal ones by name.
        tokenizations: name → `Tokenization`, in the order of `about.order`, equal ones by name.
        spaces: name → `Space`, in the order of `about.order`, equal ones by name.
        refused: what was not taken, and why; the rest goes on working.
        tables: a short text that changes when one of the dataset's own files is replaced; a new export may do that.
    """

    def __init__(
        self,
        path: Path,
        info: DatasetInfo,
        items: Items,
        users: pa.Table,
        bundles: dict[str, Bundle],
        refused: list[Refusal],
        tokenizations: dict[str, Tokenization],
        spaces: dict[str, Space],
        held_out: pa.Table | None,
        tables: str,
    ) -> None:
        self.path = path
        self.info = info
        self.items = items.table
        self.users = users
        self.held_out = held_out
        self.bundles = bundles
        self.tokenizations = tokenizations
        self.spaces = spaces
        self.refused = refused
        self.tables = tables
        self.popularity: npt.NDArray[np.int64] = self.items["popularity"].to_numpy()
        self._items = items

    @classmethod
    def open(cls, path: Path | str, *, warm: bool = False, items: Items | None = None) -> Zoo:
        """Opens exports/<dataset>/. Raises SeqscopeError where the dataset itself cannot be read; a bundle is refused instead.
        Raises BusyError where `warm` finds no place to run.

        warm: make every session now and ask it once; what only fails when it is run is refused, too. items: those of this very
        dataset, from elsewhere (engine/bundle/items.py); None: they are read into memory.
        """
        path = Path(path).absolute()
        if not path.is_dir():
            raise SeqscopeError(f"There is no folder {path}. Export a model to it first, or choose another dataset.")
        if not (path / "dataset.json").exists():
            raise SeqscopeError(
                f"{path} is not the folder of a dataset, such as exports/films: it has no dataset.json."
            )
        folder = Folder(path, path.name)
        tables = _stamped(path / name for name in _TABLES)
        info = _info(folder)
        items = hold(path) if items is None else items
        many, counted = len(items.table), info.counts.get("items", 0)
        if many != counted or not many:
            raise folder.fault("items.parquet", f"{many:,} items where dataset.json counts {counted:,}")
        users = _users(folder, many)
        catalogue = Catalogue(info.name, info.fingerprint, many, info.repeats, info.split.get("kind"))
        refused: list[Refusal] = []
        bundles = _opened(Bundle, path, "", catalogue, refused, warm)
        tokenizations = _opened(Tokenization, path, IDENTIFIERS, catalogue, refused, warm)
        spaces = _opened(Space, path, SPACES, catalogue, refused, warm)
        return cls(path, info, items, users, bundles, refused, tokenizations, spaces, _held_out(folder, many), tables)

    def sound(self) -> Zoo:
        """Itself; or the same without the bundles that came to no end since it was opened, which are then `refused`."""
        bundles, refused = dict(self.bundles), []
        for name, bundle in self.bundles.items():
            try:
                bundle.check_ends()
            except BundleError as fault:
                del bundles[name]
                refused.append(Refusal(name, fault.file, fault.reason))
        if not refused:
            return self
        rest = copy.copy(self)
        rest.bundles, rest.refused = bundles, [*self.refused, *refused]
        return rest

    def expect(self, names: Iterable[str], *, tokenizers: bool = False) -> None:
        """Raises SeqscopeError with the first of these models (or tokenizers) that is not here, and with the reason of one that
        was refused."""
        there: Iterable[str] = self.tokenizations if tokenizers else self.bundles
        kind, where = ("tokenizer", f"{IDENTIFIERS}/") if tokenizers else ("model", "")
        for name in (name for name in names if name not in there):
            for refusal in self.refused:
                if refusal.name == where + name:
                    raise SeqscopeError(f"The {kind} “{name}” of {self.info.name} cannot be opened: {refusal}.")
            raise SeqscopeError(f"{self.info.name} has no {kind} “{name}”; there are {', '.join(there) or 'none'}.")

    @staticmethod
    def list(root: Path | str) -> Paths:
        """The dataset folders below exports/, the embedded ones first, then by name; empty where there is no such folder."""
        root = Path(root)
        if not root.is_dir():
            return []
        folders = (child for child in root.iterdir() if not child.name.startswith("."))
        datasets = (child for child in folders if (child / "dataset.json").is_file())
        return sorted(datasets, key=lambda path: (embedded_first(path.name), path.name))

    @staticmethod
    def stamp(path: Path | str) -> str:
        """A short text that changes when the dataset or a bundle is added, replaced or removed; cheap, for cache keys."""
        path = Path(path)
        return _stamped([
            *(path / name for name in _TABLES),
            *sorted(path.glob("*/manifest.json")),
            *sorted(path.glob(f"{IDENTIFIERS}/*/{ABOUT}")),
            *sorted(path.glob(f"{SPACES}/*/{ABOUT}")),
            *sorted(path.glob(f"{STUDIES}/*.json")),
            *sorted(path.glob(f"{TEXT_ENCODERS}/*/words.json")),
        ])  # fmt: skip

    @functools.cached_property
    def studies(self) -> Studies:
        """What was found by changing one thing at a time; read on first use."""
        return Studies.open(self.path, Catalogue(self.info.name, self.info.fingerprint, len(self)))

    def packed(self, name: str, root: str) -> bytes:
        """A ZIP of the dataset's own files and of one bundle: unpacked, the folder `root`, which `open` takes. Raises BundleError
        where a file is not there any more as it was opened, or has more than PACKED_BYTES."""
        bundle, content = self.bundles[name], io.BytesIO()
        its: dict[str, File | None] = {"manifest.json": None, **bundle.manifest.files}
        around: dict[str, File | None] = {file: None for file in _TABLES if (self.path / file).exists()}
        parts = (bundle.folder, f"{root}/{name}", its), (Folder(self.path, self.path.name), root, around)
        with zipfile.ZipFile(content, "w") as archive:
            for folder, place, files in parts:
                for file, expected in files.items():
                    entry = zipfile.ZipInfo(f"{place}/{file}")  # of 1980, so that the same files make the same bytes
                    packed = folder.read(file, limit=PACKED_BYTES, expected=expected)
                    archive.writestr(entry, packed, zipfile.ZIP_DEFLATED)
        return content.getvalue()

    @property
    def has_log(self) -> bool:
        """False for a catalogue alone: nobody has taken anything, so nothing is popular, and nobody can be asked."""
        return bool(self.info.counts.get("events"))

    def next_item(self, row: int) -> int | None:
        """What came after the history in that row of `users`; None where held-out items are sets, of which none came next."""
        return None if self.info.sets else int(self.users["target"][row].as_py())

    def __len__(self) -> int:
        """How many items the catalogue has."""
        return int(self.items.num_rows)

    @property
    def item_ids(self) -> Sequence[str]:
        """[items]: the source's own names of the items."""
        return self._items.ids

    @property
    def titles(self) -> Sequence[str]:
        """[items]: what people see. Foreign text: escape it."""
        return self._items.titles

    def rows(self, items: Sequence[int]) -> pa.Table:
        """The rows of `items` with these numbers, in their order."""
        return rows(self.items, items)

    def position(self, item_id: str) -> int | None:
        """The item number of an item_id; None where the catalogue has none of that name."""
        return self._items.position(item_id)


def _opened(
    kind: type[T], path: Path, where: str, catalogue: Catalogue, refused: list[Refusal], warm: bool
) -> dict[str, T]:
    """What lies in the folder `where` of a dataset's ("": its bundles), by name, and in `refused` why others were not taken."""
    folder, about, word = (path / where, ABOUT, where) if where else (path, "manifest.json", "bundle")
    if not folder.is_dir():
        return {}
    if leads_out(folder, path):
        refused.append(Refusal(where, about, LEADS_OUT))
        return {}
    taken: list[T] = []
    for child in sorted(folder.iterdir()):
        if child.name.startswith(".") or not child.is_dir() or (not where and child.name in RESERVED):
            continue
        shown = f"{where}/{child.name.encode('utf-8', 'replace').decode()[:100]}".removeprefix("/")
        try:
            if not re.fullmatch(NAME, child.name):
                raise BundleError(shown, about, "a bundle's folder is named in lowercase letters, digits, - and _")
            if leads_out(child, path):
                raise BundleError(shown, about, LEADS_OUT)
            opened = kind.open(child, catalogue)
            if warm:
                opened.warm()
            taken.append(opened)
        except BundleError as fault:
            refused.append(Refusal(shown, fault.file, fault.reason))
        except BusyError:
            raise
        except Exception as error:  # none must take the others along, whatever it holds
            log.warning("%s cannot be read", child, exc_info=error)
            refused.append(Refusal(shown, about, f"the {word} cannot be read"))
    taken.sort(key=lambda opened: (opened.order, opened.name))
    return {opened.name: opened for opened in taken}


def _stamped(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        digest.update(
            f"{file.parent.name}/{file.name} {status.st_mtime_ns} {status.st_size} {status.st_ino}\n".encode()
        )
    return digest.hexdigest()[:16]


def _info(folder: Folder) -> DatasetInfo:
    raw = folder.json("dataset.json")
    version = raw.get("schema_version")
    if version != SCHEMA_VERSION:
        raise folder.fault(
            "dataset.json", f"format {str(version)[:20]}; this Seqscope reads {SCHEMA_VERSION}. Export again"
        )
    try:
        # As JSON, since strict validation of a dataclass takes no dict.
        return _INFO.validate_json(json.dumps(raw), strict=True, extra="forbid")
    except ValidationError as error:
        raise folder.fault("dataset.json", complaints(error)) from None


def _users(folder: Folder, items: int) -> pa.Table:
    columns = {
        "user": Column(pa.int32(), 0),
        "user_id": Column(pa.string()),
        "history": Column(pa.list_(pa.int32()), 0, items - 1),
        "target": Column(pa.int32(), 0, items - 1),
    }
    if not (folder.path / "users.parquet").exists():
        return _NO_USERS.empty_table()
    return read_table(folder, "users.parquet", columns)


def _held_out(folder: Folder, items: int) -> pa.Table | None:
    if not (folder.path / memorisation.FILE).exists():
        return None
    columns = {
        "user": Column(pa.int32(), 0),
        "target": Column(pa.int32(), 0, items - 1),
        "memorised": Column(pa.int8(), 0, 2),
    }
    return read_table(folder, memorisation.FILE, columns)
