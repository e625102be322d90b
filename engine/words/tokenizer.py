"""A tokenizer learnt from a catalogue: byte pairs (Sennrich et al., ACL 2016), over bytes, so that no script is unknown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from engine.words.encoder import tokenizers_package

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PAD, CLS, SEP, MASK = range(4)
SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")


def learn(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """A tokenizer of at most `vocabulary` tokens (the 256 bytes and four special ones among them); a text begins with [CLS].

    Compatibility forms and case are folded first (NFKC, lowercase), so that ＡＢＣ and abc are one word.
    """
    package = tokenizers_package()
    tokenizer = package.Tokenizer(package.models.BPE())
    normalizers, levels = package.normalizers, package.pre_tokenizers
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = levels.ByteLevel(add_prefix_space=True)
    tokenizer.post_processor = package.processors.TemplateProcessing("[CLS] $A", special_tokens=[("[CLS]", CLS)])
    trainer = package.trainers.BpeTrainer(
        vocab_size=max(vocabulary, 256 + len(SPECIAL)), min_frequency=2, special_tokens=list(SPECIAL),
        initial_alphabet=levels.ByteLevel.alphabet(), show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator(texts, trainer)
    trained: Tokenizer = tokenizer
    return trained
