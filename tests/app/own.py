"""Datasets of visitors, without uploads and without processes."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from app import home, work
from app.jobs import spec, status
from app.jobs.queue import Queue
from app.jobs.status import Part, Status
from app.store.database import Store
from app.store.records import StoredDataset
from app.store.server import open_store
from app.uploads import OnProgress, child, runner
from app.uploads.limits import UploadLimits
from app.uploads.runner import UploadFailed
from tests.app.conftest import at_page
from tests.runtime.bundles import make_zoo
from tests.waiting import wait

ANNA, BEN = "b" + "a" * 32, "b" + "b" * 32
TICK = 0.02


class Nobody:
    """Starts no process; `at_work` are those that seem to have one."""

    def __init__(self) -> None:
        self.started: list[str] = []

    def start(self, folder: Path) -> None:
        self.started.append(folder.name)

    def alive(self, folder: Path) -> bool:
        return folder.name in self.started and not status.read(folder).over

    def stop(self, folder: Path) -> None:
        pass


def read_here(
    request: dict[str, Any], work: Path, limits: UploadLimits, say: OnProgress, *more: object
) -> dict[str, Any]:
    """In place of a child for each look at a file, which takes a second to begin; tests/uploads/test_runner.py has those."""
    answer = child._answer(request, say)
    if "refused" in answer:
        raise UploadFailed(home.hidden(str(answer["refused"])))
    return dict(answer["result"])


@contextmanager
def own_home(path: Path, patch: pytest.MonkeyPatch) -> Iterator[Nobody]:
    """A store and a queue that begin empty and end with the block; files are read in this process."""
    launcher = Nobody()
    patch.setenv("SEQSCOPE_HOME", str(path))
    patch.setattr(work, "Queue", partial(Queue, launcher=launcher, tick=TICK))
    patch.setattr(runner, "_run", read_here)
    try:
        yield launcher
    finally:
        work.close()
        open_store().close()


def stage(items: int = 40, events: int = 0) -> Path:
    """What the upload leaves when it was accepted."""
    folder = home.here().stage()
    (folder / "clean").mkdir()
    ids = [f"toy-{n}" for n in range(items)]
    pq.write_table(
        pa.table({"item_id": ids, "title": [f"Toy {n}" for n in range(items)]}), folder / "clean/items.parquet"
    )
    if events:
        log = {"user": [f"u{n % 5}" for n in range(events)], "item": [ids[n % items] for n in range(events)]}
        pq.write_table(pa.table({**log, "time": list(range(events))}), folder / "clean/log.parquet")
    return folder


def ready(owner: str, title: str, *, events: int = 0) -> StoredDataset:
    """A dataset with a zoo of toys."""
    store: Store = open_store()
    dataset = store.datasets.add(
        owner, title, staged=stage(events=events), state="ready", rows_items=40, rows_events=events
    )
    folder = home.here().dataset(owner, dataset.id)
    made = make_zoo(folder.path / "made", name="toys")
    shutil.move(made, folder.exports)
    return dataset


def put(job: str, now: Status) -> None:
    """As if a runner had written it; returns when the queue has told the store."""
    folder = home.here().job(job)
    steps = len(spec.read(folder).steps)
    parts = now.parts or (Part(state="done" if now.state == "done" else "waiting"),) * steps
    now.model_copy(update={"parts": parts}).write(folder)
    wait(lambda: open_store().file.ask("select state from job where id = ?", [job]) == [(now.state,)])


def page(root: Path, owner: str, **address: str) -> AppTest:
    """Your data, as this owner sees it."""
    return visit(root, owner, "your_data", **address)


def visit(root: Path, owner: str, name: str = "", **address: str) -> AppTest:
    """A page of the app, its first one unless named."""
    test = at_page(root, name, **address)
    test.session_state["seqscope_session_owner"] = test.session_state["seqscope_owner"] = owner
    test.run()
    assert not test.exception
    return test


def said(test: AppTest) -> str:
    kinds = ("title", "header", "subheader", "caption", "info", "warning", "error", "success", "markdown")
    return "\n".join(str(one.value) for kind in kinds for one in getattr(test, kind))
