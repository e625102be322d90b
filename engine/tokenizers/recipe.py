"""Recipes of tokenizers: TOML like those of models, with the tables words, tokenizer, collisions, optimiser and training."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from engine.cards import MODELS, names
from engine.errors import UsageError
from engine.tokenizers.base import LearningConfig, tokenizers
from engine.tokenizers.collisions import CollisionsConfig
from engine.training.optimiser import OptimiserConfig
from engine.training.recipe import build_table, read

UNREAD = {"encoder": "minilm"}
"""Stands in the runs of tokenizers that read no vectors, which need no other identity for what they do not read."""
TABLES = ("words", "tokenizer", "collisions", "optimiser", "training")


@dataclass(frozen=True)
class WordsConfig:
    """Where item vectors come from, for tokenizers that read them."""

    encoder: str = "auto"
    """A text encoder as `seqscope embed` takes it."""
    fields: tuple[str, ...] = ()
    """Columns of the catalogue to read, in this order; all columns of words where empty."""


@dataclass(frozen=True)
class TokenizerRecipe:
    name: str
    """What the run is called; the file's name."""
    family: str
    """Name of the tokenizer, a key of engine.tokenizers.base."""
    tokenizer: Any
    words: WordsConfig = field(default_factory=WordsConfig)
    collisions: CollisionsConfig = field(default_factory=CollisionsConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    training: LearningConfig = field(default_factory=LearningConfig)
    title: str = ""
    """Name for people."""

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def from_dict(raw: dict[str, Any], where: str) -> TokenizerRecipe:
    """A recipe from the tables of a TOML file or of run.json; raises UsageError with `where` in it."""
    raw = dict(raw)
    family, name, title = (raw.pop(key, "") for key in ("family", "name", "title"))
    if not isinstance(family, str) or family not in tokenizers():
        other = "it is a model, for `seqscope train`" if family in names(MODELS) else ""
        raise UsageError(
            f"{where}: family {family!r} is not a tokenizer; {other or 'there are ' + ', '.join(tokenizers())}"
        )
    if not isinstance(name, str) or not isinstance(title, str):
        raise UsageError(f"{where}: name and title are texts")
    tables = {key: raw.pop(key, {}) for key in TABLES}
    if raw:
        raise UsageError(f"{where}: unknown entries {', '.join(sorted(raw))}")
    if "vectors" not in tokenizers()[family].needs and isinstance(tables["words"], dict):
        tables["words"] = UNREAD | tables["words"]
    kinds: dict[str, type[Any]] = {
        "words": WordsConfig, "tokenizer": tokenizers()[family].Config, "collisions": CollisionsConfig,
        "optimiser": OptimiserConfig, "training": LearningConfig,
    }  # fmt: skip
    built = {key: build_table(kind, tables[key], f"{where}: {key}") for key, kind in kinds.items()}
    return TokenizerRecipe(name=name, family=family, title=title, **built)


def load(name: str, dataset: str, recipe: str | None, overrides: list[str]) -> TokenizerRecipe:
    """The recipe `name` for `dataset`, or the one that `recipe` names; see engine.training.recipe.read."""
    raw = read(name, dataset, recipe, overrides, TABLES)
    loaded = from_dict(raw, f"{raw['name']}.toml")
    if loaded.optimiser.average:
        raise UsageError(
            f"{raw['name']}.toml: optimiser.average is for models; the parameters of tokenizers are not averaged"
        )
    return loaded
