"""The page Your data in each of its states, and that nobody sees what is somebody else's."""

import asyncio
import contextlib
import json
from collections import UserDict
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import streamlit as st
from streamlit.runtime.scriptrunner import RerunData, RerunException
from streamlit.testing.v1 import AppTest

from app import home, work, zoo
from app.components import jobs
from app.jobs import kinds, spec
from app.jobs.estimate import JobEstimate
from app.jobs.status import Part, Status
from app.screens.your_data import abilities, training
from app.store.quota import QuotaReached
from app.store.records import NotFound, StoredDataset
from app.store.server import open_store
from engine.errors import SeqscopeError
from engine.runtime import Zoo
from tests.app.conftest import run_without_fault
from tests.app.own import ANNA, BEN, Nobody, page, put, ready, said, stage, visit
from tests.waiting import wait

pytestmark = pytest.mark.usefixtures("launcher")


def labels(test: AppTest) -> list[str]:
    return [one.label for one in test.button]


def test_a_dataset_opens_for_its_owner_alone_and_its_card_says_what_there_is(root: Path) -> None:
    dataset = ready(ANNA, "My <b>shop</b> :tada:")
    own = visit(root, ANNA, ds=dataset.id)
    assert own.selectbox(key="tray_dataset").value == dataset.id
    assert not own.warning and not own.error
    other = visit(root, BEN, ds=dataset.id)
    assert f"There is no dataset “{dataset.id}” here" in other.warning[0].value
    assert other.selectbox(key="tray_dataset").value != dataset.id
    assert "shop" not in " ".join(other.selectbox(key="tray_dataset").options)
    assert "shop" not in said(page(root, BEN))
    assert dataset.id not in zoo.visible_datasets(BEN) and dataset.id not in zoo.visible_datasets(None)
    assert zoo.visible_datasets(ANNA)[dataset.id].path == home.here().dataset(ANNA, dataset.id).exports
    test = page(root, ANNA)
    assert "<b>" not in test.subheader[0].value.replace("\\<b\\>", "")
    text = said(test)
    for words in (
        "40 items · no log",
        "unless it is used",
        "1 of 20 datasets",
        "known by their ids alone",
        "Add a log to train",
    ):
        assert words in text
    said_of = [one.value.partition(" – ")[2] for one in test.caption if " – " in one.value]
    assert len(said_of) > 2 and len(set(said_of)) == len(said_of)  # models with the same reason stand together
    reads = [caption.value for caption in test.caption if "FDSA" in caption.value]
    assert "S3-Rec and FDSA" in reads[0] and "by their ids and attributes" in reads[0]
    assert not [one for one in test.expander if one.label.startswith("Train models")]


def test_datasets_of_like_titles_are_told_apart(root: Path) -> None:
    """Streamlit takes the last of those that a list calls the same."""
    for title in (
        "The same",
        "The same",
        *(f"A catalogue {'of very many things ' * 3}in {year}" for year in (2023, 2024)),
    ):
        ready(ANNA, title)
    options = visit(root, ANNA).selectbox(key="tray_dataset").options
    assert len(options) == len(set(options)) > 4


def test_semantic_ids_are_added_to_a_dataset_that_is_ready_and_a_log_is_needed_to_train(
    root: Path, launcher: Nobody
) -> None:
    dataset = ready(ANNA, "My shop")
    test = page(root, ANNA)
    test.button(key=f"data_index_{dataset.id}").click().run()
    index = b'{"toy-0": ["<a_1>"]}'
    uploader = test.file_uploader(key=f"data_index_file_{dataset.id}")
    run_without_fault(uploader.set_value(("a.json", index, "application/json")))
    (job,) = work.of(ANNA, dataset.id)
    assert (home.here().job(job.row.id) / "files" / kinds.INDEX).read_bytes() == index
    assert job.job is not None and "Read the semantic IDs" in [step.title for step in job.job.steps]
    assert test.button(key=f"data_index_{dataset.id}").disabled
    with pytest.raises(SeqscopeError, match="no log"):
        work.train(ANNA, dataset.id, [work.TrainingChoice(model="sasrec")])


def test_semantic_ids_that_the_queue_has_no_room_for_leave_nothing(
    root: Path, launcher: Nobody, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = ready(ANNA, "My shop")
    before = sorted(home.root().rglob("*.json"))
    monkeypatch.setattr(work.queue(), "waiting", 0)
    with pytest.raises(SeqscopeError, match="may wait or run"):
        work.add_index(ANNA, dataset.id, b"{}")
    assert sorted(home.root().rglob("*.json")) == before and not list((home.root() / "tmp").iterdir())


def test_what_is_open_stays_open_when_more_is_there(
    root: Path, launcher: Nobody, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser knows an expander that was opened by its key, wherever it stands and whatever its label says by then."""
    dataset = trainable()
    exports = home.here().dataset(ANNA, dataset.id).exports
    job = work.prepare(ANNA, dataset.id, exports=root / "exports")
    wait(lambda: launcher.started == [job.id])
    drawn: list[tuple[object, str]] = []
    expander = st.expander

    def draw(label: str, *, key: str | None = None, **more: Any) -> object:
        drawn.append((key, label))
        return expander(label, key=key, **more)

    monkeypatch.setattr(st, "expander", draw)
    put(job.id, Status(state="running", progress=0.1, words="Embed the texts", step=0))
    test = page(root, ANNA)
    before = dict(drawn)
    assert len(before) == 3 and None not in before
    drawn.clear()
    next(exports.glob("*/manifest.json")).unlink()
    put(job.id, Status(state="running", progress=0.2, words="Embed the texts", step=1))
    test.run()
    after = dict(drawn)
    assert list(after) == list(before) and after != before


def test_it_is_renamed_and_deleted_after_a_question(root: Path) -> None:
    dataset = ready(ANNA, "My shop")
    folder = home.here().dataset(ANNA, dataset.id)
    test = page(root, ANNA, ds=dataset.id)
    test.button(key=f"data_rename_{dataset.id}").click().run()
    test.text_input(key=f"data_title_{dataset.id}").set_value("Our shop").run()
    test.button(key=f"data_renamed_{dataset.id}").click().run()
    assert test.subheader[0].value == "Our shop" and "Our shop" in test.success[0].value
    assert json.loads((folder.exports / "dataset.json").read_text("utf-8"))["title"] == "Our shop"
    assert zoo.visible_datasets(ANNA)[dataset.id].title == "Our shop (yours)"
    test.button(key=f"data_delete_{dataset.id}").click().run()
    assert "cannot be undone" in test.warning[0].value
    test.button(key=f"data_kept_{dataset.id}").click().run()
    assert open_store().datasets.get(ANNA, dataset.id)
    test.button(key=f"data_delete_{dataset.id}").click().run()
    test.button(key=f"data_deleted_{dataset.id}").click().run()
    assert not test.exception and "Deleted “Our shop”" in test.success[0].value
    assert not folder.path.exists()
    with pytest.raises(NotFound):
        open_store().datasets.get(ANNA, dataset.id)
    assert test.selectbox(key="tray_dataset").value != dataset.id and not test.warning
    with pytest.raises(SeqscopeError, match="reload the page"):  # what a list reads that stands in another tab
        zoo.open_catalogue(dataset.id)


def test_what_was_accepted_is_prepared(root: Path, launcher: Nobody, monkeypatch: pytest.MonkeyPatch) -> None:
    staged = stage()
    dataset = work.take(ANNA, "My shop", staged, exports=root / "exports")
    assert not staged.exists() and dataset.rows_items == 40 and dataset.state == "checked"
    (one,) = work.of(ANNA, dataset.id)
    assert one.row.kind == "prepare" and one.job is not None
    wait(lambda: launcher.started == [one.row.id])
    assert any("recformer" in " ".join(step.words) for step in one.job.steps)
    put(one.row.id, Status(state="running", progress=0.25, words="Embed the texts", left=100.0))
    test = page(root, ANNA)
    assert "Being prepared" in said(test)
    assert test.button(key=f"data_open_{dataset.id}").disabled
    assert f"data_cancel_{one.row.id}" in [button.key for button in test.button]
    monkeypatch.setattr(home, "free_bytes", lambda folder: 0)
    assert not test.warning and home.DISK_FULL in test.run().warning[0].value
    assert work.of(BEN, dataset.id) == []
    with pytest.raises(NotFound):
        work.cancel(BEN, one.row.id)
    with pytest.raises(NotFound):
        work.log(BEN, one.row.id)
    test.button(key=f"data_cancel_{one.row.id}").click().run()
    assert work.get(ANNA, one.row.id).cancelling


def test_a_log_has_the_models_that_need_no_training_first(root: Path, launcher: Nobody) -> None:
    dataset = work.take(ANNA, "My log", stage(events=60), exports=root / "exports")
    prepared, fitted = work.of(ANNA, dataset.id)
    assert (prepared.row.kind, fitted.row.kind) == ("prepare", "baselines")
    wait(lambda: launcher.started == [fitted.row.id])  # the other waits for the folder
    put(fitted.row.id, Status(state="running", progress=0.5, words="Fit, evaluate and export: Markov chain, fit"))
    test = page(root, ANNA)
    (bar,) = test.get("progress")  # what waits has none
    assert "Markov chain, fit" in bar.text
    assert "**Prepare My log.** Waiting for its turn: 1 job of yours comes first" in said(test)
    put(prepared.row.id, Status(progress=0.25, step=3, words="Interrupted; it goes on from here"))
    assert len(test.run().get("progress")) == 1
    assert "it goes on from here. Waiting for its turn: 1 job of yours comes first" in said(test)
    assert any(box.label.startswith("3 of ") and box.label.endswith(" steps done") for box in test.expander)
    cancels = [label for label in labels(test) if label.startswith("Cancel")]
    assert len(set(cancels)) == 2 and "Cancel" not in cancels  # each says what it cancels
    put(fitted.row.id, Status(state="failed", message="Nobody has two events."))
    wait(lambda: launcher.started == [fitted.row.id, prepared.row.id])
    folder = home.here().dataset(ANNA, dataset.id)
    assert pq.read_metadata(folder.clean / "log.parquet").num_rows == 60


def test_what_the_models_that_need_no_training_found(tmp_path: Path) -> None:
    about = {"repeats": "first", "split": {"kind": "leave-one-out"}, "counts": {"test": 1234}}
    (tmp_path / "dataset.json").write_text(json.dumps(about))
    assert abilities.baseline_words(tmp_path) == ""
    for name, figure in (("popularity", 0.05), ("markov", 0.0625), ("text-neighbours", 0.07), ("sasrec", 0.08)):
        (tmp_path / name).mkdir()
        manifest = {"title": name.title(), "family": name, "metrics": {"full": {"NDCG@10": figure}}}
        (tmp_path / name / "manifest.json").write_text(json.dumps(manifest))
    words = abilities.baseline_words(tmp_path)
    assert "1,234 held-out items: **Text-Neighbours** 0.0700, Markov 0.0625, Popularity 0.0500." in words


def test_every_model_that_can_be_trained_and_does_not_answer_yet_is_listed(tmp_path: Path) -> None:
    (tmp_path / "sasrec").mkdir()
    (tmp_path / "sasrec" / "manifest.json").write_text("{}")
    listed = {able.name: able.words for able in abilities.waiting(tmp_path, True)}
    assert {*kinds.models()} - {*listed} == {kinds.UNASKED, "sasrec"}
    assert "texts" in listed["tfidf"] and "log" not in listed["tfidf"]
    assert "Train on the command line" in (every := " ".join(listed.values())) and "With a log" not in every
    assert "With a log, train on" in " ".join(able.words for able in abilities.waiting(tmp_path, False))


def test_any_page_is_drawn_anew_when_a_job_has_made_something(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = ready(ANNA, "My log", events=60)
    row, exports, drawn = work.baselines(ANNA, dataset.id), home.here().dataset(ANNA, dataset.id).exports, []
    monkeypatch.setattr(jobs.st, "rerun", lambda: drawn.append(1))
    before = Zoo.stamp(exports)
    jobs._follow(ANNA, dataset.id, before)
    assert not drawn
    (exports / "markov").mkdir()
    (exports / "markov" / "manifest.json").write_text("{}")
    jobs._follow(ANNA, dataset.id, before)
    assert len(drawn) == 1
    put(row.id, Status(state="done", progress=1.0))
    jobs._follow(ANNA, dataset.id, Zoo.stamp(exports))
    assert len(drawn) == 2


def test_what_the_quota_refuses_is_said_and_can_be_asked_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_QUOTA_JOBS", "1")
    dataset = work.take(ANNA, "My log", stage(events=60), exports=root / "exports")
    (fitted,) = work.of(ANNA, dataset.id)
    assert fitted.row.kind == "baselines"
    with pytest.raises(QuotaReached):
        work.prepare(ANNA, dataset.id, exports=root / "exports")
    put(fitted.row.id, Status(state="failed", message="No."))
    test = page(root, ANNA)
    assert "at most 1 may at the same time" in test.warning[0].value
    test.button(key=f"data_prepare_{dataset.id}").click().run()
    assert not test.exception and not test.warning
    assert [one.row.kind for one in work.of(ANNA, dataset.id)] == ["prepare", "baselines"]
    with pytest.raises(QuotaReached):
        work.retry(ANNA, fitted.row.id)
    assert work.get(ANNA, fitted.row.id).row.state == "failed"


def test_a_failure_is_told_in_words_and_tried_again(root: Path) -> None:
    dataset = work.take(ANNA, "My shop", stage(), exports=root / "exports")
    (one,) = work.of(ANNA, dataset.id)
    put(one.row.id, Status(state="failed", message="The catalogue has <b>no</b> words."))
    assert open_store().datasets.get(ANNA, dataset.id).state == "failed"
    test = page(root, ANNA)
    assert "no" in test.error[0].value and "<b>" not in test.error[0].value.replace("\\<b\\>", "")
    test.session_state[f"data_log_{one.row.id}"] = True  # its popover is open
    (log,) = test.run().code
    assert log.proto.wrap_lines  # none of it is reached by scrolling sideways alone
    run_without_fault(test.button(key=f"data_retry_{one.row.id}").click())
    assert work.get(ANNA, one.row.id).row.state in ("queued", "running")


def test_work_that_ends_after_its_dataset_has_expired_keeps_it(root: Path) -> None:
    store, dataset = open_store(), work.take(ANNA, "My shop", stage(), exports=root / "exports")
    (job,) = work.of(ANNA, dataset.id)
    put(job.row.id, Status(state="running"))
    with store.file.transaction() as transaction:
        transaction.execute("update dataset set expires = expires - interval 8 day")
    put(job.row.id, Status(state="failed"))
    assert store.datasets.get(ANNA, dataset.id).state == "failed"


def test_a_job_that_is_asked_for_while_its_dataset_is_deleted_takes_no_place(root: Path) -> None:
    store, dataset = open_store(), ready(ANNA, "My shop")
    request = work._request
    store.datasets.delete(ANNA, dataset.id)  # by another tab, before the row of the job is there
    job = work.submit(
        ANNA, dataset.id, "prepare", {}, lambda job: kinds.prepare(request(job, dataset), dataset.rows_items, [])
    )
    Status(state="failed", message="Its files are not there any more").write(home.here().job(job.id))
    wait(lambda: not store.jobs.of(ANNA) and not home.here().job(job.id).exists())
    assert store.quota.usage(ANNA).jobs == 0


def test_when_it_is_done_the_dataset_is_ready(root: Path) -> None:
    dataset = ready(ANNA, "My shop", events=60)
    open_store().datasets.change(ANNA, dataset.id, state="checked")
    row = work.prepare(ANNA, dataset.id, exports=root / "exports")
    put(row.id, Status(state="done", progress=1.0, notes=("Show the identifiers: too few items.",)))
    found = open_store().datasets.get(ANNA, dataset.id)
    assert found.state == "ready" and found.bytes > 1_000
    test = page(root, ANNA)
    assert not test.error and "too few items" in test.warning[0].value
    assert not test.button(key=f"data_open_{dataset.id}").disabled


def test_a_preparation_that_was_cancelled_can_go_on_after_a_training(root: Path) -> None:
    dataset = ready(ANNA, "My shop", events=60)
    first = work.prepare(ANNA, dataset.id, exports=root / "exports")
    put(first.id, Status(state="cancelled", parts=(Part(state="done"),) * len(work.get(ANNA, first.id).job.steps)))
    second = work.train(ANNA, dataset.id, [work.TrainingChoice(model="markov")])
    put(second.id, Status(state="done", progress=1.0))
    test = page(root, ANNA)
    assert "was cancelled. What was ready by then" in test.info[0].value
    test.button(key=f"data_retry_{first.id}").click().run()
    assert not work.get(ANNA, first.id).over and work.get(ANNA, second.id).over


@pytest.mark.parametrize("kept", [True, False], ids=["settings kept", "of before"])
def test_a_training_whose_folder_is_gone_can_be_tried_again(root: Path, kept: bool) -> None:
    dataset = ready(ANNA, "My log", events=60)
    choice = work.TrainingChoice(model="markov", settings={"model.alpha": 0.5} if kept else {})
    row = work.train(ANNA, dataset.id, [choice])
    work.queue().stop()  # it tells the store nothing more
    home.here().discard(home.here().job(row.id))
    store = open_store()
    about = "spec" if kept else """'{"models": ["markov"]}'"""
    store.file.ask(
        f"update job set spec = {about}, created = created - interval 1 hour, state = 'running', started = created"
    )
    test = page(root, ANNA)
    assert work.GONE in test.error[0].value
    run_without_fault(test.button(key=f"data_retry_{row.id}").click())
    (again,) = work.of(ANNA, dataset.id)
    assert again.row.id != row.id and not again.over and again.job is not None
    assert ("model.alpha=0.5" in " ".join(word for step in again.job.steps for word in step.words)) == kept


def test_a_job_whose_folder_is_damaged_has_failed_and_holds_up_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "_SUBMITTED", timedelta())
    store, dataset = open_store(), ready(ANNA, "My log", events=60)
    row = work.train(ANNA, dataset.id, [work.TrainingChoice(model="markov")])
    work.queue().stop()
    (home.here().job(row.id) / spec.FILE).write_text("{")
    (job,) = work.of(ANNA, dataset.id)
    assert job.over and (job.row.state, job.row.message) == ("failed", work.GONE)
    assert store.quota.usage(ANNA).jobs == 0
    work.retry(ANNA, row.id)
    (again,) = work.of(ANNA, dataset.id)
    assert again.row.id != row.id and not again.over and not home.here().job(row.id).exists()


def test_a_dataset_whose_files_are_gone_says_so_and_can_be_deleted(root: Path) -> None:
    dataset = ready(ANNA, "My shop")
    home.here().discard(home.here().dataset(ANNA, dataset.id).path)
    test = page(root, ANNA)
    assert work.GONE in test.error[0].value and "Prepare it" not in labels(test)
    test.button(key=f"data_delete_{dataset.id}").click().run()
    run_without_fault(test.button(key=f"data_deleted_{dataset.id}").click())
    assert open_store().datasets.of(ANNA) == []


def test_why_the_store_cannot_be_had_is_for_the_log(root: Path) -> None:
    open_store().close()
    content = home.here().database.read_bytes()
    home.here().database.write_bytes(b"not a database" * 1000)
    test = page(root, ANNA)
    assert "log" in test.error[0].value and str(home.root()) not in said(test)
    home.here().database.write_bytes(content)


def test_the_server_takes_up_jobs_before_anybody_looks() -> None:
    from app import serve

    dataset = ready(ANNA, "My shop")
    row = open_store().jobs.add(ANNA, dataset.id, "prepare", {})

    async def served() -> str:
        async with serve.life(serve.app) as state:
            await state["begun"]
            return open_store().jobs.get(ANNA, row.id).message

    with ThreadPoolExecutor(1) as thread:  # the browser tests' loop may be running in this one
        assert thread.submit(asyncio.run, served()).result() == work.LOST
    (one,) = work.of(ANNA, dataset.id)
    assert one.row.state == "failed"


def test_without_any_export_one_can_still_bring_data(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(tmp_path / "nothing"))
    test = page(root, ANNA)
    assert test.title[0].value == "Your data" and not test.error
    assert "Add a dataset" in [one.value for one in test.header] and "Delete" not in labels(test)
    test.secrets["auth"] = {"client_id": "c"}
    test.query_params["sign_in"] = "cancelled"
    assert "You are not signed in" in test.run().warning[0].value


def trainable() -> StoredDataset:
    """A dataset of Anna's whose log is prepared, as far as the page can see."""
    dataset = ready(ANNA, "My shop", events=60)
    folder = home.here().dataset(ANNA, dataset.id)
    folder.data.mkdir()
    (folder.data / "dataset.json").write_text(json.dumps({"counts": {"events": 60}, "time": {"first": None}}))
    return dataset


def estimated(model: str, train: float = 30.0) -> JobEstimate:
    """Two minutes, of which `train` seconds may be others."""
    return JobEstimate(
        device="2 cores", epochs=10, steps=3, start=30.0, train=train, validation=10.0, evaluate=20.0, export=30.0,
        at_most=True, seconds=90.0 + train,
    )  # fmt: skip


def press(test: AppTest, dataset: StoredDataset, kind: str, *models: str) -> None:
    """Chooses the models of a kind to be trained."""
    (pills,) = [one for one in test.get("button_group") if one.key == f"data_models_{dataset.id}_{kind}"]
    pills.set_value(list(models))
    test.run()


def test_an_estimate_comes_before_training(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def estimate(folder: Path, model: str, settings: dict[str, object], **more: object) -> JobEstimate:
        asked.append((model, settings))
        if model != "sasrec":
            raise SeqscopeError("no user has two training events")
        return estimated(model)

    monkeypatch.setattr(training, "estimate", estimate)
    dataset = trainable()
    test = page(root, ANNA)
    assert not [one for one in test.button if one.key == f"data_train_{dataset.id}"]
    assert "this log has no times: HSTU with time bias and Recent popularity" in said(test)
    press(
        test, dataset, "Counting", "markov", "popularity"
    )  # which are made by themselves until somebody wants them anew
    test.button(key=f"data_estimate_{dataset.id}").click().run()
    assert asked == [("sasrec", {"training.epochs": 10}), ("markov", {}), ("popularity", {})]
    text = said(test)
    assert "At most 2 min" in text and "no user has two training events" in text
    counts = estimated("ease").model_copy(update={"epochs": 0})
    assert training.words(counts).startswith("at most 2 min: counted")
    run_without_fault(test.button(key=f"data_train_{dataset.id}").click())
    (one,) = work.of(ANNA, dataset.id)
    assert one.job is not None and one.row.kind == "train" and one.row.spec["models"] == ["sasrec"]
    trained = next(step for step in one.job.steps if step.run)
    assert "training.epochs=10" in trained.words and one.job.timed

    run = home.here().dataset(ANNA, dataset.id).path / trained.run
    run.mkdir(parents=True)
    curve = [{"epoch": n, "step": n, "seconds": n, "loss": 3.0 / n, "valid_ndcg": None} for n in (1, 2, 3)]
    (run / "curve.json").write_text(json.dumps(curve))
    put(one.row.id, Status(state="running", step=one.job.steps.index(trained), words="Train SASRec", progress=0.4))
    test.run()
    assert test.get("plotly_chart") and "Train SASRec" in next(one.text for one in test.get("progress"))


class Interrupted(UserDict[str, Any]):
    """A session whose callback ends where it first takes something out, as Streamlit's does when another run was asked for."""

    over = False

    def __delitem__(self, key: str) -> None:
        if not self.over:
            self.over = True
            raise RerunException(RerunData())
        super().__delitem__(key)


@pytest.mark.parametrize("session", [dict, Interrupted])
def test_a_double_click_trains_once(root: Path, monkeypatch: pytest.MonkeyPatch, session: type) -> None:
    dataset = trainable()
    choice = work.TrainingChoice(model="sasrec", estimate=estimated("sasrec"))
    estimates = training._Estimates(("sasrec",), "short", (choice,))
    monkeypatch.setattr(training.st, "session_state", session({f"data_estimates_{dataset.id}": estimates}))
    for _ in range(2):
        with contextlib.suppress(RerunException):
            training._train(ANNA, dataset.id, estimates)
    assert len(work.of(ANNA, dataset.id)) == 1


def test_an_estimate_and_the_click_for_it_outlive_a_job_that_draws_the_page_anew(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    prepared, interruptions = work.log_prepared, [""]

    def interrupted(folder: home.Folder) -> bool:
        if not interruptions:
            interruptions.append("")
            st.rerun()
        return prepared(folder)

    def estimate(folder: Path, model: str, settings: dict[str, object], **more: object) -> JobEstimate:
        tried.append(model)
        if tried == ["sasrec", "markov"]:
            st.rerun()
        return estimated(model)

    monkeypatch.setattr(training, "estimate", estimate)
    monkeypatch.setattr(work, "log_prepared", interrupted)
    dataset = trainable()
    test = page(root, ANNA)
    press(test, dataset, "Counting", "markov", "popularity")
    interruptions.clear()
    test.button(key=f"data_estimate_{dataset.id}").click().run()
    assert interruptions and tried == ["sasrec", "markov", "markov", "popularity"] and "At most 6 min" in said(test)


def test_models_that_come_after_others_are_estimated_with_them(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, object]] = []

    def estimate(folder: Path, model: str, settings: dict[str, object], **more: object) -> JobEstimate:
        asked.append((model, settings.get("model.start")))
        return estimated(model, train=1_800.0)

    monkeypatch.setattr(training, "estimate", estimate)
    dataset = trainable()
    test = page(root, ANNA)
    for kind, *names in (("Text", "recformer-tuned"), ("Generative", "tiger"), ("Sequential",)):
        press(test, dataset, kind, *names)
    test.button(key=f"data_estimate_{dataset.id}").click().run()
    text = said(test)
    assert not asked and "there is none here" in text and "semantic IDs of RQ-VAE" in text

    carried = {"zero_shot": {"bundle": "recformer"}, "training": {"recipe": {"model": {"dim": 64}}}}
    folder = home.here().dataset(ANNA, dataset.id).path
    for path, content in (("exports/recformer/manifest.json", carried), ("runs/rqvae/identifiers.json", {})):
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_text(json.dumps(content))
    test.button(key=f"data_estimate_{dataset.id}").click().run()
    start = "exports/recformer"
    assert asked == [("recformer-tuned-stage1", start), ("recformer-tuned", start), ("tiger-small", None)]
    text = said(test).replace("\\", "")
    assert "first Recformer, fine-tuned, stage 1, at most 30 min" in text and "At most 1.6 h" in text
    assert "more than an hour" in "\n".join(one.value for one in test.warning)
    run_without_fault(test.button(key=f"data_train_{dataset.id}").click())
    (one,) = work.of(ANNA, dataset.id)
    assert one.job is not None and one.row.spec["models"] == ["recformer-tuned", "tiger"] and one.job.timed
    assert [step.words[1] for step in one.job.steps if step.words[0] in ("train", "tokenize")] == [
        "recformer-tuned-stage1", "recformer-tuned", "rqvae", "tiger-small",
    ]  # fmt: skip
