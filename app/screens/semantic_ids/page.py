"""Semantic IDs: the codes that tokenizers give to items, any two side by side, a section at a time."""

import streamlit as st

from app import glossary, guard, zoo
from app.components import choice, sections
from app.screens.semantic_ids import NOBODY, SECTIONS, codebook_use, measures, opens_with, prefixes, tokenizers
from app.screens.semantic_ids.selection import Selection
from app.session import state
from app.text import md
from engine.errors import SeqscopeError

DRAWN = {
    "overview": measures.overview,
    "codebooks": codebook_use.show,
    "tree": prefixes.show,
    "collisions": measures.collisions,
    "item": prefixes.look_up,
    "generated": measures.generation_bias,
}


def show() -> None:
    st.title("Semantic IDs", help=glossary.tooltip("Semantic IDs"))
    st.markdown(
        "A tokenizer gives every item a short sequence of codes, its semantic ID, from coarse to fine; generative models "
        "recommend by generating these."
    )
    now = state.get()
    models = zoo.open_zoo(now.dataset)
    refused = [refusal for refusal in models.refused if refusal.name.startswith("identifiers/")]
    if not models.tokenizations:
        uploaded = zoo.is_own(now.dataset)
        how = (
            "*Your data* makes them of the words of the items, and with a model that generates them."
            if uploaded
            else "Make some, and export them beside the models:"
        )
        st.info(f"This dataset has no semantic IDs yet. {how}", icon=":material/account_tree:")
        if not uploaded:
            wordless = not models.info.attributes and list(models.titles) == list(models.item_ids)
            name = "p5-cid" if wordless and models.has_log else "rqvae"
            st.code(
                f"seqscope tokenize {name} --dataset data/NAME\nseqscope export runs/NAME/{name} --to exports/NAME",
                language=None,
            )
    else:
        page = chosen()
        opened = sections.opened(SECTIONS, key="semantic_ids", default=opens_with(now.own))
        with opened as section, guard.watch(SECTIONS[section].lower()):
            DRAWN[section](page)
    for refusal in refused:
        st.caption(f":material/block: {md(f'Refused: {refusal}', 600)}")


def chosen() -> Selection:
    """The tokenizers side by side."""
    now = state.get()
    models, catalogue = zoo.open_zoo(now.dataset), zoo.open_catalogue(now.dataset)
    titles = {name: tokenization.about.title for name, tokenization in models.tokenizations.items()}
    left, right = tokenizers(models, now.own)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        left = choice.selected(
            "Tokenizer", "left", titles, left, key=f"semantic_left_{now.dataset}", clears=("of", "prefix"), width=260
        )
        beside = {NOBODY: "None", **{name: title for name, title in titles.items() if name != left}}
        choice.selected(
            "Compare with",
            "right",
            beside,
            right or NOBODY,
            key=f"semantic_right_{now.dataset}",
            clears=("of", "prefix"),
            width=260,
            disabled=len(titles) == 1,
        )
    names = [left] if right is None or right == left else [left, right]
    shown = []
    for name in names:
        try:
            _ = models.tokenizations[name].learned
            shown.append(name)
        except SeqscopeError as error:
            st.error(md(f"{titles[name]} cannot be shown: {guard.shown(error)}", 600), icon=":material/error:")
    if not shown:
        raise SeqscopeError("None of the chosen tokenizers can be read. Choose another one, or export them again.")
    return Selection(models, catalogue, tuple(shown))


show()
