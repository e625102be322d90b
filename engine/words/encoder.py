"""A text encoder: a tokenizer and a network that makes one vector of a text, whatever its origin.

encoder = find("minilm")
encoder.embed(["a lipstick", "Ein Lippenstift"])      float32 [2, 384]
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from engine.errors import SeqscopeError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Float32 = npt.NDArray[np.float32]
BATCH_TOKENS = 4096
"""Tokens of one batch: enough to fill a processor, small enough to stay in its cache."""
BATCH_TEXTS = 256


@dataclass(frozen=True, eq=False)
class Encoder:
    """module: tokens int64 [batch, length], filled up with `pad` on the right → float32 [batch, dim]."""

    name: str
    """Folder-safe: lowercase letters, digits, dashes."""
    title: str
    """Name for people."""
    source: str
    """Where the weights come from, in a sentence."""
    licence: str
    """The terms of the weights, in a sentence."""
    module: nn.Module
    tokenizer: Tokenizer
    dim: int
    max_length: int
    """Tokens read of one text; what comes after is cut."""
    pad: int

    def __post_init__(self) -> None:
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(self.max_length)

    @functools.cached_property
    def digest(self) -> str:
        """sha256 of everything that decides about a vector: weights, tokenizer, length."""
        digest = hashlib.sha256(f"{type(self.module).__name__} {self.dim} {self.max_length} {self.pad}\n".encode())
        digest.update(self.tokenizer.to_str().encode())
        for name, tensor in sorted(self.module.state_dict().items()):
            digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
            digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
        return digest.hexdigest()

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Token numbers of each text, at most `max_length`."""
        return [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]

    def embed(
        self,
        texts: Sequence[str],
        device: torch.device | str = "cpu",
        done: Callable[[int], None] = lambda texts: None,
    ) -> Float32:
        """float32 [texts, dim]. Texts of one length share a batch; `done` hears how many texts have a vector."""
        tokens = self.tokens(texts)
        vectors = np.empty((len(tokens), self.dim), np.float32)
        module = self.module.to(device).eval()
        ready = 0
        for rows in batches([len(row) for row in tokens]):
            batch = torch.tensor(padded([tokens[row] for row in rows], self.pad), device=device)
            with torch.inference_mode():
                vectors[rows] = module(batch).float().cpu().numpy()
            ready += len(rows)
            done(ready)
        if not np.isfinite(vectors).all():
            raise SeqscopeError(f"the text encoder {self.name} answers with NaN or infinity; choose another")
        return vectors


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Rows in batches of like length, shortest first: little padding, and a bounded number of tokens each."""
    rows: list[int] = []
    for row in np.argsort(np.asarray(lengths, np.int64), kind="stable").tolist():
        # the row at hand is the longest so far
        if rows and (len(rows) == BATCH_TEXTS or (len(rows) + 1) * lengths[row] > BATCH_TOKENS):
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def padded(rows: Sequence[Sequence[int]], pad: int) -> npt.NDArray[np.int64]:
    """int64 [rows, longest], filled up on the right; at least one column."""
    table = np.full((len(rows), max(1, max(map(len, rows), default=1))), pad, np.int64)
    for row, tokens in zip(table, rows, strict=True):
        row[: len(tokens)] = tokens
    return table


def tokenizers_package() -> Any:
    """The package `tokenizers`, or a sentence that says how to get it."""
    try:
        import tokenizers
    except ImportError:
        raise SeqscopeError("the package tokenizers is not installed; `pip install tokenizers`, or `make install`")
    return tokenizers
