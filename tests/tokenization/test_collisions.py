"""Policies for items of the same codes, on cases small enough to write down."""

from typing import Any

import numpy as np
import pytest

from engine.data.identifiers import NONE
from engine.errors import SeqscopeError
from engine.tokenizers import sinkhorn
from engine.tokenizers.base import Material
from engine.tokenizers.collisions import CollisionsConfig, append, extend, settle
from engine.tokenizers.random import Random, RandomConfig
from tests.tokenization.tiny import fitted, material

CODES = np.array([[1, 0], [0, 2], [1, 0], [1, 0], [0, 1]], np.int32)


@pytest.mark.parametrize(
    "codes",
    [[[0, 1], [1, -1], [-1, -1]], [[0, 1], [1, 2], [0, 3]], [[0, 1], [1, -2], [0, 0]], [[-1, 1], [0, 1], [0, 0]], [[0, 1]],
     [[0], [1], [0]], [[0, 1, 0]] * 3, [0, 1, 0], [[0.0, 1.0]] * 3, [[0, 1], [1], [0, 0]], [["a", "b"]] * 3, None],
)  # fmt: skip
@pytest.mark.parametrize("policy", ["append", "keep"])
def test_codes_that_are_none_of_a_tokenizer_s_levels_are_refused_in_its_name(codes: Any, policy: Any) -> None:
    class Strange(Random):
        sizes = (2, 3)

        def identify(self, material: Material) -> Any:
            try:
                return np.array(codes)
            except ValueError:  # rows of several lengths
                return codes

    with pytest.raises(SeqscopeError, match="random") as error:
        settle(Strange(RandomConfig(2, 3), ""), material(3), CollisionsConfig(policy), {})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["int64", "uint8"])
def test_codes_may_be_whole_numbers_of_any_width(kind: str) -> None:
    class Wide(Random):
        def identify(self, material: Material) -> Any:
            return np.array([[0, 1], [1, 2]], kind)

    found = settle(Wide(RandomConfig(2, 3), ""), material(2), CollisionsConfig("keep"), {})
    assert found.codes.dtype == np.int32 and found.codes.tolist() == [[0, 1], [1, 2]]


def test_tiger_counts_the_items_of_a_group() -> None:
    found, sizes = append(CODES, (2, 3))
    assert found.tolist() == [[1, 0, 0], [0, 2, 0], [1, 0, 1], [1, 0, 2], [0, 1, 0]]
    assert sizes == (2, 3, 3)


def test_only_those_that_collide() -> None:
    found, sizes = append(CODES, (2, 3), always=False)
    assert found.tolist() == [[1, 0, 0], [0, 2, NONE], [1, 0, 1], [1, 0, 2], [0, 1, NONE]]
    assert sizes == (2, 3, 3)
    same, unchanged = append(CODES[[0, 1]], (2, 3), always=False)
    assert (same.tolist(), unchanged) == (CODES[[0, 1]].tolist(), (2, 3))


def test_short_identifiers_take_their_number_where_they_end() -> None:
    codes = np.array([[0, NONE], [0, NONE], [0, 1], [1, 0]], np.int32)
    found, sizes = append(codes, (2, 2))
    assert found.tolist() == [[0, 2, NONE], [0, 3, NONE], [0, 1, 0], [1, 0, 0]]
    assert sizes == (2, 4, 1)


def test_shared_levels_grow_together() -> None:
    codes = np.array([[3, 1], [3, 1], [2, NONE]], np.int32)
    found, sizes = append(codes, (4, 4), shared=True, always=False)
    assert found.tolist() == [[3, 1, 4], [3, 1, 5], [2, NONE, NONE]]
    assert sizes == (6, 6, 6)


def test_counting_goes_on_for_further_items() -> None:
    known = settle(fitted("rqvae"), material(), CollisionsConfig("append"), {})
    more = extend(fitted("rqvae"), known, material(), CollisionsConfig("append"))  # the same items once more
    assert np.array_equal(more[:, :-1], known.codes[:, :-1])
    top = known.sizes[-1] - 1
    size = np.unique(known.codes[:, :-1], axis=0, return_inverse=True)
    groups = np.bincount(size[1].reshape(-1))[size[1].reshape(-1)]
    assert np.array_equal(more[:, -1], np.minimum(known.codes[:, -1] + groups, top))


def test_items_of_equal_vectors_are_parted_by_free_codes_alone() -> None:
    codes = np.zeros((4, 2), np.int32)
    last = np.tile(np.array([[0.0, 1.0, 2.0]], np.float32), (4, 1))
    left = sinkhorn.reassign(codes, last)
    assert len(np.unique(left, axis=0)) == 1
    parted = sinkhorn.separate(left, last)
    assert len(np.unique(parted, axis=0)) == 3  # three last codes for four items: two of them remain a tie


def test_codes_in_use_are_not_taken_from_their_items() -> None:
    codes = np.array([[0, 0], [0, 0], [0, 1], [1, 0]], np.int32)
    last = np.tile(np.array([[0.0, 1.0, 2.0]], np.float32), (4, 1))
    assert sinkhorn.separate(codes, last).tolist() == [[0, 0], [0, 2], [0, 1], [1, 0]]


@pytest.mark.parametrize("name", ["rqvae", "residual-kmeans"])
def test_re_assignment_lowers_collisions_and_moves_last_codes_alone(name: str) -> None:
    before = fitted(name).identify(material())
    found = settle(fitted(name), material(), CollisionsConfig("sinkhorn", separate=True), {}).codes
    assert np.array_equal(found[:, :-1], before[:, :-1])
    assert len(np.unique(found, axis=0)) > len(np.unique(before, axis=0))


def test_tokenizers_without_distances_say_so() -> None:
    with pytest.raises(ValueError, match=r"another collisions\.policy"):
        settle(fitted("random"), material(), CollisionsConfig("sinkhorn"), {})
