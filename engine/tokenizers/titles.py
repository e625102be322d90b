"""Title tokens (P5-TID, Hua et al., SIGIR-AP 2023): an item's identifier is its title, word by word.

The paper cuts titles with its language model's tokenizer. Here words are numbered by how often titles have them, and a word
that is rare or new is spelled: as its longest known pieces (prefixes that many words begin with), and what is left as bytes.
So a title in any script has an identifier, and all places share one vocabulary.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from engine.cards import Card
from engine.data.identifiers import NONE
from engine.tokenizers.base import Codes, Learning, Material, Tokenizer

WORD = re.compile(r"\w+")
BYTES = 256


@dataclass(frozen=True)
class TitlesConfig:
    words: int = 8192
    """At most so many words and pieces, the most frequent ones."""
    least: int = 2
    """A word that fewer titles have is spelled."""
    length: int = 12
    """Codes of a title that are kept."""


class Titles(Tokenizer):
    """Codes: 0–255 bytes, then words (a piece of a word is a word that goes on: it is written with "·" at its end)."""

    name = "p5-tid"
    Config = TitlesConfig
    card = Card(
        title="Title tokens",
        order=60,
        summary="The words of an item's title are its codes.",
        paper="Hua et al., How to Index Item IDs for Recommendation Foundation Models, SIGIR-AP 2023",
    )
    shared: ClassVar[bool] = True

    def __init__(self, config: TitlesConfig, vocabulary: list[str]) -> None:
        self.config, self.vocabulary, self.record = config, vocabulary, {}
        self._number = {word: BYTES + number for number, word in enumerate(vocabulary)}
        self._longest = max((len(word) for word in vocabulary), default=1)

    @classmethod
    def fit(cls, material: Material, config: TitlesConfig, generator: np.random.Generator, learning: Learning) -> Self:
        counts: Counter[str] = Counter()
        for title in _titles(material):
            counts.update(set(_words(title)))
        whole = {word for word, count in counts.items() if count >= config.least}
        pieces: Counter[str] = Counter()
        for word in counts.keys() - whole:
            pieces.update(word[:end] + "·" for end in range(2, len(word)))
        every = [(count, word) for word, count in counts.items() if word in whole]
        every += [(count, piece) for piece, count in pieces.items() if count >= 2 * config.least]
        every.sort(key=lambda entry: (-entry[0], entry[1]))
        return cls(config, [word for _, word in every[: config.words]])

    @property
    def sizes(self) -> tuple[int, ...]:
        return (BYTES + len(self.vocabulary),) * self.config.length

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"word {position}" for position in range(1, self.config.length + 1))

    def identify(self, material: Material) -> Codes:
        all_codes = np.full((len(material), self.config.length), NONE, np.int32)
        for row, title in enumerate(_titles(material)):
            codes = [code for word in _words(title) for code in self._codes(word)][: self.config.length]
            all_codes[row, : max(len(codes), 1)] = codes or [ord(" ")]  # an item without a title: one blank
        return all_codes

    def read(self, codes: list[int]) -> str:
        """What the codes say, for people."""
        text = b"".join(
            bytes([code]) if code < BYTES else self._bytes_of(code)
            for code in codes
            if 0 <= code < BYTES + len(self.vocabulary)
        )
        return text.decode("utf-8", "replace").strip()

    def _bytes_of(self, code: int) -> bytes:
        word = self.vocabulary[code - BYTES]
        return word[:-1].encode() if word.endswith("·") else f"{word} ".encode()

    def _codes(self, word: str) -> list[int]:
        if word in self._number:
            return [self._number[word]]
        for end in range(min(len(word) - 1, self._longest), 1, -1):
            piece = self._number.get(word[:end] + "·")
            if piece is not None:
                return [piece, *self._codes(word[end:])]
        return list(word.encode())

    def parts(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {}, {"config": asdict(self.config), "vocabulary": self.vocabulary}

    @classmethod
    def restore(cls, config: Any, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Self:
        return cls(config, list(facts["vocabulary"]))


def _titles(material: Material) -> list[str]:
    if "title" not in material.items.column_names:
        raise ValueError("the catalogue has no titles")
    return [str(title or "") for title in material.items["title"].to_pylist()]


def _words(title: str) -> list[str]:
    return WORD.findall(unicodedata.normalize("NFKC", title).casefold())
