"""A decoder alone over the codes of a history, as LC-Rec's LLaMA (Zheng et al., ICDE 2024) but small and trained from scratch.

RMSNorm, rotary positions, SwiGLU, no biases (Touvron et al. 2023). A history is one sequence in which BOS stands before each
item; the network reads it from left to right and writes the next item's codes after one more BOS, so all items of a sequence
are targets of one pass. LC-Rec learns six tasks with LLaMA-7B; this learns one (docs/models.md).
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, Variant
from engine.data.identifiers import Identifiers
from engine.generation import search
from engine.generation.base import CODES, Generator, GeneratorConfig, Memory, Past, allowed, shape_of, weigh
from engine.models.base import AttentionShape
from engine.models.layers import RMSNorm, dropout, join_heads, rotate


class DecoderLayer(nn.Module):
    def __init__(self, config: GeneratorConfig) -> None:
        super().__init__()
        self.config, width = config, config.heads * config.head_dim
        self.attention_norm, self.forward_norm = RMSNorm(config.dim), RMSNorm(config.dim)
        self.query, self.key, self.value = (nn.Linear(config.dim, width, bias=False) for _ in range(3))
        self.output = nn.Linear(width, config.dim, bias=False)
        self.gate, self.inner = (nn.Linear(config.dim, config.inner, bias=False) for _ in range(2))
        self.outer = nn.Linear(config.inner, config.dim, bias=False)

    def project(self, x: Tensor, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x: [..., new, dim] → rotated queries and keys, and values: [..., heads, new, head_dim]."""
        normed = self.attention_norm(x)
        shape = (self.config.heads, self.config.head_dim)
        q, k, v = (h(normed).unflatten(-1, shape).transpose(-2, -3) for h in (self.query, self.key, self.value))
        return rotate(q, places), rotate(k, places), v

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        """The residual sums of attention (attended: [..., new, heads · head_dim]) and feed-forward layer."""
        rate = self.config.dropout
        x = x + dropout(self.output(attended), rate, self.training)
        normed = self.forward_norm(x)
        hidden = F.silu(self.gate(normed)) * self.inner(normed)
        return x + dropout(self.outer(hidden), rate, self.training)


class DecoderOnly(Generator):
    name = "decoder-only"
    stop = 1
    Config = GeneratorConfig
    objective = "identifier"
    draws_apart = True
    kind = "generative"
    card = Card(
        title="LC-Rec, small",
        order=60,
        summary="A small language model whose words are codes: it reads the history from left to right as one sequence and "
        "generates the next item's semantic ID as its continuation.",
        paper="Zheng et al., Adapting Large Language Models by Integrating Collaborative Semantics for Recommendation, ICDE 2024",
        geometry="none",
        reasons={"neighbours": CODES, "map": CODES},
        variants=(Variant("lc-rec", "violet"),),
    )

    def __init__(
        self,
        config: GeneratorConfig,
        num_items: int,
        num_users: int,
        generator: torch.Generator,
        *,
        identifiers: Identifiers,
    ) -> None:
        super().__init__(num_items, config.max_length, config.beam, identifiers)
        if config.head_dim % 2:
            raise ValueError(f"head_dim {config.head_dim} cannot be rotated in halves; take an even number")
        self.config, self.dim, self.layers = config, config.dim, config.layers
        self.heads, self.head_dim = config.heads, config.head_dim
        self.table = nn.Embedding(self.vocabulary + 1, config.dim)
        self.blocks = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.dim)
        self.head = None if config.tied else nn.Linear(config.dim, self.vocabulary, bias=False)
        for module in self.modules():  # as LLaMA
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02, generator=generator)

    def _logits(self, x: Tensor) -> Tensor:
        normed = self.norm(x)
        return F.linear(normed, self.table.weight[: self.vocabulary]) if self.head is None else self.head(normed)

    def _read(
        self, items: Tensor, kept: list[Tensor] | None = None, caches: list[tuple[Tensor, Tensor]] | None = None
    ) -> tuple[Tensor, Tensor]:
        """States [people, places, dim] of histories, and which places count."""
        config = self.config
        tokens, real = self.flat(items)
        mask = allowed(real, 1, causal=True)
        places = torch.arange(tokens.shape[1], device=tokens.device)
        rate = config.attention_dropout if self.training else 0.0
        x = dropout(self.table(tokens), config.dropout, self.training)
        for layer in self.blocks:
            q, k, v = layer.project(x, places)  # type: ignore[operator]
            if kept is None and rate == 0:
                weighted = F.scaled_dot_product_attention(q, k, v, attn_mask=mask.to(q.dtype))
            else:
                logits = q @ k.transpose(-1, -2) / math.sqrt(config.head_dim) + mask
                weighted = weigh(logits, rate, self.training, kept) @ v
            x = layer.finish(x, join_heads(weighted))  # type: ignore[operator]
            if caches is not None:
                caches.append((k, v))
        return x, real

    def encode(self, items: Tensor, users: Tensor | None = None) -> Memory:
        caches: list[tuple[Tensor, Tensor]] = []
        _, real = self._read(items, caches=caches)
        return _memory(caches, real)

    def decode(
        self,
        tokens: Tensor,
        memory: Memory,
        past: Past | None = None,
        places: Tensor | None = None,
        kept: list[Tensor] | None = None,
    ) -> tuple[Tensor, Past]:
        config = self.config
        _, beams, new = tokens.shape
        read, written = memory.keys.shape[3], 0 if past is None else past.keys.shape[4]
        if places is None:
            places = torch.arange(written, written + new, device=tokens.device)
        before = torch.arange(written + new, device=tokens.device)
        causal_mask = torch.zeros(new, written + new, device=tokens.device)
        causal_mask = causal_mask.masked_fill(before[None, :] > places[:, None], -torch.inf)
        mask = memory.mask[:, None, None] if memory.mask.dim() == 2 else memory.mask.repeat_interleave(new, 1)[:, None]
        scale = 1 / math.sqrt(config.head_dim)
        x = dropout(self.table(tokens), config.dropout, self.training)
        keys, values = [], []
        for number, layer in enumerate(self.blocks):
            q, k, v = layer.project(x, places + read)  # type: ignore[operator]
            if past is not None:
                k, v = torch.cat([past.keys[:, :, number], k], 3), torch.cat([past.values[:, :, number], v], 3)
            # one softmax over the history, which all beams of a person share, and what each beam has written
            wide = q.transpose(1, 2).flatten(2, 3)  # [people, heads, beams · new, head_dim]
            far = wide @ memory.keys[:, number].transpose(-1, -2) * scale + mask
            near = q @ k.transpose(-1, -2) * scale + causal_mask
            logits = torch.cat([far.unflatten(2, (beams, new)).transpose(1, 2), near], -1)
            weights = weigh(logits, config.attention_dropout, self.training)
            far_weights = weights[..., :read].transpose(1, 2).flatten(2, 3)
            if kept is not None:
                kept.append(far_weights)
            weighted = (far_weights @ memory.values[:, number]).unflatten(2, (beams, new)).transpose(1, 2)
            weighted = weighted + weights[..., read:] @ v
            x = layer.finish(x, weighted.transpose(2, 3).flatten(3))  # type: ignore[operator]
            keys.append(k)
            values.append(v)
        return self._logits(x), Past(torch.stack(keys, 2), torch.stack(values, 2))

    def teach(self, window: Tensor, users: Tensor | None = None, last: int | None = None) -> Tensor:
        x, _ = self._read(window)
        # after BOS comes the first code, after the first the second, …; after the last comes the next item's BOS
        by_item = x.unflatten(1, (-1, 1 + self.levels))[:, 1:, :-1]
        return self._logits(by_item[:, -(last or by_item.shape[1]) :])

    def hidden(self, items: Tensor) -> Tensor:
        """States by item, [people, length, (1 + levels) · dim]."""
        return self._read(items)[0].unflatten(1, (-1, 1 + self.levels)).flatten(2)

    @property
    def attention(self) -> AttentionShape:
        return shape_of(self, causal=True)

    def query_with_attention(self, items: Tensor) -> tuple[Tensor, Tensor]:
        kept: list[Tensor] = []
        caches: list[tuple[Tensor, Tensor]] = []
        _, real = self._read(items, kept, caches)
        return search.exact_scores(self, _memory(caches, real)), self.over_items(torch.stack(kept, 1), items)

    def attention_between_codes(self, items: Tensor) -> Tensor:
        kept: list[Tensor] = []
        self._read(items, kept)
        weights = torch.stack(kept, 1)
        width = 1 + self.levels
        # what an item's BOS receives counts for its first code; what BOS itself looks at is left out
        keys = weights.unflatten(-1, (-1, width))
        keys = torch.cat([keys[..., :2].sum(-1, keepdim=True), keys[..., 2:]], -1).flatten(-2)
        return keys.unflatten(-2, (-1, width))[..., 1:, :].flatten(-3, -2)


def _memory(caches: list[tuple[Tensor, Tensor]], real: Tensor) -> Memory:
    keys, values = zip(*caches, strict=True)
    mask = torch.zeros(real.shape, device=real.device).masked_fill(~real, -torch.inf)
    return Memory(torch.stack(keys, 1), torch.stack(values, 1), mask)
