"""Attention, asked once and kept: of one history, of its words, and the mean over many people's."""

from __future__ import annotations

import numpy as np
import streamlit as st

from app.kept import until_deleted
from app.views import attention_own, attention_words
from app.views.attention import Profile, by_item
from engine.runtime import AttentionMap, Bundle, WordAttention, Zoo, last_row

SIZE = 15  # positions of the mean, as in SASRec's paper
PEOPLE = 200
_NUMBERS = 20_000_000  # weights to compute for one profile, at most


def attention(models: Zoo, model: str, history: tuple[int, ...]) -> AttentionMap:
    """What the model looked at. Raises SeqscopeError where it cannot say."""
    return _attention(models, model, models.bundles[model].digest, history)


def profile(models: Zoo, model: str) -> Profile | None:
    """The mean over a sample of the zoo's people; None where nobody has a history that is long enough."""
    return _profile(models, model, models.bundles[model].digest)


def word_attention(models: Zoo, model: str, history: tuple[int, ...]) -> WordAttention:
    """Which words the model looked at. Raises SeqscopeError where it reads none."""
    return _word_attention(models, model, models.bundles[model].digest, history)


def cut_words(models: Zoo, model: str, history: tuple[int, ...]) -> frozenset[tuple[int, str]]:
    """(item, attribute) of the history whose words the model reads only in part, because they are too many."""
    return _cut_words(models, model, models.bundles[model].digest, history)


def own_words(models: Zoo, model: str, history: tuple[int, ...], item: int) -> attention_own.OwnWords | None:
    """What the item's own words do for its score; None where that cannot be asked."""
    return _own_words(models, model, models.bundles[model].digest, history, item)


@until_deleted
@st.cache_data(max_entries=100, show_spinner=False)
def _attention(_zoo: Zoo, model: str, digest: str, history: tuple[int, ...]) -> AttentionMap:
    return _zoo.bundles[model].attention(history)


@until_deleted
@st.cache_data(max_entries=100, show_spinner=False)
def _word_attention(_zoo: Zoo, model: str, digest: str, history: tuple[int, ...]) -> WordAttention:
    return _zoo.bundles[model].word_attention(history)


@until_deleted
@st.cache_data(max_entries=100, show_spinner=False)
def _cut_words(_zoo: Zoo, model: str, digest: str, history: tuple[int, ...]) -> frozenset[tuple[int, str]]:
    bundle = _zoo.bundles[model]
    reads, tokenizer = bundle.manifest.text, bundle.reader.tokenizer
    assert reads is not None
    found = word_attention(_zoo, model, history)
    items = sorted({word.item for word in found.words})
    rows = _zoo.rows(items).to_pylist()
    texts = {item: attention_own.text(row, reads.fields) for item, row in zip(items, rows, strict=True)}

    def pieces(text: str) -> list[int]:
        return [word or 0 for word in tokenizer.encode(text, add_special_tokens=False).word_ids]

    return attention_words.cut(found, texts, pieces, reads.limit)


@until_deleted
@st.cache_data(max_entries=200, show_spinner=False)
def _own_words(
    _zoo: Zoo, model: str, digest: str, history: tuple[int, ...], item: int
) -> attention_own.OwnWords | None:
    return attention_own.measure(_zoo, model, history, item)


@until_deleted
@st.cache_data(max_entries=50, show_spinner="Reading the histories of a sample of people …")
def _profile(_zoo: Zoo, model: str, digest: str) -> Profile | None:
    return measure(_zoo, _zoo.bundles[model])


def measure(models: Zoo, bundle: Bundle, people: int = PEOPLE, seed: int = 0) -> Profile | None:
    """The mean over at most `people` of the zoo's people, drawn at random with a fixed seed."""
    shape = bundle.manifest.attention
    if shape is None or not models.users.num_rows:
        return None
    window = shape.window + shape.next_token
    codes = bundle.identifiers.levels if shape.unit == "codes" else 1
    many = max(10, min(people, _NUMBERS // (shape.layers * shape.heads * (codes * window) ** 2)))
    order = np.random.default_rng(seed).permutation(models.users.num_rows)[:many]
    histories = [models.users["history"][int(row)].as_py()[-bundle.manifest.encoder.max_length :] for row in order]
    lengths = [min(len(history), shape.window) + shape.next_token for history in histories]
    size = _size(lengths, window)
    if size < 2:
        return None
    last = np.zeros((shape.layers, shape.heads, size))
    rows = np.zeros((shape.layers, size, size))
    even = np.zeros(size)
    found = 0
    for history, length in zip(histories, lengths, strict=True):
        if length < size:
            continue
        seen = by_item(bundle.attention(history))
        for layer in range(shape.layers):
            for head in range(shape.heads):
                last[layer, head] += last_row(seen, layer, head)[-size:]
        rows += seen.weights.mean(axis=1)[:, -size:, -size:]
        even += 1 / length
        found += 1
    back = tuple(range(size - shape.next_token, -shape.next_token, -1))
    return Profile(found, len(histories), back, last / found, rows / found, even / found)


def _size(lengths: list[int], window: int) -> int:
    """How many positions to look at: as many as the paper did, fewer where most people have fewer."""
    return int(min(SIZE, window, np.median(lengths))) if lengths else 0
