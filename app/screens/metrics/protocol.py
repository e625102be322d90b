"""Metrics: what the numbers are of, and how they were made."""

from __future__ import annotations

import streamlit as st

from app import glossary
from app.analysis import evaluation, metrics
from app.analysis.model_card import split_words
from app.components import sections, widgets
from app.screens.metrics.choices import MetricsChoices
from app.text import md
from engine.runtime import protocols as naming


def show(this: MetricsChoices) -> None:
    known = {term: md(words, 2_000) for term, words in _facts(this).items() if words}
    widgets.terms(known, alt="The protocol of the evaluation.")
    _references(this)


def _references(this: MetricsChoices) -> None:
    table, source = evaluation.references(this.models, this.protocol)
    if table.empty:
        return
    sections.heading("Reference points")
    st.caption(md(source, 2_000))
    numbers = {
        column: st.column_config.NumberColumn(format="%.4f", help=glossary.tooltip(column.partition(",")[0]))
        for column in table.columns[2:]
    }
    widgets.table(table, alt="Figures from elsewhere, and those of the same methods here.", column_config=numbers)


def _facts(this: MetricsChoices) -> dict[str, str]:
    """Term → words, not escaped."""
    info = this.models.info
    users = next(ranks.people for ranks in this.people.values())
    more = set(map(metrics.more_of, this.people))
    return {
        "Ranking": naming.sentence(this.protocol, len(this.models)),
        "Split": split_words(info.split),
        "Users": f"{metrics.users_words(users, this.protocol)}{', simulated' if info.simulated else ''}."
        f"{metrics.left_out(this.left_out)}",
        "Held-out items": " ".join(metrics.held_out_words(info)),
        "Intervals": f"{metrics.INTERVALS} {evaluation.over_seeds(this.models, this.protocol)}",
        "Significance": metrics.SIGNIFICANCE,
        "Model selection": metrics.SELECTION,
        "User vectors": "The trained user's own vector, in place of what the model makes of the history alone."
        if metrics.USERS in more
        else "",
        "Told the times": "The model is told when the items of the history were, never when the held-out one was. Lists of the "
        "pages are made without times, and the verdict is over models that were told none."
        if metrics.TIMES in more
        else "",
        "Beam search": " ".join(_beams(this)),
        "Dataset": f"{info.title}, fingerprint {info.fingerprint}",
    }


def _beams(this: MetricsChoices) -> list[str]:
    """Where the ranks of generative models come from; models of which the same is said together."""
    alike: dict[str, list[str]] = {}
    for bundle in this.models.bundles.values():
        if bundle.cannot("identifiers") is None and bundle.name in this.people:
            words = metrics.beam_words("", this.protocol, bundle.manifest.metrics, len(this.models))
            alike.setdefault(words, []).append(bundle.manifest.title)
    return [", ".join(titles) + words for words, titles in alike.items()]
