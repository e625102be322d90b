"""Answers from exported models, with numpy, pyarrow and ONNX Runtime alone: what the app imports of the engine.

    zoo = Zoo.open("exports/ml-1m")
    for refusal in zoo.refused:
        print(refusal)                                   # name/file: reason
    bundle = zoo.bundles["sasrec"]
    top = bundle.recommend_one([12, 77, 903], k=10)      # Ranked(items, scores)
    for item, score in zip(top.items, top.scores):
        print(zoo.titles[item], score)
    if bundle.cannot("attention") is None:
        print(last_row(bundle.attention([12, 77, 903])))
    if bundle.cannot("identifiers") is None:
        print(bundle.trace([12, 77, 903]).probabilities)  # the codes that the model considered writing

Everything not exported here is private. docs/bundle.md describes the files.
"""

from engine.bundle.manifest import Manifest, Projection
from engine.data.dataset import DatasetInfo
from engine.data.identifiers import Identifiers
from engine.evaluation.settled import STILL_IMPROVING
from engine.runtime import judge
from engine.runtime.answers import Neighbours, Ranked, Recommendations
from engine.runtime.attention import AttentionMap, entropy, last_row, mean_distance, mean_over_heads, rollout
from engine.runtime.bundle import Bundle
from engine.runtime.compare import (
    Move,
    jaccard,
    kendall,
    mean_ranks,
    movement,
    overlap,
    rbo,
    rbo_weight,
    spearman,
)
from engine.runtime.explain import LeaveOneOut, rank_move
from engine.runtime.faults import BundleError, BusyError, CapabilityError, QuestionError, Refusal
from engine.runtime.probability import probabilities
from engine.runtime.providers import describe
from engine.runtime.reader import Word, WordAttention
from engine.runtime.spaces import Space
from engine.runtime.studies import Studies, Study
from engine.runtime.tokenizations import Tokenization
from engine.runtime.traces import Agreement, CrossAttention, Generation, Trace
from engine.runtime.zoo import EMBEDDED, Zoo, embedded_first

__all__ = [
    "EMBEDDED",
    "STILL_IMPROVING",
    "Agreement",
    "AttentionMap",
    "Bundle",
    "BundleError",
    "BusyError",
    "CapabilityError",
    "CrossAttention",
    "DatasetInfo",
    "Generation",
    "Identifiers",
    "LeaveOneOut",
    "Manifest",
    "Move",
    "Neighbours",
    "Projection",
    "QuestionError",
    "Ranked",
    "Recommendations",
    "Refusal",
    "Space",
    "Studies",
    "Study",
    "Tokenization",
    "Trace",
    "Word",
    "WordAttention",
    "Zoo",
    "describe",
    "embedded_first",
    "entropy",
    "jaccard",
    "judge",
    "kendall",
    "last_row",
    "mean_distance",
    "mean_over_heads",
    "mean_ranks",
    "movement",
    "overlap",
    "probabilities",
    "rank_move",
    "rbo",
    "rbo_weight",
    "rollout",
    "spearman",
]
