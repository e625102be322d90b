"""Views of codes, by hand: use, inequality, groups, prefixes, purity, the tree, and what models write."""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from app.analysis import map_colouring, prefix_tree, semantic_ids, tokenizers
from app.figures import semantic_ids as figures
from app.figures.style import log_axis
from app.zoo import Style
from engine.bundle import codes as codes_of
from engine.bundle.codes import Usage
from engine.bundle.files import Catalogue
from engine.bundle.tokenizers import Tokenization
from engine.tokenizers import report
from tests.runtime.bundles import FINGERPRINT
from tests.runtime.tokenizations import ITEMS, write_tokenization

NAMED = figures.Named("<b>RQ</b> $x$", Style("#0072b2", "circle", "●", "solid"))
CODES = np.array([[0, 1], [0, 1], [0, 2], [1, 0], [1, -1], [2, 0], [0, 1]], np.int32)
EVENTS = np.array([8, 1, 4, 2, 0, 16, 3])


def test_use_of_codes_by_hand_and_beside_random_ones() -> None:
    first, second = codes_of.usage(CODES, (4, 3))
    assert first.counts.tolist() == [4, 2, 1, 0] and second.counts.tolist() == [2, 3, 1]
    assert (first.used, first.dead, first.total, second.total) == (3, 1, 7, 6)
    entropy = -sum(share * math.log2(share) for share in (4 / 7, 2 / 7, 1 / 7))
    assert first.perplexity == pytest.approx(2**entropy)
    assert first.ordered.tolist() == [4, 2, 1, 0]
    rng = np.random.default_rng(3)
    random = np.stack([rng.integers(0, 16, 400), rng.integers(0, 4, 400)], axis=1)
    for level, size in zip(codes_of.usage(random, (16, 4)), (16, 4), strict=True):
        assert level.normalised == pytest.approx(semantic_ids.normalised_by_chance(400, size), abs=0.03)
    assert semantic_ids.normalised_by_chance(400, 16) < semantic_ids.normalised_by_chance(40_000, 16) <= 1
    collapsed = np.array([[0, 0], [1, 0], [2, 0], [2, 0]])
    assert codes_of.usage(collapsed, (3, 4))[1].normalised == 0.25
    assert semantic_ids.alike(collapsed) == [0.5, 0.5]
    by_chance = semantic_ids.alike_by_chance(200, (16, 16))
    assert semantic_ids.alike(rng.integers(0, 16, (200, 2))) == pytest.approx(by_chance, abs=0.1)


def test_random_codes_are_as_many_as_a_level_has() -> None:
    codes = np.full((400, 2), -1, np.int32)
    codes[:, 0], codes[:20, 1] = np.arange(400) % 100, np.arange(20)  # 20 items go on after their first code
    levels = tokenizers.levels_table([("T", SimpleNamespace(learned=codes), codes_of.usage(codes, (100, 100)))])  # type: ignore[list-item]
    assert levels["Perplexity by chance"][1] < levels["Normalised perplexity"][1] == pytest.approx(20)


@pytest.mark.parametrize(
    ("shares", "digits"), [([0, 42.5, 100], 1), ([99.95, 50], 2), ([0.0004, 100], 1), ([99.9997], 1)]
)
def test_no_share_of_a_table_is_rounded_to_all_or_nothing(shares: list[float], digits: int) -> None:
    assert tokenizers.digits_of_shares(shares) == digits


@pytest.mark.parametrize(("counts", "gini"), [([5, 5, 5, 5], 0.0), ([0, 0, 0, 8], 0.75), ([1, 3], 0.25), ([0, 0], 0.0)])
def test_gini_is_twice_the_area_above_the_lorenz_curve(counts: list[int], gini: float) -> None:
    level = Usage(np.array(counts))
    assert level.gini == pytest.approx(gini)
    x, y = level.lorenz()
    assert (x[0], y[0], x[-1]) == (0, 0, 1)
    if sum(counts):
        assert y[-1] == 1 and 1 - 2 * np.trapezoid(y, x) == pytest.approx(gini)
    assert (np.diff(y) >= 0).all()


def test_groups_prefixes_and_paths_agree_with_the_figures_of_the_engine() -> None:
    assert [group.tolist() for group in semantic_ids.groups(CODES)] == [[0, 1, 6]]
    assert semantic_ids.groups(np.arange(4)[:, None]) == []
    assert semantic_ids.with_prefix(CODES, (0,)).tolist() == [0, 1, 2, 6]
    assert semantic_ids.with_prefix(CODES, (0, 1)).tolist() == [0, 1, 6]
    assert len(semantic_ids.with_prefix(CODES, ())) == 7 and len(semantic_ids.with_prefix(CODES, (0, 1, 2))) == 0
    assert semantic_ids.following(CODES, ()) == [(0, 4), (1, 2), (2, 1)]
    assert semantic_ids.following(CODES, (1,)) == [(0, 1)] and semantic_ids.following(CODES, (0, 1)) == []
    assert semantic_ids.path(CODES, 4) == (1,) and semantic_ids.spelled((12, 200, 7)) == "12 · 200 · 7"
    rng = np.random.default_rng(0)
    codes = (rng.integers(0, 6, (200, 3)) ** 2 // 5).astype(np.int32)
    collisions = report.collisions(codes)
    groups = semantic_ids.groups(codes)
    assert (len(groups), len(groups[0])) == (collisions["groups"], collisions["largest"])
    assert sum(map(len, groups)) / 200 == pytest.approx(collisions["sharing"])


def test_purity_and_popularity_of_codes_by_hand() -> None:
    kinds = np.array([0, 0, 1, 1, -1, 1, 1])
    first, second = codes_of.purity(CODES, kinds)
    # code 0 has two of each kind; the others are alone once the item without a kind is left out
    assert (first.groups, first.items, first.purity) == (3, 4, 0.5)
    assert (second.items, second.purity) == (3, pytest.approx(2 / 3))
    alone = codes_of.purity(np.arange(3)[:, None], np.zeros(3, np.int64))[0]
    assert alone.items == 0 and math.isnan(alone.purity)
    found = semantic_ids.popularity(CODES, 0, EVENTS)
    assert found.code.tolist() == [0, 1, 2] and found.items.tolist() == [4, 2, 1]
    assert found.events.tolist() == [4, 1, 16]
    codes = np.array([[n] for n in (0, 1, 2, 3, 0, 1, 7, 7, 7)])
    assert semantic_ids.perplexities_by_popularity(codes, np.arange(9, 0, -1)) == pytest.approx([3, 3, 1])


def test_bias_is_the_share_that_would_have_to_move() -> None:
    taken, written = np.array([2, 0, 0, 1, 0, 1, 0]), np.array([0, 0, 0, 0, 0, 4, 4])
    found = semantic_ids.bias(CODES, 0, 4, taken, written)
    assert found.code.tolist() == [0, 1, 2] and found.taken.tolist() == [0.5, 0.25, 0.25]
    assert found.written.tolist() == [0.5, 0, 0.5] and found.distance == pytest.approx(0.25)
    assert semantic_ids.bias(CODES, 0, 4, taken, taken).distance == 0
    assert len(semantic_ids.bias(CODES, 0, 4, taken * 0, taken * 0).code) == 0


# --- the tree


def test_the_tree_has_a_box_for_every_prefix_within_its_parents_under_its_own_prefix() -> None:
    tree = prefix_tree.build(CODES)
    found = {tree.prefix[node]: tree.items[node].tolist() for node in range(len(tree))}
    whole = {(): [0, 1, 2, 3, 4, 5, 6], (0,): [0, 1, 2, 6], (1,): [3, 4], (2,): [5]}
    assert found == whole | {(0, 1): [0, 1, 6], (0, 2): [2], (1, 0): [3], (2, 0): [5]}
    for node in range(1, len(tree)):
        parent = tree.parent[node]
        assert tree.prefix[node][:-1] == tree.prefix[parent] and set(tree.items[node]) <= set(tree.items[parent])
    deep = np.column_stack([CODES, np.arange(7)]).astype(np.int32)
    branch = prefix_tree.build(deep, (0,))
    assert branch.prefix == [(0,), (0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 6), (0, 2), (0, 2, 2)]
    assert prefix_tree.name(branch, 0) == "0" and branch.items[0].tolist() == [0, 1, 2, 6]
    bars = figures.tree(branch, prefix_tree.by_popularity(branch, EVENTS), list("abcdefg"), EVENTS).data[0]
    left, right = np.array(bars.x) - np.array(bars.width) / 2, np.array(bars.x) + np.array(bars.width) / 2
    for node in range(1, len(branch)):
        parent = branch.parent[node]
        assert left[parent] <= left[node] < right[node] <= right[parent] and bars.base[node] == bars.base[parent] - 1
    assert list(bars.text) == ["0", "1", "0", "1", "6", "2", "2"]
    assert bars.textangle in (None, "auto")  # a code that is wider than its box is written upright


def test_a_large_tree_is_cut_and_loses_nobody() -> None:
    rng = np.random.default_rng(0)
    codes = (rng.integers(0, 60, (5_000, 3)) * rng.random((5_000, 1))).astype(np.int32)
    tree = prefix_tree.build(codes, nodes=300)
    assert len(tree) < 600
    for node in range(len(tree)):
        children = [child for child in range(len(tree)) if tree.parent[child] == node]
        if children:
            assert sum(len(tree.items[child]) for child in children) == len(tree.items[node])
    rest = [node for node in range(len(tree)) if tree.branches[node] > 1]
    assert rest and "more" in prefix_tree.name(tree, rest[0])


def test_colours_of_the_tree_are_those_of_the_map() -> None:
    tree = prefix_tree.build(CODES)
    kinds = semantic_ids.Labels(("a", "b"), np.array([0, 0, 1, 1, -1, 1, 0], np.int32))
    found = prefix_tree.by_category(tree, kinds)
    words = dict(zip(tree.prefix, found.words, strict=True))
    assert words[0, 1] == "100% a" and words[0,] == "75% a" and words[1,] == "100% b"
    assert [name for _, name in found.legend] == ["a", "b"]
    nearly = semantic_ids.Labels(("a", "b"), np.array([0] * 399 + [1], np.int32))
    assert prefix_tree.by_category(prefix_tree.build(CODES[[0] * 400]), nearly).words[0] == "99.8% a"
    shade = dict(zip(tree.prefix, found.of, strict=True))
    assert shade[0, 1] != shade[0,]
    popular = prefix_tree.by_popularity(tree, EVENTS)
    assert popular.scale is not None and len(popular.of) == len(tree)
    assert dict(zip(tree.prefix, popular.words, strict=True))[1,] == "1 training event per item"
    assert prefix_tree.by_popularity(tree, np.zeros(7, np.int64)).of[0].startswith("rgb")
    items = pa.table({"kind": [["Comedy", "Drama"], ["Comedy"], ["Drama"], ["Drama", "War"], ["War"], [], ["Drama"]]})
    of_map, of_tree = map_colouring.colouring(items, "kind"), semantic_ids.coloured(items, "kind")
    assert of_tree.names[:3] == of_map.groups[:3] == ("Drama", "Comedy", "War")
    assert of_map.group is not None and [*of_tree.of] == [0, 1, 0, 0, 2, -1, 0]
    legend = prefix_tree.by_category(prefix_tree.build(CODES), of_tree).legend
    assert legend and set(legend) <= {(of_map.colour(place), name) for place, name in enumerate(of_map.groups)}
    assert [of_map.groups[place] for place in of_map.group.tolist()][:5] == ["Drama", "Comedy", "Drama", "Drama", "War"]


def test_labels_of_a_logarithmic_axis_are_whole_numbers() -> None:
    ticks = {100: [1, 2, 5, 10, 20, 50, 100], 1e6: [1, 10, 100, 1e3, 1e4, 1e5, 1e6]}
    assert {high: log_axis([0, 1, high])["tickvals"] for high in ticks} == ticks
    assert log_axis([0, 21, 29])["tickvals"] == [22, 24, 26, 28]


def test_titles_in_figures_are_text() -> None:
    titles = ["<script>alert(1)</script>", "$x^2$", "<b>c</b>", "기생충", "=1+1", "[a](b)", "e"]
    tree = prefix_tree.build(CODES)
    items = pa.table({"kind": [["<i>a</i>"], ["<i>a</i>", "b"], ["b"], ["b"], [], ["b"], ["<i>a</i>"]]})
    kinds = semantic_ids.labels(items, "kind")
    assert sorted(kinds.names) == ["<i>a</i>", "b"] and kinds.of[0] == kinds.of[1] != kinds.of[2]  # the first of a list
    assert kinds.of[4] == -1
    level = codes_of.usage(CODES, (4, 3))[0]
    codes = {"level": [0, 0, 1], "code": [0, 1, 0], "x": [0.0, 1, 2], "y": [0.0, 1, 2], "cluster": [0, 0, 1]}
    plane = figures.plane(pa.table(codes), 0, np.array([3, 0]))
    assert plane.data[0].marker.symbol == ("circle", "circle-open")  # a code that no item has is hollow
    text = plane.to_json()
    for fig in (
        figures.tree(tree, prefix_tree.by_category(tree, kinds), titles, EVENTS),
        figures.usage([(NAMED, level)]),
        figures.usage([(NAMED, level)], log=True),
        figures.lorenz([(NAMED, level)]),
        figures.purity([(NAMED, codes_of.purity(CODES, kinds.of))]),
        figures.popularity([(NAMED, semantic_ids.popularity(CODES, 0, EVENTS))]),
        figures.bias(semantic_ids.bias(CODES, 0, 4, EVENTS, EVENTS), NAMED.title),
    ):
        text += fig.to_json()
    assert "<script" not in text and "<i>" not in text and "$x" not in text and "<b>" not in text


def test_what_is_said_of_a_tokenizer_names_its_teacher(tmp_path: Path) -> None:
    def lines(name: str) -> list[tokenizers.Line]:
        one = Tokenization.open(tmp_path / "identifiers" / name, Catalogue("toys", FINGERPRINT, ITEMS))
        return tokenizers.figures(one, codes_of.usage(CODES, (4, 3)), {"alpha": "Alpha"})

    def said(name: str) -> dict[str, str]:
        return {line.name: line.of for line in lines(name)}

    teacher = {"run": "alpha", "commit": None, "best_epoch": 1_200, "valid_ndcg": 0.25, "digest": "0" * 64, "kept": 1.0}
    plain = json.loads((write_tokenization(tmp_path, "plain") / "about.json").read_text("utf-8"))
    ranking = {"of": "alpha", "own": 0.2, "quantised": 0.125}
    write_tokenization(tmp_path, "taught", teacher=teacher, figures=plain["figures"] | {"ranking": ranking})
    ranked = "NDCG@10 with quantised item vectors"
    assert (said("plain")["Teacher"], said("plain")[ranked]) == ("–", "–")
    assert said("taught")["Teacher"] == "Alpha after 1,200 epochs, validation NDCG@10 0.250"
    assert said("taught")[ranked] == "Alpha: 0.125 (0.200)"
    write_tokenization(tmp_path, "judged", figures=plain["figures"] | {"ranking": ranking | {"of": "sasrec-bce"}})
    assert said("judged")[ranked].startswith("SASRec, binary cross-entropy: ")
    assert [line.meaning for line in lines("judged")] == [line.meaning for line in lines("taught")]
    few = plain["figures"]["after"] | {"excess": 0.0001, "sharing": 0.0005}
    write_tokenization(tmp_path, "once", teacher=teacher | {"best_epoch": 1}, figures=plain["figures"] | {"after": few})
    assert said("once")["Teacher"].startswith("Alpha after 1 epoch,")
    assert said("once")["Collision rate"].endswith(" → <0.1%") and said("once")["Items in collision"].endswith(
        " → 0.1%"
    )


def test_tables_say_the_same() -> None:
    levels = codes_of.usage(CODES, (4, 3))
    counts = tokenizers.counts_table([("T", levels[0])])
    assert counts["Code"].tolist() == [0, 1, 2, 3] and counts["Items"].tolist() == [4, 2, 1, 0]
    assert tokenizers.lorenz_table([("T", levels[0])])["Share of items"].iloc[-1] == 1
    tree = prefix_tree.build(CODES)
    found = tokenizers.tree_table(tree, prefix_tree.by_popularity(tree, EVENTS))
    assert found["Codes"].tolist()[:3] == ["all items", "0", "0 · 1"] and found["Items"].tolist()[:3] == [7, 4, 3]
