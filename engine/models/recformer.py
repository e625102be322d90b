"""Recformer (Li et al., Text Is All You Need, KDD 2023): items are known by their words alone, so new ones need no training.

A history is one text, newest item first, after [CLS]; an item is its attributes as keys and values. Token, token position, token
type (of [CLS], of a key, of a value) and item position are summed and normalised (2.1.2). Layers are BERT's with Longformer's
sliding window, in which [CLS] alone sees everything. The query is the state of [CLS] over the history, an item's row the state of
[CLS] over the item's words alone; they are compared by cosine / τ (2.1.4).

Item vectors lie in a narrow cone, so neighbours and maps compare them less their mean (`Card.centred`). docs/models.md says why,
and lists what differs from the paper.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models import layers
from engine.models.base import AttentionShape, ItemIndex, Recommender
from engine.models.layers import check_heads, dropout, join_heads, split_heads
from engine.text import bert

CLASS, KEY, VALUE = range(3)
READ = 32_768
"""Tokens of one batch of histories where nothing is learnt: the logits of a layer stay within some hundred megabytes."""
ENCODED = 4096
"""Tokens of one batch of items whose rows are computed."""


@dataclass(frozen=True)
class RecformerConfig:
    start: str = ""
    """What training starts from: another run of this model (its name, beside this run, or its folder), the folder of a bundle of
    it, the text encoder minilm, or nothing, where words are learnt from this catalogue alone."""
    fields: tuple[str, ...] = ()
    """Columns of the catalogue that are read, in order; empty: the first `attributes` columns of words that it has."""
    attributes: int = 3
    """Attributes read of an item, where fields are not named (paper: 3)."""
    attribute_tokens: int = 32
    """Tokens of one attribute, its key among them (paper: 32)."""
    max_length: int = 50
    """Latest items read (paper: 50)."""
    max_tokens: int = 1024
    """Tokens of a history, [CLS] among them; the oldest are left out (paper: 1024)."""
    vocabulary: int = 8000
    """Tokens learnt from the catalogue, where training starts from nothing."""
    dim: int = 128
    """Width of the states (paper: 768; minilm: 384)."""
    layers: int = 2
    """Transformer layers (paper: 12; minilm: 6)."""
    heads: int = 4
    """Attention heads; must divide dim (paper and minilm: 12)."""
    inner: int = 4
    """Feed-forward width as a multiple of dim."""
    dropout: float = 0.1
    """On embeddings, attention weights and after each half of a layer."""
    attention: Literal["window", "full"] = "window"
    """window: Longformer's, linear in the number of tokens; full: BERT's, every token sees every other."""
    window: int = 64
    """Tokens that a token sees, half before it and half after it (paper: 64)."""
    temperature: float = 0.05
    """τ: cosines are divided by it (paper: .05)."""
    item_positions: bool = True
    """False is the paper's ablation without item position embeddings."""
    token_types: bool = True
    """False is the paper's ablation without token type embeddings."""
    freeze_words: bool = False
    """Leave the vectors of tokens as they started (authors: in pre-training and in fine-tuning)."""
    masked_words: bool = False
    """Carry the head that fills in hidden words (pre-training needs it, nothing else does)."""


Looked = list[tuple[Tensor, Tensor]]


THEN = "then_"


def _then(name: str) -> str:
    """The buffer that remembers a parameter as it was when the items were encoded."""
    return THEN + name.replace(".", "__")


class Words(Protocol):
    """What is asked of engine.data.words.ItemWords."""

    tokens: np.ndarray
    kinds: np.ndarray
    attributes: np.ndarray
    words: np.ndarray
    vocabulary: int
    pad: int
    first: int
    mask: int

    @property
    def lengths(self) -> np.ndarray: ...

    def table(self, values: Any, fill: int) -> np.ndarray: ...


class Sequences:
    """Texts as the network reads them, [batch, length] each: [CLS], then tokens, then nothing."""

    def __init__(self, tokens: Tensor, kinds: Tensor, places: Tensor, real: Tensor, words: Tensor) -> None:
        self.tokens, self.kinds = tokens, kinds
        self.places = places
        """0 for [CLS], then which item a token is of, the newest 1."""
        self.real = real
        """False where the text has ended."""
        self.words = words
        """The same number for the pieces of one word of one item."""


class LongformerLayer(bert.BertLayer):
    """BERT's, post-LN, with a choice of what is looked at."""

    def __init__(self, config: RecformerConfig) -> None:
        super().__init__(
            bert.BertConfig(0, config.dim, 1, config.heads, config.inner * config.dim, dropout=config.dropout)
        )
        self.radius = max(1, config.window // 2) if config.attention == "window" else 0

    def run(self, x: Tensor, real: Tensor, *, first_only: bool, groups: Tensor | None, looked: Looked) -> Tensor:
        """x: [batch, length, dim] → the next states; of the first token alone where `first_only`.

        groups: float [batch, length, groups], 1 where a token is of the group. What each token gives to each group is appended to
        `looked`, float [batch, heads, length, groups], and what [CLS] gives to each token, float [batch, heads, length].
        """
        drop = self.dropout if self.training else 0.0
        asking = x[:, :1] if first_only else x
        q = split_heads(self.query(asking), self.heads)
        k, v = split_heads(self.key(x), self.heads), split_heads(self.value(x), self.heads)
        if groups is not None:
            # of a history that a page shows: blocks would double the time that its graph takes to be exported
            shares = layers.shares_of_all(q, k, real, radius=self.radius)
            looked.append((shares @ groups[:, None], shares[:, :, 0]))
            attended = shares @ v
        elif self.radius and not first_only and (torch.compiler.is_exporting() or x.shape[1] > self.radius + 1):
            attended = layers.attend_in_window(q, k, v, real, self.radius, drop)
        else:  # a short text lies in one window
            attended = layers.attend_to_all(q, k, v, real, drop)
        attended = dropout(self.projection(join_heads(attended)), drop, self.training)
        x = self.attention_norm(asking + attended)
        return self.output_norm(x + dropout(self.outer(F.gelu(self.inner(x))), drop, self.training))


SIZES = (
    "attributes", "attribute_tokens", "max_length", "max_tokens", "dim", "layers", "heads", "inner", "attention", "window",
    "temperature", "item_positions", "token_types",
)  # fmt: skip
"""Settings that must be those of the start, where training starts from another Recformer."""


class Recformer(Recommender):
    name = "recformer"
    Config = RecformerConfig
    objective = "text"
    kind = "text"
    card = Card(
        title="Recformer",
        order=40,
        summary="Reads the words of the history as one text, the newest item first, and matches its embedding with the embedding "
        "of each item's text. It can recommend items without any interactions.",
        paper="Li et al., Text Is All You Need: Learning Language Representations for Sequential Recommendation, KDD 2023",
        centred=True,
        variants=(
            Variant("recformer", "sky"),
            Variant(
                "recformer-tuned",
                page=OnPage(examples=2, start="recformer", sizes=SIZES, first="recformer-tuned-stage1"),
            ),
        ),
    )
    needs = ("words", "start")
    exports = ("text", "vectors")
    unseen_items = True
    per_item = "matrix"

    table: Tensor
    kinds: Tensor
    words_of: Tensor
    lengths: Tensor
    matrix: Tensor

    def __init__(
        self,
        config: RecformerConfig,
        num_items: int,
        num_users: int,
        generator: torch.Generator,
        words: Words,
        start: Mapping[str, Tensor] | None = None,
    ) -> None:
        super().__init__()
        d = config.dim
        check_heads(d, config.heads)
        self.config, self.num_items, self.max_length = config, num_items, config.max_length
        self.histories = max(8, min(512, READ // config.max_tokens))
        self.max_tokens, self.vocabulary = config.max_tokens, words.vocabulary
        self.first, self.mask = words.first, words.mask
        # [items + 1, longest]; the last row is padding, which has no words
        for name, values in (("table", words.tokens), ("kinds", words.kinds), ("words_of", words.words)):
            rows = torch.from_numpy(words.table(values, words.pad if name == "table" else 0).astype(np.int32))
            self.register_buffer(name, F.pad(rows, (0, 0, 0, 1)), persistent=False)
        self.register_buffer(
            "lengths", F.pad(torch.from_numpy(words.lengths.astype(np.int64)), (0, 1)), persistent=False
        )
        self.words = nn.Embedding(words.vocabulary, d)
        self.positions = nn.Embedding(config.max_tokens, d)
        self.types = nn.Embedding(3, d) if config.token_types else None
        self.places = nn.Embedding(config.max_length + 1, d) if config.item_positions else None
        self.norm = nn.LayerNorm(d, eps=1e-12)
        self.layers = nn.ModuleList(LongformerLayer(config) for _ in range(config.layers))
        self.head = nn.Linear(d, d) if config.masked_words else None
        self.head_norm = nn.LayerNorm(d, eps=1e-12) if config.masked_words else None
        self.head_bias = nn.Parameter(torch.zeros(words.vocabulary)) if config.masked_words else None
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=0.02, generator=generator)
            if isinstance(module, nn.Linear):
                # BERT draws these like the tables, which fits its width; in a narrow network nothing would reach [CLS]
                nn.init.normal_(module.weight, std=module.in_features**-0.5, generator=generator)
                nn.init.zeros_(module.bias)
        self.register_buffer("matrix", torch.zeros(num_items, d))
        for name, parameter in self.named_parameters():
            self.register_buffer(_then(name), torch.zeros_like(parameter))
        if start is not None:
            self._adopt(start)
        self.words.weight.requires_grad_(not config.freeze_words)

    def _adopt(self, start: Mapping[str, Tensor]) -> None:
        """Take the weights that another model of this form, or a BERT, has in common with this one.

        Positions beyond its last are its own once more (as Longformer extended RoBERTa's, 5). A BERT has one type for all tokens.
        Of a deeper network, layers are taken at even distances, the last among them (Sanh et al., DistilBERT, 2019): in the first
        layers of a BERT, [CLS] has read nothing yet, and all histories would start alike.
        """
        state, start = self.state_dict(), self._thinned(start)
        taken = {}
        for name, weight in start.items():
            if name in ("matrix", "types.weight", "positions.weight", "places.weight") or name not in state:
                continue
            if name.startswith(THEN):
                continue
            if weight.shape != state[name].shape:
                shapes = f"{tuple(weight.shape)}, here {tuple(state[name].shape)}"
                raise ValueError(f"model.start does not fit: its {name} is {shapes}; give the sizes that it has")
            taken[name] = weight
        if missing := [name for name in state if name.startswith(("words.", "norm.", "layers.")) and name not in taken]:
            raise ValueError(f"model.start does not fit: it has no {missing[0]}")
        encoded = [name for name in state if name == "matrix" or name.startswith(THEN)]
        if all(name in start and start[name].shape == state[name].shape for name in encoded):
            taken |= {name: start[name] for name in encoded}
        for name in ("positions.weight", "places.weight"):
            if name in state and name in start:
                rows = torch.arange(len(state[name]))
                taken[name] = start[name][rows % len(start[name])]
        if "types.weight" in state and "types.weight" in start:
            types = start["types.weight"]
            # as small as they were drawn, on top of the one that every token had
            taken["types.weight"] = types if len(types) == 3 else state["types.weight"] + types[0]
        self.load_state_dict(state | taken)

    def _thinned(self, start: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """As many of the layers as this network has; `start` where it has no more."""
        depth = 1 + max((int(name.split(".")[1]) for name in start if name.startswith("layers.")), default=-1)
        num_layers = self.config.layers
        if depth <= num_layers:
            return dict(start)
        taken = (
            [round(layer * (depth - 1) / (num_layers - 1)) for layer in range(num_layers)]
            if num_layers > 1
            else [depth - 1]
        )
        weights = {name: weight for name, weight in start.items() if not name.startswith("layers.")}
        for layer, source in enumerate(taken):
            prefix = f"layers.{source}."
            theirs = {name.removeprefix(prefix): weight for name, weight in start.items() if name.startswith(prefix)}
            weights |= {f"layers.{layer}.{name}": weight for name, weight in theirs.items()}
        return weights

    def widen(self, longest: int) -> None:
        """Room for items of so many tokens. No answer changes: a graph with room can be given other items (`engine.export`)."""
        for name in ("table", "kinds", "words_of"):
            rows = self.get_buffer(name)
            fill = int(rows[-1, 0])  # of padding
            setattr(self, name, F.pad(rows, (0, max(0, longest - rows.shape[1])), value=fill))

    # --- reading

    def sequences(self, items: Tensor) -> Sequences:
        """The histories `items` (int64 [batch, length], padded on the left) as text, newest first and without gaps."""
        newest = items.flip(1)
        lengths = self.lengths[newest]
        ends = lengths.cumsum(1)
        total = ends[:, -1].clamp(max=self.max_tokens - 1)
        longest = total.max().item()
        if torch.compiler.is_exporting():
            torch._check(longest >= 0)
            torch._check(longest < self.max_tokens)
        place = torch.arange(longest, device=items.device)
        which = (ends[:, None, :] <= place[:, None]).sum(2).clamp(max=items.shape[1] - 1)
        within = (place - (ends - lengths).gather(1, which)).clamp(max=self.table.shape[1] - 1)
        cell = newest.gather(1, which) * self.table.shape[1] + within
        tokens, kinds, words = (t.flatten()[cell].long() for t in (self.table, self.kinds, self.words_of))
        return self.opened(tokens, kinds, which + 1, place < total[:, None], which * self.table.shape[1] + words)

    def opened(self, tokens: Tensor, kinds: Tensor, places: Tensor, real: Tensor, words: Tensor) -> Sequences:
        """With [CLS] in front. All [batch, length]."""

        def behind(value: int, x: Tensor) -> Tensor:
            return F.pad(x, (1, 0), value=value)

        return Sequences(
            behind(self.first, tokens), behind(CLASS, kinds), behind(0, places), F.pad(real, (1, 0), value=True),
            behind(-1, words),
        )  # fmt: skip

    def embedded(self, text: Sequences) -> Tensor:
        """What the first layer reads, float32 [batch, length, dim] (2.1.2, equation 3)."""
        x = self.words(text.tokens) + self.positions.weight[: text.tokens.shape[1]]
        if self.types is not None:
            x = x + self.types(text.kinds)
        if self.places is not None:
            x = x + self.places(text.places)
        return dropout(self.norm(x), self.config.dropout, self.training)

    def hidden(
        self, text: Sequences, *, first_only: bool = True, groups: Tensor | None = None, looked: Looked | None = None
    ) -> Tensor:
        """States after the last layer, float32 [batch, length, dim]; [batch, 1, dim], that of [CLS], where `first_only`."""
        x = self.embedded(text)
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, LongformerLayer)
            only = first_only and number == len(self.layers) - 1  # what others would become is read by nobody
            x = layer.run(x, text.real, first_only=only, groups=groups, looked=[] if looked is None else looked)
        return x

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        return self.direction(self.sequences(items)) / self.config.temperature

    def direction(self, text: Sequences) -> Tensor:
        """The state of [CLS], of unit length, float32 [batch, dim]."""
        return F.normalize(self.hidden(text)[:, 0], dim=-1)

    def fill_in(self, hidden: Tensor) -> Tensor:
        """Logits over the vocabulary, [..., vocabulary], from states of hidden words."""
        assert self.head is not None and self.head_norm is not None
        return F.linear(self.head_norm(F.gelu(self.head(hidden))), self.words.weight, self.head_bias)

    # --- items

    @torch.no_grad()
    def refresh(self) -> None:
        """Encode every item as the network is now: the matrix that histories are matched with. The weights are remembered, as
        items that come later have to be encoded by the same (see `item_encoder`)."""
        for name, parameter in self.named_parameters():
            self.get_buffer(_then(name)).copy_(parameter)
        training = self.training
        self.eval()
        rows = torch.argsort(self.lengths[:-1], stable=True)
        start = 0
        while start < len(rows):
            # lengths ascend, so the last of a batch says how many fit
            size = max(1, ENCODED // (1 + int(self.lengths[rows[min(start + 255, len(rows) - 1)]])))
            part = rows[start : start + min(size, 256)]
            self.matrix[part] = self.direction(self.sequences(part[:, None]))
            start += len(part)
        self.train(training)

    @torch.no_grad()
    def item_encoder(self) -> Recformer:
        """A copy with the weights that encoded the matrix. Training goes on after that, and moves away from it: on the sample, an
        item encoded with the final weights has a cosine of .76 to its row."""
        encoder = copy.deepcopy(self)
        for name, parameter in encoder.named_parameters():
            parameter.copy_(self.get_buffer(_then(name)))
        return encoder

    def read_items(self) -> None:
        encoder = self.item_encoder()
        encoder.refresh()
        self.matrix.copy_(encoder.matrix)

    def index(self) -> ItemIndex:
        return ItemIndex(self.matrix, self.matrix.new_zeros(self.num_items))

    # --- attention: what each item's words look at, summed over the words of each item; [CLS] stands last

    @property
    def attention(self) -> AttentionShape | None:
        return AttentionShape(
            self.config.layers, self.config.heads, causal=False, window=self.max_length, next_token=True
        )

    def query_with_attention(self, items: Tensor) -> tuple[Tensor, Tensor]:
        query, maps, _ = self.looked_at(items)
        return query, maps

    def looked_at(self, items: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `query_with_attention`, and what [CLS] gave to each token of each item, float32 [batch, layers, heads, length,
        longest] (0 where an item has no further token, or is not read)."""
        text, size = self.sequences(items), items.shape[1]
        # newest first → oldest first, [CLS] last
        position = torch.where(text.places == 0, size, size - text.places)
        groups = ((position[..., None] == torch.arange(size + 1, device=items.device)) & text.real[..., None]).float()
        looked: Looked = []
        state = self.hidden(text, first_only=False, groups=groups, looked=looked)
        shares = torch.stack([shares for shares, _ in looked], 1)  # [batch, layers, heads, tokens, positions]
        count = groups.sum(1)
        mean = groups.transpose(1, 2)[:, None, None] @ shares / count.clamp(min=1)[:, None, None, :, None]
        # an item beyond the last token that is read looks at nothing but itself
        itself = torch.diag_embed((count == 0).float())[:, None, None]
        first = torch.stack([first for _, first in looked], 1)  # [batch, layers, heads, tokens]
        return F.normalize(state[:, 0], dim=-1) / self.config.temperature, mean + itself, self._by_item(first, items)

    def _by_item(self, shares: Tensor, items: Tensor) -> Tensor:
        """[batch, layers, heads, tokens] → [batch, layers, heads, length, longest]"""
        lengths = self.lengths[items.flip(1)]
        starts = (1 + lengths.cumsum(1) - lengths).flip(1)
        within = torch.arange(self.table.shape[1], device=items.device)
        place = starts[..., None] + within
        there = (within < self.lengths[items][..., None]) & (place < shares.shape[-1])
        place = torch.where(there, place, 0).flatten(1)[:, None, None].expand(-1, *shares.shape[1:3], -1)
        item_shares = shares.gather(3, place).unflatten(3, (items.shape[1], self.table.shape[1]))
        return item_shares * there[:, None, None].float()
