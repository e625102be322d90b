"""Downloads: whole or not at all, whatever the server does."""

import hashlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.data.download import Patience, download, get_text
from engine.errors import SeqscopeError
from tests.data.server import Misbehaviour, Server

CONTENT = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server({"set.zip": CONTENT, "notes.txt": "한국".encode()})
    yield started
    started.stop()


@pytest.fixture
def pauses() -> list[float]:
    """Seconds that the download would have waited."""
    return []


@pytest.fixture
def patience(pauses: list[float]) -> Patience:
    return Patience(stall=0.3, retries=4, sleep=pauses.append)


def left_behind(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_good_day(server: Server, tmp_path: Path, patience: Patience, pauses: list[float]) -> None:
    assert download(f"{server.url}/set.zip", tmp_path / "x", patience=patience) == SHA256
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert left_behind(tmp_path) == ["x"] and pauses == [] and server.requests == [("set.zip", None)]


@pytest.mark.parametrize("fault", ["cut", "stall"])
def test_what_arrived_is_continued(server: Server, tmp_path: Path, pauses: list[float], fault: str) -> None:
    server.plan["set.zip"] = Misbehaviour([fault, "cut", "cut"])
    patience = Patience(stall=2, retries=4, sleep=pauses.append)  # a busy machine is silent for a while, too
    assert download(f"{server.url}/set.zip", tmp_path / "x", patience=patience) == SHA256
    asked = [int(re.findall(r"\d+", wanted)[0]) if wanted else 0 for _, wanted in server.requests]
    assert asked == [0, len(CONTENT) // 2, len(CONTENT) * 3 // 4, len(CONTENT) * 7 // 8]


def test_another_run_continues(server: Server, tmp_path: Path, pauses: list[float]) -> None:
    server.plan["set.zip"] = Misbehaviour(["cut", "status 503", "status 503"])
    with pytest.raises(SeqscopeError, match=r"503.*given up after 2 attempts.*kept and continued"):
        download(f"{server.url}/set.zip", tmp_path / "x", patience=Patience(retries=2, sleep=pauses.append))
    assert left_behind(tmp_path) == ["x.part", "x.part.json"]
    assert download(f"{server.url}/set.zip", tmp_path / "x", patience=Patience(sleep=pauses.append)) == SHA256
    assert server.requests[-1] == ("set.zip", f"bytes={len(CONTENT) // 2}-") and left_behind(tmp_path) == ["x"]


@pytest.mark.parametrize("script", [["cut", "whole"], ["cut", "shifted"], ["endless"]])
def test_servers_without_ranges_with_another_range_and_without_a_length(
    server: Server, tmp_path: Path, patience: Patience, script: list[str]
) -> None:
    server.plan["set.zip"] = Misbehaviour(script)
    assert download(f"{server.url}/set.zip", tmp_path / "x", patience=patience) == SHA256


def interrupted(server: Server, target: Path) -> None:
    """Leaves the first half of the file."""
    server.plan["set.zip"] = Misbehaviour(["cut"])
    with pytest.raises(SeqscopeError, match="given up"):
        download(f"{server.url}/set.zip", target, patience=Patience(retries=1))


def test_a_file_that_changed_meanwhile_is_not_glued_together(server: Server, tmp_path: Path) -> None:
    interrupted(server, tmp_path / "x")
    server.files["set.zip"] = CONTENT[::-1]
    assert download(f"{server.url}/set.zip", tmp_path / "x") == hashlib.sha256(CONTENT[::-1]).hexdigest()


def test_bytes_of_unknown_origin_are_not_continued(server: Server, tmp_path: Path, patience: Patience) -> None:
    (tmp_path / "x.part").write_bytes(b"something else")
    assert download(f"{server.url}/set.zip", tmp_path / "x", patience=patience) == SHA256
    server.weak = True  # a weak ETag does not promise the same bytes
    server.plan["set.zip"] = Misbehaviour(["cut"])
    assert download(f"{server.url}/set.zip", tmp_path / "y", patience=patience) == SHA256
    assert server.requests[-1] == ("set.zip", None)


@pytest.mark.parametrize("beyond", [b"", b"too long"])
def test_a_part_that_was_whole_already(server: Server, tmp_path: Path, patience: Patience, beyond: bytes) -> None:
    interrupted(server, tmp_path / "x")
    (tmp_path / "x.part").write_bytes(CONTENT + beyond)
    assert download(f"{server.url}/set.zip", tmp_path / "x", patience=patience) == SHA256


def test_corruption_is_noticed(server: Server, tmp_path: Path, patience: Patience) -> None:
    server.plan["set.zip"] = Misbehaviour(["corrupt"])
    assert download(f"{server.url}/set.zip", tmp_path / "x", checksum=("sha256", SHA256), patience=patience) == SHA256
    server.plan["set.zip"] = Misbehaviour(always="corrupt")
    with pytest.raises(SeqscopeError, match=r"md5 checksum is .* twice.*Nothing was kept"):
        md5 = hashlib.md5(CONTENT).hexdigest()
        download(f"{server.url}/set.zip", tmp_path / "y", checksum=("md5", md5), patience=patience)
    assert left_behind(tmp_path) == ["x"]


def test_pauses_grow_and_end(server: Server, tmp_path: Path, patience: Patience, pauses: list[float]) -> None:
    server.plan["set.zip"] = Misbehaviour(always="status 500")
    with pytest.raises(SeqscopeError, match="given up after 4 attempts"):
        download(f"{server.url}/set.zip", tmp_path / "x", patience=patience)
    assert pauses == [1, 2, 4] and len(server.requests) == 4


def test_what_will_not_get_better_is_not_repeated(
    server: Server, tmp_path: Path, pauses: list[float], patience: Patience
) -> None:
    with pytest.raises(SeqscopeError, match=r"404.*--base-url"):
        download(f"{server.url}/gone.zip", tmp_path / "x", patience=patience)
    for url in (
        "file:///etc/passwd",
        "ftp://host/x",
        "set.zip",
        "http:///set.zip",
        "http://host:port/x",
        "http://[::1/x",
    ):
        with pytest.raises(SeqscopeError, match="only http and https"):
            download(url, tmp_path / "x", patience=patience)
        with pytest.raises(SeqscopeError, match="only http and https"):
            get_text(url, patience=patience)
    assert pauses == [] and left_behind(tmp_path) == []


def test_nobody_there(tmp_path: Path, patience: Patience) -> None:
    with pytest.raises(SeqscopeError, match=r"Connection refused.*given up after 4 attempts.*reachable"):
        download("http://127.0.0.1:9/set.zip", tmp_path / "x", patience=patience)


def test_no_room(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(SeqscopeError, match=r"1,000 bytes free.*Make room"):
        download(f"{server.url}/set.zip", tmp_path / "x")


def test_small_texts(server: Server, patience: Patience) -> None:
    server.plan["notes.txt"] = Misbehaviour(["status 503"])
    assert get_text(f"{server.url}/notes.txt", patience=patience) == "한국"
    assert get_text(f"{server.url}/none.txt", patience=patience) is None
    server.plan["notes.txt"] = Misbehaviour(always="status 503")
    with pytest.raises(SeqscopeError, match="given up"):
        get_text(f"{server.url}/notes.txt", patience=patience)
