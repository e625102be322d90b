"""What every model of `engine.registry.MODELS` promises, whatever it computes. `Contract` is the suite.

A new model is covered by being registered: `small` gives it few dimensions where its configuration has the usual names.
"""

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from engine.data.dataset import Cases
from engine.data.identifiers import Identifiers
from engine.data.ragged import Ragged
from engine.data.words import ItemWords, tokenize
from engine.evaluation.ranks import full_ranks
from engine.models import Recommender, layers
from engine.models.graph import Graph
from engine.registry import MODELS
from engine.text.tokenizer import learn

MATCHING = {name: model for name, model in MODELS.items() if "identifiers" not in model.needs and model.exports}
"""Those that score items by vectors or counts; the others generate identifiers, which a tokenizer has to make first."""
ITEMS, USERS = 29, 9  # with 30 and 31, no other dimension of a model is as long
SMALL = {
    "dim": 8, "blocks": 2, "layers": 2, "heads": 2, "max_length": 8, "window": 3, "fold_in": 6, "dropout": 0.3,
    "input_dropout": 0.3, "attention_dropout": 0.3, "message_dropout": 0.3, "node_dropout": 0.2, "init_std": 0.3,
    "hidden": 12, "horizontal": 3, "vertical": 2, "experts": 3, "adaptor_dropout": 0.3, "time_bias": True,
}  # fmt: skip


def small(name: str, **settings: Any) -> Any:
    """A configuration of the model `name` that is quick to compute."""
    kind = MODELS[name].Config
    fields = {field.name for field in dataclasses.fields(kind)}
    return kind(**{key: value for key, value in SMALL.items() if key in fields} | settings)


def log(seed: int = 5) -> tuple[Tensor, Tensor]:
    """A training log: int64 items, and the offsets of USERS sequences of 1 to 12 items."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 13, USERS))])
    return torch.from_numpy(rng.integers(0, ITEMS, offsets[-1])), torch.from_numpy(offsets)


def identifiers() -> Identifiers:
    """Three codes each, two for some; a few items share theirs."""
    rng = np.random.default_rng(6)
    codes = np.stack([rng.integers(0, size, ITEMS) for size in (4, 3, 3)], 1).astype(np.int32)
    codes[::5, 2] = -1
    return Identifiers(codes, (4, 3, 3))


def words() -> list[list[tuple[str, str]]]:
    """Titles of one to four words, brands for some, one item without any words."""
    rng, said = np.random.default_rng(7), ["amber", "basalt", "cedar", "dune", "ember", "fjord", "grove"]
    found = [[("title", " ".join(rng.choice(said, rng.integers(1, 5))))] for _ in range(ITEMS)]
    for pairs in found[::3]:
        pairs.append(("brand", str(rng.choice(said))))
    found[4] = []
    return found


def tokenized(items: list[list[tuple[str, str]]]) -> ItemWords:
    """`words` as tokens; the tokenizer is the same whatever the order of the items."""
    return tokenize(
        items, learn((text for pairs in words() for pair in pairs for text in pair), 300), ["title", "brand"], 8
    )


def vectors() -> np.ndarray:
    """float32 [ITEMS, 6] of unit length; one item has none."""
    found = np.random.default_rng(8).normal(1, 1, (ITEMS, 6)).astype(np.float32)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    found[4] = 0
    return found


def graph() -> Graph:
    """That of `log`."""
    items, offsets = log()
    return Graph.of(items.numpy(), offsets.numpy(), ITEMS)


MATERIALS: dict[str, Any] = {
    "identifiers": identifiers(), "words": tokenized(words()), "start": None, "vectors": vectors(), "graph": graph(),
    "attributes": words(), "times": np.random.default_rng(9).integers(0, 1_000, len(log()[0])),
    "gaps": np.array([0, 60]),
}  # fmt: skip


def materials(name: str, new: Tensor | None = None, config: Any = None) -> dict[str, Any]:
    """What the model `name` needs, made up. new: int64 [items], the number that each item gets instead of its own; config: None
    for the small one."""
    materials = {key: MATERIALS[key] for key in MODELS[name].needs_of(config or small(name))}
    if new is not None and "identifiers" in materials:
        codes = np.empty_like(materials["identifiers"].codes)
        codes[new.numpy()] = materials["identifiers"].codes
        materials["identifiers"] = dataclasses.replace(materials["identifiers"], codes=codes)
    if new is not None and "vectors" in materials:
        materials["vectors"] = materials["vectors"][torch.argsort(new).numpy()]
    if new is not None and "graph" in materials:
        items, offsets = log()
        materials["graph"] = Graph.of(new[items].numpy(), offsets.numpy(), ITEMS)
    if new is not None and "attributes" in materials:
        materials["attributes"] = [words()[old] for old in torch.argsort(new).tolist()]
    if new is not None and "words" in materials:
        materials["words"] = tokenized([words()[old] for old in torch.argsort(new).tolist()])
    return materials


def build(name: str, seed: int = 3, new: Tensor | None = None, **settings: Any) -> Any:
    """A model in evaluation mode as training leaves one: nothing is zero that training would move."""
    config, generator = small(name, **settings), torch.Generator().manual_seed(seed)
    model = MODELS[name](config, ITEMS, USERS, generator, **materials(name, new, config))
    if hasattr(model, "fit"):
        model.fit(*log())
    move(model, seed)
    if hasattr(model, "refresh"):
        model.refresh()
    return model.eval()


@torch.no_grad()
def move(model: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
    for module in model.modules():
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            module.weight[module.padding_idx] = 0


def histories(model: Recommender, count: int = 7, seed: int = 1) -> list[list[int]]:
    """Histories of 1 to max_length items, both among them."""
    rng = np.random.default_rng(seed)
    lengths = [1, model.max_length, *rng.integers(1, model.max_length + 1, count - 2).tolist()]
    return [rng.integers(0, ITEMS, length).tolist() for length in lengths]


def batch(model: Recommender, rows: list[list[int]], width: int | None = None) -> Tensor:
    """int64 [rows, width], padded on the left."""
    width = width or max(map(len, rows))
    return torch.tensor([[model.pad] * (width - len(row)) + row for row in rows])


def close(one: Tensor, other: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize(
    "name", [name for name in MODELS if MODELS[name].exports]
)  # others hold a network of somebody else's
class Contract:
    # --- who it is

    def test_its_card_is_complete_and_every_setting_is_explained(self, name: str) -> None:
        model, card = build(name), MODELS[name].card
        assert model.min_history in (0, 1)
        assert len(card.title) <= 60
        assert max(len(card.summary), len(card.paper)) <= 2000
        cannot = {"attention"} if model.attention is None else set()
        if card.geometry == "none" or model.index().rows is None:
            cannot |= {"neighbours", "map"}
        assert cannot <= card.reasons.keys()
        assert all(reason.endswith(".") for reason in card.reasons.values())
        kind = MODELS[name].Config
        body = [line for part in kind.__mro__[:-1] for line in inspect.getsource(part).splitlines()]
        for field in dataclasses.fields(kind):
            place = next(i for i, line in enumerate(body) if line.strip().startswith(f"{field.name}:"))
            assert body[place + 1].strip().startswith('"""'), field.name

    # --- query, index, score

    def test_a_score_is_query_times_index(self, name: str) -> None:
        model = build(name)
        rows, bias = model.index()
        assert bias.shape == (ITEMS,)
        assert bias.dtype == torch.float32
        assert torch.isfinite(bias).all()
        if rows is not None:
            assert rows.shape[0] == ITEMS
            assert rows.dtype == torch.float32
            assert torch.isfinite(rows).all()
        dim = ITEMS if rows is None else rows.shape[1]
        for length in range(1, model.max_length + 1):
            items = torch.randint(ITEMS, (3, length), generator=torch.Generator().manual_seed(length))
            query = model.query(items)
            assert query.dtype == torch.float32
            assert query.shape == (3, dim)
            assert torch.isfinite(query).all()
        items = batch(model, histories(model))
        query, scores = model.query(items).double(), model.scores(items)
        assert scores.shape == (len(items), ITEMS)  # none for padding or another token
        assert scores.dtype == torch.float32
        close(scores.double(), (query if rows is None else query @ rows.double().T) + bias.double())

    def test_parts_of_a_score_are_the_whole_query(self, name: str) -> None:
        model = build(name)
        items, users = batch(model, histories(model)), torch.arange(7)
        widths, dim = list(model.score_parts.values()), model.query(items).shape[1]
        if not model.adds_parts:
            assert not widths or sum(widths) == dim
            return
        assert widths == [dim] * len(widths) and len(widths) > 1
        for known in (None, users):
            parts = model.query_parts(items, known)
            assert parts.shape == (len(items), len(widths), dim)
            close(parts.sum(1), model.query(items, known))

    def test_row_i_is_item_i(self, name: str) -> None:
        """Renumber the items of the model and of the history: the same scores, renumbered."""
        new = torch.randperm(ITEMS, generator=torch.Generator().manual_seed(0))  # old number → new number
        model, other = build(name), build(name, seed=4, new=new)
        if hasattr(other, "fit"):
            items, offsets = log()
            other.fit(new[items], offsets)
        else:
            state = {key: value.clone() for key, value in model.state_dict().items()}
            for key, value in model.state_dict().items():
                if value.ndim and value.shape[0] in (ITEMS, ITEMS + 1, ITEMS + 2):
                    state[key][new] = value[:ITEMS]
            other.load_state_dict(state)
        rows = histories(model)
        renumbered = [new[torch.tensor(row)].tolist() for row in rows]
        close(other.scores(batch(model, renumbered))[:, new], model.scores(batch(model, rows)))

    # --- padding and length

    def test_a_history_answers_alike_in_a_batch_padded_and_alone(self, name: str) -> None:
        model = build(name)
        rows = histories(model)
        together = model.query(batch(model, rows))
        for row, query in zip(rows, together, strict=True):
            alone = model.query(torch.tensor([row]))
            close(alone[0], query)
            for width in range(len(row) + 1, model.max_length):
                close(model.query(batch(model, [row], width)), alone)

    def test_a_history_of_padding_alone_is_no_accident(self, name: str) -> None:
        model = build(name)
        for width in (1, model.max_length):
            assert torch.isfinite(model.scores(batch(model, [[], []], width))).all()

    def test_of_a_long_history_the_latest_items_are_read(self, name: str) -> None:
        model, rng = build(name), np.random.default_rng(8)
        long = [rng.integers(0, ITEMS, model.max_length + extra).tolist() for extra in (0, 1, 2, 40)]
        targets = rng.integers(0, ITEMS, len(long)).astype(np.int32)
        users = np.arange(len(long), dtype=np.int32)
        ranks = full_ranks(model, Cases.of(users, Ragged.of(long), targets), exclude_history=False).ranks
        scores = model.scores(batch(model, [row[-model.max_length :] for row in long]))
        for row, target in enumerate(targets):
            own = scores[row, target]
            assert ranks[row] == 1 + int((scores[row] > own).sum()) + (int((scores[row] == own).sum()) - 1) / 2

    def test_order_counts_where_it_says_so(self, name: str) -> None:
        """To the last bit where it does not. Of the items that it reads, not of which these are: the Markov chain reads one."""
        model, rng = build(name), np.random.default_rng(4)
        changes = []
        for _ in range(5):
            history = torch.from_numpy(rng.permutation(ITEMS)[None, : model.max_length])
            changes.append(not torch.equal(model.query(history), model.query(history.flip(1))))
        assert any(changes) == (model.reads_order and model.max_length > 1)

    # --- randomness and storage

    def test_the_generator_alone_decides_how_it_starts(self, name: str) -> None:
        def start(seed: int, elsewhere: int) -> dict[str, Tensor]:
            torch.manual_seed(elsewhere)
            kind = MODELS[name]
            return kind(small(name), ITEMS, USERS, torch.Generator().manual_seed(seed), **materials(name)).state_dict()

        one, same, other = start(1, 1), start(1, 2), start(2, 1)
        assert all(torch.equal(one[key], same[key]) for key in one)
        random = {key for key in one if one[key].unique().numel() > 2}
        assert not any(torch.equal(one[key], other[key]) for key in random)

    def test_it_comes_back_from_a_file(self, name: str, tmp_path: Path) -> None:
        model = build(name)
        save_file({k: v.contiguous() for k, v in model.state_dict().items()}, tmp_path / "model.safetensors")
        generator = torch.Generator().manual_seed(99)
        other = MODELS[name](small(name), ITEMS, USERS, generator, **materials(name)).eval()
        other.load_state_dict(load_file(tmp_path / "model.safetensors"))
        items = batch(model, histories(model))
        assert torch.equal(other.scores(items), model.scores(items))
        if model.trained_users:
            users = torch.arange(len(items)) % USERS
            assert torch.equal(other.scores(items, users), model.scores(items, users))

    # --- people

    def test_people_are_known_by_vector_or_by_history(self, name: str) -> None:
        model = build(name)
        items = torch.tensor([[1, 2, 3][-model.max_length :]] * 2)
        folded, known = model.query(items), model.query(items, torch.tensor([0, USERS - 1]))
        close(folded[0], folded[1], 1e-6)
        if model.trained_users:
            assert not torch.equal(known[0], known[1])
            assert known.shape == folded.shape
        else:
            assert torch.equal(known, folded)

    # --- learning

    def test_the_gradient_reaches_every_parameter(self, name: str) -> None:
        model = build(name).train()
        parameters = dict(model.named_parameters())
        if hasattr(model, "fit"):
            assert not parameters
            return
        torch.manual_seed(0)
        # every item and every user, as targets and in histories; the latest places of the position table at least
        items = torch.arange(4 * ITEMS).reshape(-1, 4) % ITEMS
        users = torch.arange(len(items)) % USERS
        known = F.cross_entropy(model.scores(items, users), torch.arange(len(items)))
        folded = F.cross_entropy(model.scores(items), torch.arange(len(items)))
        (known + folded).backward()
        for key, parameter in parameters.items():
            assert parameter.grad is not None, key
            assert torch.isfinite(parameter.grad).all(), key
            if "key.bias" not in key:  # the same for every key: a softmax does not see it
                assert parameter.grad.abs().max() > 1e-7, key
        for module in model.modules():
            if isinstance(module, nn.Embedding) and module.padding_idx is not None:
                assert module.weight.grad is not None
                assert not module.weight.grad[module.padding_idx].any()

    # --- attention

    def test_attention_is_of_the_shape_it_declares_and_looks_where_it_may(self, name: str) -> None:
        model = build(name)
        shape = model.attention
        if shape is None:
            with pytest.raises(TypeError):
                model.query_with_attention(torch.tensor([[1]]))
            return
        assert 1 <= shape.window <= model.max_length
        for row in histories(model):
            query, weights = model.query_with_attention(torch.tensor([row]))
            close(query, model.query(torch.tensor([row])))
            size, positions = weights.shape[-1], min(len(row), shape.window) + shape.next_token
            assert weights.dtype == torch.float32
            assert weights.shape == (1, shape.layers, shape.heads, size, size)
            assert size >= positions
            real = weights[0, :, :, -positions:]
            assert (real >= 0).all()
            close(real.sum(-1), torch.ones(real.shape[:-1]))
            alone = weights[..., -positions:, -positions:]
            _, padded = model.query_with_attention(batch(model, [row], model.max_length))
            assert not padded[..., -positions:, :-positions].any()  # padding gets nothing
            close(padded[..., -positions:, -positions:], alone)
            place = torch.arange(positions)
            if shape.causal:
                assert not alone[..., place[None, :] > place[:, None]].any()
            if shape.masked_diagonal and positions > 1:
                assert not alone[..., place, place].any()

    def test_weights_are_written_out_for_those_who_look_alone(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        model = build(name)
        monkeypatch.delattr(layers, "attend_with_weights")
        model.query(torch.tensor([[1]]))
        model.train().query(torch.tensor([[1, 2][-model.max_length :]]))

    def test_the_past_does_not_know_the_future(self, name: str) -> None:
        model = build(name)
        shape = model.attention
        if shape is None or not shape.causal:
            return
        length = model.max_length
        items = torch.randint(ITEMS, (4, length), generator=torch.Generator().manual_seed(2))
        before = model.hidden(items)
        for place in range(1, length):
            changed = items.clone()
            changed[:, place:] = (changed[:, place:] + 1) % ITEMS
            after = model.hidden(changed)
            close(after[:, :place], before[:, :place], 1e-6)
            assert not torch.allclose(after[:, place], before[:, place])
