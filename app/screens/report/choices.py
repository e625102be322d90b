"""What goes into a report: chosen on the page, kept in the address."""

from collections.abc import Mapping

import streamlit as st

from app import glossary, guard, zoo
from app.analysis import evaluation, model_card
from app.components import choice
from app.reports.address import MAX_TITLE, PARAMETERS, request_of
from app.reports.document import Asked
from app.reports.parts import PARTS
from app.session import pages, state
from app.session.address import decode, encode
from app.text import clean, distinct, editable, md
from engine.runtime import Zoo
from engine.writing import count


def show(models: Zoo) -> Asked:
    """The choices, and what they come to."""
    now = state.get()
    _title(now.own.get("title", ""), clean(models.info.title, 80))
    _parts(now.own, [name for name, part in PARTS.items() if part.possible(models, _shown(models))])
    with st.expander("More choices", key="report_more", type="compact", icon=":material/tune:"):
        _details(models, now.own)
    shown = _shown(models)
    names = None if len(shown) == len(models.bundles) else tuple(shown)
    still, _ = pages.read(PARAMETERS, state.get().own, models)  # without models that went meanwhile
    return request_of(
        still, history=now.history, edited=now.variant, models=names, k=now.k, user=now.user, item=now.item
    )


def _shown(models: Zoo) -> list[str]:
    return model_card.shown(models, state.get().models)


def _title(chosen: str, dataset: str) -> None:
    st.session_state["report_title"] = editable(chosen)
    st.text_input(
        "Title",
        key="report_title",
        max_chars=MAX_TITLE,
        placeholder=f"{dataset}: what comes next?",
        on_change=guard.callback(_take_title),
    )


def _parts(parameters: Mapping[str, str], offered: list[str]) -> None:
    """offered: the parts that can be had of the models that are shown."""
    chosen = [part for part in offered if "parts" not in parameters or part in decode(parameters["parts"])]
    st.session_state["report_parts"] = chosen
    st.pills(
        "What goes in",
        offered,
        selection_mode="multi",
        format_func=lambda part: PARTS[part].title,
        key="report_parts",
        on_change=guard.callback(_take_parts, len(offered)),
        wrap=True,
    )


def _details(models: Zoo, parameters: Mapping[str, str]) -> None:
    shown = _shown(models)
    titles = {name: clean(models.bundles[name].manifest.title, 60) for name in shown}
    left, right = st.columns(2, gap="medium")
    with left:
        able = [name for name in shown if models.bundles[name].cannot("attention") is None]
        signed = {name: f"{zoo.style(models, name).sign} {titles[name]}" for name in able}
        _several("Attention of", "attention", able, signed, parameters)
        choice.segmented(
            "Attention is",
            "view",
            {"mean": "Mean over heads, last layer", "rollout": "Rollout through all layers"},
            "mean",
            key="report_view",
            wrap=True,
        )
        if parameters.get("view") == "rollout":
            for name in able:
                if (reason := models.bundles[name].cannot("rollout")) is not None:
                    st.caption(md(f"{titles[name]}: {reason}"))
        mapped = {name: titles[name] for name in shown if models.bundles[name].cannot("map") is None}
        if mapped:
            choice.selected("Map of", "map", mapped, next(iter(mapped)), key=f"report_map_{len(mapped)}")
    with right:
        tokenizers = {name: clean(tokenization.about.title, 60) for name, tokenization in models.tokenizations.items()}
        _several("Codes of", "codes", list(tokenizers), tokenizers, parameters)
        protocols = evaluation.protocols(models)
        if protocols:
            options = {name: name for name in protocols}
            choice.selected("Protocol of the metrics", "protocol", options, protocols[0], key="report_protocol")
        if any(models.bundles[name].manifest.generator is not None for name in shown):
            words = "Generative models score every item anew for each event left out, which takes a while."
            _toggle("Effects of slow models, too", "slow", "asked", parameters, words)
        words = (
            "Adds categories and titles to the map's points, and the name of the history's user with the item that "
            "came next. Otherwise a report holds only the history, the lists and aggregates."
        )
        _toggle("Rows of the data may go in", "rows", "yes", parameters, words)


def _toggle(label: str, name: str, text: str, parameters: Mapping[str, str], words: str) -> None:
    """text: of the parameter where it is on; it is missing else."""
    key = f"report_{name}"
    st.session_state[key] = name in parameters
    st.toggle(label, key=key, on_change=guard.callback(_switch, name, text, key), help=words)


def _several(
    label: str, name: str, options: list[str], titles: Mapping[str, str], parameters: Mapping[str, str]
) -> None:
    """Some of a few; all where the address says nothing."""
    if not options:
        st.caption(md(f"{label}: none of these."))
        return
    called = distinct({option: titles.get(option, option) for option in options})
    key = f"report_{name}_{len(options)}"
    st.session_state[key] = [
        option for option in options if name not in parameters or option in decode(parameters[name])
    ]
    st.multiselect(
        label,
        options,
        format_func=lambda option: called.get(option, option),
        key=key,
        help=glossary.tooltip(label.removesuffix(" of")),
        placeholder=f"None of {count(len(options), 'one', 'these')}",
        on_change=guard.callback(_take_several, name, key, options),
        wrap=True,
    )


# --- what a click does; nothing that comes from the browser is believed


def _take_title() -> None:
    title = clean(st.session_state.get("report_title") or "", MAX_TITLE)
    state.choose(title=title or None)


def _take_parts(offered: int) -> None:
    picked = st.session_state.get("report_parts") or []
    chosen = [part for part in PARTS if part in picked]
    state.choose(parts=None if len(chosen) in (0, offered) else encode(chosen))


def _take_several(name: str, key: str, options: list[str]) -> None:
    picked = st.session_state.get(key) or []
    chosen = [option for option in options if option in picked]
    state.choose(**{name: None if len(chosen) == len(options) else encode(chosen)})


def _switch(name: str, text: str, key: str) -> None:
    state.choose(**{name: text if st.session_state.get(key) else None})
