"""What all parts of the Semantic IDs page speak of."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from app import styles
from app.components import choice
from app.figures.semantic_ids import Named
from app.session import state
from app.store.catalogue import Catalogue
from app.text import md
from app.zoo import Style
from engine.runtime import Tokenization, Zoo


@dataclass(frozen=True)
class Selection:
    """models, catalogue: the dataset; names: of the tokenizers side by side, one or two."""

    models: Zoo
    catalogue: Catalogue
    names: tuple[str, ...]

    @functools.cached_property
    def shown(self) -> list[Tokenization]:
        return [self.models.tokenizations[name] for name in self.names]

    def look(self, tokenization: Tokenization) -> Style:
        return styles.tokenizer_style(self.models, tokenization.name)

    def named(self, tokenization: Tokenization) -> Named:
        return Named(tokenization.about.title, self.look(tokenization))

    def heading(self, tokenization: Tokenization) -> str:
        """As Markdown."""
        return f"**{self.look(tokenization).sign} {md(tokenization.about.title)}**"

    def columns(self) -> Sequence[st.delta_generator.DeltaGenerator]:
        """A place for each tokenizer, side by side where there is room."""
        if len(self.names) == 1:
            return [st.container()]
        return st.columns(len(self.names), gap="medium")

    def level(self) -> int:
        """The level that is looked at, from 0; asked once."""
        most = max(len(tokenization.about.shape.own) for tokenization in self.shown)
        return choice.numbered("Level", "level", most, 1, key=f"semantic_level_{most}") - 1

    def at(self, level: int) -> list[Tokenization]:
        """Those that have this level."""
        return [tokenization for tokenization in self.shown if level < len(tokenization.about.shape.own)]


def choose_prefix(name: str, codes: tuple[int, ...]) -> None:
    """Opens the branch of these codes in the tree; no codes: all items."""
    state.choose(section="tree", of=name, prefix="-".join(map(str, codes)) or None)
