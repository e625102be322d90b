"""Which items are targets after which history, and what the loss is of them."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.data.ragged import Ragged
from engine.generation import Generator
from engine.training.objectives.generation import Identifier, IdentifierConfig
from tests.generation.small import build

SEQUENCES = [[1, 2], [7], [3, 4, 5, 6], [], list(range(20)), list(range(10, 27)), [8] * 3]


def objective(model: Generator, batch_size: int = 4, **settings: float) -> Identifier:
    log = Ragged.of(SEQUENCES, np.int64)
    items, offsets = torch.from_numpy(log.values), torch.from_numpy(log.offsets)
    config = IdentifierConfig(**settings)  # type: ignore[arg-type]
    return Identifier(config, model, items, offsets, batch_size)


def drawn(found: Identifier, seed: int = 0) -> list[tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(seed)
    return [found.draw(examples, generator) for examples in found.batches(generator)]


def asked(found: Identifier, pad: int, seed: int = 0) -> list[tuple[int, tuple[int, ...], int]]:
    """(user, history, target) of every target of an epoch."""
    cases = []
    for items, wanted, users in drawn(found, seed):
        for row, user in enumerate(users.tolist()):
            for place in wanted[row].nonzero()[:, 0].tolist():
                history = [item for item in items[row, : place + 1].tolist() if item != pad]
                cases.append((user, tuple(history), int(items[row, place + 1])))
    return sorted(cases)


def test_with_a_pass_each_every_item_is_a_target_after_all_before_it() -> None:
    model = build("both ways")
    size = model.max_length
    wanted = [
        (user, tuple(sequence[max(0, place - size) : place]), sequence[place])
        for user, sequence in enumerate(SEQUENCES)
        for place in range(1, len(sequence))
    ]
    assert asked(objective(model), model.pad) == sorted(wanted)


@pytest.mark.parametrize(("family", "step"), [("left to right", 0.2), ("left to right", 0.5), ("decoder alone", 1.0)])
def test_with_a_common_pass_every_item_is_a_target_once(family: str, step: float) -> None:
    model = build(family)
    found = asked(objective(model, step=step), model.pad)
    wanted = [(user, s[place]) for user, s in enumerate(SEQUENCES) for place in range(1, len(s))]
    assert sorted((user, target) for user, _, target in found) == sorted(wanted)
    for user, history, target in found:
        sequence = SEQUENCES[user]
        place = 2 if sequence == [8] * 3 else sequence.index(target)
        if sequence == [8] * 3:
            assert history in ((8,), (8, 8))
            continue
        assert history == tuple(sequence[place - len(history) : place])
        # no target is asked for with less behind it than a window reaches back
        least = model.max_length - max(1, int(step * model.max_length)) + 1
        assert len(history) >= min(place, least)


def test_a_few_targets_of_each_user() -> None:
    model = build("both ways")
    found = objective(model, per_user=2)
    epochs = [asked(found, model.pad, seed) for seed in range(100)]
    everything = asked(objective(model), model.pad)
    assert len({tuple(epoch) for epoch in epochs}) > 1
    for epoch in epochs:
        counts = [sum(user == u for user, _, _ in epoch) for u in range(len(SEQUENCES))]
        assert counts == [min(2, max(0, len(sequence) - 1)) for sequence in SEQUENCES]
        assert set(epoch) <= set(everything)
    assert set().union(*epochs) == set(everything)
    assert found.steps == len(list(found.batches(torch.Generator().manual_seed(0))))


@pytest.mark.parametrize(
    ("family", "kind"), [("both ways", "ragged"), ("left to right", "full"), ("decoder alone", "ragged")]
)
def test_the_loss_is_the_mean_over_codes(family: str, kind: str) -> None:
    model, temperature = build(family, kind), 0.5
    found = objective(model, temperature=temperature)
    batches = drawn(found)
    assert len(batches) == found.steps
    assert found.typical_targets == pytest.approx(
        sum(int(found.targets(batch).sum()) for batch in batches) / found.steps
    )
    for batch in batches:
        items, wanted, users = batch
        losses = []
        for row in range(len(users)):
            for place in wanted[row].nonzero()[:, 0].tolist():
                target = int(items[row, place + 1])
                logits = model.after(items[row : row + 1, : place + 1], torch.tensor([[target]]))[0, 0]
                each = F.cross_entropy(logits / temperature, model.tokens[target], reduction="none")
                losses.append(each[model.written[target]])
        torch.testing.assert_close(found.loss(model, batch), torch.cat(losses).mean(), atol=1e-5, rtol=1e-5)
        assert int(found.targets(batch).sum()) == len(torch.cat(losses))
