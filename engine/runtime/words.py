"""Text into vectors without torch: a text encoder that `seqscope embed --export` wrote.

words.json        what it is: `Words`
tokenizer.json    read by the package tokenizers
encoder.onnx      tokens int64 [batch, length], filled up with `pad` on the right → vectors float32 [batch, dim]

encoder = TextEncoder.open("build/words/minilm")
encoder.embed(["a lipstick", "립스틱"])               # float32 [2, dim], rows of unit length
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationError, field_validator

from engine.bundle.manifest import File, Strict
from engine.runtime.faults import QuestionError, complaints
from engine.runtime.files import Folder
from engine.runtime.graphs import INT64
from engine.runtime.index import Float32
from engine.runtime.lazily import Lazily
from engine.runtime.sessions import OPEN, Network

ABOUT, TOKENIZER, GRAPH = "words.json", "tokenizer.json", "encoder.onnx"
TOKENIZER_BYTES = 64 << 20
CHARACTERS = 20_000
"""Of one text; what comes after is not read."""
BATCH_TEXTS, BATCH_TOKENS = 64, 4096


class Words(Strict):
    """words.json. Written by `engine.export.words`, believed by nobody until it is checked."""

    schema_version: Literal[1] = 1
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    title: str = Field(min_length=1, max_length=200)
    source: str = Field(max_length=2_000)
    """Where the weights come from, in a sentence."""
    licence: str = Field(max_length=2_000)
    """The terms of the weights, in a sentence."""
    dim: int = Field(ge=1, le=65_536)
    max_length: int = Field(ge=1, le=65_536)
    """Tokens read of one text."""
    pad: int = Field(ge=0)
    """The token that fills up shorter texts of a batch; the graph looks past it."""
    pooling: str = Field(max_length=200)
    """How one vector is made of the states of all tokens, in words; the graph does it."""
    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of the encoder that was exported: vectors with the same digest may be compared."""
    max_abs_difference: float = Field(ge=0)
    """The graph against PyTorch, on texts of several lengths and scripts."""
    created_by: str
    files: dict[str, File]

    @field_validator("files")
    @classmethod
    def _complete(cls, files: dict[str, File]) -> dict[str, File]:
        if set(files) != {TOKENIZER, GRAPH}:
            raise ValueError(f"lists {', '.join(sorted(files)) or 'nothing'}, not {TOKENIZER} and {GRAPH}")
        return files


class TextEncoder:
    """Made by `open`; answers from any thread.

    Attributes: about, what words.json says; path, the folder.
    """

    def __init__(self, folder: Folder, about: Words) -> None:
        self.path, self.about = folder.path, about
        self._folder = folder
        self._network = Network(
            folder, GRAPH, about.files, {"tokens": (INT64, (OPEN, OPEN))}, {"vectors": (None, about.dim)}
        )
        folder.size(TOKENIZER, limit=TOKENIZER_BYTES, expected=about.files[TOKENIZER])
        self._tokenizer: Lazily[Any] = Lazily(self._read_tokenizer)

    @classmethod
    def open(cls, path: Path | str) -> TextEncoder:
        """Raises BundleError where a file of the folder is missing, damaged, or not what words.json says of it."""
        folder = Folder(Path(path), Path(path).name)
        raw = folder.json(ABOUT)
        try:
            about = Words.model_validate(raw)
        except ValidationError as error:
            raise folder.fault(ABOUT, complaints(error)) from None
        return cls(folder, about)

    def embed(self, texts: Sequence[str]) -> Float32:
        """float32 [texts, dim], row i for text i; texts of like length share a batch.

        Raises QuestionError for anything but text, BundleError where tokenizer or graph fail.
        """
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise QuestionError("a text encoder is asked with a list of texts")
        tokenizer = self._tokenizer.value()
        readable = [text[:CHARACTERS].encode("utf-8", "replace").decode() for text in texts]
        tokens = [self._promised(encoding.ids) for encoding in tokenizer.encode_batch(readable)]
        found = np.empty((len(tokens), self.about.dim), np.float32)
        order = sorted(range(len(tokens)), key=lambda row: len(tokens[row]))
        while order:
            # from the longest down, so that the first of a batch says how many fit
            count = max(1, min(BATCH_TEXTS, BATCH_TOKENS // max(1, len(tokens[order[-1]]))))
            rows, order = order[-count:], order[:-count]
            batch = np.full((len(rows), max(1, len(tokens[rows[-1]]))), self.about.pad, np.int64)
            for line, row in zip(batch, rows, strict=True):
                line[: len(tokens[row])] = tokens[row]
            (answer,) = self._network.call(["vectors"], {"tokens": batch})
            found[rows] = self._network.checked(answer, (len(rows), self.about.dim))
        return found

    def _promised(self, tokens: list[int]) -> list[int]:
        return tokens[: self.about.max_length]

    def _read_tokenizer(self) -> Any:
        content = self._folder.read(TOKENIZER, limit=TOKENIZER_BYTES, expected=self.about.files[TOKENIZER])
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise self._folder.fault(
                TOKENIZER, "the package tokenizers is not installed, so it cannot be read"
            ) from None
        try:
            tokenizer = Tokenizer.from_str(content.decode("utf-8"))
            tokenizer.no_padding()
            tokenizer.enable_truncation(self.about.max_length)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # what Rust panics with is no Exception
            raise self._folder.fault(TOKENIZER, "not a tokenizer that can be read", error) from None
        return tokenizer
