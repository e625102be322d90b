"""words.parquet of a bundle: what a model that reads words reads of each item. Needs no torch."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.data.words import KEY, ItemWords, parse


def words_table(words: ItemWords) -> pa.Table:
    """words.parquet, items one after the other. `tokens` says of how many tokens a word is made."""
    from tokenizers.decoders import ByteLevel

    tokenizer = parse(words.tokenizer)
    if tokenizer.decoder is None:  # of byte pairs, which stand for bytes
        tokenizer.decoder = ByteLevel()
    item = np.repeat(np.arange(len(words), dtype=np.int32), words.lengths)
    new = np.ones(len(item), bool)
    new[1:] = (item[1:] != item[:-1]) | (words.words[1:] != words.words[:-1])
    first = np.flatnonzero(new)
    pieces = np.split(words.tokens, first[1:])
    texts = tokenizer.decode_batch([piece.tolist() for piece in pieces], skip_special_tokens=True)
    return pa.table(
        {
            "item": item[first],
            "word": pa.array([text.strip() for text in texts], pa.string()),
            "attribute": words.attributes[first].astype(np.int32),
            "key": (words.kinds[first] == KEY).astype(np.int32),
            "tokens": np.diff(np.append(first, len(item))).astype(np.int32),
        }
    )
