"""Next items for one history: p50 and p95, by size of the catalogue, and of a model that writes identifiers.

    python -m benchmarks.serving_speed [--items 3416 100000 1000000] [--written 12000] [--calls 200]

The models are SASRec (n 200, d 50), BERT4Rec (n 200, d 64) and AttRec (d 100) with random weights, exported as bundles; the
time is that of `Bundle.recommend_one(history, 10)` for all three, one after the other, on histories of 100 items.

The generator is TIGER's (T5 of 4 + 4 layers, 6 heads of 64, d 128, feed-forward 1024) with random weights, four codes of 256 per
item, histories of 20 items, beam 20. Codes are drawn evenly, or by Zipf's law, which leaves the network a choice at more steps:
identifiers share longer beginnings, some even all of their codes. An empty list leaves a part out.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.bundle.manifest import Capabilities, Check, Encoder, Generator, Index, Manifest, Training
from engine.data.identifiers import ABOUT, Identifiers
from engine.export import generator, graphs
from engine.export.staging import files_of
from engine.generation.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from engine.registry import MODELS
from engine.runtime.bundle import Bundle, Catalogue

SETTINGS: dict[str, dict[str, Any]] = {
    "sasrec": {"dim": 50, "max_length": 200},
    "bert4rec": {"dim": 64, "max_length": 200},
    "attrec": {"dim": 100},
}
GOALS = {3_416: 15, 100_000: 40, 1_000_000: 150}
"""Items → p95 in milliseconds on two cores."""
WRITING = 150
"""The same for one beam search."""
LEVELS, CODES, HISTORY = 4, 256, 20


def build(folder: Path, family: str, items: int) -> Bundle:
    """A bundle of a model with random weights."""
    folder = folder / family
    folder.mkdir()
    kind = MODELS[family]
    config = kind.Config
    model = kind(config(**SETTINGS[family]), items, 1, torch.Generator().manual_seed(0)).eval()  # type: ignore[call-arg]
    graphs.write_encoder(model, folder / "encoder.onnx")
    rows, bias = model.index()
    assert rows is not None
    table = torch.cat([rows, bias[:, None]], 1).detach().numpy()
    np.save(folder / "index.npy", table, allow_pickle=False)
    return seal(folder, items, Encoder(dim=rows.shape[1], max_length=model.max_length, min_history=1), None)


def build_generator(folder: Path, items: int, zipf: float) -> Bundle:
    """The same of a generator. zipf: how uneven codes are; 0 draws all alike."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, CODES + 1) ** zipf
    codes = rng.choice(CODES, (items, LEVELS), p=share / share.sum()).astype(np.int32)
    identifiers = Identifiers(codes, (CODES,) * LEVELS)
    config = EncoderDecoderConfig(max_length=HISTORY)
    model = EncoderDecoder(config, items, 1, torch.Generator().manual_seed(0), identifiers=identifiers).eval()
    generator.write_graphs(model, folder)
    identifiers.write(folder)
    (folder / ABOUT).unlink()
    return seal(
        folder, items, Encoder(dim=config.dim, max_length=HISTORY, min_history=1), generator.describe(model, folder)
    )


def seal(folder: Path, items: int, encoder: Encoder, written: Generator | None) -> Bundle:
    """Write the manifest of what lies in the folder, and open it."""
    family = folder.name
    manifest = Manifest(
        schema_version=1 if written is None else 2,
        name=family, title=family, family=family, summary="", paper="", dataset="bench", fingerprint="0" * 64, num_items=items,
        encoder=encoder, attention=None, generator=written,
        index=Index(kind="dense", geometry="cosine") if written is None else Index(kind="generated", geometry="none"),
        capabilities=Capabilities(
            attention=False, neighbours=written is None, map=False, unseen_items=False, trained_users=False
        ),
        training=Training(
            recipe={}, command="", commit=None, device="", seconds=0.0, seed=0, epochs=0, best_epoch=0, parameters=0,
            versions={}, started="",
        ),
        metrics={}, projection=None, check=Check(histories=0, lengths=[], max_abs_difference=0.0), created="", created_by="",
        files=files_of(folder),
    )  # fmt: skip
    (folder / "manifest.json").write_text(manifest.model_dump_json(), "utf-8")
    return Bundle.open(folder, Catalogue("bench", "0" * 64, items))


def measure(bundles: list[Bundle], items: int, length: int, calls: int) -> tuple[float, float]:
    """p50 and p95, in milliseconds, of asking all bundles once."""
    rng = np.random.default_rng(0)
    spent: list[float] = []
    for _ in range(calls + 10):
        history = rng.integers(0, items, length).tolist()
        began = time.perf_counter()
        for bundle in bundles:
            bundle.recommend_one(history, 10)
        spent.append((time.perf_counter() - began) * 1e3)
    p50, p95 = np.percentile(spent[10:], [50, 95])
    return float(p50), float(p95)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, nargs="*", default=list(GOALS))
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--written", type=int, nargs="*", default=[12_000], help="items of a generator's catalogue")
    args = parser.parse_args()
    for items in args.items:
        with tempfile.TemporaryDirectory() as name:
            bundles = [build(Path(name), family, items) for family in SETTINGS]
            p50, p95 = measure(bundles, items, 100, args.calls)
            # the limit: reading the item rows once from memory
            index = sum(bundle.index.rows.nbytes if bundle.index.rows is not None else 0 for bundle in bundles)
            goal = f", at most {GOALS[items]} ms p95" if items in GOALS else ""
            figures = f"p50 {p50:6.1f} ms, p95 {p95:6.1f} ms for three models"
            print(f"{items:>9,} items: {figures} ({index / 1e6:,.0f} MB of item rows{goal})", flush=True)
    for items in args.written:
        for word, zipf in (("even", 0.0), ("uneven", 1.0)):
            with tempfile.TemporaryDirectory() as name:
                bundle = build_generator(Path(name) / "generator", items, zipf)
                p50, p95 = measure([bundle], items, HISTORY, args.calls)
                began = time.perf_counter()
                bundle.scores(list(range(HISTORY)))
                walked = time.perf_counter() - began
            figures = f"p50 {p50:6.1f} ms, p95 {p95:6.1f} ms for a beam of 20 (at most {WRITING} ms p95)"
            print(f"{items:>9,} items, {word:>6} codes: {figures}; exact scores of all {walked:.1f} s", flush=True)


if __name__ == "__main__":
    main()
