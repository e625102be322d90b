"""A folder that appears whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from engine.errors import SeqscopeError
from engine.files import made, put


def refuse_existing(out: Path, overwrite: bool) -> None:
    """Fail early, before any work, where `out` must not be written."""
    if not out.exists():
        return
    if not out.is_dir():
        raise SeqscopeError(f"{out} is a file. Choose another --out.")
    if not any(out.iterdir()):
        return
    if not overwrite:
        raise SeqscopeError(f"{out} exists already. Choose another --out, or replace it with --overwrite.")
    if not (out / "dataset.json").exists():
        raise SeqscopeError(
            f"{out} is not a dataset (it has no dataset.json), so --overwrite does not replace it. Choose another --out."
        )


@contextlib.contextmanager
def staging(out: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """An empty folder beside `out` that takes its place when the block ends well, and is removed when it does not.

    What stood at `out` is moved aside first and removed last, so that a reader always finds one whole dataset.
    """
    refuse_existing(out, overwrite)
    parent, out = out.parent, out.absolute()
    folder = out.parent / f".{out.name}.{os.getpid()}-{secrets.token_hex(4)}.staging"
    try:
        with made(parent):  # as given: where the working folder was deleted, there is nothing to make it in
            try:
                folder.mkdir()
                yield folder
                refuse_existing(out, overwrite)  # somebody else may have written it meanwhile
                put(folder, out, folder.with_suffix(".old"))
                shutil.rmtree(folder.with_suffix(".old"), ignore_errors=True)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        where = error.filename or out
        raise SeqscopeError(
            f"{where} cannot be read or written ({error.strerror or error}). Check the path, its permissions and the free space."
        )
