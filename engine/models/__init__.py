"""History → query. One file per model; none knows of training, data files or export. engine.registry lists them."""

from engine.models.base import NO_TIME, AttentionShape, ItemIndex, Recommender, score

__all__ = ["NO_TIME", "AttentionShape", "ItemIndex", "Recommender", "score"]
