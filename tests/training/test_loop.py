"""The training loop with a model of one number and losses that are written down."""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from engine.bundle.curve import NOT_SETTLED, unsettled, validated
from engine.errors import SeqscopeError
from engine.models import Recommender
from engine.registry import MODELS
from engine.training import checkpoint
from engine.training.distributed import World
from engine.training.loop import Trainer, seed_of
from engine.training.objectives.base import Objective
from tests.training.tiny import recipe

STEPS = 3


class Number(Recommender):
    def __init__(self) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.zeros(1))


class Scripted(Objective):
    """An objective whose loss in epoch e is losses[e]; every step has the targets that its example numbers say."""

    steps = STEPS
    typical_targets = 7.0  # 1 + 2, 3 + 4 and 5 + 6 targets in three steps

    def __init__(self, losses: list[float], trainer: Callable[[], Trainer]) -> None:
        self.losses, self.trainer = losses, trainer
        self.seen: list[tuple[int, int]] = []

    def batches(self, generator: torch.Generator) -> Iterator[Tensor]:
        yield from torch.arange(2 * STEPS).split(2)

    def draw(self, examples: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        return (examples,)

    def targets(self, batch: tuple[Tensor, ...]) -> Tensor:
        return batch[0] + 1

    def loss(self, model: Any, batch: tuple[Tensor, ...]) -> Tensor:
        state = self.trainer().state
        self.seen.append((state.epoch, state.step))
        return model.value.sum() + self.losses[state.epoch] - model.value.detach().sum()


def trainer(
    folder: Path,
    losses: list[float],
    scores: list[float] | None = None,
    optimiser: dict[str, Any] | None = None,
    **training: Any,
) -> Trainer:
    folder.mkdir(exist_ok=True)
    made: list[Trainer] = []
    remaining = iter(scores or [])
    model = Number()
    settings = {"epochs": len(losses), "patience": 0, "validate_every": 1} | training
    validation: Any = lambda model: next(remaining) if scores is not None else 0.5  # noqa: E731
    objective: Any = Scripted(losses, lambda: made[0])
    chosen = recipe("sasrec", training=settings, optimiser=optimiser or {})
    made.append(Trainer(chosen, model, objective, validation, folder, torch.device("cpu"), World()))
    made[0].resume("mine")
    return made[0]


def interrupted(one: Trainer, when: Callable[[checkpoint.State], bool]) -> None:
    """Runs until it would draw a batch then."""
    inner = one.objective.draw

    def draw(examples: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        if when(one.state):
            raise KeyboardInterrupt
        return inner(examples, generator)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(one.objective, "draw", draw)
        one.run()


def test_an_epoch_is_all_steps_and_the_loss_is_the_mean_over_targets(tmp_path: Path) -> None:
    one = trainer(tmp_path, [2.0, 1.0])
    state = one.run()
    assert one.objective.seen == [(epoch, step) for epoch in range(2) for step in range(STEPS)]  # type: ignore[attr-defined]
    assert [entry["loss"] for entry in state.curve] == [2.0, 1.0]
    assert [entry["step"] for entry in state.curve] == [3, 6]
    assert state.finished
    assert state.total_steps == 6


def test_the_loss_of_an_epoch_weighs_steps_by_their_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = trainer(tmp_path, [0.0])
    monkeypatch.setattr(one.objective, "loss", lambda model, batch: model.value.sum() * 0 + float(batch[0][0]))
    # losses 0, 2, 4 over 1+2, 3+4, 5+6 targets
    assert one.run().curve[0]["loss"] == pytest.approx((0 * 3 + 2 * 7 + 4 * 11) / 21)


def test_every_target_pulls_alike_whatever_batch_it_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = trainer(tmp_path, [0.0])
    pulls: list[float] = []

    def step(*args: object) -> None:
        pulls.append(one.model.value.grad.item())

    monkeypatch.setattr(one.optimiser, "step", step)
    one.run()
    # the mean of a batch, times its targets, over those of an average batch
    assert pulls == pytest.approx([3 / 7, 1, 11 / 7])


def test_the_best_is_kept_and_patience_ends_it(tmp_path: Path) -> None:
    scores = [0.1, 0.3, 0.2, 0.3, 0.1, 0.9]
    one = trainer(tmp_path, [1.0] * 6, scores, patience=3)
    state = one.run()
    # 0.3 again is not better: three validations without a better one end it before 0.9 is seen
    assert (state.epoch, state.best, state.best_epoch) == (5, 0.3, 2)
    assert checkpoint.read_state(tmp_path / "best.safetensors").epoch == 2
    assert [entry["valid_ndcg"] for entry in state.curve] == scores[:5]
    again = trainer(tmp_path, [1.0] * 6, scores, patience=3)
    assert again.run().epoch == 5
    assert again.objective.seen == []  # type: ignore[attr-defined]


def test_the_average_is_validated_and_kept_while_training_goes_on_from_the_parameters(tmp_path: Path) -> None:
    one = trainer(tmp_path, [1.0] * 2, optimiser={"average": 0.9, "lr": 0.1})
    validated: list[float] = []
    one.validation = lambda model: validated.append(float(model.value.detach())) or 0.1 * len(validated)  # type: ignore[assignment]
    one.run()
    best, last = (load_file(tmp_path / f"{name}.safetensors") for name in ("best", "checkpoint"))
    assert best["model.value"].item() == validated[-1] == last["average.value"].item()
    assert last["model.value"].item() == one.model.value.item() < validated[-1] < 0  # behind the parameters, which fall
    again = trainer(tmp_path, [1.0] * 2, optimiser={"average": 0.9, "lr": 0.1})
    assert again.average.parameters["value"].item() == validated[-1]


def test_patience_counts_validations_not_epochs(tmp_path: Path) -> None:
    """And a better one starts it anew."""
    state = trainer(tmp_path, [1.0] * 19, [0.2, 0.1, 0.3, 0.2, 0.1], patience=2, validate_every=2).run()
    assert state.epoch == 10
    assert [entry["valid_ndcg"] for entry in state.curve][1::2] == [0.2, 0.1, 0.3, 0.2, 0.1]


FALLING = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]


@pytest.mark.parametrize(
    ("warmup", "decay", "last"),
    [
        (2 * STEPS, "none", 4),  # the validation at the last step of the warm-up is not one after it
        (2 * STEPS + 1, "cosine", 4),
        (99, "none", 9),  # never over: all epochs are done
        (4 * STEPS, "inverse-sqrt", 3),  # no climb: the rate is full from the first step
    ],
)
def test_patience_begins_when_the_warm_up_is_over(tmp_path: Path, warmup: int, decay: str, last: int) -> None:
    optimiser = {"warmup_steps": warmup, "decay": decay}
    state = trainer(tmp_path, [1.0] * 9, FALLING, optimiser, patience=2).run()
    assert (state.epoch, state.best_epoch, state.finished) == (last, 1, True)
    said = {"training": {"patience": 2}, "optimiser": optimiser}
    assert unsettled(1, validated(state.curve), said) == (NOT_SETTLED if last == 9 else None)


@pytest.mark.parametrize("after", [1, 5])
def test_patience_after_an_interruption_in_or_after_the_warm_up(tmp_path: Path, after: int) -> None:
    optimiser = {"warmup_steps": 4 * STEPS}
    whole = trainer(tmp_path / "whole", [1.0] * 9, FALLING, optimiser, patience=2).run()
    one = trainer(tmp_path / "cut", [1.0] * 9, FALLING, optimiser, patience=2, checkpoint_seconds=0.0)
    interrupted(one, lambda state: state.epoch == after)
    cut = trainer(tmp_path / "cut", [1.0] * 9, FALLING[after:], optimiser, patience=2).run()
    assert (cut.epoch, cut.best_epoch, cut.worse) == (whole.epoch, whole.best_epoch, whole.worse) == (6, 1, 2)
    assert [entry["valid_ndcg"] for entry in cut.curve] == [entry["valid_ndcg"] for entry in whole.curve]


def test_without_patience_all_epochs_are_done_and_the_last_is_validated(tmp_path: Path) -> None:
    state = trainer(tmp_path, [1.0] * 5, [0.3, 0.2, 0.1], validate_every=2).run()
    assert state.epoch == 5
    assert [entry["valid_ndcg"] for entry in state.curve] == [None, 0.3, None, 0.2, 0.1]


@pytest.mark.parametrize("bad", [math.nan, 8.1])
def test_what_diverges_stops_and_the_best_stays(tmp_path: Path, bad: float) -> None:
    """A loss may grow a little."""
    one = trainer(tmp_path, [2.0, 7.75, bad, 1.0], checkpoint_seconds=0.0)
    with pytest.raises(
        SeqscopeError, match=r"epoch 3.*(nan|diverged).*best model so far \(epoch 1\) is kept.*optimiser\.lr"
    ):
        one.run()
    assert checkpoint.read_state(tmp_path / "best.safetensors").epoch == 1
    left = checkpoint.read_state(one.checkpoint_path)
    assert [entry["loss"] for entry in left.curve] == [2.0, 7.75]
    assert math.isfinite(left.loss_sum)  # what is no number is no state to go on from


def test_where_there_was_next_to_nothing_to_lose_a_loss_that_grows_is_no_divergence(tmp_path: Path) -> None:
    assert trainer(tmp_path, [0.0, 0.3, 0.2]).run().epoch == 3


def test_what_is_broken_from_the_start_has_no_best(tmp_path: Path) -> None:
    with pytest.raises(SeqscopeError, match=r"epoch 1: the loss is nan\. Try"):
        trainer(tmp_path, [math.nan]).run()
    assert not (tmp_path / "best.safetensors").exists()


def test_an_interruption_after_the_last_step_of_an_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Validation can take long; who is killed during it goes on with it."""
    one = trainer(tmp_path, [2.0, 1.0], checkpoint_seconds=0.0)
    monkeypatch.setattr(one, "_validate", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        one.run()
    state = checkpoint.read_state(one.checkpoint_path)
    assert (state.epoch, state.step) == (0, STEPS)
    other = trainer(tmp_path, [2.0, 1.0])
    done = other.run()
    assert other.objective.seen == [(1, 0), (1, 1), (1, 2)]  # type: ignore[attr-defined]
    assert [entry["loss"] for entry in done.curve] == [2.0, 1.0]


def test_short_epochs_share_a_checkpoint_that_agrees_with_the_best_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = trainer(tmp_path, [1.0] * 5, [0.3, 0.2, 0.4, 0.1, 0.1])
    saved, save = [], one._save
    monkeypatch.setattr(one, "_save", lambda: (saved.append(one.state.epoch), save()))
    interrupted(one, lambda state: (state.epoch, state.step) == (4, 1))
    assert saved == [1, 3]  # where the model was the best so far
    assert len(json.loads((tmp_path / "curve.json").read_text())) == 4
    one = trainer(tmp_path, [1.0] * 5, [0.1, 0.1])
    assert (one.state.epoch, one.state.best_epoch) == (3, 3)
    assert (one.run().epoch, one.state.best_epoch) == (5, 3)
    assert checkpoint.read_state(one.checkpoint_path).epoch == 5


def test_gradients_are_clipped_where_the_recipe_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    monkeypatch.setattr(nn.utils, "clip_grad_norm_", lambda parameters, limit: seen.append(limit))
    one = trainer(tmp_path, [1.0])
    object.__setattr__(one.recipe.optimiser, "clip_norm", 2.5)
    one.run()
    assert seen == [2.5] * STEPS


def test_seeds_depend_on_every_word() -> None:
    words = [(1,), (2,), (1, 1), (11,), (1, "order"), (1, 1, "draw"), (1, 1, 1), (1, 11, "draw"), (11, 1, "draw")]
    assert len({seed_of(*w) for w in words}) == len(words)
    assert seed_of(1, "order") == seed_of(1, "order")
    assert all(0 <= seed_of(*w) < 2**63 for w in words)


@pytest.mark.parametrize(("family", "compiled"), [("sasrec", "Block"), ("mult-vae", "Step")])
def test_layers_of_a_stack_are_compiled_or_else_the_whole_step(
    family: str, compiled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(nn.Module, "compile", lambda self, **how: seen.append(type(self).__name__))
    made = recipe(family, training={"compile": True})
    model: Any = MODELS[family](made.model, 4, 3, torch.Generator())
    Trainer(made, model, Scripted([], lambda: None), None, tmp_path, torch.device("cpu"), World())  # type: ignore[arg-type]
    assert set(seen) == {compiled}
