"""S3-Rec (Zhou et al., CIKM 2020): a self-attentive network that first learns what belongs together, then what comes next.

Pre-trained, it looks both ways (layers are BERT's). f(x, y) = σ(xᵀ W y), with a W for each of four tasks (4.2):

    AAP  f(e_i, e_a)    which attributes a an item i has
    MIP  f(F_t, e_i)    which item was hidden behind [MASK] at place t
    MAP  f(F_t, e_a)    which attributes that item has
    SP   f(s, s̃)        which segment of items was hidden; s, s̃ the last states over what is left and over the segment

Fine-tuned from there, it looks back only, and its last state is matched with the table of items (4.3). An attribute is a value of
a column, or one of several between commas: a genre, a brand. docs/models.md says what differs.
"""

import functools
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.bert4rec import BERT4RecConfig, TransformerLayer
from engine.models.item_to_item import Attributes
from engine.models.layers import Mask, check_heads, dropout, initialise
from engine.models.sasrec import SelfAttentive
from engine.text.attributes import keys_of


@dataclass(frozen=True)
class S3RecConfig:
    start: str = ""
    """The pre-trained run that training starts from (its name, beside this run, or its folder); empty: drawn weights."""
    pretrain: bool = False
    """Learn the four tasks of pre-training, not what comes next."""
    fields: tuple[str, ...] = ()
    """Columns whose values are attributes; empty: all of them (paper: category and brand)."""
    vocabulary: int = 1000
    """Attributes at most, those of the most items; what one item alone has is none (authors' Beauty: 1,221)."""
    dim: int = 64
    """Width of item and attribute vectors and of layers (paper: 64)."""
    blocks: int = 2
    """Transformer layers (paper: 2)."""
    heads: int = 2
    """Attention heads; must divide dim (paper: 2)."""
    dropout: float = 0.5
    """On embeddings, attention weights, projections and feed-forward layers (authors: .5)."""
    max_length: int = 50
    """Latest items read (paper: 50)."""


def attribute_table(attributes: Attributes, fields: Collection[str], most: int) -> tuple[np.ndarray, int]:
    """int64 [items, most that one has] of attribute numbers, and how many attributes there are, which also fills up the rows.

    Raises ValueError where no item has one of `fields`, or no attribute is of two items.
    """
    keys = keys_of(attributes, fields)
    of_items = [
        {(key, part.strip().casefold()) for key, value in pairs if key in keys for part in value.split(",")}
        for pairs in attributes
    ]
    counts = Counter(attribute for described in of_items for attribute in described if attribute[1])
    shared = sorted((a for a, count in counts.items() if count > 1), key=lambda a: (-counts[a], a))[:most]
    if not shared:
        raise ValueError(
            "no two items have an attribute in common, such as a genre or a brand, and pre-training predicts attributes: "
            "give the catalogue such a column, or take sasrec, which reads none"
        )
    number = {attribute: n for n, attribute in enumerate(shared)}
    rows = [sorted(number[attribute] for attribute in described if attribute in number) for described in of_items]
    table = np.full((len(rows), max(map(len, rows))), len(shared), np.int64)
    for row, numbers in zip(table, rows, strict=True):
        row[: len(numbers)] = numbers
    return table, len(shared)


class Tasks(nn.Module):
    """What pre-training needs beside the network: which attributes items have, their vectors, and W of each task."""

    of_items: Tensor

    def __init__(self, dim: int, table: np.ndarray, attributes: int) -> None:
        super().__init__()
        # made of the attributes, which the dataset keeps; padding and [MASK] have none
        padded = np.pad(table, ((0, 2), (0, 0)), constant_values=attributes).astype(np.int32)
        self.of_items = nn.Buffer(torch.from_numpy(padded), persistent=False)
        self.attributes = nn.Embedding(attributes, dim)
        self.aap, self.mip, self.map, self.sp = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def attributes_of(self, items: Tensor) -> Tensor:
        """1 where an item has an attribute, else 0: float32 [items, attributes]. items: int64 [items]."""
        count = self.attributes.num_embeddings
        there = torch.zeros(len(items), count + 1, device=items.device)
        return there.scatter_(1, self.of_items[items].long(), 1.0)[:, :count]


class S3Rec(SelfAttentive):
    name = "s3rec"
    Config = S3RecConfig
    objective = "mutual-information"
    kind = "sequential"
    card = Card(
        title="S3-Rec",
        order=13,
        summary="SASRec that is pre-trained on which items, attributes and stretches of a history belong together, with items "
        "hidden anywhere, and then learns what comes next.",
        paper="Zhou, Wang, Zhao, Zhu, Wang, Zhang, Wang & Wen, S3-Rec: Self-Supervised Learning for Sequential Recommendation "
        "with Mutual Information Maximization, CIKM 2020",
        variants=(Variant("s3rec", page=OnPage(examples=1, first="s3rec-pretrained")),),
    )
    needs = ("attributes", "start")

    def __init__(
        self,
        config: S3RecConfig,
        num_items: int,
        num_users: int,
        generator: torch.Generator,
        attributes: Attributes,
        start: Mapping[str, Tensor] | None = None,
    ) -> None:
        super().__init__()
        d = config.dim
        check_heads(d, config.heads)
        self.config, self.num_items, self.max_length = config, num_items, config.max_length
        self.mask = num_items + 1
        self.items = nn.Embedding(num_items + 2, d, padding_idx=num_items)
        self.positions = nn.Embedding(config.max_length, d)
        self.norm = nn.LayerNorm(d, eps=1e-12)
        layer = BERT4RecConfig(dim=d, heads=config.heads, dropout=config.dropout, attention_dropout=config.dropout)
        self.blocks = nn.ModuleList(TransformerLayer(layer) for _ in range(config.blocks))
        self.tasks = (
            Tasks(d, *attribute_table(attributes, config.fields, config.vocabulary)) if config.pretrain else None
        )
        normal = functools.partial(nn.init.normal_, std=0.02, generator=generator)
        initialise(self, matrices=normal, tables=normal)
        if start is not None:
            self.adopt(start)

    def hidden(self, items: Tensor, weights: list[Tensor] | None = None, causal: bool = True) -> Tensor:
        """State after every position, float32 [batch, length, dim]. items: int64 [batch, length], [MASK] (num_items + 1) among
        them; causal: no position sees a later one."""
        x = self.norm(self.items(items) + self.positions.weight[self.max_length - items.shape[1] :])
        x = dropout(x, self.config.dropout, self.training)
        mask = Mask(items, self.pad, causal)
        for block in self.blocks:
            x = block(x, mask, weights)
        return x
