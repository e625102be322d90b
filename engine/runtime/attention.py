"""What a model looked at: its attention for one history, and the usual summaries, as pure functions of the weights.

Attention shows what was mixed into the query, not why an item was recommended; pages say so and show leave-one-out beside it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.bundle.errors import CapabilityError
from engine.bundle.files import Folder
from engine.bundle.index import Float32
from engine.bundle.manifest import Attention, Manifest


@dataclass(frozen=True)
class AttentionMap:
    """The attention of one history, padding dropped.

    Rows are the positions that look, columns those looked at, both oldest first. Every row sums to 1; with `masked_diagonal`
    it may be less, where the model drops what a position gave to itself.
    """

    weights: Float32
    """[layers, heads, p, p]. NaN where looking is impossible (above the diagonal of a causal model, and on the diagonal of one
    that does not look at itself), which is not the same as a weight of 0: leave those cells blank."""
    positions: tuple[int | None, ...]
    """[p]: the place in the history (0 is its first event); None for the position of the next item."""
    items: tuple[int | None, ...]
    """[p]: item numbers; None for the position of the next item."""
    causal: bool
    """A position sees itself and earlier ones alone."""
    next_token: bool
    """The last position stands for the item to predict (BERT4Rec's [MASK])."""
    masked_diagonal: bool
    """A position does not look at itself (AttRec)."""
    pooled: bool
    """The query is the mean over all rows (AttRec); otherwise it is read at the last row."""
    levels: tuple[int | None, ...] = ()
    """[p] where a position is one code of an item: which code, from 0. Empty where a position is an item."""
    no_rollout: str | None = None
    """Why rollout is not defined for these weights (see `no_rollout`); None where it is."""

    @property
    def layers(self) -> int:
        return int(self.weights.shape[0])

    @property
    def heads(self) -> int:
        return int(self.weights.shape[1])

    def __len__(self) -> int:
        return len(self.positions)


def last_row(attention: AttentionMap, layer: int | None = None, head: int | None = None) -> Float32:
    """What the prediction looked at: float32 [p], summing to 1 as the rows do.

    The last row of one layer (None: the last layer, from which the query is read), of one head (None: the mean over heads).
    Where the model pools, every row speaks for the prediction, and this is their mean.
    """
    weights = _filled(attention)[attention.layers - 1 if layer is None else layer]
    row = weights.mean(axis=0) if head is None else weights[head]
    shares: Float32 = row.mean(axis=0) if attention.pooled else row[-1]
    return shares


def mean_over_heads(attention: AttentionMap, layer: int | None = None) -> Float32:
    """float32 [p, p], NaN where looking is impossible: the mean over the heads of one layer (None: over all layers as well)."""
    weights = attention.weights if layer is None else attention.weights[layer : layer + 1]
    means: Float32 = weights.mean(axis=(0, 1), dtype=np.float32)
    return means


def rollout(attention: AttentionMap) -> Float32:
    """Attention rollout: how much of each input position reaches each output position, float32 [p, p], rows summing to 1.

    Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers": the residual connection is taken as half of each layer
    (0.5 I + 0.5 A), heads are averaged, layers multiplied, the last one leftmost. An approximation: the feed-forward part and
    the sizes of the mixed vectors are ignored, and in causal models the product drifts towards early positions.

    Raises CapabilityError where `no_rollout` says why it is not defined.
    """
    if attention.no_rollout is not None:
        raise CapabilityError(attention.no_rollout)
    size = len(attention)
    flow = np.eye(size)
    for layer in _filled(attention).astype(np.float64):
        flow = (0.5 * np.eye(size) + 0.5 * layer.mean(axis=0)) @ flow
    return np.asarray(flow, np.float32)


def no_rollout(manifest: Manifest) -> str | None:
    """Why rollout is not defined for the attention of a model, in a sentence; None where it is.

    It needs a stack of layers with a residual connection around each: a model that is none declares it, and one that does not
    look at itself has no such connection. It also needs maps between what the layers attend between, which is words in a
    model that reads words: its map is their sum by item.
    """
    if manifest.attention is None:
        return None
    if manifest.attention.no_rollout is not None:
        return manifest.attention.no_rollout
    if manifest.attention.masked_diagonal:
        return (
            "Rollout is not defined for this model: it has no residual connection, so rollout would give half of every item's "
            "weight to itself."
        )
    if manifest.text is not None:
        return "Rollout is not defined for this model: it attends between words, and its map is already summed by item."
    return None


def entropy(attention: AttentionMap) -> Float32:
    """Bits, float32 [layers, heads, p]: 0 where a position looks at one other, log2(p) where it looks at all alike."""
    weights = _shares(attention)
    logs = np.log2(weights, out=np.zeros_like(weights), where=weights > 0)
    bits: Float32 = np.maximum(0, 0.0 - (weights * logs).sum(axis=-1)).astype(np.float32)
    return bits


def mean_distance(attention: AttentionMap) -> Float32:
    """How far each position looks, in positions: float32 [layers, heads, p], the weighted mean of |row − column|."""
    place = np.arange(len(attention))
    apart = np.abs(place[:, None] - place[None, :])
    distances: Float32 = (_shares(attention) * apart).sum(axis=-1).astype(np.float32)
    return distances


def read_map(
    folder: Folder,
    raw: Float32,
    described: Attention,
    places: npt.NDArray[np.int64],
    items: npt.NDArray[np.int64],
    codes: npt.NDArray[np.bool_] | None,
) -> AttentionMap:
    """What attention.onnx answered, float32 [layers, heads, positions, positions], checked and named.

    places, items: int64 [items read], places in the history and the items there; codes: bool [items read, levels], where a code
    stands, if a position is a code. Raises BundleError where these are no weights.
    """
    span = 1 if codes is None else codes.shape[1]
    size = len(places) * span + described.next_token
    if raw.shape[-1] != raw.shape[-2] or raw.shape[-1] < size:
        raise folder.fault("attention.onnx", f"{raw.shape[-2]} × {raw.shape[-1]} positions where {size} were asked for")
    raw = raw[:, :, -size:, -size:]  # a graph with a fixed window may have filled it up on the left
    token: tuple[int | None, ...] = (None,) if described.next_token else ()
    which, level = np.divmod(np.arange(len(places) * span), span)
    if codes is not None:
        real = np.append(codes.ravel(), np.ones(len(token), bool))
        raw = raw[:, :, real][..., real]
        which, level = which[codes.ravel()], level[codes.ravel()]
    # an item sees all of its own codes where it looks at whole items
    steps = np.append(which, np.full(len(token), len(places))) if described.whole_items else np.arange(raw.shape[-1])
    weights, impossible = blank(raw, described.causal, described.masked_diagonal, steps)
    sums = np.where(impossible, 0, raw).sum(axis=-1)
    # A model that drops what a position gave to itself may leave less than 1, but nothing leaves more.
    least = 0 if described.masked_diagonal else 1
    if (raw < 0).any() or (sums > 1.001).any() or (sums < least - 0.001).any():
        raise folder.fault("attention.onnx", "the weights of a position are no shares: they must sum to 1")
    return AttentionMap(
        weights=weights,
        positions=(*places[which].tolist(), *token),
        items=(*items[which].tolist(), *token),
        causal=described.causal,
        next_token=described.next_token,
        masked_diagonal=described.masked_diagonal,
        pooled=described.pooled,
        levels=(*level.tolist(), *token) if codes is not None else (),
    )


def blank(
    raw: Float32, causal: bool, masked_diagonal: bool, steps: npt.NDArray[np.int64] | None = None
) -> tuple[Float32, npt.NDArray[np.bool_]]:
    """Sets NaN where looking is impossible. raw: [layers, heads, p, p] → (a new array, the impossible cells [p, p]).

    steps: int64 [p], when each position comes, if several may come at once.
    """
    size = raw.shape[-1]
    impossible = np.zeros((size, size), bool)
    if causal:
        steps = np.arange(size) if steps is None else steps
        impossible |= steps[None, :] > steps[:, None]
    if masked_diagonal and size > 1:  # a single position has nothing else to look at
        impossible |= np.eye(size, dtype=bool)
    return np.where(impossible, np.float32(np.nan), raw), impossible


def _filled(attention: AttentionMap) -> Float32:
    return np.nan_to_num(attention.weights, nan=0.0)


def _shares(attention: AttentionMap) -> npt.NDArray[np.float64]:
    """Rows that sum to 1 also where the model drops what a position gave to itself; to 0 where that was all."""
    weights = _filled(attention).astype(np.float64)
    return weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-12)
