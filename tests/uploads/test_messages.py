"""No message to a visitor holds a folder or a process of the server, whatever the file."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app import guard, home
from app.uploads import files, runner
from app.uploads.runner import UploadFailed
from engine.errors import SeqscopeError
from engine.tabular.reading import ROLES
from tests.app.own import read_here
from tests.uploads.conftest import ITEMS, LIMITS


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
