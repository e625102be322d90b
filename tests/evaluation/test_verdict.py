"""The verdict on planted ranks: a neural model clearly better, clearly worse, level; seeds; one kind alone; for whom; and which
held-out items follow from counts."""

import dataclasses

import numpy as np
import pytest

from engine.data.dataset import Cases
from engine.data.ragged import Ragged
from engine.evaluation import memorisation
from engine.evaluation.tables import Ranks
from engine.evaluation.verdict import Contender, Verdict, group_rows, sentences, signed, verdict, without_seed

PEOPLE, ITEMS = 900, 60
USER = np.arange(PEOPLE, dtype=np.int32)
TARGET = USER % ITEMS
POPULARITY = np.arange(ITEMS) + 1
METRIC = "HR@10"


def hits(share: float, seed: int = 0, width: int | None = None) -> Ranks:
    """Rank 1 for so many people, drawn, else 100."""
    drawn = np.random.default_rng(seed).random(PEOPLE) < share
    return Ranks(USER, TARGET, USER % 50, np.where(drawn, 1.0, 100.0), width)


def neural(*ranks: Ranks, name: str = "sasrec") -> Contender:
    return Contender(name, name.upper(), True, ranks, 300.0, 1_000, 2.5)


def counting(*ranks: Ranks, name: str = "markov") -> Contender:
    return Contender(name, name.upper(), False, ranks, 0.2, 0)


def judged(*contenders: Contender, **more: np.ndarray) -> Verdict:
    result = verdict(contenders, METRIC, POPULARITY, **more)
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("share", "better", "words"),
    [(0.5, "neural", "SASREC, a neural model, beats MARKOV"), (0.1, "untrained", "No neural model is worth its training"),
     (0.3, "level", "is not significantly different from MARKOV")],
)  # fmt: skip
def test_the_better_of_the_two_is_said_plainly(share: float, better: str, words: str) -> None:
    found = judged(neural(hits(share, 1)), counting(hits(0.3, 2)))
    assert found.better == better and words in sentences(found)
    assert found.low < found.difference < found.high
    assert found.difference == pytest.approx(hits(share, 1).values(METRIC).mean() - hits(0.3, 2).values(METRIC).mean())


@pytest.mark.parametrize(("people", "few"), [(5, True), (PEOPLE, False)])
def test_an_interval_over_few_users_is_called_that(people: int, few: bool) -> None:
    best, worst = (Ranks(USER[:people], TARGET[:people], USER[:people], np.full(people, rank)) for rank in (1.0, 99.0))
    assert ("so few users" in sentences(judged(neural(best), counting(worst)))) is few


def test_the_best_of_each_kind_is_compared_and_what_a_beam_does_not_know_is_not() -> None:
    narrow = neural(hits(0.9, width=5), name="beam")
    better, ease = neural(hits(0.5), name="better"), counting(hits(0.3), name="ease")
    found = judged(neural(hits(0.2)), better, narrow, counting(hits(0.1)), ease)
    assert (found.neural.name, found.neural.among) == ("better", 2)
    assert (found.untrained.name, found.untrained.among) == ("ease", 2)
    assert verdict([narrow], METRIC, POPULARITY) is None
    for alone in (better, ease):  # one kind alone is not compared
        assert judged(alone).better is None and "evaluated" in sentences(judged(alone))


def test_the_best_of_several_that_may_be_ahead_by_having_been_chosen_is_called_that() -> None:
    """Of equally good models the best of twelve beats the floor too often, and rarely without these words."""
    beats = plain = 0
    for at in range(100):
        equals = [hits(0.3, 1_000 + 20 * at + n) for n in range(13)]
        found = judged(*(neural(ranks, name=f"n{n}") for n, ranks in enumerate(equals[1:])), counting(equals[0]))
        beats += found.better == "neural"
        plain += found.better == "neural" and "as the best of 12, may be ahead by chance" not in sentences(found)
    assert beats > 15 and plain < 6
    two = judged(*(neural(hits(0.6, n), name=f"n{n}") for n in range(2)), counting(hits(0.3, 9)))
    assert two.p < 0.01 and "by chance" not in sentences(two)


def test_a_verdict_over_trainings_that_were_cut_short_says_so() -> None:
    floor, cut = counting(hits(0.3)), dataclasses.replace(neural(hits(0.2, 1), name="cut"), improving=True)
    settled = judged(neural(hits(0.1)), floor)
    assert settled.neural.improving == 0 and "more epochs" not in sentences(settled)
    early = judged(neural(hits(0.1)), cut, floor)
    assert early.neural.improving == 1 and "as far as they were trained" in sentences(early)


def test_the_interval_over_seeds_holds_what_another_training_would_change() -> None:
    floor = counting(hits(0.30, 9))
    one = judged(neural(hits(0.36, 1)), floor)
    three = judged(neural(hits(0.30, 1), hits(0.36, 1), hits(0.42, 1)), floor)
    assert "one seed" in sentences(one) and "3 seeds" in sentences(three) and three.neural.seeds == 3
    assert three.high - three.low > 2 * (one.high - one.low)
    alike = judged(neural(*[hits(0.36, 1)] * 3), floor)  # trainings that agree add nothing
    assert (alike.low, alike.high) == pytest.approx((one.low, one.high), abs=0.002)


def test_numbers_have_a_true_minus_and_zero_no_sign() -> None:
    assert [signed(value, "+.3f") for value in (-0.0053, 0.04, -0.0004, 0.0)] == ["−0.005", "+0.040", "0.000", "0.000"]
    assert signed(-0.0053) == "−0.0053" and signed(-1_200.0, ",.4g") == "−1,200" and signed(-0.0, ".4f") == "0.0000"


def test_what_training_took_is_said_of_where_it_was_done() -> None:
    verdict = judged(neural(hits(0.5)), counting(hits(0.3)))
    assert "SASREC took 5 min to train, has 1,000 parameters" in sentences(verdict)
    assert "MARKOV took 0.2 s to fit and learns nothing by gradient" in sentences(verdict)
    carried = sentences(verdict, elsewhere={"sasrec": "Beauty"})
    assert "SASREC was not trained on this dataset but on Beauty in 5 min, has" in carried and "to train" not in carried


def test_no_training_is_judged_that_did_not_happen() -> None:
    """Where the one neural model was trained on another dataset, nothing is known of training on this one."""
    floor, carried = counting(hits(0.3)), neural(hits(0.1))
    alone, beside = judged(carried, floor), judged(carried, neural(hits(0.05), name="gru4rec"), floor)
    assert "worth its training" not in sentences(alone, elsewhere={"sasrec": "Beauty"})
    assert "worth its training" in sentences(beside, elsewhere={"sasrec": "Beauty"})


def test_for_whom() -> None:
    """Ahead where items are popular and where they follow from no counts, behind where items are rare."""
    popular = POPULARITY[TARGET] > 40
    rare = POPULARITY[TARGET] <= 20
    kinds = np.where(popular, memorisation.UNSEEN, memorisation.NEXT)
    ours = Ranks(USER, TARGET, USER % 50, np.where(popular, 1.0, 100.0))
    theirs = Ranks(USER, TARGET, USER % 50, np.where(rare, 1.0, 100.0))
    found = judged(neural(ours), counting(theirs), memorised=kinds)
    groups = {group.kind: group for group in found.groups}
    assert set(groups) == {"rare", "popular", "short", "long", "next", "unseen"}
    assert groups["popular"].difference == 1 and groups["rare"].difference == -1
    assert 0.9 < groups["unseen"].low < 1 == groups["unseen"].high  # as much as 300 users tell who are all alike
    assert (groups["rare"].bound, groups["popular"].bound) == (20, 41)
    assert groups["rare"].share == pytest.approx(1 / 3, abs=0.01) and groups["rare"].people == rare.sum()
    text = sentences(found)
    furthest = "furthest ahead on popular items (+1.0000), furthest behind on rare items (−1.0000)"
    assert text.endswith(f"SASREC is {furthest} and not significantly different on short histories and long histories.")
    assert ("rare items (≤ 20 training events)", "300", "33%", "−1.0000", "−1.0000 to −0.9756") in group_rows(found)
    few = dataclasses.replace(found, groups=tuple(dataclasses.replace(group, people=29) for group in found.groups))
    assert "ahead on" not in sentences(few)


def test_trainings_that_differ_in_their_seed_alone_are_one_model() -> None:
    recipe = {"family": "sasrec", "model": {"dim": 64}, "training": {"seed": 1, "epochs": 5}}
    other = {"family": "sasrec", "model": {"dim": 64}, "training": {"seed": 2, "epochs": 5}}
    longer = {"family": "sasrec", "model": {"dim": 64}, "training": {"seed": 2, "epochs": 6}}
    assert without_seed(recipe) == without_seed(other) != without_seed(longer)
    assert without_seed({**other, "name": "b", "title": "B"}) == without_seed(recipe), "whatever it is called"
    compiled = {**recipe, "training": {"seed": 3, "epochs": 5, "compile": True, "precision": "bfloat16"}}
    assert without_seed(compiled) == without_seed(recipe), "however it is computed"
    assert without_seed({"training": "by hand"}) != without_seed({"training": None}), "whatever a bundle's recipe holds"


def test_what_follows_from_counts() -> None:
    training = Ragged.of([[0, 1, 2, 3, 4], [5, 6], [], [7]])
    histories = [[9, 0], [0, 9], [0, 9], [0, 9], [4, 5], [8]]
    targets = np.array([1, 1, 3, 4, 6, 0], np.int32)  # next, near, near (3 places), 4 places: unseen, next, unseen
    cases = Cases.of(np.arange(6, dtype=np.int32), Ragged.of(histories), targets)
    expected = [memorisation.NEXT, memorisation.NEAR, memorisation.NEAR, 0, memorisation.NEXT, 0]
    assert memorisation.memorised(training, cases, 10).tolist() == expected
    # no pair crosses from one user to the next
    across = Cases.of(np.arange(1, dtype=np.int32), Ragged.of([[4]]), np.array([5], np.int32))
    assert memorisation.memorised(training, across, 10).tolist() == [memorisation.UNSEEN]
