"""UniSRec (Hou et al., Towards Universal Sequence Representation Learning for Recommender Systems, KDD 2022).

An item is the vector x of its text by an encoder that is not trained. Experts whiten it, a router weighs them (2.2):

    x_k = (x − b_k) W_k                                       parametric whitening, eq. 2
    v = Σ_k g_k x_k,  g = softmax(x W + ε · softplus(x W_ε))    mixture of experts, eq. 3 and 4; ε ~ N(0, 1) in training, else 0

A causal self-attention network reads v with learned positions; the score is cos(state, v) / τ. Inductive: items are their text
alone. Transductive (`ids`): v + e in place of v, e a vector of the item's own (2.4).
`Described` is what FDSA and ZESRec share with it.

Pre-trained (2.3), states meet the item that comes next and the state of the same history with items dropped, among those of the
batch. docs/models.md says what differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.base import LastState
from engine.models.layers import check_heads, dropout
from engine.models.sasrec import Block, SASRecConfig, SelfAttentive


@dataclass(frozen=True)
class UniSRecConfig:
    encoder: str = "auto"
    """The text encoder, as `seqscope embed` takes it (paper: BERT); auto is that of `start`, where there is one."""
    start: str = ""
    """The pre-trained run that training starts from (its name, beside this run, or its folder, of any dataset); its blocks and
    positions stay as they are then (2.4). Empty: drawn weights."""
    pretrain: bool = False
    """Learn from contrasts (2.3), not from the catalogue."""
    fields: tuple[str, ...] = ()
    """Columns of the catalogue that make up an item's text; empty: every column of words."""
    ids: bool = False
    """A vector of its own for every item beside its text (the paper's transductive setting)."""
    dim: int = 64
    """Width of item vectors and blocks (authors: 300)."""
    experts: int = 8
    """Whitenings that the router weighs (authors: 8); 1 is the paper's ablation without a mixture."""
    adaptor_dropout: float = 0.2
    """On text vectors, the same for all experts (authors: .2, drawn for each)."""
    blocks: int = 2
    """Self-attention blocks (authors: 2)."""
    heads: int = 2
    """Attention heads; must divide dim (authors: 2)."""
    dropout: float = 0.5
    """On what the blocks read, attention weights and feed-forward layers (authors: .5)."""
    temperature: float = 0.07
    """τ: cosines are divided by it (authors: .07)."""
    max_length: int = 50
    """Latest items read (authors: 50)."""


class Described(LastState):
    """Items are read by vectors that are made of what is said of them: in training for each batch, else once for all items, when
    evaluation begins."""

    read: Tensor | None

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("read", None, persistent=False)

    def made(self, items: Tensor | None) -> Tensor:
        """float32 [..., dim] of `items`, int64 of any shape; without, [num_items + 1, dim] of all and of padding."""
        raise TypeError(f"{type(self).__name__} makes no vectors")

    def vectors(self, items: Tensor | None = None) -> Tensor:
        """As `made`, at the least cost."""
        if items is None or items.numel() > self.num_items:
            table = self.made(None) if self.read is None else self.read
            # the row of padding must not learn from the places before a history
            return table if items is None else F.embedding(items, table, padding_idx=self.num_items)
        return self.made(items) if self.read is None else F.embedding(items, self.read)

    def train(self, mode: bool = True) -> Described:
        super().train(mode)
        self.read = None
        if not mode:
            with torch.no_grad():
                self.read = self.made(None)
        return self


class Adaptor(nn.Module):
    """From the encoder's space to the model's."""

    def __init__(self, width: int, config: UniSRecConfig) -> None:
        super().__init__()
        self.rate = config.adaptor_dropout
        self.bias = nn.Parameter(torch.zeros(config.experts, width))
        self.whitening = nn.Parameter(torch.empty(config.experts, config.dim, width))
        self.gate, self.noise = (nn.Linear(width, config.experts, bias=False) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """[..., width] → [..., dim]"""
        gates = self.gate(x)
        if self.training:
            gates = gates + torch.randn_like(gates) * F.softplus(self.noise(x))
        # one product for all experts: (x − b) W = x W − b W
        whitened = F.linear(dropout(x, self.rate, self.training), self.whitening.flatten(0, 1))
        centre = torch.einsum("kw,kdw->kd", self.bias, self.whitening)
        whitened = whitened.unflatten(-1, centre.shape) - centre
        return torch.einsum("...k,...kd->...d", F.softmax(gates, dim=-1), whitened)


class UniSRec(Described, SelfAttentive):
    name = "unisrec"
    Config = UniSRecConfig
    objective = "universal"
    draws_apart = False  # noise of the experts' gates
    kind = "text"
    card = Card(
        title="UniSRec",
        order=42,
        summary="Knows an item by the vector of its words, which a mixture of experts turns into one that serves "
        "recommendation, and reads the history as SASRec does. Items with much the same words are recommended alike.",
        paper="Hou, Mu, Zhao, Li, Ding & Wen, Towards Universal Sequence Representation Learning for Recommender Systems, "
        "KDD 2022",
        variants=(
            Variant("unisrec", page=OnPage(examples=1)),
            Variant(
                "unisrec-ids",
                order=43,
                summary="UniSRec with a vector of its own for every item beside that of its words: it can tell apart what is "
                "described alike.",
            ),
        ),
    )
    needs = ("vectors", "start")
    unseen_items = True
    per_item = "items.weight"

    text: Tensor

    def __init__(
        self,
        config: UniSRecConfig,
        num_items: int,
        num_users: int,
        generator: torch.Generator,
        vectors: np.ndarray,
        start: Mapping[str, Tensor] | None = None,
    ) -> None:
        """vectors: float32 [items, width], zeros for an item without words."""
        super().__init__()
        check_heads(config.dim, config.heads)
        if len(vectors) != num_items:
            raise ValueError(f"{len(vectors)} vectors for {num_items} items")
        self.config, self.num_items, self.max_length = config, num_items, config.max_length
        # made of the vectors, which the run keeps; the last row is padding
        self.text = nn.Buffer(F.pad(torch.from_numpy(vectors), (0, 0, 0, 1)), persistent=False)
        self.adaptor = Adaptor(vectors.shape[1], config)
        self.items = nn.Embedding(num_items + 1, config.dim, padding_idx=num_items) if config.ids else None
        self.positions = nn.Embedding(config.max_length, config.dim)
        block = SASRecConfig(dim=config.dim, heads=config.heads, dropout=config.dropout)
        self.blocks = nn.ModuleList(Block(block) for _ in range(config.blocks))
        self.norm = nn.LayerNorm(config.dim, eps=1e-8)
        for module in self.blocks.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight, generator=generator)
                nn.init.zeros_(module.bias)
        # text vectors have length 1: of about that length are theirs
        nn.init.normal_(self.adaptor.whitening, std=config.dim**-0.5, generator=generator)
        for table in (self.items, self.positions):
            if table is not None:
                nn.init.normal_(table.weight, std=0.02, generator=generator)
        for matrix in (self.adaptor.gate, self.adaptor.noise):
            nn.init.zeros_(matrix.weight)
        if self.items is not None:
            with torch.no_grad():
                self.items.weight[self.pad] = 0
        if start is not None:
            self.adopt(start)
        if config.start and not config.pretrain:
            for fixed in (self.blocks, self.positions):
                fixed.requires_grad_(False)

    def made(self, items: Tensor | None) -> Tensor:
        """v, or v + e."""
        v = self.adaptor(self.text if items is None else F.embedding(items, self.text))
        if self.items is not None:
            v = v + (self.items.weight if items is None else self.items(items))
        return v

    def hidden(self, items: Tensor, weights: list[Tensor] | None = None) -> Tensor:
        """State after every position at length 1 / τ, float32 [batch, length, dim]. items: int64 [batch, length]."""
        x = self.vectors(items) + self.positions.weight[self.max_length - items.shape[1] :]
        states = self.norm(self.encoded(x, items, self.blocks, weights))
        return F.normalize(states.float(), dim=-1) / self.config.temperature

    @torch.no_grad()
    def read_items(self) -> None:
        """Of new items the text alone is known."""
        if self.items is not None:
            self.items.weight.zero_()
        self.train(self.training)

    @property
    def table(self) -> Tensor:
        """Item vectors at length 1, [num_items + 1, dim]; the last row is padding."""
        return F.normalize(self.vectors().float(), dim=-1)
