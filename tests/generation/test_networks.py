"""What the two networks compute: T5's arithmetic, the same with and without caches, and nothing of the future."""

import numpy as np
import pytest
import torch

from engine.generation.search import Past
from engine.models.layers import bucket
from tests.generation import numpy_llama, numpy_t5
from tests.generation.small import FAMILIES, ITEMS, build, histories


@pytest.mark.parametrize("kind", ["full", "words"])
def test_the_encoder_decoder_is_t5(kind: str) -> None:
    model = build("both ways", kind, max_length=9)
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}
    rng = np.random.default_rng(0)
    for length in (1, 4, 9):
        items, target = rng.integers(0, ITEMS, length), int(rng.integers(ITEMS))
        tokens, real = model.flat(torch.from_numpy(items)[None])
        history = tokens[real].numpy()
        if kind == "words" and not bool(real.all()):
            continue  # gaps count as distance: see the next test
        written = model.tokens[target].numpy()
        wanted = numpy_t5.logits(weights, history, written, model.bos, model.layers, model.heads)
        found = model.after(torch.from_numpy(items)[None], torch.tensor([[target]]))[0, 0]
        torch.testing.assert_close(found, torch.from_numpy(wanted).float(), atol=1e-4, rtol=1e-4)


def test_distances_fall_into_the_buckets_of_t5() -> None:
    distance = torch.arange(-200, 201)
    for both in (True, False):
        wanted = [numpy_t5.bucket(int(d), both) for d in distance]
        assert bucket(distance, both).tolist() == wanted


@pytest.mark.parametrize("family", ["decoder alone", "decoder alone, own head"])
def test_the_decoder_alone_is_llama(family: str) -> None:
    """BOS stands before the codes of each item, the one that is written among them."""
    model = build(family)
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}
    items = np.random.default_rng(0).integers(0, ITEMS, 5)
    tokens = np.concatenate([[model.bos, *model.tokens[item].tolist()] for item in items])
    expected = numpy_llama.logits(weights, tokens, model.layers, model.heads)[-model.levels - 1 : -1]
    answer = model.after(torch.from_numpy(items[None, :-1]), torch.from_numpy(items[None, -1:]))[0, 0]
    torch.testing.assert_close(answer, torch.from_numpy(expected).float(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_token_by_token_is_as_all_at_once(family: str) -> None:
    model = build(family, "ragged")
    memory = model.encode(histories(model))
    targets = torch.randint(ITEMS, (5, 3), generator=torch.Generator().manual_seed(1))
    inputs = model.inputs(targets)
    at_once, whole = model.decode(inputs, memory)
    past: Past | None = None
    for step in range(model.levels):
        logits, past = model.decode(inputs[..., step : step + 1], memory, past)
        torch.testing.assert_close(logits[:, :, 0], at_once[:, :, step], atol=1e-5, rtol=1e-5)
    assert past is not None
    torch.testing.assert_close(past.keys, whole.keys, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(past.values, whole.values, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "both ways"])
def test_one_pass_for_all_targets_is_as_one_pass_each(family: str) -> None:
    """Which knows nothing of the targets after its own, with a user as well."""
    model, users = build(family, "ragged", user_tokens=5), torch.arange(5)
    window = torch.cat([histories(model), torch.randint(ITEMS, (5, 1), generator=torch.Generator().manual_seed(1))], 1)
    together = model.teach(window, users)
    for place in range(1, window.shape[1]):
        some = window[:, place - 1] != model.pad
        alone = model.after(window[some, :place], window[some, place : place + 1], users[some])[:, 0]
        torch.testing.assert_close(together[some, place - 1], alone, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(model.teach(window, users, last=2), together[:, -2:], atol=1e-5, rtol=1e-5)


def test_what_stands_after_the_end_of_an_identifier_is_not_read() -> None:
    model = build("both ways", "ragged")
    short = int((~model.written[:ITEMS]).sum(1).argmax())
    items = torch.tensor([[3, short, 5]])
    with torch.no_grad():
        before = model.query(items)
        model.tokens[short, ~model.written[short]] = 0
        torch.testing.assert_close(model.query(items), before)


# --- people


@pytest.mark.parametrize("causal", [False, True])
def test_a_user_is_one_more_token(causal: bool) -> None:
    model = build("both ways", user_tokens=5, causal=causal)
    assert model.trained_users
    items = torch.tensor([[1, 2, 3]] * 7)
    with torch.no_grad():
        known, unknown = model.query(items, torch.arange(7)), model.query(items)
    assert not torch.allclose(known[0], unknown[0])
    assert len({tuple(row) for row in known.tolist()}) > 1
    padded = torch.nn.functional.pad(items, (3, 0), value=model.pad)
    with torch.no_grad():
        torch.testing.assert_close(model.query(padded, torch.arange(7)), known, atol=1e-5, rtol=1e-5)


# --- looking


@pytest.mark.parametrize(
    ("family", "kind"), [("both ways", "full"), ("left to right", "ragged"), ("decoder alone", "ragged")]
)
def test_attention_between_codes_is_that_between_items_in_detail(family: str, kind: str) -> None:
    model = build(family, kind)
    items = histories(model)
    with torch.no_grad():
        weights = model.attention_between_codes(items)
        _, pooled = model.query_with_attention(items)
    size = model.max_length * model.levels
    assert weights.shape == (5, model.layers, model.heads, size, size)
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=1e-5, rtol=0)
    assert pooled.shape == (5, model.layers, model.heads, model.max_length, model.max_length)
    if not model.stop and kind == "full":  # no BOS to leave out
        by_item = weights.unflatten(-1, (-1, model.levels)).sum(-1).unflatten(-2, (-1, model.levels)).mean(-2)
        real = (items != model.pad)[:, None, None, :, None]
        torch.testing.assert_close(by_item * real, pooled * real, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", ["both ways", "decoder alone"])
def test_what_writing_looks_at(family: str) -> None:
    model = build(family, "ragged")
    items = histories(model)
    memory = model.encode(items)
    kept: list[torch.Tensor] = []
    model.decode(model.inputs(torch.arange(5)[:, None]), memory, kept=kept)
    assert len(kept) == model.layers
    for weights in kept:
        assert weights.shape == (5, model.heads, model.levels, memory.mask.shape[1])
        assert not weights[(memory.mask == -torch.inf)[:, None, None].expand_as(weights)].any()
        assert (weights.sum(-1) <= 1 + 1e-5).all()
        if not model.stop:
            torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=1e-5, rtol=0)
