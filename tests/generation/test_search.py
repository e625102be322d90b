"""From codes to items: what a search finds is what the network says, whichever way it is asked."""

import itertools

import pytest
import torch

from engine.generation import beam_search, exact_scores, search
from engine.generation.search import OUTSIDE, item_scores, path_scores
from tests.generation.small import ITEMS, build, histories, table

KINDS = ["full", "ties", "ragged", "words"]
CORNERS = [*(("both ways", kind) for kind in KINDS), ("left to right", "ragged"), ("decoder alone", "words")]


def everything() -> torch.Tensor:
    return torch.arange(ITEMS).expand(5, -1)


@pytest.mark.parametrize(("family", "kind"), CORNERS)
def test_a_cached_walk_says_what_whole_paths_say(family: str, kind: str) -> None:
    model = build(family, kind)
    with torch.no_grad():
        memory = model.encode(histories(model))
        torch.testing.assert_close(
            exact_scores(model, memory), path_scores(model, memory, everything()), atol=1e-5, rtol=1e-5
        )


@pytest.mark.parametrize(("family", "kind"), CORNERS)
def test_a_beam_as_wide_as_the_catalogue_finds_all(family: str, kind: str) -> None:
    model = build(family, kind)
    with torch.no_grad():
        memory = model.encode(histories(model))
        found = beam_search(model, memory, 500)
        torch.testing.assert_close(item_scores(model, found), exact_scores(model, memory), atol=1e-5, rtol=1e-5)
    real = found.scores > -torch.inf
    there = {tuple(row) for row in model.identifiers.tokens().tolist()}
    assert not found.invalid.any() and {tuple(row) for row in found.tokens[real].tolist()} == there
    assert (found.scores.diff()[real[:, 1:]] <= 0).all()
    assert real.sum(1).tolist() == [int(table(kind).groups().max()) + 1] * 5


@pytest.mark.parametrize(("family", "width"), [("both ways", 1), ("both ways", 5), ("decoder alone", 5)])
def test_a_narrow_beam_keeps_the_best_prefixes(family: str, width: int) -> None:
    """Against a search that lists prefixes one by one and asks the network about each anew."""
    model = build(family, "ragged").requires_grad_(False)
    rows = {tuple(row) for row in model.identifiers.tokens().tolist()}
    items = histories(model)
    found = beam_search(model, model.encode(items), width)
    for person in range(len(items)):
        memory = model.encode(items[person : person + 1])
        beams: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
        for level in range(model.levels):
            grown = []
            for score, prefix in beams:
                tokens = torch.tensor([[[model.bos, *prefix]]])
                logits = model.decode(tokens, memory)[0][0, 0, -1]
                options = sorted({row[level] for row in rows if row[:level] == prefix})
                shares = logits[options].log_softmax(0)
                grown += [(score + float(s), (*prefix, o)) for s, o in zip(shares, options, strict=True)]
            beams = sorted(grown, reverse=True)[:width]
        assert [tuple(row) for row in found.tokens[person].tolist()] == [tokens for _, tokens in beams]
        wanted = torch.tensor([score for score, _ in beams])
        torch.testing.assert_close(found.scores[person], wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["full", "ragged"])
def test_what_is_unconstrained_is_counted(kind: str) -> None:
    model = build("both ways", kind)
    found = beam_search(model, model.encode(histories(model)), 40, constrained=False)
    rows = {tuple(row): item for item, row in enumerate(model.identifiers.tokens().tolist())}
    assert found.invalid.any()
    for person in range(5):
        invalid = 0
        for tokens, leaf in zip(found.tokens[person].tolist(), found.leaves[person].tolist(), strict=True):
            item = rows.get(tuple(tokens))
            invalid += item is None
            assert leaf == (-1 if item is None else model.trie.leaves[item])
        assert invalid == found.invalid[person]


def test_unconstrained_scores_are_those_of_the_whole_vocabulary() -> None:
    model = build("both ways", "ragged")
    items = histories(model)
    with torch.no_grad():
        memory = model.encode(items)
        logits = model.after(items, everything()).log_softmax(-1)
        own = logits.gather(-1, model.tokens[everything()][..., None])[..., 0]
        found = beam_search(model, memory, 70_000, constrained=False)
    scores = (own * model.written[everything()]).sum(-1)
    torch.testing.assert_close(item_scores(model, found), scores, atol=1e-5, rtol=1e-5)


def test_unwanted_items_make_room_for_others() -> None:
    model = build("both ways", "ties")
    memory = model.encode(histories(model))
    exact = exact_scores(model, memory)
    blocked = torch.zeros(5, ITEMS, dtype=torch.bool)
    for person in range(5):
        best = exact[person].argsort(descending=True, stable=True)[:6]
        blocked[person, best] = True
    blocked[:, 4:7] = torch.tensor([True, True, False])  # one of three that share an identifier is wanted
    found = item_scores(model, beam_search(model, memory, 500, blocked=blocked))
    groups = torch.from_numpy(table("ties").groups())
    for person, item in itertools.product(range(5), range(ITEMS)):
        gone = bool(blocked[person][groups == groups[item]].all())
        assert (found[person, item] == OUTSIDE) == gone
    reached = found > OUTSIDE
    torch.testing.assert_close(found[reached], exact[reached], atol=1e-5, rtol=1e-5)


def test_where_everything_is_unwanted_nothing_is_reached() -> None:
    model = build("both ways", "ties")
    blocked = torch.ones(5, ITEMS, dtype=torch.bool)
    beams = beam_search(model, model.encode(histories(model)), 500, blocked=blocked)
    assert (item_scores(model, beams) == OUTSIDE).all()


def test_a_walk_in_small_parts_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("both ways", "ragged")
    memory = model.encode(histories(model))
    with torch.no_grad():
        whole = exact_scores(model, memory)
        paths = path_scores(model, memory, everything())
        monkeypatch.setattr(search, "NODES", 1)
        monkeypatch.setattr(search, "LOGITS", 1)
        torch.testing.assert_close(exact_scores(model, memory), whole, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(path_scores(model, memory, everything()), paths, atol=1e-5, rtol=1e-5)
