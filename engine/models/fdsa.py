"""FDSA, feature-level deeper self-attention (Zhang et al., IJCAI 2019): SASRec's blocks twice, over items and over attributes.

    a_f = mean of the vectors of the words of attribute f
    A = Σ_f α_f a_f,  α_f = softmax over the item's attributes of w · a_f          vanilla attention (3.2)
    O_s = blocks over items + positions,  O_f = blocks over A + positions         (3.3)
    score(i) = e_i · W [O_s; O_f]                                                 e the table that is read (3.4)

Only the history's attributes are read: an item's row is its own vector. docs/models.md says what differs.
"""

import functools
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.base import AttentionShape
from engine.models.item_to_item import Attributes
from engine.models.layers import check_heads, initialise
from engine.models.sasrec import Block, SASRecConfig, SelfAttentive
from engine.models.tfidf import words as words_of
from engine.models.unisrec import Described
from engine.text.attributes import keys_of


@dataclass(frozen=True)
class FDSAConfig:
    fields: tuple[str, ...] = ()
    """Attributes that are read; empty: all of them (paper: category, brand, words of the text)."""
    least: int = 2
    """Words that fewer items have are left out: nothing can be learnt of them from others."""
    words: int = 16
    """Words read of an attribute; those of most items are left out first."""
    dim: int = 64
    """Width of item and word vectors and of blocks (paper: 100)."""
    blocks: int = 2
    """Self-attention blocks of either side."""
    heads: int = 2
    """Attention heads; must divide dim."""
    dropout: float = 0.5
    """On what the blocks read, attention weights and feed-forward layers."""
    max_length: int = 50
    """Latest items read (paper: 50)."""


def word_table(attributes: Attributes, fields: Collection[str], least: int, most: int) -> tuple[np.ndarray, int]:
    """int64 [items, fields, most] of word numbers, and how many words there are, which is also the number where there is none.

    A word of two attributes is two words. Raises ValueError where no item has one of `fields`, or none any word at all.
    """
    keys = keys_of(attributes, fields)
    words_of_items = [
        {(key, word) for key, value in pairs if key in keys for word in words_of(value)} for pairs in attributes
    ]
    counts = Counter(word for words in words_of_items for word in words)
    number = {word: n for n, word in enumerate(sorted(word for word, count in counts.items() if count >= least))}
    if not number:
        raise ValueError(
            f"no word is said of {least} items, so there are no attributes to read: set model.least lower, or take sasrec, "
            "which reads none"
        )
    table = np.full((len(attributes), len(keys), most), len(number), np.int64)
    for item, words in enumerate(words_of_items):
        for place, key in enumerate(keys):
            known = sorted((w for w in words if w[0] == key and w in number), key=lambda w: (counts[w], w))[:most]
            table[item, place, : len(known)] = [number[word] for word in known]
    return table, len(number)


class FDSA(Described, SelfAttentive):
    name = "fdsa"
    Config = FDSAConfig
    kind = "text"
    card = Card(
        title="FDSA",
        order=44,
        summary="SASRec twice: once over the items of the history, once over what is said of them, such as genre or brand. "
        "What came next is told from both, though what is recommended is known by its number alone.",
        paper="Zhang, Zhao, Liu, Sheng, Xu, Wang, Liu & Zhou, Feature-level Deeper Self-Attention Network for Sequential "
        "Recommendation, IJCAI 2019",
        variants=(Variant("fdsa", page=OnPage(examples=1)),),
    )
    needs = ("attributes",)

    words: Tensor

    def __init__(
        self, config: FDSAConfig, num_items: int, num_users: int, generator: torch.Generator, attributes: Attributes
    ) -> None:
        super().__init__()
        d = config.dim
        check_heads(d, config.heads)
        self.config, self.num_items, self.max_length = config, num_items, config.max_length
        words, vocabulary = word_table(attributes, config.fields, config.least, config.words)
        # made of the attributes, which the dataset keeps; the last row is padding
        padded = np.concatenate([words, np.full_like(words[:1], vocabulary)]).astype(np.int32)
        self.words = nn.Buffer(torch.from_numpy(padded), persistent=False)
        self.items = nn.Embedding(num_items + 1, d, padding_idx=num_items)
        self.word_vectors = nn.Embedding(vocabulary + 1, d, padding_idx=vocabulary)
        self.weigh = nn.Linear(d, 1, bias=False)  # w
        self.positions, self.attribute_positions = (nn.Embedding(config.max_length, d) for _ in range(2))
        block = SASRecConfig(dim=d, heads=config.heads, dropout=config.dropout)
        self.blocks, self.attribute_blocks = (
            nn.ModuleList(Block(block) for _ in range(config.blocks)) for _ in range(2)
        )
        self.norm, self.attribute_norm = (nn.LayerNorm(d, eps=1e-8) for _ in range(2))
        self.joint = nn.Linear(2 * d, d)  # W
        initialise(
            self,
            matrices=functools.partial(nn.init.xavier_uniform_, generator=generator),
            tables=functools.partial(nn.init.normal_, std=0.02, generator=generator),
        )

    def made(self, items: Tensor | None) -> Tensor:
        """A"""
        means, alpha = self.attributes(items)
        return (alpha.unsqueeze(-1) * means).sum(-2)

    def attributes(self, items: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """a, float32 [..., fields, dim], and α, float32 [..., fields], zeros where an item has nothing; items: as of `made`."""
        words = (self.words if items is None else self.words[items]).long()
        there = words.ne(self.word_vectors.num_embeddings - 1)
        means = self.word_vectors(words).sum(-2) / there.sum(-1, keepdim=True).clamp(min=1)
        described = there.any(-1)
        # an item of which nothing is said has no largest logit
        logits = self.weigh(means).squeeze(-1).masked_fill(~described, -1e9)
        alpha = F.softmax(logits, dim=-1) * described
        return means, alpha

    def hidden(self, items: Tensor, weights: list[Tensor] | None = None) -> Tensor:
        """W [O_s; O_f] after every position, float32 [batch, length, dim]. items: int64 [batch, length]."""
        places = slice(self.max_length - items.shape[1], None)
        item_vectors, attribute_vectors = self.items(items), self.vectors(items)
        of_items = self.encoded(item_vectors + self.positions.weight[places], items, self.blocks, weights)
        of_words = self.encoded(
            attribute_vectors + self.attribute_positions.weight[places], items, self.attribute_blocks, weights
        )
        return self.joint(torch.cat([self.norm(of_items), self.attribute_norm(of_words)], dim=-1))

    @property
    def attention(self) -> AttentionShape | None:
        """Layers over items come first, then as many over attributes."""
        shape = super().attention
        no_rollout = (
            "Rollout is not defined for this model: layers over items and layers over attributes stand side by side, and none of "
            "one side reads the other."
        )
        return None if shape is None else replace(shape, layers=2 * shape.layers, no_rollout=no_rollout)
