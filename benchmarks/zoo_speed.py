"""How fast every model trains, and how long it takes to its best epoch; beside the authors' own code where that runs here.

    python -m benchmarks.zoo_speed [--dataset data/ml-1m] [--models sasrec gru4rec-plus …] [--python PYTHON] [--gru4rec DIR]
        [--caser DIR] [--s3rec DIR] [--cml DIR] [--recformer DIR] [--rectools PYTHON] [--recbole PYTHON] [--unisrec DIR]

Steps of each recipe (its own for the dataset, else the default one) are carried out for some seconds, models and peers taking
turns; figures are medians over rounds, in targets (items to be found) a second. Settings may follow a recipe, all in quotes:
"hstu objective.negatives=128 objective.shared_negatives=0". Seconds to the best epoch are those of the recorded training
(benchmarks/results), on the machine that its table names.

Checkouts of the peers' code, run by --python, that of an environment for all of them where this one does not have what they need:

--gru4rec: hidasib/GRU4Rec_PyTorch_Official (numpy 1, pandas, scipy, joblib). --caser: graytowne/caser_pytorch (scipy).
--s3rec: RUCAIBox/CIKM2020-S3Rec (scipy, tqdm). --cml: MogicianXD/CML_torch (scikit-learn).
--recformer: AaronHeee/RecFormer (transformers 4.28, pytorch-lightning 2).

Peers with an environment of their own, of which its Python is given:

--rectools: RecTools, rectools[torch] 0.19, for eSASRec and HSTU. --recbole: RecBole 1.2 (numpy 1, scipy before 1.12) for what
both have. With --unisrec, a checkout of RUCAIBox/UniSRec, that one runs UniSRec, too.

A peer that is not given is left out, and the output says so. How they differ from ours says benchmarks/README.md. LightGCN beside
its authors' code has a command of its own (`benchmarks.graph_speed`), and so has SASRec (`benchmarks.training_speed`).
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.peers import PEERS, WARM
from engine.cards import declarations
from engine.data.dataset import Dataset
from engine.errors import SeqscopeError
from engine.training import compute
from engine.training.materials import gather
from engine.training.recipe import Recipe, load
from engine.training.run import build_model, build_trainer

SECONDS = 5.0
"""Of a turn that are counted."""
GOAL = 2.0
FLAGS = dict.fromkeys(("recbole", "rectools"), "PYTHON") | dict.fromkeys(
    ("gru4rec", "caser", "s3rec", "cml", "recformer", "unisrec"), "DIR"
)
"""What peers are given with, and what it is."""
DRAWN = {"s3rec": ["model.start="], "recformer": ["model.start="]}
"""Of recipes that start from another run, which need not be there: from drawn weights a step is the same work."""


class Training:
    """A recipe's training, ready to go on."""

    def __init__(self, recipe: Recipe, dataset: Dataset, device: torch.device, runs: Path) -> None:
        model = build_model(recipe, dataset.num_items, dataset.num_users, gather(recipe, dataset, runs / recipe.name))
        self.folder = tempfile.TemporaryDirectory(prefix="seqscope-speed-")
        self.trainer = build_trainer(recipe, dataset, model, Path(self.folder.name), device)
        self.trainer.choose_compute()
        model.train()
        self.trainer.objective.begin_epoch(model)
        self.plan = list(self.trainer.objective.batches(torch.Generator().manual_seed(1)))
        self.done = 0
        for _ in range(WARM):
            self._step()

    def _step(self) -> int:
        """The targets of the next step."""
        targets = self.trainer._step(self.plan[self.done % len(self.plan)], len(self.plan))[1]
        self.done += 1
        return int(targets)

    def run(self, seconds: float = SECONDS, steps: int | None = None) -> tuple[float, float]:
        """(targets a second, seconds of a step) of so many steps, or of those that so many seconds are enough for."""
        self._wait()
        began, targets, count = time.perf_counter(), 0, 0
        while (count < steps) if steps else (time.perf_counter() - began < seconds):
            targets += self._step()
            count += 1
        self._wait()
        taken = time.perf_counter() - began
        return targets / taken, taken / count

    def _wait(self) -> None:
        if self.trainer.device.type == "cuda":
            torch.cuda.synchronize(self.trainer.device)


def recipes(names: list[str]) -> list[str]:
    """`names`, or those of models that learn and that a page trains."""
    cards = declarations().models.values()
    return names or [variant.name for model in cards if model.learns for variant in model.card.variants if variant.page]


def to_the_best(dataset: str, name: str) -> str:
    """Seconds of the recorded training to its best epoch, and where."""
    try:
        run = json.loads((Path(__file__).parent / "results" / f"{dataset}-{name}.json").read_text("utf-8"))
    except FileNotFoundError:
        return "not recorded"
    return f"{run['seconds'] * run['best_epoch'] / max(1, run['epochs']):,.0f} s, {run['device']}"


def _absolute(text: str) -> Path:
    """Without following links: the Python of an environment is one."""
    return Path(text).absolute()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", type=Path, default=Path("data/ml-1m"))
    parser.add_argument("--models", nargs="+", default=[], metavar="RECIPE")
    parser.add_argument("--python", type=_absolute, default=Path(sys.executable), help="that of the peers' environment")
    for flag, kind in FLAGS.items():
        parser.add_argument(f"--{flag}", type=_absolute, metavar=kind)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a turn")
    args = parser.parse_args()
    dataset, device = Dataset(args.dataset), compute.choose("auto")
    trainings, left_out = {}, {}
    for name in recipes(args.models):
        try:
            base, *settings = name.split()
            recipe = load(base, dataset.info.name, None, DRAWN.get(base, []) + settings)
            trainings[name] = Training(recipe, dataset, device, Path("runs") / dataset.info.name)
        except SeqscopeError as error:
            left_out[name] = str(error)
    known = {name: PEERS[name.split()[0]] for name in trainings if name.split()[0] in PEERS}
    others = {name: peer for name, peer in known.items() if all(getattr(args, flag) for flag in peer.flags)}
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in trainings}
    peers: dict[str, list[float]] = {name: [] for name in others}
    for _ in range(args.rounds):
        for name, training in trainings.items():
            rates[name].append(training.run(args.seconds))
            if name in others:
                try:
                    trainer = training.trainer
                    peers[name].append(others[name].run(args, dataset, trainer.recipe, trainer.model))
                except SeqscopeError as error:
                    left_out[f"the peer of {name}"] = str(error)
    print(f"training on {compute.describe(device)}, {dataset.info.name}; median of {args.rounds} rounds")
    print("| recipe | targets/s | an epoch | to the best epoch | peer | its targets/s | ratio |")
    print("|---|---|---|---|---|---|---|")
    for name, training in trainings.items():
        rate, step = (statistics.median(values) for values in zip(*rates[name], strict=True))
        theirs = statistics.median(peers[name]) if peers.get(name) else None
        peer = known[name].name if name in known else ""
        beside = (
            [peer, f"{theirs:,.0f}", f"{rate / theirs:.1f} (at least {GOAL:g})"]
            if theirs
            else [peer and f"{peer}: {'stopped' if name in others else 'not given'}", "", ""]
        )
        cells = [
            name,
            f"{rate:,.0f}",
            f"{step * len(training.plan):,.1f} s",
            to_the_best(dataset.info.name, name),
            *beside,
        ]
        print(f"| {' | '.join(cells)} |")
    for name, reason in left_out.items():
        print(f"{name}: left out, {reason}")


if __name__ == "__main__":
    main()
