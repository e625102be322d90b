"""Writing identifiers: exact scores, beams, ties and traces against the same network in numpy, one token at a time."""

from pathlib import Path

import numpy as np
import pytest

from engine.data.identifiers import NONE
from engine.runtime import CapabilityError, QuestionError, Zoo, beam_search, generator
from tests.runtime.bundles import Toy, write_bundle
from tests.runtime.generators import (
    ITEMS,
    ToyGenerator,
    ended,
    full_length,
    ragged,
    with_attention,
    with_vectors,
    write_zoo,
    written,
)

TOYS = (
    ToyGenerator("full"),
    ToyGenerator("shared", ragged(1), seed=3, cross=True),
    ToyGenerator("ragged", ragged(2, shared=False), seed=6),
    ToyGenerator("deep", full_length(5, sizes=(2, 2, 2, 2, 3)), seed=9, sharpness=0.3),
)
HISTORIES = ([4], [5, 5, 9], list(range(20)))
REPEATS = HISTORIES[1]
toys = pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.name)


@pytest.fixture(scope="module")
def writers(tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    path = write_zoo(tmp_path_factory.mktemp("exports"), *TOYS)
    write_bundle(path, Toy("alpha"))
    zoo = Zoo.open(path, warm=True)
    assert zoo.refused == []
    return zoo


@pytest.fixture
def beams(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toys' trees are so small that answers would be exact."""
    monkeypatch.setattr(generator, "WALK", 0)


# --- exact scores


@toys
@pytest.mark.parametrize(("history", "prefixes"), [(REPEATS, 1_024), (HISTORIES[2], 2)], ids=["repeats", "long"])
def test_scores_are_log_probabilities_of_identifiers(
    writers: Zoo, toy: ToyGenerator, history: list[int], prefixes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In batches of any size."""
    monkeypatch.setattr("engine.runtime.decoder._PREFIXES", prefixes)
    bundle = writers.bundles[toy.name]
    scores = bundle.scores(history)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, toy.scores(history), atol=1e-5)
    _, first = np.unique(toy.identifiers.groups(), return_index=True)
    assert np.exp(scores[first].astype(np.float64)).sum() == pytest.approx(1, abs=1e-5)


@pytest.fixture
def prefixes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many prefixes the network was shown, call by call."""
    shown: list[int] = []
    real = beam_search.Decoder.write

    def count(self: object, memory: object, tokens: np.ndarray, *rest: object) -> object:
        shown.append(len(tokens))
        return real(self, memory, tokens, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(beam_search.Decoder, "write", count)
    return shown


@toys
def test_the_best_items_are_exact_though_not_all_prefixes_are_asked(
    writers: Zoo, toy: ToyGenerator, prefixes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beam_search, "_FIRST", 3)
    bundle, exact = writers.bundles[toy.name], toy.scores(REPEATS)
    exact[[5, 9]] = -np.inf
    for k in (1, 10, ITEMS):
        items, scores = bundle.recommend_one(REPEATS, k)
        np.testing.assert_allclose(scores, np.sort(exact)[::-1][: min(k, ITEMS - 2)], atol=1e-5)
        np.testing.assert_allclose(scores, exact[items], atol=1e-5)
        if k == 1:
            assert sum(prefixes) < generator.Trie.build(bundle.identifiers).open.sum()


# --- ties


@toys
def test_items_that_share_an_identifier_tie_and_ranks_take_the_mean(writers: Zoo, toy: ToyGenerator) -> None:
    bundle, groups = writers.bundles[toy.name], toy.identifiers.groups()
    assert groups[3] == groups[7]
    scores, exact = bundle.scores(REPEATS), toy.scores(REPEATS)
    expected = []
    for item in range(ITEMS):
        level = groups == groups[item]
        assert len(np.unique(scores[level])) == 1
        others = np.isin(np.arange(ITEMS), [*REPEATS, item], invert=True)
        expected.append(1 + ((exact > exact[item]) & ~level & others).sum() + (level & others).sum() / 2)
    assert bundle.ranks(REPEATS, range(ITEMS)).tolist() == expected
    some = (0, 3, 7, 19, 39)
    assert [bundle.ranks(REPEATS, [item])[0] for item in some] == [expected[item] for item in some]
    ties = int((np.bincount(groups)[groups] > 1).sum())
    assert f"{ties} of its 40 items share a semantic ID" in (bundle.cannot("distinct_items") or "")


# --- beams


@toys
@pytest.mark.parametrize("constrained", [True, False], ids=["constrained", "free"])
def test_a_beam_is_the_beam(
    writers: Zoo, toy: ToyGenerator, constrained: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, ways = writers.bundles[toy.name], toy.ways
    monkeypatch.setattr(bundle, "excludes_history", False)
    for width in (1, 7, 100):
        trace = bundle.trace(REPEATS, width, constrained=constrained)
        expected = toy.beam_search(REPEATS, width, constrained)
        assert written(trace) == [way for way, _ in expected]
        np.testing.assert_allclose(trace.scores[ended(trace)], [score for _, score in expected], atol=1e-5)
        owners = [[item for item in range(ITEMS) if ways[item] == way] for way, _ in expected]
        assert [trace.items[row].tolist() for row in ended(trace)] == owners
        assert all(owners) or not constrained  # a free network writes identifiers that nobody has


@toys
def test_a_wide_beam_finds_what_is_exact_and_a_narrow_one_as_many_as_asked_for(
    beams: None, writers: Zoo, toy: ToyGenerator
) -> None:
    bundle = writers.bundles[toy.name]
    scores = bundle.scores(REPEATS)
    rest = [i for i in np.lexsort((np.arange(ITEMS), -scores)) if i not in REPEATS]
    for k in (1, 4, 100):
        found = bundle.recommend_one(REPEATS, k)
        assert len(found.items) == min(k, len(rest)) and not set(found.items.tolist()) & set(REPEATS)
        assert (np.diff(found.scores) <= 0).all()
        np.testing.assert_allclose(found.scores, scores[found.items], atol=1e-5)
    assert found.items.tolist() == rest


def test_when_everything_was_seen(writers: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = writers.bundles["full"]
    for walk in (0, 4_096):
        monkeypatch.setattr(generator, "WALK", walk)
        assert len(bundle.recommend_one(range(ITEMS), 5).items) == 0
    assert len(bundle.trace(range(ITEMS), 5)) == 0
    bundle.recommend_one([], 3)  # its min_history is 0


def test_more_items_than_a_beam_may_hold_are_scored_exactly(
    beams: None, writers: Zoo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "WIDEST", 6)
    bundle = writers.bundles["deep"]
    exact = bundle.scores([1, 2])
    found = bundle.recommend_one([1, 2], 7)
    np.testing.assert_array_equal(found.scores, exact[found.items])


@toys
def test_agreement_grows_to_one(writers: Zoo, toy: ToyGenerator) -> None:
    bundle = writers.bundles[toy.name]
    found = bundle.agreement(HISTORIES, [1, 4, 100], 5)
    assert [one.width for one in found] == [1, 4, 100] and found[0].histories == len(HISTORIES)
    assert found[-1].overlap == found[-1].same == found[-1].first == 1
    assert found[0].overlap < 1
    for one in found:
        shared, first = [], []
        for history in HISTORIES:
            exact = [i for i in np.lexsort((np.arange(ITEMS), -bundle.scores(history))) if i not in history][:5]
            trace = bundle.trace(history, one.width)
            items = [int(i) for row in ended(trace) for i in trace.items[row] if i not in history][:5]
            shared.append(len(set(items) & set(exact)) / 5)
            first.append(items[:1] == exact[:1])
        assert one.overlap == pytest.approx(np.mean(shared)) and one.first == np.mean(first)
    assert np.isnan(bundle.agreement([], [3])[0].overlap)


# --- explaining


@toys
@pytest.mark.parametrize("constrained", [True, False], ids=["constrained", "free"])
def test_a_trace_is_the_tree_of_the_beam(writers: Zoo, toy: ToyGenerator, constrained: bool) -> None:
    bundle = writers.bundles[toy.name]
    trace = bundle.trace(REPEATS, 4, constrained=constrained, dropped=3)
    levels = toy.identifiers.levels
    prefixes = [tuple(int(trace.tokens[row]) for row in trace.path(place)) for place in range(len(trace))]
    assert len(set(prefixes)) == len(prefixes)
    assert [len(prefix) for prefix in prefixes] == trace.depths.tolist()
    ways = toy.ways
    for row, prefix in enumerate(prefixes):
        share = toy.shares(REPEATS, list(prefix[:-1]), constrained)[prefix[-1]]
        assert trace.probabilities[row] == pytest.approx(np.exp(share), abs=1e-5)
        before = 0.0 if trace.parents[row] < 0 else trace.scores[trace.parents[row]]
        assert trace.scores[row] == pytest.approx(before + share, abs=1e-4)
        assert trace.below[row] == sum(way[: len(prefix)] == prefix for way in ways)
        assert trace.items[row].tolist() == [item for item in range(ITEMS) if ways[item] == prefix]
        if trace.parents[row] >= 0:
            assert trace.kept[trace.parents[row]]
    for depth in range(1, levels + 1):
        step = trace.depths == depth
        assert 1 <= (step & trace.kept).sum() <= 4 and (step & ~trace.kept).sum() <= 3
        assert step.sum() <= trace.considered[depth - 1]
        dropped, kept = trace.scores[step & ~trace.kept], trace.scores[step & trace.kept]
        assert not len(dropped) or dropped.max() <= kept.min()
    assert [prefixes[row] for row in ended(trace)] == written(trace)
    assert len(trace.mass) == len(trace.considered) and (np.diff(trace.mass) <= 1e-9).all()
    if constrained:
        assert (trace.below > 0).all()
    assert bundle.trace(REPEATS, 4, constrained=constrained, dropped=0).kept.all()


@toys
def test_what_must_not_be_recommended_is_no_mass_that_a_beam_gave_up(writers: Zoo, toy: ToyGenerator) -> None:
    trace = writers.bundles[toy.name].trace(HISTORIES[2], 1_024)
    assert trace.kept.all() and trace.mass == pytest.approx([1.0] * len(trace.considered))


@toys
def test_a_temperature_divides_the_logits_of_every_step(writers: Zoo, toy: ToyGenerator) -> None:
    bundle = writers.bundles[toy.name]
    trace = bundle.trace([1, 2], 50, temperature=4.0)
    for row in range(len(trace)):
        parent = trace.parents[row]
        before = () if parent < 0 else tuple(int(trace.tokens[one]) for one in trace.path(parent))
        shares = toy.shares([1, 2], list(before), True)
        tempered = {token: share / 4 for token, share in shares.items() if np.isfinite(share)}
        whole = np.logaddexp.reduce(list(tempered.values()))
        assert np.log(trace.probabilities[row]) == pytest.approx(tempered[int(trace.tokens[row])] - whole, abs=1e-5)
    assert bundle.agreement([[1, 2]], [50], 5, temperature=4.0)[0].overlap == 1
    for temperature in (0.0, float("nan"), float("inf")):
        with pytest.raises(QuestionError, match="temperature"):
            bundle.trace([1], temperature=temperature)


@toys
def test_leave_one_out_against_a_loop(writers: Zoo, toy: ToyGenerator) -> None:
    bundle = writers.bundles[toy.name]
    history = np.random.default_rng(12).integers(0, ITEMS, 9).tolist()  # one more than it reads
    item = 11
    groups = toy.identifiers.groups()
    found = bundle.leave_one_out(history, item)
    assert found.score == pytest.approx(toy.scores(history)[item], abs=1e-5)
    assert found.rank == bundle.ranks(history, [item])[0]
    candidates = np.array([i for i in range(ITEMS) if i not in history and i != item])
    for place in range(len(history)):
        scores = toy.scores(history[:place] + history[place + 1 :])
        assert found.effect[place] == pytest.approx(found.score - scores[item], abs=3e-5)
        assert found.log_probability_effect[place] == found.effect[place]
        level = groups[candidates] == groups[item]
        expected = 1 + ((scores[candidates] > scores[item]) & ~level).sum() + level.sum() / 2
        assert found.rank_without[place] == expected


@pytest.mark.parametrize(("lead", "history"), [(0, [1, 2, 3]), (1, list(range(12)))])
def test_cross_attention_stands_by_item_and_code(tmp_path: Path, lead: int, history: list[int]) -> None:
    toy = ToyGenerator("writer", ragged(1), cross=True, lead=lead)
    bundle = Zoo.open(write_zoo(tmp_path, toy)).bundles["writer"]
    item = 11  # of three codes and the end
    found = bundle.cross_attention(history, item)
    read = range(max(0, len(history) - toy.max_length), len(history))
    expected = []
    for place in read:
        expected += [(place, history[place], -1)] * lead
        expected += [(place, history[place], level) for level in range(len(toy.ways[history[place]]))]
    assert list(zip(found.positions, found.items, found.levels, strict=True)) == expected
    assert found.codes.tolist() == [1, 2, 0, NONE] and found.item == item
    assert found.weights.shape == (4, 2, 3, len(expected))
    np.testing.assert_allclose(found.weights, 1 / (len(read) * (lead + 4)), rtol=1e-5)


def test_neighbours_by_what_was_quantised(tmp_path: Path) -> None:
    path = write_zoo(tmp_path, ToyGenerator("writer"))
    rng = np.random.default_rng(0)
    latents, codebooks = (rng.standard_normal(shape).astype(np.float32) for shape in ((ITEMS, 5), (3, 6, 2)))
    with_vectors(path / "writer", latents, codebooks)
    zoo = Zoo.open(path)
    assert zoo.refused == []
    bundle = zoo.bundles["writer"]
    apart = np.linalg.norm(latents - latents[3], axis=1)
    found = bundle.neighbours(3, 6)
    assert found.items.tolist() == np.argsort(apart)[1:7].tolist() and found.measure == "euclidean"
    np.testing.assert_allclose(found.similarity, -np.sort(apart)[1:7], atol=1e-5)
    np.testing.assert_array_equal(bundle.latents, latents)
    np.testing.assert_array_equal(bundle.codebooks, codebooks)


@pytest.mark.parametrize("whole", [False, True])
def test_attention_over_codes(tmp_path: Path, whole: bool) -> None:
    toy = ToyGenerator("writer", ragged(1))
    path = write_zoo(tmp_path, toy)
    with_attention(path / "writer", toy, whole)
    bundle = Zoo.open(path).bundles["writer"]
    history = [10, 11, 3]
    found = bundle.attention(history)
    expected = [(place, item, level) for place, item in enumerate(history) for level in range(len(toy.ways[item]))]
    assert list(zip(found.positions, found.items, found.levels, strict=True)) == expected
    for row, (place, _, level) in enumerate(expected):
        for column, (other, _, below) in enumerate(expected):
            hidden = other > place or (other == place and below > level and not whole)
            assert np.isnan(found.weights[:, :, row, column]).all() == hidden
    np.testing.assert_allclose(np.nansum(found.weights, axis=-1), 1, atol=1e-5)


# --- identifiers


@toys
def test_items_by_prefix_and_siblings(writers: Zoo, toy: ToyGenerator) -> None:
    bundle = writers.bundles[toy.name]
    codes = toy.identifiers.codes
    np.testing.assert_array_equal(bundle.identifiers.codes, codes)
    assert bundle.items_with([]).tolist() == list(range(ITEMS))
    for item in range(ITEMS):
        length = int((codes[item] != NONE).sum())
        siblings = bundle.siblings(item)
        assert len(siblings) == min(length + 1, toy.identifiers.levels)
        for depth in range(1, len(siblings) + 1):
            expected = np.flatnonzero((codes[:, :depth] == codes[item, :depth]).all(1))
            prefix = codes[item, :depth].tolist()
            assert bundle.items_with(prefix).tolist() == expected.tolist()
            assert siblings[depth - 1].tolist() == [i for i in expected if i != item]
    with pytest.raises(QuestionError, match=r"Level 1 has codes 0 to \d+, not 99"):
        bundle.items_with([99])
    assert len(bundle.items_with([0] * 9)) == 0
    with pytest.raises(QuestionError, match="no item number 40"):
        bundle.siblings(40)


# --- what it cannot do


def test_what_cannot_be_asked(writers: Zoo) -> None:
    full, alpha = writers.bundles["full"], writers.bundles["alpha"]
    assert full.cannot("identifiers") is None and alpha.cannot("distinct_items") is None
    for ask in (lambda: alpha.codebooks, lambda: alpha.trace([1]), lambda: alpha.siblings(1)):
        with pytest.raises(CapabilityError, match="does not generate semantic IDs"):
            ask()
    for ask, says in (
        (lambda: full.index, "no index of item vectors"),
        (lambda: full.neighbours(1, 3), "Counts have no neighbours"),  # as its manifest says
        (lambda: full.cross_attention([1], 2), "no attention between"),
    ):
        with pytest.raises(CapabilityError, match=says):
            ask()
    assert full.codebooks is None and full.latents is None
    with pytest.raises(QuestionError, match="1 to 1,024"):
        full.trace([1], 1_025)
