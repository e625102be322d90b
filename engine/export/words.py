"""Write a text encoder as a folder that `engine.runtime.text` reads without torch: checked before it appears."""

from __future__ import annotations

import hashlib
import logging
import warnings
from pathlib import Path

import numpy as np
import torch

from engine import __version__
from engine.bundle.errors import BundleError
from engine.bundle.manifest import File
from engine.errors import SeqscopeError
from engine.export.graphs import OPSET, serialised
from engine.export.side import staged
from engine.runtime.text import ABOUT, TEXT_ENCODER, TOKENIZER, TextEncoder, Words
from engine.words import Encoder

TOLERANCE = 1e-4
# Several scripts, nothing at all, one word, and more than any encoder reads.
PROBES = (
    "", "film", "A cinema projectionist accused of stealing a watch falls asleep.", "Crème hydratante, 50 ml; catégorie: soin",
    "보습 수분 크림", "七人の侍", "كريم مرطب للبشرة الجافة", "Увлажняющий крем", "💄 !?", "word " * 600,
)  # fmt: skip


def export_words(encoder: Encoder, out: Path) -> Path:
    """Write `encoder` as `out`/<its name>; returns that folder. One that is there already and still works is left alone.

    Raises SeqscopeError where the graph cannot be made or does not answer as PyTorch does.
    """
    target = out / encoder.name
    if is_current(encoder, target):
        return target
    with staged(target) as folder:
        _fill(folder, encoder)
    return target


def is_current(encoder: Encoder, target: Path) -> bool:
    """Whether `target` already holds this encoder and answers."""
    try:
        found = TextEncoder.open(target)
        return found.about.digest == encoder.digest and len(found.embed(["film"])) == 1
    except BundleError:
        return False


def _fill(folder: Path, encoder: Encoder) -> None:
    (folder / TOKENIZER).write_text(encoder.tokenizer.to_str(), "utf-8")
    _write_graph(encoder, folder / TEXT_ENCODER)
    about = Words(
        name=encoder.name, title=encoder.title, source=encoder.source, licence=encoder.licence, dim=encoder.dim,
        max_length=encoder.max_length, pad=encoder.pad, pooling="made by the graph; vectors have unit length",
        digest=encoder.digest, max_abs_difference=0.0, created_by=f"seqscope {__version__}, torch {torch.__version__}",
        files={name: _file(folder / name) for name in (TOKENIZER, TEXT_ENCODER)},
    )  # fmt: skip
    (folder / ABOUT).write_text(about.model_dump_json(indent=1) + "\n", "utf-8")
    difference = float(np.abs(TextEncoder.open(folder).embed(PROBES) - encoder.embed(PROBES)).max())
    if not difference <= TOLERANCE:
        raise SeqscopeError(
            f"the exported text encoder {encoder.name} differs from PyTorch by {difference:.1e}, more than {TOLERANCE:.0e}; "
            "nothing was exported"
        )
    about = about.model_copy(update={"max_abs_difference": difference})
    (folder / ABOUT).write_text(about.model_dump_json(indent=1) + "\n", "utf-8")


def _write_graph(encoder: Encoder, path: Path) -> None:
    module = encoder.module.cpu().eval()  # the exporter would keep dropout in the graph otherwise
    vocabulary = encoder.tokenizer.get_vocab_size()
    example = 1 + torch.arange(14).reshape(2, 7) % max(1, vocabulary - 1)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # about torchvision and pytree internals
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            program = torch.onnx.export(
                module, (example,), None, input_names=["tokens"], output_names=["vectors"],
                dynamic_shapes={"tokens": {0: "batch", 1: "length"}}, opset_version=OPSET, dynamo=True,
                external_data=False, verbose=False,
            )  # fmt: skip
        except Exception as error:  # torch.onnx has many ways to say that a network cannot be a graph
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
            raise SeqscopeError(f"the text encoder {encoder.name} cannot be written as an ONNX graph ({reason})")
        finally:
            logging.disable(before)
    assert program is not None
    path.write_bytes(serialised(program.model_proto))


def _file(path: Path) -> File:
    with path.open("rb") as file:
        return File(sha256=hashlib.file_digest(file, "sha256").hexdigest(), bytes=path.stat().st_size)
