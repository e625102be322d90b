"""A zoo with a model that reads words: the sample's own, with other words where a test wants them."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

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
    said = table["word"].to_pylist()
    said = [
        words[at % len(words)] if not key else word
        for at, (word, key) in enumerate(zip(said, table["key"].to_pylist(), strict=True))
    ]
    pq.write_table(table.set_column(table.column_names.index("word"), "word", pa.array(said)), file)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    manifest["files"][file.name] = {
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "bytes": file.stat().st_size,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
