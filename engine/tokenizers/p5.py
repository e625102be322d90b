"""Identifiers of P5 (Hua et al., How to Index Item IDs for Recommendation Foundation Models, SIGIR-AP 2023): words of titles,
paths of categories, clusters of items that people take together."""

import unicodedata
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from scipy import sparse

from engine.cards import Card
from engine.data.identifiers import NONE
from engine.data.ragged import Ragged
from engine.tokenizers import kmeans
from engine.tokenizers.base import Codes, Learning, Material, Tokenizer, Vectors
from engine.writing import WORD

# --- Title tokens (P5-TID): an item's identifier is its title, word by word.
#
# The paper cuts titles with its language model's tokenizer. Here words are numbered by how often titles have them, and a word
# that is rare or new is spelled: as its longest known pieces (prefixes that many words begin with), and what is left as bytes.
# So a title in any script has an identifier, and all places share one vocabulary.


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
        if not counts:
            raise ValueError("the catalogue has no titles")
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

    def _codes(self, word: str) -> list[int]:
        if word in self._number:
            return [self._number[word]]
        for end in range(min(len(word) - 1, self._longest), 1, -1):
            piece = self._number.get(word[:end] + "·")
            if piece is not None:
                return [piece, *self._codes(word[end:])]
        return list(word.encode())

    def parts(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {}, {"vocabulary": self.vocabulary}

    @classmethod
    def restore(cls, config: Any, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Self:
        return cls(config, list(facts["vocabulary"]))


def _titles(material: Material) -> list[str]:
    """Empty where an item has none; a title that is the item's id stands in for one, and says nothing."""
    if "title" not in material.items.column_names:
        raise ValueError("the catalogue has no titles")
    rows = zip(material.items["title"].to_pylist(), material.items["item_id"].to_pylist(), strict=True)
    return ["" if title is None or title == item_id else str(title) for title, item_id in rows]


def _words(title: str) -> list[str]:
    return WORD.findall(unicodedata.normalize("NFKC", title).casefold())


# --- Category paths (P5-SemID): an item's identifier is its path in the tree of categories, and a number.
#
# A name has one code per level, wherever in the tree it stands. The number that tells items of one category apart is added by
# collisions.policy = "append", as for every tokenizer.


COLUMNS = ("categories", "category", "genres", "genre", "tags")


@dataclass(frozen=True)
class CategoryConfig:
    column: str = ""
    """Column of the catalogue: a list, or a text with commas; the first of categories, category, genres, genre, tags where
    empty."""
    depth: int = 5
    """Levels that are kept."""


class CategoryPath(Tokenizer):
    """Level l has a code for each name that stands l-th in some path (0 … k − 1), and k for a name that was never seen.

    Levels at which all items are equal (the shop's root) are left out.
    """

    name = "p5-semid"
    Config = CategoryConfig
    card = Card(
        title="Category path",
        order=40,
        summary="The path of an item's categories in the catalogue, and a number for those of the same path.",
        paper="Hua et al., How to Index Item IDs for Recommendation Foundation Models, SIGIR-AP 2023",
    )

    def __init__(self, config: CategoryConfig, column: str, skip: int, levels: list[list[str]]) -> None:
        self.config, self.column, self.skip, self.levels, self.record = config, column, skip, levels, {}
        self._number = [{name: number for number, name in enumerate(level)} for level in levels]

    @classmethod
    def fit(
        cls, material: Material, config: CategoryConfig, generator: np.random.Generator, learning: Learning
    ) -> Self:
        there = material.items.column_names
        column = config.column or next((name for name in COLUMNS if name in there), "")
        if column not in there:
            lacking = repr(column) if column else f"called {', '.join(COLUMNS[:-1])} or {COLUMNS[-1]}"
            raise ValueError(
                f"the catalogue has no column {lacking}; it has {', '.join(there)}: name one with tokenizer.column"
            )
        paths = _paths(material.items, column)
        longest = max(map(len, paths), default=0)
        skip = 0
        while skip < longest - 1 and len({path[skip] if len(path) > skip else None for path in paths}) == 1:
            skip += 1
        levels = []
        for depth in range(skip, min(longest, skip + config.depth)):
            counts = Counter(path[depth] for path in paths if len(path) > depth)
            levels.append([name for name, _ in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))])
        if not levels:
            raise ValueError(f"the column {column} is empty")
        return cls(config, column, skip, levels)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(level) + 1 for level in self.levels)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"category {level}" for level in range(1, len(self.levels) + 1))

    def identify(self, material: Material) -> Codes:
        all_codes = np.full((len(material), len(self.levels)), NONE, np.int32)
        paths = (
            _paths(material.items, self.column) if self.column in material.items.column_names else [[]] * len(material)
        )
        for row, path in enumerate(paths):
            path = path[self.skip : self.skip + len(self.levels)]
            codes = [numbers.get(name, len(numbers)) for name, numbers in zip(path, self._number, strict=False)]
            all_codes[row, : max(len(codes), 1)] = codes or [
                len(self._number[0])
            ]  # no category: the code of unseen ones
        return all_codes

    def parts(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {}, {"column": self.column, "skip": self.skip, "levels": self.levels}

    @classmethod
    def restore(cls, config: Any, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Self:
        return cls(config, str(facts["column"]), int(facts["skip"]), [list(level) for level in facts["levels"]])


def _paths(items: pa.Table, column: str) -> list[list[str]]:
    return [
        [str(part) for part in value if part is not None]
        if isinstance(value, list)
        else [part.strip() for part in str("" if value is None else value).split(",") if part.strip()]
        for value in items[column].to_pylist()
    ]


# --- Collaborative clusters (P5-CID): items that people take together share the first codes.
#
# The graph of how often two items are in one training sequence is cut by spectral clustering (Ng, Jordan & Weiss 2001), each part
# that is still large is cut again, and the path of cuts is the identifier; collisions.policy = "append" numbers the items of a
# leaf. Training events alone: the validation and test items of a sequence would give away what is asked for.


DENSE = 512
"""Nodes up to which all eigenvectors are computed."""
LATEST = 200
"""Items of one sequence that are paired: pairs grow with the square of the length."""


@dataclass(frozen=True)
class CollaborativeConfig:
    clusters: int = 20
    """Parts of one cut (authors: 10 or 20)."""
    leaf: int = 200
    """A part of more items is cut again (authors: 200 to 500)."""
    depth: int = 6
    """At most so many cuts."""


class CollaborativeClusters(Tokenizer):
    """Level 1 has one more code than parts, for items that no training sequence has.

    An item outside the catalogue goes where the nearest known item is by text, where there are item vectors, and else to that
    code; it is told apart by its number there.
    """

    name = "p5-cid"
    Config = CollaborativeConfig
    card = Card(
        title="Collaborative clusters",
        order=50,
        summary="Clusters of clusters of items that occur together in the training histories; words play no part.",
        paper="Hua et al., How to Index Item IDs for Recommendation Foundation Models, SIGIR-AP 2023",
    )
    needs = ("training",)

    def __init__(self, config: CollaborativeConfig, item_ids: list[str], codes: Codes, vectors: Vectors | None) -> None:
        self.config, self.item_ids, self.codes, self.vectors, self.record = config, item_ids, codes, vectors, {}
        self._row = {item_id: row for row, item_id in enumerate(item_ids)}

    @classmethod
    def fit(
        cls, material: Material, config: CollaborativeConfig, generator: np.random.Generator, learning: Learning
    ) -> Self:
        if config.clusters < 2:
            raise ValueError("tokenizer.clusters must be at least 2")
        graph = together(material.of("training"), len(material))
        codes = np.full((len(material), config.depth), NONE, np.int32)
        seen = np.flatnonzero(graph.sum(1) > 0)
        codes[:, 0] = config.clusters
        if len(seen):
            _cut(graph, seen, 0, codes, config, generator)
        used = max(1, int((codes != NONE).sum(1).max(initial=1)))
        item_ids = [str(item_id) for item_id in material.items["item_id"].to_pylist()]
        return cls(config, item_ids, codes[:, :used], material.vectors)

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.config.clusters + 1, *[self.config.clusters] * (self.codes.shape[1] - 1))

    def identify(self, material: Material) -> Codes:
        rows = np.array([self._row.get(str(item_id), -1) for item_id in material.items["item_id"].to_pylist()])
        unseen = rows < 0
        if unseen.any() and self.vectors is not None and material.vectors is not None:
            rows[unseen] = kmeans.nearest(material.vectors[unseen], self.vectors)
        codes = self.codes[rows]
        nowhere = np.full(self.codes.shape[1], NONE, np.int32)
        nowhere[0] = self.config.clusters
        codes[rows < 0] = nowhere
        return codes

    def parts(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays: dict[str, np.ndarray] = {"codes": self.codes}
        if self.vectors is not None:
            arrays["vectors"] = self.vectors
        return arrays, {"item_ids": self.item_ids}

    @classmethod
    def restore(cls, config: Any, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Self:
        return cls(config, list(facts["item_ids"]), arrays["codes"], arrays.get("vectors"))


def together(training: Ragged, items: int) -> sparse.csr_array:
    """float64 [items, items], symmetric, diagonal 0: in how many sequences two different items are both."""
    past = training.padded(LATEST, items)
    rows, columns = np.nonzero(past < items)
    incidence = sparse.csr_array((np.ones(len(rows)), (rows, past[rows, columns])), shape=(len(past), items))
    incidence.data[:] = 1  # an item taken twice counts once
    graph = sparse.csr_array(incidence.T @ incidence)
    graph.setdiag(0)
    graph.eliminate_zeros()
    return graph


def spectral(graph: sparse.csr_array, parts: int, generator: np.random.Generator) -> np.ndarray:
    """int32 [nodes]: the part of each node, by k-means on the leading eigenvectors of D^-½ A D^-½, rows of unit length."""
    from scipy.sparse.linalg import lobpcg  # slow to import

    degree = np.maximum(np.asarray(graph.sum(1)).ravel(), 1e-12)
    scale = sparse.diags_array(1 / np.sqrt(degree))
    normal = scale @ graph @ scale
    if graph.shape[0] <= DENSE or parts * 5 > graph.shape[0]:
        vectors = np.linalg.eigh(normal.toarray())[1][:, -parts:]
    else:
        # a block method: parts that nothing joins have the same eigenvalue, and single-vector methods find only some of them
        start = generator.standard_normal((graph.shape[0], parts))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # eigenvectors that are nearly right serve as well
            vectors = lobpcg(normal, start, largest=True, tol=1e-4, maxiter=200)[1]
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    points = unit.astype(np.float32)
    return kmeans.nearest(points, kmeans.centres(points, parts, generator, starts=10))


def _cut(
    graph: sparse.csr_array,
    nodes: np.ndarray,
    depth: int,
    codes: Codes,
    config: CollaborativeConfig,
    generator: np.random.Generator,
) -> None:
    """Writes the codes of `nodes` from level `depth` on."""
    if depth == config.depth or (depth and len(nodes) <= config.leaf):
        return
    parts = min(config.clusters, len(nodes))
    labels = spectral(graph[nodes][:, nodes], parts, generator) if parts > 1 else np.zeros(len(nodes), np.int32)
    labels = np.unique(labels, return_inverse=True)[1]
    if depth and not labels.any():
        return  # nothing to tell them apart
    codes[nodes, depth] = labels
    for label in range(int(labels.max()) + 1):
        _cut(graph, nodes[labels == label], depth + 1, codes, config, generator)
