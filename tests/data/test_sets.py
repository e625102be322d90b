"""Splits into sets: files that give one, people held out whole, and what is wrong with them."""

import numpy as np
import pytest

from engine.data.dataset import Dataset, Role, describe
from engine.data.split import IN_TRAINING, NO_TRAINING, by_user
from tests.data.conftest import Bench, item_ids, user_ids

TRAIN = "0 4 2 0 9 7\n1 2 3\n2 4 5 6 8\n"
TEST = "0 3 1\n1 9 0\n2 2\n"


def roles(dataset: Dataset) -> dict[str, dict[str, Role]]:
    """User id → item id → role."""
    items, users = item_ids(dataset), user_ids(dataset)
    owner = np.repeat(np.arange(len(users)), dataset.events.lengths)
    roles_by_user: dict[str, dict[str, Role]] = {user: {} for user in users}
    for place, (user, item) in enumerate(zip(owner, dataset.events.values, strict=True)):
        roles_by_user[users[user]][items[item]] = Role(int(dataset.roles[place]))
    return roles_by_user


def with_role(dataset: Dataset, role: Role) -> dict[str, set[str]]:
    return {user: {item for item, own in items.items() if own == role} for user, items in roles(dataset).items()}


def test_a_given_split_is_what_its_files_say(bench: Bench) -> None:
    paths = (bench.write("train.txt", TRAIN), "--test", bench.write("test.txt", TEST))
    dataset = bench.load(*paths, "--valid-share", 0)
    assert with_role(dataset, Role.TRAIN) == {"0": set("42097"), "1": set("23"), "2": set("4568")}
    assert with_role(dataset, Role.TEST) == {"0": set("31"), "1": set("90"), "2": set("2")}
    assert dataset.info.counts["test"] == 3 and dataset.info.split["test_items"] == 5 and not dataset.info.ordered
    assert dataset.popularity[item_ids(dataset).index("1")] == 0  # of the test alone: in the catalogue
    assert dataset.info.held_out == {"untrained": 1}, "in nobody's training"
    assert "1 (20%) is of an item that nobody has in training" in describe(dataset.info)
    cases = dataset.cases("test")
    assert cases.history[1].tolist() == [2, 3] and cases.held_out[1].tolist() == [0, 9]
    assert len(dataset.cases("valid")) == 0


def test_validation_is_drawn_from_training_and_known_to_the_test(bench: Bench) -> None:
    paths = (bench.write("train.txt", TRAIN), "--test", bench.write("test.txt", TEST), "--valid-share", 0.4)
    dataset = bench.load(*paths)
    drawn = with_role(dataset, Role.VALID)
    assert {user: len(items) for user, items in drawn.items()} == {"0": 2, "1": 1, "2": 2}
    assert all(items <= set(line.split()[1:]) for items, line in zip(drawn.values(), TRAIN.splitlines(), strict=True))
    valid, test = dataset.cases("valid"), dataset.cases("test")
    for row in range(3):
        assert set(valid.history[row]) | set(valid.held_out[row]) == set(test.history[row])
        assert not set(valid.history[row]) & set(valid.held_out[row])
    again, other = bench.load(*paths, name="again"), bench.load(*paths, "--seed", 1, name="other")
    assert again.info.fingerprint == dataset.info.fingerprint != other.info.fingerprint


@pytest.mark.parametrize(
    ("train", "test", "left_out"),
    [
        (TRAIN, TEST + "0 4 1\n", {IN_TRAINING: 1, "same user and item again": 1}),
        (TRAIN, TEST + "7 1 2\n", {NO_TRAINING: 2}),
        (TRAIN + "5 1 2 1\n", TEST, {"same user and item again": 1}),
        (TRAIN + "5\n", TEST + "2 \n", {"user without items": 2}),
        (TRAIN, TEST + "1 a\x01b\n", {"control character in an item id": 1}),
    ],
)
def test_what_cannot_be_used_is_counted(bench: Bench, train: str, test: str, left_out: dict[str, int]) -> None:
    dataset = bench.load(bench.write("train.txt", train), "--test", bench.write("test.txt", test), "--valid-share", 0)
    assert dataset.info.left_out == left_out
    assert with_role(dataset, Role.TEST)["0"] == set("31") and "7" not in user_ids(dataset)


def test_users_on_two_lines_are_joined_and_counted(bench: Bench) -> None:
    dataset = bench.load(bench.write("train.txt", TRAIN + "1 7\n"), "--test", bench.write("test.txt", TEST))
    assert "1 × user on several lines" in bench.err and set(roles(dataset)["1"]) == set("23790")


@pytest.mark.parametrize(
    ("code", "words", "message"),
    [
        (1, "train.txt --test empty.txt", "holds no rows"),
        (1, "train.txt --test none.txt", "does not exist"),
        (1, "train.txt --test known.txt", "nobody to test on"),
        (1, "train.txt --test test.txt --valid-share .01", "nobody to validate on"),
        (1, "others.txt --test test.txt", "nobody in it has items in"),
        (2, "train.txt --test test.txt --valid-share 1", "--valid-share 1"),
        (2, "train.txt --test test.txt --split time", "leave out --split"),
        (2, "train.txt --test test.txt --k-core 2", "--k-core"),
        (2, "train.txt --test test.txt --repeats count", "--repeats count"),
        (2, "train.txt --test test.txt --source user-item", "user-item has no file of held-out items"),
        (2, "train.txt --source user-items", "no order"),
        (1, "train.txt --split users --held-out-users 2 2", "of 3 users 1 has the 5 items"),
        (2, "train.txt --split users --fold-in 1", "--fold-in 1"),
        (2, "train.txt --split users --held-out-users 1 0", "--held-out-users 1 0"),
    ],
)
def test_refusals(bench: Bench, code: int, words: str, message: str) -> None:
    for name, content in {
        "train.txt": TRAIN,
        "test.txt": TEST,
        "empty.txt": "\n",
        "known.txt": "1 2\n",
        "others.txt": "8,9\n",
    }.items():
        bench.write(name, content)
    given = [str(bench.folder / word) if word.endswith(".txt") else word for word in words.split()]
    assert message in bench.fails(*given, code=code)


def test_people_held_out_whole(bench: Bench) -> None:
    """Of any log; what is known of them is never trained on."""
    log = "user,item,time\n" + "".join(f"{u},{(u * 7 + i) % 40},{100 * u + i}\n" for u in range(40) for i in range(11))
    path = bench.write("log.csv", log + "0,0,9999\n")
    dataset = bench.load(path, "--split", "users", "--held-out-users", 5, 0.2)
    assert "only the first event of a user with an item" in bench.err and "--repeats" not in bench.err
    assert (dataset.info.counts["valid"], dataset.info.counts["test"]) == (5, 8)
    valid, test = dataset.cases("valid"), dataset.cases("test")
    assert not set(valid.users) & set(test.users)
    for cases in (valid, test):
        assert not dataset.training.lengths[cases.users].any()
        assert cases.held_out.lengths.tolist() == [2] * len(cases)  # of eleven items a fifth, rounded down
        for row, user in enumerate(cases.users):
            history = cases.history[row].tolist()
            assert sorted([*history, *cases.held_out[row].tolist()]) == sorted(dataset.events[user].tolist())
            assert history == [item for item in dataset.events[user].tolist() if item in history]  # still in order
    assert (dataset.training.lengths > 0).sum() == 27
    again, other = (bench.load(path, "--split", "users", "--seed", seed, name="other") for seed in (0, 1))
    assert again.info.fingerprint != other.info.fingerprint


def test_a_fifth_of_five_is_one() -> None:
    drawn = by_user(np.arange(0, 45, 5), (2, 2), 0.8, seed=3)
    assert np.count_nonzero(drawn == Role.VALID) == np.count_nonzero(drawn == Role.TEST) == 2


def test_the_format_is_recognised_by_lines_of_different_lengths(bench: Bench) -> None:
    bench.load(bench.write("log.txt", TRAIN), "--split", "users", "--held-out-users", 0, 1)
    assert "format: user-items" in bench.err
