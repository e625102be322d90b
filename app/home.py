"""Where visitors' own data lie: SEQSCOPE_HOME, or var/ of this project. Only the account that runs the app may read it.

    folder = home.here().dataset(owner, id)  # folder.clean, folder.exports, …
    staged = home.here().stage()             # a new folder beside all others, to be renamed into place when it is complete
    home.here().discard(folder.path)         # gone at once, whatever happens; its files are deleted afterwards
    Home(path).dataset(owner, id)            # the same of one folder: what outlives a change of SEQSCOPE_HOME uses this

A store keeps the home in which it lies (`store.home`), and so does everything that works for that store.

    store.duckdb                      rows: app/store; one server process holds it
    owners/<owner>/datasets/<id>/     files of one dataset
    jobs/<id>/                        what a job is to do, and how far it is
    lost/                             what was taken away without anybody's click: app/store/lost.py
    tmp/                              staging, on the same file system so that a rename is one step
    reserve                           room that is given up where the disk is full: app/store/file.py
    store.changes                     how often the store was changed: app/store/file.py

No path is made from a name that came from outside: owners and ids have a form of their own, which is checked here.
"""

import errno
import os
import re
import secrets
import shutil
import string
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from engine.errors import SeqscopeError

OWNER = re.compile(r"[ab][0-9a-f]{32}")
"""a: an account; b: a browser. The rest is a hash."""
ID = re.compile(r"[a-z0-9]{16}")
RESTORING = "restoring"  # a file that is there while a backup is put into place
DRAFT = "draft-"  # folders in tmp/ of uploads that are not finished
MADE = "made-"  # of files that visitors take away or bring, of no use to another server
GONE = "gone-"  # folders in tmp/ that wait to be deleted
DISK_FULL = "The disk of this server is full. Delete what you no longer need, or ask those who run it."
FULL = (errno.ENOSPC, errno.EDQUOT)
_LETTERS = string.ascii_lowercase + string.digits


def root() -> Path:
    """The folder itself; it may not be there yet."""
    return Path(os.environ.get("SEQSCOPE_HOME") or Path(__file__).resolve().parents[1] / "var").absolute()


def new_id() -> str:
    """Nobody can guess it (82 bits)."""
    return "".join(secrets.choice(_LETTERS) for _ in range(16))


# --- folders


@dataclass(frozen=True)
class Folder:
    """The files of one dataset."""

    path: Path

    @property
    def clean(self) -> Path:
        """items.parquet and log.parquet, as the check wrote them."""
        return self.path / "clean"

    @property
    def data(self) -> Path:
        """The prepared dataset (engine/data), only with a log."""
        return self.path / "data"

    @property
    def exports(self) -> Path:
        """The zoo of this dataset; next/ beside it while another takes its place (app/jobs/turn.py)."""
        return self.path / "exports"

    @property
    def opens(self) -> bool:
        """Whether there is something to look at: as soon as the first model is there, not only when all are."""
        return any(self.exports.glob("*/manifest.json")) and (self.exports / "dataset.json").is_file()

    @property
    def cache(self) -> Path:
        """What can be computed again, such as vectors of texts."""
        return self.path / "cache"


@dataclass(frozen=True)
class Home:
    """One folder of visitors' data."""

    path: Path

    @property
    def database(self) -> Path:
        return self.path / "store.duckdb"

    @property
    def lost(self) -> Path:
        return self.path / "lost"

    @property
    def folders(self) -> tuple[Path, ...]:
        """Those that are always there."""
        return (self.path, *(self.path / name for name in ("owners", "jobs", "tmp")))

    def ready(self) -> Path:
        """The folder, made where it was missing. Raises SeqscopeError where it cannot be had."""
        path = self.path
        try:
            for folder in self.folders:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not os.access(path, os.W_OK | os.X_OK):
                raise PermissionError(13, "not writable")
        except OSError as error:
            raise SeqscopeError(
                f"Uploads cannot be kept: {path} cannot be written ({error.strerror}). "
                "Set SEQSCOPE_HOME to a folder that can."
            ) from error
        return path

    def dataset(self, owner: str, id: str) -> Folder:
        return Folder(self.datasets(owner) / _checked(ID, id))

    def datasets(self, owner: str) -> Path:
        """The folder of all datasets of one owner; it may not be there yet."""
        return self.path / "owners" / _checked(OWNER, owner) / "datasets"

    def job(self, id: str) -> Path:
        return self.path / "jobs" / _checked(ID, id)

    # whole folders appear and go in one step

    def stage(self, kind: str = "") -> Path:
        """A new, empty folder that nobody sees; rename it into place when it is complete. kind: what its name begins with."""
        path = self.ready() / "tmp" / f"{kind}{new_id()}"
        path.mkdir(mode=0o700)
        return path

    def draft(self, owner: str) -> Path:
        """As `stage`, for an upload that its owner has not finished."""
        return self.stage(f"{DRAFT}{_checked(OWNER, owner)}-")

    def drafts(self, owner: str | None = None) -> list[Path]:
        """Of one owner or all."""
        whose = "*" if owner is None else f"{_checked(OWNER, owner)}-*"
        return sorted((self.path / "tmp").glob(f"{DRAFT}{whose}"))

    def place(self, staged: Path, target: Path) -> None:
        """Renames what was staged to where it belongs. The target must not be there."""
        for folder in reversed([parent for parent in target.parents if parent.is_relative_to(self.path)]):
            folder.mkdir(mode=0o700, exist_ok=True)
        os.rename(staged, target)

    def discard(self, path: Path) -> None:
        """Takes a folder or file away in one step, then deletes it; what a crash leaves is swept later (app/store/sweep.py)."""
        gone = self.ready() / "tmp" / f"{GONE}{new_id()}"
        try:
            os.rename(path, gone)
        except FileNotFoundError:
            return
        except OSError:  # no room for another name: where it is
            gone = path
        delete(gone)


def _checked(form: re.Pattern[str], text: str) -> str:
    if not form.fullmatch(text):
        raise ValueError(f"not an id: {text!r}")
    return text


def here() -> Home:
    """The home of SEQSCOPE_HOME, as it is now."""
    return Home(root())


# --- files


def hidden(text: str) -> str:
    """The text without folders and processes of this server, which are no visitor's concern: of a path its last part stays."""
    folders = {root(), Path(__file__).resolve().parents[1], Path(tempfile.gettempdir()), Path(sys.prefix), Path.home()}
    folders |= {
        Path(path).absolute() for name in ("SEQSCOPE_EXPORTS", "SEQSCOPE_WORDS") if (path := os.environ.get(name))
    }
    folders |= {folder.resolve() for folder in folders}  # /tmp of macOS is /private/tmp
    for folder in sorted(map(str, folders), key=len, reverse=True):
        if len(folder) > 1:
            text = re.sub(rf"{re.escape(folder)}(?:/[^\s\"'“”:,;()/]*)*", lambda path: Path(path[0]).name, text)
    return re.sub(r" ?\((?:process|PID|pid) \d+\)| (?:process|PID|pid) \d+\b", "", text)


def free_bytes(folder: Path) -> int:
    """Bytes that this account may still write on its disk."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def says_full(words: str) -> bool:
    """Whether a library or command says what the system says of a full disk."""
    return any(os.strerror(number) in words for number in FULL)


def shown(words: str) -> str:
    """What a visitor reads of words that a library or command ended with."""
    return DISK_FULL if says_full(words) else hidden(words)


def delete(path: Path) -> None:
    """Deletes a folder or file that nobody needs; what cannot be deleted now is left for the next sweep."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def size(path: Path) -> int:
    """Bytes of all files below a folder."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except OSError:  # it went meanwhile
                continue
    return total
