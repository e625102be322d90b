"""Bytes to plain lines: what is not text, or not the text it claims to be, is refused; lines are those of an editor."""

import gzip
from pathlib import Path

import pytest

from engine.errors import Refused, SeqscopeError
from engine.tabular import rows, text
from engine.tabular.dialect import Splitter
from engine.tabular.reading import UNLIMITED
from engine.tabular.text import Plain, content_kind, head, named, write_plain


def made(folder: Path, content: bytes, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def plain(path: Path, encoding: str = "utf-8") -> Plain:
    target = path.with_suffix(".plain")
    gzipped = content_kind(path) == "gzip"
    return write_plain(path, target, encoding, UNLIMITED, gzipped=gzipped, quote='"', strict=True)


@pytest.mark.parametrize(
    ("content", "lines", "quoted"),
    [
        (b"a,b\n1,2\n", "a,b\n1,2\n", False),
        (b"a,b\r\n1,2\r\n", "a,b\n1,2\n", False),
        ("ü,한국\n".encode(), "ü,한국\n", False),
        (b"\xef\xbb\xbfone\r\n\ntwo\rthree\nfour", "one\n\ntwo\nthree\nfour\n", False),
        (b'a,"b"\n', 'a,"b"\n', True),
        (b"a\x00\x01\nb\n", "a␀␁\nb\n", False),
    ],
)
def test_lines_are_those_of_an_editor(tmp_path: Path, content: bytes, lines: str, quoted: bool) -> None:
    for path in (made(tmp_path, content), made(tmp_path, gzip.compress(content), "log.csv.gz")):
        written = plain(path)
        assert (written.path.read_text("utf-8"), written.quoted) == (lines, quoted)
        assert written.lines == lines.count("\n")
        assert head(path) == [line for line in lines.splitlines() if line]


def test_pairs_of_carriage_return_and_feed_are_not_parted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BLOCK", 7)
    assert plain(made(tmp_path, b"abcdef\r\n" * 20)).path.read_bytes() == b"abcdef\n" * 20


def test_of_long_lines_the_beginning_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MAX_LINE", 10)
    monkeypatch.setattr(text, "BLOCK", 8)
    written = plain(made(tmp_path, b"short\n" + b"x" * 35 + b"\nshort\nend"))
    assert written.long_lines == [2] and written.lines == 4
    assert written.path.read_text().split("\n")[2:] == ["short", "end", ""]


@pytest.mark.parametrize("line", [1, 700, 9_000])
def test_the_line_that_is_not_utf8(tmp_path: Path, line: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BLOCK", 5_001)
    content = "\n".join(["1,Amélie,3"] * 10_000).encode().split(b"\n")
    content[line - 1] = "1,Amélie,3".encode("latin-1")
    path = made(tmp_path, b"\n".join(content))
    with pytest.raises(Refused, match=rf"Line {line}: byte 0xE9 is not UTF-8.*--encoding latin-1"):
        plain(path)
    assert plain(path, "latin-1").path.read_text("utf-8").split("\n")[line - 1] == "1,Amélie,3"


def test_other_encodings(tmp_path: Path) -> None:
    path = made(tmp_path, "사용자,항목\n".encode("utf-16"))
    with pytest.raises(Refused, match=r"byte 0xFF is not UTF-8.*--encoding .*utf-16"):
        head(path)
    with pytest.raises(Refused, match=r"Line 1: byte 0xE9 is not UTF-8.*--encoding latin-1"):  # nor is any other line
        plain(made(tmp_path, "Amélie\n".encode("latin-1") * 2_000, "latin.csv"))
    assert head(path, "utf-16") == ["사용자,항목"]
    with pytest.raises(Refused, match=r"without a byte order mark at its beginning\..*utf-16-le or utf-16-be"):
        head(made(tmp_path, "사용자,항목\n".encode("utf-16-le"), "bare.csv"), "utf-16")
    with pytest.raises(Refused, match="Line 1: byte 0xEA is not UTF-8"):
        head(made(tmp_path, "한국".encode()[:-1]))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("log.parquet", b"user,item\n1,2\n", "is not a Parquet file.*it is text"),
        ("log.csv.gz", b"user,item\n1,2\n", "is not packed with gzip.*it is text"),
        ("log.xlsx", b"PK\x03\x04....", "Excel"),
        ("log.csv", b"", "is empty"),
        ("log.csv", b"BZh91AY", "bzip2"),
    ],
)
def test_files_that_are_not_what_they_say(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    with pytest.raises(Refused, match=message):
        content_kind(made(tmp_path, content, name))


def test_binary_and_damaged_files(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is not text"):
        head(made(tmp_path, bytes(range(32)) * 100))
    with pytest.raises(Refused, match="damaged or was cut off"):
        head(made(tmp_path, gzip.compress(b"user,item\n" * 5000)[:-20], "log.gz"))
    for path, fault in ((tmp_path / "none.csv", "does not exist"), (tmp_path, "is a folder")):
        with pytest.raises(SeqscopeError, match=f"{path.name}.* {fault}"), named(path):
            head(path)


def test_rows_of_several_lines_are_held_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_HELD", 200)
    path = made(tmp_path, b"".join(b'%d,"one\ntwo"\n' % number for number in range(100)))
    covered: list[int] = []
    parts = list(rows._joined(path, Splitter(",", '"'), 2, {*range(1, 201, 2)}, covered, []))
    assert max(sum(len(cell) for _, _, cell in part) for part in parts) <= 200 + len('99,"one\ntwo"')
    assert [line for part in parts for line, _, _ in part] == [*range(1, 201, 2)] and covered == [*range(1, 201)]
