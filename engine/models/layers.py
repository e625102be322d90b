"""What networks are made of: dropout, self-attention (fused, with its weights, by blocks, in a window), positions, norms.

`attend` uses a fused kernel wherever nobody looks at the weights; `attend_with_weights` writes them out.
"""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def dropout(x: Tensor, rate: float, training: bool = True) -> Tensor:
    """`x` with each element zeroed with probability `rate` and the rest divided by 1 − rate.

    Draws from PyTorch's default generator, which the training loop seeds at every step, or from that of `dropout_from`.
    """
    if not training or rate == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, rate)
    return x * dropout_mask(x, rate)


def dropout_mask(like: Tensor, rate: float) -> Tensor:
    """What `dropout` multiplies with, of the shape and dtype of `like`, a CPU tensor: 0 with probability `rate`, else
    1 / (1 − rate)."""
    return kept_bits(like, rate).mul_(kept_scale(rate))


def kept_bits(like: Tensor, rate: float) -> Tensor:
    """0 with probability `rate`, else 1, of the shape and dtype of `like`, a CPU tensor.

    Drawing bits takes time: sixteen an element from PyTorch's generator, but eight from one of `dropout_from`, where which of the
    two nearest shares of 256 is zeroed is drawn at each call, so that `rate` is met on average.
    """
    generator, dropped = drawing(), round(rate * 65536)
    kind = torch.int16 if generator is None else torch.int8
    words = torch.empty(-(-like.numel() * kind.itemsize // 8) + (generator is not None), dtype=torch.int64)
    words.random_(-(2**63), None, generator=generator)
    if generator is not None:
        share, rest = divmod(dropped, 256)
        dropped = share + (int(words[-1]) % 256 < rest)
    half = -torch.iinfo(kind).min
    if dropped == 2 * half:
        return torch.zeros_like(like)
    bits = words.view(kind)[: like.numel()].view(like.shape)
    return torch.ge(bits, dropped - half, out=torch.empty(like.shape, dtype=like.dtype))


def kept_scale(rate: float) -> float:
    """1 / (1 − rate), of the rate that `kept_bits` has."""
    dropped = round(rate * 65536)
    return 65536 / (65536 - dropped) if dropped < 65536 else 1.0


class _Drawing(threading.local):
    generator: torch.Generator | None = None


_drawing = _Drawing()


def drawing() -> torch.Generator | None:
    """What dropout of this thread draws from on the CPU; None: PyTorch's default."""
    return _drawing.generator


@contextmanager
def dropout_from(generator: torch.Generator) -> Iterator[None]:
    """While it lasts, dropout of this thread draws from `generator`, one of the CPU: the default one is shared by all threads."""
    _drawing.generator = generator
    try:
        yield
    finally:
        _drawing.generator = None


def initialise(network: nn.Module, matrices: Callable[[Tensor], object], tables: Callable[[Tensor], object]) -> None:
    """Draws the weights of linear layers (`matrices`) and of tables, module by module; biases and rows of padding are zeros."""
    for module in network.modules():
        if isinstance(module, nn.Linear):
            matrices(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        if isinstance(module, nn.Embedding):
            tables(module.weight)
            if module.padding_idx is not None:
                with torch.no_grad():
                    module.weight[module.padding_idx] = 0


def check_heads(dim: int, heads: int) -> None:
    """Raises ValueError where heads of attention cannot share a width."""
    if dim % heads:
        raise ValueError(f"dim {dim} cannot be split into {heads} heads")


def looked_up(numbers: Tensor, items: Tensor) -> Tensor:
    """`numbers`, float32 [items], of each of `items`, int64 of any shape; 0 at padding. Its gradient adds up in the same order
    every time, which an index's does not on several threads."""
    return F.embedding(items, F.pad(numbers, (0, 1))[:, None]).squeeze(-1)


def gru(inputs: int, units: int, layers: int, rate: float, generator: torch.Generator) -> nn.GRU:
    """A gated recurrent unit without biases: padding, a vector of zeros, leaves the first state at zero. Each gate's matrices are
    drawn as Glorot's; rate: dropout between layers."""
    network = nn.GRU(inputs, units, layers, bias=False, batch_first=True, dropout=rate if layers > 1 else 0.0)
    for weight in network.parameters():
        for gate in weight.chunk(3):
            nn.init.xavier_uniform_(gate, generator=generator)
    return network


def gru_states(network: nn.GRU, vectors: Tensor) -> Tensor:
    """State after every position, [batch, length, units], of one made by `gru`. vectors: [batch, length, inputs].

    For ONNX its operator is named: the exporter would unroll the network over the length of its example.
    """
    if not torch.compiler.is_exporting():
        return network(vectors)[0]
    states = vectors.transpose(0, 1)
    for layer in range(network.num_layers):
        matrices = []
        for name in ("ih", "hh"):
            reset, update, candidate = getattr(network, f"weight_{name}_l{layer}").chunk(3)
            matrices.append(torch.cat([update, reset, candidate]).unsqueeze(0))  # ONNX's order
        shape = (states.shape[0], 1, states.shape[1], network.hidden_size)
        states = torch.onnx.ops.symbolic(
            "GRU", (states, *matrices), {"hidden_size": network.hidden_size, "linear_before_reset": 1}, dtype=states.dtype,
            shape=shape, version=14,
        ).squeeze(1)  # fmt: skip
    return states.transpose(0, 1)


# --- self-attention


NO_RESIDUAL = "Rollout is not defined for this model: it was trained without residual connections."


@torch.no_grad()
def clip_to_ball(*tables: nn.Embedding) -> None:
    """Scale back every row that is longer than 1 to length 1."""
    for table in tables:
        table.weight.mul_(1 / table.weight.norm(dim=1, keepdim=True).clamp(min=1))


def visible(items: Tensor, pad: int, causal: bool) -> Tensor:
    """What to add to a logit: 0 where a query may look at a key, −inf elsewhere; float32 [batch, 1, length, length].

    items: int64 [batch, length]. A padding position may look at itself, so that no row of a softmax is empty.
    """
    length = items.shape[1]
    # arange comparisons rather than torch.tril and torch.eye: these export to ONNX with a dynamic length
    place = torch.arange(length, device=items.device)
    allowed = (items != pad)[:, None, None, :]
    if causal:
        allowed = allowed & (place[None, :] <= place[:, None])
    allowed = allowed | (place[None, :] == place[:, None])
    return torch.zeros(allowed.shape, device=items.device).masked_fill(~allowed, -torch.inf)


class Mask:
    """What queries may look at: no padding, and where `causal` nothing after their own place. items: int64 [batch, length]."""

    def __init__(self, items: Tensor, pad: int, causal: bool) -> None:
        self.items, self.pad, self.causal = items, pad, causal
        self._added: Tensor | None = None

    @property
    def added(self) -> Tensor:
        """`visible`, made when it is first needed: `attend_by_blocks` needs none."""
        if self._added is None:  # cached_property has a lock, at which a compiled layer would break in two
            self._added = visible(self.items, self.pad, self.causal)
        return self._added


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Mask, dropout: float, weights: list[Tensor] | None = None) -> Tensor:
    """Weighted values, [batch, heads, length, dim] like q, k and v; weights: where given, those of `attend_with_weights` are
    appended to it, and there is no dropout."""
    if weights is not None:
        attended, seen = attend_with_weights(q, k, v, mask.added)
        weights.append(seen)
        return attended
    if dropout == 0 or q.device.type != "cpu":
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask.added.to(q.dtype), dropout_p=dropout)
    return attend_by_blocks(q, k, v, mask, dropout)


def attend_with_weights(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """As `attend` without dropout, and the weights [batch, heads, length, length]; rows sum to 1."""
    weights = F.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + mask, dim=-1)
    return weights @ v, weights


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[batch, length, dim] → [batch, heads, length, dim / heads]"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """[batch, heads, length, dim] → [batch, length, heads · dim]"""
    return x.transpose(1, 2).flatten(2)


def sinusoid(length: int, dim: int, device: torch.device | None = None) -> Tensor:
    """Fixed position signal, float32 [length, dim]: sines, then cosines, as in tensor2tensor (Vaswani et al. 2017, 3.5)."""
    half = (dim + 1) // 2
    rates = torch.exp(-math.log(10_000.0) * torch.arange(half, device=device) / max(half - 1, 1))
    angles = torch.arange(length, device=device)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :dim]


# --- attention with dropout on a CPU, block by block, with its gradient written out
#
# PyTorch's fused CPU kernel has no dropout, and slicing under autograd costs more than it saves: the gradient of every slice is a
# full tensor of zeros around it. Here each block writes its share of the gradient where it belongs.


QUERIES = 64
"""Queries per block: a causal block needs no key after its last query, which saves half the work."""
LOGITS = 1 << 20
"""Logits per block: what a block reads and writes stays in the cache."""


def attend_by_blocks(q: Tensor, k: Tensor, v: Tensor, mask: Mask, dropout: float) -> Tensor:
    """As `attend`, but that what padding is answered is any number: nobody looks at it."""
    if torch.is_autocast_enabled("cpu"):
        # autocast would take the weights to float32 and back; a softmax adds in float32 whatever its input is
        low = torch.get_autocast_dtype("cpu")
        q, k, v = q.to(low), k.to(low), v.to(low)
    weighted: Tensor = _Attend.apply(q, k, v, mask.items != mask.pad, dropout, mask.causal)
    return weighted


def _blocks(shape: torch.Size, causal: bool) -> list[tuple[slice, slice, slice]]:
    """Which rows of the batch, which queries and which keys, in blocks of about the same size; a causal block ends with its last
    query."""
    batch, heads, length, _ = shape
    size = _even(length, QUERIES) if causal else length
    rows = _even(batch, max(1, LOGITS // (heads * size * length)))
    blocks = []
    for first in range(0, batch, rows):
        for start in range(0, length, size):
            end = min(start + size, length)
            blocks.append((slice(first, first + rows), slice(start, end), slice(0, end)))
    return blocks


def _even(count: int, most: int) -> int:
    """How many are in each part of `count` where none has more than `most` and all are about alike."""
    return -(-count // -(-count // most))


def _cut(x: Tensor, rows: slice, places: slice) -> Tensor:
    """x[rows, :, places], dense in bfloat16: oneDNN would copy it for each product, and what is transposed value by value."""
    part = x[rows, :, places]
    return part.contiguous() if x.dtype == torch.bfloat16 else part


def _product(a: Tensor, b: Tensor, scale: float, place: Tensor | None = None, added: bool = False) -> Tensor:
    """scale · a @ b, all [rows, heads, ·, ·]; where `place` is given, it is put there, or added to what is there."""
    total = a.new_empty(*a.shape[:3], b.shape[3]) if place is None else place
    total.view(-1, *total.shape[2:]).baddbmm_(a.flatten(0, 1), b.flatten(0, 1), beta=int(added), alpha=scale)
    return total


class _Attend(torch.autograd.Function):
    """With W = dropout(P), P = softmax(S), O = W V: dS = W ∘ (dO Vᵀ) − P ∘ rowsum(dO ∘ O), as in FlashAttention (Dao et al. 2022,
    appendix B.4). q, k, v: float [batch, heads, length, dim]; real: bool [batch, length], False at padding."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, real: Tensor, dropout: float, causal: bool) -> Tensor:
        ctx.causal, ctx.scale, ctx.kept = causal, q.shape[-1] ** -0.5, kept_scale(dropout)
        nothing = q.new_zeros(())
        away = torch.where(real, nothing, -torch.inf)
        out = torch.empty_like(q)
        blocks = _blocks(q.shape, causal)
        later = torch.full([blocks[0][1].stop] * 2, -torch.inf, dtype=q.dtype).triu_(1)
        weights = []
        for rows, queries, keys in blocks:
            start, padded = None, not real[rows, keys].all()
            if padded:  # which looks at everything, so that no row of a softmax is empty
                start = torch.where(real[rows, None, queries, None], away[rows, None, None, keys], nothing)
                start = start.expand(-1, q.shape[1], -1, -1).contiguous()
            logits = _product(_cut(q, rows, queries), _cut(k, rows, keys).transpose(-1, -2), ctx.scale, start, padded)
            if causal:
                count = logits.shape[2]
                logits[..., queries].add_(later[:count, :count])
            shares = F.softmax(logits, dim=-1)
            used = shares * kept_bits(shares, dropout)
            out[rows, :, queries] = _product(used, _cut(v, rows, keys), ctx.kept)
            weights += [shares, used]
        ctx.save_for_backward(q, k, v, out, *weights)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, out, *weights = ctx.saved_tensors
        grad_q, grad_k, grad_v = (torch.empty(q.shape, dtype=q.dtype) for _ in range(3))  # dense, whatever q is
        whole = (grad * out).sum(-1, keepdim=True)
        blocks = _blocks(q.shape, ctx.causal)
        for number in reversed(range(len(blocks))):
            rows, queries, keys = blocks[number]
            shares, used = weights[2 * number : 2 * number + 2]
            arriving = _cut(grad, rows, queries)
            slope = _product(arriving, _cut(v, rows, keys).transpose(-1, -2), ctx.kept)
            slope.mul_(used).addcmul_(shares, whole[rows, :, queries], value=-1)
            grad_q[rows, :, queries] = _product(slope, _cut(k, rows, keys), ctx.scale)
            whose = (slope, _cut(q, rows, queries), ctx.scale, grad_k), (used, arriving, ctx.kept, grad_v)
            for by_query, vectors, scale, total in whose:
                if keys.stop == q.shape[2]:  # of these rows the first, and of all keys
                    _product(by_query.transpose(-1, -2), vectors, scale, total[rows])
                else:
                    total[rows, :, keys] += _product(by_query.transpose(-1, -2), vectors, scale)
        return grad_q, grad_k, grad_v, None, None, None


# --- self-attention in a sliding window with one global token, at a cost linear in length (Longformer, Beltagy et al. 2020, 3.1)
#
# Token i sees the tokens within `radius` places of it and token 0; token 0 sees all, and all see it. Queries are cut into
# blocks of `radius`; a block needs the keys of its own and of the two blocks beside it. No n × n matrix exists at any time.


# q, k, v: float [batch, heads, length, dim]; real: bool [batch, length], True where a token may be looked at; token 0 always is.


def attend_to_all(q: Tensor, k: Tensor, v: Tensor, real: Tensor, rate: float) -> Tensor:
    """Weighted values of any queries [batch, heads, queries, dim]: every real key is looked at."""
    return shares_of_all(q, k, real, rate) @ v


def shares_of_all(q: Tensor, k: Tensor, real: Tensor, rate: float = 0.0, radius: int = 0) -> Tensor:
    """Weights, [batch, heads, queries, length]; with a radius, of as many queries as keys, those of the window (0: of all)."""
    seen = real[:, None]
    if radius:
        place = torch.arange(k.shape[2], device=k.device)
        distance = (place[:, None] - place).abs()
        seen = seen & ((distance <= radius) | (place == 0) | (place[:, None] == 0))
    return _shares(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), seen[:, None], rate)


def attend_in_window(q: Tensor, k: Tensor, v: Tensor, real: Tensor, radius: int, rate: float) -> Tensor:
    """Weighted values in the window, [batch, heads, length, dim]."""
    length = q.shape[2]
    weighted = (blocked_shares(q, k, real, radius, rate) @ _around(v, radius)).flatten(2, 3)[:, :, 1:length]
    return torch.cat([attend_to_all(q[:, :, :1], k, v, real, rate), weighted], 2)


def blocked_shares(q: Tensor, k: Tensor, real: Tensor, radius: int, rate: float) -> Tensor:
    """Weights of each block, [batch, heads, blocks, radius, 1 + 3 · radius]: of token 0, then of the keys around the block."""
    length = q.shape[2]
    blocks = (length + radius - 1) // radius
    queries = F.pad(q, (0, 0, 0, blocks * radius - length)).unflatten(2, (blocks, radius))
    logits = queries @ _around(k, radius).transpose(-1, -2) / math.sqrt(q.shape[-1])
    row = torch.arange(radius, device=q.device)[:, None]
    column = torch.arange(3 * radius, device=q.device)[None, :] - radius
    near = (row - column).abs() <= radius
    # token 0 stands in front of every block; among the keys around it, it is not seen a second time
    others = real & (torch.arange(length, device=q.device) > 0)
    there = _beside(others[:, None, :, None].to(q.dtype), radius)[..., 0] > 0  # [batch, 1, blocks, 3 · radius]
    seen = near & there[:, :, :, None]
    return _shares(logits, torch.cat([torch.ones_like(seen[..., :1]), seen], -1), rate)


def _around(x: Tensor, radius: int) -> Tensor:
    """[batch, heads, length, dim] → [batch, heads, blocks, 1 + 3 · radius, dim]: token 0, then what lies around each block."""
    beside = _beside(x, radius)
    first = x[:, :, :1, None].expand(-1, -1, beside.shape[2], -1, -1)
    return torch.cat([first, beside], 3)


def _beside(x: Tensor, radius: int) -> Tensor:
    """[batch, heads, length, dim] → [batch, heads, blocks, 3 · radius, dim]; zeros where there is nothing."""
    length = x.shape[2]
    blocks = (length + radius - 1) // radius
    size = blocks * radius
    wide = F.pad(x, (0, 0, radius, radius + size - length))
    return torch.cat([wide[:, :, s : s + size].unflatten(2, (blocks, radius)) for s in (0, radius, 2 * radius)], 3)


def _shares(logits: Tensor, seen: Tensor, rate: float) -> Tensor:
    shares = F.softmax(logits.masked_fill(~seen, -torch.inf), -1)
    return dropout(shares, rate, rate > 0)


# --- of T5 and LLaMA: RMSNorm, relative position buckets, rotary positions


BUCKETS, FARTHEST = 32, 128
"""T5's: half of the buckets are single distances, the others grow with the distance up to 128."""


class RMSNorm(nn.Module):
    """x / sqrt(mean(x²) + 1e-6) · weight (Zhang & Sennrich 2019): no mean, no bias."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6).to(x.dtype) * self.weight


def bucket(distance: Tensor, both_sides: bool) -> Tensor:
    """T5's bucket of key place − query place, int64 as `distance`; one-sided where keys never lie ahead."""
    buckets, side = BUCKETS, torch.zeros_like(distance)
    if both_sides:
        buckets //= 2
        side = torch.where(distance > 0, buckets, 0)
        distance = distance.abs()
    else:
        distance = (-distance).clamp(min=0)
    exact = buckets // 2
    scaled = torch.log(distance.clamp(min=1).double() / exact) / math.log(FARTHEST / exact) * (buckets - exact)
    far = (exact + scaled.long()).clamp(max=buckets - 1)
    return side + torch.where(distance < exact, distance, far)


class RelativeBias(nn.Module):
    """What to add to a logit for how far apart query and key stand; one table for all layers (T5, 2.1)."""

    distances: Tensor

    def __init__(self, heads: int, longest: int, both_sides: bool) -> None:
        super().__init__()
        self.table, self.longest = nn.Embedding(BUCKETS, heads), longest
        # looked up rather than computed: logarithms of integers would otherwise be part of the exported graph
        distances = torch.arange(1 - longest, longest)
        self.register_buffer("distances", bucket(distances, both_sides), persistent=False)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Places int64 [queries] and [keys] → float32 [heads, queries, keys]."""
        buckets = self.distances[keys[None, :] - queries[:, None] + self.longest - 1]
        return self.table(buckets).permute(2, 0, 1)


def rotate(x: Tensor, places: Tensor) -> Tensor:
    """Rotary positions (Su et al. 2021), by halves as in LLaMA. x: [..., length, dim]; places: [length]."""
    half = x.shape[-1] // 2
    rates = torch.exp(-math.log(10_000.0) * torch.arange(half, device=x.device) / half)
    angles = places[:, None].float() * rates
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)
