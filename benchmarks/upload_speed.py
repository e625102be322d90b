"""How long an upload is looked at and checked, in the child that the app would start, with its bounds.

    python -m benchmarks.upload_speed [--rows 1000000] [--cases csv,tsv,jsonl,parquet,log,long-log]

The catalogue has six columns (id, title, category, brand, price, a description), about 95 bytes a row, one row in a thousand of
it wrong; in the CSV file every row has a quoted title with a comma in it, one in fifty a line end as well. The log has five times
as many rows as the catalogue, the long log ten times: it is refused. CPU seconds are those of the child; they tell more than the
clock on a machine that does other things, too.
"""

import argparse
import gzip
import json
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from app.uploads import files
from app.uploads.limits import UploadLimits
from app.uploads.runner import UploadFailed
from engine.tabular.findings import CheckResult
from engine.tabular.reading import MB, FileKind

WORDS = np.array(
    [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in ("a", "ei", "o", "u") for c in ("n", "rk", "st", "lo", "mi")]
)


def rows(number: int) -> Iterator[tuple[str, str, str, str, str, str]]:
    """id, title, category, brand, price, description; one in a thousand is wrong in some way."""
    chance = np.random.default_rng(1)
    for start in range(0, number, 10_000):
        words = WORDS[chance.integers(len(WORDS), size=(10_000, 15))]
        for place in range(start, min(start + 10_000, number)):
            word = words[place - start]
            title = f"{word[0]} {word[1]}, {word[2]} {place}"
            if place % 50 == 0:
                title = title.replace(", ", ",\n")
            wrong = place % 1_000 == 999
            item = "" if wrong and place % 3_000 == 2_999 else str(place - wrong)
            yield (
                item, title, word[3], f"{word[4]} {word[5]}", f"{place % 977}.{place % 90 + 10}", " ".join(word[6:]),
            )  # fmt: skip


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def write_csv(path: Path, number: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write("item_id,title,category,brand,price,description\n")
        for item, title, *rest in rows(number):
            file.write(f"{item},{quoted(title)},{','.join(rest)}\n")


def write_tsv(path: Path, number: int) -> None:
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=3) as file:
        file.write("item_id\ttitle\tcategory\tbrand\tprice\tdescription\n")
        for row in rows(number):
            file.write("\t".join(row).replace("\n", " ") + "\n")


def write_jsonl(path: Path, number: int) -> None:
    names = ("item_id", "title", "category", "brand", "price", "description")
    with path.open("w", encoding="utf-8") as file:
        for row in rows(number):
            file.write(json.dumps(dict(zip(names, row, strict=True))) + "\n")


def write_parquet(path: Path, number: int) -> None:
    names = ["item_id", "title", "category", "brand", "price", "description"]
    schema = pa.schema([(name, pa.string()) for name in names])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        source = rows(number)
        while part := list(islice(source, 100_000)):
            writer.write_table(pa.table([list(column) for column in zip(*part, strict=True)], schema=schema))


def write_log(path: Path, number: int) -> None:
    chance = np.random.default_rng(2)
    table = {
        "user": chance.integers(max(3, number // 50), size=number),
        "item": chance.zipf(1.3, size=number) % 100_000,
        "rating": chance.integers(1, 6, size=number),
        "timestamp": 1_600_000_000 + chance.integers(90_000_000, size=number),
    }
    pa.csv.write_csv(pa.table(table), path)


CASES: dict[str, tuple[FileKind, int, Callable[[Path, int], None]]] = {
    "csv": ("catalogue", 1, write_csv),
    "tsv": ("catalogue", 1, write_tsv),
    "jsonl": ("catalogue", 1, write_jsonl),
    "parquet": ("catalogue", 1, write_parquet),
    "log": ("log", 5, write_log),
    "long-log": ("log", 10, write_log),
}


def used() -> float:
    """CPU seconds of all children so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(name: str, folder: Path, number: int, limits: UploadLimits) -> str:
    what, times, write = CASES[name]
    source = folder / "source"
    write(source, number * times)
    size = source.stat().st_size
    with source.open("rb") as file:
        files.keep(folder, what, file, limits)
    source.unlink()
    clock, cpu = time.monotonic(), used()
    guess = files.guess(folder, what, limits)
    guessing = f"{time.monotonic() - clock:6.1f} {used() - cpu:6.1f}"
    clock, cpu = time.monotonic(), used()
    try:
        checked: CheckResult | None = files.check(folder, {what: guess.reading}, limits)
        words = ""
    except UploadFailed as refused:
        checked, words = None, str(refused)
    checking = f"{time.monotonic() - clock:6.1f} {used() - cpu:6.1f}"
    if checked is not None:
        words = f"{checked.kept[what]:,} kept, {checked.findings:,} findings"
    return f"{name:<9} {number * times:>11,} {size / MB:>7.0f}   {guessing}   {checking}   {words}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--cases", default=",".join(CASES))
    args = parser.parse_args()
    names = args.cases.split(",")
    if unknown := set(names) - set(CASES):
        sys.exit(f"no such case: {', '.join(sorted(unknown))}")
    limits = UploadLimits.of_environment().model_copy(update={"upload": 2_000 * MB})
    print(f"{limits.memory // MB} MB, {limits.threads} threads, at most {limits.rows:,} rows")
    print(f"{'':<9} {'rows':>11} {'MB':>7}   {'guess s':>6} {'CPU s':>5}   {'check s':>6} {'CPU s':>5}")
    for name in names:
        folder = Path(tempfile.mkdtemp(prefix="upload-speed-"))
        try:
            print(measure(name, folder, args.rows, limits), flush=True)
        finally:
            shutil.rmtree(folder)
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"most memory of a child: {most:,.0f} MB")


if __name__ == "__main__":
    main()
