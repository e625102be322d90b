"""The bipartite graph of a training log: users on one side, items on the other, an edge where the user has the item.

Models over it (LightGCN, NGCF) keep a vector per node and propagate: every node receives the sum of its neighbours' vectors,
normalised by D^-1/2 A D^-1/2, so the edge between user u and item i weighs 1 / √(|N_u| |N_i|). The adjacency is never dense: its
one block R (users × items) is kept by rows, and its transpose beside it. Since the normalised adjacency is symmetric, the
gradient of a propagation is the same propagation of the gradients (of D⁻¹A, which NGCF's code has, it is the transposed one);
`Propagation` computes both and keeps nothing in between.

What computes it was measured (`python -m benchmarks.graph_speed --propagation`; CPU time on one thread of an AMD EPYC, both
directions, 64 floats a node, Gowalla's 810,128 edges): embedding_bag with weights 14 ms, CSR product (MKL) 47, scipy 56, COO
product (what LightGCN-PyTorch uses) 134, index_add 798, segment_reduce 801. So CPUs take embedding_bag. GPUs take the CSR
product (cuSPARSE balances rows of very different length): a step of LightGCN, with six of them, takes 4.7 ms on an H200.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.models.base import Comparing, ItemIndex
from engine.writing import count

MOST_BYTES = 16 << 30
"""A graph whose training needs more is refused."""
MOST_ITEMS = 100_000
"""Different items of one user, at most: more is no person."""
# of every CSR tensor on a GPU, whatever its maker asks for
warnings.filterwarnings("ignore", "Sparse (CSR tensor support|invariant checks)", UserWarning)
NO_ATTENTION = "It has no attention: it adds up vectors over a graph of users and items."


@dataclass(frozen=True)
class Graph:
    """Who has what, a pair once.

    offsets: int64 [users + 1]; items: int32 [edges], those of a user ascending; num_items: nodes of the other side;
    repeated: events that repeat a pair of before and make no edge.
    """

    offsets: np.ndarray
    items: np.ndarray
    num_items: int
    repeated: int = 0

    @classmethod
    def of(
        cls, items: np.ndarray, offsets: np.ndarray, num_items: int, *, user_name: Callable[[int], str] = str
    ) -> Graph:
        """From a log: items int [events], offsets int64 [users + 1]. Raises ValueError where that is no graph to learn from.
        user_name: what the user of a row is called in such a message."""
        users = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        pairs = np.unique(users * num_items + items)
        counts = np.bincount(pairs // num_items, minlength=len(offsets) - 1)
        graph = cls(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            (pairs % num_items).astype(np.int32),
            num_items,
            len(items) - len(pairs),
        )
        for kind, active in (("users", np.count_nonzero(counts)), ("items", np.count_nonzero(graph.degrees))):
            if active < 2:
                raise ValueError(
                    f"learning who prefers which item takes two {kind} with training events at least, and there is {active}"
                )
        most = int(counts.argmax())
        if counts[most] > MOST_ITEMS:
            raise ValueError(
                f"user {user_name(most)} has {counts[most]:,} different items, and at most {MOST_ITEMS:,} a user are taken. "
                "Leave that user out of the log"
            )
        return graph

    @property
    def num_users(self) -> int:
        return len(self.offsets) - 1

    @property
    def degrees(self) -> np.ndarray:
        """int64 [items]: users of each."""
        return np.bincount(self.items, minlength=self.num_items)

    @property
    def bytes(self) -> int:
        """What `Propagation` keeps: numbers and weights of both directions, and where rows begin."""
        return 16 * len(self.items) + 4 * (self.num_users + self.num_items + 2)

    def check_bytes(self, needed: int) -> None:
        """Raises ValueError where a training would need more than `MOST_BYTES`. needed: bytes, the graph's own among them."""
        if needed > MOST_BYTES:
            raise ValueError(
                f"a graph of {self.num_users:,} users, {self.num_items:,} items and {len(self.items):,} edges needs about "
                f"{needed / 2**30:.1f} GB for its layers and gradients, and {MOST_BYTES / 2**30:g} GB is the bound. "
                "Lower model.dim or model.layers, or import the log with a larger --k-core"
            )

    def __str__(self) -> str:
        """A line for the console, with all that makes no edge."""
        alone = self.num_items - int(np.count_nonzero(self.degrees))
        empty = int((np.diff(self.offsets) == 0).sum())
        parts = [f"{count(self.num_users, 'user')}, {count(self.num_items, 'item')}, {count(len(self.items), 'edge')}"]
        repeated = count(self.repeated, "repeated interaction counts", "repeated interactions count")
        parts += [f"{repeated} once"] if self.repeated else []
        parts += [f"{count(alone, 'item')} without edges, in nobody's training"] if alone else []
        parts += [f"{count(empty, 'user')} without edges, with nothing in training"] if empty else []
        return "graph: " + "; ".join(parts)


class Sparse(NamedTuple):
    """A sparse matrix by rows: offsets int32 [rows + 1], columns int32 [edges], weights float32 [edges], columns in all."""

    offsets: Tensor
    columns: Tensor
    weights: Tensor
    width: int

    def times(self, dense: Tensor) -> Tensor:
        """float32 [width, dim] → float32 [rows, dim], without gradient."""
        dense = dense.contiguous()
        if dense.device.type == "cpu":
            return F.embedding_bag(
                self.columns, dense, self.offsets, mode="sum", per_sample_weights=self.weights, include_last_offset=True
            )
        return self.csr() @ dense

    def csr(self) -> Tensor:
        size = (len(self.offsets) - 1, self.width)
        return torch.sparse_csr_tensor(self.offsets, self.columns, self.weights, size, check_invariants=False)


Blocks = tuple[Sparse, Sparse]
"""By user and by item."""


class _Propagate(torch.autograd.Function):
    """(users, items) → what `blocks`, of users and of items, make of the other side's; `transposed` does it with gradients."""

    @staticmethod
    def forward(ctx: Any, users: Tensor, items: Tensor, blocks: Blocks, transposed: Blocks) -> tuple[Tensor, Tensor]:
        ctx.transposed = transposed
        return blocks[0].times(items), blocks[1].times(users)

    @staticmethod
    def backward(ctx: Any, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor, None, None]:
        by_user, by_item = ctx.transposed
        return by_user.times(items), by_item.times(users), None, None


class Propagation(nn.Module):
    """D^-1/2 A D^-1/2 of a graph, or D⁻¹A where `means`, times the vectors of its nodes. A node without edges receives zeros.

    user_degrees, item_degrees: float32 [users, 1] and [items, 1], 1 where a node has no edges.
    """

    def __init__(self, graph: Graph, *, means: bool = False) -> None:
        super().__init__()
        counts = np.diff(graph.offsets)
        users = np.repeat(np.arange(graph.num_users), counts)
        order = np.argsort(graph.items, kind="stable")
        of_user, of_item = counts[users].astype(np.float64), graph.degrees[graph.items].astype(np.float64)
        edges = (1 / of_user, 1 / of_item) if means else (1 / np.sqrt(of_user * of_item),) * 2
        to_users, to_items = (weights.astype(np.float32) for weights in edges)
        ends = np.concatenate([[0], np.cumsum(graph.degrees)])
        arrays = {
            "user_offsets": graph.offsets.astype(np.int32), "user_items": graph.items, "user_weights": to_users,
            "item_offsets": ends.astype(np.int32), "item_users": users[order].astype(np.int32),
            "item_weights": to_items[order],
            "user_degrees": np.maximum(counts, 1).astype(np.float32)[:, None],
            "item_degrees": np.maximum(graph.degrees, 1).astype(np.float32)[:, None],
        }  # fmt: skip
        if means:  # the other matrix is its own transpose
            arrays |= {"user_transposed": to_items, "item_transposed": to_users[order]}
        for name, array in arrays.items():  # the data set's, so no checkpoint holds them
            self.register_buffer(name, torch.from_numpy(array), persistent=False)
        self.means = means

    user_offsets: Tensor
    user_items: Tensor
    user_degrees: Tensor
    item_degrees: Tensor

    def blocks(self, *, transposed: bool = False) -> Blocks:
        """What users receive from items, and items from users; or the same of the transposed matrix, which gradients go by."""
        weights = "transposed" if transposed and self.means else "weights"
        users, items = (getattr(self, f"{side}_{weights}") for side in ("user", "item"))
        return (
            Sparse(self.user_offsets, self.user_items, users, len(self.item_offsets) - 1),  # type: ignore[arg-type]
            Sparse(self.item_offsets, self.item_users, items, len(self.user_offsets) - 1),  # type: ignore[arg-type]
        )

    def forward(self, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """users: float [users, dim], items: float [items, dim] → what each receives, float32 of the same shapes."""
        blocks, transposed = self.blocks(), self.blocks(transposed=True)
        with torch.autocast(users.device.type, enabled=False):
            received: tuple[Tensor, Tensor] = _Propagate.apply(users.float(), items.float(), blocks, transposed)
        return received


Layer = tuple[Tensor, Tensor]
"""Vectors of all users [users, dim] and all items [items, dim] after so many propagations."""


class GraphRecommender(Comparing):
    """A vector per user and item, and layers over their graph. Scores are dot products of final vectors.

    **Fold-in.** A history without a trained user is a new node with an edge to each of its different items. Its own vector, e⁰,
    is the mean of its items' e⁰; in each layer it receives what a user with these items would, from their vectors of the layer
    before. Its arrival changes nobody else. For the items that a user trained with, all that this node receives is what training
    computes for that user, but for what follows from another e⁰.

    In evaluation mode all layers are computed once, when it begins, and kept until training goes on.
    """

    trained_users = True
    reads_order = False
    needs = ("graph",)
    exports = ("vectors", "graph")
    sums_paths: ClassVar[bool] = False
    """Final vectors are means over neighbours and layers, so a score is a sum over paths through the graph."""
    histories = 128  # whole ones, which are long

    people: Tensor | None
    rows: Tensor | None
    table: Tensor | None

    def __init__(
        self, num_items: int, num_users: int, dim: int, max_length: int, graph: Graph, *, means: bool = False
    ) -> None:
        super().__init__()
        if (graph.num_users, graph.num_items) != (num_users, num_items):
            raise ValueError(
                f"a graph of {graph.num_users} users and {graph.num_items} items is none of {num_users} and {num_items}"
            )
        self.num_items, self.max_length = num_items, max_length
        self.users, self.items = nn.Embedding(num_users, dim), nn.Embedding(num_items, dim)
        self.propagation = Propagation(graph, means=means)
        for name in ("people", "rows", "table"):
            self.register_buffer(name, None, persistent=False)

    @classmethod
    def bytes_needed(cls, config: Any, graph: Graph) -> int:
        """Of memory in training: graph, parameters, layers and gradients."""
        raise TypeError(f"{cls.__name__} does not say")

    @property
    def layer_dim(self) -> int | None:
        """Numbers per layer where final vectors are all layers side by side, else None."""
        return None

    def layers(self) -> list[Layer]:
        """E⁰ … E^K, with gradient; in training with dropout."""
        raise TypeError(f"{type(self).__name__} has no layers")

    def final(self, layers: list[Layer]) -> Layer:
        """The vectors that are scored with."""
        raise TypeError(f"{type(self).__name__} has no vectors")

    def fold_table(self, layers: list[Layer]) -> Tensor:
        """float32 [items, width]: what each item adds to the sums that `fold` gets."""
        raise TypeError(f"{type(self).__name__} folds nobody in")

    def fold(self, sums: Tensor, count: Tensor) -> Tensor:
        """Final vectors of new users. sums: float32 [batch, width]; count: float32 [batch, 1], different items, at least 1."""
        raise TypeError(f"{type(self).__name__} folds nobody in")

    def penalised(self, users: Tensor, items: Tensor, vectors: Layer) -> Tensor:
        """Σ‖·‖² of what the L2 term of a batch holds. users: int64 [batch]; items: int64 [batch, 1 + negatives], the chosen one
        first; vectors: their final vectors, [batch, dim] and [batch, 1 + negatives, dim]."""
        raise TypeError(f"{type(self).__name__} has no penalty")

    def compare(self, users: Tensor, items: Tensor, last: Tensor | None = None) -> tuple[Tensor, Tensor]:
        people, rows = self.final(self.layers())
        # embedding, not an index: its gradient is added up in the same order every time
        user, item = F.embedding(users, people), F.embedding(items, rows)
        return (user[:, None] * item).sum(-1), self.penalised(users, items, (user, item))

    def train(self, mode: bool = True) -> GraphRecommender:
        super().train(mode)
        self.people = self.rows = self.table = None
        if not mode:
            with torch.no_grad():
                self.people, self.rows, self.table = self._tables()
        return self

    def _tables(self) -> tuple[Tensor, Tensor, Tensor]:
        """Final vectors of users and of items, and the rows that a fold-in sums; the last one, for padding, is zero."""
        layers = self.layers()
        people, rows = self.final(layers)
        return people, rows, F.pad(self.fold_table(layers), (0, 0, 0, 1))

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        people, table = self.people, self.table
        if people is None or table is None:
            people, _, table = self._tables()
        if users is not None:
            return F.embedding(users, people)
        items = distinct(items, self.pad)
        count = (items != self.pad).sum(1, keepdim=True).clamp(min=1).float()
        return self.fold(F.embedding(items, table).sum(1), count)

    def index(self) -> ItemIndex:
        rows = self._tables()[1] if self.rows is None else self.rows
        return ItemIndex(rows, rows.new_zeros(self.num_items))


def squared(vectors: Tensor) -> Tensor:
    """Σ‖·‖², in half the time of square().sum() and its gradient."""
    flat = vectors.flatten()
    return flat.dot(flat)


def distinct(items: Tensor, pad: int) -> Tensor:
    """Histories as sets: each ascending, an item once, padding (the largest number) last. items: int64 [batch, length]."""
    items = items.sort(dim=1).values
    before = torch.cat([items[:, :1] * 0 - 1, items[:, :-1]], dim=1)
    return items.masked_fill(items == before, pad).sort(dim=1).values
