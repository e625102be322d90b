"""The models, the data, and what every number and picture means."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from app import glossary, guard, zoo
from app.analysis import model_card
from app.screens.about import cards as views
from app.session import state
from app.text import count, md
from engine.runtime import Zoo


def page() -> None:
    st.title("About")
    st.markdown(
        "Seqscope trains sequential recommenders under one frozen protocol and looks inside them: what comes next after a "
        "history, what the model looked at, and how good it is."
    )
    models = zoo.open_zoo(state.get().dataset)
    for part, words in ((_data, "the data"), (_models, "the models")):
        with guard.watch(words):
            part(models)
    _entries("Metrics", "metrics", glossary.METRICS)
    _entries("Codes of items", "codes", glossary.CODES)
    _entries("Views", "views", glossary.VIEWS)
    st.header("Limits", anchor="limits")
    st.markdown("\n".join(f"- {words}" for words in views.LIMITS))


def _data(models: Zoo) -> None:
    info = models.info
    st.header("The data", anchor="data")
    st.markdown(f"**{md(info.title)}**")
    if info.simulated:
        st.info(
            "The people and their histories are simulated: nobody's behaviour is in this data.",
            icon=":material/science:",
        )
    remarks = views.source(info)[1:]
    if remarks:
        st.markdown("\n".join(f"- {remark}" for remark in remarks))
    _card(views.data_card(info), f"The dataset {md(info.title)}.")


def _models(models: Zoo) -> None:
    st.header("The models", anchor="models")
    if not models.bundles:
        st.info("This dataset has no models yet. Train and export one with `seqscope train` and `seqscope export`.")
    for name, bundle in models.bundles.items():
        with st.container(border=True):
            st.subheader(f"{zoo.style(models, name).sign} {md(bundle.manifest.title)}", anchor=f"model-{name}")
            st.markdown(md(bundle.manifest.summary, 2_000))
            _card(views.model_card(bundle), f"The model {md(bundle.manifest.title)}.")
            if model_card.too_few_known(bundle.manifest.unknown):
                st.warning(model_card.FEW_KNOWN, icon=":material/spellcheck:")
            missing = views.cannot(bundle)
            if missing:
                with st.expander(f"What it cannot do: {count(len(missing), 'thing')}", type="compact"):
                    st.markdown("\n".join(f"- {words}" for words in missing))
    for refusal in models.refused:
        st.warning(md(f"Refused: {refusal}", 1_000), icon=":material/block:")


def _card(card: dict[str, str], alt: str) -> None:
    rows = {f"**{term}**": meaning for term, meaning in card.items()}
    st.table(rows, border="horizontal", hide_header=True, alt=alt)


def _entries(title: str, anchor: str, entries: Sequence[glossary.Entry]) -> None:
    st.header(title, anchor=anchor)
    for entry in entries:
        st.markdown(f"**{md(entry.term)}**  \n{md(entry.meaning, 1_000)} :small[:gray[{md(entry.source)}]]")


page()
