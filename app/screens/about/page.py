"""The models, the data, and what every number and picture means, a section at a time."""

import functools
import re
from collections.abc import Sequence

import streamlit as st

from app import glossary, guard, zoo
from app.analysis import evaluation, metrics, model_card
from app.components import sections, widgets
from app.export import file_name
from app.screens.about import SECTIONS, cards
from app.server import downloads
from app.session import state
from app.text import amount, md, slug
from engine.cards import KINDS
from engine.runtime import Zoo
from engine.runtime import protocols as naming
from engine.runtime.zoo import PACKED_BYTES


def page() -> None:
    st.title("About")
    st.markdown(
        "Seqscope trains sequential recommenders under one frozen protocol and looks inside them: what comes next after a "
        "history, what the model looked at, and how good it is."
    )
    models = zoo.open_zoo(state.get().dataset)
    of_kind = {kind: names for kind, title in KINDS.items() if (names := model_card.by_kind(models).get(title))}
    titles = {name: title for name, title in SECTIONS.items() if name not in KINDS or name in of_kind}
    for refusal in models.refused:
        st.warning(md(f"Refused: {refusal}", 1_000), icon=":material/block:")
    if not models.bundles:
        st.info("This dataset has no models yet. Train and export one with `seqscope train` and `seqscope export`.")
    with sections.opened(titles, key="about") as section, guard.watch(SECTIONS[section].lower()):
        if section in of_kind:
            for name in of_kind[section]:
                _model(models, name)
        elif section == "data":
            _data(models)
        elif section == "protocol":
            _protocol(models)
        elif section == "terms":
            _terms()
        else:
            st.markdown("\n".join(f"- {words}" for words in cards.LIMITS))


def _data(models: Zoo) -> None:
    info = models.info
    st.header(md(info.title), anchor="data")
    if info.simulated:
        st.info(
            "The users and their histories are simulated: nobody's behaviour is in this data.",
            icon=":material/science:",
        )
    remarks = cards.source(info)[1:]
    if remarks:
        st.markdown("\n".join(f"- {remark}" for remark in remarks))
    widgets.terms(cards.data_card(info), alt=f"The dataset {md(info.title)}.")


def _protocol(models: Zoo) -> None:
    evaluated = evaluation.protocols(models)
    rankings = {naming.title(name): naming.sentence(name, len(models)) for name in evaluated}
    seeds = evaluation.over_seeds(models, evaluated[0]) if evaluated else ""
    protocol = {
        **rankings,
        "Split": model_card.split_words(models.info.split),
        "Held-out items": " ".join(metrics.held_out_words(models.info)),
        "Model selection": metrics.SELECTION,
        "Intervals": f"{metrics.INTERVALS} {seeds}".strip(),
        "Significance": metrics.SIGNIFICANCE,
    }
    known = {md(term): md(words, 2_000) for term, words in protocol.items() if words}
    widgets.terms(known, alt="How models are evaluated.")


def _model(models: Zoo, name: str) -> None:
    """Closed until somebody opens it."""
    bundle = models.bundles[name]
    title = md(bundle.manifest.title)
    st.markdown(f"**{zoo.style(models, name).sign} {title}**  \n{md(model_card.summary(bundle), 2_000)}")
    if model_card.too_few_known(bundle.manifest.unknown):
        st.warning(model_card.FEW_KNOWN, icon=":material/spellcheck:")
    folded = st.expander(f"Model card of {title}", key=f"about_card_{name}", on_change="rerun", type="compact")
    if not folded.open:
        return
    with folded:
        widgets.terms(cards.model_card(bundle), alt=f"The model {title}.")
        missing = cards.cannot(bundle)
        if missing:
            st.markdown("\n".join([f"**Limitations ({len(missing)})**\n", *(f"- {words}" for words in missing)]))
        _bundle(models, name)


def _bundle(models: Zoo, name: str) -> None:
    """The model to take away."""
    bytes = sum(file.bytes for file in models.bundles[name].manifest.files.values())
    if bytes > PACKED_BYTES:
        st.caption(f"Its bundle has {amount(bytes)}, too much to be packed here: it is a folder on the server.")
        return
    file = file_name("seqscope", models.info.title, name, ending="zip")
    # models of one dataset go into one folder, those of another that is called the same into another
    folder = f"{slug(models.info.title, default='dataset')}-{models.info.fingerprint[:8]}"
    make = functools.partial(models.packed, name, folder)
    help_ = (
        "The model as a folder of ONNX graphs and tables, with the catalogue around it. Unpacked into a "
        "folder of exports, Seqscope shows it; docs/bundle.md says how any other program asks it."
    )
    downloads.button(
        f"Bundle of {amount(bytes)} (ZIP)", make, file, "application/zip", key=f"bundle_{name}", help=help_
    )


def _terms() -> None:
    """Those that a text is in, or all."""
    typed = st.text_input("Find a term", key="about_term", type="search", live="300ms", width=320).strip()
    text = re.sub(r"@\d+", "@k", typed.casefold())
    groups = {"Metrics": glossary.METRICS, "Semantic IDs": glossary.CODES, "Views": glossary.VIEWS}
    fitting = {
        title: [entry for entry in group if text in f"{entry.term} {entry.meaning}".casefold()]
        for title, group in groups.items()
    }
    for title, entries in fitting.items():
        if entries:
            st.header(title, anchor=title.casefold().replace(" ", "-"))
            _entries(entries)
    if not any(fitting.values()):
        st.info(f"No term has “{md(typed, 60)}” in its name or meaning.", icon=":material/search_off:")


def _entries(entries: Sequence[glossary.Entry]) -> None:
    """In two columns where there is room, each read downwards."""
    half = -(-len(entries) // 2)
    for place, part in zip(st.columns(2, gap="large"), (entries[:half], entries[half:]), strict=True):
        with place:
            for entry in part:
                st.markdown(f"**{md(entry.term)}**  \n{md(entry.meaning, 1_000)} :small[:gray[{md(entry.source)}]]")


page()
