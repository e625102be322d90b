"""`seqscope data`: what it prints, what it returns, what it leaves behind."""

import argparse
import dataclasses
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from engine.commands.data import FORMATS, _configure_import
from engine.data.dataset import Dataset
from engine.data.options import ImportOptions
from engine.data.sources import SOURCES
from engine.tabular.database import connect_file
from tests.data.conftest import LOG, Bench, item_ids, user_ids


def test_describe(bench: Bench) -> None:
    dataset = bench.load(bench.write("log.csv", LOG + "1,2\n"), "--title", "Toy ünïcode", "--licence", "mine")
    imported = bench.out
    assert bench.run("describe", dataset.path) == 0 and bench.out + f"written      {dataset.path}\n" == imported
    for part in ("Toy ünïcode", "mine", "4 users, 4 items, 16 events", "8 events train", dataset.info.fingerprint):
        assert part in bench.out
    assert bench.run("describe", dataset.path, "--json") == 0
    assert bench.out == dataset.info.to_json()


def test_describe_what_is_no_dataset(bench: Bench) -> None:
    assert bench.run("describe", bench.folder / "none") == 1 and "does not exist" in bench.err
    assert bench.run("describe", bench.folder) == 1 and "not a prepared dataset" in bench.err
    assert bench.run("describe", bench.write("a file", "")) == 1 and "not a prepared dataset" in bench.err
    bench.write("bad/dataset.json", "{")
    assert bench.run("describe", bench.folder / "bad") == 1 and "not valid JSON" in bench.err
    bench.write("old/dataset.json", '{"schema_version": 99}')
    assert bench.run("describe", bench.folder / "old") == 1 and "schema version 99" in bench.err
    dataset = bench.load(bench.write("log.csv", LOG), name="toy").path / "dataset.json"
    dataset.write_text(json.dumps(json.loads(dataset.read_text("utf-8")) | {"references": [{"title": "x"}]}), "utf-8")
    assert bench.run("describe", dataset.parent) == 1 and "references" in bench.err


def test_wrong_use(bench: Bench) -> None:
    log = bench.write("log.csv", LOG)
    for words in (
        ("--k-core", -1), ("--min-history", 0), ("--delimiter", ""), ("--ties", "magic"), ("--encoding", "klingon"),
        ("--encoding", "base64"), ("--item-column", "nope"), ("--split", "time", "--quantiles", 0, 1), ("--duplicates", "last"),
        ("--ties", "shuffle", "--seed", -1), ("--split", "users", "--held-out-users", "nan", 1),
        ("--split", "users", "--held-out-users", "inf", 1), ("--valid-share", 0.5), ("--fold-in", 0.5), ("--quantiles", 0.1, 0.2),
        ("--min-rating", "nan"), ("--min-rating", "inf"), ("--report", log), ("--items", log, "--list-column", "nope"),
        ("--split", "users", "--held-out-users", 1.5, 1), ("--split", "time", "--valid-from", "9" * 5_000),
        ("--time-column", "-", "--time-unit", "ms"), (log,), ("--title-column", "item"), ("--list-column", "item"),
    ):  # fmt: skip
        bench.fails(log, *words, code=2)
    assert bench.run("import", log, "--out", bench.folder / "Not A Name") == 2 and "lowercase" in bench.err
    assert bench.run() == 2 and bench.run("import") == 2 and bench.run("frobnicate") == 2


def test_memory_that_cannot_do(bench: Bench) -> None:
    log = bench.write("log.csv", LOG)
    assert "--memory" in bench.fails(log, "--memory", "a lot")
    assert "Raise --memory" in bench.fails(log, "--memory", "1KB")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
    try:
        refusal = bench.fails(log)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "free space" in refusal and "--memory" not in refusal  # it is the disk that cannot


@pytest.fixture
def interruptible() -> Iterator[None]:
    """As a command is, whatever a test before has left of it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupted_within_a_query_is_interrupted(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), connect_file(tmp_path, memory="1GB", threads=1) as con:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        con.execute(
            "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range % 7 = b.range % 5"
        ).fetchall()


def test_the_options_in_dataset_json_repeat_the_import(bench: Bench) -> None:
    given = {"duplicates": "keep", "ties": "shuffle", "seed": 3, "min_history": 2}
    words = [word for name, value in given.items() for word in ("--" + name.replace("_", "-"), value)]
    kept = bench.load(bench.write("log.csv", LOG), *words).info.options
    assert kept["paths"] == ["log.csv"] and given.items() <= kept.items()
    names = {field.name for field in dataclasses.fields(ImportOptions)}
    assert set(kept) == names - {"out", "name", "report", "overwrite", "memory", "threads", "strict"}
    assert str(bench.folder) not in json.dumps(kept)  # nothing about this machine


def test_the_database_is_closed_to_the_network_and_to_python(tmp_path: Path) -> None:
    problems = pa.table({"x": [1]})  # a variable that a query could name
    with connect_file(tmp_path, memory="1GB", threads=1) as con:
        with pytest.raises(duckdb.Error, match="does not exist"):
            con.execute("SELECT * FROM problems").fetchall()
        assert len(problems) == 1
        for name in ("autoinstall_known_extensions", "autoload_known_extensions", "allow_community_extensions"):
            assert con.execute(f"SELECT current_setting('{name}')").fetchall() == [(False,)]
        assert con.execute("SELECT current_setting('temp_directory')").fetchall() == [(str(tmp_path / "spill"),)]


def test_every_source_and_every_option_is_documented(root: Path) -> None:
    text = (root / "docs" / "data.md").read_text("utf-8")
    actions = argparse.ArgumentParser().add_subparsers()
    _configure_import(actions)
    options = {flag for action in actions.choices["import"]._actions for flag in action.option_strings}
    assert [name for name in [*SOURCES, *(options - {"-h", "--help"})] if f"`{name}" not in text] == []
    for source in SOURCES.values():
        line = next(line for line in FORMATS.splitlines() if line.split()[:1] == [source.name])
        assert line.endswith(f"k-core {source.k_core}")


ROWS = 100_000
LIMIT = """
import sys
from engine.cli import main
code = main(sys.argv[1:])
# VmHWM belongs to this program; getrusage's peak is inherited from the process that started it
with open("/proc/self/status") as status:
    print("peak", next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM")))
sys.exit(code)
"""


@pytest.mark.linux
@pytest.mark.long
def test_a_hundred_thousand_rows(tmp_path: Path, root: Path) -> None:
    """The same answer as straight-line Python, in bounded memory."""
    rng = np.random.default_rng(5)
    users, items = rng.integers(0, 3_000, ROWS), (2_000 * rng.random(ROWS) ** 3).astype(int)
    times = rng.integers(1_000_000_000, 1_000_100_000, ROWS)
    events: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    with (tmp_path / "log.csv").open("w") as file:
        file.write("user_id,item_id,timestamp\n")
        for row, (user, item, time) in enumerate(zip(users, items, times, strict=True)):
            file.write(f"user-{user},item-{item},{time}\n")
            events[f"user-{user}"].append((int(time), row, f"item-{item}"))

    options = ["--out", tmp_path / "big", "--memory", "200MB", "--duplicates", "keep"]
    words = ["data", "import", tmp_path / "log.csv", *options]
    command = [sys.executable, "-c", LIMIT, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < 700  # MB, most of it the libraries themselves

    dataset = Dataset(tmp_path / "big")
    ids = item_ids(dataset)
    assert len(dataset.events.values) == ROWS and ids == sorted(ids)
    assert user_ids(dataset) == sorted(events)
    for number, user in enumerate(sorted(events)):
        assert [ids[item] for item in dataset.events[number]] == [item for _, _, item in sorted(events[user])]
