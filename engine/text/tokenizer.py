"""Tokenizers of text: one learnt from a catalogue, and how much of a catalogue's text a tokenizer can read at all.

`learn` makes byte pairs (Sennrich et al., ACL 2016), over bytes, so that no script is unknown. A tokenizer from elsewhere answers
to a word it does not know with [UNK], or it spells the word letter by letter; letters of a script that the network hardly met say
little more than [UNK] does. `known` counts both, per word. `batches` and `padded` make rows of tokens ready for a network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from engine.errors import SeqscopeError
from engine.writing import MARKS, in_percent

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def tokenizers_package() -> Any:
    """The package `tokenizers`, or a sentence that says how to get it."""
    try:
        import tokenizers
    except ImportError:
        raise SeqscopeError("the package tokenizers is not installed; `pip install tokenizers`, or `make install`")
    return tokenizers


PAD, CLS, SEP, MASK = range(4)
SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")


_MARK = re.compile(f"[{MARKS}]")
_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}[\p{L}\p{M}]*| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""As GPT-2's, which `ByteLevel` has, but that marks belong to the word of their letter."""


def learn(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """A tokenizer of at most `vocabulary` tokens (the 256 bytes and four special ones among them); a text begins with [CLS].

    Compatibility forms and case are folded first (NFKC, lowercase), so that ＡＢＣ and abc are one word.
    """
    package = tokenizers_package()
    tokenizer = package.Tokenizer(package.models.BPE())
    normalizers, levels = package.normalizers, package.pre_tokenizers
    texts, folded, words = list(texts), [normalizers.NFKC(), normalizers.Lowercase()], levels.ByteLevel()
    if any(map(_MARK.search, texts)):  # without, the tokenizer is what it always was, and runs of before go on
        folded.append(normalizers.Prepend(" "))
        split = levels.Split(package.Regex(_WORDS), "isolated")
        words = levels.Sequence([split, levels.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Sequence(folded), words
    tokenizer.post_processor = package.processors.TemplateProcessing("[CLS] $A", special_tokens=[("[CLS]", CLS)])
    trainer = package.trainers.BpeTrainer(
        vocab_size=max(vocabulary, 256 + len(SPECIAL)), min_frequency=2, special_tokens=list(SPECIAL),
        initial_alphabet=levels.ByteLevel.alphabet(), show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.encode_special_tokens = True  # "[MASK]" in a title is three words
    trained: Tokenizer = tokenizer
    return trained


SAMPLE = 20_000
"""Texts looked at, drawn at random, where there are more."""
TOLERABLE = 0.2
"""From this share of words on, "auto" leaves an encoder for one trained on the catalogue, and others are warned of."""


@dataclass(frozen=True)
class Known:
    """Words of a catalogue, by what a tokenizer makes of them."""

    words: int
    missing: int
    """No token at all: [UNK], or one in the word."""
    spelt: int
    """Two pieces or more, none of them longer than a character."""

    @property
    def share(self) -> float:
        """0..1: words that the encoder cannot know."""
        return (self.missing + self.spelt) / max(self.words, 1)

    @property
    def tolerable(self) -> bool:
        return self.share < TOLERABLE

    def sentence(self, reader: str, mend: str = "use --encoder scratch") -> str:
        """A line for the console. mend: what to do where too many are unknown."""
        line = (
            f"{in_percent(self.share)} of the words of this catalogue are unknown to {reader} "
            f"({in_percent(self.missing / max(self.words, 1))} have no token, "
            f"{in_percent(self.spelt / max(self.words, 1))} are spelt letter by letter)"
        )
        return line if self.tolerable else f"Warning: {line}; {mend}"


def known(tokenizer: Tokenizer, texts: Sequence[str]) -> Known:
    """Counts words (letters and digits; punctuation is left out) of at most `SAMPLE` texts, always the same."""
    rows = np.random.default_rng(0).permutation(len(texts))[:SAMPLE]  # attributes take turns: no step meets all alike
    sample = [texts[row] for row in rows]
    words = missing = spelt = 0
    unknown = unknown_token(tokenizer)
    for text, encoding in zip(sample, tokenizer.encode_batch(sample, add_special_tokens=False), strict=True):
        pieces: dict[int, list[tuple[int, int, int]]] = {}
        for word, token, (start, end) in zip(encoding.word_ids, encoding.ids, encoding.offsets, strict=True):
            if word is not None:
                pieces.setdefault(word, []).append((token, start, end))
        for parts in pieces.values():
            if not any(c.isalnum() for _, start, end in parts for c in text[start:end]):
                continue
            words += 1
            if any(token == unknown for token, _, _ in parts):
                missing += 1
                continue
            letters = [
                piece for _, start, end in parts if (piece := text[start:end].strip())
            ]  # the space before is no letter
            spelt += len(letters) > 1 and all(len(piece) == 1 for piece in letters)
    return Known(words, missing, spelt)


def unknown_token(tokenizer: Tokenizer) -> int | None:
    """The number of the token for what has none; None where every text can be written."""
    name = getattr(tokenizer.model, "unk_token", None)
    if name is None:  # Unigram keeps a number that its class does not show
        name = next((token for token in ("<unk>", "[UNK]") if tokenizer.token_to_id(token) is not None), None)
    return None if name is None else tokenizer.token_to_id(name)


BATCH_TOKENS = 4096
"""Tokens of one batch: enough to fill a processor, small enough to stay in its cache."""
BATCH_TEXTS = 256


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Rows in batches of like length, shortest first: little padding, and a bounded number of tokens each."""
    rows: list[int] = []
    for row in np.argsort(np.asarray(lengths, np.int64), kind="stable").tolist():
        # the row at hand is the longest so far
        if rows and (len(rows) == BATCH_TEXTS or (len(rows) + 1) * lengths[row] > BATCH_TOKENS):
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def padded(rows: Sequence[Sequence[int]], pad: int) -> npt.NDArray[np.int64]:
    """int64 [rows, longest], filled up on the right; at least one column."""
    table = np.full((len(rows), max(1, max(map(len, rows), default=1))), pad, np.int64)
    for row, tokens in zip(table, rows, strict=True):
        row[: len(tokens)] = tokens
    return table
