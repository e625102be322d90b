"""Work on the datasets of owners: a row in the store says whose it is and how it ended, a folder of the queue what is done.

    work.queue()                                                # this server's; it begins with the first call
    dataset = work.take(owner, "My films", staged, exports=…)   # a checked upload becomes a dataset, its first jobs begin
    work.add_log(owner, dataset.id, staged, exports=…)          # one that was a catalogue alone gets a log
    work.refusal(dataset.id)                                    # why they could not
    work.train(owner, dataset.id, [Choice(model="sasrec")])
    for one in work.of(owner, dataset.id): one.row, one.status, one.ahead
    work.cancel(owner, job); work.retry(owner, job); work.log(owner, job)

Nothing here needs Streamlit. A job lives on when the browser closes; when the server ends, the next one finds it.
"""

import atexit
import contextlib
import ipaddress
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from app import home
from app.jobs import fresh, kinds, spec
from app.jobs.kinds import TrainingChoice
from app.jobs.queue import Queue
from app.jobs.status import Status
from app.jobs.turns import Ahead
from app.store import records
from app.store.database import Store
from app.store.records import ENDED, Job, JobKind, NotFound, StoredDataset
from app.store.server import open_store
from app.uploads import files
from app.uploads.clean import fingerprint
from engine.errors import SeqscopeError
from engine.files import read_json, write_json
from engine.runtime import Zoo
from engine.runtime.zoo import IDENTIFIERS, SPACES

_QUEUES: dict[Path, Queue] = {}
_NETWORKS: OrderedDict[str, str] = OrderedDict()
"""Owner → the network that they came from last."""
_REFUSED: OrderedDict[str, str] = OrderedDict()
"""Dataset → why its first jobs could not be asked for; forgotten when they are, and when the server ends."""
_LOCK = threading.Lock()
_ADDING = threading.Lock()
"""Of two tabs that add a log to one dataset, the second finds that of the first."""
LOST = "The server ended before it could begin."
GONE = "Its files are not on the server any more, or are damaged."
_SUBMITTED = timedelta(minutes=1)
"""The folder of a job appears within this time after its row."""


@dataclass(frozen=True)
class Work:
    """A job as its owner sees it."""

    row: Job
    job: spec.Job | None
    """None: its folder is gone or damaged."""
    status: Status
    ahead: Ahead
    """Jobs that come before it."""
    cancelling: bool

    @property
    def over(self) -> bool:
        return self.row.state in ENDED


def queue() -> Queue:
    """This server's queue of jobs. Raises SeqscopeError where the store cannot be had."""
    store = open_store()
    path = store.home.path / "jobs"
    with _LOCK:
        if path not in _QUEUES:
            made = Queue(
                path,
                on_change=lambda job, now: _store_status(store, job, now),
                allowed=lambda job: _allowed(store, job),
            )
            for row in store.unfinished():
                _unless_gone(store, made, row)
            for dataset in store.without_events():
                with contextlib.suppress(SeqscopeError, OSError, ValueError):  # damaged, say
                    _count_log(store, dataset)
            made.start()
            atexit.register(made.stop)
            _QUEUES[path] = made
        return _QUEUES[path]


def close() -> None:
    """Ends this server's part of it. Runners live on."""
    with _LOCK:
        while _QUEUES:
            _QUEUES.popitem()[1].stop()


# --- datasets


def take(
    owner: str,
    title: str,
    staged: Path,
    *,
    exports: Path,
    reading: Mapping[str, Any] | None = None,
    fingerprint: str = "",
    items: int = 0,
) -> StoredDataset:
    """Makes a dataset of a staged folder whose upload was accepted (clean/ is there), and asks for its first jobs (`begin`).

    exports: the server's own zoos, whose models may be carried over. items: as the check counted them, with those that the log
    alone has; 0 for the catalogue's. Raises SeqscopeError; the staged folder then stays.
    """
    rows, events = _rows(staged / kinds.ITEMS), _rows(staged / kinds.LOG)
    if rows is None:
        raise SeqscopeError("The upload has not been checked yet.")
    store = open_store()
    dataset = store.datasets.add(
        owner, title, staged=staged, state="checked", rows_items=items or rows, rows_events=events or 0, reading=reading,
        fingerprint=fingerprint,
    )  # fmt: skip
    with contextlib.suppress(SeqscopeError):  # the dataset is there; its card says why, and offers to begin
        begin(owner, dataset.id, exports=exports)
    return store.datasets.get(owner, dataset.id)


def add_log(owner: str, id: str, staged: Path, *, exports: Path, items: int = 0) -> StoredDataset:
    """Gives a dataset that is a catalogue alone the accepted log of a staged folder, and asks for its first jobs (`begin`).

    What was made of the catalogue stays until they have something in its place. items: as for `take`. Raises SeqscopeError; the
    dataset is then as it was.
    """
    store, folder = open_store(), home.here().dataset(owner, id)
    with _ADDING:
        dataset = store.datasets.get(owner, id)
        if dataset.rows_events:
            raise SeqscopeError("The dataset has a log already. Bring the catalogue with the other log as a new one.")
        if any(not entry.over for entry in of(owner, id)):
            raise SeqscopeError("Its preparation has not ended yet. Wait for it, or cancel it.")
        events = _rows(staged / kinds.LOG)
        if not events:
            raise SeqscopeError("The log has not been checked yet.")
        store.quota.check(owner, bytes=store.quota.more(owner, staged), rows=events)
        try:
            files.add_log(staged, folder.path)
            _count_log(store, dataset, items)
        except BaseException:
            store.datasets.get(owner, id)  # where another tab has deleted it, nothing is to be undone, and this says so
            files.take_back_log(staged, folder.path)
            raise
    store.datasets.measure(owner, id)
    with contextlib.suppress(SeqscopeError):  # as in `take`
        begin(owner, id, exports=exports)
    return store.datasets.get(owner, id)


def _count_log(store: Store, dataset: StoredDataset, items: int = 0) -> None:
    """The row says of the log that lies with the catalogue, also after a server that was killed before it could."""
    folder = home.here().dataset(dataset.owner, dataset.id)
    if events := _rows(folder.path / kinds.LOG):
        store.datasets.change(
            dataset.owner, dataset.id, rows_items=items or dataset.rows_items, rows_events=events,
            reading=files.as_stored(folder.path), fingerprint=fingerprint(sorted(folder.clean.iterdir())),
        )  # fmt: skip


def rename(owner: str, id: str, title: str) -> StoredDataset:
    """Another title, in the store and in the files that pages read it from."""
    dataset = open_store().datasets.change(owner, id, title=title)
    _write_title(home.here().dataset(owner, id), dataset.title)
    return dataset


def _write_title(folder: home.Folder, title: str) -> None:
    for path in (folder.data / "dataset.json", folder.exports / "dataset.json"):
        about = read_json(path)  # empty where it is not made yet, or being made
        if about and about.get("title") != title:
            with contextlib.suppress(OSError):
                write_json(path, {**about, "title": title})


def log_prepared(folder: home.Folder) -> bool | None:
    """Whether models can learn from a log: it was read, not only uploaded. None where nothing was prepared yet."""
    return fresh.has_log(folder.data)


def log_columns(owner: str, id: str) -> tuple[str, ...]:
    """Of the log; none where there is none."""
    path = home.here().dataset(owner, id).path / kinds.LOG
    return tuple(pq.read_schema(path).names) if path.is_file() else ()


def has_words(owner: str, id: str) -> bool:
    """Whether more than ids is known of the items: without a catalogue, and titles in the log, ids stand in for titles."""
    read = files.readings(home.here().dataset(owner, id).path)
    return "log" not in read or "catalogue" in read or read["log"].column("title") is not None


def sources(exports: Path) -> list[Path]:
    """Bundles of the server that know items by their words and can be carried over to others: one of each name."""
    bundles: dict[str, Path] = {}
    for zoo in Zoo.list(exports):
        for path in sorted(zoo.glob("*/manifest.json")):
            manifest = read_json(path)
            if manifest.get("text") and not manifest.get("zero_shot") and not manifest.get("sentence"):
                bundles.setdefault(path.parent.name, path.parent)
    return list(bundles.values())


def _rows(path: Path) -> int | None:
    return int(pq.read_metadata(path).num_rows) if path.is_file() else None


# --- jobs


def begin(owner: str, id: str, *, exports: Path) -> None:
    """Asks for those of the first jobs of a dataset that nobody has asked for (`unasked`).

    Raises SeqscopeError where the owner has as many jobs as they may, or the queue is full; `refusal` then says so.
    """
    try:
        for kind in unasked(owner, id, of(owner, id)):
            if kind == "baselines":
                baselines(owner, id)
            else:
                prepare(owner, id, exports=exports)
    except SeqscopeError as error:
        _REFUSED[id] = home.shown(str(error))
        while len(_REFUSED) > 10_000:
            _REFUSED.popitem(last=False)
        raise
    _REFUSED.pop(id, None)


def unasked(owner: str, id: str, works: Sequence[Work]) -> list[JobKind]:
    """What a dataset gets by itself and nobody has asked for yet: where there is a log, the models that need no training, within
    seconds; then what takes longer. works: its jobs; one that failed can be tried again as long as its folder is there."""
    folder, log = home.here().dataset(owner, id), bool(log_columns(owner, id))
    read = log_prepared(folder) is not False
    begun = {
        work.row.kind
        for work in works
        if (work.job is not None or work.row.state == "done") and work.row.spec.get("log", read) == log
    }
    there: dict[JobKind, bool] = {
        "baselines": not log
        or any((folder.exports / name / "manifest.json").is_file() for name in kinds.baseline_names()),
        "prepare": read and any((folder.exports / place).is_dir() for place in (IDENTIFIERS, SPACES)),
    }
    if log and not has_words(owner, id):  # nothing of it could be made
        there["prepare"] = there["prepare"] or all(
            "vectors" in each.declaration.needs for each in kinds.tokenizers().values()
        )
    return [kind for kind, made in there.items() if kind not in begun and not made]


def refusal(id: str) -> str:
    """Why the first jobs of a dataset could not be asked for; "" where they could, or nobody knows any more."""
    return _REFUSED.get(id, "")


def _request(job: str, dataset: StoredDataset) -> kinds.JobRequest:
    owner, id = dataset.owner, dataset.id
    folder = home.here().dataset(owner, id).path
    return kinds.JobRequest(
        job, folder, home.root() / "jobs", name=id, title=dataset.title, log=log_columns(owner, id),
        reading=files.readings(folder).get("log"), owner=owner, dataset=id,
    )  # fmt: skip


def _with_log(owner: str, id: str) -> StoredDataset:
    dataset = open_store().datasets.get(owner, id)
    if not log_columns(owner, id):
        raise SeqscopeError("There is no log to learn from.")
    return dataset


def baselines(owner: str, id: str) -> Job:
    """The models that need no training, on the log of the dataset. Raises SeqscopeError."""
    dataset = _with_log(owner, id)
    return submit(
        owner, id, "baselines", {"log": True}, lambda job: kinds.baselines(_request(job, dataset), dataset.rows_items)
    )


def prepare(owner: str, id: str, *, exports: Path) -> Job:
    """What the dataset can show without training. Raises SeqscopeError."""
    dataset, carried = open_store().datasets.get(owner, id), sources(exports)
    about = {"log": bool(log_columns(owner, id))}
    return submit(
        owner, id, "prepare", about, lambda job: kinds.prepare(_request(job, dataset), dataset.rows_items, carried)
    )


def add_index(owner: str, id: str, content: bytes) -> Job:
    """Semantic IDs for the items, in place of those that were brought before, once these can be read. Raises SeqscopeError."""
    store = open_store()
    dataset = store.datasets.get(owner, id)
    store.quota.check(owner, bytes=len(content))
    about, given = {"log": bool(log_columns(owner, id))}, home.here().stage(home.MADE)
    try:
        (given / kinds.INDEX).write_bytes(content)
        return submit(owner, id, "prepare", about, lambda job: kinds.index(_request(job, dataset)), given)
    finally:
        home.here().discard(given)  # nothing where it went along


def train(owner: str, id: str, choices: Sequence[TrainingChoice]) -> Job:
    """Models on the log of the dataset. Raises SeqscopeError."""
    dataset = _with_log(owner, id)
    about = {
        "models": [choice.model for choice in choices],
        "choices": [choice.model_dump(mode="json") for choice in choices],
    }
    return submit(owner, id, "train", about, lambda job: kinds.train(_request(job, dataset), choices))


def of(owner: str, dataset: str) -> list[Work]:
    """The jobs of a dataset, the newest first."""
    jobs = queue()
    return [_work(jobs, row) for row in open_store().jobs.of(owner, dataset)]


def get(owner: str, job: str) -> Work:
    """Raises NotFound."""
    return _work(queue(), open_store().jobs.get(owner, job))


def cancel(owner: str, job: str) -> None:
    queue().cancel(open_store().jobs.get(owner, job).id)


def retry(owner: str, job: str) -> None:
    """Once more, from where it failed; from its beginning, as another job, where its folder is gone or damaged. Raises
    SeqscopeError."""
    store, jobs = open_store(), queue()
    before = store.jobs.get(owner, job)
    if before.kind == "batch":
        raise SeqscopeError("What it was given is not kept. Begin a new one on the page Report.")
    if before.state not in ENDED:
        raise SeqscopeError("The job is waiting or running already.")
    if is_outdated(before):
        raise SeqscopeError("Its dataset has a log since, and this would prepare it without. Prepare it anew.")
    if _job(jobs, job) is None:
        if before.kind == "baselines":
            baselines(owner, before.dataset)
        elif before.kind == "train":
            train(owner, before.dataset, _choices(before))
        else:
            raise SeqscopeError(f"{GONE} Prepare the dataset anew.")
        store.jobs.delete(owner, job)
        return
    store.jobs.change(owner, job, "queued")  # refused where there are too many
    try:
        jobs.retry(job, _NETWORKS.get(owner, ""))
    except SeqscopeError:  # such as a full disk
        store.jobs.change(owner, job, before.state, before.message)
        raise


def is_outdated(row: Job) -> bool:
    """It was asked for before its dataset had a log: its steps would take away what the log gave."""
    return row.spec.get("log") is False and bool(log_columns(row.owner, row.dataset))


def _choices(row: Job) -> list[TrainingChoice]:
    """What a training was to train; with the settings of its recipes where the row is from before these were kept."""
    if "choices" in row.spec:
        return [TrainingChoice.model_validate(choice) for choice in row.spec["choices"]]
    folder = home.here().dataset(row.owner, row.dataset).path
    return [kinds.choose(folder, model, {}) for model in row.spec.get("models", [])]


def forget(owner: str, job: str) -> None:
    """Takes a job that is over, and its log, away. Raises SeqscopeError."""
    open_store().jobs.delete(owner, job)


def log(owner: str, job: str) -> str:
    """What the commands said, the last of it."""
    text = queue().log(open_store().jobs.get(owner, job).id)
    return home.hidden(text)


def submit(
    owner: str,
    dataset: str,
    kind: str,
    about: Mapping[str, Any],
    make: Callable[[str], spec.Job],
    given: Path | None = None,
) -> Job:
    """The row comes first: a folder without one is nobody's. given: a folder that becomes the job's.

    Raises SeqscopeError, QuotaReached among them.
    """
    store, jobs = open_store(), queue()
    row = store.jobs.add(owner, dataset, kind, about)
    try:
        jobs.submit(make(row.id), given, _NETWORKS.get(owner, ""))
    except BaseException:
        store.jobs.change(owner, row.id, "failed", LOST)
        store.jobs.delete(owner, row.id)
        raise
    return row


def came(owner: str, address: str | None) -> None:
    """Notes from where an owner came: their requests share half of the queue's places with others from there."""
    _NETWORKS[owner] = network(address)
    _NETWORKS.move_to_end(owner)
    while len(_NETWORKS) > 10_000:
        _NETWORKS.popitem(last=False)


def network(address: str | None) -> str:
    """The IPv4 address, or the /64 of an IPv6 address, of which one machine has many; "" without one."""
    try:
        ip = ipaddress.ip_address(address or "")
    except ValueError:
        return ""
    ip = getattr(ip, "ipv4_mapped", None) or ip  # ::ffff:192.0.2.1; all of these lie in one /64
    return str(ip) if ip.version == 4 else str(ipaddress.ip_network((ip, 64), strict=False))


def _allowed(store: Store, job: spec.Job) -> int | None:
    """Bytes that the files of job and dataset may take: what they take, and what is left for the owner."""
    try:
        left = store.quota.left(job.owner)
    except SeqscopeError:
        return None  # the server is stopping
    folder = store.home.job(job.id)
    return max(0, left) + sum(home.size(path) for path in {folder.resolve(), job.place(folder)})


def _work(jobs: Queue, row: Job) -> Work:
    job = _job(jobs, row.id)
    if job is None:
        if records.now() - row.created.replace(tzinfo=None) > _SUBMITTED:
            row = _unless_gone(open_store(), jobs, row)
        return Work(row, None, Status(state=row.state, message=row.message), Ahead(0, 0), False)
    return Work(row, job, jobs.status(row.id), jobs.ahead(row.id), jobs.cancelling(row.id))


def _unless_gone(store: Store, jobs: Queue, row: Job) -> Job:
    """The row of a job; one that cannot end any more, since its folder is gone, is damaged or never came, has failed."""
    if row.state in ENDED or _job(jobs, row.id) is not None:
        return row
    never_came = row.started is None and not jobs.folder(row.id).exists()
    return store.jobs.change(row.owner, row.id, "failed", LOST if never_came else GONE)


def _job(jobs: Queue, id: str) -> spec.Job | None:
    """None where its folder is gone or damaged."""
    try:
        return jobs.job(id)
    except SeqscopeError:
        return None


def _store_status(store: Store, job: spec.Job, now: Status) -> None:
    """The queue says how a job is; the store is to say the same."""
    if store.closed.is_set():
        return
    try:
        row = store.jobs.get(job.owner, job.id)
        if row.state == now.state:
            return
        if now.over and job.kind == "batch":
            _settle_batch(store, job, now)
        elif now.over:
            store.jobs.change(job.owner, job.id, row.state)  # which keeps a dataset that has expired meanwhile
            _settle(store, job, now)
        store.jobs.change(job.owner, job.id, now.state, home.shown(now.message))
    except NotFound:  # the dataset was deleted; a job that was asked for in that moment goes, too
        with contextlib.suppress(NotFound):
            store.jobs.change(job.owner, job.id, now.state)
            store.jobs.delete(job.owner, job.id)


def _settle_batch(store: Store, job: spec.Job, now: Status) -> None:
    """What came out stays, and nothing else: neither what was uploaded nor half a result."""
    files = store.home.job(job.id) / spec.FILES
    if now.state != "done":
        store.home.discard(files)
        return
    for path in files.glob("*"):
        if not path.name.startswith("lists."):
            store.home.discard(path)


def _settle(store: Store, job: spec.Job, now: Status) -> None:
    """What a job that is over means for its dataset."""
    dataset, folder = store.datasets.get(job.owner, job.dataset), store.home.dataset(job.owner, job.dataset)
    if folder.opens:
        if dataset.state != "ready":
            store.datasets.change(job.owner, job.dataset, state="ready")
    elif job.kind == "prepare" and now.state != "cancelled":
        store.datasets.change(job.owner, job.dataset, state="failed")
    _write_title(folder, dataset.title)  # the job's commands have the one that it had when the job was made
    for left in folder.path.glob(".exports.*.gone"):
        shutil.rmtree(left, ignore_errors=True)
    store.datasets.measure(job.owner, job.dataset)
