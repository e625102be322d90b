"""A disk without room: nothing more is kept, and deleting still works."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.home import DISK_FULL, shown
from app.store import file
from app.store.database import Store
from tests.store import ANNA
from tests.store.test_datasets import uploaded

FILLED = f"""
import os, sys
from app import home
from app.store import file
from app.store.database import Store
from engine.errors import SeqscopeError

file.RESERVE_SIZE = 400_000
store = Store()
for number in range(3):
    folder = home.here().stage()
    (folder / "items.csv").write_bytes(b"x" * 100_000)
    store.datasets.add("{ANNA}", f"films {{number}}", staged=folder)
store.comparisons.save("{ANNA}", "sample", "before", "/")
file.keep_reserve(home.root())
full = os.open(home.root() / "full", os.O_WRONLY | os.O_CREAT)

def fill():
    for size in (65_536, 1):
        try:
            while os.write(full, b"x" * size):
                pass
        except OSError:
            pass

for words in ("x" * 8_000, "x"):  # until no room is left in the file of the store either
    refused = ""
    while not refused:
        fill()
        try:
            store.comparisons.save("{ANNA}", "sample", os.urandom(8).hex(), "/" + words)
        except SeqscopeError as error:
            refused = str(error)
print(refused)
for dataset in store.datasets.of("{ANNA}"):
    store.datasets.delete("{ANNA}", dataset.id)
    fill()
print(len(store.datasets.of("{ANNA}")), len(list(home.root().glob("owners/*/datasets/*"))))
os.ftruncate(full, 0)  # there is room again
store.comparisons.save("{ANNA}", "sample", "after", "/")
names = [comparison.name for comparison in store.comparisons.of("{ANNA}")]
print("before" in names, "after" in names)
store.close()
print(len(Store().datasets.of("{ANNA}")))
"""


BEGUN = """
import os
from app import home
from app.store.database import Store
from engine.errors import SeqscopeError

home.here().ready()
full = os.open(home.root() / "full", os.O_WRONLY | os.O_CREAT)
try:
    while os.write(full, b"x" * 4_096):
        pass
except OSError:
    pass
try:
    Store()
except SeqscopeError as error:
    print(error)
os.ftruncate(full, 0)  # there is room again
print(Store().folders())
"""


def run(program: str, own_home: Path, root: Path) -> str:
    """What it prints, with a small file system in memory as SEQSCOPE_HOME, in a process of its own."""
    mounted = ["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs -o size=3m none "$0" && exec "$@"']
    own_home.mkdir()
    try:
        subprocess.run([*mounted, own_home, "true"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted: apt-get install util-linux, and allow user namespaces")
    done = subprocess.run(
        [*mounted, own_home, sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr[-2000:]
    return done.stdout


def test_deleting_works_on_a_full_disk(own_home: Path, root: Path) -> None:
    words, *counted = run(FILLED, own_home, root).splitlines()
    assert str(own_home) in words and shown(words) == DISK_FULL  # to those who run the server, and to visitors
    assert counted == ["0 0", "True True", "0"]


def test_a_store_that_was_begun_on_a_full_disk_is_made_when_there_is_room(own_home: Path, root: Path) -> None:
    words, folders = run(BEGUN, own_home, root).splitlines()
    assert shown(words) == DISK_FULL and folders == "[]"


def test_a_deletion_without_room_for_a_new_name_takes_the_files_where_they_are(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folder = store.home.dataset(ANNA, (dataset := uploaded(store)).id).path
    monkeypatch.setattr(os, "rename", full)
    store.datasets.delete(ANNA, dataset.id)
    assert store.datasets.of(ANNA) == [] and not folder.exists()


def test_the_reserve_is_given_up_for_deletions_alone_and_made_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, at = uploaded(store), store.home.path / file.RESERVE
    file.keep_reserve(store.home.path)
    assert at.stat().st_blocks * 512 >= file.RESERVE_SIZE
    store.datasets.delete(ANNA, first.id)  # there is room
    assert at.exists()
    second = uploaded(store)
    with monkeypatch.context() as patch:
        patch.setattr(file, "free_bytes", lambda home: 0)
        store.histories.save(ANNA, "sample", "westerns", ["a"])
        assert at.exists()
        store.datasets.delete(ANNA, second.id)
        file.keep_reserve(store.home.path)
        assert not at.exists()
    file.keep_reserve(store.home.path)
    assert at.exists()
