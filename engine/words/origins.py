"""A text encoder by its name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from engine.errors import UsageError
from engine.unknown import known
from engine.words.encoder import Encoder
from engine.words.text import Fields, attributes


def find(
    name: str,
    *,
    items: pa.Table | None = None,
    fields: Fields = None,
    cache: Path | None = None,
    device: str = "cpu",
) -> Encoder:
    """The encoder that `name` names. "scratch" and "auto" need `items` and a folder, `cache`, to train in.

    minilm     all-MiniLM-L6-v2, English (engine.words.minilm)
    scratch    trained on the texts of `items` (engine.words.scratch); the folder of one that was trained before is a name, too
    auto       minilm where it is installed and knows the words of `items`, else scratch
    otherwise  a sentence-transformers or Hugging Face encoder by name or local path (engine.words.hugging)
    """
    if name == "auto":
        return choose(items, fields, cache, device)
    if name == "minilm":
        from engine.words.minilm import open_minilm

        return open_minilm()
    if name == "scratch":
        from engine.words.scratch import scratch

        if items is None or cache is None:
            raise UsageError("the text encoder scratch is trained on a catalogue; name a dataset")
        return scratch(attributes(items, fields), cache, device=device)
    if (Path(name) / "scratch.json").is_file():
        from engine.words.scratch import open_scratch

        return open_scratch(Path(name))
    from engine.words.hugging import open_hugging

    return open_hugging(name)


def choose(items: pa.Table | None, fields: Fields, cache: Path | None, device: str) -> Encoder:
    """minilm where it is installed and its tokenizer knows the words, else an encoder trained on the catalogue."""
    from engine.words.minilm import folder

    if folder() is not None:
        encoder = find("minilm")
        if items is None or known(encoder.tokenizer, values(items, fields)).tolerable:
            return encoder
    return find("scratch", items=items, fields=fields, cache=cache, device=device)


def values(items: pa.Table, fields: Fields = None) -> list[str]:
    """What the catalogue itself says, without the names of its columns."""
    return [value for pairs in attributes(items, fields) for _, value in pairs]
