"""A model that knows items by vectors of their words: the text encoder that makes them lies outside the bundle.

It is looked for in exports/<dataset>/words/<name>, then in the folder that SEQSCOPE_WORDS names, else in build/words of this
project. One with another digest is another encoder.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from engine.bundle.manifest import Manifest, Sentence
from engine.runtime.faults import BundleError, CapabilityError, QuestionError
from engine.runtime.files import Folder
from engine.runtime.index import Float32, read_matrix
from engine.runtime.lazily import Lazily
from engine.runtime.words import TextEncoder
from engine.texts import SEPARATOR, Field, plain, shorten

WORDS, CENTRE = "words", "centre.npy"
ITEMS = 1_000
"""New items of one question."""


class SentenceReader:
    """Encodes items that the catalogue does not have."""

    def __init__(self, folder: Folder, manifest: Manifest, sentence: Sentence) -> None:
        self.folder, self.manifest, self.sentence = folder, manifest, sentence
        shape = (1, manifest.encoder.dim)
        self._centre = Lazily(lambda: read_matrix(folder, CENTRE, manifest.files[CENTRE], shape)[0])
        self._encoder: TextEncoder | None = None
        self._opening = threading.Lock()
        self.fields = [Field.read(text) for text in sentence.fields]

    def cannot(self) -> str | None:
        """None where new items can be encoded, else why not, in a sentence."""
        if self._open() is not None:
            return None
        return (
            f"Its text encoder, {self.sentence.title}, is not installed here "
            f"(seqscope embed --encoder {self.sentence.encoder} --export build/words)."
        )

    def encode(self, items: Sequence[Mapping[str, str]]) -> Float32:
        """The rows of items that the catalogue does not have, float32 [items, dim]; zeros for one without words."""
        texts = [self._text(item) for item in items]
        if len(texts) > ITEMS:
            raise QuestionError(f"{len(texts):,} new items at once; ask for at most {ITEMS:,}.")
        encoder = self._open()
        if encoder is None:
            raise CapabilityError(self.cannot() or "")
        found = np.zeros((len(texts), self.manifest.encoder.dim), np.float32)
        said = [row for row, text in enumerate(texts) if text]
        if said:
            apart = encoder.embed([texts[row] for row in said]) - self._centre.value()
            lengths = np.linalg.norm(apart, axis=1, keepdims=True)
            found[said] = apart / np.maximum(lengths, 1e-12)
        return found

    def _text(self, item: Mapping[str, str]) -> str:
        """As `engine.texts.texts` writes it."""
        if not isinstance(item, Mapping) or not all(isinstance(value, str) for value in item.values()):
            raise QuestionError("A new item is said as texts by attribute, such as {'title': '…'}.")
        keys = [field.key for field in self.fields]
        if unknown := [key for key in item if key not in keys]:
            raise QuestionError(f"This model does not read {unknown[0]!r}; it reads {', '.join(keys)}.")
        parts = []
        for field in self.fields:
            text = shorten(plain(item.get(field.key)), field.words)
            if text:
                parts.append(text if field is self.fields[0] else f"{field.key}: {text}")
        return SEPARATOR.join(parts)

    def _open(self) -> TextEncoder | None:
        """Looked for again while there is none: `make run` exports it while the app serves already."""
        if self._encoder is None:
            with self._opening:
                self._encoder = self._encoder or self._find()
        return self._encoder

    def _find(self) -> TextEncoder | None:
        own = Path(__file__).resolve().parents[2] / "build" / "words"
        roots = [self.folder.path.parent / WORDS, Path(os.environ.get("SEQSCOPE_WORDS") or own)]
        for root in roots:
            if not (root / self.sentence.encoder).is_dir():
                continue
            try:
                found = TextEncoder.open(root / self.sentence.encoder)
            except BundleError:
                continue  # a damaged encoder is none
            if found.about.digest == self.sentence.digest and found.about.dim == self.manifest.encoder.dim:
                return found
        return None
