"""Every model that a recipe may name: those that match vectors (engine.models) and those that write identifiers."""

from __future__ import annotations

from typing import Any

from engine import models
from engine.generation import DecoderOnly, DecoderOnlyConfig, EncoderDecoder, EncoderDecoderConfig
from engine.generation.language import LanguageConfig, LanguageModel
from engine.models import Recommender

# name → (configuration, model); a model is built as Model(config, num_items, num_users, generator, **what it needs)
MODELS: dict[str, tuple[type[Any], type[Recommender]]] = models.MODELS | {
    EncoderDecoder.name: (EncoderDecoderConfig, EncoderDecoder),
    DecoderOnly.name: (DecoderOnlyConfig, DecoderOnly),
    LanguageModel.name: (LanguageConfig, LanguageModel),
}
