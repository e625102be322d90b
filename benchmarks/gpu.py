"""All that is to be measured on a GPU, in slices that may be interrupted: what a result file has is not done again.

    python -m benchmarks.gpu                                     what was measured, and what is left
    python -m benchmarks.gpu parity epochs onnx tiger letter-tiger [--minutes 8] [--pmixer DIR] [--rectools PYTHON]
    python -m benchmarks.gpu parity epochs onnx tiger --small    the same with next to nothing to do, to see that it runs

parity: scores and gradients of every model that learns, on the CPU and on the GPU, both in float32.
work:   products and bytes of a step at the papers' sizes, as `benchmarks.gpu_times` counts them: minutes on a CPU, no GPU's.
epochs: seconds an epoch at the papers' sizes, the share of the roofline that a step reaches (what the device can do is measured
        in the same run; without `work` there is no share), and the peers beside SASRec.
onnx:   milliseconds a list of every exported bundle of the films, by ONNX Runtime.
tiger, letter-tiger: `seqscope train` on beauty at the paper's size to its end, evaluated and recorded (goal: HR@10 .0634, NDCG@10
        .0338 in 15 minutes of an H200). Needs runs/beauty/rqvae or runs/beauty/letter (`seqscope tokenize`).
lightgcn-gpu, ngcf-gpu: the same on gowalla in smaller batches than a CPU can afford (goal: Recall@20 and NDCG@20 of the papers,
        .1830/.1554 and .1569/.1327).

Without a GPU everything runs on the CPU, and the result files say so. Datasets: data/NAME (benchmarks/README.md).
"""

import argparse
import dataclasses
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks import gpu_times, training_speed
from benchmarks.zoo_speed import Training
from engine.cards import declarations
from engine.data.dataset import Dataset
from engine.errors import SeqscopeError
from engine.files import write_json
from engine.runtime import Zoo
from engine.tokenizers.recipe import load as load_tokenizer
from engine.tokenizers.run import tokenize
from engine.training import compute
from engine.training.materials import gather
from engine.training.recipe import Recipe, load
from engine.training.run import build_model, build_trainer, commit

RESULTS = Path(__file__).parent / "results"
TOLERANCE = 1e-3
"""Of parity: largest difference, as a share of the largest value."""
EPOCHS = (
    ("ml-1m", "ml-1m/sasrec"),
    ("ml-1m", "ml-1m/bert4rec"),
    ("beauty", "beauty/tiger"),
    ("beauty", "beauty/letter-tiger"),
    ("beauty", "default/recformer-pretrained"),
    ("gowalla", "gowalla/lightgcn"),
    ("gowalla", "gowalla/ngcf"),
)
"""Dataset and recipe."""
SETTINGS = {
    "default/recformer-pretrained": ["model.start="],  # no pretrained model is needed, and a step takes as long
    "gowalla/lightgcn": ["training.batch_size=2048"],
    "gowalla/ngcf": ["training.batch_size=1024"],
}
"""Of recipes that are not in the paper's size."""
SECONDS = 3.0
"""Of steps that are measured."""


class Slice:
    """A result file: entries by name, each measured once on this device and commit."""

    def __init__(self, name: str, folder: Path, device: torch.device, deadline: float) -> None:
        self.path, self.deadline = folder / f"gpu-{name}.json", deadline
        self.about = {"device": compute.describe(device), "commit": commit(), "torch": torch.__version__}
        self.content = json.loads(self.path.read_text("utf-8")) if self.path.exists() else {}
        if {name: self.content.get(name) for name in self.about} != self.about:
            self.content = {**self.about, "entries": {}}

    def measure(self, name: str, what: Callable[[], dict[str, Any]]) -> None:
        """An entry that is not there yet, unless the time is over; why it cannot be had is an entry, too."""
        entries = self.content["entries"]
        if name in entries:
            return
        if time.monotonic() > self.deadline:
            sys.exit(f"{self.path.stem}: the time is over before {name}; the same command goes on from there")
        try:
            entries[name] = what()
        except (SeqscopeError, OSError) as error:
            entries[name] = {"cannot": str(error)}
        print(f"{self.path.stem} {name}: {entries[name]}", flush=True)
        write_json(self.path, self.content)


def _read(path: Path) -> dict[str, Any]:
    """The entries of a result file; none where there is none."""
    return dict(json.loads(path.read_text("utf-8"))["entries"]) if path.exists() else {}


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


# --- parity


def learning() -> dict[str, str]:
    """Model that learns → the first recipe of its card; those without one start from a pretrained model."""
    models = declarations().models.items()
    return {name: model.card.variants[0].name for name, model in models if model.learns and model.card.variants}


def parity(result: Slice, device: torch.device, small: bool) -> None:
    dataset = Dataset(Path("data/sample" if small else "data/films"))
    torch.backends.cudnn.allow_tf32 = False
    with tempfile.TemporaryDirectory(prefix="seqscope-gpu-") as work:
        tokenize(load_tokenizer("random", dataset.info.name, None, []), dataset, Path(work) / "random")
        for name, recipe in learning().items():
            result.measure(name, lambda recipe=recipe: compare(recipe, dataset, Path(work), device))  # type: ignore[misc]


def compare(name: str, dataset: Dataset, work: Path, device: torch.device) -> dict[str, Any]:
    """How far scores and gradients of a model with its default recipe are from those of the CPU, as shares of the largest."""
    settings = ["training.precision=float32", "training.batch_size=32"]
    recipe = load(name, "default", None, settings)
    # no other run is needed
    instead = {"model": {"identifiers": "random", "start": ""}, "objective": {"stage": "fine-tune"}}
    for part, values in instead.items():
        fields = {field.name for field in dataclasses.fields(getattr(recipe, part))}
        settings += [f'{part}.{field}="{value}"' for field, value in values.items() if field in fields]
    recipe = load(name, "default", None, settings)
    (scores, gradient), (same_scores, same_gradient) = (
        of_one_step(recipe, dataset, work, where) for where in (torch.device("cpu"), device)
    )
    shares = [float((there - here).abs().max() / here.abs().max().clamp(min=1e-12)) for here, there in (
        (scores, same_scores), (gradient, same_gradient),
    )]  # fmt: skip
    compared = bool(scores.any()) and bool(gradient.any())
    return {"scores": shares[0], "gradient": shares[1], "passed": compared and max(shares) <= TOLERANCE}


def of_one_step(recipe: Recipe, dataset: Dataset, work: Path, where: torch.device) -> tuple[Tensor, Tensor]:
    """Scores of 64 items for 16 people, and the gradient of a batch without dropout, both on the CPU again."""
    model = build_model(recipe, dataset.num_items, dataset.num_users, gather(recipe, dataset, work / recipe.name))
    trainer = build_trainer(recipe, dataset, model, work, torch.device("cpu"))
    trainer.objective.begin_epoch(model)
    plan = next(iter(trainer.objective.batches(torch.Generator().manual_seed(0))))
    batch = trainer.objective.draw(plan, torch.Generator().manual_seed(0))  # on the CPU, so that both have the same
    histories = dataset.cases("test").take(np.arange(16)).history
    trainer = build_trainer(recipe, dataset, model, work, where)
    model.eval()
    for module in model.modules():
        if isinstance(module, torch.nn.RNNBase):  # cuDNN's have a gradient in training alone
            module.train()
            module.dropout = 0.0
    trainer.objective.loss(model, tuple(tensor.to(where) for tensor in batch)).backward()
    gradient = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).cpu()
    model.train().eval()  # graph models compute their layers anew
    items = torch.from_numpy(histories.padded(min(model.max_length, 50), model.pad).astype(np.int64)).to(where)
    targets = torch.arange(64, device=where).expand(len(items), 64)
    with torch.no_grad():
        return model.candidates(items, targets).float().cpu(), gradient


# --- seconds an epoch, and the roofline


def epochs(
    result: Slice, device: torch.device, small: bool, pmixer: Path | None, rectools: str | None, rounds: int
) -> None:
    result.measure("what the device can do", lambda: limits(device, small))
    for name, recipe in (("sample", "default/sasrec"), ("sample", "default/lightgcn")) if small else EPOCHS:
        result.measure(recipe, lambda name=name, recipe=recipe: epoch(name, recipe, device, result, small))  # type: ignore[misc]
    if pmixer or rectools:
        result.measure("peers of ml-1m/sasrec", lambda: peers(pmixer, rectools, rounds))


def limits(device: torch.device, small: bool) -> dict[str, Any]:
    """FLOP/s of products by precision, and bytes/s of a copy: the best of ten."""
    n, count = (8192, 1 << 28) if device.type == "cuda" and not small else (512, 1 << 26)
    block, other = (torch.empty(count, device=device) for _ in range(2))
    copy = min(timed(lambda: other.copy_(block), device) for _ in range(10))
    flops = {}
    for precision in ("float32", "bfloat16"):
        left = torch.randn(n, n, device=device).to(getattr(torch, precision))
        flops[precision] = 2 * n**3 / min(timed(lambda left=left: left @ left, device) for _ in range(10))  # type: ignore[misc]
    return {"flops": flops, "bytes": 2 * 4 * count / copy}


def timed(what: Callable[[], object], device: torch.device) -> float:
    synchronise(device)
    began = time.perf_counter()
    what()
    synchronise(device)
    return time.perf_counter() - began


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def epoch(name: str, recipe_name: str, device: torch.device, result: Slice, small: bool) -> dict[str, Any]:
    dataset, runs = Dataset(Path("data") / name), Path("runs") / name
    family = recipe_name.partition("/")[2]
    settings = ["training.batch_size=64", "model.dim=16"] if small else SETTINGS.get(recipe_name, [])
    recipe = load(family, name, recipe_name, settings)
    training = Training(recipe, dataset, device, runs)
    step = training.run(SECONDS, steps=3 if small else None)[1]
    how = training.trainer.compute
    figures: dict[str, Any] = {"seconds": step * len(training.plan), "steps": len(training.plan), "compute": str(how)}
    asked_for = _read(result.path.with_name("gpu-work.json")).get(recipe_name, {})
    if "flops" in asked_for:
        able = result.content["entries"]["what the device can do"]
        least = max(asked_for["flops"] / able["flops"][how.precision], asked_for["bytes"] / able["bytes"])
        figures |= {**asked_for, "share of the roofline": least / step}
    return figures


def work(result: Slice) -> None:
    for name, recipe in EPOCHS:
        result.measure(recipe, lambda name=name, recipe=recipe: work_of_step(name, recipe))  # type: ignore[misc]


def work_of_step(name: str, recipe: str) -> dict[str, Any]:
    step = gpu_times.count(recipe, SETTINGS.get(recipe, []), Dataset(Path("data") / name), Path("runs") / name)[2]
    return step._asdict()


def peers(pmixer: Path | None, rectools: str | None, rounds: int) -> dict[str, Any]:
    """Sequences a second on ml-1m, taking turns, medians of so many rounds."""
    dataset = Dataset(Path("data/ml-1m"))
    rates: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        text, frame = training_speed.write_peers_log(dataset, Path(folder))
        for _ in range(rounds):
            for label, rate in turns(dataset, text, frame, pmixer, rectools):
                rates.setdefault(label, []).append(rate)
    return {"rounds": rounds, **{label: statistics.median(of_rounds) for label, of_rounds in rates.items()}}


def turns(
    dataset: Dataset, text: Path, frame: Path, pmixer: Path | None, rectools: str | None
) -> Iterator[tuple[str, float]]:
    like_rectools = ("objective.loss=cross-entropy", "model.max_length=50", "model.dim=64")
    yield "ours, BCE, n 200, d 50", training_speed.ours(dataset.path, "ml-1m/sasrec", 200, "auto")[0]
    yield (
        "ours, cross-entropy, n 50, d 64",
        training_speed.ours(dataset.path, "ml-1m/sasrec", 200, "auto", *like_rectools)[0],
    )
    if pmixer:
        yield "pmixer, BCE, n 200, d 50", training_speed.pmixer(pmixer.resolve(), text, 100)
    if rectools:
        yield "RecTools, cross-entropy, n 50, d 64", training_speed.rectools(rectools, frame)


# --- lists by ONNX Runtime


def onnx(result: Slice, small: bool) -> None:
    zoo = Zoo.open(Path("exports") / ("sample" if small else "films"))
    histories = [(list(range(at, at + 20))) for at in range(3 if small else 50)]

    def lists(name: str) -> dict[str, Any]:
        bundle = zoo.bundles[name]
        bundle.recommend_one(histories[0], 10)
        taken = []
        for history in histories:
            began = time.perf_counter()
            bundle.recommend_one(history, 10)
            taken.append(1e3 * (time.perf_counter() - began))
        return {"median ms": statistics.median(taken), "provider": bundle.provider}

    for name in zoo.bundles:
        result.measure(name, lambda name=name: lists(name))  # type: ignore[misc]


# --- trainings to their end


class GpuTraining(NamedTuple):
    dataset: str
    family: str
    settings: tuple[str, ...] = ()
    """Where they differ from the recipe's, which is for a CPU."""


PAIRS = ("training.batch_size=4096", "training.epochs=400", "optimiser.average=0.999")
"""Of models over a graph: as many steps as minutes of a GPU allow; the rate falls to 0 over them, as in their recipes."""
TRAININGS = {
    "tiger": GpuTraining("beauty", "tiger"),
    "letter-tiger": GpuTraining("beauty", "letter-tiger"),
    "lightgcn-gpu": GpuTraining("gowalla", "lightgcn", (*PAIRS, "optimiser.lr=0.004")),
    "ngcf-gpu": GpuTraining("gowalla", "ngcf", (*PAIRS, "optimiser.lr=0.0006")),
}
"""Under what they are recorded. Each takes minutes of an H200."""


def to_the_end(result: Slice, name: str, small: bool) -> None:
    """Trains until it is done or the time is over; an interrupted training goes on where it was. Its result file is that of any
    other training (benchmarks/quality.py)."""
    dataset, family, settings = TRAININGS[name]
    if small:
        dataset, settings = "sample", ("training.epochs=1",)
    folder, recipe = Path("runs") / dataset / name, f"{dataset}/{family}"
    if small and not (Path("engine/recipes") / f"{recipe}.toml").exists():
        recipe = f"default/{family}"
    words = ["train", family, "--dataset", f"data/{dataset}", "--recipe", recipe, "--out", str(folder)]
    words += [word for setting in settings for word in ("--set", setting)]
    if not (folder / "run.json").exists():
        process = subprocess.Popen([sys.executable, "-m", "engine", *words])
        try:
            process.wait(max(1.0, result.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.wait()
            sys.exit(f"{recipe}: the time is over; the same command goes on from its checkpoint")
        if process.returncode:
            sys.exit(process.returncode)
    subprocess.run([sys.executable, "-m", "engine", "evaluate", str(folder)], check=True)
    if not small:
        recorded = ["benchmarks.quality", "record", "--as-it-is", "--called", name, str(folder)]
        subprocess.run([sys.executable, "-m", *recorded], check=True)


SLICES = ("work", "parity", "epochs", "onnx", *TRAININGS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slices", nargs="*", choices=(*SLICES, []), metavar="SLICE", help=", ".join(SLICES))
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--minutes", type=float, default=8.0, help="no entry is begun after so long")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the result files are")
    parser.add_argument("--pmixer", type=Path, help="a checkout of pmixer/SASRec.pytorch")
    parser.add_argument("--rectools", help="the Python of an environment with rectools[torch]")
    parser.add_argument("--rounds", type=int, default=3, help="of ours and the peers, taking turns")
    parser.add_argument("--small", action="store_true", help="next to nothing to do")
    args = parser.parse_args()
    if not args.slices:
        for name in SLICES:
            entries = _read(args.results / f"gpu-{name}.json")
            if name in TRAININGS and (path := args.results / f"{TRAININGS[name].dataset}-{name}.json").exists():
                print(f"{name:<13} done: {path.name}")
                continue
            print(f"{name:<13} {len(entries)} entries" if entries else f"{name:<13} not run")
            for entry, figures in entries.items():
                print(f"    {entry}: {' · '.join(f'{what} {_short(value)}' for what, value in figures.items())}")
        return
    device = compute.choose(args.device)
    args.results.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + 60 * args.minutes
    for name in args.slices:
        result = Slice(name, args.results, device, deadline)
        if name == "work":
            work(result)
        elif name == "parity":
            parity(result, device, args.small)
        elif name == "epochs":
            epochs(result, device, args.small, args.pmixer, args.rectools, args.rounds)
        elif name == "onnx":
            onnx(result, args.small)
        else:
            to_the_end(result, name, args.small)


if __name__ == "__main__":
    main()
