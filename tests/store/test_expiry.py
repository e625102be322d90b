"""When things expire: after so many days on which the server ran, into lost/, and from there after so many more."""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from app import home
from app.store import lost, records, server
from app.store.database import Store
from app.store.lost import Recovered, recover
from app.store.server import Clock
from app.store.sweep import Swept, sweep
from engine import cli
from tests.store import ANNA
from tests.store.test_datasets import uploaded
from tests.waiting import wait


class Time:
    """The wall clock and how long the machine has been on, in days."""

    def __init__(self) -> None:
        self.start, self.wall, self.ran = records.now(), 0.0, 0.0

    def passes(self, days: float) -> None:
        self.wall += days
        self.ran += days


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Time]:
    now = Time()
    monkeypatch.setattr(records, "now", lambda: now.start + timedelta(days=now.wall))
    with monkeypatch.context() as patch:
        patch.setattr(server, "monotonic", lambda: now.ran * 86_400)
        yield now


def clock_of(store: Store) -> Clock:
    """As a server that starts."""
    clock = Clock(store)
    clock.tick()
    clock.write()
    return clock


def served(days: float, now: Time) -> None:
    """A server that ran for so long."""
    with closing(Store()) as store:
        its_clock = clock_of(store)
        now.passes(days)
        its_clock.tick()
        its_clock.write()
        sweep(store, server.due(days * 86_400))


def test_so_many_days_on_which_it_ran(store: Store, passing: Time) -> None:
    clock_of(store)
    dataset = uploaded(store)
    store.close()
    served(3, passing)
    passing.wall += 8  # off
    served(3, passing)
    with closing(Store()) as store:
        left = store.datasets.get(ANNA, dataset.id).expires
        assert left is not None and round((left.replace(tzinfo=None) - records.now()) / timedelta(days=1), 2) == 1
    served(2, passing)
    with closing(Store()) as store:
        assert store.datasets.of(ANNA) == []
        assert [entry.why for entry in lost.entries(home.here())] == ["expired"]


@pytest.mark.parametrize("days", [30, -400])
def test_a_clock_that_is_wrong_for_a_while_changes_nothing(store: Store, passing: Time, days: float) -> None:
    """It is set while the server runs, and set right while none does."""
    its_clock = clock_of(store)
    dataset = uploaded(store)
    before = store.datasets.get(ANNA, dataset.id).expires
    passing.wall += days
    its_clock.tick()
    assert sweep(store) == Swept()
    store.close()
    served(1.1, passing)
    passing.wall -= days
    served(1.1, passing)
    with closing(Store()) as store:
        after = store.datasets.get(ANNA, dataset.id).expires
        assert before is not None and after is not None and abs(after - before) < timedelta(seconds=1)


def test_nothing_expires_on_the_day_of_the_start(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_KEEP_DAYS", "0.000001")
    monkeypatch.setattr(server, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(server, "SWEEP_EVERY", 0.02)
    now = records.now()
    monkeypatch.setattr(records, "now", lambda: now)
    swept: list[timedelta] = []  # how long something has been due that goes
    monkeypatch.setattr(server, "sweep", lambda store, due: swept.append(now - due))
    server.start(store)
    wait(lambda: swept)
    assert swept[0] == server.GRACE
    monkeypatch.setattr(server, "GRACE", timedelta(milliseconds=1))  # it has run for longer
    wait(lambda: not swept[-1])


def test_what_expired_comes_back_with_all_that_belongs_to_it(store: Store, passing: Time) -> None:
    its_clock = clock_of(store)
    dataset = uploaded(store)
    history = store.histories.save(ANNA, dataset.id, "westerns", ["a", "b"])
    report = store.reports.save(ANNA, dataset.id, "r", {"a": 1})
    job = store.jobs.add(ANNA, dataset.id, "train", {"models": ["sasrec"]})
    home.here().job(job.id).mkdir()
    store.jobs.change(ANNA, job.id, "failed", "why")
    passing.passes(7.1)
    its_clock.tick()
    assert sweep(store) == Swept(datasets=1)
    assert store.file.ask("select (select count(*) from history) + (select count(*) from job)") == [(0,)]
    store.close()
    assert cli.main(["store", "recover", "--all"]) == 0
    with closing(Store()) as store:
        assert store.datasets.get(ANNA, dataset.id).title == dataset.title
        folder = home.here().dataset(ANNA, dataset.id).path
        assert (folder / "upload").is_dir() and home.here().job(job.id).is_dir()
        assert store.histories.get(ANNA, history.id).items == ("a", "b")
        assert store.reports.get(ANNA, report.id).document == {"a": 1}
        back = store.jobs.get(ANNA, job.id)
        assert (back.state, back.message, back.spec) == ("failed", "why", {"models": ["sasrec"]})
        assert sweep(store) == Swept() and lost.entries(home.here()) == []


def test_what_is_used_before_its_turn_comes_stays(store: Store, passing: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    its_clock, ask = clock_of(store), store.file.ask
    used, dataset = uploaded(store), uploaded(store)

    def asked_and_used(query: str, *values: object) -> object:
        rows = ask(query, *values)
        if query.startswith("select owner, id from dataset d "):
            with store.file.transaction() as transaction:
                transaction.execute("update dataset set expires = ? where id = ?", [records.until(ANNA), used.id])
        return rows

    passing.passes(7.1)
    its_clock.tick()
    monkeypatch.setattr(store.file, "ask", asked_and_used)
    assert sweep(store) == Swept(datasets=1)
    assert [left.id for left in store.datasets.of(ANNA)] == [used.id] != [dataset.id]


def test_what_is_in_lost_is_deleted_after_seven_days_on_which_it_ran(own_home: Path, passing: Time) -> None:
    folder = home.here().dataset(ANNA, home.new_id()).path
    with closing(Store()) as store:
        its_clock = clock_of(store)
        folder.mkdir(parents=True)
        assert sweep(store) == Swept(folders=1)
        (entry,) = lost.entries(home.here())
        sweep(store)  # it counts from here
        passing.passes(6.9)
        its_clock.tick()
        its_clock.write()
    passing.wall += 20  # off
    with closing(Store()) as store:
        its_clock = clock_of(store)
        assert sweep(store) == Swept() and entry.path.is_dir()
        passing.passes(0.2)
        its_clock.tick()
        assert sweep(store) == Swept(deleted=1) and not entry.path.exists()


def test_a_row_that_went_before_a_crash_finds_its_folder_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between the rows of what expired and its folder."""
    dataset = uploaded(store)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(lost, "move", lambda at, entry: (_ for _ in ()).throw(KeyboardInterrupt))
        sweep(store, records.now() + timedelta(days=8))
    sweep(store)
    (entry,) = lost.entries(home.here())
    assert (entry.why, len(entry.here())) == ("expired", 1)
    assert recover(store, entry) == Recovered()
    assert store.datasets.get(ANNA, dataset.id).title == dataset.title


def test_what_nobody_can_be_given_stays_in_lost(store: Store) -> None:
    job = home.here().job(home.new_id())
    job.mkdir()
    sweep(store)
    (entry,) = lost.entries(home.here())
    (problem,) = recover(store, entry).left
    assert "whose" in problem and entry.here() == [f"jobs/{job.name}"]
    assert sweep(store) == Swept()
