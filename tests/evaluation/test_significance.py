"""Intervals that cover, differences that are paired, and Holm's table."""

import numpy as np
import pytest
from scipy import integrate, stats

from engine.evaluation.significance import holm, interval, paired, paired_over_seeds


def test_the_interval_is_that_of_drawing_users() -> None:
    values = np.random.default_rng(1).choice([0, 0.5, 1], 300, p=[0.5, 0.3, 0.2])
    rng = np.random.default_rng(2)
    means = [values[rng.integers(0, 300, 300)].mean() for _ in range(3000)]
    found = interval(values, samples=3000)
    assert found.mean == pytest.approx(values.mean())
    assert [found.low, found.high] == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.005)


def test_pairing_sees_what_two_intervals_hide() -> None:
    rng = np.random.default_rng(5)
    baseline = rng.random(400)  # people differ much
    better = baseline + 0.02 + 0.01 * rng.normal(size=400)  # the models little, but always
    apart = interval(better).low < interval(baseline).high
    found = paired(better, baseline)
    assert apart
    assert found.low > 0
    assert found.p < 0.01
    assert found.mean == pytest.approx((better - baseline).mean())
    other = paired(baseline, better)
    assert other.mean == -found.mean
    assert other.high < 0


@pytest.mark.parametrize(
    ("gain", "users", "drawn"), [(0.3, 400, False), (0.1, 400, True), (0.0, 400, True), (1.0, 4, True)]
)
def test_a_clear_difference_has_its_p_without_a_draw(gain: float, users: int, drawn: bool) -> None:
    rng = np.random.default_rng(3)
    baseline = rng.integers(0, 2, users) if gain < 1 else np.zeros(users)
    values = baseline + gain + (0.5 * rng.normal(size=users) if gain < 1 else 0)
    whole, p_alone = paired(values, baseline), paired(values, baseline, with_interval=False)
    assert (p_alone.mean, p_alone.p) == (whole.mean, whole.p)
    assert np.isnan(p_alone.low) != drawn


def test_no_difference_is_not_significant() -> None:
    values = np.random.default_rng(6).random(50)
    found = paired(values, values)
    assert (found.mean, found.p) == (0, 1)
    # as wide as that of no hit among 50 users
    assert found.high == -found.low == pytest.approx(interval(np.zeros(50)).high)
    alike = paired(np.full(50, 0.3), np.zeros(50))
    assert 0 < alike.low < 0.3 - 0.05 and alike.high > 0.3 + 0.04


def test_p_is_uniform_where_there_is_nothing_to_find() -> None:
    rng = np.random.default_rng(7)
    p = [paired(rng.normal(size=60), rng.normal(size=60), seed=trial, samples=300).p for trial in range(300)]
    assert 0.02 <= np.mean(np.array(p) < 0.05) <= 0.10
    assert 0.4 <= np.mean(np.array(p) < 0.5) <= 0.6
    assert min(p) > 0
    assert max(p) <= 1


def test_other_people_cannot_be_paired() -> None:
    with pytest.raises(ValueError, match="same users"):
        paired(np.zeros(3), np.zeros(4))


def test_holm() -> None:
    # a textbook example: .01, .04, .03, .005 → .03, .06, .06, .02
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.04, 0.04]) == pytest.approx([0.08, 0.08])
    assert holm([0.5, 0.9]) == [1, 1]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


def test_over_seeds_the_interval_covers_what_another_training_would_be() -> None:
    """Where users and trainings both vary: over users alone it is too narrow, over both it covers as often as it says."""
    rng = np.random.default_rng(4)
    covered, over_users = 0, 0
    for trial in range(100):
        ours = 0.3 + rng.normal(0, 0.05, (3, 1)) + rng.normal(0, 0.5, 300)  # three trainings, the same users
        theirs = 0.3 + rng.normal(0, 0.5, (1, 300))
        both = paired_over_seeds(ours, theirs, seed=trial, samples=500)
        users = paired_over_seeds(ours[:1], theirs, seed=trial, samples=500)
        covered += both.low <= 0 <= both.high
        over_users += users.low <= 0 <= users.high
    assert covered / 100 >= 0.93 and over_users / 100 < 0.90
    with pytest.raises(ValueError, match="same users"):
        paired_over_seeds(np.zeros((1, 3)), np.zeros((1, 4)))


def test_over_seeds_alone_the_interval_is_that_of_behrens_and_fisher() -> None:
    """By quadrature: of a sum of two t, each as wide as the means of its model's trainings say."""
    ours, theirs = np.array([0.3, 0.33, 0.36]), np.array([0.29, 0.32, 0.3, 0.31])
    users = np.random.default_rng(6).normal(0, 1e-6, 50)
    drawn = paired_over_seeds(ours[:, None] + users, np.repeat(theirs[:, None], 50, 1), samples=100_000)
    one, other = (runs.std(ddof=1) / np.sqrt(len(runs)) for runs in (ours, theirs))

    def below(end: float) -> float:
        at = end - (ours.mean() - theirs.mean())
        return integrate.quad(lambda x: stats.t.cdf((at - other * x) / one, 2) * stats.t.pdf(x, 3), -np.inf, np.inf)[0]

    assert [below(drawn.low), below(drawn.high), 2 * below(0)] == pytest.approx([0.025, 0.975, drawn.p], abs=0.008)


def test_the_interval_of_no_hit_is_as_wide_as_hits_that_were_missed_by_chance() -> None:
    """The bootstrap of equal values has no width: a model without a hit among 30 users would be sure never to have one."""
    rng = np.random.default_rng(8)
    for people, rate in ((30, 0.03), (100, 0.01)):
        intervals = [interval((rng.random(people) < rate).astype(float), samples=300, seed=n) for n in range(300)]
        assert np.mean([each.low <= rate <= each.high for each in intervals]) >= 0.93
    none, every = interval(np.zeros(30)), interval(np.ones(30))
    assert (none.mean, none.low, every.high) == (0, 0, 1)
    # Clopper and Pearson 1934: (1 − p)^30 = .025
    assert none.high == pytest.approx(0.11570, abs=1e-5) and every.low == pytest.approx(1 - 0.11570, abs=1e-5)


def test_too_few_users_differ_to_tell_models_apart() -> None:
    """No exact test of signs says more: five users who all prefer one model have p = 2 / 2⁵."""
    for people, p in ((1, 1.0), (2, 0.5), (5, 1 / 16)):
        better = paired(np.linspace(0.5, 1, people), np.zeros(people))
        assert better.p == p and better.low <= 0 < better.mean <= better.high
        worse = paired(np.zeros(people), np.linspace(0.5, 1, people))
        assert worse.high >= 0 and (people == 1 or better.low == worse.high == 0)
    assert paired(np.ones(6), np.zeros(6)).p == 1 / 32
    rest = np.zeros(94)  # who do not differ say nothing of which is better
    assert paired(np.append(np.ones(4), rest), np.zeros(98)).p == 1 / 8
    rng, wrong = np.random.default_rng(9), 0
    for trial in range(300):
        first, second = rng.random((2, 4))
        wrong += paired(first, second, seed=trial, samples=300).low > 0
    assert wrong == 0
