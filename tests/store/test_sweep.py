"""What the sweeper takes away, and what it must never touch."""

import fcntl
import os
import time
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from app import home
from app.store import records, sweep
from app.store.database import Store
from app.store.sweep import Swept
from tests.store import ANNA, BEN, CLARA
from tests.store.test_datasets import uploaded


def days(number: float) -> datetime:
    return records.now() + timedelta(days=number)


def test_a_dataset_that_is_worked_on_stays(store: Store) -> None:
    found = uploaded(store)
    job = store.jobs.add(ANNA, found.id, "train", {})
    assert sweep.sweep(store, days(8)) == Swept()
    store.jobs.change(ANNA, job.id, "done")
    assert sweep.sweep(store, days(8)).datasets == 1


def test_saved_things_and_jobs_of_browsers_expire(store: Store) -> None:
    for owner in (ANNA, CLARA):
        store.histories.save(owner, "sample", "h", ["a"])
        store.comparisons.save(owner, "sample", "c", "/")
        store.reports.save(owner, "sample", "r", {})
        job = store.jobs.add(owner, "sample", "batch", {})
        home.here().job(job.id).mkdir()
        store.jobs.change(owner, job.id, "done")
    assert sweep.sweep(store, days(8)) == Swept(saved=4)
    for table in ("history", "comparison", "report", "job"):
        assert store.file.ask(f"select owner from {table}") == [(CLARA,)]
    assert len(list((home.root() / "jobs").iterdir())) == 1


def test_folders_that_are_older_than_the_store_stay(own_home: Path) -> None:
    """As after a store was lost, or was made in the folder of another one."""
    home.here().ready()
    folder = home.here().dataset(ANNA, home.new_id()).path
    folder.mkdir(parents=True)
    os.utime(folder, (time.time() - 5, time.time() - 5))
    with closing(Store()) as store:
        assert sweep.sweep(store) == Swept()
        assert folder.is_dir()


def test_a_jobs_folder_stays_while_its_runner_lives(store: Store) -> None:
    job = home.here().job(home.new_id())
    job.mkdir()
    with (job / "lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert sweep.sweep(store) == Swept()
    assert sweep.sweep(store) == Swept(folders=1)


def test_staging_is_kept_for_a_day_and_links_are_not_followed(store: Store, tmp_path: Path) -> None:
    fresh, old, gone = home.here().stage(), home.here().stage(), home.root() / "tmp" / f"{home.GONE}x"
    gone.mkdir()
    os.utime(old, (time.time() - 25 * 3600,) * 2)
    sweep.sweep(store)
    assert [path for path in (fresh, old, gone) if path.exists()] == [fresh]
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    found = uploaded(store)
    (home.here().dataset(ANNA, found.id).path / "link").symlink_to(outside)
    (home.root() / "jobs" / "a-link").symlink_to(outside)
    store.datasets.delete(ANNA, found.id)
    sweep.sweep(store)
    assert (outside / "file").is_file()


def test_a_store_sweeps_its_own_home_wherever_seqscope_home_leads_by_now(
    own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Store()) as first:
        expired = uploaded(first, ANNA)
        monkeypatch.setenv("SEQSCOPE_HOME", str(tmp_path / "another"))
        second = Store()
        dataset, job = uploaded(second, BEN), second.jobs.add(BEN, "sample", "train", {})
        folders = [
            home.here().dataset(BEN, dataset.id).path,
            home.here().job(job.id),
            home.here().stage(),
        ]
        for folder in folders:
            folder.mkdir(exist_ok=True)
        os.utime(folders[-1], (time.time() - 25 * 3600,) * 2)
        assert sweep.sweep(first, days(8)) == Swept(datasets=1)
        assert [folder for folder in folders if not folder.is_dir()] == []
        assert not (own_home / "owners" / ANNA / "datasets" / expired.id).exists()
    second.close()


def test_what_began_with_the_store_is_left_over_and_a_job_that_the_queue_is_writing_stays(store: Store) -> None:
    for name in (".abc.12ab", "abc"):
        (home.root() / "jobs" / name).mkdir()
    ((born,),) = store.file.ask("select epoch(min(applied)) from migration")
    os.utime(home.root() / "jobs" / "abc", (float(born) - 0.01,) * 2)  # files have a coarser clock
    assert [path.name for path in sweep.left_over(store)] == ["abc"]
