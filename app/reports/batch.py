"""Every model's list for many histories, as one Parquet or CSV file; memory does not grow with their number.

Histories are answered a chunk at a time. Each chunk becomes a file in a folder beside the output, .<name>.parts/, so that a run
that was ended in the middle goes on where it was, provided that it asks the same of the same models. At the end the parts become
the output in one step, and the folder goes.
"""

import contextlib
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from app.limits import DEFAULT_K
from app.reports.histories import PEOPLE, Bounds, Chunk, TooMuch, reading, too_large, too_many_answers
from app.styles import titled
from app.text import distinct
from engine import __version__
from engine.bundle.errors import BundleError, Refusal
from engine.console import Progress
from engine.errors import SeqscopeError
from engine.files import alone, expect_file, made, replacing
from engine.runtime import Zoo
from engine.tabular.findings import FORMULA
from engine.writing import count

CHUNK = 4_096
ENDINGS = (".parquet", ".csv")
_PART = pa.schema(
    [
        ("history", pa.string()),
        ("model", pa.int16()),
        ("rank", pa.int16()),
        ("item", pa.int32()),
        ("score", pa.float32()),
        ("in_history", pa.bool_()),
    ]
)


@dataclass(frozen=True)
class Summary:
    """What came out."""

    histories: int
    about: str
    """How they were read."""
    rows: int
    unknown: int
    """Events of items that the catalogue does not have."""
    unanswered: dict[str, int]
    """A model's title → histories that it could not answer for."""
    resumed: int
    """Histories that an earlier run had answered."""
    refused: Sequence[Refusal] = ()
    """Models that are left out, as something is wrong with their bundles."""
    seconds: float = 0.0

    def __str__(self) -> str:
        text = f"{count(self.histories, 'history', 'histories')}, {count(self.rows, 'row')} in {self.seconds:,.1f} s"
        if self.resumed:
            text += f" ({self.resumed:,} of them from an earlier run)"
        if self.unknown:
            text += f"; {count(self.unknown, 'event')} of unknown items left out"
        for title, number in self.unanswered.items():
            text += f"; {title} had no answer for {number:,}"
        for refusal in self.refused:
            text += f"; left out: {refusal}"
        return f"{text}. Read as {self.about}"


def run(
    models: Zoo,
    source: Path | str,
    out: Path,
    *,
    names: Sequence[str] | None = None,
    k: int = DEFAULT_K,
    titles: bool = False,
    columns: Mapping[str, str] | None = None,
    restart: bool = False,
    overwrite: bool = False,
    bounds: Bounds | None = None,
    told: Callable[[str], None] = lambda words: None,
) -> Summary:
    """Writes `out`. names: of models; None: all. titles: a column more. restart: forgets what an earlier run left. overwrite:
    replaces a file that is there. bounds: where the histories are somebody else's. told: hears how the file was read and which
    models are left out. Where a bundle turns out to be damaged only when it is used, the others begin anew without it.

    Raises SeqscopeError where something is asked for that cannot be had, or no model is left.
    """
    if out.suffix.lower() not in ENDINGS:
        raise SeqscopeError(f"{out.name}: the output is a .parquet or a .csv file.")
    if not 1 <= k <= 1_000:
        raise SeqscopeError(f"Lists may have 1 to 1,000 items, not {k}.")
    if out.is_dir():
        raise SeqscopeError(f"{out} is a folder. Name a file in it.")
    if source != PEOPLE:
        expect_file(Path(source))
        if out.exists() and out.samefile(source):
            raise SeqscopeError(f"{out} is the file of the histories itself. Write the lists to another file.")
    if out.exists() and not overwrite:
        raise SeqscopeError(f"{out} exists already. Choose another --to, or replace it with --overwrite.")
    batch = _Batch(models, source, out, k, titles, columns or {}, restart, bounds, told)
    began = time.monotonic()
    chosen, refused = _chosen(models, names)
    for refusal in refused:
        told(f"Left out: {refusal}.")
    while True:
        try:
            summary = batch.attempt(chosen)
            return replace(summary, refused=refused, seconds=time.monotonic() - began)
        except BundleError as fault:
            if fault.bundle not in chosen or len(chosen) == 1:
                raise
            chosen.remove(fault.bundle)
            refused.append(Refusal(fault.bundle, fault.file, fault.reason))
            told(f"Left out: {fault}.")


@dataclass(frozen=True)
class _Batch:
    """What is asked of whichever models answer; the fields are parameters of `run`."""

    models: Zoo
    source: Path | str
    out: Path
    k: int
    titles: bool
    columns: Mapping[str, str]
    restart: bool
    bounds: Bounds | None
    told: Callable[[str], None]

    def attempt(self, chosen: Sequence[str]) -> Summary:
        """Writes the lists of these models. Raises BundleError where one of them turns out to be damaged."""
        models, out, k, bounds = self.models, self.out, self.k, self.bounds
        plan = _plan(models, self.source, chosen, k, self.columns)
        parts = out.parent / f".{out.name}.parts"
        with made(parts), alone(parts, f"Another process is writing {out.name} already."), _tidied(parts):
            _prepare(parts, plan, self.restart)
            with reading(self.source, models, parts, self.columns, bounds) as histories:
                too_many_answers(histories.total, len(chosen), k, bounds)
                for name in chosen:
                    models.bundles[name].warm()
                self.told(f"Read as {histories.about}: {count(histories.total, 'history', 'histories')}.")
                unknown = resumed = done = size = 0
                unanswered = dict.fromkeys(chosen, 0)
                progress: Progress | None = None
                files = []
                for place, chunk in enumerate(histories.chunks(CHUNK)):
                    path = parts / f"{place:06}.parquet"
                    unknown += chunk.unknown
                    files.append(path)
                    if path.is_file():
                        resumed += len(chunk.names)
                    else:
                        progress = progress or Progress(histories.total * len(chosen), begun=done * len(chosen))
                        _answer(models, chosen, chunk, k, path, progress, done * len(chosen))
                    size += path.stat().st_size
                    too_large(size, bounds)
                    for at, number in _missing(path, len(chosen)).items():
                        unanswered[chosen[at]] += len(chunk.names) - number
                    done += len(chunk.names)
                rows = _write(models, chosen, files, out, k, self.titles, bounds)
            shutil.rmtree(parts, ignore_errors=True)
        called = distinct({name: models.bundles[name].manifest.title for name in chosen})
        missing = {called[name]: histories for name, histories in unanswered.items() if histories}
        return Summary(done, histories.about, rows, unknown, missing, resumed)


@contextlib.contextmanager
def _tidied(parts: Path) -> Iterator[None]:
    """All goes where an error left no finished part, or none can come."""
    try:
        yield
    except Exception as error:
        if isinstance(error, TooMuch) or not any(path.stem.isdigit() for path in parts.glob("*.parquet")):
            shutil.rmtree(parts, ignore_errors=True)
        raise


def _chosen(models: Zoo, names: Sequence[str] | None) -> tuple[list[str], list[Refusal]]:
    """(Models that are to answer, those of `names` that cannot be opened)."""
    refused = [fault for fault in models.refused if "/" not in fault.name and (names is None or fault.name in names)]
    chosen = [name for name in models.bundles if names is None or name in names]
    models.expect(set(names or []) - ({fault.name for fault in refused} if chosen else set()))
    if not chosen:
        raise SeqscopeError(f"{models.info.name} has no model that can be opened.")
    return chosen, refused


def _answer(
    models: Zoo, chosen: Sequence[str], chunk: Chunk, k: int, path: Path, progress: Progress, before: int
) -> None:
    """One chunk → one file, all models one after the other."""
    tables = []
    for at, name in enumerate(chosen):
        bundle = models.bundles[name]
        slow = 256 if bundle.manifest.generator is not None else len(chunk.names)  # so that progress is seen
        for start in range(0, len(chunk.names), slow):
            rows = slice(start, start + slow)
            lists = bundle.recommend_many(chunk.events[rows], k)
            valid = lists.valid
            whose = np.repeat(np.arange(len(valid)), valid)
            real = np.arange(lists.items.shape[1])[None, :] < valid[:, None]
            tables.append(
                pa.table(
                    {
                        "history": pa.array(chunk.names[rows], pa.string()).take(pa.array(whose)),
                        "model": np.full(int(valid.sum()), at, np.int16),
                        "rank": np.broadcast_to(np.arange(1, real.shape[1] + 1, dtype=np.int16), real.shape)[real],
                        "item": lists.items[real],
                        "score": lists.scores[real],
                        "in_history": _inside(chunk.events[rows], lists.items)[real],
                    },
                    _PART,
                )
            )
            progress.update(before + at * len(chunk.names) + min(start + slow, len(chunk.names)), bundle.manifest.title)
    with replacing(path) as staged:
        pq.write_table(pa.concat_tables(tables), staged, compression="zstd")


def _inside(histories: Sequence[np.ndarray], items: np.ndarray) -> np.ndarray:
    """bool [histories, k]: which items, [histories, k], their histories hold."""
    return np.stack([np.isin(row, events) for events, row in zip(histories, items, strict=True)])


def _missing(path: Path, many: int) -> dict[int, int]:
    """Model → histories that it answered for: those with a first place."""
    table = pq.read_table(path, columns=["model", "rank"])
    first = table["model"].to_numpy()[table["rank"].to_numpy() == 1]
    return dict(enumerate(np.bincount(first, minlength=many).tolist()))


def _write(
    models: Zoo,
    chosen: Sequence[str],
    files: Sequence[Path],
    out: Path,
    k: int,
    titles: bool,
    bounds: Bounds | None,
) -> int:
    """The parts, one after the other, as the output; returns its rows."""
    texts = {"item_id": models.items["item_id"].combine_chunks()}
    if titles:
        texts["title"] = pa.array([titled(models, item) for item in range(len(models))], pa.string())
    about = {
        "seqscope": __version__,
        "dataset": models.info.name,
        "fingerprint": models.info.fingerprint,
        "models": {name: models.bundles[name].digest for name in chosen},
        "k": k,
    }
    kinds = {"history": pa.string(), "model": pa.dictionary(pa.int16(), pa.string()), "rank": pa.int16()}
    kinds |= dict.fromkeys(texts, pa.dictionary(pa.int32(), pa.string())) | {"score": pa.float32()}
    repeats = any(not models.bundles[name].excludes_history for name in chosen)
    kinds |= {"in_history": pa.bool_()} if repeats else {}
    schema = pa.schema(kinds, {"seqscope": json.dumps(about)})
    rows = 0
    with replacing(out) as staged, _writer(staged, schema, out.suffix.lower() == ".csv") as write:
        for path in files:
            part = pq.read_table(path, schema=_PART)
            columns = {name: part[name].combine_chunks() for name in part.column_names}
            columns["model"] = pa.DictionaryArray.from_arrays(columns["model"], list(chosen))
            columns |= {name: pa.DictionaryArray.from_arrays(columns["item"], text) for name, text in texts.items()}
            write(pa.table({name: columns[name] for name in kinds}, schema))
            too_large(staged.stat().st_size, bounds)
            rows += len(part)
    return rows


@contextlib.contextmanager
def _writer(path: Path, schema: pa.Schema, as_csv: bool) -> Iterator[Callable[[pa.Table], None]]:
    if not as_csv:
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            yield writer.write_table
        return
    texts = {field.name: pa.string() for field in schema if pa.types.is_dictionary(field.type)}
    plain = pa.schema([(field.name, texts.get(field.name, field.type)) for field in schema])
    with path.open("wb") as file:
        file.write(b"\xef\xbb\xbf")  # spreadsheets ask for it
        with pa.csv.CSVWriter(file, plain) as writer:
            yield lambda table: writer.write_table(_neutral(table.cast(plain)))


def _neutral(table: pa.Table) -> pa.Table:
    """Texts that a spreadsheet would run get an apostrophe; numbers stay numbers."""
    for at, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            column = table[field.name]
            runs = pc.match_substring_regex(column, FORMULA)
            if pc.any(runs).as_py():
                column = pc.if_else(runs, pc.binary_join_element_wise("'", column, ""), column)
                table = table.set_column(at, field, column)
    return table


# --- going on where an earlier run was


def _plan(models: Zoo, source: Path | str, chosen: Sequence[str], k: int, columns: Mapping[str, str]) -> str:
    """A text that differs wherever the answers could."""
    content = f"{PEOPLE} {models.tables}"
    if source != PEOPLE:
        try:
            with Path(source).open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise SeqscopeError(f"{source} cannot be read ({error.strerror}).") from None
    return json.dumps(
        {
            "program": __version__,
            "source": content,
            "name": Path(source).suffix,
            "columns": dict(sorted(columns.items())),
            "fingerprint": models.info.fingerprint,
            "models": {name: models.bundles[name].digest for name in chosen},
            "k": k,
            "chunk": CHUNK,
            "parts": {field.name: str(field.type) for field in _PART},
        },
        indent=1,
    )


def _prepare(parts: Path, plan: str, restart: bool) -> None:
    """Empties the folder unless it holds parts of the very same work."""
    file = parts / "plan.json"
    same = not restart and file.is_file() and file.read_text("utf-8") == plan
    for path in parts.iterdir():
        if path.name == ".lock" or (same and (path == file or (path.suffix == ".parquet" and path.stem.isdigit()))):
            continue
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not same:
        file.write_text(plan, "utf-8")
