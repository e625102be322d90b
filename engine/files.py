"""Writing so that a reader sees the old file or the new one, never half of either; and reading what may be neither."""

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
import tomllib
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from engine.errors import SeqscopeError, UsageError

_LOCK, _REPLACED, _MOVING, _STAGING, _OLD = ".lock", ".replaced", ".moving", ".staging-", ".old"
_STAYS = ".stays"
"""In either of the two folders of what is to be replaced: the names of what else there was, which stays where it is."""
_HALF = ".*.part"
"""Files that are being written, or were when the process was killed."""
_OS_ERROR = re.compile(r"\(os error (\d+)\)")
"""In the words of libraries whose errors are of a kind of their own, such as safetensors: the number of what the system said."""
BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OverflowError)
"""What `zipfile` raises of an archive that is damaged, cut off, or packed by a method that it does not know."""


def load_json(path: Path) -> Any:
    """What a JSON file holds. Raises OSError where it cannot be read, ValueError where it is none, or nested too deeply."""
    try:
        return json.loads(path.read_text("utf-8"))
    except RecursionError:
        raise ValueError("lists and objects lie too deep within each other") from None


def load_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file. Raises UsageError where it is none, OSError where it cannot be read."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not in UTF-8, as TOML is; save it so") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}") from None


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; {} where there is none, or none that can be read."""
    try:
        content = load_json(path)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def digest_of(path: Path, algorithm: str = "sha256") -> str:
    """The hex digest of a file; algorithm: one of hashlib's, or "git", by which git names the contents of a file."""
    header = b"" if algorithm != "git" else b"blob %d\0" % path.stat().st_size
    hashed = hashlib.new("sha1" if algorithm == "git" else algorithm, header)
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashed).hexdigest()


def expect_file(path: Path) -> None:
    """Raises SeqscopeError where there is no file, and where there is a pipe or a device: what people name is read more than
    once, and a pipe would be waited at for ever."""
    if not path.exists():
        raise SeqscopeError(f"{path} does not exist.")
    if not path.is_file():
        kind = "is a folder; name a file in it" if path.is_dir() else "is a pipe or a device; write it to a file first"
        raise SeqscopeError(f"{path} {kind}.")


def expect_permitted(path: Path) -> None:
    """Raises PermissionError where a file may not be read, of which safetensors says that it is missing."""
    with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
        path.open("rb").close()


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """A path beside `path` to write to; it takes the place of `path` when the block ends without an error.

    durable: what was written also survives the loss of power. Raises OSError, also where the folder is missing: it is never made
    here, or a late writer would bring back what somebody deleted.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".part")
    os.close(handle)
    staged = Path(name)
    try:
        yield staged
        if durable:
            with staged.open("rb") as file:
                os.fsync(file.fileno())
        staged.chmod(0o644)
        staged.replace(path)
    except Exception as error:
        number: int | None = None
        if isinstance(error, OSError):
            if error.filename is None:  # pyarrow's has a number, numpy's "9 requested and 2 written"
                number = error.errno or (errno.ENOSPC if " requested and " in str(error) else None)
        elif words := _OS_ERROR.search(str(error)):
            number = int(words[1])
        if number is None:
            raise
        raise OSError(number, os.strerror(number), str(path)) from None
    finally:
        staged.unlink(missing_ok=True)


@contextmanager
def tidied(*folders: Path) -> Iterator[None]:
    """Where the block fails, removes what it made of these folders and their parents and left empty."""
    missing = {path for folder in folders for path in (folder, *folder.parents) if not path.exists()}
    try:
        yield
    except BaseException:
        for path in sorted(missing, key=lambda path: len(path.parts), reverse=True):
            with suppress(OSError):  # it is not empty, or was not made
                path.rmdir()
        raise


def expect_no_file(folder: Path) -> None:
    """Raises SeqscopeError where a file stands in the place of a folder that is to be made, or of one of its parents."""
    there = next((path for path in (folder, *folder.parents) if path.exists()), None)
    if there is not None and not there.is_dir():
        raise SeqscopeError(f"{there} is a file, and a folder is needed there. Name another folder.")


@contextmanager
def made(folder: Path) -> Iterator[Path]:
    """Makes `folder` and its parents where they are missing; those are removed where the block fails and leaves them empty."""
    expect_no_file(folder)
    with tidied(folder):
        folder.mkdir(parents=True, exist_ok=True)
        yield folder


@contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """An empty folder called like `target` that takes its place when the block ends well, and is removed when it does not; where
    the process is killed, by the next one beside it.

    What stood there is moved aside first and removed last, so that a reader always finds one whole folder.
    """
    with made(target.parent):
        _clear(target.parent)
        beside = Path(tempfile.mkdtemp(dir=target.parent, prefix=_STAGING))
        try:
            with alone(beside):
                folder, old = beside / target.name, beside / _OLD
                folder.mkdir()
                yield folder
                if target.exists():
                    target.rename(old)
                try:
                    folder.rename(target)
                except OSError:
                    if old.exists():
                        old.rename(target)
                    raise
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def _clear(parent: Path) -> None:
    """Removes what killed processes left in `parent`. Where one had moved the old folder away and not yet put the new one in its
    place, that is finished, and goes there now."""
    for left in parent.glob(f"{_STAGING}*"):
        with suppress(SeqscopeError, OSError):
            if any(left.iterdir()):  # else another process made it this moment
                with alone(left):
                    _put_or_remove(left, parent)


def _put_or_remove(left: Path, parent: Path) -> None:
    if (left / _OLD).exists():
        for folder in left.iterdir():
            if folder.is_dir() and folder.name != _OLD and not (parent / folder.name).exists():
                folder.rename(parent / folder.name)
    shutil.rmtree(left)


def contents(folder: Path) -> set[str]:
    """Names in a folder that may be `claimed`; where a process was killed before it wrote any, those that it was to replace."""
    there, moving, replaced = (
        {path.name for path in place.iterdir() if not path.match(_HALF)} - {_LOCK, _MOVING, _REPLACED, _STAYS}
        if place.is_dir()
        else set()
        for place in (folder, folder / _MOVING, folder / _REPLACED)
    )
    stays = there & _stays(folder)
    return ((there - stays) | moving or replaced) | stays


def _stays(folder: Path) -> set[str]:
    """Names in a folder that are of nobody who claimed it, while others are to be replaced."""
    notes = [folder / place / _STAYS for place in (_MOVING, _REPLACED)]
    return {name for note in notes if note.is_file() for name in json.loads(note.read_text("utf-8"))}


@contextmanager
def claimed(folder: Path, replaces: Iterable[str] = ()) -> Iterator[None]:
    """`folder` for this process alone, made where it is missing; what is refused before it has written a file changes nothing.

    replaces: names of what is not there while the block runs. They are deleted when it ends, and come back where it failed
    before it wrote any. Raises SeqscopeError where another process is in the folder.
    """
    with made(folder), alone(folder):
        for half in folder.glob(_HALF):  # of processes that were killed, as is what is settled
            half.unlink(missing_ok=True)
        _settle(folder)
        try:
            if names := [name for name in replaces if (folder / name).exists()]:
                moving = folder / _MOVING
                stays = {path.name for path in folder.iterdir()} - {_LOCK, *names}
                moving.mkdir()
                write_json(moving / _STAYS, sorted(stays))
                for name in names:
                    (folder / name).rename(moving / name)
                moving.rename(folder / _REPLACED)
            yield
        except BaseException:
            _settle(folder)
            if [path.name for path in folder.iterdir()] == [_LOCK]:
                (folder / _LOCK).unlink()
            raise
        shutil.rmtree(folder / _REPLACED, ignore_errors=True)


def _settle(folder: Path) -> None:
    """Files that were to be replaced come back where there are no others, and are deleted where there are. What was on its way
    when the process was killed comes back."""
    replaced, moving = folder / _REPLACED, folder / _MOVING
    beside = {_LOCK, _REPLACED} | _stays(folder)
    if replaced.is_dir() and all(path.name in beside for path in folder.iterdir()):
        replaced.rename(moving)
    if moving.is_dir():
        for path in moving.iterdir():
            if path.name != _STAYS:
                path.rename(folder / path.name)
        shutil.rmtree(moving)
    shutil.rmtree(replaced, ignore_errors=True)


@contextmanager
def alone(folder: Path, refusal: str | None = None) -> Iterator[None]:
    """Keeps other processes out of `folder` while the block runs. Raises SeqscopeError where one is in it already.

    refusal: what it then says, where people know the work by another name than the folder's.
    """
    with (folder / _LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SeqscopeError(
                refusal or f"another process is writing to {folder}; wait for it, or choose another folder"
            ) from None
        yield


def write_text(path: Path, text: str, *, durable: bool = True) -> None:
    with replacing(path, durable=durable) as staged:
        staged.write_text(text, "utf-8")


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
