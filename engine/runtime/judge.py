"""How good a model is, from the ranks in its bundle: metrics, intervals and paired tests, as pure functions on numpy arrays.

    judge.accuracy(ranks)["NDCG@10"]                  # one model
    values = judge.per_user("NDCG@10", ranks)         # float64 [users], its mean is the metric
    judge.per_user("NDCG@20", ranks, "given split", users)  # where a user has several held-out items
    judge.interval(values)                            # mean, low, high: 95 %, bootstrap over users
    judge.paired(values, baseline)                    # mean difference, its interval, p; the same users in the same order
    judge.holm([test.p for test in tests])            # p-values of several comparisons, adjusted
    judge.ranks(table, "full")                        # one protocol of a ranks.parquet; judge.common: people of several models
    judge.sentences(judge.verdict(contenders, "NDCG@10", popularity))  # the best neural model against the best without training

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
    by_chance,
    cutoff_of,
    key,
    names,
    per_user,
)
from engine.evaluation.significance import Difference, Interval, holm, interval, paired
from engine.evaluation.tables import Ranks, common, ranks
from engine.evaluation.verdict import (
    GROUP_COLUMNS,
    Contender,
    Group,
    Verdict,
    group_rows,
    sentences,
    signed,
    verdict,
    without_seed,
    words,
)
