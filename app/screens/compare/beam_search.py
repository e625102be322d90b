"""Compare: the tree of codes that a generator considered until they became items; and the list that it ends with."""

from contextlib import nullcontext
from dataclasses import replace

import streamlit as st

from app import export, guard
from app.analysis import beam_search, recommend
from app.analysis.recommend import Answer
from app.components import choice, widgets
from app.figures import beam_search as figures
from app.figures import compare
from app.screens.compare import MAX_WIDTH, TEMPERATURES, WRITE, actions, beam_width
from app.session import state
from app.text import clean, md
from engine.errors import SeqscopeError
from engine.runtime import Zoo

_DRAWN = 4  # prefixes per step that were not followed
_SHARE = st.column_config.NumberColumn(format="percent")
_STEPS = (*range(1, 11), 15, 20, 30, 50, 75, MAX_WIDTH)  # of the slider


def show(models: Zoo, answers: list[Answer], history: tuple[int, ...], k: int) -> None:
    """answers: of the models that are shown."""
    generating = [answer for answer in answers if answer.name in beam_search.generators(models)]
    able = {answer.name: answer for answer in generating if answer.cannot is None}
    if not able:
        reasons = " ".join(md(answer.cannot) for answer in generating)
        st.markdown(reasons or "None of the models that are shown generates semantic IDs.")
        return
    name = choice.segmented(
        "Show the beam of",
        "beam",
        {name: f"{answer.style.sign} {md(answer.title)}" for name, answer in able.items()},
        next(iter(able)),
        key="compare_beam",
        clears=("width", "temperature", "write"),
    )
    with guard.watch("the beam"):
        _beam(models, able[name], history, k)


def _beam(models: Zoo, answer: Answer, history: tuple[int, ...], k: int) -> None:
    name, bundle = answer.name, models.bundles[answer.name]
    writes = bundle.manifest.generator
    assert writes is not None
    sliders = st.columns([2, 2, 3], gap="medium", vertical_alignment="bottom")
    default = beam_width(models, name)
    widths = sorted({*_STEPS, default, choice.number(state.get().own, "width", default, MAX_WIDTH)})
    with sliders[0]:
        width = int(
            choice.stepped("Beam width", "width", [str(w) for w in widths], str(default), key=f"compare_width_{name}")
        )
    with sliders[1]:
        temperature = choice.stepped(
            "Temperature", "temperature", TEMPERATURES, "1", key=f"compare_temperature_{name}", help=_TEMPERATURE
        )
    with sliders[2]:
        free = choice.segmented("Decoding", "write", WRITE, "items", key="compare_write", help=_CONSTRAINED) != "items"
    try:
        trace = beam_search.trace(models, name, history, width, not free, float(temperature))
    except SeqscopeError as reason:
        st.info(md(str(reason)))
        return
    tree = beam_search.tree(models, trace, bundle.items_with, _DRAWN, history)
    st.markdown(beam_search.words(tree, bundle.manifest.title, width, not free))
    with st.container(key="beam_columns"):  # on a phone the list stands first
        drawn, listed = st.columns([3, 1], gap="medium")
    with listed:
        _list(models, answer, recommend.of_trace(bundle, trace, history, k), history, f"beam {width}, τ {temperature}")
    with drawn:
        export.figure(
            figures.beam(tree, answer.style.colour, writes.names, widgets.on_phone()),
            key="compare_beam_tree",
            alt=f"The codes that {clean(answer.title)} considered, step by step, until they became items.",
            table=lambda: beam_search.table(tree),
            name=f"beam {name} {width}",
            columns={"probability of the last code": _SHARE, "probability of all codes": _SHARE},
        )
    note = (
        "Each column is one decoding step; its header shows beams kept / prefixes scored. Numbers are codes; line "
        f"width is the prefix’s probability. Pale: pruned later. Dotted: the {_DRAWN} likeliest pruned per step; the table "
        "has more."
    )
    tied = sum(len(items) > 1 for row, items in enumerate(trace.items) if trace.places[row] >= 0)
    if tied:
        note += f" +: items that share the semantic ID ({tied} here); the model cannot tell them apart."
    st.caption(f"{note} {beam_search.known_words(tree, not free, bundle.excludes_history)}")
    _faithful(models, name, history, width, k, free, float(temperature))


_CONSTRAINED = (
    "Constrained: every code continues some item's semantic ID. Unconstrained: any code may follow, so an ID may belong "
    "to no item."
)
_TEMPERATURE = (
    "Divides the logits of every step before the softmax over the allowed codes: below 1 sharpens, above 1 flattens it; "
    "1 is the model as trained. Each step is normalised separately, so the order of the items may change."
)


def _list(models: Zoo, answer: Answer, top: recommend.TopK, history: tuple[int, ...], note: str) -> None:
    """The beam's list, and how it differs from the model's own above."""
    changed = replace(answer, top=top, before=answer.top, note=note, target_rank=None)
    (card,) = compare.cards(models, [changed], history, chosen=state.selected(models))
    widgets.recommendations([card | {"before": None}], key="compare_beam_list", on_act=actions.act)


def _faithful(
    models: Zoo, name: str, history: tuple[int, ...], width: int, k: int, free: bool, temperature: float
) -> None:
    """The beam beside exact scores; asked for by a button where those take long."""
    if free:
        return
    slow = beam_search.slow(models, name, 1)
    if slow and not st.button("Compare with exact scores", key="compare_exact"):
        return
    widths = tuple(sorted({*beam_search.WIDTHS, width}))
    k = max(1, min(k, int(models.bundles[name].candidates(history).sum())))
    with st.spinner("Scoring every item …") if slow else nullcontext():
        agreements = beam_search.agreement(models, name, history, widths, k, temperature)
    st.markdown(beam_search.agreement_words(agreements, width, k))
