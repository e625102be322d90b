"""TIGER's recommender (Rajput et al., NeurIPS 2023, 3.2 and appendix): T5 (Raffel et al. 2020) over the codes of a history.

Pre-norm RMSNorm, no biases, ReLU feed-forward, relative position bias shared by the layers of a stack, none in cross-attention.
T5 folds the 1/√dim of attention logits into how it initialises queries; here it is written out and the queries start as the
keys do, which is the same network. The output is the token table again (scaled by 1/√dim as in T5) or a table of its own.

The encoder of the paper looks both ways, so each target needs a pass of its own. With `causal`, items of the history see only
what came before them; all targets of a sequence then share one pass, which trains many times faster.

Differs: AdamW, no user token unless asked for, a beam that follows prefixes of items alone. docs/models.md lists all of it.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.data.identifiers import Identifiers
from engine.generation import search
from engine.generation.base import CODES, Generator, GeneratorConfig, Memory, Past, allowed, shape_of, weigh
from engine.models.base import AttentionShape
from engine.models.layers import RelativeBias, RMSNorm, drawing, dropout, join_heads, split_heads

NOBODY = 0.1
"""Share of training examples without their user token, so that people without one are no strangers to the network."""


@dataclass(frozen=True)
class EncoderDecoderConfig(GeneratorConfig):
    heads: int = 6
    """Attention heads."""
    head_dim: int = 64
    """Width of a head; heads · head_dim need not be dim."""
    inner: int = 1024
    """Width within the feed-forward layers."""
    causal: bool = False
    """True: an item of the history sees only itself and earlier ones, and all targets of a sequence share one pass."""
    user_tokens: int = 0
    """Ids that users are hashed into, one of which is read with the history (TIGER: 2,000); 0 leaves users out."""


class Projections(nn.Module):
    """Query, key, value and output of one attention, without biases."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        width = config.heads * config.head_dim
        self.norm = RMSNorm(config.dim)
        self.query, self.key, self.value = (nn.Linear(config.dim, width, bias=False) for _ in range(3))
        self.output = nn.Linear(width, config.dim, bias=False)


class FeedForward(nn.Module):
    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.norm, self.rate = RMSNorm(config.dim), config.dropout
        self.inner = nn.Linear(config.dim, config.inner, bias=False)
        self.outer = nn.Linear(config.inner, config.dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        hidden = dropout(F.relu(self.inner(self.norm(x))), self.rate, self.training)
        return x + dropout(self.outer(hidden), self.rate, self.training)


class EncoderLayer(nn.Module):
    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.config, self.attention, self.forward_layer = config, Projections(config), FeedForward(config)

    def forward(self, x: Tensor, mask: Tensor, kept: list[Tensor] | None) -> Tensor:
        """x: [people, places, dim]; mask, with position bias: [people, heads, places, places]."""
        config, part = self.config, self.attention
        normed = part.norm(x)
        q, k, v = (split_heads(h(normed), config.heads) for h in (part.query, part.key, part.value))
        rate = config.attention_dropout if self.training else 0.0
        if kept is None and rate == 0:
            weighted = F.scaled_dot_product_attention(q, k, v, attn_mask=mask.to(q.dtype))
        else:
            logits = q @ k.transpose(-1, -2) / math.sqrt(config.head_dim) + mask
            weighted = weigh(logits, rate, self.training, kept) @ v
        x = x + dropout(part.output(join_heads(weighted)), config.dropout, self.training)
        return self.forward_layer(x)


class DecoderLayer(nn.Module):
    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.config, self.own, self.cross = config, Projections(config), Projections(config)
        self.forward_layer = FeedForward(config)

    def read(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the history for this layer: [people, heads, places, head_dim]."""
        k, v = (split_heads(h(states), self.config.heads) for h in (self.cross.key, self.cross.value))
        return k, v

    def forward(
        self,
        x: Tensor,
        memory: tuple[Tensor, Tensor, Tensor],
        past: tuple[Tensor, Tensor] | None,
        bias: Tensor,
        kept: list[Tensor] | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """x: [people, beams, new, dim]; memory: keys, values and mask of the history; bias: [heads, new, written]."""
        config, part = self.config, self.own
        rate, scale = config.attention_dropout, 1 / math.sqrt(config.head_dim)
        people, beams, new, _ = x.shape
        normed = part.norm(x)
        shape = (config.heads, config.head_dim)
        q, k, v = (h(normed).unflatten(-1, shape).transpose(2, 3) for h in (part.query, part.key, part.value))
        if past is not None:
            k, v = torch.cat([past[0], k], 3), torch.cat([past[1], v], 3)
        weights = weigh(q @ k.transpose(-1, -2) * scale + bias, rate, self.training)
        weighted = (weights @ v).transpose(2, 3).flatten(3)
        x = x + dropout(part.output(weighted), config.dropout, self.training)
        # all beams of a person look at the same history: one product for all of them
        part = self.cross
        q = part.query(part.norm(x)).reshape(people, beams * new, *shape).transpose(1, 2)
        weights = weigh(q @ memory[0].transpose(-1, -2) * scale + memory[2], rate, self.training, kept)
        weighted = (weights @ memory[1]).transpose(1, 2).reshape(people, beams, new, -1)
        x = x + dropout(part.output(weighted), config.dropout, self.training)
        return self.forward_layer(x), k, v


class EncoderDecoder(Generator):
    name = "encoder-decoder"
    Config = EncoderDecoderConfig
    objective = "identifier"
    draws_apart = True
    kind = "generative"
    card = Card(
        title="TIGER",
        order=50,
        summary="An encoder reads the semantic IDs of the history, a decoder generates the next item's code by code. Items with "
        "like codes share what was learned about them. A beam search keeps the likeliest beginnings at each step, so an item "
        "whose first codes seem unlikely can be missed.",
        paper="Rajput et al., Recommender Systems with Generative Retrieval, NeurIPS 2023",
        geometry="none",
        reasons={"neighbours": CODES, "map": CODES},
        variants=(
            Variant("tiger", "yellow", OnPage(recipe="tiger-small", examples=1, identifiers="rqvae")),
            Variant(
                "letter-tiger",
                "pink",
                summary="TIGER with LETTER's semantic IDs: an encoder reads those of the history, a decoder generates the next "
                "item's code by code. They are learned from item texts and from interactions, so that items of the same users "
                "get similar codes; TIGER's know item texts alone.",
            ),
        ),
    )

    def __init__(
        self,
        config: EncoderDecoderConfig,
        num_items: int,
        num_users: int,
        generator: torch.Generator,
        *,
        identifiers: Identifiers,
    ) -> None:
        super().__init__(num_items, config.max_length, config.beam, identifiers)
        self.config, self.dim, self.layers = config, config.dim, config.layers
        self.heads, self.head_dim = config.heads, config.head_dim
        self.trained_users = config.user_tokens > 0  # type: ignore[misc]
        self.table = nn.Embedding(self.vocabulary + 1 + config.user_tokens, config.dim)
        self.encoder_bias = RelativeBias(config.heads, config.max_length * self.levels, both_sides=True)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.encoder_norm = RMSNorm(config.dim)
        self.decoder_bias = RelativeBias(config.heads, self.levels + 2, both_sides=False)
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
        self.decoder_norm = RMSNorm(config.dim)
        self.head = None if config.tied else nn.Linear(config.dim, self.vocabulary, bias=False)
        # as T5: every product keeps the size of what goes in
        nn.init.normal_(self.table.weight, generator=generator)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=module.in_features**-0.5, generator=generator)
            elif isinstance(module, RelativeBias):
                nn.init.normal_(module.table.weight, std=config.dim**-0.5, generator=generator)

    # --- reading

    def states(
        self, items: Tensor, users: Tensor | None = None, kept: list[Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """The encoder's states [people, places, dim], and which places count. A user's token is the last, without a place."""
        config = self.config
        tokens, real = self.flat(items)
        causal = config.causal
        place = torch.arange(tokens.shape[1], device=tokens.device)
        mask = allowed(real, self.levels, causal) + self.encoder_bias(place, place)
        if users is not None and config.user_tokens:
            # Knuth's multiplicative hash: neighbouring numbers fall apart, and every machine agrees
            bucket = ((users * 2_654_435_761) % 2**32) % config.user_tokens
            tokens = torch.cat([tokens, (self.vocabulary + 1 + bucket)[:, None]], 1)
            known = torch.ones_like(real[:, :1])
            if self.training:
                known = torch.rand(known.shape, generator=drawing(), device=known.device) >= NOBODY
            blank = torch.zeros_like(known).float().masked_fill(~known, -torch.inf)
            # everybody sees the user; a causal encoder's user sees nobody, or all would see the future through it
            unseen = torch.ones_like(real) if causal else ~real
            row = torch.zeros_like(mask[:, :, :1]).masked_fill(unseen[:, None, None], -torch.inf)
            column = blank[:, None, None].expand(*mask.shape[:3], 1)
            mask = torch.cat([torch.cat([mask, column], 3), F.pad(row, (0, 1))], 2)
            real = torch.cat([real, known], 1)
        x = dropout(self.table(tokens), config.dropout, self.training)
        for layer in self.encoder:
            x = layer(x, mask, kept)
        return dropout(self.encoder_norm(x), config.dropout, self.training), real

    def _memory(self, states: Tensor, real: Tensor) -> Memory:
        keys, values = zip(*(layer.read(states) for layer in self.decoder), strict=True)  # type: ignore[operator]
        seen = real | ~real.any(1, keepdim=True)  # of nothing at all, padding is read: a softmax needs something
        mask = torch.zeros(real.shape, device=real.device).masked_fill(~seen, -torch.inf)
        return Memory(torch.stack(keys, 1), torch.stack(values, 1), mask)

    def encode(self, items: Tensor, users: Tensor | None = None) -> Memory:
        return self._memory(*self.states(items, users))

    def hidden(self, items: Tensor) -> Tensor:
        """The encoder's states by item, [people, length, levels · dim]."""
        return self.states(items)[0].unflatten(1, (-1, self.levels)).flatten(2)

    # --- writing

    def decode(
        self,
        tokens: Tensor,
        memory: Memory,
        past: Past | None = None,
        places: Tensor | None = None,
        kept: list[Tensor] | None = None,
    ) -> tuple[Tensor, Past]:
        new, written = tokens.shape[2], 0 if past is None else past.keys.shape[4]
        if places is None:
            places = torch.arange(written, written + new, device=tokens.device)
        before = torch.arange(written + new, device=tokens.device)
        bias = self.decoder_bias(places, before)
        bias = bias.masked_fill(before[None, :] > places[:, None], -torch.inf)
        mask = memory.mask[:, None, None]
        if memory.mask.dim() == 3:
            mask = memory.mask.repeat_interleave(new, 1)[:, None]
        x = dropout(self.table(tokens), self.config.dropout, self.training)
        keys, values = [], []
        for number, layer in enumerate(self.decoder):
            layer_past = None if past is None else (past.keys[:, :, number], past.values[:, :, number])
            x, k, v = layer(x, (memory.keys[:, number], memory.values[:, number], mask), layer_past, bias, kept)
            keys.append(k)
            values.append(v)
        x = dropout(self.decoder_norm(x), self.config.dropout, self.training)
        if self.head is None:
            logits = F.linear(x / math.sqrt(self.config.dim), self.table.weight[: self.vocabulary])
        else:
            logits = self.head(x)
        return logits, Past(torch.stack(keys, 2), torch.stack(values, 2))

    @property
    def shares(self) -> bool:
        return self.config.causal

    def teach(self, window: Tensor, users: Tensor | None = None, last: int | None = None) -> Tensor:
        if not self.config.causal:
            raise TypeError("an encoder that looks both ways reads one history per target; see `after`")
        items, length = window[:, :-1], window.shape[1] - 1
        memory = self._memory(*self.states(items, users))
        # target t sees the items up to t, and the user's token, which stands after all of them
        targets = torch.arange(length - (last or length), length, device=items.device)
        place = torch.arange(memory.mask.shape[1], device=items.device) // self.levels
        ahead = (place[None, :] > targets[:, None]) & (place < length)
        mask = memory.mask[:, None].masked_fill(ahead, -torch.inf)
        mask = torch.where((mask == -torch.inf).all(-1, keepdim=True), 0.0, mask)  # padding, which nobody asks about
        return self.decode(self.inputs(window[:, targets + 1]), memory._replace(mask=mask))[0]

    # --- looking

    @property
    def attention(self) -> AttentionShape:
        return shape_of(self, self.config.causal)

    def query_with_attention(self, items: Tensor) -> tuple[Tensor, Tensor]:
        kept: list[Tensor] = []
        states, real = self.states(items, kept=kept)
        scores = search.exact_scores(self, self._memory(states, real))
        return scores, self.over_items(torch.stack(kept, 1), items)

    def attention_between_codes(self, items: Tensor) -> Tensor:
        kept: list[Tensor] = []
        self.states(items, kept=kept)
        return torch.stack(kept, 1)
