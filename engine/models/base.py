"""What every recommender is: an encoder of a history and an index of items."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from engine.cards import KINDS, Card, Kind, require
from engine.errors import SeqscopeError

NO_TIME = -(2**63)
"""In place of a time where it is not known when an item of a history was, and at padding."""


class ItemIndex(NamedTuple):
    """score(item) = query · rows[item] + bias[item].

    rows: float32 [items, dim], or None for an identity index (the query is the score vector itself); bias: float32 [items].
    """

    rows: Tensor | None
    bias: Tensor


@dataclass(frozen=True)
class AttentionShape:
    """What the maps of `query_with_attention` mean; the fields are those of the bundle's manifest."""

    layers: int
    heads: int
    causal: bool
    window: int
    next_token: bool
    masked_diagonal: bool = False
    pooled: bool = False
    no_rollout: str | None = None


class Recommender(nn.Module):
    """Base of all models. Items are 0..num_items−1, padding is num_items, histories are padded on the left.

    A model that recipes may name declares here all that the rest of Seqscope knows of it; one that has no `name` is a base. It is
    built as Model(config, num_items, num_users, generator, **what it needs).

    Attributes:
        name: the word used on the command line and in recipes.
        Config: the dataclass of its settings, the table `model` of recipes.
        objective: how it learns, one of engine.training.objectives.OBJECTIVES; "counts" where it has a method `fit` instead.
        kind: what it goes by (engine.cards.KINDS).
        card: what people are told of it.
        max_length: how many of the latest items the encoder reads.
        min_history: 0 where the model answers without any history, else 1.
        trained_users: the model keeps a vector per training user; one that reads an order learns none of a single event.
        draws_apart: what is random in its training is drawn by `layers.dropout` or from `layers.drawing`, so that threads can
            compute parts of a batch.
        reads_order: False where a history is a set: no order of its items changes a bit of the query.
        unseen_items: the model knows items by their words, so it can read those that training did not have.
        per_item: the tensor that holds something of each item it was trained on, which it has afresh for others.
        needs: what else the model is built from, by the names that engine.training.materials knows (where its settings decide:
            `needs_of`).
        where_no_times: of a model that needs the times of the training log: what to do with a log that has none.
        reads_times: it can be told when the items of a history were (`scores_with_times`), and answers without that, too.
        score_parts: where a score is a sum over parts of the query, what each is called and how many columns it has, in order;
            all of the query's where they are added up to it (`query_parts`) instead of standing side by side in it.
        gated: how many of the latest items have a gate each (`gates`); None where none has.
        place_weights: what each filter weighs each of the latest items with, whatever the history: float32 [filters, places], the
            latest item last; None where there are no such filters.
        filter_window: over how many of the latest items filters slide (`query_with_matches`); None where none do.
        exports: the parts of its bundle, by the names that engine.export.bundle knows; empty where bundles hold no such model.
        needs_log: False where it learns from nobody, so that a catalogue without a log will do.
    """

    name: ClassVar[str]
    Config: ClassVar[type[Any]]
    objective: ClassVar[str]
    kind: ClassVar[Kind]
    card: ClassVar[Card]
    min_history: ClassVar[int] = 1
    trained_users: ClassVar[bool] = False
    draws_apart: bool = False
    reads_order: ClassVar[bool] = True
    unseen_items: ClassVar[bool] = False
    per_item: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()
    where_no_times: ClassVar[str] = ""
    needs_log: ClassVar[bool] = True
    exports: ClassVar[tuple[str, ...]] = ("vectors",)

    num_items: int
    max_length: int
    score_parts: Mapping[str, int] = {}
    gated: int | None = None
    place_weights: Tensor | None = None
    filter_window: int | None = None
    reads_times: bool = False
    beam: int | None = None
    """How many candidates validation searches for, and the test where scoring all is too dear; None where all are scored."""
    histories: int = 512
    """How many are read at a time where nothing is learnt; fewer where each is long."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            require(cls, "Config", "objective", "kind", "card")
            missing = [name for name in ("query", "index") if getattr(cls, name) is getattr(Recommender, name)]
            if missing and cls.scores is Recommender.scores:
                raise SeqscopeError(f"{cls.__qualname__} defines no {' and no '.join(missing)} (docs/extending.md)")
            if cls.kind not in KINDS:
                raise SeqscopeError(
                    f"{cls.__qualname__} declares the kind {cls.kind!r}; possible are {', '.join(KINDS)}"
                )

    @classmethod
    def needs_of(cls, config: Any) -> tuple[str, ...]:
        """What it needs with these settings (its `Config`)."""
        return cls.needs

    @property
    def geometry(self) -> Literal["cosine", "euclidean", "none"]:
        """Of item vectors: the card's, unless a setting makes another of it."""
        return self.card.geometry

    @property
    def walks(self) -> bool:
        """Whether all items are scored; False where evaluation ranks by `beam_scores`."""
        return True

    @property
    def pad(self) -> int:
        return self.num_items

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        """The query for the item after each history.

        items: int64 [batch, length], any length from 1 to max_length; users: int64 [batch], or None to fold the user in
        from the history (models without user vectors ignore it). Returns float32 [batch, dim].
        """
        raise TypeError(f"{type(self).__name__} defines no query")

    def query_parts(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        """What `query` adds up, in the order of `score_parts`: float32 [batch, parts, dim]. items, users: as there."""
        raise TypeError(f"{type(self).__name__} adds no parts up")

    @property
    def adds_parts(self) -> bool:
        """Whether the parts of a score are added up to the query, as a model that defines `query_parts` has it."""
        return type(self).query_parts is not Recommender.query_parts

    def gates(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        """How far the gate of each of the latest `gated` items is open, 0 to 1, 0 at padding: float32 [batch, gated]. items,
        users: as of `query`."""
        raise TypeError(f"{type(self).__name__} has no gates")

    def query_with_matches(self, items: Tensor) -> tuple[Tensor, list[Tensor]]:
        """As `query`, and how well filters over 1, 2, … `filter_window` items in a row match each such row of the latest items:
        per height h float32 [batch, filter_window − h + 1, filters], 0 or more, the latest row last."""
        raise TypeError(f"{type(self).__name__} has no filters that slide")

    def index(self) -> ItemIndex:
        raise TypeError(f"{type(self).__name__} defines no index")

    @property
    def attention(self) -> AttentionShape | None:
        """None where the model does not attend (the card says why)."""
        return None

    def query_with_attention(self, items: Tensor) -> tuple[Tensor, Tensor]:
        """As `query`, and the attention weights, float32 [batch, layers, heads, positions, positions]."""
        raise TypeError(f"{type(self).__name__} has no attention")

    def read_items(self) -> None:
        """Make the index of the items as they are described now, with what training learned (where `unseen_items`)."""
        raise TypeError(f"{type(self).__name__} knows items by their numbers")

    def scores(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        """float32 [batch, items]"""
        return score(self.query(items, users), self.index())

    def scores_with_times(self, items: Tensor, times: Tensor) -> Tensor:
        """As `scores`, of a model that `reads_times`. times: int64 [batch, length], seconds, when each of the items was (not that
        which is asked for); NO_TIME at padding."""
        raise TypeError(f"{type(self).__name__} reads no times")

    def candidates(self, items: Tensor, targets: Tensor, users: Tensor | None = None) -> Tensor:
        """As `scores`, of some items: float32 [batch, targets]. targets: int64 [batch, targets]."""
        return self.scores(items, users).gather(1, targets)

    def beam_scores(self, items: Tensor, users: Tensor | None, width: int, blocked: Tensor) -> Tensor:
        """As `scores`, by a search for `width` candidates; blocked: bool [batch, items], items that are not wanted."""
        raise TypeError(f"{type(self).__name__} scores all items")

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        keys = super().load_state_dict(*args, **kwargs)
        self.train(self.training)  # what that computes once for evaluation, of the weights that were read
        return keys

    def constrain(self) -> None:
        """Bring parameters back to where the model's paper keeps them; called after each training step."""


class LastState(Recommender):
    """A history is read position by position; the last state is matched with the item table."""

    objective = "next-item"
    config: Any
    items: Any
    """nn.Embedding, [num_items + 1 or more, dim], padding in row num_items; of models that read items by their numbers."""

    def hidden(self, items: Tensor) -> Tensor:
        """State after every position, float32 [batch, length, dim]. items: int64 [batch, length]."""
        raise TypeError(f"{type(self).__name__} has no states")

    def adopt(self, start: Mapping[str, Tensor]) -> None:
        """Take the weights of a run that training starts from, all but `per_item`. Raises ValueError where they do not fit."""
        state = self.state_dict()
        for name in [name for name in state if name != self.per_item]:
            shape = tuple(start[name].shape) if name in start else "missing"
            if shape != tuple(state[name].shape):
                raise ValueError(f"model.start does not fit: its {name} is {shape}, here {tuple(state[name].shape)}")
            state[name] = start[name]
        self.load_state_dict(state)

    @property
    def table(self) -> Tensor:
        """Vectors that a state is matched with, [num_items + 1 or more, dim]; row num_items is padding."""
        return self.items.weight

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        return self.hidden(items)[:, -1]

    def index(self) -> ItemIndex:
        rows = self.table[: self.num_items]
        return ItemIndex(rows, rows.new_zeros(self.num_items))


class Comparing(Recommender):
    """A model that learns from an item that a user took beside items that the user did not: objectives "pairs", "transitions"."""

    def compare(self, users: Tensor, items: Tensor, last: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Scores of some items for each user, and Σ‖·‖² of the vectors that they are made of, for an L2 term.

        users: int64 [batch]; items: int64 [batch, compared]; last: int64 [batch], the item before, of models that read it.
        Returns float32 [batch, compared] and a scalar, both with gradient.
        """
        raise TypeError(f"{type(self).__name__} compares nothing")

    def penalised_matrices(self) -> Tensor | float:
        """Σ‖·‖² of what the L2 term holds beside the vectors of a batch."""
        return 0.0


def score(query: Tensor, index: ItemIndex) -> Tensor:
    """query: [batch, dim] → scores [batch, items]"""
    if index.rows is None:
        return query + index.bias
    return torch.addmm(index.bias, query, index.rows.T)
