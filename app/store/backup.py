"""Backups: one tar file with a copy of the store's tables and the files of everything that has a row.

    backup.json      form, time, version of Seqscope, how many rows there are
    store.duckdb     the tables (`take_snapshot`)
    owners/… jobs/…
    checksums.json   SHA-256 of each of these files

Left out is what can be computed again (cache/), and what has no row (lost/). A backup is made while the server runs; what is
deleted meanwhile is missing in it, row and all, after it was restored. It is restored into an empty folder, or in place of what
is there, which is kept.
"""

import hashlib
import io
import json
import logging
import os
import re
import tarfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, cast

from app import home
from app.jobs import status
from app.jobs.runner import is_running
from app.store import file, records
from app.store.database import Store
from app.store.datasets import forget
from app.store.file import Held
from app.text import listed
from engine.errors import SeqscopeError
from engine.files import alone, expect_file, tidied
from engine.machine import now
from engine.tabular.database import sql
from engine.writing import count

log = logging.getLogger("seqscope.store")
FORM = 1
SNAPSHOT = "store.duckdb"
_ABOUT, _SUMS = "backup.json", "checksums.json"
_PARTS = ("owners", "jobs")
_NOTE = file.note_path(Path(SNAPSHOT)).name
_NAME = re.compile(r"(owners|jobs)(/[^/\x00]{1,255})+|store\.duckdb|backup\.json|checksums\.json")
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Backup:
    """What a backup holds."""

    files: int
    bytes: int
    rows: dict[str, int]
    """Table → rows."""


# --- making one


def backup(target: Path) -> Backup:
    """Writes a backup of SEQSCOPE_HOME. Raises SeqscopeError where the file is there already or there is nothing to keep."""
    _expect_new(target)
    if not target.parent.is_dir():
        raise SeqscopeError(f"There is no folder {target.parent}.")
    expect_store()
    folder = home.here().stage()
    staged = target.with_name(f".{target.name}.{folder.name}.part")  # another backup may be at work on the same name
    try:
        tables = take_snapshot(folder)
        with open(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            made = _archived(file, tables)
            file.flush()
            os.fsync(file.fileno())
        _expect_new(target)
        staged.replace(target)
        return made
    except OSError as error:
        unread = error.filename and Path(error.filename).is_relative_to(home.root())
        failed = f"{error.filename} could not be read" if unread else f"{target} could not be written"
        raise SeqscopeError(f"{failed}: {error.strerror or error}.") from error
    finally:
        staged.unlink(missing_ok=True)
        home.delete(folder)


def _expect_new(target: Path) -> None:
    if target.exists():
        raise SeqscopeError(f"{target} is there already. Name a new file.")


def _archived(file: IO[bytes], tables: Path) -> Backup:
    with closing(Store(tables, home=home.here())) as store:
        counts, folders = rows_of(store), store.folders()
    sums: dict[str, str] = {}
    total = 0
    about = {"form": FORM, "made": now(), "rows": counts}
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        _add_text(archive, _ABOUT, about, sums)
        total += _add(archive, SNAPSHOT, tables, sums)
        for folder in folders:  # jobs first: what they say is done by then is in the datasets
            for path in _files(folder):
                total += _add(archive, path.relative_to(home.root()).as_posix(), path, sums)
        _add_text(archive, _SUMS, sums, {})
    return Backup(len(sums), total, counts)


def _files(folder: Path) -> Iterator[Path]:
    """Regular files; no links are followed, and what can be computed again is left out."""
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not (Path(path) == folder and name == "cache"))
        there = (Path(path) / name for name in sorted(names))
        yield from (each for each in there if each.is_file() and not each.is_symlink())


class _Hashed(io.RawIOBase):
    """A file that is read, and what was read counted and hashed; as long as it was at first, even if it grows meanwhile."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._left = file, size
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        part = self._file.read(self._left if size < 0 else min(size, self._left))
        if not part and self._left and size:
            part = b"\0" * min(
                self._left, size if size > 0 else self._left
            )  # it was cut meanwhile: a file being written
        self._left -= len(part)
        self.digest.update(part)
        return part


def _add(archive: tarfile.TarFile, name: str, path: Path, sums: dict[str, str]) -> int:
    try:
        with path.open("rb") as file:
            info = tarfile.TarInfo(name)
            stat = os.fstat(file.fileno())
            info.size, info.mtime, info.mode = stat.st_size, int(stat.st_mtime), 0o600
            hashed = _Hashed(file, info.size)
            archive.addfile(info, cast(IO[bytes], hashed))
    except FileNotFoundError:  # it went meanwhile
        return 0
    sums[name] = hashed.digest.hexdigest()
    return info.size


def _add_text(archive: tarfile.TarFile, name: str, value: Any, sums: dict[str, str]) -> None:
    text = json.dumps(value, indent=1).encode()
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = len(text), int(time.time()), 0o600
    archive.addfile(info, io.BytesIO(text))
    sums[name] = hashlib.sha256(text).hexdigest()


# --- putting one back


def restore(source: Path, *, replace: bool = False) -> tuple[Backup, Path | None]:
    """Puts a backup into SEQSCOPE_HOME; (what it held, the folder that keeps what was there before, None where nothing was).

    Everything is unpacked and checked before anything is moved. Raises SeqscopeError.
    """
    root = home.root()
    interrupted = (root / home.RESTORING).is_file()
    there = [name for name in (SNAPSHOT, *_PARTS) if _holds(root / name)]
    if there and not replace and not interrupted:
        raise SeqscopeError(
            f"{root} holds a store already. With --replace, the backup takes its place, and what is there is kept beside it."
        )
    _free()
    with tidied(*home.here().folders):
        staged = home.here().stage()
        try:
            sums = _unpacked(source, staged)
            made = _checked(staged, sums)
            with alone(root, f"Another restore is at work in {root}. Wait for it."):
                try:
                    return made, _moved(root, staged)
                except OSError as error:
                    raise SeqscopeError(
                        f"{error.filename or root}: {error.strerror or error}. Mend that and restore once more; until then the "
                        "app does not open the store."
                    ) from error
        finally:
            home.delete(staged)


def _free() -> None:
    """Raises SeqscopeError where a server holds the store, or a job that outlived its server works in its folders. A store that
    cannot be opened at all is what backups are for."""
    jobs = [path for path in (home.root() / "jobs").glob("*") if is_running(path)]
    if jobs:
        named = listed([f"{path.name} (process {status.read(path).pid})" for path in jobs])
        raise SeqscopeError(
            f"Jobs outlive their server, and work in {home.root()} still: {named}. Wait for them, or end them."
        )
    if home.here().database.is_file():
        try:
            Store(home.here().database).close()
        except Held:
            raise
        except SeqscopeError:
            return


def _holds(path: Path) -> bool:
    return path.is_file() or (path.is_dir() and any(path.iterdir()))


def _unpacked(source: Path, staged: Path) -> dict[str, str]:
    """Unpacks regular files with names that a backup may have; name → SHA-256 of what was written."""
    expect_file(source)
    sums: dict[str, str] = {}
    try:
        with tarfile.open(source, "r:") as archive:
            for member in archive:
                if not member.isreg() or not _NAME.fullmatch(member.name) or {"..", "."} & set(member.name.split("/")):
                    raise SeqscopeError(f"{source} is not a backup of Seqscope: it holds {member.name[:200]!r}.")
                target = staged / member.name
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                content, digest = archive.extractfile(member), hashlib.sha256()
                assert content is not None
                with target.open("xb") as file:
                    while part := content.read(_CHUNK):
                        digest.update(part)
                        file.write(part)
                target.chmod(0o600)
                sums[member.name] = digest.hexdigest()
    except (tarfile.TarError, EOFError) as error:
        raise SeqscopeError(f"{source} is not a whole backup: {error}.") from error
    except OSError as error:
        raise SeqscopeError(f"{source} could not be unpacked: {error.strerror or error}.") from error
    return sums


def _checked(staged: Path, sums: dict[str, str]) -> Backup:
    """Compares every file with its checksum, opens the tables, and takes out rows whose files are missing."""
    try:
        about = json.loads((staged / _ABOUT).read_text("utf-8"))
        expected = {str(name): digest for name, digest in dict(json.loads((staged / _SUMS).read_text("utf-8"))).items()}
        form = int(about["form"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise SeqscopeError("The backup is not whole: its list of files is missing or damaged.") from error
    if form != FORM:
        raise SeqscopeError(f"The backup was made by another Seqscope (form {form}; this one knows {FORM}).")
    actual = {name: digest for name, digest in sums.items() if name != _SUMS}
    if actual != expected:
        names = sorted(name for name in {*actual, *expected} if actual.get(name) != expected.get(name))
        raise SeqscopeError(
            f"The backup is damaged: {names[0]} is not what was backed up ({count(len(names), 'such file')})."
        )
    if SNAPSHOT not in actual:
        raise SeqscopeError("The backup is not whole: it has no tables.")
    total = sum((staged / name).stat().st_size for name in actual)
    for name in (_ABOUT, _SUMS):
        (staged / name).unlink()
    with closing(Store(staged / SNAPSHOT)) as store:  # carries out the migrations that it has not seen
        try:
            with store.file.transaction() as transaction:
                for owner, id in store.file.ask("select owner, id from dataset"):
                    if not store.home.dataset(owner, id).path.is_dir():
                        forget(transaction.execute, store.home, owner, id)
        except ValueError as error:  # an owner or an id that is none, or nothing that counts changes
            raise SeqscopeError("The backup is damaged: its tables hold what no Seqscope writes.") from error
        return Backup(len(actual), total, rows_of(store))


def _moved(root: Path, staged: Path) -> Path | None:
    """Puts the new in the place of the old. Interrupted, the store does not open before this was repeated."""
    marker, aside = root / home.RESTORING, f"before-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
    interrupted = marker.is_file()
    before = root / ((marker.read_text("utf-8") if interrupted else "") or aside)
    marker.write_text(before.name, "utf-8")
    try:
        _free()  # unpacking takes long, and whatever keeps servers running may have begun one; from now on none can begin
    except SeqscopeError:
        if not interrupted:
            marker.unlink()
        raise
    for name in (SNAPSHOT, f"{SNAPSHOT}.wal", _NOTE, *_PARTS):
        if _holds(root / name):  # what an interrupted restore had put there goes to a folder of its own
            target = root / aside if (before / name).exists() else before
            target.mkdir(mode=0o700, exist_ok=True)
            (root / name).rename(target / name)
    for name in _PARTS:
        if (root / name).is_dir():
            (root / name).rmdir()
        if (staged / name).is_dir():
            (staged / name).rename(root / name)
    for name in (f"{SNAPSHOT}.wal", SNAPSHOT, _NOTE):
        if (staged / name).is_file():
            (staged / name).rename(root / name)
    home.here().ready()
    marker.unlink()
    return before if before.is_dir() else None


def rows_of(store: Store) -> dict[str, int]:
    """Table → rows."""
    return {
        table: int(store.file.ask(f"select count(*) from {table}")[0][0]) for table in ("dataset", *records.OF_DATASETS)
    }


# --- a copy of the tables, also while a server holds them
#
# The process that holds the file is the only one that can read it. A command therefore asks: it makes a staging folder with a
# file named `wanted` in it, and the server answers with store.duckdb there, or with words in `refused`.

_WANTED, _REFUSED = "wanted", "refused"
PATIENCE = 60.0
"""Seconds to wait for the server that holds the store."""


def take_snapshot(folder: Path) -> Path:
    """Writes the copy into a staging folder (home.stage()). Raises SeqscopeError where it cannot be had."""
    try:
        store = Store()
    except Held as error:
        return _asked_snapshot(folder, error)
    with closing(store):
        return write_snapshot(store, folder)


def expect_store(or_files: bool = False) -> None:
    """Raises SeqscopeError where there never was one, nor, with `or_files`, anybody's files; of one that is gone, opening it says
    so."""
    here = home.here()
    if or_files and any(child for folder in here.folders[1:] if folder.is_dir() for child in folder.iterdir()):
        return
    if not here.database.is_file() and file.read_note(here.database) is None:
        raise SeqscopeError(f"There is no store in {home.root()}: nothing was uploaded or saved there (SEQSCOPE_HOME).")


def write_snapshot(store: Store, folder: Path) -> Path:
    """Writes the copy: as the tables are between two writes."""
    staged, path = folder / f"{SNAPSHOT}.part", folder / SNAPSHOT
    with store.file.alone() as connection:
        (database,) = connection.execute("select current_database()").fetchall()[0]
        connection.execute(f"attach {sql(str(staged))} as copy")
        try:
            connection.execute(f'copy from database "{database}" to copy').fetchall()
            connection.execute("checkpoint copy").fetchall()
        finally:
            connection.execute("detach copy")
    staged.replace(path)
    return path


def answer_snapshots(store: Store) -> int:
    """Writes the copies that commands wait for; how many."""
    done = 0
    for request in (store.home.path / "tmp").glob(f"*/{_WANTED}"):
        request.unlink(missing_ok=True)
        try:
            write_snapshot(store, request.parent)
            done += 1
        except Exception as error:
            log.error("a copy of the store could not be written", exc_info=error)
            with suppress(FileNotFoundError):  # a command that was interrupted took its folder along
                (request.parent / _REFUSED).write_text(str(error), "utf-8")
    return done


def _asked_snapshot(folder: Path, held: Held) -> Path:
    (folder / _WANTED).touch()
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if (folder / SNAPSHOT).is_file():
            return folder / SNAPSHOT
        if (folder / _REFUSED).is_file():
            raise SeqscopeError((folder / _REFUSED).read_text("utf-8") or "The server could not copy its store.")
        time.sleep(0.05)
    raise SeqscopeError(f"{held} It did not answer within {PATIENCE:g} s when it was asked for a copy.")
