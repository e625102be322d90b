"""Checkpoints: back to the last bit, and one clear sentence where one is damaged."""

import resource
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from engine.errors import SeqscopeError
from engine.tokenizers.run import load_tokenizer
from engine.training import checkpoint
from engine.training.checkpoint import State
from engine.training.optimiser import OptimiserConfig, build


def pair() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 4), nn.LayerNorm(4))
    return model, build(OptimiserConfig(), model)


def step(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    optimiser.zero_grad()
    model(torch.arange(5)).square().sum().backward()
    optimiser.step()


def of_another_model(path: Path) -> None:
    other = nn.Sequential(nn.Embedding(6, 4), nn.Linear(4, 4), nn.LayerNorm(4))
    checkpoint.save(path, other, None, State())


def of_another_optimiser(path: Path) -> None:
    tensors = {name: tensor for name, tensor in load_file(path).items() if name.startswith("model.")}
    save_file(tensors | {"optimiser.x": torch.zeros(1)}, path, metadata={"state": "{}"})


def counters(state: str | None) -> Callable[[Path], object]:
    metadata = None if state is None else {"state": state}
    return lambda path: save_file({"model.x": torch.zeros(1)}, path, metadata=metadata)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "no counters": counters(None),
    "counters of another version": counters('{"epoch": 1, "colour": "red"}'),
    "counters that are no JSON": counters("{"),
    "other shapes": of_another_model,
    "an optimiser of other parameters": of_another_optimiser,
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_what_is_damaged_is_said_in_one_sentence(tmp_path: Path, how: str) -> None:
    path = tmp_path / "checkpoint.safetensors"
    model, optimiser = pair()
    step(model, optimiser)
    checkpoint.save(path, model, optimiser, State())
    DAMAGE[how](path)
    with pytest.raises(SeqscopeError) as fault:
        checkpoint.read_state(path)
        checkpoint.load(path, model, optimiser)
    said = str(fault.value)
    assert "checkpoint.safetensors is damaged" in said and "--restart" in said
    assert "\n" not in said and len(said) < 500


def test_what_may_not_be_read_is_not_called_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or `--restart-other` would throw it away. Of such a file safetensors says that it is missing, as it is here."""
    path = tmp_path / "checkpoint.safetensors"
    denied = PermissionError(13, "Permission denied", str(path))
    monkeypatch.setattr(Path, "open", lambda *_: (_ for _ in ()).throw(denied))
    for read in (checkpoint.read_state, lambda path: checkpoint.load(path, *pair()), load_tokenizer):
        with pytest.raises(PermissionError):
            read(path)


def test_a_disk_that_takes_no_more_is_an_error_of_the_system(tmp_path: Path) -> None:
    """And no SafetensorError, of which the command line knows nothing."""
    model, optimiser = pair()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match=r"File too large: .*checkpoint\.safetensors"):
            checkpoint.save(tmp_path / "checkpoint.safetensors", model, optimiser, State())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.iterdir())


def test_a_failed_save_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, optimiser = pair()
    checkpoint.save(tmp_path / "c", model, optimiser, State(epoch=1))

    def fail(tensors: object, path: Path, metadata: object) -> None:
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", fail)
    with pytest.raises(OSError, match="No space"):
        checkpoint.save(tmp_path / "c", model, optimiser, State(epoch=2))
    assert checkpoint.read_state(tmp_path / "c").epoch == 1
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
