"""An item's own words: what the score of the item that is explained would be without them."""

from __future__ import annotations

import streamlit as st

from app import export, zoo
from app.analysis import word_attention
from app.figures import word_attention as figures
from app.text import clean, md
from app.widgets import explained
from engine.runtime import Zoo

_WORDS = 20  # words that are drawn; the table has all


def show(models: Zoo, name: str, history: tuple[int, ...]) -> None:
    item = explained.wanted(models, name, history)
    if item is None:
        return
    title, aimed = models.bundles[name].manifest.title, zoo.titled(models, item)
    st.subheader("And its own words?")
    with st.spinner("Asking the model about the item without each word …"):
        found = word_attention.measure(models, name, history, item)
    if found is None:
        st.info(
            md(
                f"{aimed} has nothing that could be left out, or the catalogue beside this model does not say of it what the "
                "model was given.",
                1_000,
            )
        )
        return
    st.markdown(
        f"{md(title)} knows the item, too, by its words alone, so it can be asked about one that lacks some of them. "
        f"{word_attention.occlusion_sentence(found, aimed)}"
    )
    shown = word_attention.strongest(found.table, _WORDS)
    export.figure(
        figures.own(shown),
        key="attention_own",
        alt=f"What leaving out each attribute, and each word, of {clean(aimed)} does to its score.",
        table=found.table,
        name=f"leave own words out {name}",
        columns={"effect": st.column_config.NumberColumn(format="%+.4f")},
    )
    note = "Effect: the score of the item as it is minus that without the word or the attribute; later words move up."
    if len(shown) < len(found.table):
        note += f" Drawn are the {_WORDS} words that change the most; the table has all {len(found.table)} rows."
    note += (
        " Words of the history cannot be left out one by one: the exported model takes the items of a history whole."
    )
    st.caption(md(note))
