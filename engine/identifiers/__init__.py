"""Catalogue → identifiers. One tokenizer per file; `TOKENIZERS` is all of them by name."""

from __future__ import annotations

from typing import Any

from engine.identifiers.base import Learning, LearningConfig, Material, Tokenizer
from engine.identifiers.category import CategoryConfig, CategoryPath
from engine.identifiers.collaborative import CollaborativeClusters, CollaborativeConfig
from engine.identifiers.kmeans import ResidualKMeans, ResidualKMeansConfig
from engine.identifiers.letter import Letter, LetterConfig
from engine.identifiers.random import Random, RandomConfig
from engine.identifiers.rqvae import Rqvae, RqvaeConfig
from engine.identifiers.titles import Titles, TitlesConfig

# name → (configuration, tokenizer)
TOKENIZERS: dict[str, tuple[type[Any], type[Tokenizer]]] = {
    tokenizer.name: (config, tokenizer)
    for config, tokenizer in (
        (ResidualKMeansConfig, ResidualKMeans),
        (RqvaeConfig, Rqvae),
        (LetterConfig, Letter),
        (TitlesConfig, Titles),
        (CategoryConfig, CategoryPath),
        (CollaborativeConfig, CollaborativeClusters),
        (RandomConfig, Random),
    )
}

__all__ = ["TOKENIZERS", "Learning", "LearningConfig", "Material", "Tokenizer"]
