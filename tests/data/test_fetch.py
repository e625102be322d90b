"""Public sets: terms first, checksums always, archives that cannot leave their folder."""

import dataclasses
import gzip
import hashlib
import io
import json
import shlex
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.data.dataset import Dataset
from engine.data.fetch import PUBLIC, unpack
from engine.errors import SeqscopeError
from tests import shop
from tests.data.conftest import Bench, item_rows
from tests.data.server import Misbehaviour, Server


def archive(members: dict[str, str | bytes], *, links: tuple[str, ...] = ()) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (stat.S_IFLNK | 0o777 if name in links else stat.S_IFREG | 0o644) << 16
            file.writestr(info, content)
    return target.getvalue()


RATINGS = "".join(f"{u}::{i}::4::{978_300_000 + i}\n" for u in range(1, 7) for i in range(1, 7))
ML_1M = archive(
    {"ml-1m/README": "terms", "ml-1m/ratings.dat": RATINGS, "ml-1m/movies.dat": "1::Toy Story (1995)::Comedy\n"}
)
REVIEWS = gzip.compress(
    "\n".join(
        json.dumps({"reviewerID": f"A{u}", "asin": f"B{i}", "unixReviewTime": 86_400 * i, "overall": 5.0})
        for u in range(6)
        for i in range(6)
    ).encode()
)
META = gzip.compress(b"{'asin': 'B1', 'title': 'One'}\n")


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server(
        {
            "ml-1m.zip": ML_1M,
            "ml-1m.zip.md5": f"{hashlib.md5(ML_1M).hexdigest()}  ml-1m.zip\n".encode(),
            "reviews_Beauty_5.json.gz": REVIEWS,
            "meta_Beauty.json.gz": META,
        }
    )
    yield started
    started.stop()


def fetch(bench: Bench, server: Server, name: str, to: str = "") -> int:
    words = ("fetch", name, "--to", bench.folder / to, "--base-url", server.url, "--accept-licence")
    return bench.run(*words)


def test_movielens_is_checked_unpacked_and_ready_to_import(bench: Bench, server: Server) -> None:
    assert fetch(bench, server, "ml-1m", "raw") == 0, bench.err
    assert "do not redistribute" in bench.out and "matches the published md5" in bench.out
    assert f"next: seqscope data import {bench.folder}/raw/ml-1m --source ml-1m --out data/ml-1m" in bench.out
    assert sorted(path.name for path in (bench.folder / "raw").iterdir()) == ["checksums.json", "ml-1m", "ml-1m.zip"]
    assert bench.load(bench.folder / "raw" / "ml-1m", "--source", "ml-1m").info.counts["events"] == 36
    requests = len(server.requests)
    assert fetch(bench, server, "ml-1m", "raw") == 0
    assert "here already and unchanged" in bench.out and len(server.requests) == requests
    (bench.folder / "raw" / "ml-1m.zip").write_bytes(ML_1M + b"x")
    assert fetch(bench, server, "ml-1m", "raw") == 1 and "is not as it was fetched" in bench.err


def test_bsd_style_checksums(bench: Bench, server: Server) -> None:
    server.files["ml-1m.zip.md5"] = f"MD5 (ml-1m.zip) = {hashlib.md5(ML_1M).hexdigest().upper()}\n".encode()
    assert bench.run("fetch", "ml-1m", "--to", bench.folder, "--base-url", server.url + "/", "--accept-licence") == 0
    assert "matches the published md5" in bench.out


def test_amazon_has_no_published_checksum_so_the_first_download_is_recorded(bench: Bench, server: Server) -> None:
    assert fetch(bench, server, "amazon-beauty", "raw") == 0, bench.err
    folder = bench.folder / "raw" / "amazon-beauty"
    record = json.loads((folder / "checksums.json").read_text())
    assert record == {
        "reviews_Beauty_5.json.gz": hashlib.sha256(REVIEWS).hexdigest(),
        "meta_Beauty.json.gz": hashlib.sha256(META).hexdigest(),
    }
    assert "nothing published to compare with; recorded in" in bench.out and "No licence is stated" in bench.out
    assert bench.load(folder, "--source", "amazon").info.counts["events"] == 36
    (folder / "meta_Beauty.json.gz").unlink()
    assert fetch(bench, server, "amazon-beauty", "raw") == 0 and "matches the first download" in bench.out
    (folder / "meta_Beauty.json.gz").unlink()
    server.files["meta_Beauty.json.gz"] = gzip.compress(b"{'asin': 'B1', 'title': 'Other'}\n")
    assert fetch(bench, server, "amazon-beauty", "raw") == 1 and "sha256 checksum is" in bench.err
    (folder / "checksums.json").write_text("{")
    assert fetch(bench, server, "amazon-beauty", "raw") == 1 and "Delete it to start a new record" in bench.err


def test_movietweetings_needs_no_catalogue_of_its_own_and_no_accounts(bench: Bench, server: Server) -> None:
    rows = [f"{u}::000{i}::{i % 11}::{1_362_062_078 + i}\n" for u in range(12) for i in range(12)]
    server.files["ratings.dat"] = "".join(rows).encode()
    server.files["movies.dat"] = "".join(f"000{i}::Amélie {i} (2001)::Comedy|Romance\n" for i in range(12)).encode()
    assert fetch(bench, server, "movietweetings") == 0, bench.err
    assert "MIT" in bench.out and "known problems" in bench.out
    assert not any("users" in name for name, _ in server.requests)
    dataset = bench.load(bench.folder / "movietweetings", "--source", "movietweetings")
    assert item_rows(dataset)[0]["title"] == "Amélie 0 (2001)" and dataset.info.options["k_core"] == 10
    assert "MIT" in dataset.info.licence


def follow(bench: Bench, out: Path) -> Dataset:
    """The dataset that the printed next step makes, in `out`."""
    words = shlex.split(bench.out.split("next: seqscope data ")[1])
    words[words.index("--out") + 1] = str(out)
    assert bench.run(*words) == 0, bench.err
    return Dataset(out)


def test_a_shop_gets_a_catalogue_and_the_next_step_leaves_out_what_is_wrong(bench: Bench, server: Server) -> None:
    """And can be pasted where the folder has blanks."""
    server.files["data.csv"] = shop.log().encode()
    assert fetch(bench, server, "online-retail", "my data") == 0, bench.err
    assert "CC BY 4.0" in bench.out and "cancellations" in bench.out
    dataset = follow(bench, bench.folder / "out" / "online-retail")
    assert dataset.info.left_out["negative quantity"] > 0 and dataset.info.options["ties"] == "shuffle"
    assert {row["title"].split()[0] for row in item_rows(dataset)} == {"ARTICLE"}
    assert set(item_rows(dataset)[0]) == {"item", "item_id", "title"}  # and nothing of a single order or customer


RATED = "user_id,book_id,rating\n" + "".join(f"{u},{b},5\n" for u in range(1, 13) for b in range(1, 13))
BOOKS = "book_id,authors,original_publication_year,title,language_code,ratings_count\n" + "".join(
    f'{b},"A, B",2008.0,"Book, {b}",eng,4780653\n' for b in range(1, 13)
)


def test_books_are_checked_and_their_counts_of_ratings_left_out(
    bench: Bench, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files |= {"ratings.csv": RATED.encode(), "books.csv": BOOKS.encode()}
    assert fetch(bench, server, "goodbooks-10k") == 1 and "the git checksum is" in bench.err
    assert not (bench.folder / "goodbooks-10k" / "ratings.csv").exists()
    known = {
        "ratings.csv": ("git", hashlib.sha1(b"blob %d\0" % len(RATED) + RATED.encode()).hexdigest()),
        "books.csv": ("sha256", hashlib.sha256(BOOKS.encode()).hexdigest()),
    }
    monkeypatch.setitem(PUBLIC, "goodbooks-10k", dataclasses.replace(PUBLIC["goodbooks-10k"], checksums=known))
    assert fetch(bench, server, "goodbooks-10k") == 0, bench.err
    assert "matches the known checksum" in bench.out and "CC BY-SA 4.0" in bench.out
    dataset = follow(bench, bench.folder / "out" / "goodbooks-10k")
    assert item_rows(dataset)[0] == {
        "item": 0, "item_id": "1", "title": "Book, 1", "authors": "A, B", "year": 2008, "language": "eng",
    }  # fmt: skip


def test_a_page_in_place_of_a_table_gives_no_catalogue(bench: Bench, server: Server) -> None:
    server.files["data.csv"] = b"<html>Please log in to the network</html>"
    assert fetch(bench, server, "online-retail") == 1 and "Delete them and fetch them again" in bench.err


def test_an_error_page_is_not_a_data_set(bench: Bench, server: Server) -> None:
    server.files["reviews_Beauty_5.json.gz"] = b"<html>Please log in to the network</html>"
    assert fetch(bench, server, "amazon-beauty") == 1 and "not a whole gzip file" in bench.err
    assert list((bench.folder / "amazon-beauty").iterdir()) == []
    server.files["reviews_Beauty_5.json.gz"] = REVIEWS[:-9]
    assert fetch(bench, server, "amazon-beauty") == 1 and "not a whole gzip file" in bench.err


def test_a_damaged_archive_is_refused(bench: Bench, server: Server) -> None:
    server.plan["ml-1m.zip"] = Misbehaviour(always="corrupt")
    assert fetch(bench, server, "ml-1m") == 1
    assert "md5 checksum is" in bench.err and list(bench.folder.iterdir()) == []
    del server.files["ml-1m.zip.md5"]
    server.plan.clear()
    server.files["ml-1m.zip"] = ML_1M[:100]
    assert fetch(bench, server, "ml-1m") == 1
    assert "cannot be checked against its publisher" in bench.out and "no ZIP archive" in bench.err


def test_terms_come_first(bench: Bench, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("fetch", "ml-1m", "--to", bench.folder / "raw", "--base-url", server.url)
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    assert bench.run(*words) == 2 and "--accept-licence" in bench.err  # nobody is there to answer
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin", terminal)
    monkeypatch.setattr("builtins.input", lambda prompt: "n")
    assert bench.run(*words) == 1 and "not accepted" in bench.err
    assert server.requests == [] and not (bench.folder / "raw").exists()
    monkeypatch.setattr("builtins.input", lambda prompt: " Y ")
    assert bench.run(*words) == 0 and (bench.folder / "raw" / "ml-1m" / "ratings.dat").exists()


def test_a_folder_that_cannot_be(bench: Bench, server: Server) -> None:
    bench.write("file", "")
    assert fetch(bench, server, "ml-1m", "file/raw") == 1 and "Name another folder" in bench.err


def test_patience_is_a_number_of_seconds(bench: Bench) -> None:
    for stall in ("-1", "0", "nan", "inf"):
        assert bench.run("fetch", "ml-1m", "--to", bench.folder, "--accept-licence", f"--stall={stall}") == 2


def test_unknown_sets(bench: Bench) -> None:
    assert bench.run("fetch", "netflix", "--to", bench.folder) == 2
    assert all(name in bench.err for name in PUBLIC)


@pytest.mark.parametrize("name", ["a/../../evil", "/etc/evil", "a\\..\\evil", "C:/evil", "."])
def test_no_member_leaves_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.zip").write_bytes(archive({"good": "1", name: "2"}))
    with pytest.raises(SeqscopeError, match="leaves its folder"):
        unpack(tmp_path / "x.zip", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["x.zip"]


def test_no_links_no_bombs_no_clashes_nothing_encrypted(tmp_path: Path) -> None:
    (tmp_path / "link.zip").write_bytes(archive({"a": "/etc/passwd"}, links=("a",)))
    with pytest.raises(SeqscopeError, match="no plain file"):
        unpack(tmp_path / "link.zip", tmp_path / "out")
    sealed = archive({"a": "x"})
    for header in (b"PK\1\2", b"PK\3\4"):
        flags = sealed.index(header) + (8 if header == b"PK\1\2" else 6)
        sealed = sealed[:flags] + b"\1" + sealed[flags + 1 :]
    (tmp_path / "sealed.zip").write_bytes(sealed)
    with pytest.raises(SeqscopeError, match="'a' is encrypted"):
        unpack(tmp_path / "sealed.zip", tmp_path / "out")
    (tmp_path / "bomb.zip").write_bytes(archive({"a": bytes(120_000_000)}))
    with pytest.raises(SeqscopeError, match="unpack to 120,000,000"):
        unpack(tmp_path / "bomb.zip", tmp_path / "out")
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = io.BytesIO()
        with zipfile.ZipFile(twice, "w") as file:
            file.writestr("a", "1")
            file.writestr("a", "2")
    (tmp_path / "twice.zip").write_bytes(twice.getvalue())
    with pytest.raises(SeqscopeError, match="cannot be read or written"):
        unpack(tmp_path / "twice.zip", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_single_top_folder_is_left_away(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(archive({"top/x": "1", "top/deep/y": "2"}))
    unpack(tmp_path / "a.zip", tmp_path / "a")
    assert sorted(str(p.relative_to(tmp_path / "a")) for p in (tmp_path / "a").rglob("*")) == ["deep", "deep/y", "x"]
    (tmp_path / "b.zip").write_bytes(archive({"x": "1", "top/y": "2"}))
    unpack(tmp_path / "b.zip", tmp_path / "b")
    assert (tmp_path / "b" / "top" / "y").read_text() == "2"
