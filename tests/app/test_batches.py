"""Lists for many histories are jobs of their owner: found again after a reload and a new server, cancelled, nobody else's."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from app import batches, home, work
from app.jobs import spec
from app.jobs.runner import ALLOWED
from app.jobs.spec import FILES
from app.jobs.status import Status
from app.store.quota import QuotaReached
from app.store.records import Job
from app.store.server import open_store
from engine.errors import SeqscopeError
from tests.app.own import ANNA, BEN, Nobody, page, put, ready, said, visit
from tests.waiting import wait


def start(zoo: Path, content: bytes | None = None, *, owner: str = ANNA, own: str = "") -> Job:
    given = home.here().stage()
    if content is not None:
        (given / "histories.csv").write_bytes(content)
    asked = {"models": ["alpha", "popular"], "k": 3, "form": "parquet", "titles": False, "name": "mine.parquet"}
    return batches.start(owner, own or zoo.name, zoo, is_own=bool(own), given=given, **asked)


def report(root: Path, owner: str = ANNA, dataset: str = "toys") -> AppTest:
    return visit(root, owner, "report", ds=dataset, h="toy-9" if dataset == "toys" else "")


def keys(test: AppTest, kind: str) -> list[str]:
    return [one.proto.label for one in test.get(kind)]


def test_a_job_may_make_as_much_as_its_owner_has_left(
    launcher: Nobody, exports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQSCOPE_QUOTA_BYTES", "1000000")
    open_store().histories.save(ANNA, "toys", "long", ["x" * 400] * 100)
    file = home.here().job(start(exports / "toys").id) / ALLOWED
    wait(file.exists)
    assert 955_000 < int(file.read_text()) < 965_000  # what lies there already counts
    store, job = open_store(), spec.read(file.parent)
    with monkeypatch.context() as patch:
        patch.setenv("SEQSCOPE_HOME", str(file.parents[2] / "another"))  # the queue's thread goes on with its own
        assert work._allowed(store, job) == int(file.read_text())


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A queue that starts processes."""
    monkeypatch.setenv("SEQSCOPE_HOME", str(tmp_path / "home"))
    yield
    work.close()
    open_store().close()


@pytest.mark.usefixtures("real")
def test_it_runs_and_is_there_for_the_next_server(exports: Path) -> None:
    job = start(exports / "toys", b"user,item\nann,toy-9\nann,toy-12\nbob,toy-20\nbob,nope\n")
    work.close()  # the server ends; its successor finds the job
    wait(lambda: work.get(job.owner, job.id).over, 120)
    one = work.get(job.owner, job.id)
    path = batches.result(one)
    assert one.row.state == "done", one.row.message
    assert path is not None and {row["history"] for row in pq.read_table(path).to_pylist()} == {"ann", "bob"}
    assert [file.name for file in path.parent.iterdir()] == [path.name]  # what was uploaded is gone
    assert batches.summary(one).startswith("2 histories, 12 rows") and "1 event of unknown" in batches.summary(one)
    assert open_store().quota.usage(ANNA).bytes >= path.stat().st_size
    with pytest.raises(SeqscopeError, match="not kept"):
        work.retry(ANNA, job.id)
    work.forget(ANNA, job.id)
    assert not path.exists() and batches.of(ANNA) == []


def test_the_page_finds_it_again(root: Path, exports: Path, launcher: Nobody) -> None:
    test = report(root)
    test.button(key="report_batch_start").click().run()
    (one,) = batches.of(ANNA, "toys")
    assert one.job is not None and one.job.kind == "batch" and "--bounded" in one.job.steps[0].words
    assert one.job.steps[0].words[3] == "people" and one.row.spec["k"] == 10
    assert any("· Alpha" in caption.value for caption in test.caption)
    wait(lambda: launcher.started == [one.row.id])
    put(one.row.id, Status(state="running", words="Lists for many histories: Alpha", progress=0.4))
    for again in (test.run(), page(root, ANNA)):
        assert f"data_cancel_{one.row.id}" in [button.key for button in again.button]
        assert "report_batch_start" not in [button.key for button in again.button]
    other = report(root, BEN)
    assert f"data_cancel_{one.row.id}" not in [button.key for button in other.button]
    assert "report_batch_start" in [button.key for button in other.button]
    assert "Lists for many histories" not in said(page(root, BEN))
    with pytest.raises(SeqscopeError, match="no such job"):
        work.cancel(BEN, one.row.id)
    test.button(key=f"data_cancel_{one.row.id}").click().run()
    assert work.get(ANNA, one.row.id).cancelling


def test_columns_of_a_file_are_mapped_and_it_is_answered_for(
    root: Path, launcher: Nobody, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged, stage = [], home.Home.stage
    monkeypatch.setattr(home.Home, "stage", lambda here, kind="": staged.append(kind) or stage(here, kind))
    test = report(root)
    next(one for one in test.get("button_group") if one.key == "report_batch_source_2").set_value("file").run()
    content = b"a,b,time\nann,toy-9,1\n=bob,toy-12,2\n"
    test.file_uploader(key="report_batch_file").set_value(("h.csv", content, "text/csv")).run()
    assert "which column is the user" in test.error[0].value and test.button(key="report_batch_start").disabled
    for role, column in (("user", "a"), ("item", "b"), ("time", "")):
        (box,) = [one for one in test.selectbox if (one.key or "").endswith(f"_{role}")]
        box.set_value(column).run()
    assert not test.exception and not test.error and box.value == ""
    test.button(key="report_batch_start").click().run()
    (one,) = batches.of(ANNA, "toys")
    assert one.job is not None and not test.exception
    assert {"--user-column=a", "--item-column=b", "--time-column="} <= set(one.job.steps[0].words)
    (given,) = (home.here().job(one.row.id) / FILES).glob("h*.csv")
    assert given.read_bytes() == content
    assert set(staged) == {home.MADE}  # which another server takes away at once


def test_what_came_out_is_offered_until_it_is_deleted(root: Path, exports: Path, launcher: Nobody) -> None:
    job = start(exports / "toys")
    (home.here().job(job.id) / FILES / "lists.parquet").write_bytes(b"PAR1")
    (home.here().job(job.id) / "log.txt").write_text("../lists.parquet: 5 histories, 30 rows in 0.1 s\n")
    put(job.id, Status(state="done", progress=1.0))
    assert "Download Parquet" not in keys(report(root, dataset="hostile"), "download_button")
    for test in (page(root, ANNA), report(root)):
        assert "5 histories, 30 rows in 0.1 s" in said(test) and "Download Parquet" in keys(test, "download_button")
    assert "report_batch_start" in [button.key for button in test.button]
    test.button(key=f"batch_delete_{job.id}").click().run()
    assert "Download Parquet" not in keys(test, "download_button") and not home.here().job(job.id).exists()


def test_why_it_failed_and_that_no_files_stay_without_a_result(root: Path, exports: Path, launcher: Nobody) -> None:
    cancelled, failed = (start(exports / "toys", b"a,b\n") for _ in range(2))
    put(cancelled.id, Status(state="cancelled"))
    put(failed.id, Status(state="failed", message="histories.csv: which column is the <b>user</b>?"))
    test = report(root)
    assert any("which column is the" in error.value for error in test.error)
    assert not any((home.here().job(job.id) / FILES).exists() for job in (cancelled, failed))


def test_over_ones_own_dataset_it_stands_on_its_card_and_goes_with_it(
    root: Path, exports: Path, launcher: Nobody
) -> None:
    dataset = ready(ANNA, "Mine", events=30)
    folder = home.here().dataset(ANNA, dataset.id)
    job = start(folder.exports, own=dataset.id)
    test = page(root, ANNA)
    assert f"data_cancel_{job.id}" in [button.key for button in test.button]
    assert [one.value for one in test.header].count("Lists for many histories") == 0
    files = home.here().job(job.id)
    assert spec.read(files).place(files) == folder.path  # no other job works there meanwhile
    put(job.id, Status(state="done", progress=1.0))
    open_store().datasets.delete(ANNA, dataset.id)
    assert not files.exists()


def test_it_counts_as_a_job(exports: Path, launcher: Nobody, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_QUOTA_JOBS", "1")
    start(exports / "toys", b"toy-9")
    with pytest.raises(QuotaReached, match="1 job of yours"):
        start(exports / "toys", b"toy-9")
    monkeypatch.setenv("SEQSCOPE_QUOTA_BYTES", "3")
    with pytest.raises(QuotaReached):
        start(exports / "toys", b"toy-9", owner=BEN)
    assert list((home.root() / "tmp").iterdir()) == [] and batches.of(BEN) == []
