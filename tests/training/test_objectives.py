"""What a training example is: shifted targets, hidden items, windows, negatives."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.errors import UsageError
from engine.models.bert4rec import BERT4Rec
from engine.registry import MODELS
from engine.training import sampling
from engine.training.objectives.sequences import Cloze, ClozeConfig, NextItem, NextItemConfig, WindowConfig, Windows
from engine.training.sampling import POOL, Taken, by_length, shuffled, windows
from tests.models.contract import move, small
from tests.training.tiny import flat

ITEMS = 40
SEQUENCES = [[0, 1, 2, 3], [], [7], [8, 9], list(range(10, 40)), [5, 5, 6, 5, 6], []]


def model(name: str, **settings: Any) -> Any:
    found = MODELS[name](small(name, **settings), ITEMS, len(SEQUENCES), torch.Generator().manual_seed(0))
    move(found, 2)
    return found


def objective(
    name: str, batch_size: int = 4, sequences: list[list[int]] = SEQUENCES, model_of: Any = None, **config: Any
) -> Any:
    kind, settings = {
        "sasrec": (NextItem, NextItemConfig),
        "bert4rec": (Cloze, ClozeConfig),
        "attrec": (Windows, WindowConfig),
    }[name]
    return kind(settings(**config), model_of or model(name), *flat(sequences), batch_size)


def drawn(what: Any, seed: int = 0) -> tuple[Tensor, ...]:
    """Every example, in order."""
    count = sum(len(examples) for examples in what.batches(torch.Generator()))
    return what.draw(torch.arange(count), torch.Generator().manual_seed(seed))  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", ["sasrec", "bert4rec", "attrec"])
def test_an_epoch_has_every_example_once(name: str) -> None:
    what = objective(name, batch_size=3)
    batches = list(what.batches(torch.Generator().manual_seed(1)))
    assert what.steps == len(batches)
    together = torch.cat(batches).tolist()
    assert sorted(together) == list(range(len(together)))
    assert all(len(examples) <= 3 for examples in batches)
    again = list(what.batches(torch.Generator().manual_seed(1)))
    assert all(torch.equal(one, other) for one, other in zip(batches, again, strict=True))


@pytest.mark.parametrize("name", ["sasrec", "bert4rec", "attrec"])
def test_targets_are_counted(name: str) -> None:
    what = objective(name, batch_size=3, **({"last_only": 0.0} if name == "bert4rec" else {}))
    batch = drawn(what)
    wanted = {"sasrec": 1, "bert4rec": 1, "attrec": 2}[name]
    assert what.targets(batch).tolist() == [sum(t != ITEMS for t in row) for row in batch[wanted].tolist()]
    assert (what.targets(batch) > 0).all()
    assert what.typical_targets == pytest.approx(int(what.targets(batch).sum()) / what.steps)


# --- batches


def test_like_lengths_are_together() -> None:
    lengths = torch.randint(1, 200, (POOL * 8 * 4,), generator=torch.Generator().manual_seed(0))
    batches = by_length(lengths, 8, torch.Generator().manual_seed(1))
    padded = sum(int(lengths[batch].max()) * len(batch) for batch in batches)
    assert padded < 1.08 * int(lengths.sum())
    random = sum(
        int(lengths[batch].max()) * len(batch) for batch in shuffled(len(lengths), 8, torch.Generator().manual_seed(1))
    )
    assert random > 1.5 * int(lengths.sum())
    # but the order of the batches says nothing of length
    means = torch.stack([lengths[batch].float().mean() for batch in batches])
    steps = torch.arange(len(means)).float()
    assert abs(torch.corrcoef(torch.stack([means, steps]))[0, 1]) < 0.3


# --- next item


def test_every_position_predicts_the_next() -> None:
    what = objective("sasrec", loss="cross-entropy")
    inputs, targets = drawn(what)
    expected = [s[-9:] for s in SEQUENCES if len(s) >= 2]  # eight positions and the target of the last
    width = 8
    for row, sequence in enumerate(expected):
        pad = [ITEMS] * (width - len(sequence) + 1)
        assert inputs[row].tolist() == pad + sequence[:-1]
        assert targets[row].tolist() == pad + sequence[1:]
    # nothing is computed for padding that a batch does not need
    inputs, targets = what.draw(torch.tensor([1]), torch.Generator())  # [8, 9]
    assert (inputs.tolist(), targets.tolist()) == ([[8]], [[9]])


@pytest.mark.parametrize("shared_items", [True, False])
@pytest.mark.parametrize(
    ("loss", "negatives"),
    [("bce", 3), ("gbce", 3), ("sampled-softmax", 3), ("sampled-softmax", 30), ("cross-entropy", 3)],
)
def test_the_loss_of_next_items(loss: str, negatives: int, shared_items: bool) -> None:
    """Targets have their own table where the ablation says so; of many negatives the scores are taken from those of all items."""
    network = model("sasrec", shared_items=shared_items).eval()
    what = objective("sasrec", model_of=network, loss=loss, negatives=negatives)
    batch = drawn(what)
    inputs, targets = batch[:2]
    table = (network.items if shared_items else network.targets).weight.detach().double().numpy()
    total, count = 0.0, 0
    for row in range(len(inputs)):
        states = network.hidden(inputs[row : row + 1]).detach().double().numpy()[0]
        for place in range(inputs.shape[1]):
            if targets[row, place] == ITEMS:
                continue
            count += 1
            logits = table[:ITEMS] @ states[place]
            own = logits[targets[row, place]]
            if loss == "cross-entropy":
                total += np.log(np.exp(logits).sum()) - own
                continue
            others = logits[batch[2][row, place].numpy()]
            if loss == "sampled-softmax":
                total += np.log(np.exp(own) + np.exp(others).sum()) - own
                continue
            beta, share = 1.0, 1.0
            if loss == "gbce":
                alpha = negatives / (ITEMS - 1)
                beta, share = alpha * (0.75 * (1 - 1 / alpha) + 1 / alpha), 1 / (1 + negatives)
            total += share * (beta * np.log(1 + np.exp(-own)) + np.log(1 + np.exp(others)).sum())
    assert what.loss(network, batch).item() == pytest.approx(total / count, rel=1e-5)


@pytest.mark.parametrize("loss", ["bce", "cross-entropy"])
def test_the_vector_of_whoever_took_the_items_is_added_to_their_states(loss: str) -> None:
    network = model("sasrec", user_vector=True).eval()
    what = objective("sasrec", model_of=network, loss=loss)
    batch = drawn(what)
    users = torch.tensor([user for user, sequence in enumerate(SEQUENCES) if len(sequence) >= 2])
    assert torch.equal(batch[-1], users)
    plain = model("sasrec").eval()
    plain.load_state_dict({key: value for key, value in network.state_dict().items() if key != "users.weight"})
    states = plain.hidden
    plain.hidden = lambda inputs: states(inputs) + network.users.weight[users][:, None]
    torch.testing.assert_close(what.loss(network, batch), objective("sasrec", loss=loss).loss(plain, batch[:-1]))


def test_a_sequence_is_read_twice_with_dropout_of_its_own() -> None:
    network = model("sasrec", dropout=0.3)
    once, twice = (objective("sasrec", model_of=network, loss="cross-entropy", consistency=weight) for weight in (0, 4))
    batch = drawn(once)
    network.eval()
    torch.testing.assert_close(twice.loss(network, batch), once.loss(network, batch))  # both readings say the same
    network.train()
    torch.manual_seed(0)
    losses = [objective("sasrec", model_of=network, loss="cross-entropy", consistency=4).loss(network, batch)]
    torch.manual_seed(0)
    losses.append(objective("sasrec", model_of=network, loss="cross-entropy", consistency=1e-9).loss(network, batch))
    assert losses[0] > losses[1] + 1e-3
    with pytest.raises(UsageError, match="cross-entropy"):
        objective("sasrec", loss="bce", consistency=1)


# --- negatives


def test_negatives_are_never_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = Taken(*flat(SEQUENCES), ITEMS)
    users = torch.arange(len(SEQUENCES))[:, None]
    found = taken.negatives(users, (len(SEQUENCES), 2000), torch.Generator().manual_seed(0))
    assert found.shape == (len(SEQUENCES), 2000)
    for user, sequence in enumerate(SEQUENCES):
        assert not set(found[user].tolist()) & set(sequence)
        others = ITEMS - len(set(sequence))
        counts = np.bincount(found[user].numpy(), minlength=ITEMS)[[i for i in range(ITEMS) if i not in sequence]]
        chi = ((counts - 2000 / others) ** 2 / (2000 / others)).sum()
        df = others - 1
        assert abs(chi - df) < 4 * np.sqrt(2 * df), "not uniform"
    monkeypatch.setattr(sampling, "TABLE_BYTES", 0)  # searched for in place of looked up
    again = Taken(*flat(SEQUENCES), ITEMS).negatives(users, found.shape, torch.Generator().manual_seed(0))
    assert torch.equal(again, found)
    everything = Taken(*flat([list(range(ITEMS))]), ITEMS)
    assert everything.negatives(torch.zeros(1, dtype=torch.int64), (50,), torch.Generator()).shape == (50,)


@pytest.mark.parametrize("name", ["sasrec", "attrec"])
def test_negatives_of_an_objective_belong_to_its_users(name: str) -> None:
    what = objective(name, negatives=50, **({"targets": 2} if name == "attrec" else {}))
    batch = drawn(what)
    if name == "sasrec":
        owners = [s for s in SEQUENCES if len(s) >= 2]
        rows = [row[targets != ITEMS] for row, targets in zip(batch[2], batch[1], strict=True)]
    else:
        owners, rows = [SEQUENCES[user] for user in batch[0].tolist()], list(batch[3])
    for sequence, row in zip(owners, rows, strict=True):
        assert not set(row.flatten().tolist()) & set(sequence)


def test_windows_of_long_sequences_make_every_item_a_target() -> None:
    what = objective("sasrec", loss="bce", step=1.0)
    inputs, targets, negatives = drawn(what)
    pairs = {(int(i), int(t)) for i, t in zip(inputs[targets != ITEMS], targets[targets != ITEMS], strict=True)}
    assert pairs >= {(item, item + 1) for item in range(10, 39)}  # of thirty items; eight are read at a time
    first = inputs[:, -1] == 18  # the earliest window of theirs
    assert not set(negatives[first].flatten().tolist()) & set(range(10, 40))  # negatives are its owner's


# --- cloze


@pytest.mark.parametrize("length", [1, 2, 8, 9, 40])
@pytest.mark.parametrize("step", [0, 1, 4, 8])
def test_windows_cover_a_sequence_from_its_end(length: int, step: int) -> None:
    """Without a step there is the last window alone."""
    size = 8
    before = 5  # somebody else's events
    ends, lengths = windows(torch.tensor([0, before, before + length]), size, step)
    own = [(int(e) - before - int(n), int(e) - before) for e, n in zip(ends, lengths, strict=True) if e > before]
    if length < 2:
        assert own == []
        return
    expected, end = [], length
    while True:
        start = max(end - size, 0)
        expected.append((start, start + min(size, length)))
        if start == 0 or not step:
            break
        end -= step
    assert own == expected


def cloze(share: float, last_only: float, most: int = 40, rows: int = 600) -> tuple[Tensor, Tensor]:
    sequences = [list(range(2 + number % 7)) for number in range(rows)]  # 2 to 8 items
    what = objective("bert4rec", sequences=sequences, mask_share=share, last_only=last_only, max_masked=most)
    tokens, targets = drawn(what)
    hidden = targets != ITEMS
    assert torch.equal(tokens == ITEMS + 1, hidden)  # what is asked for is hidden, and nothing else
    whole = torch.where(hidden, targets, tokens)
    for row, sequence in zip(whole.tolist(), sequences, strict=True):
        assert row == [ITEMS] * (8 - len(sequence)) + sequence
    return tokens, targets


def test_the_share_of_items_that_is_hidden() -> None:
    share = 0.6
    _, targets = cloze(1.0, last_only=0, most=3)
    assert (targets != ITEMS).sum(1).tolist() == [min(3, 2 + number % 7) for number in range(600)]
    _, targets = cloze(share, last_only=0)
    counts = (targets != ITEMS).sum(1).tolist()
    assert counts == [max(1, round(share * (2 + number % 7))) for number in range(600)]
    # every place is hidden alike: those of the longest sequences
    place = (targets != ITEMS)[torch.arange(600) % 7 == 6].float().mean(0)
    expected = max(1, round(share * 8)) / 8
    assert (place - expected).abs().max() < 5 * (0.25 / 85) ** 0.5


def test_a_share_of_examples_hides_the_last_alone() -> None:
    _, targets = cloze(0.5, last_only=1)
    assert (targets[:, :-1] == ITEMS).all()
    assert (targets[:, -1] != ITEMS).all()
    _, targets = cloze(0.5, last_only=0.25)
    alone = (targets[:, :-1] == ITEMS).all(1) & torch.tensor([number % 7 > 1 for number in range(600)])
    assert abs(alone.sum().item() / (600 * 5 / 7) - 0.25) < 0.07


def test_the_loss_of_hidden_items() -> None:
    network: BERT4Rec = model("bert4rec").eval()
    what = objective("bert4rec", model_of=network, mask_share=0.4)
    tokens, targets = drawn(what)
    logits = network.transform(network.hidden(tokens)) @ network.items.weight[:ITEMS].T + network.bias
    real = targets != ITEMS
    expected = torch.nn.functional.cross_entropy(logits[real], targets[real])
    assert what.loss(network, (tokens, targets)).item() == pytest.approx(expected.item(), rel=1e-5)


# --- windows of AttRec


def test_windows_and_what_follows_them() -> None:
    what = objective("attrec", targets=2)
    users, window, targets, negatives = drawn(what)
    expected = []
    for user, sequence in enumerate(SEQUENCES):
        for place in range(1, len(sequence)):
            latest, ahead = sequence[max(0, place - 3) : place], sequence[place : place + 2]
            expected.append((user, [ITEMS] * (3 - len(latest)) + latest, ahead + [ITEMS] * (2 - len(ahead))))
    assert list(zip(users.tolist(), window.tolist(), targets.tolist(), strict=True)) == expected
    assert negatives.shape == (len(expected), 2, 1)
