"""A tokenizer in one safetensors file: its arrays, and as JSON in the metadata its family, settings and facts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from engine.errors import SeqscopeError, UsageError
from engine.files import replacing
from engine.tokenizers.base import Tokenizer
from engine.tokenizers.registry import tokenizers
from engine.training.settings import build_table

FILE = "tokenizer.safetensors"


def save(tokenizer: Tokenizer, path: Path) -> None:
    arrays, facts = tokenizer.parts()
    with replacing(path) as staged:
        save_file(
            {name: np.ascontiguousarray(array) for name, array in arrays.items()}
            or {"nothing": np.zeros(1, np.float32)},
            staged,
            metadata={"tokenizer": json.dumps({"family": tokenizer.name, **facts}, ensure_ascii=False)},
        )


def load(path: Path) -> Tokenizer:
    """Raises SeqscopeError where the file is missing, damaged or of another version."""
    try:
        with safe_open(path, "numpy") as file:
            facts = json.loads((file.metadata() or {})["tokenizer"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        tokenizer = tokenizers()[facts.pop("family")]
        return tokenizer.restore(build_table(tokenizer.Config, facts.pop("config"), str(path)), arrays, facts)
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RuntimeError, UsageError) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise SeqscopeError(
            f"{path} is no tokenizer that this version reads ({reason}). Run `seqscope tokenize` again."
        )
