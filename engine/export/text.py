"""What the bundle of a model that reads words has beside the others: a graph that encodes any item, the tokenizer, the words.

item_encoder.onnx   tokens, kinds int64 [batch, length], 0 in `kinds` where a text has ended → rows float32 [batch, dim]
tokenizer.json      of the package tokenizers
words.parquet       item, word, attribute, key, tokens: what is read of each item, a row per word
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pyarrow.parquet as pq
import torch
from torch import Tensor, nn

from engine.bundle.manifest import Text
from engine.data.words import TOKENIZER, ItemWords, parse
from engine.errors import SeqscopeError
from engine.export import graphs, vectors
from engine.export.draft import Draft
from engine.export.words_table import words_table
from engine.models.recformer import Recformer
from engine.training import texts

ITEMS = 64


class _Item(nn.Module):
    def __init__(self, model: Recformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor, kinds: Tensor) -> Tensor:
        real = kinds > 0
        return self.model.direction(self.model.opened(tokens, kinds, real.long(), real, tokens))


class _Attention(nn.Module):
    def __init__(self, model: Recformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, items: Tensor) -> tuple[Tensor, Tensor]:
        return self.model.looked_at(items)[1:]


def widen(model: Recformer, words: ItemWords) -> None:
    """Room in the graphs for as many words as any item of any catalogue may have, for `engine.export.transfer`."""
    count = max(model.config.attributes, len(words.fields))
    model.widen(min(count * words.limit, model.max_tokens - 1))


def write(model: Recformer, draft: Draft) -> None:
    """The files above and attention.onnx."""
    folder, words = draft.folder, ItemWords.read(draft.run)
    widen(model, words)
    unknown = round(texts.understood(draft.recipe.model, draft.data, parse(words.tokenizer)).share, 4)
    items = {"items": graphs.histories(model)}
    graphs.save(_Attention(model), items, ["attention", "words"], folder / "attention.onnx")
    example, free = torch.ones(2, 7, dtype=torch.int64), {0: "batch", 1: "length"}
    inputs = {"tokens": (example, free), "kinds": (example.clone(), free)}
    graphs.save(_Item(model.item_encoder()), inputs, ["rows"], folder / "item_encoder.onnx")
    (folder / TOKENIZER).write_text(words.tokenizer, "utf-8")
    pq.write_table(words_table(words), folder / "words.parquet", compression="zstd")
    draft.checks.append(lambda: compare(model, folder, words))
    draft.text = Text(
        fields=list(words.fields), limit=words.limit, max_tokens=model.max_tokens, longest=model.table.shape[1],
        vocabulary=words.vocabulary, unknown=unknown,
    )  # fmt: skip


@torch.no_grad()
def compare(model: Recformer, folder: Path, words: ItemWords) -> None:
    """The item graph against the rows of the index, on items of all lengths. Raises SeqscopeError where it does not answer as
    PyTorch does."""
    encoder = model.item_encoder()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    rows = np.argsort(words.lengths, kind="stable")[:: max(1, len(words) // ITEMS)]
    graph = onnxruntime.InferenceSession(str(folder / "item_encoder.onnx"), options, providers=["CPUExecutionProvider"])
    longest = model.max_tokens - 1  # [CLS] comes first
    tokens = words.table(words.tokens, words.pad)[rows, :longest]
    kinds = words.table(words.kinds, 0)[rows, :longest]
    got = graph.run(["rows"], {"tokens": tokens, "kinds": kinds})[0]
    wanted = encoder.matrix[torch.from_numpy(rows)].numpy()
    worst = vectors.difference(got, wanted)
    if not worst <= vectors.TOLERANCE:
        raise SeqscopeError(f"{encoder.name}: item_encoder.onnx differs from PyTorch by {worst:.2g}; not exported")
