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

Everything not imported here is private. docs/bundle.md describes the files.
"""

from engine.bundle.curve import NOT_SETTLED, STILL_IMPROVING
from engine.bundle.embedding_spaces import Space
from engine.bundle.errors import BundleError, BusyError, CapabilityError, QuestionError, Refusal
from engine.bundle.index import Neighbours
from engine.bundle.manifest import Manifest, Projection
from engine.bundle.tokenizers import Tokenization
from engine.data import repeats
from engine.data.dataset import DatasetInfo
from engine.data.identifiers import Identifiers
from engine.evaluation import protocols
from engine.runtime import judge
from engine.runtime.attention import AttentionMap, entropy, last_row, mean_distance, mean_over_heads, rollout
from engine.runtime.beam_search import Agreement, CrossAttention, Trace
from engine.runtime.bundle import Bundle
from engine.runtime.leave_one_out import LeaveOneOut, probabilities, rank_and_log_probability, rank_move
from engine.runtime.providers import describe
from engine.runtime.rank_similarity import (
    Move,
    jaccard,
    mean_ranks,
    movement,
    overlap,
    rbo,
    rbo_weight,
    spearman,
)
from engine.runtime.retrieval import Contributions, Ranked, Recommendations
from engine.runtime.studies import Studies, Study
from engine.runtime.text import Word, WordAttention
from engine.runtime.zoo import EMBEDDED, Zoo, embedded_first
