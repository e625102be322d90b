"""How good a model is, from the ranks in its bundle: metrics, intervals and paired tests, as pure functions on numpy arrays.

    judge.accuracy(ranks)["NDCG@10"]                  # one model
    values = judge.per_user("NDCG@10", ranks)         # float64 [users], its mean is the metric
    judge.per_user("NDCG@20", ranks, "given split", users)  # where a user has several held-out items
    judge.interval(values)                            # mean, low, high: 95 %, bootstrap over users
    judge.paired(values, baseline)                    # mean difference, its interval, p; the same users in the same order
    judge.holm([test.p for test in tests])            # p-values of several comparisons, adjusted

These are the functions that `seqscope evaluate` uses, so a page and a report cannot disagree.
"""

from engine.evaluation.metrics import (
    ACCURACY,
    BEYOND,
    CUTOFFS,
    HEADLINE,
    accuracy,
    beam_width,
    beyond_accuracy,
    beyond_beam,
    cutoff_of,
    key,
    names,
    per_user,
)
from engine.evaluation.significance import Difference, Interval, holm, interval, paired

__all__ = [
    "ACCURACY",
    "BEYOND",
    "CUTOFFS",
    "HEADLINE",
    "Difference",
    "Interval",
    "accuracy",
    "beam_width",
    "beyond_accuracy",
    "beyond_beam",
    "cutoff_of",
    "holm",
    "interval",
    "key",
    "names",
    "paired",
    "per_user",
]
