"""Backups: everything comes back, from a running server too, and nothing else gets in."""

import errno
import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import IO

import duckdb
import pytest

from app import home
from app.jobs import runner, status
from app.jobs.status import Status
from app.store import backup, file
from app.store.database import Store
from app.store.file import Held
from app.store.sweep import check
from engine.cli import main
from engine.errors import SeqscopeError
from tests.store import ANNA, BEN, CLARA, another_server
from tests.store.test_datasets import uploaded


@pytest.fixture
def filled(store: Store) -> Store:
    """Two datasets, and one of everything else."""
    for owner in (ANNA, CLARA):
        found = uploaded(store, owner, text=f"item_id,title\n{owner},Émile\n")
        folder = home.here().dataset(owner, found.id)
        (folder.exports / "sasrec").mkdir(parents=True)
        (folder.exports / "sasrec" / "index.npy").write_bytes(bytes(range(256)) * 5_000)
        folder.cache.mkdir()
        (folder.cache / "vectors.npy").write_bytes(b"x")
    store.histories.save(ANNA, "sample", "h", ["a"])
    store.comparisons.save(ANNA, "sample", "c", "/")
    store.reports.save(ANNA, "sample", "r", {"a": 1})
    job = store.jobs.add(ANNA, "sample", "train", {})
    home.here().job(job.id).mkdir()
    (home.here().job(job.id) / "job.json").write_text("{}")
    return store


def contents(root: Path) -> dict[str, bytes]:
    """Every file but the tables, and what can be computed again."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for part in ("owners", "jobs")
        for path in sorted((root / part).rglob("*"))
        if path.is_file() and path.parent.name != "cache"
    }


def rows(store: Store) -> list[object]:
    return [store.file.ask(f"select * from {table} order by id") for table in backup.rows_of(store)]


def test_everything_comes_back(filled: Store, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, tables = contents(own_home), rows(filled)
    filled.close()
    made = backup.backup(tmp_path / "b.tar")
    assert made.rows == {"dataset": 2, "history": 1, "comparison": 1, "report": 1, "job": 1}
    assert (tmp_path / "b.tar").stat().st_mode & 0o077 == 0
    assert list((own_home / "tmp").iterdir()) == []
    monkeypatch.setenv("SEQSCOPE_HOME", str(tmp_path / "other"))
    restored, before = backup.restore(tmp_path / "b.tar")
    assert before is None and restored.rows == made.rows
    assert contents(tmp_path / "other") == files
    assert not list((tmp_path / "other").rglob("cache"))
    with closing(Store()) as again:
        assert rows(again) == tables
    found = check(backup.take_snapshot(home.here().stage()))
    assert found.problems == []


def test_a_store_answers_for_its_own_folder_alone(filled: Store, tmp_path: Path) -> None:
    """Two in one process, as in tests: the other one's tables are not what was asked for."""
    with closing(Store(tmp_path / "other.duckdb")) as other:
        folder = home.here().stage()
        (folder / "wanted").touch()
        assert backup.answer_snapshots(other) == 0 and (folder / "wanted").exists()
        assert backup.answer_snapshots(filled) == 1 and (folder / backup.SNAPSHOT).is_file()


def test_a_command_may_be_interrupted_while_its_copy_is_written(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder goes with it. The server's housekeeping would wait a minute after an error, as long as the next command does."""
    write = backup.write_snapshot

    def interrupted(store: Store, folder: Path) -> Path:
        shutil.rmtree(folder)
        return write(store, folder)

    (home.here().stage() / "wanted").touch()
    with monkeypatch.context() as patch:
        patch.setattr(backup, "write_snapshot", interrupted)
        assert backup.answer_snapshots(filled) == 0
    folder = home.here().stage()
    (folder / "wanted").touch()
    assert backup.answer_snapshots(filled) == 1 and (folder / backup.SNAPSHOT).is_file()


def test_the_server_may_go_on_running(filled: Store, root: Path, own_home: Path, tmp_path: Path) -> None:
    filled.close()
    with another_server(root) as process:
        with pytest.raises(Held):
            Store()
        assert main(["store", "backup", str(tmp_path / "b.tar")]) == 0
        assert main(["store", "check"]) == 0
        with pytest.raises(Held, match=str(process)):
            backup.restore(tmp_path / "b.tar", replace=True)
    restored, before = backup.restore(tmp_path / "b.tar", replace=True)
    assert restored.rows["dataset"] == 2 and before is not None


def test_a_server_that_begins_while_it_is_unpacked_keeps_its_store(
    filled: Store, root: Path, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.close()
    backup.backup(tmp_path / "b.tar")
    files, unpacked = contents(own_home), backup._unpacked
    with ExitStack() as servers:

        def slow(source: Path, staged: Path) -> dict[str, str]:
            servers.enter_context(another_server(root))
            return unpacked(source, staged)

        monkeypatch.setattr(backup, "_unpacked", slow)
        with pytest.raises(Held):
            backup.restore(tmp_path / "b.tar", replace=True)
    assert contents(own_home) == files and not list(own_home.glob("before-*"))
    Store().close()


def test_no_server_begins_while_files_are_moved(
    filled: Store, root: Path, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would write into what is put aside, neither as it opens the store, nor just before the first file is moved."""
    filled.close()
    backup.backup(tmp_path / "b.tar")
    holds, opened = backup._holds, file.StoreFile.__init__
    with monkeypatch.context() as patch:

        def begins(path: Path) -> bool:
            if (own_home / home.RESTORING).exists():
                with pytest.raises(SeqscopeError, match="restore"):
                    Store()
            return holds(path)

        patch.setattr(backup, "_holds", begins)
        backup.restore(tmp_path / "b.tar", replace=True)
    with monkeypatch.context() as patch:

        def slow(self: file.StoreFile, *given: object, **named: object) -> None:
            opened(self, *given, **named)  # type: ignore[arg-type]
            (own_home / home.RESTORING).touch()

        patch.setattr(file.StoreFile, "__init__", slow)
        with pytest.raises(SeqscopeError, match="restore"):
            Store()
    backup.restore(tmp_path / "b.tar")  # nothing holds the store


def test_two_restores_at_once_do_not_mix(
    filled: Store, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = contents(own_home)
    filled.close()
    backup.backup(tmp_path / "1.tar")
    with closing(Store()) as later:
        uploaded(later, BEN)
    backup.backup(tmp_path / "2.tar")
    ready, tried = home.Home.ready, []

    def second(self: home.Home) -> Path:
        if (own_home / home.RESTORING).exists() and not tried:  # the first has moved what it had to
            tried.append(1)
            with pytest.raises(SeqscopeError, match="Another restore"):
                backup.restore(tmp_path / "2.tar", replace=True)
        return ready(self)

    with monkeypatch.context() as patch:
        patch.setattr(home.Home, "ready", second)
        backup.restore(tmp_path / "1.tar", replace=True)
    assert tried and contents(own_home) == files


def test_a_job_that_outlived_its_server_is_not_pulled_out_of_its_folder(
    filled: Store, own_home: Path, tmp_path: Path
) -> None:
    """It would go on writing to the same place, into what was restored."""
    filled.close()
    backup.backup(tmp_path / "b.tar")
    (folder,) = (own_home / "jobs").iterdir()
    Status(state="running", pid=4711).write(folder)
    with runner.held(folder, None), pytest.raises(SeqscopeError, match=rf"{folder.name} \(process 4711\)"):
        backup.restore(tmp_path / "b.tar", replace=True)
    backup.restore(tmp_path / "b.tar", replace=True)


def test_two_backups_at_once_do_not_write_into_each_other(
    filled: Store, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.close()
    archived, made = backup._archived, []

    def overtaken(file: IO[bytes], tables: Path) -> backup.Backup:
        if not made:
            made.append(1)
            backup.backup(tmp_path / "b.tar")
            whole.append((tmp_path / "b.tar").read_bytes())
        return archived(file, tables)

    whole: list[bytes] = []
    monkeypatch.setattr(backup, "_archived", overtaken)
    with pytest.raises(SeqscopeError, match="there already"):
        backup.backup(tmp_path / "b.tar")
    assert [(tmp_path / "b.tar").read_bytes()] == whole and len(list(tmp_path.glob(".b.tar*"))) == 0
    backup.restore(tmp_path / "b.tar", replace=True)


def test_what_is_there_is_kept_aside_even_where_it_cannot_be_opened(
    filled: Store, own_home: Path, tmp_path: Path
) -> None:
    filled.close()
    backup.backup(tmp_path / "b.tar")
    with closing(Store()) as changed:
        later = uploaded(changed, BEN)
        for dataset in changed.datasets.of(ANNA):
            changed.datasets.delete(ANNA, dataset.id)
    with pytest.raises(SeqscopeError, match="--replace"):
        backup.restore(tmp_path / "b.tar")
    home.here().database.write_bytes(b"broken" * 10_000)
    with pytest.raises(SeqscopeError, match="seqscope store restore"):
        Store()
    _, before = backup.restore(tmp_path / "b.tar", replace=True)
    assert before is not None and before.parent == own_home
    assert (before / "owners" / BEN / "datasets" / later.id).is_dir() and (before / "store.duckdb").is_file()
    with closing(Store()) as store:
        assert store.datasets.of(BEN) == [] and len(store.datasets.of(ANNA)) == 1


def test_an_interrupted_restore_is_repeated(
    filled: Store, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = contents(own_home)
    filled.close()
    backup.backup(tmp_path / "b.tar")
    rename = Path.rename
    for stop in (1, 3, 6, 8):
        calls = []

        def interrupted(self: Path, target: Path, stop: int = stop, calls: list[int] = calls) -> Path:
            calls.append(1)
            if len(calls) == stop:
                raise KeyboardInterrupt
            return rename(self, target)

        with closing(Store()) as store:
            late = uploaded(store, BEN)
        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", interrupted)
            try:
                _, before = backup.restore(tmp_path / "b.tar", replace=True)
            except KeyboardInterrupt:
                with pytest.raises(SeqscopeError, match="interrupted"):
                    Store()  # above all: no new, empty store
                _, before = backup.restore(tmp_path / "b.tar", replace=True)
        assert before is not None and (before / "owners" / BEN / "datasets" / late.id).is_dir()
        assert (before / "store.duckdb").is_file()
        assert contents(own_home) == files
        Store().close()


def test_what_cannot_be_moved_is_put_into_words(
    filled: Store, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.close()
    backup.backup(tmp_path / "b.tar")

    def refuse(self: Path, target: Path) -> Path:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(self), None, str(target))  # a volume of its own

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse)
        with pytest.raises(SeqscopeError, match=f"{own_home}/store.duckdb: Device or resource busy.*Mend that"):
            backup.restore(tmp_path / "b.tar", replace=True)
    backup.restore(tmp_path / "b.tar", replace=True)
    assert list((own_home / "tmp").iterdir()) == []


def test_no_job_is_done_in_a_backup_that_lacks_what_it_made(
    filled: Store, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends while files are read, after those of its dataset or before."""
    (dataset,) = filled.datasets.of(ANNA)
    (job,) = (own_home / "jobs").iterdir()
    made = home.here().dataset(ANNA, dataset.id).exports / "made.npy"
    filled.close()
    Status(state="running").write(job)
    add = backup._add

    def ends(archive: tarfile.TarFile, name: str, path: Path, sums: dict[str, str]) -> int:
        if {part.split("/")[0] for part in (*sums, name)} >= {"owners", "jobs"}:  # all of one kind was read
            made.write_bytes(b"x")
            Status(state="done").write(job)
        return add(archive, name, path, sums)

    monkeypatch.setattr(backup, "_add", ends)
    backup.backup(tmp_path / "b.tar")
    backup.restore(tmp_path / "b.tar", replace=True)
    assert made.exists() or not status.read(job).over


def test_check_names_nothing_that_a_server_deleted_meanwhile(
    filled: Store, own_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    filled.close()
    take = backup.take_snapshot

    def deletes(folder: Path) -> Path:
        assert not any(folder.iterdir())
        copy = take(folder)
        with closing(Store()) as store:
            for dataset in store.datasets.of(ANNA):
                store.datasets.delete(ANNA, dataset.id)
        return copy

    monkeypatch.setattr(backup, "take_snapshot", deletes)
    assert main(["store", "check"]) == 0 and capsys.readouterr().out.endswith("In order.\n")


def test_what_is_no_file_is_left_out_and_what_cannot_be_read_is_named(
    filled: Store, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = contents(own_home)
    filled.close()
    folder = next(own_home.glob("owners/*/datasets/*"))
    os.mkfifo(folder / "pipe")  # reading it would wait for ever
    backup.backup(tmp_path / "1.tar")
    backup.restore(tmp_path / "1.tar", replace=True)
    assert contents(own_home) == files
    opened = Path.open

    def refuse(self: Path, *given: object, **named: object) -> object:
        if self.name == "index.npy":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))
        return opened(self, *given, **named)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(SeqscopeError, match=r"index\.npy could not be read"):
        backup.backup(tmp_path / "2.tar")


def test_what_is_deleted_meanwhile_is_missing_row_and_all(filled: Store, own_home: Path, tmp_path: Path) -> None:
    gone = filled.datasets.of(ANNA)[0].id
    taken = backup.write_snapshot(filled, home.here().stage())
    filled.datasets.delete(ANNA, gone)
    with (tmp_path / "b.tar").open("wb") as file:
        backup._archived(file, taken)
    filled.close()
    backup.restore(tmp_path / "b.tar", replace=True)
    with closing(Store()) as store:
        assert store.datasets.of(ANNA) == [] and len(store.datasets.of(CLARA)) == 1


# --- what is not a backup


def altered(
    source: Path, target: Path, change: Callable[[str, bytes], tuple[str, bytes] | None], *more: tarfile.TarInfo
) -> Path:
    with tarfile.open(source) as old, tarfile.open(target, "w") as new:
        for member in old:
            file = old.extractfile(member)
            assert file is not None
            changed = change(member.name, file.read())
            if changed is not None:
                info = tarfile.TarInfo(changed[0])
                info.size = len(changed[1])
                new.addfile(info, io.BytesIO(changed[1]))
        for info in more:
            new.addfile(info)
    return target


def link(name: str, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    return info


@pytest.fixture
def archive(filled: Store, tmp_path: Path) -> Iterator[Path]:
    filled.close()
    backup.backup(tmp_path / "b.tar")
    yield tmp_path / "b.tar"
    with closing(Store()) as store:  # what was refused changed nothing
        assert len(store.datasets.of(ANNA)) == 1


def refuses(path: Path, words: str, own_home: Path) -> None:
    files = contents(own_home)
    with pytest.raises(SeqscopeError, match=words):
        backup.restore(path, replace=True)
    assert contents(own_home) == files
    assert list((own_home / "tmp").iterdir()) == []


def test_damage_is_found(archive: Path, own_home: Path, tmp_path: Path) -> None:
    flipped = altered(
        archive, tmp_path / "1.tar", lambda name, text: (name, text[:-1] + b"?" if name.endswith(".npy") else text)
    )
    refuses(flipped, "damaged: owners/.*index.npy", own_home)
    headless = altered(archive, tmp_path / "2.tar", lambda name, text: None if "checksums" in name else (name, text))
    refuses(headless, "not whole", own_home)
    other = altered(archive, tmp_path / "3.tar", lambda name, text: (name, b"[]" if "checksums" in name else text))
    refuses(other, "damaged", own_home)
    (tmp_path / "4.tar").write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    refuses(tmp_path / "4.tar", "not a whole", own_home)
    refuses(tmp_path / "none.tar", "does not exist", own_home)
    deep = altered(
        archive, tmp_path / "6.tar", lambda name, text: (name, b"[" * 100_000 if "backup.json" in name else text)
    )
    refuses(deep, "not whole", own_home)

    def without_tables(name: str, text: bytes) -> tuple[str, bytes] | None:
        sums = {key: sum for key, sum in json.loads(text).items() if key != backup.SNAPSHOT} if "sums" in name else {}
        return None if name == backup.SNAPSHOT else (name, json.dumps(sums).encode() if sums else text)

    refuses(altered(archive, tmp_path / "5.tar", without_tables), "no tables", own_home)


def resealed(archive: Path, target: Path, name: str, content: bytes) -> Path:
    """With another content of one file, and a checksum that fits it."""
    sums = {name: hashlib.sha256(content).hexdigest()}

    def change(member: str, text: bytes) -> tuple[str, bytes]:
        if member == "checksums.json" and member != name:
            text = json.dumps({**json.loads(text), **sums}).encode()
        return member, content if member == name else text

    return altered(archive, target, change)


def test_what_no_seqscope_writes_is_refused_though_its_checksum_fits(
    archive: Path, own_home: Path, tmp_path: Path
) -> None:
    refuses(resealed(archive, tmp_path / "1.tar", "checksums.json", b"[[1, 2]]"), "damaged", own_home)
    refuses(resealed(archive, tmp_path / "2.tar", "backup.json", b'{"form": 1e999}'), "not whole", own_home)
    for number, wrong in enumerate(("update dataset set owner = '../x'", "delete from change")):
        with tarfile.open(archive) as backed_up:
            snapshot = backed_up.extractfile(backup.SNAPSHOT)
            assert snapshot is not None
            (tmp_path / backup.SNAPSHOT).write_bytes(snapshot.read())
        with duckdb.connect(tmp_path / backup.SNAPSHOT) as tables:
            tables.execute(wrong)
        content = (tmp_path / backup.SNAPSHOT).read_bytes()
        evil = resealed(archive, tmp_path / f"tables {number}.tar", backup.SNAPSHOT, content)
        refuses(evil, "its tables hold what no Seqscope writes", own_home)


def test_what_was_refused_leaves_no_new_folder(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "half.tar").write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    with monkeypatch.context() as patch:
        patch.setenv("SEQSCOPE_HOME", str(tmp_path / "new" / "home"))
        for command in (["restore", str(tmp_path / "none.tar")], ["restore", str(tmp_path / "half.tar")], ["check"]):
            assert main(["store", *command]) == 1, command
            assert capsys.readouterr().err.startswith("seqscope: ") and not (tmp_path / "new").exists(), command


def test_only_files_of_names_that_lead_nowhere_else_get_in(archive: Path, own_home: Path, tmp_path: Path) -> None:
    names = ("owners/../../outside", "/tmp/outside", "owners/./x", "secrets.toml")
    kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE)
    for member in (*map(tarfile.TarInfo, names), *(link("owners/x", kind) for kind in kinds)):
        evil = altered(archive, tmp_path / "evil.tar", lambda name, text: (name, text), member)
        refuses(evil, "not a backup", own_home)
        assert not (tmp_path / "outside").exists(), (member.name, member.type)


def test_another_form_is_refused(archive: Path, own_home: Path, tmp_path: Path) -> None:
    about = json.dumps({"form": 2}).encode()

    def newer(name: str, text: bytes) -> tuple[str, bytes]:
        if name == "backup.json":
            return name, about
        if name == "checksums.json":
            return name, json.dumps({**json.loads(text), "backup.json": hashlib.sha256(about).hexdigest()}).encode()
        return name, text

    refuses(altered(archive, tmp_path / "newer.tar", newer), "another Seqscope", own_home)


def test_the_command_says_what_is_wrong(own_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "backup", str(tmp_path / "b.tar")]) == 1
    assert "nothing was uploaded" in capsys.readouterr().err
    with closing(Store()) as store:
        found = uploaded(store)
    assert main(["store", "backup", str(tmp_path / "b.tar")]) == 0
    assert "1 dataset, 0 histories" in capsys.readouterr().out
    assert main(["store", "backup", str(tmp_path / "b.tar")]) == 1
    assert "there already" in capsys.readouterr().err
    assert main(["store", "check"]) == 0
    assert capsys.readouterr().out.endswith("In order.\n")
    home.delete(home.here().dataset(ANNA, found.id).path)
    own_home.chmod(0o755)
    assert main(["store", "check"]) == 1
    said = capsys.readouterr().out
    assert f"The dataset {found.id} of {ANNA} has no files" in said and "chmod 700" in said and "Problems: 2" in said
