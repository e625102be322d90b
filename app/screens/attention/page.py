"""Attention: what a model looked at while it read the history, and what its events really do."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from app import export, glossary, guard, zoo
from app.analysis import attention, model_card
from app.components import choice, item_picker, sections, widgets
from app.components import history as history_strip
from app.figures import attention as figures
from app.screens.attention import (
    A_AND_B,
    NOT_BESIDE,
    PEOPLE,
    SECTIONS,
    UNITS,
    VIEWED,
    attended,
    compared,
    latest_items,
    leave_one_out,
    viewed,
    weights,
    word_attention,
)
from app.session import state
from app.text import clean, md
from engine.runtime import AttentionMap, Zoo, last_row
from engine.writing import count


def page() -> None:
    st.title("Attention", help=glossary.tooltip("Attention"))
    now = state.get()
    models = zoo.open_zoo(now.dataset)
    st.markdown(
        "Attention weights, gates or filters for this history. None is an explanation: compare with the leave-one-out effect."
    )
    if not models.bundles:
        st.info("There is no model to look into: this dataset has no bundles yet. Export one with `seqscope export`.")
        return
    history_strip.show()
    history = state.numbers(models, now.current)
    if not history:
        item_picker.no_history("there is nothing to look at")
        return
    name = _choose(models)
    item = item_picker.choose_explained(models, name, history, key="attention")
    bundle = models.bundles[name]
    view = viewed(models, name)
    if view is None:
        silent = bundle.cannot("cross_attention") if bundle.cannot("identifiers") is None else None
        words = (
            f"{bundle.manifest.title} has no attention to show. {model_card.cannot(bundle, 'attention')} {silent or ''}"
        )
        st.info(md(words.strip()), icon=":material/visibility_off:")
    titles = SECTIONS
    if view != "attention":
        titles = ({} if view is None else {"weights": VIEWED[view]}) | {"effects": SECTIONS["effects"]}
    with sections.opened(titles, key="attention") as section, guard.watch(titles[section]):
        if section == "weights" and view == "gates":
            latest_items.gates(models, name, history)
        elif section == "weights" and view == "filters":
            latest_items.filters(models, name, history)
        elif section == "weights":
            _weights(models, name, history, item)
        elif section == "positions":
            seen, codes = _seen(models, name, history)
            weights.positions(models, name, seen, _called(models, seen), codes)
            weights.heads(name, seen)
        elif section == "average":
            _average(models, name)
        else:
            _effects(models, name, history, item)


def _weights(models: Zoo, name: str, history: tuple[int, ...], item: int | None) -> None:
    """What the next item was predicted from."""
    bundle = models.bundles[name]
    generates = bundle.cannot("identifiers") is None
    if bundle.cannot("words") is None:
        word_attention.show(models, name, history)
    elif bundle.cannot("cross_attention") is not None:
        if generates:
            st.info(md(f"{bundle.cannot('cross_attention')}"), icon=":material/visibility_off:")
        sides = _sides(models, name, history)
        # several sides are of models that read items, not codes
        maps = [attention.attention(models, side.model, side.history) for side in sides if side.history and sides[1:]]
        beside = [attention.strongest(last_row(seen), _called(models, seen))[0] for seen in maps]
        for column, side in zip(st.columns(len(sides), gap="large"), sides, strict=True):
            with column:
                alone = "What the latest item looked at" if generates else "What the prediction looked at"
                sections.heading(side.heading or alone)
                if side.history:
                    _last(models, side, generates, beside)
                else:
                    st.caption("An empty history: there is nothing to look at.")
    elif item is None:
        st.info("The model has nothing left to recommend after this history, so there are no codes to look at.")
    else:
        weights.generated_codes(models, name, history, item, _unit() == "codes")


class _Side(NamedTuple):
    """A model's weights for a history, beside others."""

    model: str
    history: tuple[int, ...]
    heading: str
    """As Markdown; "" of one that stands alone."""
    key: str


def _sides(models: Zoo, name: str, history: tuple[int, ...]) -> list[_Side]:
    """The weights of the model, beside those of a second one, or for both histories of a what-if."""
    now, others = state.get(), compared(models, name)
    generates = models.bundles[name].cannot("identifiers") is None
    whatif = {} if now.variant is None or generates else {A_AND_B: "A and B"}
    alone = [_Side(name, history, "", name)]
    if not others and not whatif:
        return alone
    titles = {NOT_BESIDE: "None", **whatif, **{other: models.bundles[other].manifest.title for other in others}}
    usual = next(iter(whatif), NOT_BESIDE)
    chosen = choice.selected("Compare with", "beside", titles, usual, key=f"attention_beside_{name}", width=260)
    if chosen == A_AND_B:
        both = {"A · original": now.history, "B · edited": now.variant or ()}
        return [_Side(name, state.numbers(models, ids), words, f"{name}_{words[0]}") for words, ids in both.items()]
    if chosen in others:
        called = {
            model: f"{zoo.style(models, model).sign} {md(models.bundles[model].manifest.title)}"
            for model in (name, chosen)
        }
        return [_Side(model, history, words, model) for model, words in called.items()]
    return alone


def _seen(models: Zoo, name: str, history: tuple[int, ...]) -> tuple[AttentionMap, AttentionMap]:
    """(the weights as they are shown, by item unless codes are chosen; the same before codes were grouped by item)"""
    codes = attention.attention(models, name, history)
    by_code = models.bundles[name].cannot("identifiers") is None and _unit() == "codes"
    return (codes if by_code else attention.by_item(codes)), codes


def _effects(models: Zoo, name: str, history: tuple[int, ...], item: int | None) -> None:
    """What removing events, or words of the item, does; beside the attention where there is any."""
    bundle = models.bundles[name]
    if item is None:
        st.info("The model has nothing left to recommend after this history, so there is no item to look at.")
        return
    attends = bundle.cannot("attention") is None
    seen = attention.by_item(attention.attention(models, name, history)) if attends else None
    words = word_attention.parts(models, name, history) if bundle.cannot("words") is None else None
    looked_at = None if bundle.cannot("cross_attention") is not None else weights.by_event(models, name, history, item)
    leave_one_out.show(models, name, history, item, seen, looked_at, words)
    if bundle.manifest.text is not None and bundle.cannot("unseen_items") is None:
        word_attention.token_ablation(models, name, history)


def _choose(models: Zoo) -> str:
    """The model that is looked into: one that shows how it reads, or another that a link names."""
    chosen = attended(models, state.get().own)
    silent = [name for name in models.bundles if viewed(models, name) is None]
    name = choice.segmented(
        "Model",
        "model",
        {
            name: f"{zoo.style(models, name).sign} {md(bundle.manifest.title)}"
            for name, bundle in models.bundles.items()
            if name not in silent or name == chosen or len(silent) == len(models.bundles)
        },
        chosen,
        key=f"attention_model_{models.info.name}",
        clears=("layer", "head", "decoder", "unit", "word_layer", "word_head"),
        wrap=True,
    )
    if silent:
        with st.expander(f"{count(len(silent), 'model')} without attention", type="compact"):
            for other in silent:
                bundle = models.bundles[other]
                st.markdown(
                    f":small[:gray[**{md(bundle.manifest.title)}**: {md(model_card.cannot(bundle, 'attention') or '', 300)}]]"
                )
                st.button(
                    "Leave-one-out effect",
                    key=f"attention_other_{other}",
                    type="tertiary",
                    help=glossary.tooltip("Leave-one-out effect"),
                    on_click=guard.callback(state.choose, model=other),
                )
    return name


def _called(models: Zoo, seen: AttentionMap) -> attention.Names:
    titles = {item: zoo.titled(models, item) for item in seen.items if item is not None}
    return attention.names(seen.positions, seen.items, titles, seen.levels)  # type: ignore[arg-type]


def _unit() -> str:
    """Whether a model that reads codes is shown by items or by codes."""
    return choice.segmented(
        "Positions",
        "unit",
        UNITS,
        "items",
        key="attention_unit",
        help="This model reads and writes every item as several codes. Items: codes are grouped. Codes: each is a position.",
    )


def _last(models: Zoo, side: _Side, generates: bool, beside: list[pd.DataFrame]) -> None:
    """What the row of the prediction looked at. beside: the bars of all sides, which share a scale."""
    name, length = side.model, len(side.history)
    seen, _ = _seen(models, name, side.history)
    called = _called(models, seen)
    title = models.bundles[name].manifest.title
    looked = last_row(seen)
    sentence = attention.sentence(title, looked, called, seen.pooled)
    st.markdown(sentence)
    shown, whole = attention.strongest(looked, called)
    export.figure(
        figures.bars(
            shown, zoo.style(models, name).colour, float(looked.sum()) / len(looked), beside, widgets.on_phone()
        ),
        key=f"attention_last_{side.key}",
        alt=f"Attention of {clean(title)} by position, oldest on top; most at {called.titles[int(np.argmax(looked))]}.",
        table=whole,
        name=f"attention {name} last row",
        columns={"weight": widgets.FOUR_DIGITS},
    )
    where = (
        "the mean over all rows, because the model averages them" if seen.pooled else "the last row of the last layer"
    )
    read = len({place for place in seen.positions if place is not None})
    note = f"This is {where}, averaged over heads; it sums to {looked.sum():.0%}."
    if generates:
        note += " The codes are generated by a decoder that reads all rows."
    if read < length:
        note += f" {title} attends to the latest {read} of {count(length, 'item')}."
    st.caption(md(note))


def _average(models: Zoo, name: str) -> None:
    """The mean over users of the dataset."""
    generates = models.bundles[name].cannot("identifiers") is None
    profile = attention.profile(models, name)
    if profile is None:
        st.info(
            "No mean over users: the dataset comes without histories, or they are too short. "
            "Export it with users' histories to see it."
            if models.has_log
            else "No mean over users: this is a catalogue without a log."
        )
        return
    title = models.bundles[name].manifest.title
    st.markdown(attention.distance_words(profile, title))
    how = choice.segmented(
        "Show as", "people", PEOPLE, "distance", key="attention_people", label_visibility="collapsed"
    )
    paper = how == "position"
    export.figure(
        figures.by_position(profile) if paper else figures.by_distance(profile),
        key="attention_people_map" if paper else "attention_people_lines",
        alt=f"Mean attention of {clean(title)} by how far back an item is, over {count(profile.people, 'user')}.",
        table=attention.distances(profile),
        name=f"attention {name} over users",
        columns={
            "weight": widgets.FOUR_DIGITS,
            "even": widgets.FOUR_DIGITS,
            "back": st.column_config.NumberColumn("items back"),
        },
    )
    st.caption(
        md(
            f"Mean over the {profile.people} of {profile.asked} users drawn at random (seed 0) whose histories fill "
            f"{len(profile.back)} positions, and over heads. After the figure in the SASRec paper (Kang & McAuley 2018)."
            + (" Here it is what the latest item looks at, its codes taken together." if generates else "")
        )
    )


page()
