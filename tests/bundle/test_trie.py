"""The prefix tree against lists of tuples."""

from __future__ import annotations

import numpy as np
import pytest

from engine.bundle.trie import Trie
from engine.data.identifiers import NONE, Identifiers
from tests.runtime.generators import full_length, ragged

SETS = {
    "full": full_length(),
    "shared": ragged(),
    "ragged": ragged(shared=False),
    "one item": Identifiers(np.array([[2, 1]], np.int32), (3, 3)),
    "all the same": Identifiers(np.ones((5, 3), np.int32), (2, 2, 2)),
    "one code": Identifiers(np.array([[1], [0], [1]], np.int32), (2,)),
    "only short": Identifiers(np.array([[1, NONE], [0, NONE]], np.int32), (2, 2)),
}
each = pytest.mark.parametrize("identifiers", SETS.values(), ids=SETS)


def ways(identifiers: Identifiers) -> list[tuple[int, ...]]:
    """Per item the tokens that are written, at most one of them the token that ends."""
    lengths = np.minimum((identifiers.codes != NONE).sum(1) + 1, identifiers.levels)
    return [tuple(row[:n].tolist()) for row, n in zip(identifiers.tokens(), lengths, strict=True)]


@each
def test_every_prefix_is_a_node(identifiers: Identifiers) -> None:
    trie, written = Trie.build(identifiers), ways(identifiers)
    prefixes = {way[:cut] for way in written for cut in range(len(way) + 1)}
    assert len(trie) == len(prefixes)
    for prefix in prefixes:
        node = trie.find(prefix)
        assert tuple(trie.tokens[trie.path(node)]) == prefix and trie.depths[node] == len(prefix)
        below = [item for item, way in enumerate(written) if way[: len(prefix)] == prefix]
        assert trie.items(node).tolist() == below
        assert trie.highs[node] - trie.lows[node] == len(below)
        following = sorted({way[len(prefix)] for way in written if way[: len(prefix)] == prefix and way != prefix})
        children, owners = trie.children(np.array([node]))
        assert trie.tokens[children].tolist() == following and owners.tolist() == [0] * len(following)
        assert trie.open[node] == (len({written[item] for item in below}) > 1)
    for item, way in enumerate(written):
        assert trie.leaves[item] == trie.find(way) and trie.counts[trie.leaves[item]] == 0
        path = [0, *trie.path(int(trie.leaves[item]))]
        assert trie.anchors[item] == next(node for node in path if not trie.open[node])  # from there on all is certain


@each
def test_many_nodes_at_once(identifiers: Identifiers) -> None:
    trie = Trie.build(identifiers)
    nodes = np.random.default_rng(0).integers(0, len(trie), 30)
    children, owners = trie.children(nodes)
    alone = [trie.children(nodes[i : i + 1])[0] for i in range(len(nodes))]
    np.testing.assert_array_equal(children, np.concatenate(alone))
    np.testing.assert_array_equal(owners, np.repeat(np.arange(len(nodes)), [len(part) for part in alone]))
    np.testing.assert_array_equal(trie.child(trie.parents[children], trie.tokens[children]), children)
    tokens = np.arange(identifiers.vocabulary)
    for node in nodes[:5]:
        found = trie.child(np.full(len(tokens), node), tokens)
        assert (found >= 0).sum() == trie.counts[node]
    assert (trie.child(np.full(len(tokens), -1), tokens) == -1).all()


@each
def test_how_many_of_some_items_are_below(identifiers: Identifiers) -> None:
    trie = Trie.build(identifiers)
    some = np.random.default_rng(1).random(len(identifiers)) < 0.4
    for node, count in enumerate(trie.below(some)):
        assert count == some[trie.items(node)].sum()
    assert trie.find([identifiers.vocabulary - 1] * 9) == -1
