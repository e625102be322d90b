"""The part of a bundle that most models have: encoder.onnx, attention.onnx where they attend, and index.npy.

It is run before anybody sees it: its answers must be PyTorch's.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import torch

from engine.bundle.manifest import Check, Index
from engine.data.dataset import Cases
from engine.data.ragged import Ragged
from engine.errors import SeqscopeError
from engine.export import graphs
from engine.export.draft import Draft
from engine.models import Recommender

TOLERANCE = 1e-4
PER_LENGTH = 8


def write(model: Recommender, draft: Draft) -> None:
    """The files above; attention.onnx stays where another part wrote it."""
    folder = draft.folder
    graphs.write_encoder(model, folder / "encoder.onnx")
    if model.attention is not None and not (folder / "attention.onnx").exists():
        graphs.write_attention(model, folder / "attention.onnx")
    index, card = model.index(), model.card
    table = index.bias.detach().numpy().astype(np.float32)[:, None]
    if index.rows is not None:
        draft.rows = index.rows.detach().numpy().astype(np.float32)
        table = np.concatenate([draft.rows, table], axis=1)
    np.save(folder / "index.npy", table, allow_pickle=False)
    kind = "identity" if draft.rows is None else "dense"
    draft.index = Index(kind=kind, geometry=card.geometry, centred=card.centred or None)  # type: ignore[arg-type]
    draft.dim = draft.data.num_items if draft.rows is None else draft.rows.shape[1]

    def check() -> None:
        histories, used, worst = compare(folder, model, draft.cases, draft.recipe.training.seed)
        draft.check = Check(histories=histories, lengths=used, max_abs_difference=worst)

    draft.checks.append(check)


def made_up(items: int, seed: int) -> Cases:
    """Histories drawn at random, where there are no people: 64 of 1 to 20 items."""
    rng = np.random.default_rng(seed)
    history = Ragged.of([rng.integers(0, items, length).tolist() for length in rng.integers(1, 21, 64)])
    return Cases.of(np.arange(64, dtype=np.int32), history, rng.integers(0, items, 64).astype(np.int32))


def lengths(max_length: int) -> list[int]:
    """1, 2, n − 1, n and more than the n items that the encoder reads."""
    return sorted({length for length in (1, 2, max_length - 1, max_length, max_length + 3) if length > 0})


@torch.no_grad()
def compare(folder: Path, model: Recommender, cases: Cases, seed: int) -> tuple[int, list[int], float]:
    """Scores of encoder.onnx and index.npy (and the weights of attention.onnx) against the model's own.

    Histories are those of real people, repeated end to end where nobody's is long enough. Returns how many were compared,
    their lengths, and the largest difference relative to the largest score (absolute where that is below 1). Raises
    SeqscopeError where it exceeds TOLERANCE.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    sessions = {
        name: onnxruntime.InferenceSession(str(folder / f"{name}.onnx"), options, providers=["CPUExecutionProvider"])
        for name in ("encoder", "attention")
        if (folder / f"{name}.onnx").exists()
    }
    index = np.load(folder / "index.npy", allow_pickle=False)
    rng = np.random.default_rng(seed)
    worst, count, used = 0.0, 0, lengths(model.max_length)
    for length in used:
        rows = rng.integers(0, len(cases), PER_LENGTH)
        histories = [np.resize(cases.history[row], length)[-model.max_length :] for row in rows]
        items = np.stack(histories).astype(np.int64)
        if length > 2:
            items[0, : length // 2] = model.pad  # a shorter history in the same batch
        expected = model.scores(torch.from_numpy(items)).numpy()
        query = sessions["encoder"].run(["query"], {"items": items})[0]
        got = (
            query + index[:, 0]
            if index.shape[1] == 1 and query.shape[1] == len(index)
            else query @ index[:, :-1].T + index[:, -1]
        )
        worst = max(worst, difference(got, expected))
        if "attention" in sessions:
            weights = sessions["attention"].run(["attention"], {"items": items})[0]
            worst = max(worst, difference(weights, model.query_with_attention(torch.from_numpy(items))[1].numpy()))
        count += len(items)
    if not worst <= TOLERANCE:
        raise SeqscopeError(
            f"{model.name}: the exported graph differs from PyTorch by {worst:.2g} (at most {TOLERANCE:g}); not exported"
        )
    return count, used, worst


def difference(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the largest expected value where that exceeds 1."""
    if got.shape != expected.shape:
        raise SeqscopeError(
            f"the exported graph answers {got.shape} where PyTorch answers {expected.shape}; not exported"
        )
    difference = float(np.abs(got - expected).max() / max(1.0, np.abs(expected).max()))
    return difference if np.isfinite(difference) else float("inf")  # max() would pass over what is not a number
