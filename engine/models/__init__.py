"""History → query. One file per model; none knows of training, data files or export."""

from __future__ import annotations

from typing import Any

from engine.models.attrec import AttRec, AttRecConfig
from engine.models.base import AttentionShape, Card, ItemIndex, Recommender, score
from engine.models.bert4rec import BERT4Rec, BERT4RecConfig
from engine.models.lightgcn import LightGCN, LightGCNConfig
from engine.models.markov import Markov, MarkovConfig
from engine.models.mult_vae import MultVAE, MultVAEConfig
from engine.models.ngcf import NGCF, NGCFConfig
from engine.models.popularity import Popularity, PopularityConfig
from engine.models.recformer import Recformer, RecformerConfig
from engine.models.sasrec import SASRec, SASRecConfig
from engine.models.text_neighbours import TextNeighbours, TextNeighboursConfig

# name → (configuration, model); a model is built as Model(config, num_items, num_users, generator, **what it needs)
MODELS: dict[str, tuple[type[Any], type[Recommender]]] = {
    model.name: (config, model)
    for config, model in (
        (SASRecConfig, SASRec),
        (BERT4RecConfig, BERT4Rec),
        (AttRecConfig, AttRec),
        (LightGCNConfig, LightGCN),
        (NGCFConfig, NGCF),
        (MultVAEConfig, MultVAE),
        (RecformerConfig, Recformer),
        (TextNeighboursConfig, TextNeighbours),
        (MarkovConfig, Markov),
        (PopularityConfig, Popularity),
    )
}

__all__ = [
    "MODELS",
    "AttentionShape",
    "Card",
    "ItemIndex",
    "MultVAE",
    "MultVAEConfig",
    "Recformer",
    "RecformerConfig",
    "Recommender",
    "TextNeighbours",
    "score",
]
