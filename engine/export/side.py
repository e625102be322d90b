"""What every folder of exports has beside its bundles: the dataset's own tables. Needs no torch."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.dataset import Dataset
from engine.errors import SeqscopeError
from engine.files import replacing
from engine.runtime import Zoo
from engine.runtime.manifest import File
from engine.runtime.tokenizations import ABOUT
from engine.runtime.zoo import IDENTIFIERS, SPACES

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
TITLE = 60
"""Characters of a title that pages have room for."""
USERS = 2_000
"""People with a held-out item that an export offers to try models on, where the dataset has more."""


def write_dataset_side(data: Dataset, out: Path, users: int) -> None:
    """dataset.json, items.parquet and, where there is anybody, users.parquet of an export folder.

    Raises SeqscopeError where the folder holds what was made for other data.
    """
    info = out / "dataset.json"
    if out.is_dir():
        try:
            found = json.loads(info.read_text("utf-8")).get("fingerprint")
        except (FileNotFoundError, ValueError, AttributeError):
            found = None
        others = [child.name for child in out.iterdir() if (child / "manifest.json").exists()]
        for beside in (IDENTIFIERS, SPACES):
            others += [f"{beside}/{path.parent.name}" for path in out.glob(f"{beside}/*/{ABOUT}")]
        if found != data.info.fingerprint and others:
            raise SeqscopeError(
                f"{out} holds bundles ({', '.join(sorted(others))}) of other data or another state of it. "
                "Export to another folder, or delete it."
            )
    out.mkdir(parents=True, exist_ok=True)
    items = pq.read_table(data.path / "items.parquet").sort_by("item")
    items = items.append_column("popularity", pa.array(data.popularity, pa.int64()))
    with replacing(out / "items.parquet") as staged:
        pq.write_table(items, staged, compression="zstd")
    if data.num_users:
        _write_users(data, out, users)
    else:
        (out / "users.parquet").unlink(missing_ok=True)
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
            pa.table({"user": part.users, "user_id": names, "history": history, "target": part.targets}),
            staged,
            compression="zstd",
        )


def file_of(path: Path) -> File:
    """How a manifest names a file."""
    with path.open("rb") as file:
        return File(sha256=hashlib.file_digest(file, "sha256").hexdigest(), bytes=path.stat().st_size)
