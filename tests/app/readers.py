"""A zoo with a model that reads words: the sample's own, with other words where a test wants them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from tests.runtime.bundles import rewrite

SAMPLE = Path(__file__).parents[2] / "exports" / "sample"
READER = "recformer"


def make_readers(root: Path, words: Sequence[str] = ()) -> Path:
    """Writes root/sample/ with SASRec and Recformer. words: to stand for the first words of the catalogue, in turns."""
    path = root / "sample"
    path.mkdir(parents=True)
    for file in ("dataset.json", "items.parquet", "users.parquet"):
        shutil.copy(SAMPLE / file, path)
    for model in ("sasrec", READER):
        shutil.copytree(SAMPLE / model, path / model)
    if words:
        _say(path / READER, words)
    return path


def _say(folder: Path, words: Sequence[str]) -> None:
    file = folder / "words.parquet"
    table = pq.read_table(file)
    texts = [
        words[at % len(words)] if not key else word
        for at, (word, key) in enumerate(zip(table["word"].to_pylist(), table["key"].to_pylist(), strict=True))
    ]
    rewrite(file, word=texts)
