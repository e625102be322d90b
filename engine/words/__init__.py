"""Words into vectors: what an item's attributes say, as numbers that models can learn from (docs/words.md)."""

from engine.words.encoder import Encoder
from engine.words.origins import find
from engine.words.stored import Stored, embed, understood, vectors
from engine.words.text import Field, attributes, texts

__all__ = ["Encoder", "Field", "Stored", "attributes", "embed", "find", "texts", "understood", "vectors"]
