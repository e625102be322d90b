"""A zoo with a model that reads words: the sample's own, with other words where a test wants them."""

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
        file = path / READER / "words.parquet"
        rows = enumerate(pq.read_table(file).select(["word", "key"]).to_pylist())
        rewrite(file, word=[row["word"] if row["key"] else words[at % len(words)] for at, row in rows])
    return path
