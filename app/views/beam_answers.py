"""What generators are asked about their beams, asked once and kept."""

from __future__ import annotations

import streamlit as st

from engine.runtime import Agreement, CrossAttention, Trace, Zoo

LISTED = 20  # prefixes per step in the table that were not followed
WIDTHS = (1, 5, 10, 20, 50)
CELLS = 5_000  # items to score times histories to ask about that one page may cost without being asked for


def generators(models: Zoo) -> list[str]:
    return [name for name, bundle in models.bundles.items() if bundle.cannot("identifiers") is None]


def slow(models: Zoo, model: str, histories: int) -> bool:
    """Whether exact scores after so many histories would keep a visitor waiting: a generator must write every item's codes."""
    return models.bundles[model].manifest.generator is not None and len(models) * histories > CELLS


def trace(models: Zoo, model: str, history: tuple[int, ...], width: int, constrained: bool) -> Trace:
    """Raises SeqscopeError where the model cannot answer."""
    return _trace(models, model, models.bundles[model].digest, history, width, constrained)


def agreement(models: Zoo, model: str, history: tuple[int, ...], widths: tuple[int, ...], k: int) -> list[Agreement]:
    return _agreement(models, model, models.bundles[model].digest, history, widths, k)


def cross_attention(models: Zoo, model: str, history: tuple[int, ...], item: int) -> CrossAttention:
    return _cross_attention(models, model, models.bundles[model].digest, history, item)


@st.cache_data(max_entries=100, show_spinner=False)
def _trace(_zoo: Zoo, model: str, digest: str, history: tuple[int, ...], width: int, constrained: bool) -> Trace:
    return _zoo.bundles[model].trace(history, width, constrained=constrained, dropped=LISTED)


@st.cache_data(max_entries=200, show_spinner=False)
def _agreement(
    _zoo: Zoo, model: str, digest: str, history: tuple[int, ...], widths: tuple[int, ...], k: int
) -> list[Agreement]:
    return _zoo.bundles[model].agreement([history], widths, k)


@st.cache_data(max_entries=200, show_spinner=False)
def _cross_attention(_zoo: Zoo, model: str, digest: str, history: tuple[int, ...], item: int) -> CrossAttention:
    return _zoo.bundles[model].cross_attention(history, item)
