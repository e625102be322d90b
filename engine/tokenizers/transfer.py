"""A fitted tokenizer's identifiers of another catalogue: the same codebooks, read by items that it never saw."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.console import note
from engine.data.dataset import Dataset
from engine.data.identifiers import Identifiers
from engine.errors import SeqscopeError, UsageError
from engine.text.embeddings import cache_folder, read_items
from engine.tokenizers import stored
from engine.tokenizers.base import Vectors
from engine.tokenizers.collisions import extend
from engine.tokenizers.judge import Judge
from engine.tokenizers.recipe import TokenizerRecipe
from engine.tokenizers.run import REPORT, finished, gather, open_tokenizer, taken, write
from engine.training import device as devices
from engine.training.run import provenance


def transfer(
    source: Path,
    dataset: Dataset,
    folder: Path,
    *,
    device: str = "auto",
    vectors: Vectors | None = None,
    restart: bool = False,
    judge: Path | None = None,
) -> dict[str, Any]:
    """Give the items of `dataset` identifiers by the tokenizer of the finished run `source`, written as a run of its own.

    The vocabulary stays, so that what was trained with it can read the new identifiers. Items of the first catalogue (the same
    id and title) keep theirs; new ones stand beside them, and share one where the vocabulary has no place left. vectors:
    float32 [items, d] instead of the text encoder's. Returns what report.json holds. Raises SeqscopeError where the two do not
    fit.
    """
    with taken(folder, restart):
        return _transfer(source, dataset, folder, device, vectors, judge)


def _transfer(
    source: Path, dataset: Dataset, folder: Path, device: str, vectors: Vectors | None, judge: Path | None
) -> dict[str, Any]:
    began = time.monotonic()
    tokenizer, known, recipe, record = open_tokenizer(source)
    if record["fingerprint"] == dataset.info.fingerprint:
        raise UsageError(f"{source} was fitted to {dataset.path} itself; its identifiers are there already")
    first = record.get("about", {}).get("vectors", {})
    if vectors is None and first.get("source") == "a file":
        raise UsageError(f"{source} was fitted to vectors from a file; give those of {dataset.path} with --vectors")
    if vectors is None and first:
        recipe = replace(recipe, words=replace(recipe.words, encoder=_encoder(recipe, record, source)))
    material, about = gather(recipe, dataset, folder, device, vectors, fitted=True)
    if first and about["vectors"]["dim"] != first["dim"]:
        raise UsageError(f"{source} reads vectors of {first['dim']} numbers, and these have {about['vectors']['dim']}")
    origin = hashlib.sha256((source / stored.FILE).read_bytes()).hexdigest()
    key = hashlib.sha256(f"{origin} {known.digest()} {material.digest()}".encode()).hexdigest()
    if finished(folder, key):
        report: dict[str, Any] = json.loads((folder / REPORT).read_text("utf-8"))
        return report
    before = _before(Path(record["dataset_path"]), record["fingerprint"], material.items)
    existing, new = np.flatnonzero(before >= 0), np.flatnonzero(before < 0)
    codes = np.empty((len(material), known.levels), np.int32)
    codes[existing] = known.codes[before[existing]]
    if len(new):
        codes[new] = extend(tokenizer, known, material.take(new), recipe.collisions)
    note(f"{len(existing):,} of {len(codes):,} items keep the identifiers they have in {record['dataset']}.")
    about |= {
        "fitted": {
            "run": source.name,
            "dataset": record["dataset"],
            "fingerprint": record["fingerprint"],
            "digest": origin,
        }
    }
    identifiers = Identifiers(codes, known.sizes, known.shared, known.names, about)
    entries = {
        "identity": key,
        **provenance(recipe.to_dict(), dataset, devices.choose(device)),
        "seconds": round(time.monotonic() - began, 1),
    }
    return write(
        folder, tokenizer, identifiers, material, dataset, entries, None if judge is None else Judge.of(judge, dataset)
    )


def _encoder(recipe: TokenizerRecipe, record: dict[str, Any], source: Path) -> str:
    """The text encoder that the tokenizer was fitted with: other vectors would mean nothing to it."""
    name = recipe.words.encoder
    if name not in ("auto", "scratch"):
        return name
    used = str(record["about"]["vectors"].get("encoder", ""))
    if used.startswith("minilm"):
        return "minilm"
    folder = cache_folder(Path(record["dataset_path"]), None) / used
    if used and (folder / "scratch.json").is_file():
        return str(folder)
    raise SeqscopeError(
        f"{source} reads words by an encoder that was trained on its own catalogue, and {folder} is not there. "
        "Fit a tokenizer with words.encoder=minilm, or give --vectors."
    )


def _before(path: Path, fingerprint: str, items: pa.Table) -> npt.NDArray[np.int64]:
    """int64 [items]: each item's number in the first catalogue, by id and title; −1 where it is not there."""
    try:
        first: Dataset | None = Dataset(path)
    except SeqscopeError:
        first = None
    if first is None or first.info.fingerprint != fingerprint:
        note(f"{path} is not there any more, so every item counts as new.")
        return np.full(len(items), -1)
    numbers = {pair: row for row, pair in enumerate(_named(read_items(path)))}
    return np.array([numbers.get(pair, -1) for pair in _named(items)], np.int64)


def _named(items: pa.Table) -> list[tuple[str, str]]:
    return list(zip(map(str, items["item_id"].to_pylist()), map(str, items["title"].to_pylist()), strict=True))
