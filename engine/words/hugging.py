"""Any encoder of sentence-transformers or Hugging Face, by name or local path, through the package sentence-transformers.

Nothing is unpickled (safetensors alone) and no code of a model is run. A name that is not on this machine yet is downloaded by
that package; where there is no network, give a path.
"""

from __future__ import annotations

import re
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.errors import SeqscopeError, UsageError
from engine.words.encoder import Encoder, tokenizers_package

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
            f"--encoder {name}: neither minilm, scratch or auto, nor a folder, nor a name such as intfloat/multilingual-e5-small"
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
    except Exception as error:  # what is missing or damaged shows in many ways
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise SeqscopeError(
            f"the text encoder {name} cannot be had ({reason}). Give the path of a folder that holds it."
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
