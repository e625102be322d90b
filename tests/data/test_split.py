"""The split: right by hand, right against a straight-line re-derivation, and nothing later ever trains."""

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from engine.data.dataset import Dataset, Role
from engine.data.split import SplitOptions, by_time, leave_one_out, split_moments, split_roles
from engine.data.write import write_dataset
from engine.errors import SeqscopeError, UsageError

TRAIN, VALID, TEST, LATER, BETWEEN = Role.TRAIN, Role.VALID, Role.TEST, Role.LATER, Role.BETWEEN


def random_log(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """offsets and timestamps of users with 0 to 12 events and many ties"""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 13, size=60)
    times = [np.sort(rng.integers(0, 40, size=n)) for n in lengths]
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), np.concatenate(times).astype(np.int64)


def test_splits_equal_their_definition() -> None:
    offsets, times = random_log(0)
    loo, timed = leave_one_out(offsets), by_time(offsets, times, 20, 30)
    for start, end in itertools.pairwise(offsets):
        expected_loo = [TRAIN] * (end - start)
        if end - start >= 3:
            expected_loo[-2:] = [VALID, TEST]
        expected, asked = [], set()
        for position, time in enumerate(times[start:end]):
            period = "train" if time < 20 else "valid" if time < 30 else "test"
            earlier = [t for t in times[start : start + position] if (t < 20 if period == "valid" else t < 30)]
            if period == "train":
                expected.append(TRAIN)
            elif earlier and period not in asked:
                expected.append(VALID if period == "valid" else TEST)
            else:
                expected.append(BETWEEN if period == "valid" else LATER)
            asked.add(period)
        assert loo[start:end].tolist() == expected_loo
        assert timed[start:end].tolist() == expected


def test_no_event_of_the_future_trains_or_stands_in_a_history(tmp_path: Path) -> None:
    offsets, times = random_log(1)
    user = np.repeat(np.arange(60), np.diff(offsets))
    names = [str(n) for n in range(len(times))]
    items = pa.table({"item_id": names, "title": names})
    write_dataset(
        tmp_path / "d", name="d", title="", source="", licence="", simulated=True, items=items, users=[str(n) for n in range(60)],
        user=user, item=np.arange(len(times)), timestamp=times, time_unit="second", split=SplitOptions("time", 20, 30),
    )  # fmt: skip
    dataset = Dataset(tmp_path / "d")
    moment = times.tolist()  # item n is event n
    assert max(moment[item] for item in dataset.training.values) < 20
    for split, start, end in (("valid", 20, 30), ("test", 30, 41)):
        cases = dataset.cases(split)
        assert len(cases) > 5
        for case, target in enumerate(cases.targets.tolist()):
            history = [moment[item] for item in cases.history[case].tolist()]
            assert history and max(history) < start <= moment[target] < end
            own = times[offsets[cases.users[case]] : offsets[cases.users[case] + 1]]
            assert len(history) == np.count_nonzero(own < start)  # all of it, the validation item included


def test_quantiles_are_moments_of_the_log() -> None:
    times = np.array([50, 10, 20, 30, 40, 60, 70, 80, 90, 100])
    assert split_moments(times, SplitOptions("time")) == (90, 100)
    assert split_moments(times, SplitOptions("time", valid_quantile=0.5, test_quantile=0.7)) == (60, 80)
    assert split_moments(times, SplitOptions("time", valid_from=25, test_from=55)) == (25, 55)


@pytest.mark.parametrize(("valid_from", "test_from"), [(10, 50), (50, 50), (20, 101)])
def test_moments_outside_the_log_are_refused(valid_from: int, test_from: int) -> None:
    with pytest.raises(SeqscopeError, match="valid_from"):
        split_moments(np.arange(10, 110, 10), SplitOptions("time", valid_from, test_from))


def test_impossible_splits_say_why() -> None:
    with pytest.raises(SeqscopeError, match="only an order"):
        split_roles(SplitOptions("time"), np.array([0, 3]), None)
    with pytest.raises(SeqscopeError, match="no user has three events"):
        split_roles(SplitOptions(), np.array([0, 2, 4]), None)
    with pytest.raises(SeqscopeError, match="leaves nobody"):
        split_roles(SplitOptions("time", 2, 3), np.array([0, 1, 2, 3]), np.array([1, 2, 3]))
    with pytest.raises(UsageError, match="unknown split"):
        SplitOptions("random")
    with pytest.raises(UsageError, match="ascend"):
        SplitOptions("time", valid_quantile=0.9, test_quantile=0.8)
