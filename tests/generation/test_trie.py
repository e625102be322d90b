"""The prefix tree holds every identifier, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.generation import Trie
from tests.generation.small import table

KINDS = ["full", "ties", "ragged", "words"]


def path(trie: Trie, node: int) -> list[int]:
    found = []
    while node:
        found.append(int(trie.tokens[node]))
        node = int(trie.parents[node])
    return found[::-1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_way_to_an_items_leaf_is_its_identifier(kind: str) -> None:
    identifiers = table(kind)
    trie = Trie.of(identifiers)
    assert trie.levels == identifiers.levels
    for item, tokens in enumerate(identifiers.tokens()):
        assert path(trie, int(trie.leaves[item])) == tokens.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_no_other_way(kind: str) -> None:
    identifiers = table(kind)
    trie, tokens = Trie.of(identifiers), identifiers.tokens()
    for depth in range(trie.levels + 1):
        there = {tuple(row) for row in tokens[:, :depth].tolist()}
        assert [tuple(path(trie, node)) for node in trie.level(depth)] == sorted(there)
    assert len(trie) == sum(len(trie.level(depth)) for depth in range(trie.levels + 1))


@pytest.mark.parametrize("kind", KINDS)
def test_children_stand_side_by_side_and_in_order(kind: str) -> None:
    trie = Trie.of(table(kind))
    for node in range(len(trie)):
        children = np.arange(trie.first[node], trie.first[node + 1])
        assert (trie.parents[children] == node).all()
        assert (np.diff(trie.tokens[children]) > 0).all()
    assert trie.children.sum() == len(trie) - 1
    leaves = trie.level(trie.levels)
    assert not trie.children[leaves.start :].any()
    assert trie.children[: leaves.start].all()


def test_items_that_share_an_identifier_share_a_leaf() -> None:
    trie = Trie.of(table("ties"))
    assert trie.leaves[4] == trie.leaves[5] == trie.leaves[6]
    groups = table("ties").groups()
    assert len(trie.level(trie.levels)) == groups.max() + 1
    assert trie.on(torch.device("cpu")).sizes.sum() == len(groups)


@pytest.mark.parametrize("kind", KINDS)
def test_a_network_is_asked_where_something_is_to_be_decided(kind: str) -> None:
    trie = Trie.of(table(kind))
    asked = trie.asked(constrained=True)
    for node in range(len(trie)):
        below, undecided = [node], False
        while below:
            one = below.pop()
            undecided = undecided or trie.children[one] > 1
            below.extend(range(trie.first[one], trie.first[one + 1]))
        assert asked[node] == undecided
    everywhere = trie.asked(constrained=False)
    written = (trie.children > 0) & ((trie.tokens != trie.end) | (trie.end < 0))
    assert (everywhere == written).all()


def test_expanding_nodes_lists_their_children() -> None:
    trie = Trie.of(table("ragged"))
    tree = trie.on(torch.device("cpu"))
    nodes = torch.tensor([[0, 1], [-1, len(trie) - 1]])
    children, real = tree.expand(nodes)
    for place in np.ndindex(2, 2):
        node = int(nodes[place])
        wanted = list(range(trie.first[node], trie.first[node + 1])) if node >= 0 else []
        assert children[place][real[place]].tolist() == wanted
