"""Text files: what is not text, or not the text it claims to be, is told apart before anything is parsed."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from engine.data import text
from engine.data.text import inspect, kind_by_content
from engine.errors import SeqscopeError, UsageError


def made(folder: Path, content: bytes, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "quotes", "plain"),
    [
        (b"a,b\n1,2\n", False, True),
        (b"a,b\r\n1,2\r\n", False, True),
        ("ü,한국\n".encode(), False, True),
        (b"\xef\xbb\xbfa,b\n", False, True),
        (b"no end", False, True),
        (b'a,"b"\n', True, True),
        (b"a\r\nb\n", False, False),
        (b"a\rb\r", False, False),
        (b"a\x00\nb\n", False, False),
        (b"a\x01\nb\n", False, False),
    ],
)
def test_inspect(tmp_path: Path, content: bytes, quotes: bool, plain: bool) -> None:
    for path in (made(tmp_path, content), made(tmp_path, gzip.compress(content), "log.csv.gz")):
        found = inspect(path)
        assert (found.quotes, found.plain, found.gzipped) == (quotes, plain, path.suffix == ".gz")


def test_lines_are_those_of_an_editor(tmp_path: Path) -> None:
    found = inspect(made(tmp_path, b"\xef\xbb\xbfone\r\n\ntwo\rthree\nfour"))
    assert [(n, line and line.rstrip("\r\n")) for n, line in found.lines()] == [
        (1, "one"), (2, ""), (3, "two"), (4, "three"), (5, "four"),
    ]  # fmt: skip


def test_pairs_of_carriage_return_and_feed_are_not_parted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BLOCK", 7)
    content = b"x" * 8191 + b"\r\n" + b"abcdef\r\n" * 20
    assert inspect(made(tmp_path, content)).plain


def test_long_lines_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MAX_LINE", 10)
    found = inspect(made(tmp_path, b"short\n" + b"x" * 35 + b"\nshort\n123456789\nend"))
    assert list(found.lines()) == [(1, "short\n"), (2, None), (3, "short\n"), (4, "123456789\n"), (5, "end")]


@pytest.mark.parametrize("line", [1, 2, 700, 90_000])
def test_the_line_that_is_not_utf8(tmp_path: Path, line: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BLOCK", 50_001)
    rows = ["1,Amélie,3"] * 100_000
    content = "\n".join(rows).encode().split(b"\n")
    content[line - 1] = "1,Amélie,3".encode("latin-1")
    path = made(tmp_path, b"\n".join(content))
    with pytest.raises(SeqscopeError, match=rf"log.csv line {line}: byte 0xE9 is not UTF-8.*--encoding latin-1"):
        inspect(path)
    found = inspect(path, "latin-1")
    assert not found.plain
    assert next(text for number, text in found.lines() if number == line) == "1,Amélie,3\n"


def test_other_encodings(tmp_path: Path) -> None:
    path = made(tmp_path, "사용자,항목\n".encode("utf-16"))
    with pytest.raises(SeqscopeError, match="UTF-16"):
        inspect(path)
    assert next(inspect(path, "utf-16").lines()) == (1, "사용자,항목\n")
    with pytest.raises(SeqscopeError, match="middle of a character"):
        inspect(made(tmp_path, "한국".encode()[:-1]))
    with pytest.raises(UsageError, match="no such encoding"):
        inspect(path, "klingon")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("log.parquet", b"user,item\n1,2\n", "is not a Parquet file.*it is text"),
        ("log.parquet", gzip.compress(b"x", mtime=0), "is not a Parquet file.*gzip"),
        ("log.csv.gz", b"user,item\n1,2\n", "is not gzip-compressed.*it is text"),
        ("log.csv", b"PK\x03\x04....", "ZIP archive"),
        ("log.csv", b"%PDF-1.7", "a PDF"),
        ("log.xlsx", b"PK\x03\x04....", "Excel"),
        ("log.csv", b"", "is empty"),
        ("log.csv", b"BZh91AY", "bzip2"),
    ],
)
def test_files_that_are_not_what_they_say(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    with pytest.raises(SeqscopeError, match=message):
        kind_by_content(made(tmp_path, content, name))


def test_binary_and_damaged_files(tmp_path: Path) -> None:
    with pytest.raises(SeqscopeError, match="is not text"):
        inspect(made(tmp_path, bytes(range(32)) * 100))
    with pytest.raises(SeqscopeError, match="damaged or cut off"):
        inspect(made(tmp_path, gzip.compress(b"user,item\n" * 5000)[:-20], "log.gz"))
    with pytest.raises(SeqscopeError, match="does not exist"):
        inspect(tmp_path / "none.csv")
    with pytest.raises(SeqscopeError, match="is a folder"):
        inspect(tmp_path)
    with pytest.raises(SeqscopeError, match="Parquet"):
        inspect(made(tmp_path, b"PAR1....PAR1"))
