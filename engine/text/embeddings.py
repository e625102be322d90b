"""Vectors of a catalogue's texts, computed once: kept by content, so that they are never of other texts or another encoder.

    <dataset>/words/minilm-0123456789abcdef.npy     float32 [items, dim]
    <dataset>/words/minilm-0123456789abcdef.json    what they are, and the sha256 of the file beside it
    <dataset>/words/minilm-0123456789abcdef.part/   finished chunks of work under way

The digits are a digest of encoder and texts.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from engine.console import Progress
from engine.errors import SeqscopeError, UsageError
from engine.files import digest_of, expect_no_file, replacing, write_json
from engine.text.attributes import Fields, attributes, choose_fields, texts
from engine.text.tokenizer import Known, known

if TYPE_CHECKING:
    from engine.text.encoder import Encoder, Float32

CHUNK = 1024
"""Texts whose vectors are lost at most when the work is interrupted."""


@dataclass(frozen=True)
class Stored:
    """Vectors of a catalogue and where they are kept."""

    vectors: Float32
    encoder: Encoder
    fields: tuple[str, ...]
    texts: list[str]
    path: Path
    cached: bool
    """True: they were there already."""
    seconds: float


def embed(
    dataset: Path | str,
    encoder: str | Encoder = "minilm",
    fields: Fields = None,
    cache: Path | None = None,
    device: str = "cpu",
) -> Stored:
    """Vectors float32 [items, dim]: row i is that of item i's text; of unit length for every encoder of this project.

    dataset: the folder with its items.parquet; encoder: see `find`; fields: see `engine.text.attributes`; cache: a folder,
    `<dataset>/words` if not given.
    """
    path = Path(dataset)
    items = read_items(path)
    chosen = choose_fields(items.schema, fields)
    words = texts(items, chosen)
    if not any(words):
        where = f"in {', '.join(field.column for field in chosen)}" if chosen else "in any column"
        raise SeqscopeError(
            f"{path}: the catalogue has no words {where}, so there is nothing to embed. "
            "Models that read none, such as sasrec, can be trained"
        )
    folder = cache_folder(path, cache)
    if isinstance(encoder, str):
        encoder = find(encoder, items=items, fields=chosen, cache=folder, device=device)
    start = time.monotonic()
    digest = _digest(words)
    key = hashlib.sha256(f"1 {encoder.digest} {digest}".encode()).hexdigest()[:16]
    target = folder / f"{encoder.name}-{key}.npy"
    about = {"encoder": encoder.name, "encoder_digest": encoder.digest, "texts_digest": digest}
    vectors = _read(target, about, (len(words), encoder.dim))
    cached = vectors is not None
    if vectors is None:

        def made(rows: npt.NDArray[np.int64], report: Callable[[int], None]) -> Float32:
            return encoder.embed([words[row] for row in rows], device, report)

        title = f"Embedding with {encoder.title}"
        vectors = in_chunks(words, encoder.dim, parts_folder(target, path), title, made)
        seconds = round(time.monotonic() - start, 2)
        _write(target, vectors, about | {"fields": list(map(str, chosen)), "seconds": seconds})
        shutil.rmtree(target.with_suffix(".part"), ignore_errors=True)
    return Stored(vectors, encoder, tuple(map(str, chosen)), words, target, cached, time.monotonic() - start)


def understood(embedded: Stored, dataset: Path) -> Known:
    """Of the words that were embedded: how many the encoder knows."""
    return known(embedded.encoder.tokenizer, values(read_items(dataset), embedded.fields))


def read_items(path: Path) -> pa.Table:
    """items.parquet of a dataset, row i being item i."""
    try:
        items = pq.read_table(path / "items.parquet")
        if "item" in items.schema.names:
            items = items.sort_by("item")
    except FileNotFoundError:
        raise SeqscopeError(f"{path} is not a prepared dataset: items.parquet is missing")
    except (OSError, ValueError, pa.ArrowException) as error:
        raise SeqscopeError(f"{path / 'items.parquet'} cannot be read ({error}). Import the dataset again.")
    return items


def cache_folder(path: Path, cache: Path | None) -> Path:
    """`cache`, or <dataset>/words, or where that cannot be written the user's own cache."""
    if cache is not None:
        expect_no_file(cache)
        return cache
    folder = path / "words"
    if os.access(folder if folder.is_dir() else path, os.W_OK):
        return folder
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "seqscope" / "words"


def parts_folder(target: Path, dataset: Path) -> Path:
    """<target>.part, for finished chunks. Raises OSError where it would lie in a dataset that was deleted meanwhile."""
    target.parent.mkdir(parents=target.parent.parent != dataset, exist_ok=True)
    parts = target.with_suffix(".part")
    parts.mkdir(exist_ok=True)
    return parts


def in_chunks(
    texts: Sequence[str] | Sequence[bytes],
    dim: int,
    parts: Path,
    title: str,
    make: Callable[[npt.NDArray[np.int64], Callable[[int], None]], Float32],
) -> Float32:
    """float32 [texts, dim]: each different text once, in chunks of like length; finished chunks lie in `parts` until all are.

    title: of the bar; make: (rows of texts, what hears how many of them are done) → float32 [rows, dim].
    """
    numbers: dict[str | bytes, int] = {}
    which = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
    first = np.unique(which, return_index=True)[1]
    order = first[np.argsort([len(texts[row]) for row in first], kind="stable")]
    vectors = np.empty((len(order), dim), np.float32)
    progress = Progress(len(order), title)
    for number, start in enumerate(range(0, len(order), CHUNK)):
        rows = order[start : start + CHUNK]
        part = parts / f"{number:05}.npy"
        chunk = read_rows(part, (len(rows), dim))
        if chunk is None:

            def report(done: int, before: int = start) -> None:
                progress.update(before + done)

            chunk = make(rows, report)
            with contextlib.suppress(FileNotFoundError):  # another process may be done with the same, and remove them
                write_rows(part, chunk)
        progress.update(start + len(rows))
        vectors[which[rows]] = chunk
    return np.ascontiguousarray(vectors[which])


def _write(target: Path, vectors: Float32, about: dict[str, Any]) -> None:
    with replacing(target) as staged:
        with staged.open("wb") as file:
            np.save(file, vectors, allow_pickle=False)
        sha256 = digest_of(staged)
    write_json(target.with_suffix(".json"), about | {"sha256": sha256, "shape": list(vectors.shape)})


def _read(target: Path, about: dict[str, Any], shape: tuple[int, int]) -> Float32 | None:
    """The vectors kept at `target`, or None where there are none, or where they are damaged or of something else."""
    try:
        described = json.loads(target.with_suffix(".json").read_text("utf-8"))
        sound = digest_of(target) == described["sha256"]
        if sound and all(described[key] == value for key, value in about.items()):
            vectors = read_rows(target, shape)
            if vectors is not None:
                return vectors
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    print(f"{target} is damaged; it is made anew", file=sys.stderr)
    return None


def _digest(words: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for text in words:
        encoded = text.encode("utf-8", "replace")
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


def find(
    name: str,
    *,
    items: pa.Table | None = None,
    fields: Fields = None,
    cache: Path | None = None,
    device: str = "cpu",
) -> Encoder:
    """The encoder that `name` names. "scratch" and "auto" need `items` and a folder, `cache`, to train in.

    minilm     all-MiniLM-L6-v2, English (engine.text.bert)
    scratch    trained on the texts of `items` (engine.text.scratch); the folder of one that was trained before is a name, too
    auto       minilm where it is installed and knows the words of `items`, else scratch
    otherwise  a sentence-transformers or Hugging Face encoder by name or local path (engine.text.encoder)
    """
    if name == "auto":
        return choose(items, fields, cache, device)
    if name == "minilm":
        from engine.text.bert import open_minilm

        return open_minilm()
    if name == "scratch":
        from engine.text.scratch import scratch

        if items is None or cache is None:
            raise UsageError("the text encoder scratch is trained on a catalogue; name a dataset")
        return scratch(attributes(items, fields), cache, device=device)
    if (Path(name) / "scratch.json").is_file():
        from engine.text.scratch import open_scratch

        return open_scratch(Path(name))
    from engine.text.encoder import open_hugging

    return open_hugging(name)


def choose(items: pa.Table | None, fields: Fields, cache: Path | None, device: str) -> Encoder:
    """minilm where it is installed and its tokenizer knows the words, else an encoder trained on the catalogue."""
    from engine.text.bert import minilm_folder

    if minilm_folder() is not None:
        encoder = find("minilm")
        if items is None or known(encoder.tokenizer, values(items, fields)).tolerable:
            return encoder
    return find("scratch", items=items, fields=fields, cache=cache, device=device)


def values(items: pa.Table, fields: Fields = None) -> list[str]:
    """What the catalogue itself says, without the names of its columns."""
    return [value for pairs in attributes(items, fields) for _, value in pairs]


def write_rows(path: Path, rows: Float32) -> None:
    with replacing(path) as staged, staged.open("wb") as file:
        np.save(file, rows, allow_pickle=False)


def read_rows(path: Path, shape: tuple[int, int]) -> Float32 | None:
    """float32 `shape`; None where there is no such array, a damaged one, or one with numbers that are not finite."""
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    sound = isinstance(array, np.ndarray) and array.dtype == np.float32 and array.shape == shape
    return array if sound and np.isfinite(array).all() else None
