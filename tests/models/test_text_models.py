"""Networks that read what is said of items, against their re-derivations in numpy: states, scores, losses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from engine.models.fdsa import FDSA, FDSAConfig, word_table
from engine.models.s3rec import S3Rec, S3RecConfig, attribute_table
from engine.models.tfidf import vectors
from engine.training.objectives.mutual_information import MutualInformation, MutualInformationConfig
from engine.training.objectives.sequences import NextItem, NextItemConfig
from engine.training.objectives.text import Contrasts, UniversalConfig
from tests.models import numpy_bert4rec, numpy_networks, numpy_sasrec, numpy_text
from tests.models.contract import ITEMS, MATERIALS, build, histories, log
from tests.models.numpy_sasrec import numbers


def check(model: Any, scores: Callable[[list[int]], np.ndarray], prior: float = 0.0) -> None:
    """Scores, and the loss: cross-entropy over the catalogue, the mean over all targets, and of the prior. scores: of a history,
    [positions, items]."""
    for history in histories(model, 4):
        np.testing.assert_allclose(numbers(model.scores(torch.tensor([history]))[0]), scores(history)[-1], atol=1e-4)
    events, offsets = log()
    what = NextItem(NextItemConfig(loss="cross-entropy"), model, events, offsets, batch_size=9)  # type: ignore[arg-type]
    batch = what.draw(torch.arange(len(what.ends)), torch.Generator())
    expected = []
    for start, end in zip(offsets.tolist(), offsets[1:].tolist(), strict=False):
        window = events[start:end].tolist()[-model.max_length - 1 :]
        if len(window) > 1:
            rows = scores(window[:-1])
            expected += [numpy_text.cross_entropy(row, item) for row, item in zip(rows, window[1:], strict=True)]
    found = what.loss(model, batch).item()  # type: ignore[arg-type]
    assert found == pytest.approx(np.mean(expected) + prior / len(expected), rel=1e-5)


@pytest.mark.parametrize("ids", [False, True])
def test_unisrec_is_that_of_the_paper(ids: bool) -> None:
    model = build("unisrec", ids=ids)
    adaptor, config = model.adaptor, model.config
    parts = (numbers(adaptor.bias), numbers(adaptor.whitening), numbers(adaptor.gate.weight))
    items = np.array([numpy_text.unisrec_item(x, *parts) for x in MATERIALS["vectors"].astype(np.float64)])
    if model.items is not None:
        items += numbers(model.items.weight)[:ITEMS]
    directions = items / np.linalg.norm(items, axis=1, keepdims=True)

    def scores(history: list[int]) -> np.ndarray:
        states, _ = numpy_sasrec.forward(
            history, items=items / np.sqrt(config.dim), positions=numbers(model.positions.weight), longest=config.max_length,
            blocks=numpy_sasrec.block_weights(model.blocks), heads=config.heads,
            last_norm=(numbers(model.norm.weight), numbers(model.norm.bias)),
        )  # fmt: skip
        return states / np.linalg.norm(states, axis=1, keepdims=True) @ directions.T / config.temperature

    check(model, scores)


def test_unisrec_weighs_its_experts_by_chance_where_it_learns() -> None:
    """Softplus of the text is how far: where it is next to nothing, nothing is drawn."""
    model = build("unisrec", adaptor_dropout=0.0)
    asked = model.table
    model.train()
    assert (model.table - asked).abs().max() > 0.01
    torch.manual_seed(1)
    one = model.table
    torch.manual_seed(1)
    assert torch.equal(model.table, one)
    with torch.no_grad():  # words of one direction, and a router that draws nothing for them
        model.text[:] = 1
        model.adaptor.noise.weight[:] = -50
    torch.testing.assert_close(model.table, model.eval().table)


@pytest.mark.parametrize(("loss", "negatives"), [("bce", 1), ("gbce", ITEMS), ("cross-entropy", 1)])
def test_targets_and_negatives_are_rows_of_one_table(
    monkeypatch: pytest.MonkeyPatch, loss: Any, negatives: int
) -> None:
    """Each time that it is made, chance draws another."""
    model, tables = build("unisrec").train(), []
    made = model.made
    monkeypatch.setattr(model, "made", lambda items: tables.append(items) or made(items))
    events, offsets = log()
    objective = NextItem(NextItemConfig(loss=loss, negatives=negatives), model, events, offsets, batch_size=9)
    objective.loss(model, objective.draw(torch.arange(1), torch.Generator()))
    assert sum(items is None for items in tables) == 1


def test_fdsa_is_that_of_the_paper() -> None:
    model = build("fdsa", least=1)
    config, said = model.config, MATERIALS["attributes"]
    items, w = numbers(model.items.weight), numbers(model.weigh.weight)[0]
    # words are numbered by attribute, then by the alphabet
    number = {word: n for n, word in enumerate(sorted({(k, word) for p in said for k, v in p for word in v.split()}))}
    vectors = numbers(model.word_vectors.weight)
    described = np.zeros((ITEMS, config.dim))
    for item, pairs in enumerate(said):
        if pairs:
            words = [[vectors[number[key, word]] for word in sorted(set(value.split()))] for key, value in pairs]
            described[item] = numpy_text.fdsa_item(words, w)

    def scores(history: list[int]) -> np.ndarray:
        states = []
        for table, positions, blocks, norm in (
            (items, model.positions, model.blocks, model.norm),
            (described, model.attribute_positions, model.attribute_blocks, model.attribute_norm),
        ):
            side, _ = numpy_sasrec.forward(
                history, items=table / np.sqrt(config.dim), positions=numbers(positions.weight), longest=config.max_length,
                blocks=numpy_sasrec.block_weights(blocks), heads=config.heads,
                last_norm=(numbers(norm.weight), numbers(norm.bias)),
            )  # fmt: skip
            states.append(side)
        joint = np.concatenate(states, axis=1) @ numbers(model.joint.weight).T + numbers(model.joint.bias)
        return joint @ items[:ITEMS].T

    check(model, scores)


def test_unisrec_is_pretrained_by_the_contrasts_of_the_paper() -> None:
    model = build("unisrec", pretrain=True)
    what = Contrasts(UniversalConfig(per_user=0, sequence_weight=0.3, drop_share=0.4), model, *log(), batch_size=9)
    batch = what.draw(torch.arange(len(what.targets_at)), torch.Generator().manual_seed(1))
    history, targets, dropped = batch
    for before, after in zip(history.tolist(), dropped.tolist(), strict=True):
        rest = iter(before)
        left = [item for item in after if item != ITEMS]
        assert left and left == after[-len(left) :] and all(item in rest for item in left)
    states, others = (numbers(model.query(items)) * model.config.temperature for items in (history, dropped))
    expected = 0.0
    for weight, rows in ((1.0, numbers(model.table)[targets]), (0.3, others)):
        for row, target in enumerate(targets.tolist()):
            among = [row, *(other for other, item in enumerate(targets.tolist()) if item != target)]
            scores = rows[among] @ states[row] / model.config.temperature
            expected += weight * numpy_text.cross_entropy(scores, 0)
    assert what.loss(model, batch).item() == pytest.approx(expected / len(targets), rel=1e-5)


def test_zesrec_is_that_of_the_paper() -> None:
    model = build("zesrec")
    offsets = numbers(model.offsets.weight)[:ITEMS]
    vectors = MATERIALS["vectors"].astype(np.float64) @ numbers(model.universal.weight).T + offsets
    layers = numpy_networks.gru_layers(model.gru)

    def scores(history: list[int]) -> np.ndarray:
        return numpy_networks.gru(vectors[history], layers) @ vectors.T

    check(model, scores, model.config.offset_precision / 2 * (offsets**2).sum())


def test_attributes_are_named_by_their_columns() -> None:
    """Of which a key has no underscores."""
    attributes = [[("title", f"Item {n}"), ("main category", "Hair")] for n in range(4)]
    assert (word_table(attributes, ("main_category",), 1, 4)[0] == 0).sum() == 4
    assert attribute_table(attributes, ("main_category",), 9)[1] == 1
    assert vectors(attributes, ("main_category",)).shape == (4, 1)


@pytest.mark.parametrize(
    ("text", "same", "other"),
    [
        ("दिल तो पागल है", "मेरा दिल", "दाल लाल"),
        ("ความรักในเมือง", "หมู่บ้านความรัก", "หมา ก้าน"),
        ("七人の侍", "七人", "用心棒"),
        ("红色沙漠", "沙漠之花", "花样年华"),
        ("كِتَابٌ جَمِيلٌ", "كِتَابٌ", "كَلْبٌ"),
        ("کتاب\u200cها خوب", "آن کتاب\u200cها", "خانه\u200cها"),
        ("ශ්\u200dරී ලංකා", "ශ්\u200dරී", "රී\u200d"),
    ],
)
def test_words_are_those_of_any_script(text: str, same: str, other: str) -> None:
    """Where vowels are signs around a letter, and where nothing stands between words."""
    near = vectors([[("title", title)] for title in (text, same, other)])
    near = (near @ near.T).toarray()
    assert near.diagonal() == pytest.approx(1)
    assert near[0, 1] > 0.1 and near[0, 2] == 0


def test_fdsa_says_what_would_do_where_nothing_can_be_read() -> None:
    for fields, message in ((("colour",), "no item has an attribute 'colour'"), ((), "or take sasrec")):
        said = [[("title", f"{number}th")] for number in range(9)]
        with pytest.raises(ValueError, match=message):
            FDSA(FDSAConfig(fields=fields), 9, 1, torch.Generator(), said)


def s3rec_states(model: S3Rec, tokens: list[int], causal: bool) -> np.ndarray:
    return numpy_bert4rec.forward(
        tokens, items=numbers(model.items.weight), positions=numbers(model.positions.weight)[8 - len(tokens) :],
        norm=(numbers(model.norm.weight), numbers(model.norm.bias)), layers=numpy_sasrec.block_weights(model.blocks),
        heads=model.config.heads, causal=causal,
    )[0]  # fmt: skip


def test_s3rec_looks_back_only_where_it_recommends() -> None:
    model = build("s3rec")
    for history in histories(model, 4):
        states = s3rec_states(model, history, causal=True)
        np.testing.assert_allclose(numbers(model.hidden(torch.tensor([history]))[0]), states, atol=1e-5)
        scores = numbers(model.items.weight)[:ITEMS] @ states[-1]
        np.testing.assert_allclose(numbers(model.scores(torch.tensor([history]))[0]), scores, atol=1e-4)


def test_s3rec_is_pretrained_by_the_tasks_of_the_paper() -> None:
    model = build("s3rec", pretrain=True)
    assert isinstance(model, S3Rec) and model.tasks is not None
    events, offsets = log()
    what = MutualInformation(MutualInformationConfig(), model, events, offsets, batch_size=9)
    batch = what.draw(torch.arange(len(what.users)), torch.Generator().manual_seed(1))
    said = [{(key, value) for key, value in pairs} for pairs in MATERIALS["attributes"]]
    shared = [a for a in {a for described in said for a in described} if sum(a in described for described in said) > 1]
    shared.sort(key=lambda a: (-sum(a in described for described in said), a))
    assert len(shared) == model.tasks.attributes.num_embeddings
    vectors, items = numbers(model.tasks.attributes.weight), numbers(model.items.weight)
    w = {name: numbers(getattr(model.tasks, name).weight) for name in ("aap", "mip", "map", "sp")}
    expected = 0.0
    for row, user in enumerate(what.users.tolist()):
        real = (batch[0][row] != ITEMS).numpy()
        sequence, shown, others, context, segment, other = (part[row].numpy()[real].tolist() for part in batch)
        history = events[offsets[user] : offsets[user + 1]].tolist()
        assert any(history[:end][-8:] == sequence for end in range(2, len(history) + 1))
        hidden = [place for place, token in enumerate(shown) if token == model.mask]
        inside = [place for place, token in enumerate(context) if token == model.mask]
        assert hidden[-1] == len(sequence) - 1
        assert inside == list(range(inside[0], inside[-1] + 1)) and len(inside) <= len(history) // 2
        for place, token in enumerate(sequence):
            assert shown[place] == (model.mask if place in hidden else token)
            assert (context[place], segment[place]) == ((model.mask, token) if place in inside else (token, model.mask))
            assert (other[place] == model.mask) == (place not in inside)
        elsewhere = "".join(f" {token} " for token in other if token != model.mask)
        assert elsewhere in "".join(f" {token} " for token in events.tolist())
        states = s3rec_states(model, shown, causal=False)
        for place, item in enumerate(sequence):
            described = np.array([attribute in said[item] for attribute in shared])
            expected += 0.2 * numpy_text.told(w["aap"] @ items[item], vectors, described)
            if place in hidden:
                expected += numpy_text.told(w["map"] @ states[place], vectors, described)
                expected += numpy_text.chosen(w["mip"] @ states[place], items[item], items[others[place]])
                assert others[place] not in history
        last = [s3rec_states(model, tokens, causal=False)[-1] for tokens in (context, segment, other)]
        expected += 0.5 * numpy_text.chosen(w["sp"] @ last[0], last[1], last[2])
    found = what.loss(model, batch)
    assert found.item() == pytest.approx(expected / len(what.users), rel=1e-5)
    found.backward()  # type: ignore[no-untyped-call]
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())


def test_s3rec_says_what_would_do_where_nothing_is_shared() -> None:
    said = [[("title", f"{number}th")] for number in range(9)]
    with pytest.raises(ValueError, match="or take sasrec"):
        S3Rec(S3RecConfig(pretrain=True), 9, 1, torch.Generator(), said)
    S3Rec(S3RecConfig(), 9, 1, torch.Generator(), said)  # what comes next is learnt without them
