"""The exported models, opened once and shared by all visitors.

models = zoo.open_zoo(state.get().dataset)    # engine.runtime.Zoo; "no such dataset" where it is another visitor's
zoo.style(models, "sasrec").colour            # the same on every page
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

from app import home
from app.analysis.cache import Opened, cached, forget, waiting
from app.store import prepared
from app.store.catalogue import Catalogue
from app.store.server import open_store
from app.styles import Style, dotted, style, titled  # noqa: F401  (pages take them from here)
from app.text import distinct
from engine.bundle import items
from engine.errors import SeqscopeError
from engine.files import read_json
from engine.machine import whole_number
from engine.runtime import Zoo, embedded_first

_run = threading.local()  # Streamlit runs a page in one thread


_session = SimpleNamespace(visitor=lambda: None)
"""What the app put in: who looks. Until then everybody sees the server's datasets alone."""


def visitors(find: Callable[[], str | None]) -> None:
    """find: the owner's id of whoever looks; None where they have none."""
    _session.visitor = find


def _visitor() -> str | None:
    owner: str | None = _session.visitor()
    return owner


# --- what there is


def root() -> Path:
    """The folder of exports: SEQSCOPE_EXPORTS, or exports/ of this project."""
    return Path(os.environ.get("SEQSCOPE_EXPORTS") or Path(__file__).resolve().parents[1] / "exports").absolute()


class Place(NamedTuple):
    """A dataset that somebody may look at."""

    path: Path
    title: str
    own: bool
    """It was uploaded by the one who looks."""


def visible_datasets(who: str | None) -> dict[str, Place]:
    """Name in addresses → dataset, of all that this owner may see: the server's, the embedded ones first, then their own.

    Nothing else in the app leads to the files of a dataset. None: nobody, who sees the server's.
    """
    title_of = {path.name: _title(str(path), _changed(path / "dataset.json")) for path in Zoo.list(root())}
    ordered = sorted(distinct(title_of).items(), key=lambda entry: (embedded_first(entry[0]), entry[1].casefold()))
    return {**{name: Place(root() / name, title, False) for name, title in ordered}, **_own(who)}


def _own(who: str | None) -> dict[str, Place]:
    """The owner's datasets that can be opened, the newest first."""
    if who is None:
        return {}
    try:
        store = open_store()
        store.on_delete(_close)
        if not home.here().datasets(who).is_dir():
            return {}  # as for nearly everybody, and sooner known than by asking the store
        ready = [dataset for dataset in store.datasets.of(who) if home.here().dataset(who, dataset.id).opens]
    except SeqscopeError:  # the page Your data says why
        return {}
    titles = [dataset.title for dataset in ready]
    return {
        dataset.id: Place(
            home.here().dataset(who, dataset.id).exports,
            f"{dataset.title} (yours)"
            if titles.count(dataset.title) == 1
            else f"{dataset.title} (yours, of {dataset.created:%-d %b %H:%M})",
            True,
        )
        for dataset in ready
    }


def _close(folder: Path) -> None:
    """Of a dataset that was deleted nothing stays in memory."""
    _OPEN.clear(str(home.Folder(folder).exports))
    _OPEN.retry()  # there may be room now
    forget()


def datasets() -> dict[str, str]:
    """Name → title of every dataset that the visitor may look at, no title of the server's twice, the embedded ones first."""
    return {name: place.title for name, place in _places().items()}


def is_own(name: str) -> bool:
    """Whether the visitor uploaded it."""
    place = _places().get(name)
    return place is not None and place.own


def own_stamp(name: str) -> str:
    """Another one when there is more to look at of a dataset that the visitor uploaded; "" of the server's."""
    place = _places().get(name)
    return Zoo.stamp(place.path) if place is not None and place.own else ""


def keep(name: str) -> None:
    """A dataset of the visitor's that is looked at is kept for longer."""
    owner = _visitor() if is_own(name) else None
    if owner is not None:
        with suppress(SeqscopeError):
            open_store().datasets.use(owner, name)


def _places() -> dict[str, Place]:
    """The visitor's, found once where a run is `looked_at_once`."""
    seen: dict[str, Place] | None = getattr(_run, "places", None)
    if seen:
        return seen
    places = visible_datasets(_visitor())
    if seen is not None:
        seen.update(places)
    return places


def open_folder(path: str) -> Zoo:
    """As `open_zoo`, of a `folder` that the visitor was found to see: for work that goes on without a session."""
    return _OPEN.get(path).zoo.sound()


def open_zoo(name: str) -> Zoo:
    """The models of one dataset but those that came to no end; opened anew where its folder has changed. Raises SeqscopeError."""
    seen: dict[str, Zoo] | None = getattr(_run, "seen", None)
    if seen is None:
        return open_folder(folder(name))
    if name not in seen:
        seen[name] = open_folder(folder(name))
    return seen[name]


@contextmanager
def looked_at_once() -> Iterator[None]:
    """Within, a dataset's folder is looked at once: a page asks for its models a dozen times, and they had better be the same."""
    _run.seen, _run.places = {}, {}
    try:
        yield
    finally:
        _run.seen = _run.places = None


def open_catalogue(name: str) -> Catalogue:
    """The searchable catalogue of one dataset. Raises SeqscopeError."""
    return _OPEN.get(folder(name)).catalogue


class _Opened(NamedTuple):
    zoo: Zoo
    catalogue: Catalogue


def folder(name: str) -> str:
    """Where the dataset lies. Raises SeqscopeError: "no such dataset" where it is another visitor's."""
    # never a path made from a name that came from outside
    if not getattr(_run, "places", None):
        for path in Zoo.list(root()):  # everybody's: no need to ask whose
            if path.name == name:
                return str(path)
    place = _places().get(name)
    if place is None:
        raise SeqscopeError(f"There is no dataset “{name}” here. It may have been deleted: reload the page.")
    return str(place.path)


def _open(path: str) -> _Opened:
    folder = Path(path)
    if not items.are_many(folder):
        zoo = Zoo.open(folder, warm=True)
        return _Opened(zoo, Catalogue(zoo.items))
    many = prepared.open_(folder, making=partial(_counted, folder))
    return _Opened(Zoo.open(folder, warm=True, items=many.items), many.catalogue)


@contextmanager
def _counted(folder: Path, size: int) -> Iterator[None]:
    """What is prepared of a visitor's dataset counts as theirs. Raises QuotaReached."""
    owners = home.root() / "owners"
    if not folder.is_relative_to(owners):
        yield
        return
    who, _, id = folder.relative_to(owners).parts[:3]
    store = open_store()
    store.quota.check(who, bytes=size)
    yield
    store.datasets.measure(who, id)


def _size(opened: _Opened) -> int:
    """Bytes of memory, about: the catalogue, and of the bundles what they hold of their files."""
    files = [file for bundle in opened.zoo.bundles.values() for file in bundle.manifest.files.items()]
    held = sum(file.bytes for name, file in files if name.endswith((".npy", ".onnx")))
    return opened.catalogue.memory + opened.zoo.users.nbytes + held


def most_memory() -> int:
    """Bytes that all opened datasets may take: SEQSCOPE_OPEN_MB, or 1,000 MB. Raises SeqscopeError."""
    return whole_number("SEQSCOPE_OPEN_MB", 1_000, most=9_999_999) * 1_000_000


_OPEN: Opened[_Opened] = Opened(
    _open,
    stamp=Zoo.stamp,
    size=_size,
    most=most_memory,
    sound=lambda opened: not opened.catalogue.damaged,
    waiting=lambda: waiting("Opening the models …"),
)


@cached(64)
def _title(path: str, changed: int) -> str:
    title = read_json(Path(path) / "dataset.json").get("title")  # opening it says what is wrong
    return title if isinstance(title, str) and title else Path(path).name


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
