"""The two graphs of a generator: the history is read once, then codes are written, a batch of prefixes at a time.

decoder.onnx, asked once per step:

    inputs   tokens         int64    [beams, 1]      the token written last; `vocabulary` at step 0
             step           int64    [1]             tokens written before it, 0 at first
             memory_keys    float32  [1, layers, heads, memory, head_dim]
             memory_values  float32  [1, layers, heads, memory, head_dim]
             memory_mask    float32  [1, memory]     0, or −inf where there is nothing to look at
             past_keys      float32  [beams, layers, heads, step, head_dim]
             past_values    float32  [beams, layers, heads, step, head_dim]
    outputs  logits         float32  [beams, vocabulary]
             keys           float32  [beams, layers, heads, step + 1, head_dim]
             values         float32  [beams, layers, heads, step + 1, head_dim]
             cross_attention  float32  [beams, layers, heads, memory]     (where the manifest says so) the weights of this step
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.bundle.files import Folder
from engine.bundle.index import Float32
from engine.bundle.manifest import Manifest
from engine.bundle.onnx_graph import FLOAT, INT64
from engine.bundle.trie import Int64
from engine.runtime.sessions import ITEMS, OPEN, Session

_MEMORY = ("memory_keys", "memory_values", "memory_mask")


@dataclass(frozen=True)
class Memory:
    """What the encoder made of one history: keys, values [1, layers, heads, memory, head_dim], mask [1, memory]."""

    keys: Float32
    values: Float32
    mask: Float32

    @property
    def size(self) -> int:
        return int(self.mask.shape[1])


@dataclass(frozen=True)
class Past:
    """Keys and values of what was written so far, float32 [prefixes, layers, heads, step, head_dim]."""

    keys: Float32
    values: Float32

    def take(self, rows: Int64) -> Past:
        return Past(self.keys[rows], self.values[rows])


class Decoder:
    """encoder.onnx and decoder.onnx of a generator. Both methods raise BundleError where a graph does not keep its promises."""

    def __init__(self, folder: Folder, manifest: Manifest) -> None:
        described = manifest.generator
        assert described is not None
        self.folder = folder
        self.shape = described
        layers, heads, width, vocabulary = described.layers, described.heads, described.head_dim, described.vocabulary
        remembered = (None, layers, heads, None, width)
        self._encoder = Session(
            folder,
            "encoder.onnx",
            manifest.files,
            ITEMS,
            {"memory_keys": remembered, "memory_values": remembered, "memory_mask": (None, None)},
            manifest.encoder.max_length,
        )
        growing = (OPEN, layers, heads, OPEN if described.levels > 1 else None, width)
        grown = (None, layers, heads, None, width)
        outputs: dict[str, tuple[int | None, ...]] = {"logits": (None, vocabulary), "keys": grown, "values": grown}
        if described.cross_attention:
            outputs["cross_attention"] = (None, layers, heads, None)
        self._decoder = Session(
            folder,
            "decoder.onnx",
            manifest.files,
            {
                "tokens": (INT64, (OPEN, 1)),
                "step": (INT64, (1,)),
                "memory_keys": (FLOAT, (1, layers, heads, None, width)),
                "memory_values": (FLOAT, (1, layers, heads, None, width)),
                "memory_mask": (FLOAT, (1, None)),
                "past_keys": (FLOAT, growing),
                "past_values": (FLOAT, growing),
            },
            outputs,
        )

    @property
    def provider(self) -> str:
        return self._decoder.provider

    def read(self, items: Int64) -> Memory:
        """items: int64 [1, length]"""
        g = self.shape
        keys, values, mask = self._encoder.call(list(_MEMORY), {"items": items})
        mask = self._encoder.checked(mask, (1, None), finite=False)
        promised = (1, g.layers, g.heads, mask.shape[1], g.head_dim)
        if np.isnan(mask).any() or (mask > 0).any() or not (mask == 0).any():
            raise self.folder.fault("encoder.onnx", "memory_mask must be 0 or −inf, and 0 somewhere")
        return Memory(self._encoder.checked(keys, promised), self._encoder.checked(values, promised), mask)

    def start(self) -> Past:
        """The past of one prefix, the empty one."""
        nothing = np.zeros((1, self.shape.layers, self.shape.heads, 0, self.shape.head_dim), np.float32)
        return Past(nothing, nothing)

    def write(self, memory: Memory, tokens: Int64, step: int, past: Past) -> tuple[Float32, Past]:
        """One step. tokens: int64 [prefixes], written last (anything at step 0) → (logits [prefixes, vocabulary], past)."""
        return self._step("logits", (len(tokens), self.shape.vocabulary), memory, tokens, step, past)

    def look(self, memory: Memory, tokens: Int64, step: int, past: Past) -> tuple[Float32, Past]:
        """As `write`, for one prefix, with cross-attention [layers, heads, memory] in place of logits."""
        promised = (len(tokens), self.shape.layers, self.shape.heads, memory.size)
        weights, grown = self._step("cross_attention", promised, memory, tokens, step, past)
        return weights[0], grown

    def _step(
        self, output: str, promised: tuple[int, ...], memory: Memory, tokens: Int64, step: int, past: Past
    ) -> tuple[Float32, Past]:
        """(the output, of the promised shape; the past with this step)"""
        if step == 0:
            tokens = np.full(len(tokens), self.shape.vocabulary, np.int64)
        inputs: dict[str, npt.NDArray[np.generic]] = {
            "tokens": tokens[:, None],
            "step": np.array([step], np.int64),
            "memory_keys": memory.keys,
            "memory_values": memory.values,
            "memory_mask": memory.mask,
            "past_keys": past.keys,
            "past_values": past.values,
        }
        answer, keys, values = self._decoder.call([output, "keys", "values"], inputs)
        grown = (len(tokens), self.shape.layers, self.shape.heads, step + 1, self.shape.head_dim)
        check = self._decoder.checked  # keys that are not finite would show in the output of this step or of the next
        return check(answer, promised), Past(check(keys, grown, finite=False), check(values, grown, finite=False))

    def batch(self, step: int) -> int:
        """How many prefixes to write at a time where there are many: their pasts and logits stay within bounds."""
        numbers = 2 * (step + 1) * self.shape.cell * 2 + 2 * self.shape.vocabulary
        return max(1, min(_PREFIXES, _NUMBERS // numbers))


_PREFIXES = 1_024
_NUMBERS = 1 << 24  # 64 MiB
