"""A text encoder trained on one catalogue alone, for scripts and words that pretrained ones do not know.

A small BERT learns to find an item among others by half of what is said about it: every step takes a batch of items and two
views of each, and a view must be nearer to the other view of its item than to those of the other items (InfoNCE). Views are
either the first attribute against the others (a title against its categories), or the whole text twice, with other tokens and
other units dropped (Gao et al., SimCSE, EMNLP 2021, section 3; from scratch dropout alone is too easy a task).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.console import Progress
from engine.errors import SeqscopeError, first_line
from engine.files import claimed, replacing, write_json
from engine.text.attributes import SEPARATOR
from engine.text.bert import Bert, BertConfig, Sentence
from engine.text.encoder import Encoder
from engine.text.tokenizer import CLS, PAD, learn, padded, tokenizers_package

ABOUT, TOKENIZER, WEIGHTS, CHECKPOINT = (
    "scratch.json",
    "tokenizer.json",
    "encoder.safetensors",
    "checkpoint.safetensors",
)
CHECKPOINT_SECONDS = 20.0
VERSION = 1

Attributes = Sequence[Sequence[tuple[str, str]]]


@dataclass(frozen=True)
class ScratchConfig:
    vocabulary: int = 8_000
    """Tokens learnt at most."""
    dim: int = 128
    """Width of states and vectors."""
    layers: int = 2
    """Transformer layers."""
    heads: int = 4
    """Attention heads."""
    max_length: int = 64
    """Tokens read of one text."""
    dropout: float = 0.1
    """In the network."""
    dropped_tokens: float = 0.2
    """Share of a view's tokens that are left out in training."""
    steps: int = 400
    """Training steps."""
    batch: int = 128
    """Items in a step; all but one are wrong answers for each."""
    lr: float = 1e-3
    """AdamW's, after a rise over the first tenth of the steps; it falls to 0."""
    temperature: float = 0.05
    """Cosines are divided by it (SimCSE's)."""
    seed: int = 0


DEFAULT = ScratchConfig()


def scratch(items: Attributes, folder: Path, config: ScratchConfig | None = None, device: str = "cpu") -> Encoder:
    """The encoder of these items (see engine/text/attributes.py), trained now or found in `folder` where that was done before.

    An interrupted training goes on where it was. Raises SeqscopeError where there are no words to learn from.
    """
    config = config or DEFAULT
    with_text = [pairs for pairs in items if pairs]
    if len({tuple(pairs) for pairs in with_text}) < 2:
        raise SeqscopeError(
            "fewer than two items of this catalogue have any text, so there is nothing to learn words from"
        )
    words = json.dumps([VERSION, dataclasses.asdict(config), [list(map(list, pairs)) for pairs in with_text]])
    identity = hashlib.sha256(words.encode()).hexdigest()
    target = folder / f"scratch-{identity[:16]}"
    if not (target / ABOUT).exists():
        with claimed(target):
            _train(with_text, config, target, identity, device)
    return open_scratch(target)


def open_scratch(folder: Path) -> Encoder:
    """An encoder that `scratch` has trained."""
    package = tokenizers_package()
    try:
        about = json.loads((folder / ABOUT).read_text("utf-8"))
        config = ScratchConfig(**about["config"])
        tokenizer = package.Tokenizer.from_file(str(folder / TOKENIZER))
        module = _network(config, tokenizer.get_vocab_size(), None)
        module.load_state_dict(load_file(folder / WEIGHTS))
    except (Exception, SafetensorError) as error:  # tokenizers raises Exception itself
        raise SeqscopeError(
            f"{folder} holds no text encoder that can be read ({first_line(error)[:200]}). Delete it, and it is trained again."
        )
    return Encoder(
        name="scratch", title="an encoder trained on the catalogue", source="trained from scratch on the catalogue's own texts",
        licence="That of the catalogue.", module=module.eval(), tokenizer=tokenizer, dim=config.dim,
        max_length=config.max_length, pad=PAD,
    )  # fmt: skip


def _network(config: ScratchConfig, vocabulary: int, generator: torch.Generator | None) -> Sentence:
    bert = BertConfig(
        vocabulary,
        config.dim,
        config.layers,
        config.heads,
        4 * config.dim,
        config.max_length,
        1,
        config.dropout,
        pad=PAD,
    )
    return Sentence(Bert(bert, generator))


def _train(items: Attributes, config: ScratchConfig, target: Path, identity: str, device: str) -> None:
    tokenizer = learn((value for pairs in items for _, value in pairs), config.vocabulary)
    values = [[value for _, value in pairs] for pairs in items]
    first = _tokens(tokenizer, [value[0] for value in values], config)
    rest = _tokens(tokenizer, [SEPARATOR.join(value[1:]) for value in values], config)
    module = _network(config, tokenizer.get_vocab_size(), torch.Generator().manual_seed(config.seed)).to(device)
    optimiser = torch.optim.AdamW(module.parameters(), lr=config.lr, weight_decay=0.01)
    start = _resume(target / CHECKPOINT, identity, module, optimiser)
    progress = Progress(config.steps, "Training a text encoder on the catalogue")
    saved = time.monotonic()
    for step in range(start, config.steps):
        # a step draws from nothing but its own number, so an interrupted training repeats it exactly
        rng = np.random.default_rng([config.seed, step])
        rows = rng.choice(len(items), min(config.batch, len(items)), replace=False)
        left, right = _views([first[row] for row in rows], [rest[row] for row in rows], config, rng)
        for group in optimiser.param_groups:
            group["lr"] = config.lr * min(1.0, 10 * (step + 1) / config.steps, (config.steps - step) / config.steps)
        with torch.random.fork_rng(["cuda"] if device.startswith("cuda") else []):
            torch.manual_seed(config.seed * 1_000_003 + step)
            module.train()
            loss = contrast(
                _encode(module, left, device), _encode(module, right, device), left, right, config.temperature
            )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        progress.update(step + 1, f"loss {loss.item():.2f}", "")
        if time.monotonic() - saved > CHECKPOINT_SECONDS:
            _save(target / CHECKPOINT, identity, module, optimiser, step + 1)
            saved = time.monotonic()
    with replacing(target / TOKENIZER) as staged:
        staged.write_text(tokenizer.to_str(), "utf-8")
    with replacing(target / WEIGHTS) as staged:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in module.state_dict().items()}, staged)
    # written last: a folder with it is complete
    write_json(target / ABOUT, {"identity": identity, "config": dataclasses.asdict(config), "items": len(items)})
    (target / CHECKPOINT).unlink(missing_ok=True)


def contrast(left: Tensor, right: Tensor, left_tokens: Views, right_tokens: Views, temperature: float) -> Tensor:
    """InfoNCE in both directions. left, right: unit vectors [batch, dim]; row i of one belongs to row i of the other.

    Items that say the very same (two in one category) are no wrong answers for each other.
    """
    logits = left @ right.T / temperature
    same = torch.tensor(
        [[i != j and (a == c or b == d) for j, (c, d) in enumerate(zip(left_tokens.sources, right_tokens.sources, strict=True))]
         for i, (a, b) in enumerate(zip(left_tokens.sources, right_tokens.sources, strict=True))]
    )  # fmt: skip
    logits = logits.masked_fill(same.to(logits.device), -torch.inf)
    target = torch.arange(len(logits), device=logits.device)
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2


@dataclass(frozen=True)
class Views:
    """One view of each item of a batch: tokens as the network reads them, and all that was there before some were dropped."""

    read: list[list[int]]
    sources: list[tuple[int, ...]]


def _views(
    first: list[list[int]], rest: list[list[int]], config: ScratchConfig, rng: np.random.Generator
) -> tuple[Views, Views]:
    left, right = Views([], []), Views([], [])
    for title, others in zip(first, rest, strict=True):
        apart = bool(others) and rng.random() < 0.5
        a, b = (title, others) if apart else (title + others, title + others)
        for views, tokens in ((left, a), (right, b)):
            views.sources.append(tuple(tokens))
            remaining = np.flatnonzero(rng.random(len(tokens)) >= config.dropped_tokens)
            if not len(remaining):
                remaining = np.arange(len(tokens))
            views.read.append([CLS, *(tokens[position] for position in remaining[: config.max_length - 1])])
    return left, right


def _tokens(tokenizer: object, texts: list[str], config: ScratchConfig) -> list[list[int]]:
    encodings = tokenizer.encode_batch(texts, add_special_tokens=False)  # type: ignore[attr-defined]
    return [encoding.ids[: config.max_length - 1] for encoding in encodings]


def _encode(module: Sentence, views: Views, device: str) -> Tensor:
    embeddings: Tensor = module(torch.tensor(padded(views.read, PAD), device=device))
    return embeddings


def _save(path: Path, identity: str, module: Sentence, optimiser: torch.optim.Optimizer, step: int) -> None:
    tensors = {f"model.{name}": tensor for name, tensor in module.state_dict().items()}
    for number, entries in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{number}.{name}": value for name, value in entries.items()}
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    with replacing(path) as staged:
        save_file(tensors, staged, metadata={"identity": identity, "step": str(step)})


def _resume(path: Path, identity: str, module: Sentence, optimiser: torch.optim.Optimizer) -> int:
    """Steps done; 0 where there is no checkpoint of this training or it cannot be read."""
    try:
        with safe_open(path, "pt") as file:
            about = file.metadata() or {}
            if about.get("identity") != identity:
                return 0
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith("optimiser."):
                _, number, key = name.split(".", 2)
                state.setdefault(int(number), {})[key] = tensor
        module.load_state_dict(
            {name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}
        )
        optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
        return int(about["step"])
    except (OSError, SafetensorError, KeyError, ValueError, RuntimeError):
        return 0
