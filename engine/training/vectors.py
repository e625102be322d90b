"""The vectors of a catalogue's words, for models that match nothing else: made by a text encoder, kept in the run folder.

text_vectors.npy     float32 [items, d]; zeros for an item without words
text_vectors.json    which encoder, which columns
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.data.dataset import Dataset
from engine.errors import SeqscopeError
from engine.files import replacing, write_json
from engine.models.text_neighbours import TextNeighboursConfig
from engine.text.embeddings import Stored, embed, find, understood
from engine.text.tokenizer import Known

TABLE, ABOUT = "text_vectors.npy", "text_vectors.json"
SCRATCH = "scratch"


@dataclass(frozen=True)
class TextVectors:
    rows: np.ndarray
    encoder: str
    """Its name."""
    place: str
    """What `engine.text.embeddings.find` takes to have it again: its name, or a folder."""
    title: str
    digest: str
    fields: tuple[str, ...]
    """Columns that make up a text, as `engine.text.attributes` has them."""
    unknown: float | None = None
    """Share of the catalogue's words that the encoder does not know; None in runs that are older than this figure."""

    @property
    def without(self) -> int:
        """Items without words."""
        return int((~self.rows.any(1)).sum())

    def identity(self) -> str:
        return hashlib.sha256(self.digest.encode() + np.ascontiguousarray(self.rows).tobytes()).hexdigest()

    def write(self, folder: Path) -> None:
        with replacing(folder / TABLE) as staged, staged.open("wb") as file:
            np.save(file, self.rows, allow_pickle=False)
        about = {name: value for name, value in vars(self).items() if name != "rows"}
        write_json(folder / ABOUT, about)

    @classmethod
    def read(cls, folder: Path) -> TextVectors:
        try:
            about = json.loads((folder / ABOUT).read_text("utf-8"))
            about["fields"] = tuple(about["fields"])
            return cls(np.load(folder / TABLE, allow_pickle=False), **about)
        except (OSError, ValueError, EOFError, KeyError, TypeError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise SeqscopeError(
                f"{folder} holds no vectors of items that can be read ({reason}). Train again."
            ) from None


def make(config: TextNeighboursConfig, dataset: Dataset, device: str = "cpu") -> tuple[TextVectors, Known]:
    """The vectors of the dataset's items, by the encoder of the configuration, and how many words that knows."""
    found = embed(dataset, config.encoder, config.fields or None, device=device)
    encoder = found.encoder
    rows = found.vectors * np.array([[bool(text)] for text in found.texts])
    place = config.encoder
    if place in ("auto", SCRATCH):  # one that was trained on this very catalogue has its folder as a name
        place = str(_trained(found)) if encoder.name == SCRATCH else encoder.name
    words = understood(found, dataset)
    made = TextVectors(
        rows.astype(np.float32), encoder.name, place, encoder.title, encoder.digest, found.fields, round(words.share, 4)
    )
    return made, words


def _trained(found: Stored) -> Path:
    """The folder of the encoder that was trained on the catalogue: it lies beside the vectors."""
    folders = sorted(path.parent for path in found.path.parent.glob(f"{SCRATCH}-*/scratch.json"))
    return next((folder for folder in folders if find(str(folder)).digest == found.encoder.digest), found.path.parent)
