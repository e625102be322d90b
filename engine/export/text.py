"""What bundles of models that know items by their text have beside the others, and text encoders as folders of their own.

`write_text`, of a model that reads words itself:

    item_encoder.onnx   tokens, kinds int64 [batch, length], 0 in `kinds` where a text has ended → rows float32 [batch, dim]
    tokenizer.json      of the package tokenizers
    words.parquet       item, word, attribute, key, tokens: what is read of each item, a row per word

`write_sentence`, of a model that compares texts: centre.npy, what was taken off every vector. The text encoder lies outside the
bundle: one that was trained on the catalogue goes to exports/<dataset>/words/<name>, any other is found where the app has its
encoders (`export_words`, which `engine.runtime.text` reads without torch).
"""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from torch import Tensor

from engine import __version__
from engine.bundle.errors import BundleError
from engine.bundle.manifest import Sentence, Text
from engine.data.words import TOKENIZER, ItemWords, parse
from engine.errors import SeqscopeError, first_line
from engine.export import graphs, vectors
from engine.export.staging import Draft, file_of, staged
from engine.models.recformer import Recformer
from engine.models.text_neighbours import TextNeighbours
from engine.runtime.text import ABOUT, CENTRE, TEXT_ENCODER, TEXT_ENCODERS, TextEncoder, Words
from engine.text.embeddings import find
from engine.text.encoder import Encoder
from engine.training import texts
from engine.training.materials import SCRATCH, TextVectors

ITEMS = 64


def widen(model: Recformer, words: ItemWords) -> None:
    """Room in the graphs for as many words as any item of any catalogue may have, for `engine.export.transfer`."""
    count = max(model.config.attributes, len(words.fields))
    model.widen(min(count * words.limit, model.max_tokens - 1))


def write_text(model: Recformer, draft: Draft) -> None:
    """item_encoder.onnx, tokenizer.json, words.parquet and attention.onnx."""
    folder, words = draft.folder, ItemWords.read(draft.run)
    widen(model, words)
    encoder = model.item_encoder()

    def item(tokens: Tensor, kinds: Tensor) -> Tensor:
        real = kinds > 0
        return encoder.direction(encoder.opened(tokens, kinds, real.long(), real, tokens))

    unknown = round(texts.understood(draft.recipe.model, draft.data, parse(words.tokenizer)).share, 4)
    items = {"items": graphs.histories(model)}
    attention = graphs.Function(model, lambda items: model.looked_at(items)[1:])
    graphs.save(attention, items, ["attention", "words"], folder / "attention.onnx")
    example, free = torch.ones(2, 7, dtype=torch.int64), {0: "batch", 1: "length"}
    inputs = {"tokens": (example, free), "kinds": (example.clone(), free)}
    graphs.save(graphs.Function(encoder, item), inputs, ["rows"], folder / "item_encoder.onnx")
    (folder / TOKENIZER).write_text(words.tokenizer, "utf-8")
    pq.write_table(words.by_word(), folder / "words.parquet", compression="zstd")
    draft.checks.append(lambda: compare_items(model, folder, words))
    draft.text = Text(
        fields=list(words.fields), limit=words.limit, max_tokens=model.max_tokens, longest=model.table.shape[1],
        vocabulary=words.vocabulary, unknown=unknown,
    )  # fmt: skip


@torch.no_grad()
def compare_items(model: Recformer, folder: Path, words: ItemWords) -> None:
    """The item graph against the rows of the index, on items of all lengths. Raises SeqscopeError where it does not answer as
    PyTorch does."""
    encoder = model.item_encoder()
    rows = np.argsort(words.lengths, kind="stable")[:: max(1, len(words) // ITEMS)]
    graph = graphs.session(folder / "item_encoder.onnx")
    longest = model.max_tokens - 1  # [CLS] comes first
    tokens = words.table(words.tokens, words.pad)[rows, :longest]
    kinds = words.table(words.kinds, 0)[rows, :longest]
    got = graph.run(["rows"], {"tokens": tokens, "kinds": kinds})[0]
    expected = encoder.matrix[torch.from_numpy(rows)].numpy()
    worst = vectors.difference(got, expected)
    if not worst <= vectors.TOLERANCE:
        raise SeqscopeError(f"{encoder.name}: item_encoder.onnx differs from PyTorch by {worst:.2g}; not exported")


def write_sentence(model: TextNeighbours, draft: Draft) -> None:
    """centre.npy, and the encoder where it is the catalogue's own."""
    known = TextVectors.read(draft.run)
    np.save(draft.folder / CENTRE, model.centre.numpy().astype("<f4")[None], allow_pickle=False)
    if known.encoder == SCRATCH:
        encoder = find(known.place)
        if encoder.digest != known.digest:
            raise SeqscopeError(
                f"the text encoder at {known.place} is not the one that {draft.run} was made with. Train again."
            )
        export_words(encoder, draft.out / TEXT_ENCODERS)
    draft.sentence = Sentence(
        encoder=known.encoder, title=known.title, digest=known.digest, fields=list(known.fields), without=known.without,
        unknown=known.unknown,
    )  # fmt: skip


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
        _fill_encoder(folder, encoder)
    return target


def is_current(encoder: Encoder, target: Path) -> bool:
    """Whether `target` already holds this encoder and answers."""
    try:
        there = TextEncoder.open(target)
        return there.about.digest == encoder.digest and len(there.embed(["film"])) == 1
    except BundleError:
        return False


def _fill_encoder(folder: Path, encoder: Encoder) -> None:
    (folder / TOKENIZER).write_text(encoder.tokenizer.to_str(), "utf-8")
    _write_graph(encoder, folder / TEXT_ENCODER)
    about = Words(
        name=encoder.name, title=encoder.title, source=encoder.source, licence=encoder.licence, dim=encoder.dim,
        max_length=encoder.max_length, pad=encoder.pad, pooling="made by the graph; vectors have unit length",
        digest=encoder.digest, max_abs_difference=0.0, created_by=f"seqscope {__version__}, torch {torch.__version__}",
        files={name: file_of(folder / name) for name in (TOKENIZER, TEXT_ENCODER)},
    )  # fmt: skip
    (folder / ABOUT).write_text(about.model_dump_json(indent=1) + "\n", "utf-8")
    difference = float(np.abs(TextEncoder.open(folder).embed(PROBES) - encoder.embed(PROBES)).max())
    if not difference <= vectors.TOLERANCE:
        raise SeqscopeError(
            f"the exported text encoder {encoder.name} differs from PyTorch by {difference:.1e}, more than "
            f"{vectors.TOLERANCE:.0e}; nothing was exported"
        )
    about = about.model_copy(update={"max_abs_difference": difference})
    (folder / ABOUT).write_text(about.model_dump_json(indent=1) + "\n", "utf-8")


def _write_graph(encoder: Encoder, path: Path) -> None:
    vocabulary = encoder.tokenizer.get_vocab_size()
    example = 1 + torch.arange(14).reshape(2, 7) % max(1, vocabulary - 1)
    try:
        graphs.save(encoder.module.cpu(), {"tokens": (example, {0: "batch", 1: "length"})}, ["vectors"], path)
    except Exception as error:  # torch.onnx has many ways to say that a network cannot be a graph
        raise SeqscopeError(
            f"the text encoder {encoder.name} cannot be written as an ONNX graph ({first_line(error)[:200]})"
        )
