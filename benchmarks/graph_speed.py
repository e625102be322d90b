"""Seconds an epoch of LightGCN on Gowalla, beside gusye1234/LightGCN-PyTorch, in one run.

    python -m benchmarks.graph_speed --peer DIR [--batches 20] [--rounds 3] [--sizes 2048 16384 65536]
    python -m benchmarks.graph_speed --propagation       one propagation, in every way that was thought of (CPU time)

--peer: a checkout of gusye1234/LightGCN-PyTorch, whose own classes load the log, draw and train; without it ours is measured
alone, and the output says so. The log is the split of NGCF and LightGCN, gowalla/ in the folder of public logs (SEQSCOPE_DATA, or
../shared/data). Both have d = 64, K = 3 and Adam, and as many threads (OMP_NUM_THREADS). The peer's batches have 2,048 pairs, its
authors' number; ours have that and larger ones. Programs take turns, a few batches at a time; figures are medians over rounds,
times the batches of an epoch. Drawing an epoch's pairs is measured apart: the peer takes its C++ sampler where cppimport is
installed, else its Python one.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import csr_array

from engine.commands.doctor import find_public_data
from engine.models.graph import Graph, Propagation
from engine.training import compute as devices
from engine.training.distributed import World
from engine.training.loop import Trainer
from engine.training.materials import Material, Materials
from engine.training.objectives import OBJECTIVES
from engine.training.recipe import load
from engine.training.run import build_model

AUTHORS = 2048
"""Pairs in a batch of the peer's."""

PEER = """
import json, sys, time
folder, batches, drawn = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sys.argv = ["main.py", "--tensorboard", "0", "--dataset", "gowalla"]
sys.path.insert(0, ".")
import world, torch, dataloader, model, utils
utils.set_seed(world.seed)
data = dataloader.Loader(path=folder)
network = model.LightGCN(world.config, data).to(world.device)
loss = utils.BPRLoss(network, world.config)
network.train()
generator = torch.Generator().manual_seed(0)
size = world.config["bpr_batch_size"]
sampling = -1.0
if drawn:
    began = time.perf_counter()
    pairs = torch.Tensor(utils.UniformSample_original(data)).long().to(world.device)
    sampling = time.perf_counter() - began
else:  # any will do to measure a step
    users = torch.randint(data.n_users, (size * (batches + 2),), generator=generator)
    items = torch.randint(data.m_items, (size * (batches + 2), 2), generator=generator)
    pairs = torch.cat([users[:, None], items], 1).to(world.device)
def step(number):
    part = pairs[number * size : (number + 1) * size]
    loss.stageOne(part[:, 0], part[:, 1], part[:, 2])
for number in range(2):
    step(number)
began = time.perf_counter()
for number in range(2, 2 + batches):
    step(number)
if world.device.type == "cuda":
    torch.cuda.synchronize()
taken = (time.perf_counter() - began) / batches
print(json.dumps([taken * -(-data.trainDataSize // size), sampling, bool(utils.sample_ext)]))
"""


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The log of "user item item …" lines: items int64 [events], offsets int64 [users + 1]."""
    rows = {int(words[0]): list(map(int, words[1:])) for words in map(str.split, path.open()) if words}
    histories = [rows.get(user, []) for user in range(max(rows) + 1)]
    offsets = np.concatenate([[0], np.cumsum([len(history) for history in histories])])
    return np.concatenate([np.array(history, np.int64) for history in histories]), offsets


class Ours:
    """Our training loop at one batch size, ready to go on."""

    def __init__(self, items: np.ndarray, offsets: np.ndarray, num_items: int, size: int) -> None:
        recipe = load("lightgcn", "gowalla", None, [f"training.batch_size={size}"])
        graph = Graph.of(items, offsets, num_items)
        needs = Materials(graph=Material(graph, "", Path()))
        where = devices.choose("auto")
        model = build_model(recipe, num_items, len(offsets) - 1, needs).to(where)
        log = torch.from_numpy(items).to(where), torch.from_numpy(offsets).to(where)
        objective = OBJECTIVES["pairs"].make(recipe.objective, model, *log, size)
        self.trainer = Trainer(recipe, model, objective, None, Path("."), where, World())  # type: ignore[arg-type]
        model.train()

    def epoch(self, batches: int) -> float:
        """Seconds of a whole one, drawing included, from so many batches (fewer where an epoch has fewer)."""
        objective = self.trainer.objective
        plan = list(objective.batches(torch.Generator().manual_seed(1)))
        count = min(batches, max(1, len(plan) - 2))
        for number in range(2):
            self.trainer._step(plan[number], len(plan))
        self._wait()
        began = time.perf_counter()
        for number in range(count):
            self.trainer._step(plan[(2 + number) % len(plan)], len(plan))
        self._wait()
        return (time.perf_counter() - began) / count * len(plan)

    def _wait(self) -> None:
        if self.trainer.device.type == "cuda":
            torch.cuda.synchronize(self.trainer.device)


def peer(checkout: Path, folder: Path, batches: int, drawn: bool) -> tuple[float, float, bool]:
    """Seconds of an epoch's batches; of drawing its pairs, where `drawn`; whether that was its C++ sampler."""
    words = [sys.executable, "-W", "ignore", "-c", PEER, str(folder), str(batches), str(int(drawn))]
    done = subprocess.run(words, cwd=checkout / "code", capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the peer stopped: {done.stderr[-1500:]}")
    epoch, sampling, compiled = json.loads(done.stdout.splitlines()[-1])
    return float(epoch), float(sampling), bool(compiled)


def propagations(graph: Graph, dim: int = 64, rounds: int = 5) -> dict[str, float]:
    """Way → milliseconds of CPU time (the least of `rounds`, taking turns) for both directions of one propagation."""
    by_user, by_item = Propagation(graph).blocks()
    parts = (by_user, torch.randn(graph.num_items, dim)), (by_item, torch.randn(graph.num_users, dim))
    coo = [matrix.csr().to_sparse_coo().coalesce() for matrix, _ in parts]
    dense = [
        csr_array(
            (matrix.weights.numpy(), matrix.columns.numpy(), matrix.offsets.numpy()), (len(matrix.offsets) - 1, len(x))
        )
        for matrix, x in parts
    ]
    edges = [
        (torch.repeat_interleave(matrix.offsets.diff()), matrix.columns.long(), matrix.weights[:, None], matrix.offsets)
        for matrix, _ in parts
    ]
    ways: dict[str, Callable[[int, torch.Tensor], object]] = {
        "embedding_bag": lambda side, x: parts[side][0].times(x),
        "CSR product": lambda side, x: parts[side][0].csr() @ x,
        "scipy": lambda side, x: dense[side] @ x.numpy(),
        "COO product (LightGCN-PyTorch)": lambda side, x: torch.sparse.mm(coo[side], x),
        "index_add": lambda side, x: torch.zeros(len(edges[side][3]) - 1, dim).index_add_(
            0, edges[side][0], x[edges[side][1]] * edges[side][2]
        ),
        "segment_reduce": lambda side, x: torch.segment_reduce(
            x[edges[side][1]] * edges[side][2], "sum", offsets=edges[side][3].long(), axis=0
        ),
    }
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for way, times in ways.items():
            began = time.process_time()
            for side, (_, x) in enumerate(parts):
                times(side, x)
            least[way] = min(least[way], 1e3 * (time.process_time() - began))
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, default=os.environ.get("SEQSCOPE_LIGHTGCN"))
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[AUTHORS, 16_384, 65_536])
    parser.add_argument("--propagation", action="store_true")
    args = parser.parse_args()
    public = find_public_data(Path(__file__).resolve().parents[1])
    if public is None or not (public / "gowalla" / "train.txt").is_file():
        sys.exit("Gowalla not found: set SEQSCOPE_DATA to the folder that has gowalla/")
    items, offsets = read(public / "gowalla" / "train.txt")
    held_out, _ = read(public / "gowalla" / "test.txt")
    num_items = int(max(items.max(), held_out.max())) + 1
    if args.propagation:
        print(
            f"one propagation of Gowalla's {len(items):,} edges, both ways, 64 floats a node; {torch.get_num_threads()} threads"
        )
        for way, taken in propagations(Graph.of(items, offsets, num_items)).items():
            print(f"  {way:<32} {taken:7.1f} ms of CPU time")
        return
    found: dict[str, list[float]] = {}
    sampling, compiled = -1.0, False
    with tempfile.TemporaryDirectory() as name:
        for file in ("train.txt", "test.txt"):  # the peer writes its matrix beside them
            shutil.copyfile(public / "gowalla" / file, Path(name) / file)
        ours = {size: Ours(items, offsets, num_items, size) for size in args.sizes}
        for turn in range(args.rounds):
            for size in args.sizes:
                found.setdefault(f"ours, batches of {size:,}", []).append(ours[size].epoch(args.batches))
            if args.peer:
                epoch, drawing, compiled = peer(Path(args.peer).resolve(), Path(name), args.batches, drawn=not turn)
                found.setdefault(f"LightGCN-PyTorch, batches of {AUTHORS:,}", []).append(epoch)
                sampling = drawing if not turn else sampling
    threads = torch.get_num_threads()
    print(f"LightGCN on {devices.describe(devices.choose('auto'), threads)}, Gowalla: {len(items):,} pairs")
    print(f"d = 64, K = 3; seconds an epoch, median of {args.rounds} rounds of {args.batches} batches")
    middle = {label: statistics.median(values) for label, values in found.items()}
    for label, value in middle.items():
        print(f"  {label:<40} {value:8.1f} s ({min(found[label]):.1f} to {max(found[label]):.1f})")
    theirs = middle.get(f"LightGCN-PyTorch, batches of {AUTHORS:,}")
    if theirs is None:
        print("  LightGCN-PyTorch: not measured, the peer was not given")
        return
    kind = "C++" if compiled else "Python"
    print(
        f"  LightGCN-PyTorch draws an epoch's pairs in {sampling:.1f} s more ({kind} sampler); ours draws within its batches"
    )
    for size in args.sizes:
        print(f"  ratio at batches of {size:,}: {theirs / middle[f'ours, batches of {size:,}']:.2f} (at least 2)")


if __name__ == "__main__":
    main()
