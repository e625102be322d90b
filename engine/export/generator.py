"""A generator as graphs: one that reads the history, one that writes a token, and what the reading looked at.

The inputs and outputs are those that engine/runtime/decoder.py asks for. The check runs both graphs against PyTorch.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from torch import Tensor

from engine.bundle.manifest import Check, Index
from engine.bundle.manifest import Generator as Described
from engine.data.dataset import Cases
from engine.data.identifiers import TABLE
from engine.export import graphs, vectors
from engine.export.staging import Draft
from engine.generation import Generator, Memory
from engine.generation.search import Past
from engine.tokenizers import base
from engine.training.materials import VECTORS

MEMORY = ["memory_keys", "memory_values", "memory_mask"]
BEAMS = 4


def write_generator(model: Generator, draft: Draft) -> None:
    """The graphs, the identifiers and the vectors behind them."""
    folder, about = draft.folder, model.identifiers.about
    write_graphs(model, folder)
    draft.rows = copy_tables(draft.run, folder)
    draft.generator = describe(model, folder)
    draft.index = Index(kind="generated", geometry="none" if draft.rows is None else "euclidean")
    draft.dim = model.dim
    tokenizer = base.card_of(str(about.get("tokenizer")), str(about.get("family")))
    draft.order = 7 if tokenizer is None else tokenizer.order // 10
    if tokenizer is not None and not tokenizer.paper.startswith(model.card.paper):
        draft.paper = f"; its identifiers: {tokenizer.paper}"
    draft.checks.append(lambda: compare(folder, model, draft.cases, draft.recipe.training.seed))


def write_graphs(model: Generator, folder: Path) -> None:
    """encoder.onnx, decoder.onnx and attention.onnx."""

    def step(
        tokens: Tensor, step: Tensor, keys: Tensor, values: Tensor, mask: Tensor, past: Tensor, behind: Tensor
    ) -> tuple[Tensor, ...]:
        """Of `beams` prefixes of one person."""
        weights: list[Tensor] = []
        before = Past(past[None], behind[None])
        logits, now = model.decode(tokens[None], Memory(keys, values, mask), before, step, weights)
        attention = torch.stack(weights, 1)[0].permute(2, 0, 1, 3)  # [beams, layers, heads, memory]
        return logits[0, :, 0], now.keys[0], now.values[0], attention

    items = {"items": graphs.histories(model)}
    read = graphs.Function(model, lambda items: tuple(model.encode(items)))
    graphs.save(read, items, MEMORY, folder / "encoder.onnx")
    attention = graphs.Function(model, model.attention_between_codes)
    graphs.save(attention, items, ["attention"], folder / "attention.onnx")
    shape, steps = (model.layers, model.heads), 2  # of an example: a step that is none of 0 and 1 stays free
    memory = torch.zeros(1, *shape, 7, model.head_dim)
    past = torch.zeros(3, *shape, steps, model.head_dim)
    beams = {0: "beams", 3: "step"}
    graphs.save(
        graphs.Function(model, step),
        {
            "tokens": (torch.zeros(3, 1, dtype=torch.int64), {0: "beams"}),
            "step": (torch.tensor([steps]), {}),
            "memory_keys": (memory, {3: "memory"}),
            "memory_values": (memory.clone(), {3: "memory"}),  # one tensor twice would become one input
            "memory_mask": (torch.zeros(1, 7), {1: "memory"}),
            "past_keys": (past, beams),
            "past_values": (past.clone(), beams),
        },
        ["logits", "keys", "values", "cross_attention"],
        folder / "decoder.onnx",
    )


def copy_tables(run: Path, folder: Path) -> np.ndarray | None:
    """identifiers.parquet, and the vectors behind it where the run has them; returns what was quantised."""
    for name in (TABLE, *VECTORS):
        if (run / name).exists():
            shutil.copyfile(run / name, folder / name)
    latents = folder / VECTORS[0]
    return np.load(latents, allow_pickle=False) if latents.exists() else None


def describe(model: Generator, folder: Path) -> Described:
    """The manifest's part about how identifiers are written; `folder` holds the files of the bundle."""
    table, columns = model.identifiers, {}
    for name in VECTORS:
        if (folder / name).exists():
            columns[name.partition(".")[0]] = int(np.load(folder / name, mmap_mode="r", allow_pickle=False).shape[-1])
    return Described(
        kind=model.name,  # type: ignore[arg-type]
        levels=table.levels,
        sizes=list(table.sizes),
        names=list(table.names),
        shared=table.shared,
        ends=table.ends,
        vocabulary=table.vocabulary,
        layers=model.layers,
        heads=model.heads,
        head_dim=model.head_dim,
        beam=model.beam or 20,
        cross_attention=True,
        lead=model.stop,
        **columns,
    )


def compare(folder: Path, model: Generator, cases: Cases, seed: int) -> Check:
    """Both graphs against PyTorch on real histories, as engine.export.vectors.compare does for other models.

    The memory is compared as it is. The decoder is run token by token with its growing past along the identifiers of BEAMS items
    at once, the person's own target first, and its logits are compared with those of one teacher-forced pass in PyTorch.
    """
    sessions = {name: graphs.session(folder / f"{name}.onnx") for name in ("encoder", "decoder", "attention")}

    def answers(
        rows: vectors.Int64, items: vectors.Int64, rng: np.random.Generator
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        tensor = torch.from_numpy(items)
        expected = [part.numpy() for part in model.encode(tensor)]
        memory = sessions["encoder"].run(MEMORY, {"items": items})
        yield from zip(memory[:2], expected[:2], strict=True)
        yield np.not_equal(memory[2], expected[2]).astype(np.float32), np.zeros_like(memory[2])  # a mask, to the bit
        weights = sessions["attention"].run(["attention"], {"items": items})[0]
        yield weights, model.attention_between_codes(tensor).numpy()
        for row, case in enumerate(rows[:2]):
            targets = np.append(cases.held_out[case][:1], rng.integers(0, model.num_items, BEAMS - 1)).astype(np.int64)
            got = _written(sessions["decoder"], model, [part[row : row + 1] for part in memory], targets)
            yield got, model.after(tensor[row : row + 1], torch.from_numpy(targets)[None])[0].numpy()

    return vectors.checked(model, cases, seed, answers)


def _written(
    decoder: onnxruntime.InferenceSession, model: Generator, memory: list[np.ndarray], targets: np.ndarray
) -> np.ndarray:
    """Logits [targets, levels, vocabulary] of the decoder graph, one token at a time."""
    tokens = model.inputs(torch.from_numpy(targets)).numpy()
    past = np.zeros((len(targets), model.layers, model.heads, 0, model.head_dim), np.float32)
    keys = values = past
    answers = []
    for step in range(model.levels):
        given = {
            "tokens": tokens[:, step : step + 1],
            "step": np.array([step]),
            "past_keys": keys,
            "past_values": values,
        }
        logits, keys, values = decoder.run(["logits", "keys", "values"], given | dict(zip(MEMORY, memory, strict=True)))
        answers.append(logits)
    return np.stack(answers, 1)
