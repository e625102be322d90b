"""Next items of three models for one history: p50 and p95 by size of the catalogue.

    python -m benchmarks.serving_speed [--items 3416 100000 1000000] [--calls 200]

The models are SASRec (n 200, d 50), BERT4Rec (n 200, d 64) and AttRec (d 100) with random weights, exported as bundles; the
time is that of `Bundle.recommend_one(history, 10)` for all three, one after the other, on histories of 100 items.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.export import graphs
from engine.models import MODELS
from engine.runtime.bundle import Bundle, Catalogue
from engine.runtime.manifest import Capabilities, Check, Encoder, File, Index, Manifest, Training

SETTINGS: dict[str, dict[str, Any]] = {
    "sasrec": {"dim": 50, "max_length": 200},
    "bert4rec": {"dim": 64, "max_length": 200},
    "attrec": {"dim": 100},
}
GOALS = {3_416: 15, 100_000: 40, 1_000_000: 150}
"""Items → p95 in milliseconds on two cores."""


def build(folder: Path, family: str, items: int) -> Bundle:
    """A bundle of a model with random weights."""
    folder = folder / family
    folder.mkdir()
    config, kind = MODELS[family]
    model = kind(config(**SETTINGS[family]), items, 1, torch.Generator().manual_seed(0)).eval()  # type: ignore[call-arg]
    graphs.write_encoder(model, folder / "encoder.onnx")
    rows, bias = model.index()
    assert rows is not None
    table = torch.cat([rows, bias[:, None]], 1).detach().numpy()
    np.save(folder / "index.npy", table, allow_pickle=False)
    files = {
        path.name: File(sha256=hashlib.sha256(path.read_bytes()).hexdigest(), bytes=path.stat().st_size)
        for path in folder.iterdir()
    }
    manifest = Manifest(
        name=family, title=family, family=family, summary="", paper="", dataset="bench", fingerprint="0" * 64, num_items=items,
        encoder=Encoder(dim=rows.shape[1], max_length=model.max_length, min_history=1), attention=None,
        index=Index(kind="dense", geometry="cosine"),
        capabilities=Capabilities(attention=False, neighbours=True, map=False, unseen_items=False, trained_users=False),
        training=Training(
            recipe={}, command="", commit=None, device="", seconds=0.0, seed=0, epochs=0, best_epoch=0, parameters=0,
            versions={}, started="",
        ),
        metrics={}, projection=None, check=Check(histories=0, lengths=[], max_abs_difference=0.0), created="", created_by="",
        files=files,
    )  # fmt: skip
    (folder / "manifest.json").write_text(manifest.model_dump_json(), "utf-8")
    return Bundle.open(folder, Catalogue("bench", "0" * 64, items))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, nargs="+", default=list(GOALS))
    parser.add_argument("--calls", type=int, default=200)
    args = parser.parse_args()
    for items in args.items:
        with tempfile.TemporaryDirectory() as name:
            bundles = [build(Path(name), family, items) for family in SETTINGS]
            rng = np.random.default_rng(0)
            spent: list[float] = []
            for _ in range(args.calls + 10):
                history = rng.integers(0, items, 100).tolist()
                began = time.perf_counter()
                for bundle in bundles:
                    bundle.recommend_one(history, 10)
                spent.append((time.perf_counter() - began) * 1e3)
            p50, p95 = np.percentile(spent[10:], [50, 95])
            # the limit: reading the item rows once from memory
            index = sum(bundle.index.rows.nbytes if bundle.index.rows is not None else 0 for bundle in bundles)
            goal = f", at most {GOALS[items]} ms p95" if items in GOALS else ""
            figures = f"p50 {p50:6.1f} ms, p95 {p95:6.1f} ms for three models"
            print(f"{items:>9,} items: {figures} ({index / 1e6:,.0f} MB of item rows{goal})", flush=True)


if __name__ == "__main__":
    main()
