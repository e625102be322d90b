"""TF-IDF neighbours: items that share rare words with the latest ones. Nothing is learned from anybody.

    t(i): what of an item's words is rare in the catalogue, at unit length          score(h, j) = Σ_p κ(p) · t(h_p) · t(j)

κ(p) falls by `decay` from one item to the next older one and sums to 1. Salton & Buckley, Term-Weighting Approaches in Automatic
Text Retrieval, 1988.
"""

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from engine.cards import Card, OnPage, Variant
from engine.models.item_to_item import NO_PROBABILITY, Attributes, ItemToItem, TrainingLog, decaying, strongest
from engine.text.attributes import keys_of
from engine.writing import MARKS, WORD

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u3400-\u9fff\U00020000-\U000323af"
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese, which put no spaces between words."""
_LETTER = re.compile(rf"[{_UNSPACED}][{MARKS}]*")
_SCRIPT = re.compile(rf"(?:{_LETTER.pattern})+|[^{_UNSPACED}]+")
_ROWS = 512
"""Items compared with all others at a time."""


@dataclass(frozen=True)
class TfidfConfig:
    fields: tuple[str, ...] = ()
    """Attributes whose words are read; empty: all of them. On Beauty titles alone are better than titles and categories."""
    decay: float = 0.6
    """What an item weighs of what the next newer one does."""
    max_length: int = 50
    """Latest items read."""
    kept: int = 250
    """Neighbours kept per item on the average: the nearest of all items together."""
    search: bool = False
    """Choose decay by NDCG@10 on the validation items."""


class TfidfNeighbours(ItemToItem):
    name = "tfidf"
    Config = TfidfConfig
    kind = "text"
    needs = ("attributes",)
    needs_log = False
    card = Card(
        title="TF-IDF neighbours",
        order=71,
        summary="Recommends the items that share rare words with the latest ones. It uses no interactions of "
        "other users.",
        paper="Salton & Buckley, Term-Weighting Approaches in Automatic Text Retrieval, 1988; a baseline",
        geometry="none",
        reasons={
            "attention": "It weighs items by their age alone; there is nothing it chooses to look at.",
            "neighbours": "It keeps who is near to whom, not a place for each item.",
            "map": "It keeps who is near to whom; there is no space to draw.",
            "probability": NO_PROBABILITY,
        },
        variants=(Variant("tfidf", page=OnPage()),),
    )
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {"decay": (0.4, 0.6, 0.8, 0.9, 1.0)}
    beside = ItemToItem.beside | {"decay"}

    @classmethod
    def bytes_needed(cls, config: TfidfConfig, num_items: int) -> int:
        return bytes_of_cosines(config.kept, num_items)

    def instead(self, config: TfidfConfig, log: TrainingLog | None) -> str:
        return "Set model.kept lower, or take text-neighbours, which keeps a vector per item."

    def relation(self, config: TfidfConfig, log: TrainingLog) -> sparse.csr_matrix:
        return cosines(vectors(self.attributes, config.fields), config.kept)

    def positions(self, config: TfidfConfig) -> npt.NDArray[np.float32]:
        return decaying(config.max_length, config.decay)


def words(text: str) -> list[str]:
    """Words of two characters and more, without case. Of scripts that put no spaces between words every two letters in a row, as
    in Lucene's CJKAnalyzer, or a letter that stands alone."""
    terms: list[str] = []
    for part in (part for word in WORD.findall(text.casefold()) for part in _SCRIPT.findall(word)):
        letters = _LETTER.findall(part)
        if len(letters) > 1:
            terms += map("".join, pairwise(letters))
        elif letters or len(part) > 1:
            terms.append(part)
    return terms


def vectors(attributes: Attributes, fields: Collection[str] = ()) -> sparse.csr_matrix:
    """t: float32 [items, words] of unit length, rows of zeros for items without words. Words are `words` of the values of
    `fields` (empty: of all); (1 + ln tf) · (ln((1 + items) / (1 + items with the word)) + 1). Raises
    ValueError where no item has one of the fields."""
    keys = keys_of(attributes, fields)
    texts = (" ".join(value for key, value in pairs if key in keys) for pairs in attributes)
    counts = [Counter(words(text)) for text in texts]
    number: dict[str, int] = {}
    for count in counts:
        for word in count:
            number.setdefault(word, len(number))
    row = np.repeat(np.arange(len(counts)), [len(count) for count in counts])
    column = np.array([number[word] for count in counts for word in count], np.int64)
    frequency = 1 + np.log([times for count in counts for times in count.values()])
    rarity = np.log((1 + len(counts)) / (1 + np.bincount(column, minlength=max(1, len(number))))) + 1
    table = sparse.csr_matrix((frequency * rarity[column], (row, column)), (len(counts), max(1, len(number))))
    length = np.sqrt(np.bincount(row, (frequency * rarity[column]) ** 2, len(counts)))
    scale = np.divide(1, length, out=np.zeros_like(length), where=length > 0)
    return (sparse.diags(scale) @ table).tocsr().astype(np.float32)


def bytes_of_cosines(kept: int, num_items: int) -> int:
    """That `cosines` takes at most."""
    return 12 * _ROWS * num_items + 16 * min(4 * kept, num_items) * num_items


def cosines(table: sparse.csr_matrix, kept: int) -> sparse.csr_matrix:
    """The cosine of every item with the 4 · `kept` nearest others, float32 [items, items]."""
    across, rows = table.T.tocsr(), []
    for start in range(0, table.shape[0], _ROWS):
        near = (table[start : start + _ROWS] @ across).toarray()
        near[np.arange(len(near)), start + np.arange(len(near))] = 0
        most = min(4 * kept, near.shape[1] - 1)
        least = np.partition(near, near.shape[1] - 1 - most, axis=1)[:, near.shape[1] - 1 - most]
        near[near < least[:, None]] = 0
        rows.append(strongest(sparse.csr_matrix(near), most))  # and no more, of equal ones
    return sparse.vstack(rows, format="csr")
