"""Collaborative clusters (P5-CID, Hua et al., SIGIR-AP 2023): items that people take together share the first codes.

The graph of how often two items are in one training sequence is cut by spectral clustering (Ng, Jordan & Weiss 2001), each part
that is still large is cut again, and the path of cuts is the identifier; collisions.policy = "append" numbers the items of a
leaf. Training events alone: the validation and test items of a sequence would give away what is asked for.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from engine.cards import Card
from engine.data.identifiers import NONE
from engine.data.ragged import Ragged
from engine.tokenizers import kmeans
from engine.tokenizers.base import Codes, Learning, Material, Tokenizer, Vectors

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
        summary="Clusters of clusters of items that are taken together in the training histories; words play no part.",
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
        return arrays, {"config": asdict(self.config), "item_ids": self.item_ids}

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
    _, labels = np.unique(labels, return_inverse=True)
    labels = labels.reshape(-1)
    if depth and not labels.any():
        return  # nothing to tell them apart
    codes[nodes, depth] = labels
    for label in range(int(labels.max()) + 1):
        _cut(graph, nodes[labels == label], depth + 1, codes, config, generator)
