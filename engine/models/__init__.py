"""History → query. One file per model; none knows of training, data files or export. engine.registry lists them."""

from engine.models.base import AttentionShape, ItemIndex, Recommender, score

__all__ = ["AttentionShape", "ItemIndex", "Recommender", "score"]
