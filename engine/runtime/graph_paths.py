"""Paths through the graph of people and items that carry a recommendation: history → people → their items → … (NGCF, 1 and 2.2).

A model that propagates vectors along this graph without anything in between (LightGCN) scores an item by a sum over paths, which
is taken apart here exactly. The history is a new person with an edge to each of its items: p(h, j) = 1/√(|h|·|N_j|); the others'
edges have p(u, i) = 1/√(|N_u|·|N_i|), |N| being how many neighbours there are. With vectors e⁰ before any layer,

    q⁰ = mean of e⁰_j over the history      qᵏ = Σ_j p(h, j) eᵏ⁻¹_j       eᵏ_i = Σ_u p(u, i) eᵏ⁻¹_u, and so for people
    score(i) = (q⁰ + … + q^K) · (e⁰_i + … + e^K_i) / (K + 1)²             (LightGCN, equations 3, 4 and 8)

and every qᵏ is a sum over walks of length k from the history to an item (k odd) or a person (k even).

A model that keeps its layers side by side (NGCF, equations 9 and 10: query and item rows are layers 0 … K, one after the other)
scores by a sum over layers, each of the history with the same one of the item: score(i) = Σ_k qᵏ · eᵏ_i.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.bundle.files import Folder
from engine.bundle.index import ItemIndex
from engine.bundle.manifest import Manifest
from engine.bundle.tables import Column, read_matrix, read_table
from engine.data.ragged import Ragged, offsets_of

PEOPLE, EMBEDDINGS = "people.parquet", "embeddings.npy"
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]


OPENED, ENDS = 8, 12
"""Branches of which a tree has room for the ends, and ends that it has room for."""


class Step(NamedTuple):
    """Items that the people of a branch have, at the end of a path history → item → people → item."""

    item: int
    people: int
    """How many have both."""
    weight: float
    """Sum of p over their walks, from the history on."""
    adds: float | None
    """To the score of the item that is explained; None where the model's score is no sum over paths."""


class Branch(NamedTuple):
    """What comes of one item of the history."""

    item: int
    weight: float
    """p(h, item)."""
    people: int
    """Who has it in training."""
    itself: float | None
    """What its own vector adds to the score: as one of the history (layer 0) and as the end of a walk of one step."""
    through_people: float | None
    """What the vectors of these people add (walks of two steps)."""
    steps: list[Step]
    """Where walks of three steps end: of all opened branches the same items, those that add most (or weigh most) together. The
    explained item first, which is the only one where the branch is not opened."""
    others: int
    """Further items that such walks reach."""
    others_add: float | None
    deeper: float | None
    """What walks of four steps and more add."""

    @property
    def adds(self) -> float | None:
        """All that comes of this item; a score is the sum over the history's."""
        parts = [self.itself, self.through_people, *(step.adds for step in self.steps), self.others_add, self.deeper]
        return None if None in parts else sum(part for part in parts if part is not None)


@dataclass(frozen=True)
class InteractionGraph:
    """Who has which items in training. Nobody is named: people are rows."""

    people: Ragged
    """Of every person the items, int32."""
    items: Ragged
    """Of every item the people, int32."""

    @classmethod
    def of(cls, people: Ragged, num_items: int) -> InteractionGraph:
        """people: of every person the items, int32, each once and ascending."""
        order = np.argsort(people.values, kind="stable")
        starts = offsets_of(np.bincount(people.values, minlength=num_items))
        return cls(people, Ragged(people.owners[order].astype(np.int32), starts))

    @cached_property
    def scale(self) -> tuple[Float32, Float32]:
        """1/√|N| of people and of items; 0 where there is nobody."""
        people, items = (side.lengths.astype(np.float64) for side in (self.people, self.items))
        return _inverse_root(people), _inverse_root(items)

    def edges(self, history: Sequence[int]) -> tuple[Int64, Float32]:
        """(the items of a history, each once and ascending; p(h, item) of each)"""
        unique = np.unique(np.asarray(history, np.int64))
        degrees = np.maximum(
            self.items.lengths[unique], 1
        )  # an item that nobody has sends its own vector as if one had
        return unique, (1 / np.sqrt(degrees * max(len(unique), 1))).astype(np.float32)

    def reached(self, item: int) -> tuple[Int64, Float64]:
        """From an item through its people to theirs: how many people [items], and the sum of p over their walks [items]."""
        people = self.items[item]
        shared = self.people.take(people)
        person, others = shared.owners, shared.values
        weight = (self.scale[0][people] ** 2 * self.scale[1][item])[person] * self.scale[1][others]
        size = len(self.items)
        people_with = np.bincount(others, minlength=size).astype(np.int64)
        return people_with, np.bincount(others, weight, minlength=size).astype(np.float64)

    def propagated(self, of_items: Float32, of_people: Float32, layers: int) -> tuple[Float32, Float32]:
        """(eᵏ of items [layers + 1, items, dim], of people [layers + 1, people, dim]) for k = 0 … layers"""
        from scipy.sparse import csr_matrix  # a moment to import, and few pages need it

        values = self.scale[0][self.people.owners] * self.scale[1][self.people.values]
        walks = csr_matrix((values, self.people.values, self.people.offsets), (len(of_people), len(of_items)))
        back = walks.T.tocsr()
        items, people = [of_items], [of_people]
        for _ in range(layers):
            items, people = [*items, back @ people[-1]], [*people, walks @ items[-1]]
        return np.stack(items), np.stack(people)


class Paths:
    """A LightGCN taken apart. All vectors are float32; layers 0 … K are averaged on both sides."""

    def __init__(self, graph: InteractionGraph, of_items: Float32, of_people: Float32, layers: int) -> None:
        """of_items [items, dim], of_people [people, dim]: the vectors before any layer."""
        self.graph, self.layers = graph, layers
        self.items, self.people = graph.propagated(of_items, of_people, layers)

    def queries(self, history: Sequence[int]) -> Float32:
        """qᵏ of a history of one item or more, [layers + 1, dim]."""
        items, weights = self.graph.edges(history)
        return np.concatenate(
            [self.items[0, items].mean(0)[None], np.einsum("j,kjd->kd", weights, self.items[:-1, items])]
        )

    def by_layer(self, history: Sequence[int], item: int) -> Float32:
        """What layer k of the history (rows) with layer l of the item (columns) adds to its score: [layers + 1, layers + 1]."""
        return self.queries(history) @ self.items[:, item].T / np.float32((self.layers + 1) ** 2)

    def scores(self, history: Sequence[int], without: int | None = None) -> Float32:
        """Of all items; `without` one layer: the mean is over the others, for the history and for the items. [items]"""
        layers = [layer for layer in range(self.layers + 1) if layer != without]
        return self.items[layers].mean(0) @ self.queries(history)[layers].mean(0)

    def branches(self, history: Sequence[int], item: int, ends: int = ENDS, opened: int = OPENED) -> list[Branch]:
        """The score of `item` by paths: one branch per item of the history, those that add most (or take most away) first.

        ends: how many ends of walks are named, what the others add is summed up; opened: the first so many branches have
        others than `item`, since following all walks from a popular item takes milliseconds.
        """
        # a walk weighs the same there and back, so those of all branches to `item` are had at once
        people_to_item, walks_to_item = self.graph.reached(item)
        target = self.items[:, item].mean(0) / np.float32(self.layers + 1)
        items, weights = self.graph.edges(history)
        adds = np.zeros((len(items), max(self.layers, 3) + 1))  # by the length of the walk
        adds[:, 0] = self.items[0, items] @ target / len(items)
        adds[:, 1 : self.layers + 1] = (np.einsum("kjd,d->kj", self.items[:-1, items], target) * weights).T
        at_ends = (self.items[0] @ target).astype(np.float64)
        adds_each = at_ends if self.layers >= 3 else np.zeros_like(at_ends)  # fewer add nothing along walks so long
        order = np.argsort(-np.abs(adds.sum(1)), kind="stable").tolist()
        reached = {row: self.graph.reached(int(items[row])) for row in order[:opened]}
        total = sum((weights[row] * walks for row, (_, walks) in reached.items()), np.zeros(len(at_ends)))
        named = strongest(total, total * np.abs(adds_each) if self.layers >= 3 else total, item, ends)
        branches: list[Branch] = []
        for row in order:
            j, weight = int(items[row]), float(weights[row])
            parts = (adds[row, :2].sum(), adds[row, 2], adds[row, 3], adds[row, 4:].sum())
            itself, through, rest, deeper = map(float, parts)
            steps: list[Step] = []
            others = 0
            if row in reached:
                counts, walks = reached[row]
                steps, others = _steps(named, counts, weight * walks, weight * walks * adds_each)
            elif people_to_item[j]:
                walks_there = float(weight * walks_to_item[j])
                steps = [Step(item, int(people_to_item[j]), walks_there, walks_there * float(adds_each[item]))]
            rest -= sum(step.adds or 0.0 for step in steps)
            people = int(self.graph.items.lengths[j])
            branches.append(Branch(j, weight, people, itself, through, steps, others, rest, deeper))
        return branches


def _inverse_root(degrees: npt.NDArray[np.float64]) -> Float32:
    return np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0).astype(np.float32)


def strongest(weights: Float64, by: Float64, item: int, most: int) -> Int64:
    """The `most` ends of largest `by` among those that walks reach, which have a weight; `item` first where they do."""
    reached = np.flatnonzero(weights)
    first = by[reached].copy()
    first[reached == item] = np.inf
    return reached[np.argsort(-first, kind="stable")[:most]]


def _steps(named: Iterable[int], counts: Int64, weights: Float64, adds: Float64 | None) -> tuple[list[Step], int]:
    """Those of the named ends that are reached; and how many others are."""
    steps = [
        Step(int(end), int(counts[end]), float(weights[end]), None if adds is None else float(adds[end]))
        for end in named
        if counts[end]
    ]
    return steps, int(np.count_nonzero(counts)) - len(steps)


def walked(
    graph: InteractionGraph, history: Sequence[int], item: int, ends: int = ENDS, opened: int = OPENED
) -> list[Branch]:
    """As `Paths.branches` for a model whose score is no sum over paths (NGCF): people and weights alone, the items with the most
    walks to `item` first."""
    items, weights = graph.edges(history)
    order = np.argsort(-weights * graph.reached(item)[1][items], kind="stable").tolist()
    reached = {row: graph.reached(int(items[row])) for row in order[:opened]}
    total = sum((weights[row] * walks for row, (_, walks) in reached.items()), np.zeros(len(graph.items)))
    named = strongest(total, total, item, ends)
    branches = []
    for row in order:
        j, weight = int(items[row]), float(weights[row])
        counts, walks = reached[row] if row in reached else graph.reached(j)
        steps, others = _steps(named if row in reached else [item], counts, weight * walks, None)
        branches.append(Branch(j, weight, int(graph.items.lengths[j]), None, None, steps, others, None, None))
    return branches


def read_graph(folder: Folder, manifest: Manifest) -> InteractionGraph:
    """The graph that a bundle carries. Raises BundleError."""
    shape = manifest.graph
    assert shape is not None
    column = Column(pa.list_(pa.int32()), 0, manifest.num_items - 1)
    items = read_table(folder, PEOPLE, {"items": column}, expected=manifest.files[PEOPLE])["items"].combine_chunks()
    offsets = items.offsets.to_numpy().astype(np.int64)
    people = Ragged(items.values.to_numpy()[offsets[0] : offsets[-1]], offsets - offsets[0])
    if len(people) != shape.people or len(people.values) != shape.edges:
        reason = f"{len(people):,} users with {len(people.values):,} items where the manifest announces "
        raise folder.fault(PEOPLE, f"{reason}{shape.people:,} with {shape.edges:,}")
    begins = np.zeros(len(people.values), bool)
    begins[people.offsets[:-1][people.lengths > 0]] = True
    if np.any((np.diff(people.values, prepend=-1) <= 0) & ~begins):
        raise folder.fault(PEOPLE, "the items of a person do not ascend, each once")
    return InteractionGraph.of(people, manifest.num_items)


def read_paths(folder: Folder, manifest: Manifest, graph: InteractionGraph) -> Paths:
    """The model that a bundle carries beside its graph. Raises BundleError."""
    shape = manifest.graph
    assert shape is not None and shape.dim is not None
    size = (manifest.num_items + shape.people, shape.dim)
    vectors: Float32 = read_matrix(folder, EMBEDDINGS, manifest.files[EMBEDDINGS], size)
    return Paths(graph, vectors[: manifest.num_items], vectors[manifest.num_items :], shape.layers)


class SideBySide:
    """The layers of a model that scores with all of them side by side."""

    def __init__(self, index: ItemIndex, query: Callable[[Sequence[int]], Float32], layers: int, dim: int) -> None:
        """index: float32 rows [items, (layers + 1) · dim]; query: history → float32 [(layers + 1) · dim]."""
        self.index, self.query, self.layers, self.dim = index, query, layers, dim

    def by_layer(self, history: Sequence[int], item: int) -> Float32:
        """What each layer adds to the item's score, float32 [layers + 1]."""
        products: Float32 = self.query(history) * self.index.rows[item]
        return products.reshape(self.layers + 1, self.dim).sum(1)

    def scores(self, history: Sequence[int], without: int | None = None) -> Float32:
        """Of all items, float32 [items]; `without` one layer: the sum of the others."""
        query = self.query(history).copy()
        if without is not None:
            query[without * self.dim : (without + 1) * self.dim] = 0
        return self.index.scores(query)


def read_layers(
    folder: Folder, manifest: Manifest, index: ItemIndex, query: Callable[[Sequence[int]], Float32]
) -> SideBySide:
    """Raises BundleError where scores have a part that is no layer's."""
    shape = manifest.graph
    assert shape is not None and shape.layer_dim is not None
    if index.table[:, -1].any():
        raise folder.fault("index.npy", "its items have biases, where layers side by side are the whole score")
    return SideBySide(index, query, shape.layers, shape.layer_dim)
