"""Compare: the tree of codes that a generator considered until they became items; drawn when somebody asks for it."""

from __future__ import annotations

from contextlib import nullcontext

import streamlit as st

from app import export, glossary, guard, zoo
from app.analysis import beam_search
from app.components import choice
from app.figures import beam_search as figures
from app.screens.compare import MAX_WIDTH, beam_width
from app.session import state
from app.text import clean, md
from engine.errors import SeqscopeError
from engine.runtime import Zoo

_DRAWN = 4  # prefixes per step that were not followed
_SHARE = st.column_config.NumberColumn(format="percent")
_WRITE = {"items": "Existing items", "anything": "Anything"}


def show(models: Zoo, names: list[str], history: tuple[int, ...], k: int) -> None:
    """names: the models that are shown and could answer."""
    able = [name for name in beam_search.generators(models) if name in names]
    if not able:
        st.markdown("None of the models that are shown generates semantic IDs.")
        return
    chosen = state.get().own.get("beam")
    st.session_state["compare_beam"] = chosen = chosen if chosen in able else None
    st.pills(
        "Show the beam of",
        able,
        format_func=lambda name: f"{zoo.style(models, name).sign} {md(_title(models, name))}",
        key="compare_beam",
        on_change=guard.callback(_take),
        help=glossary.tooltip("Beam"),
    )
    if chosen is None:
        st.caption(
            "These models generate an item's semantic ID code by code, and keep the likeliest prefixes: the beam."
        )
        return
    with guard.watch("the beam"):
        _beam(models, chosen, history, k)


def _beam(models: Zoo, name: str, history: tuple[int, ...], k: int) -> None:
    writes = models.bundles[name].manifest.generator
    assert writes is not None
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        default = beam_width(models, name)
        widths = sorted({*beam_search.WIDTHS, default, choice.number(state.get().own, "width", default, MAX_WIDTH)})
        width = int(
            choice.segmented(
                "Beam width",
                "width",
                {str(option): str(option) for option in widths},
                str(default),
                key=f"compare_width_{name}",
                help=f"How many beginnings go on at each step. The model's own answers use {writes.beam} or more.",
            )
        )
        free = (
            choice.segmented(
                "It may write",
                "write",
                _WRITE,
                "items",
                key="compare_write",
                help="Existing items: every code continues some item's identifier. Anything: any code may follow, and what is "
                "written may be no item's identifier.",
            )
            == "anything"
        )
    try:
        trace = beam_search.trace(models, name, history, width, not free)
    except SeqscopeError as reason:
        st.info(md(str(reason)))
        return
    bundle = models.bundles[name]
    tree = beam_search.tree(models, trace, bundle.items_with, _DRAWN, history)
    title = bundle.manifest.title
    st.markdown(beam_search.words(tree, title, width, not free))
    export.figure(
        figures.beam(tree, zoo.style(models, name).colour, writes.names),
        key="compare_beam_tree",
        alt=f"The codes that {clean(title)} considered, step by step, until they became items.",
        table=lambda: beam_search.table(tree),
        name=f"beam {name} {width}",
        columns={"probability of the last code": _SHARE, "probability of all codes": _SHARE},
    )
    note = (
        "Steps from left to right; above each, with how many of the weighed prefixes it went on. A number is a code; a line is "
        "as broad as all codes up to there are likely. Pale: given up "
        f"later. Dotted: the {_DRAWN} likeliest at each step that were not followed; the table has more."
    )
    tied = sum(len(items) > 1 for row, items in enumerate(trace.items) if trace.places[row] >= 0)
    if tied:
        note += f" +: items that share the identifier ({tied} here); the model cannot tell them apart."
    st.caption(f"{note} {beam_search.known_words(tree, not free, bundle.excludes_history)}")
    _faithful(models, name, history, width, k, free)


def _faithful(models: Zoo, name: str, history: tuple[int, ...], width: int, k: int, free: bool) -> None:
    """The beam beside exact scores; asked for by a button where those take long."""
    if free:
        return
    slow = beam_search.slow(models, name, 1)
    if slow and not st.button("Compare with exact scores", key="compare_exact"):
        return
    widths = tuple(sorted({*beam_search.WIDTHS, width}))
    with st.spinner("Scoring every item …") if slow else nullcontext():
        agreements = beam_search.agreement(models, name, history, widths, k)
    st.markdown(beam_search.agreement_words(agreements, width, k))


def _title(models: Zoo, name: str) -> str:
    return models.bundles[name].manifest.title if name in models.bundles else name


def _take() -> None:
    """What comes from the browser is not believed: the page's parameters let pass a generator alone."""
    chosen = st.session_state.get("compare_beam")
    known = beam_search.generators(zoo.open_zoo(state.get().dataset))
    state.choose(beam=chosen if chosen in known else None, width=None, write=None)
