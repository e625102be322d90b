"""Training speed beside the peers, in one run.

    python -m benchmarks.training_speed --pmixer DIR --rectools PYTHON [--dataset DIR] [--rounds 3]

--pmixer: a checkout of pmixer/SASRec.pytorch. --rectools: the Python of an environment with rectools[torch] (its pins differ
from ours). A peer that is not given is left out, and the output says so. The processor is named, and the precision and threads
that ours measured and took. Programs take turns, so that a machine whose speed drifts does so for all; figures are medians over
rounds, in sequences per second on the same log.

Of a step of ours the output says what share of its time the machine itself would take: for its matrix products at the rate of one
large product in the same precision and on as many threads, and for its bytes, each input of an operator read from memory once and
each output written once, at the rate of a copy; the fastest of five each, measured right after the steps. What stays in a cache
needs less, so the second can be above 100 %.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from engine.data.dataset import Dataset
from engine.training import compute as devices

OURS = """
import dataclasses, json, sys, time, torch
from pathlib import Path
from benchmarks import gpu_times
from engine.data.dataset import Dataset
from engine.machine import keep_memory
from engine.training import compute, recipe, run
keep_memory()  # as `seqscope train` does
dataset, steps = Dataset(sys.argv[1]), int(sys.argv[2])
found = recipe.load("sasrec", dataset.info.name, sys.argv[3], sys.argv[4:])
where = compute.choose("auto")
model = run.build_model(found, dataset.num_items, dataset.num_users)
trainer = run.build_trainer(found, dataset, model, Path("."), where)
trainer.choose_compute()
model.train()
plan = list(trainer.objective.batches(torch.Generator().manual_seed(1)))[:steps]
sync = torch.cuda.synchronize if where.type == "cuda" else lambda: None
for batch in plan[:3]:
    trainer._step(batch, len(plan))
sync()
began = time.perf_counter()
for batch in plan:
    trainer._step(batch, len(plan))
sync()
taken = time.perf_counter() - began
batch = plan[len(plan) // 2]  # of any length: batches come in random order
how, trainer.compute = trainer.compute, dataclasses.replace(trainer.compute, apart=False)  # what other threads do is not counted
work = gpu_times.work(lambda: trainer._step(batch, len(plan)))
trainer.compute = how
kind = torch.bfloat16 if trainer.compute.precision == "bfloat16" else torch.float32
large, block = torch.ones(2048, 2048, dtype=kind, device=where), torch.ones(1 << 26, device=where)
def fastest(program):
    seconds = []
    for _ in range(5):
        sync()
        began = time.perf_counter()
        program()
        sync()
        seconds.append(time.perf_counter() - began)
    return min(seconds)
step = fastest(lambda: trainer._step(batch, len(plan)))
products = work.flops / (2 * 2048**3 / fastest(lambda: large @ large))
moved = work.bytes / (8 * block.numel() / fastest(lambda: block.clone()))
print(json.dumps([sum(map(len, plan)) / taken, str(trainer.compute), products / step, moved / step]))
"""

RECTOOLS = """
import json, sys, time, warnings
warnings.filterwarnings("ignore")
import pandas as pd
from pytorch_lightning import Callback, Trainer
from rectools import Columns
from rectools.dataset import Dataset
from rectools.models import SASRecModel
frame = pd.read_csv(sys.argv[1])
frame[Columns.Weight] = 1
frame[Columns.Datetime] = pd.to_datetime(frame["datetime"], unit="s")
marks = []
class Marks(Callback):
    def on_train_epoch_start(self, *_): marks.append(time.perf_counter())
    def on_train_epoch_end(self, *_): marks.append(time.perf_counter())
def trainer():
    return Trainer(max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator="auto",
                   enable_model_summary=False, callbacks=[Marks()])
model = SASRecModel(n_factors=64, n_blocks=2, n_heads=1, dropout_rate=0.2, session_max_len=50, lr=1e-3, batch_size=128,
                    loss="softmax", get_trainer_func=trainer)
model.fit(Dataset.construct(frame))
print(json.dumps(frame[Columns.User].nunique() / (marks[3] - marks[2])))
"""


def ours(dataset: Path, recipe: str, steps: int, precision: str, *overrides: str) -> tuple[float, str]:
    """Sequences per second of our training loop, and how it computed, with the shares of the machine's limit."""
    words = [
        sys.executable,
        "-c",
        OURS,
        str(dataset),
        str(steps),
        recipe,
        f"training.precision={precision}",
        *overrides,
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    rate, compute, products, moved = json.loads(done.stdout.splitlines()[-1])
    return float(rate), f"{compute}; matrix products {products:.0%}, bytes {moved:.0%} of a step at the machine's limit"


def pmixer(checkout: Path, text: Path, steps: int) -> float:
    """Sequences per second of its main.py as it stands, read from the times at which it prints each step's loss."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "data").mkdir()
        (Path(folder) / "data" / "log.txt").symlink_to(text)
        words = [sys.executable, "-u", str(checkout / "python" / "main.py"), "--dataset", "log", "--train_dir", "bench"]
        words += ["--device", device(), "--num_epochs", "19"]
        process = subprocess.Popen(
            words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        assert process.stdout is not None and process.stderr is not None
        marks = []
        for line in process.stdout:
            if line.startswith("loss in epoch"):
                marks.append(time.perf_counter())
                if len(marks) > steps + 3:
                    break
        os.killpg(process.pid, 9)
        process.wait()
        if len(marks) < steps:
            sys.exit(f"pmixer stopped: {process.stderr.read()[-500:]}")
        return 128 * steps / (marks[3 + steps] - marks[3])


def rectools(python: str, frame: Path) -> float:
    done = subprocess.run([python, "-c", RECTOOLS, str(frame)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-1500:])
    return float(json.loads(done.stdout.splitlines()[-1]))


def device() -> str:
    return devices.choose("auto").type


def write_peers_log(dataset: Dataset, folder: Path) -> tuple[Path, Path]:
    """The training log as the peers read it: "user item" lines from 1 (pmixer holds out two items of its own, so it gets the
    whole log), and a frame for RecTools."""
    import pyarrow as pa
    import pyarrow.csv

    events, training = dataset.events, dataset.training
    users = np.repeat(np.arange(len(events)), events.lengths)
    text = folder / "log.txt"
    np.savetxt(text, np.stack([users + 1, events.values + 1], 1), fmt="%d")
    users = np.repeat(np.arange(len(training)), training.lengths)
    when = np.arange(len(users))
    frame = folder / "log.csv"
    pyarrow.csv.write_csv(pa.table({"user_id": users, "item_id": training.values, "datetime": when}), frame)
    return text, frame


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", type=Path, default=Path("data/ml-1m"))
    parser.add_argument("--pmixer", type=Path, default=os.environ.get("SEQSCOPE_PMIXER"))
    parser.add_argument("--rectools", default=os.environ.get("SEQSCOPE_RECTOOLS"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precision", default="auto", choices=("auto", "float32", "bfloat16"), help="ours alone")
    parser.add_argument("--steps", type=int, default=48, help="steps of 128 sequences per round (an epoch of ml-1m)")
    args = parser.parse_args()
    dataset = Dataset(args.dataset)
    variants = {
        "ours, BCE, n 200, d 50": [],
        "ours, cross-entropy, n 200, d 50": ["objective.loss=cross-entropy"],
        "ours, cross-entropy, n 50, d 64": ["objective.loss=cross-entropy", "model.max_length=50", "model.dim=64"],
    }
    found: dict[str, list[float]] = {}
    computes: dict[str, str] = {}

    def of_ours(label: str, *overrides: str) -> float:
        rate, computes[label] = ours(args.dataset, "ml-1m/sasrec", args.steps, args.precision, *overrides)
        return rate

    with tempfile.TemporaryDirectory() as name:
        text, frame = write_peers_log(dataset, Path(name))
        for _ in range(args.rounds):
            runs: dict[str, Callable[[], float]] = {
                label: partial(of_ours, label, *sets) for label, sets in variants.items()
            }
            if args.pmixer:
                runs["pmixer/SASRec.pytorch, BCE, n 200, d 50"] = lambda: pmixer(
                    Path(args.pmixer).resolve(), text, args.steps // 2
                )
            if args.rectools:
                runs["RecTools SASRec, cross-entropy, n 50, d 64"] = lambda: rectools(args.rectools, frame)
            for label, program in runs.items():
                found.setdefault(label, []).append(program())
    middle = {label: statistics.median(values) for label, values in found.items()}
    machine = devices.describe(devices.choose("auto"))
    print(f"training on {machine}, {dataset.info.name}: {len(dataset.training)} users; median of {args.rounds} rounds")
    for label, value in middle.items():
        spread = f"{min(found[label]):,.0f} to {max(found[label]):,.0f}"
        print(f"  {label:<46} {value:8,.0f} sequences/s ({spread})  {len(dataset.training) / value:6.2f} s an epoch")
    for label, compute in computes.items():
        print(f"  {label} {compute}")
    pairs = [
        ("ours, BCE, n 200, d 50", "pmixer/SASRec.pytorch, BCE, n 200, d 50", "at least 5.5"),
        ("ours, cross-entropy, n 50, d 64", "RecTools SASRec, cross-entropy, n 50, d 64", "at least 6"),
    ]
    for mine, peer, goal in pairs:
        if peer in middle:
            print(f"  ratio to {peer}: {middle[mine] / middle[peer]:.2f} ({goal})")
        else:
            print(f"  {peer}: not measured, the peer was not given")
    ratio = middle["ours, BCE, n 200, d 50"] / middle["ours, cross-entropy, n 200, d 50"]
    print(f"  time of full cross-entropy over BCE: {ratio:.2f} (at most 2)")


if __name__ == "__main__":
    main()
