"""The child and its end: every way to die is one clear message, and nothing of it stays."""

import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app import guard, home
from app.uploads import files, runner
from app.uploads.limits import UploadLimits
from app.uploads.runner import UploadFailed
from engine.errors import SeqscopeError
from engine.tabular.findings import CheckResult
from engine.tabular.reading import MB, ROLES, FileKind
from tests.app.own import read_here
from tests.uploads.conftest import ITEMS, LIMITS, LOG
from tests.waiting import wait


def checked(folder: Path, catalogue: str) -> CheckResult:
    """A catalogue, read in this process."""
    files.keep(folder, "catalogue", catalogue.encode(), LIMITS)
    return files.check(folder, {"catalogue": files.guess(folder, "catalogue", LIMITS).reading}, LIMITS)


def steps(folder: Path) -> list[Path]:
    return list(folder.glob(".step-*"))


# --- the way through


def test_from_upload_to_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[float, str]] = []
    with (tmp_path / "x").open("wb+") as upload:
        upload.write(ITEMS.encode())
        upload.seek(0)
        files.keep(tmp_path, "catalogue", upload, LIMITS)
    files.keep(tmp_path, "log", (LOG + "u1,,1700000000\n").encode(), LIMITS)
    kinds: tuple[FileKind, ...] = ("catalogue", "log")
    with monkeypatch.context() as patch:
        patch.setattr(runner, "_run", read_here)
        readings = {what: files.guess(tmp_path, what, LIMITS).reading for what in kinds}
    found = files.check(tmp_path, readings, LIMITS, on_progress=lambda done, words: heard.append((done, words)))
    assert found.bad_rows == 1 and files.readings(tmp_path) == readings
    shares = [done for done, _ in heard]
    assert "Reading the log" in {words for _, words in heard} and shares == sorted(shares)
    with pytest.raises(UploadFailed, match="cannot be used: 1\\."):
        files.accept(tmp_path, found, without_bad_rows=False)
    assert not (tmp_path / "clean").exists()
    files.accept(tmp_path, found, without_bad_rows=True)
    assert pq.read_table(tmp_path / "clean" / "log.parquet").num_rows == 12
    assert (tmp_path / "findings.csv").is_file() and not (tmp_path / "waiting").exists() and not steps(tmp_path)


def test_what_stops_is_never_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_run", read_here)
    found = checked(tmp_path, "item_id,title\n,a\n")
    assert found.stopped and not (tmp_path / "waiting").exists() and (tmp_path / "findings.parquet").is_file()
    with pytest.raises(UploadFailed, match="Mend what stops them"):
        files.accept(tmp_path, found, without_bad_rows=True)


def test_a_new_check_forgets_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_run", read_here)
    first = checked(tmp_path, ITEMS)
    files.keep(tmp_path, "catalogue", b"\x89PNG", LIMITS)
    with pytest.raises(UploadFailed):
        files.check(tmp_path, files.readings(tmp_path), LIMITS)
    assert not (tmp_path / "waiting").exists()
    with pytest.raises(UploadFailed):
        files.accept(tmp_path, first, without_bad_rows=True)


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"log": 3}', "[" * 100_000])
def test_how_uploads_were_read_may_be_unreadable(tmp_path: Path, content: str) -> None:
    (tmp_path / files.UPLOAD).mkdir()
    (tmp_path / files.UPLOAD / files.READING).write_text(content)
    assert files.readings(tmp_path) == {}


def test_uploads_are_bounded(tmp_path: Path) -> None:
    small = LIMITS.model_copy(update={"upload": 10})
    with pytest.raises(UploadFailed, match="larger than"):
        files.keep(tmp_path, "log", b"x" * 11, small)
    with pytest.raises(UploadFailed, match="empty"):
        files.keep(tmp_path, "log", b"", small)
    assert files.find(tmp_path, "log") is None and not list((tmp_path / "upload").iterdir())
    files.keep(tmp_path, "log", b"one", small)
    second = files.keep(tmp_path, "log", b"two", small)
    assert files.find(tmp_path, "log") == second and len(list((tmp_path / "upload").iterdir())) == 1


# --- ways to die


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """stand_in(code) makes every child run this code after its first word, with the bounds of a true one."""

    def replace(code: str) -> None:
        script = tmp_path / "child.py"
        script.write_text(
            "import json, os, sys, time\nfrom app.uploads import child\n"
            f"def answer(request, say):\n    say(0.5, 'Halfway')\n    {code}\n"
            "child._answer = answer\nchild.main()\n"
        )
        real = subprocess.Popen
        monkeypatch.setattr(
            runner.subprocess, "Popen", lambda command, **more: real([sys.executable, str(script)], **more)
        )

    return replace


def failed(folder: Path, limits: UploadLimits = LIMITS, **more: object) -> str:
    with pytest.raises(UploadFailed) as caught:
        runner.run("guess", {}, folder, limits, **more)  # type: ignore[arg-type]
    assert not steps(folder)
    message = str(caught.value)
    assert "Traceback" not in message and message.endswith(".")
    return message


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("os.kill(os.getpid(), 9)", "more memory"),
        ("os.kill(os.getpid(), 11)", r"made its reader fail \(signal 11\)"),
        ("raise ValueError('secret')", "not foreseen"),
        ("os._exit(0)", "not foreseen"),
        pytest.param("x = bytearray(1 << 34); return {'result': {}}", "more memory", marks=pytest.mark.linux),
        ("os.write(1, b'x' * 100); return 7", "no|makes sense"),
        ("print(json.dumps({'words': 'x' * (17 << 20)}), file=sys.stdout); return {'result': {}}", "|"),
        ("say(0.1, 'x' * (20 << 20)); return {'result': {}}", "more than can be shown"),
        ("open('big', 'wb').truncate(1 << 40); return {'result': {}}", "not foreseen"),
    ],
)
def test_every_death_is_one_message(tmp_path: Path, stand_in: Callable[[str], None], code: str, words: str) -> None:
    stand_in(code)
    if words == "|":  # what a library prints is no part of the answer
        assert runner.run("guess", {}, tmp_path, LIMITS) == {}
        return
    message = failed(tmp_path)
    assert "secret" not in message
    assert re.search(words, message), message


def test_the_clock_ends_it(tmp_path: Path, stand_in: Callable[[str], None]) -> None:
    stand_in("time.sleep(60)")
    assert "longer than 1 second " in failed(tmp_path, LIMITS.model_copy(update={"seconds": 1}))


def test_the_disk_that_a_step_may_use_is_bounded_over_all_its_files(
    tmp_path: Path, stand_in: Callable[[str], None]
) -> None:
    stand_in("[open(str(n), 'wb').write(bytes(1 << 24)) for n in range(6)]; time.sleep(60)")
    assert "more than 64 MB of this server's disk" in failed(tmp_path, LIMITS.model_copy(update={"disk": 64 * MB}))


def test_the_processor_ends_it(tmp_path: Path) -> None:
    code = (  # after a second: five are added to what is said
        "from app.uploads import child\nchild._bound({'seconds': -4, 'threads': 1, 'memory': 1 << 30, 'disk': 1 << 20}, 0)\n"
        "while True: pass"
    )
    ended = subprocess.run([sys.executable, "-c", code], timeout=100, check=False)
    assert ended.returncode in (-signal.SIGXCPU, -signal.SIGKILL)


def test_whatever_the_page_raises_ends_it(tmp_path: Path, stand_in: Callable[[str], None]) -> None:
    stand_in(f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); say(0.6, 'More'); time.sleep(60)")

    def drawn_anew(done: float, words: str) -> None:
        if words == "More":
            raise KeyError("rerun")

    with pytest.raises(KeyError):
        runner.run("guess", {}, tmp_path, LIMITS, on_progress=drawn_anew)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "from app.uploads import child; child._answer = lambda r, s: __import__('time').sleep(99)\n"
         "child.main()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdin and child.stdout
    child.stdin.write(json.dumps({"limits": LIMITS.model_dump(), "nice": 0}).encode() + b"\n")
    child.stdin.flush()
    time.sleep(0.5)
    assert child.poll() is None
    child.stdin.close()  # as the system does when the parent is killed
    assert child.wait(60) == 3
    child.stdout.close()


def test_the_child_knows_no_secret_and_reaches_no_other_file(
    tmp_path: Path, stand_in: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQSCOPE_SECRET", "x")
    stand_in("return {'result': {'names': sorted(os.environ), 'cwd': os.getcwd()}}")
    found = runner.run("guess", {}, tmp_path, LIMITS)
    assert "SEQSCOPE_SECRET" not in found["names"] and Path(found["cwd"]).parent == tmp_path


def test_the_database_reaches_no_other_file(tmp_path: Path) -> None:
    import duckdb

    from engine.tabular.database import connect

    (tmp_path / "work").mkdir()
    (tmp_path / "other.csv").write_text("a\n1\n")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "named.parquet")
    with connect(tmp_path / "work", LIMITS, readable=[tmp_path / "named.parquet"]) as con:
        assert con.execute(f"SELECT * FROM '{tmp_path}/named.parquet'").fetchall() == [(1,)]
        for query in (
            f"SELECT * FROM read_csv('{tmp_path}/other.csv')",
            f"SELECT * FROM read_csv('{tmp_path}/work/../other.csv')",
            "SELECT * FROM read_text('/etc/hostname')",
            f"SELECT * FROM glob('{tmp_path}/*')",
            f"COPY (SELECT 1) TO '{tmp_path}/written.csv'",
            f"ATTACH '{tmp_path}/x.duckdb'",
            "INSTALL httpfs",
            "SET enable_external_access = true",
            "SET memory_limit = '100GB'",
        ):
            with pytest.raises(duckdb.Error):
                con.execute(query).fetchall()
        con.execute(f"COPY (SELECT 1) TO '{tmp_path}/work/written.csv'")


def test_a_small_file_does_not_wait_for_those_that_take_long(
    tmp_path: Path, stand_in: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one visitor who keeps the server busy by files that only look small, and of another one with two rows."""
    monkeypatch.setenv("SEQSCOPE_UPLOADS", "1")
    stand_in(
        "name = request['path']\n"
        "    if name: open(name + '.begun', 'a').write('x')\n"
        "    while name and not os.path.exists(name + '.go'): say(0.6, 'At work'); sum(range(300_000))\n"
        "    oom = '/proc/self/oom_score_adj'\n"
        "    oom = open(oom).read().strip() if os.path.exists(oom) else '1000'\n"  # Linux alone has it
        "    return {'result': {'nice': os.nice(0), 'oom': oom}}"
    )
    heard: dict[str, list[str]] = {"bomb": [], "again": []}
    answers: dict[str, dict[str, object]] = {}

    def read(owner: str, name: str) -> None:
        path, listen = str(tmp_path / name), lambda done, words: heard[name].append(words)
        answers[name] = runner.run("guess", {"path": path}, tmp_path, LIMITS, owner=owner, on_progress=listen)

    for name in heard:
        (tmp_path / name).touch()
    first = threading.Thread(target=read, args=("anna", "bomb"))
    first.start()
    begun = tmp_path / "bomb.begun"
    wait(lambda: begun.exists() and begun.read_text() == "xx")  # once as small, then as long
    again = threading.Thread(target=read, args=("anna", "again"))
    again.start()
    wait(lambda: any("1 upload of yours" in words for words in heard["again"]))
    quick = runner.run("guess", {"path": ""}, tmp_path, LIMITS, owner="ben")
    assert first.is_alive() and again.is_alive()
    for name in heard:
        (tmp_path / f"{name}.go").touch()
    first.join(60)
    again.join(60)
    slow = answers["bomb"]
    assert int(str(slow["nice"])) > int(str(quick["nice"])) > os.nice(0) and slow["oom"] == "1000"


@pytest.mark.linux
@pytest.mark.parametrize(("free", "at_once"), [(1 << 40, 3), (0, 2)])
def test_a_large_file_does_not_wait_for_two_that_take_long_where_there_is_memory(
    tmp_path: Path, stand_in: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, free: int, at_once: int
) -> None:
    monkeypatch.setattr(runner, "memory", lambda: (free, free))
    monkeypatch.setattr(runner, "SMALL", -1)
    monkeypatch.setattr(runner, "LONG", 0.5)
    monkeypatch.setitem(runner.NICE, "slow", 1)  # `make test` runs at 16: what comes last is told from what is slow
    stand_in(
        "open(request['path'] + '.begun', 'w').close()\n"
        "    while not os.path.exists(request['path'] + '.go'):\n"
        "        say(0.6, 'At work'); sum(range(300_000))\n"
        "        if os.nice(0) == 19: open(request['path'] + '.last', 'w').close()\n"
        "    return {'result': {}}"
    )
    owners, waiting = ("anna", "ben", "clara"), set()

    def one(owner: str) -> None:
        path = tmp_path / owner
        path.touch()

        def say(done: float, words: str) -> None:
            if words.startswith("Waiting"):
                waiting.add(owner)

        runner.run("guess", {"path": str(path)}, tmp_path, LIMITS, owner=owner, on_progress=say)

    threads = [threading.Thread(target=one, args=(owner,)) for owner in owners]
    for thread in threads:
        thread.start()
    wait(lambda: len(list(tmp_path.glob("*.begun"))) + len(waiting) == 3)
    assert len(list(tmp_path.glob("*.begun"))) == at_once
    wait(lambda: any(tmp_path.glob("*.last")))  # who takes long comes after all others
    for owner in owners:
        (tmp_path / f"{owner}.go").touch()
    for thread in threads:
        thread.join(60)


# --- no message to a visitor holds a folder or a process of the server, whatever the file


def hostile(folder: Path) -> dict[str, bytes]:
    """Files that are refused, or read in part."""
    whole = folder / "whole.parquet"
    columns = {"id": ["1", "2"], "title": ["a", "b"], "x": pa.array([b"\xff\xfe", b"x"], pa.binary())}
    pq.write_table(pa.table(columns), whole)
    parquet = whole.read_bytes()
    chance = random.Random(0)
    bent = bytearray(parquet)
    for _ in range(8):
        bent[chance.randrange(4, len(bent) - 60)] ^= 0xFF
    return {
        "bytes": parquet, "cut": parquet[:-20], "no end": parquet[:40], "bent": bytes(bent),
        "no Parquet": b"PAR1" + b"x" * 99 + b"PAR1",
        "encrypted": b"PARE" + b"x" * 99 + b"PARE",
        "gzip": gzip.compress(ITEMS.encode())[:-9], "twice": gzip.compress(gzip.compress(b"x")),
        "zip": b"PK\x03\x04", "utf-16": b"\xff\xfe" + "id,title\n1,a\n".encode("utf-16-le")[:-1], "zeros": bytes(5_000),
        "json": b'[{"id": 1, "title": "a"', "deep": b"[" * 100_000, "quotes": b'"id,title\n1,a\n', "one": b"x",
        "pattern": b"user,item,time\na,b,yesterday\n",
    }  # fmt: skip


def test_no_message_of_an_upload_names_a_folder_or_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_HOME", str(tmp_path / "home"))
    pids: list[int] = []
    real, in_a_child = runner.subprocess.Popen, runner._run

    def begin(*words: object, **more: object) -> object:
        child = real(*words, **more)  # type: ignore[call-overload]
        pids.append(child.pid)
        return child

    monkeypatch.setattr(runner.subprocess, "Popen", begin)
    answers: dict[str, str] = {}
    for name, content in hostile(tmp_path).items():
        monkeypatch.setattr(runner, "_run", in_a_child if name in ("bent", "deep") else read_here)
        folder = home.here().stage()
        what = "log" if name == "pattern" else "catalogue"
        files.keep(folder, what, content, LIMITS)
        try:
            guess = files.guess(folder, what, LIMITS)
            reading = guess.reading
            for column, role in zip(reading.columns, ROLES[what][:3], strict=False):
                reading = reading.with_role(column.name, role)
            answers[f"{name}, as guessed"] = json.dumps(guess.model_dump(mode="json"))
            checked = files.check(folder, {what: reading.model_copy(update={"time": "%Y"})}, LIMITS)
            answers[f"{name}, checked"] = json.dumps(checked.model_dump(mode="json"))
        except UploadFailed as error:
            answers[name] = str(error)
    assert len(answers) > 17 and sum(len(words) < 400 for words in answers.values()) > 9
    places = {str(tmp_path), str(Path(__file__).parents[2]), os.path.expanduser("~"), "/tmp", "site-packages"}
    for name, words in answers.items():
        assert not [place for place in places if place in words], (name, words)
        assert not re.findall(rf"\b(?:{'|'.join(map(str, pids))})\b", words), (name, words)


def test_folders_and_processes_are_left_out_of_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_HOME", str(tmp_path / "home"))
    path = home.root() / "owners" / "b1" / "log.parquet"
    message = f'Another server (process 4711) holds "{path}", and PID 4712 {home.root()}/x, not a/b/c.'
    assert guard.shown(SeqscopeError(message)) == 'Another server holds "log.parquet", and x, not a/b/c.'


def test_a_folder_that_a_link_names_is_left_out_by_both_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As /tmp of macOS, which is /private/tmp."""
    (tmp_path / "disk" / "home").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "link"))
    monkeypatch.setenv("SEQSCOPE_HOME", str(tmp_path / "link" / "home"))
    file = home.root() / "tmp" / "log.csv"
    assert home.hidden(f"“{file}” or “{file.resolve()}”") == "“log.csv” or “log.csv”"
