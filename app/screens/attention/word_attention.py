"""What a model that reads words looked at, by attribute and word by word; and the score of an item without its words."""

import streamlit as st

from app import export, zoo
from app.analysis import word_attention
from app.components import choice, item_picker, sections, widgets
from app.figures import attention as figures
from app.text import clean, md
from engine.runtime import WordAttention, Zoo

_CARDS = 12  # items whose words are drawn; the table has all


def parts(models: Zoo, name: str, history: tuple[int, ...]) -> word_attention.Parts:
    """What each item of the history got, of the layer and head that are chosen."""
    attention = word_attention.word_attention(models, name, history)
    layers, heads = attention.weights.shape[:2]
    layer = choice.mean_or_number("word_layer", layers, str(layers))
    return _parts(models, name, attention, layer, choice.mean_or_number("word_head", heads, "mean"))[1]


def _parts(
    models: Zoo, name: str, attention: WordAttention, layer: int | None, head: int | None
) -> tuple[word_attention.Float, word_attention.Parts]:
    reads = models.bundles[name].manifest.text
    assert reads is not None
    weights = word_attention.weigh(attention, layer, head)
    titles = {word.item: zoo.titled(models, word.item) for word in attention.words}
    return weights, word_attention.parts(attention, weights, titles, reads.fields)


def show(models: Zoo, name: str, history: tuple[int, ...]) -> None:
    bundle = models.bundles[name]
    reads = bundle.manifest.text
    assert reads is not None
    title, colour = bundle.manifest.title, zoo.style(models, name).colour
    attention = word_attention.word_attention(models, name, history)
    layers, heads = attention.weights.shape[:2]
    sections.heading("What the prediction looked at")
    sentence = st.empty()
    with st.container(horizontal=True):
        layer_key = f"attention_word_layer_{layers}"
        layer = choice.mean_or_numbered("Layer", "word_layer", layers, str(layers), key=layer_key)
        head = choice.mean_or_numbered("Head", "word_head", heads, "mean", key=f"attention_word_head_{heads}")
    weights, shares = _parts(models, name, attention, layer, head)
    sentence.markdown(word_attention.sentence(title, attention, weights, shares))
    layer_and_head = f"layer {'mean' if layer is None else layer + 1} head {'mean' if head is None else head + 1}"
    export.figure(
        figures.items(shares.strongest(), widgets.on_phone()),
        key="attention_items",
        alt=f"Attention of {clean(title)} by item, oldest on top, split by attribute.",
        table=shares.table(),
        name=f"attention {name} items {layer_and_head}",
        columns={
            column: widgets.FOUR_DIGITS
            for column in ("weight", "words_alike", *(f"in {attribute}" for attribute in shares.attributes))
        },
    )
    st.caption(md(word_attention.note(attention, weights, layer, head), 2_000))
    sections.heading("Word by word")
    st.markdown(
        "Words as the model reads them, shaded by attention weight (printed from 1% on). Hover for more digits, "
        "or open the table. Tokens of a word are summed."
    )
    blocks = word_attention.blocks(
        attention, weights, shares, _CARDS, word_attention.cut_words(models, name, history), reads.limit
    )
    widgets.shaded_words(
        blocks,
        colour,
        key="attention_words",
        label=f"Words of the history, shaded by the attention of {clean(title)}",
    )
    export.under(
        word_attention.table(
            attention, weights, {word.item: zoo.titled(models, word.item) for word in attention.words}
        ),
        key="attention_words",
        alt=f"Attention of {clean(title)} to each word, oldest item first.",
        name=f"attention {name} words {layer_and_head}",
        columns={"weight": widgets.FOUR_DIGITS},
    )
    shortened = any(line["cut"] for block in blocks for line in block["lines"])
    rest = word_attention.left_out(attention, shares, _CARDS, reads.max_tokens, reads.limit if shortened else 0)
    if rest:
        st.caption(md(rest))


_WORDS = 20  # words that are drawn; the table has all


def token_ablation(models: Zoo, name: str, history: tuple[int, ...]) -> None:
    item = item_picker.explained_item(models, name, history)
    if item is None:
        return
    title, aimed = models.bundles[name].manifest.title, zoo.titled(models, item)
    sections.heading("Token ablation of the item")
    with st.spinner("Asking the model about the item without each word …"):
        own_words = word_attention.measure(models, name, history, item)
    if own_words is None:
        st.info(
            md(
                f"{aimed} has no words to remove, or its text in this catalogue is not the one the model was given.",
                1_000,
            )
        )
        return
    st.markdown(
        f"{md(title)} knows the item, too, by its words alone, so it can be asked about one that lacks some of them. "
        f"{word_attention.occlusion_sentence(own_words, aimed)}"
    )
    shown = word_attention.strongest(own_words.table, _WORDS)
    export.figure(
        figures.token_ablation(shown),
        key="attention_own",
        alt=f"What leaving out each attribute, and each word, of {clean(aimed)} does to its score.",
        table=own_words.table,
        name=f"leave own words out {name}",
        columns={"effect": widgets.SIGNED},
    )
    note = "Effect: the score of the item as it is minus that without the word or the attribute; later words move up."
    if len(shown) < len(own_words.table):
        note += f" Shown: the {_WORDS} words with the largest effect; the table has all {len(own_words.table)} rows."
    note += (
        " Words of the history cannot be left out one by one: the exported model takes the items of a history whole."
    )
    st.caption(md(note))
