"""An export while it is made: a folder that takes its place when all is well, with the dataset's own tables beside it.

`Draft` is a bundle while it is written; `Recommender.exports` names its parts, which `engine.export.bundle` calls.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from engine import __version__
from engine.bundle.files import Catalogue
from engine.bundle.manifest import NAME, Check, File, Generator, Index, ItemToItem, PeopleGraph, Sentence, Strict, Text
from engine.bundle.tokenizers import ABOUT
from engine.data.dataset import Cases, Dataset
from engine.errors import SeqscopeError, UsageError
from engine.evaluation import memorisation
from engine.files import digest_of, expect_no_file, load_json, replacing, staged_folder
from engine.machine import now
from engine.runtime import Bundle, Space, Tokenization, Zoo
from engine.runtime.zoo import IDENTIFIERS, RESERVED, SPACES

if TYPE_CHECKING:
    from engine.training.recipe import Recipe  # with torch, which models for other catalogues are exported without

TITLE = 60
"""Characters of a title that pages have room for."""
MARKS = ("manifest.json", ABOUT, "words.json")
"""The files that say of a folder what was exported there."""
T = TypeVar("T", Bundle, Space, Tokenization)
USERS = 2_000
"""People with a held-out item that an export offers to try models on, where the dataset has more."""


@contextmanager
def exported(target: Path, data: Dataset, out: Path, users: int | None) -> Iterator[Path]:
    """An empty folder called like `target`, within `out`, that takes its place when the block ends well.

    The dataset's own tables (`write_dataset_side`) are written then; what is refused leaves nothing behind. users None: tables
    of this dataset stay as they are. Raises SeqscopeError where `out` holds what was made for other data.
    """
    there = exported_fingerprint(data, out)
    with staged(target) as folder:
        yield folder
        if users is not None or there != data.info.fingerprint:
            write_dataset_side(data, out, USERS if users is None else users)


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """As `staged_folder`. Raises SeqscopeError where something is there that is no export, a run perhaps."""
    if not any((target / mark).exists() for mark in MARKS) and (
        target.is_file() or (target.is_dir() and any(target.iterdir()))
    ):
        raise SeqscopeError(
            f"{target} is no export, so it is not replaced. Export under another name, or to another folder."
        )
    try:
        with staged_folder(target) as folder:
            yield folder
    except OSError as error:
        raise SeqscopeError(f"{error.filename or target}: {error.strerror or error}. Nothing was exported.") from None


def check_name_and_title(name: str, title: str | None) -> None:
    """Raises UsageError where a folder cannot be called `name`, or pages have no room for `title`."""
    if not re.fullmatch(NAME, name):
        raise UsageError(f"--name {name}: use lowercase letters, digits, dashes and underscores")
    if title and len(title) > TITLE:
        raise UsageError(f"--title: {len(title)} characters; pages have room for {TITLE}")
    if len((title or "").splitlines()) > 1:
        raise UsageError("--title: write it on one line")


def check_bundle_name(name: str, title: str | None) -> None:
    """As `check_name_and_title`. Raises UsageError also where the folder of that name is for something else."""
    check_name_and_title(name, title)
    if name in RESERVED:
        raise UsageError(f"--name {name}: that folder is for {RESERVED[name]}; give another name")


def exported_fingerprint(data: Dataset, out: Path) -> str | None:
    """Of the dataset that an export folder is of; None where it says nothing. Raises SeqscopeError where that is not `data`,
    where the folder is one to train on (its tables have the same names), where it holds the folders of datasets, and where it is
    a file."""
    expect_no_file(out)
    if (out / "interactions.parquet").exists():
        raise SeqscopeError(
            f"{out} is a dataset to train on, and an export would replace its tables. Export to another folder."
        )
    if (out / "run.json").exists():
        raise SeqscopeError(f"{out} is a run, and exports would stand among its files. Export to another folder.")
    if datasets := sorted(path.parent.name for path in out.glob("*/dataset.json")):
        raise SeqscopeError(
            f"{out} holds exports of datasets ({', '.join(datasets)}), each in a folder of its own. "
            f"Export to {out / data.info.name}."
        )
    try:
        fingerprint = load_json(out / "dataset.json").get("fingerprint")
    except (FileNotFoundError, ValueError, AttributeError):
        fingerprint = None
    if out.is_dir() and fingerprint != data.info.fingerprint:
        others = [child.name for child in out.iterdir() if (child / "manifest.json").exists()]
        for beside in (IDENTIFIERS, SPACES):
            others += [f"{beside}/{path.parent.name}" for path in out.glob(f"{beside}/*/{ABOUT}")]
        if others:
            raise SeqscopeError(
                f"{out} holds bundles ({', '.join(sorted(others))}) of other data or another state of it. "
                "Export to another folder, or delete it."
            )
    return fingerprint


def write_dataset_side(data: Dataset, out: Path, users: int) -> None:
    """dataset.json, items.parquet and, where there is anybody, users.parquet and held_out.parquet of an export folder.

    Raises SeqscopeError where the folder holds what was made for other data, and OSError where it is missing.
    """
    before = exported_fingerprint(data, out)
    info = out / "dataset.json"
    items = pq.read_table(data.path / "items.parquet").sort_by("item")
    items = items.append_column("popularity", pa.array(data.popularity, pa.int64()))
    with replacing(out / "items.parquet") as staged:
        pq.write_table(items, staged, compression="zstd")
    if data.num_users:
        _write_users(data, out, users)
    else:
        (out / "users.parquet").unlink(missing_ok=True)
    if before != data.info.fingerprint or not (out / memorisation.FILE).exists():  # what it says is the dataset's alone
        memorisation.write(data, out / memorisation.FILE)
    with replacing(info) as staged:
        shutil.copyfile(data.path / "dataset.json", staged)
    Zoo.open(out)


def _write_users(data: Dataset, out: Path, users: int) -> None:
    cases = data.cases("test")
    rows = np.arange(len(cases))
    if len(rows) > users:
        rows = np.sort(np.random.default_rng(0).choice(len(rows), users, replace=False))
    part = cases.take(rows)
    names = pq.read_table(data.path / "users.parquet", columns=["user_id"])["user_id"].take(pa.array(part.users))
    history = pa.ListArray.from_arrays(
        pa.array(part.history.offsets, pa.int32()), pa.array(part.history.values, pa.int32())
    )
    with replacing(out / "users.parquet") as staged:
        pq.write_table(
            # of several held-out items the first one
            pa.table(
                {
                    "user": part.users,
                    "user_id": names,
                    "history": history,
                    "target": part.targets[part.held_out.offsets[:-1]],
                }
            ),
            staged,
            compression="zstd",
        )


def file_of(path: Path) -> File:
    """How a manifest names a file."""
    return File(sha256=digest_of(path), bytes=path.stat().st_size)


def files_of(folder: Path) -> dict[str, File]:
    """All of a bundle but its manifest, for that."""
    return {path.name: file_of(path) for path in sorted(folder.iterdir()) if path.name != "manifest.json"}


def provenance(folder: Path, data: Dataset, by: str = f"seqscope {__version__}") -> dict[str, Any]:
    """What everything exported says of itself alike: its name, its dataset, its files, when and by what it was made."""
    return {
        "name": folder.name,
        "dataset": data.info.name,
        "fingerprint": data.info.fingerprint,
        "num_items": data.num_items,
        "created": now(),
        "created_by": by,
        "files": files_of(folder),
    }


def read_back(kind: type[T], folder: Path, about: Strict, data: Dataset) -> T:
    """The folder with what it says of itself, opened and read as a page will do: the reader has the last word."""
    file = folder / ("manifest.json" if kind is Bundle else ABOUT)
    file.write_text(about.model_dump_json(indent=1) + "\n", "utf-8")
    opened = kind.open(folder, Catalogue(data.info.name, data.info.fingerprint, data.num_items))
    opened.warm()
    return opened


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
    checks: list[Callable[[], Check | None]] = field(default_factory=list)
    """Called when all parts are written and the graphs share their tensors; each raises SeqscopeError where a graph does not
    answer as PyTorch does. That of the query says what was compared."""

    # --- what the manifest says of the parts
    index: Index = field(default_factory=lambda: Index(kind="identity", geometry="none"))
    dim: int = 1
    """Of a query."""
    rows: npt.NDArray[np.float32] | None = None
    """[items, dim], what nearness and the map are about; None where there is nothing of the kind."""
    generator: Generator | None = None
    text: Text | None = None
    sentence: Sentence | None = None
    graph: PeopleGraph | None = None
    item_to_item: ItemToItem | None = None
    order: int = 0
    """To add to the model's place among others."""
    paper: str = ""
    """To add to the model's paper."""
