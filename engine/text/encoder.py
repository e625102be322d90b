"""A text encoder: a tokenizer and a network that makes one vector of a text, whatever its origin.

encoder = find("minilm")
encoder.embed(["a lipstick", "Ein Lippenstift"])      float32 [2, 384]

`open_hugging` opens any encoder of sentence-transformers or Hugging Face, by name or local path, through the package
sentence-transformers. Nothing is unpickled (safetensors alone) and no code of a model is run. A name that is not on this machine
yet is downloaded by that package; where there is no network, give a path.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.errors import SeqscopeError, UsageError, first_line
from engine.text.tokenizer import batches, padded, tokenizers_package

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Float32 = npt.NDArray[np.float32]


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
        self.tokenizer.encode_special_tokens = True  # "[MASK]" in a title is three words
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


MAX_LENGTH = 512
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


class Borrowed(nn.Module):
    """tokens int64 [batch, length] → what the model calls its sentence embedding, of unit length, float32 [batch, dim]"""

    def __init__(self, model: nn.Module, pad: int) -> None:
        super().__init__()
        self.model, self.pad = model, pad

    def forward(self, tokens: Tensor) -> Tensor:
        mask = (tokens != self.pad).to(torch.int64)
        embeddings = self.model({"input_ids": tokens, "attention_mask": mask})["sentence_embedding"]
        return F.normalize(embeddings.float(), dim=-1)


def open_hugging(name: str) -> Encoder:
    """Raises SeqscopeError where the package is missing, or the model is, or cannot be read."""
    if not name or (not Path(name).is_dir() and not _NAME.fullmatch(name)):
        raise UsageError(
            f"{name!r} is no text encoder: neither minilm, scratch or auto, nor a folder, nor a name such as "
            "intfloat/multilingual-e5-small"
        )
    tokenizers = tokenizers_package()
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise SeqscopeError(
            f"the text encoder {name} needs the package sentence-transformers: `pip install 'seqscope[text]'`"
        )
    try:
        options = {"use_safetensors": True, "attn_implementation": "eager"}  # eager: exports to ONNX for every family
        model = SentenceTransformer(name, device="cpu", trust_remote_code=False, model_kwargs=options)
        backend = model.tokenizer.backend_tokenizer
        tokenizer = tokenizers.Tokenizer.from_str(backend.to_str())
        pad = model.tokenizer.pad_token_id
        written = tokenizer.encode("a").ids
        if pad in written:  # it ends every text (Qwen3-Embedding), and what nobody looks at must be another one
            pad = next((number for number in tokenizer.get_added_tokens_decoder() if number not in written), None)
    except Exception as error:  # what is missing or damaged shows in many ways
        raise SeqscopeError(
            f"the text encoder {name} cannot be had ({first_line(error)[:200]}). Give the path of a folder that holds it."
        )
    if pad is None:
        raise SeqscopeError(
            f"the text encoder {name} has no padding token, so texts cannot share a batch; choose another"
        )
    with torch.inference_mode():
        dim = Borrowed(model, pad)(torch.tensor([[0 if pad else 1]])).shape[1]
    slug = re.sub(r"[^a-z0-9]+", "-", Path(name).name.lower()).strip("-")[:48] or "encoder"
    return Encoder(
        name=slug, title=Path(name).name, source=f"{name}, through sentence-transformers", licence="See the model's own page.",
        module=Borrowed(model, pad).eval(), tokenizer=tokenizer, dim=dim,
        max_length=min(int(model.max_seq_length or MAX_LENGTH), MAX_LENGTH), pad=int(pad),
    )  # fmt: skip
