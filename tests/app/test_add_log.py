"""A catalogue that was brought alone gets a log: checked against it, and nothing goes before the new is there."""

import json
import os
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from app import home, work
from app.jobs import fresh, spec
from app.jobs.status import Status
from app.store.records import NotFound, StoredDataset
from app.store.server import open_store
from app.uploads import files
from app.uploads.limits import UploadLimits
from app.uploads.runner import UploadFailed
from engine.errors import SeqscopeError
from engine.files import write_json
from tests.app.own import ANNA, BEN, page, put, ready, said

LOG = "user,item,time\n" + "".join(f"u{n % 4},toy-{n},{1_700_000_000 + 60 * n}\n" for n in range(20))
MESSY = LOG + "u1,nothing,1700000000\nu1,toy-1,never\n"


pytestmark = pytest.mark.usefixtures("launcher")


@pytest.fixture
def shop(tmp_path: Path) -> StoredDataset:
    """A catalogue of 40 toys, uploaded, prepared and shown."""
    dataset = ready(ANNA, "My shop")
    folder = home.here().dataset(ANNA, dataset.id)
    content = "item_id,title\n" + "".join(f"toy-{n},Toy {n}\n" for n in range(40))
    limits = UploadLimits.of_environment()
    files.keep(folder.path, "catalogue", content.encode(), limits)
    reading = files.guess(folder.path, "catalogue", limits).reading
    write_json(folder.path / "upload" / files.READING, {"catalogue": reading.model_dump()})
    about = json.loads((folder.exports / "dataset.json").read_text("utf-8"))
    folder.data.mkdir()
    (folder.data / "dataset.json").write_text(json.dumps(about | {"counts": {**about["counts"], "events": 0}}))
    return dataset


def drop(test: AppTest, dataset: StoredDataset, content: str) -> None:
    test.button(key=f"data_addlog_{dataset.id}").click().run()
    (file,) = [one for one in test.file_uploader if (one.key or "").startswith(f"later_{dataset.id}_")]
    file.set_value(("my.csv", content.encode(), "text/csv")).run()
    assert not test.exception, test.exception


def later(test: AppTest, dataset: StoredDataset, *words: str) -> None:
    """Presses a button of the part for the log."""
    begin = "_".join(("later", dataset.id, *words))
    (found,) = [one for one in test.button if (one.key or "").startswith(begin)]
    found.click().run()
    assert not test.exception, test.exception


def test_a_catalogue_in_place_of_a_log_is_called_so(root: Path, shop: StoredDataset) -> None:
    test = page(root, ANNA)
    drop(test, shop, "item_id,title\ntoy-1,Toy 1\ntoy-2,Toy 2\ntoy-3,Toy 3\n")
    assert "Its columns are those of a catalogue. A log has one event per row: a user, an item" in said(test)


def test_a_log_comes_later(root: Path, shop: StoredDataset) -> None:
    test = page(root, ANNA)
    drop(test, shop, MESSY)
    later(test, shop, "check")
    text = said(test).replace("\\", "")
    assert "21 of 22 rows can be used" in text and "1 × time that cannot be read, in the log" in text
    assert "1 × item of the log that the catalogue lacks, in the log" in text and "1 event, 4.8% of all" in text
    assert not [one for one in test.text_input if (one.key or "").startswith("later")]  # it has a title
    assert "The dataset will have 41 items, 21 events and 4 users" in text
    shown = sorted(path.name for path in home.here().dataset(ANNA, shop.id).exports.iterdir())
    later(test, shop, "use")
    assert not [one for one in test.button if (one.key or "").startswith(("data_nolog", "data_addlog", "later"))]
    found = open_store().datasets.get(ANNA, shop.id)
    assert (found.rows_items, found.rows_events, found.title) == (41, 21, "My shop")
    assert set(found.reading) == {"catalogue", "log"} and found.fingerprint not in ("", shop.fingerprint)
    folder = home.here().dataset(ANNA, shop.id)
    assert pq.read_metadata(folder.clean / "log.parquet").num_rows == 21
    assert files.find(folder.path, "log") is not None and files.find(folder.path, "catalogue") is not None
    assert not [path for path in (home.root() / "tmp").iterdir()]
    # what was made of the catalogue is there, and stays until the new is ready
    assert sorted(path.name for path in folder.exports.iterdir()) == shown
    one, first = work.of(ANNA, shop.id)
    assert (one.row.kind, first.row.kind) == ("prepare", "baselines")
    for job in (one.job, first.job):
        assert job is not None
        words = [step.words for step in job.steps]
        assert words[0][:2] == ("data", "import") and words[-1] == ("data", "next", "exports")
        assert not any("exports" in step.words for step in job.steps[:-1])
    put(first.row.id, Status(state="running", progress=0.2, words="Read the log"))
    test = page(root, ANNA)
    assert not test.button(key=f"data_open_{shop.id}").disabled and "Being prepared" in said(test)
    assert "The log must be prepared first" in said(test)
    assert not [one for one in test.button if (one.key or "").startswith("data_addlog")]


def test_a_log_of_another_catalogue_is_refused(root: Path, shop: StoredDataset) -> None:
    test = page(root, ANNA)
    drop(test, shop, LOG.replace("toy-", "car-"))
    later(test, shop, "check")
    assert "no item of the log is in the catalogue" in "\n".join(one.value for one in test.error).lower()
    assert not [one for one in test.button if (one.key or "").endswith(("use_0", "alone_0"))]
    later(test, shop, "discard")
    assert [one for one in test.file_uploader if (one.key or "").startswith(f"later_{shop.id}_")]
    test.button(key=f"data_nolog_{shop.id}").click().run()
    assert not [one for one in test.file_uploader if (one.key or "").startswith("later")]
    assert open_store().datasets.get(ANNA, shop.id).rows_events == 0
    assert not [path for path in (home.root() / "tmp").iterdir()]


def staged(events: int = 20) -> Path:
    folder = home.here().stage()
    (folder / "clean").mkdir()
    log = {"user": [f"u{n % 5}" for n in range(events)], "item": [f"toy-{n}" for n in range(events)]}
    pq.write_table(pa.table(log), folder / "clean" / "log.parquet")
    files.keep(folder, "log", b"user,item\n", UploadLimits.of_environment())
    return folder


def full(*asked: object, **changes: object) -> None:
    raise OSError(28, "No space left on device")


def test_what_is_refused_leaves_the_dataset_as_it_was(
    root: Path, shop: StoredDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    exports, folder = root / "exports", home.here().dataset(ANNA, shop.id)
    for who, log, why in ((BEN, staged(), "no such dataset"), (ANNA, home.here().stage(), "not been checked")):
        with pytest.raises(SeqscopeError, match=why):
            work.add_log(who, shop.id, log, exports=exports)
    with monkeypatch.context() as patch:
        patch.setenv("SEQSCOPE_QUOTA_ROWS", "50")
        with pytest.raises(SeqscopeError, match="20 rows more"):
            work.add_log(ANNA, shop.id, staged(), exports=exports)
    row = work.prepare(ANNA, shop.id, exports=exports)
    with pytest.raises(SeqscopeError, match="has not ended"):
        work.add_log(ANNA, shop.id, staged(), exports=exports)
    put(row.id, Status(state="done", progress=1.0))
    with monkeypatch.context() as patch:
        patch.setattr(type(open_store().datasets), "change", full)
        log = staged()
        with pytest.raises(OSError, match="No space"):
            work.add_log(ANNA, shop.id, log, exports=exports)
        assert (log / "clean" / "log.parquet").exists() and files.find(log, "log") is not None
        assert set(files.readings(folder.path)) == {"catalogue"}
    assert not (folder.clean / "log.parquet").exists() and files.find(folder.path, "log") is None
    assert open_store().datasets.get(ANNA, shop.id).rows_events == 0
    monkeypatch.setenv("SEQSCOPE_QUOTA_JOBS", "0")  # the log is kept, and its preparation can be asked for later
    work.add_log(ANNA, shop.id, staged(), exports=exports)
    assert len(work.of(ANNA, shop.id)) == 1 and "at most 0" in work.refusal(shop.id)
    with pytest.raises(SeqscopeError, match="has a log already"):
        work.add_log(ANNA, shop.id, staged(), exports=exports)
    with pytest.raises(UploadFailed, match="not been checked"):
        files.add_log(home.here().stage(), folder.path)


@pytest.mark.parametrize("name", ["log-", "log.parquet"])
def test_a_move_that_fails_leaves_dataset_and_upload_as_they_were(
    root: Path, shop: StoredDataset, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    log, folder, replace = staged(), home.here().dataset(ANNA, shop.id), os.replace

    def refuse(source: Path, target: Path) -> None:
        if target.is_relative_to(folder.path) and target.name.startswith(name):
            full()
        replace(source, target)

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(os, "replace", refuse)
        work.add_log(ANNA, shop.id, log, exports=root / "exports")
    assert not (folder.clean / "log.parquet").exists() and files.find(folder.path, "log") is None
    assert set(files.readings(folder.path)) == {"catalogue"}
    assert work.add_log(ANNA, shop.id, log, exports=root / "exports").rows_events == 20


def test_what_was_asked_of_the_catalogue_alone_is_not_tried_again_once_there_is_a_log(
    root: Path, shop: StoredDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its steps would read the catalogue without the log, and what the log gave would go."""
    row = work.prepare(ANNA, shop.id, exports=root / "exports")
    put(row.id, Status(state="failed", message="No."))
    monkeypatch.setenv("SEQSCOPE_QUOTA_JOBS", "0")
    work.add_log(ANNA, shop.id, staged(), exports=root / "exports")
    monkeypatch.delenv("SEQSCOPE_QUOTA_JOBS")
    with pytest.raises(SeqscopeError, match="has a log since"):  # by a tab that shows the card as it was
        work.retry(ANNA, row.id)
    assert work.get(ANNA, row.id).over
    test = page(root, ANNA)
    assert not [one for one in test.button if (one.key or "").startswith("data_retry")]
    test.button(key=f"data_prepare_{shop.id}").click().run()
    assert len(work.of(ANNA, shop.id)) == 3


def test_a_log_whose_server_was_killed_before_its_row_is_counted_by_the_next(root: Path, shop: StoredDataset) -> None:
    files.add_log(staged(), home.here().dataset(ANNA, shop.id).path)
    work.close()
    work.queue()
    row = open_store().datasets.get(ANNA, shop.id)
    assert row.rows_events == 20 and row.fingerprint not in ("", shop.fingerprint) and "catalogue" in row.reading
    with pytest.raises(SeqscopeError, match="has a log already"):
        work.add_log(ANNA, shop.id, staged(), exports=root / "exports")


def test_of_two_tabs_one_alone_adds_its_log(root: Path, shop: StoredDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    exports, first, second = root / "exports", staged(20), staged(12)
    moved, refused = files.add_log, []

    def other_tab() -> None:
        with pytest.raises(SeqscopeError, match="has a log already"):
            work.add_log(ANNA, shop.id, second, exports=exports)
        refused.append(second)

    thread = threading.Thread(target=other_tab)

    def slow(log: Path, folder: Path) -> None:
        if not thread.is_alive():
            thread.start()
            thread.join(0.3)
        moved(log, folder)

    monkeypatch.setattr(files, "add_log", slow)
    work.add_log(ANNA, shop.id, first, exports=exports)
    thread.join(10)
    log = home.here().dataset(ANNA, shop.id).clean / "log.parquet"
    assert refused and pq.read_metadata(log).num_rows == 20


def test_a_dataset_that_another_tab_deletes_meanwhile_is_said_to_be_gone(
    root: Path, shop: StoredDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, move = staged(), files.add_log

    def late(log: Path, folder: Path) -> None:
        open_store().datasets.delete(ANNA, shop.id)
        move(log, folder)

    monkeypatch.setattr(files, "add_log", late)
    with pytest.raises(NotFound, match="no such dataset"):
        work.add_log(ANNA, shop.id, log, exports=root / "exports")


def test_another_title_is_no_other_dataset(root: Path, shop: StoredDataset) -> None:
    folder = home.here().dataset(ANNA, shop.id)
    made = work.prepare(ANNA, shop.id, exports=root / "exports")
    assert fresh.has_log(folder.data) is False
    words = [step.words for step in spec.read(home.here().job(made.id)).steps]
    assert ("data", "exports", "runs") in words and not any("next" in one for one in words)
    work.rename(ANNA, shop.id, "Our shop")
    about = folder.exports / "dataset.json"
    write_json(about, json.loads(about.read_text("utf-8")) | {"title": shop.title})  # as the job's commands write it
    work._settle(open_store(), spec.read(home.here().job(made.id)), Status(state="done", progress=1.0))
    assert json.loads(about.read_text("utf-8"))["title"] == "Our shop"
