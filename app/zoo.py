"""The exported models, opened once and shared by all visitors, and their answers, kept for those who ask the same.

models = zoo.open_zoo(state.get().dataset)    # engine.runtime.Zoo
top = zoo.top(models, "sasrec", history, 10)  # items, scores, shares
zoo.style(models, "sasrec").colour            # the same on every page
"""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import streamlit as st

from app.store.catalogue import Catalogue
from engine.errors import SeqscopeError
from engine.runtime import LeaveOneOut, Neighbours, Zoo, softmax_share

History = tuple[int, ...]

# --- what there is


def root() -> Path:
    """The folder of exports: SEQSCOPE_EXPORTS, or exports/ of this project."""
    return Path(os.environ.get("SEQSCOPE_EXPORTS") or Path(__file__).resolve().parents[1] / "exports").absolute()


def datasets() -> dict[str, str]:
    """Folder name → title of every dataset, no title twice, the embedded sample first."""
    found = {path.name: _title(str(path), _changed(path / "dataset.json")) for path in Zoo.list(root())}
    titles = list(found.values())
    found = {name: title if titles.count(title) == 1 else f"{title} ({name})" for name, title in found.items()}
    return dict(sorted(found.items(), key=lambda entry: (entry[0] != "sample", entry[1].casefold())))


def open_zoo(name: str) -> Zoo:
    """The models of one dataset; opened anew where its folder has changed. Raises SeqscopeError."""
    return _opened(_folder(name)).zoo


def open_catalogue(name: str) -> Catalogue:
    """The searchable catalogue of one dataset. Raises SeqscopeError."""
    return _opened(_folder(name)).catalogue


class _Opened(NamedTuple):
    zoo: Zoo
    catalogue: Catalogue
    stamp: str
    path: str


def _folder(name: str) -> str:
    for path in Zoo.list(root()):  # never a path made from a name that came from outside
        if path.name == name:
            return str(path)
    raise SeqscopeError(f"There is no dataset “{name}” in {root()}. Choose another one, or export a model to it.")


def _fresh(opened: _Opened) -> bool:
    return Zoo.stamp(opened.path) == opened.stamp


def _release(opened: _Opened) -> None:
    opened.catalogue.close()


@st.cache_resource(max_entries=8, show_spinner="Opening the models …", validate=_fresh, on_release=_release)
def _opened(path: str) -> _Opened:
    stamp = Zoo.stamp(path)
    zoo = Zoo.open(path, warm=True)
    return _Opened(zoo, Catalogue(zoo.items), stamp, path)


@st.cache_data(max_entries=64, show_spinner=False)
def _title(path: str, changed: int) -> str:
    try:
        title = json.loads((Path(path) / "dataset.json").read_text("utf-8"))["title"]
    except (OSError, ValueError, KeyError, TypeError):
        title = None  # opening it says what is wrong
    return title if isinstance(title, str) and title else Path(path).name


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


# --- how a model looks


@dataclass(frozen=True)
class Style:
    """How a model looks in every figure: never by colour alone."""

    colour: str
    """Okabe and Ito's palette."""
    marker: str
    """Plotly's name of a marker."""
    sign: str
    """The same marker as a character."""
    dash: str
    """Plotly's name of a line style."""


_STYLES = {
    "sasrec": Style("#0072b2", "circle", "●", "solid"),
    "bert4rec": Style("#d55e00", "square", "■", "dash"),
    "attrec": Style("#009e73", "diamond", "◆", "dashdot"),
    "markov": Style("#e69f00", "triangle-up", "▲", "dot"),
    "popularity": Style("#8a9496", "cross", "✚", "longdash"),
}
_SPARE = (
    Style("#cc79a7", "star", "★", "longdashdot"),
    Style("#56b4e9", "hexagon", "⬢", "solid"),
    Style("#c9b82e", "triangle-down", "▼", "dash"),
    Style("#7b5ea7", "pentagon", "⬟", "dot"),
    Style("#5b3a1e", "bowtie", "⧓", "dashdot"),
)


def style(zoo: Zoo, model: str) -> Style:
    """The look of a model; those without one of their own take the spare ones in the order of their names."""
    known = _STYLES.get(model)
    if known is not None:
        return known
    others = sorted(name for name in zoo.bundles if name not in _STYLES)
    return _SPARE[others.index(model) % len(_SPARE)] if model in others else _SPARE[0]


def titled(zoo: Zoo, item: int) -> str:
    """Title (year), not escaped."""
    return _titles(zoo)[item]


@functools.lru_cache(maxsize=8)
def _titles(zoo: Zoo) -> list[str]:
    if "year" not in zoo.items.column_names:
        return zoo.titles
    years = zoo.items["year"].to_pylist()
    return [
        f"{title} ({year})" if isinstance(year, int) and not title.endswith(f"({year})") else title
        for title, year in zip(zoo.titles, years, strict=True)
    ]


# --- answers, kept


class Top(NamedTuple):
    """What a model recommends, best first."""

    items: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    """In the model's own units: never compare them with another model's."""
    share: npt.NDArray[np.float64]
    """Softmax over all items that could be recommended; they sum to 1 over the whole catalogue. Of a model that writes
    identifiers: the probability that it writes the item's, which items that share an identifier have in common."""
    strength: npt.NDArray[np.float64]
    """0 to 1 within this model: 1 is its best item, 0 an item in the middle of the catalogue; of a model that writes
    identifiers, one with probability 0."""


def top(zoo: Zoo, model: str, history: History, k: int) -> Top:
    """The k best items after the history. Raises SeqscopeError where the model cannot answer."""
    bundle = zoo.bundles[model]
    return _top(zoo, model, bundle.digest, history, k)


def ranks(zoo: Zoo, model: str, history: History, items: tuple[int, ...]) -> list[float]:
    """The rank of each item after the history, 1 is best; for one outside the first k, too."""
    return _ranks(zoo, model, zoo.bundles[model].digest, history, items)


def leave_one_out(zoo: Zoo, model: str, history: History, item: int) -> LeaveOneOut:
    """What each event of the history does to the item's score and rank."""
    return _leave_one_out(zoo, model, zoo.bundles[model].digest, history, item)


def neighbours(zoo: Zoo, model: str, item: int, k: int) -> Neighbours:
    """The nearest items in the model's own space."""
    return _neighbours(zoo, model, zoo.bundles[model].digest, item, k)


@st.cache_data(max_entries=2_000, show_spinner=False)
def _top(_zoo: Zoo, model: str, digest: str, history: History, k: int) -> Top:
    bundle = _zoo.bundles[model]
    found = bundle.recommend_one(history, k)
    if (
        bundle.manifest.generator is not None
    ):  # scores are probabilities already, and those of all items would be a long walk
        written = np.exp(found.scores.astype(np.float64))
        return Top(found.items, found.scores, written, written / max(float(written[:1].sum()), 1e-300))
    scores = bundle.scores(history).astype(np.float64)
    middle = float(np.median(scores))
    scores[list(history)] = -np.inf
    share = softmax_share(scores)[found.items] if len(found.items) else np.empty(0)
    span = float(found.scores[0]) - middle if len(found.items) else 0.0
    strength = (
        np.clip((found.scores.astype(np.float64) - middle) / span, 0, 1) if span > 0 else np.ones(len(found.items))
    )
    return Top(found.items, found.scores, share, strength)


@st.cache_data(max_entries=2_000, show_spinner=False)
def _ranks(_zoo: Zoo, model: str, digest: str, history: History, items: tuple[int, ...]) -> list[float]:
    found: list[float] = _zoo.bundles[model].ranks(history, items).tolist()
    return found


@st.cache_data(max_entries=500, show_spinner=False)
def _leave_one_out(_zoo: Zoo, model: str, digest: str, history: History, item: int) -> LeaveOneOut:
    return _zoo.bundles[model].leave_one_out(history, item)


@st.cache_data(max_entries=1_000, show_spinner=False)
def _neighbours(_zoo: Zoo, model: str, digest: str, item: int, k: int) -> Neighbours:
    return _zoo.bundles[model].neighbours(item, k)
