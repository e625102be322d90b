"""Text into vectors: what an item's attributes say, as numbers that models can learn from (docs/words.md)."""
