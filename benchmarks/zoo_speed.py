"""How fast every model trains, and how long it takes to its best epoch; beside the authors' own code where that runs here.

    python -m benchmarks.zoo_speed [--dataset data/ml-1m] [--models sasrec gru4rec-plus …] [--gru4rec DIR] [--caser DIR]
        [--recbole PYTHON]

Steps of each recipe (its own for the dataset, else the default one) are carried out for some seconds, models and peers taking
turns; figures are medians over rounds, in targets (items to be found) a second. Seconds to the best epoch are those of the
recorded training (benchmarks/results), on the machine that its table names.

--gru4rec: a checkout of hidasib/GRU4Rec_PyTorch_Official, which trains an epoch with the settings of our recipe gru4rec-plus.
--caser: a checkout of graytowne/caser_pytorch, which trains one with L 5, T 3, d 50 in batches of 512. --python: that of an
environment for both where this one is too new (GRU4Rec needs numpy 1). --recbole: that of an environment with RecBole 1.2 (numpy
1, scipy before 1.12): it trains what both have with the sizes, lengths and batches of our recipes, on examples as it makes them,
a prefix and its next item each. A peer that is not given is left out, and the output says so. LightGCN beside its authors' code
has a command of its own (`benchmarks.graph_speed`), and so has SASRec (`benchmarks.training_speed`).
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.cards import declarations
from engine.data.dataset import Dataset
from engine.errors import SeqscopeError
from engine.registry import MODELS
from engine.training import compute
from engine.training.materials import gather
from engine.training.recipe import Recipe, load
from engine.training.run import build_model, build_trainer

WARM, SECONDS = 3, 5.0
"""Steps that are not counted; seconds of a turn that are."""
PEERS = {"gru4rec-plus": "GRU4Rec_PyTorch_Official", "caser": "caser_pytorch"}
"""Recipe → the peer that it is compared with; those of `RECBOLE` with RecBole."""
GOAL = 2.0
ALL_ITEMS = {"loss_type": "CE", "train_neg_sample_args": None}
"""RecBole's settings of a loss over the whole catalogue."""
RECBOLE: dict[str, tuple[str, Callable[[Any, Recipe], dict[str, Any]]]] = {
    "gru4rec": ("GRU4Rec", lambda model, _: {
        "embedding_size": model.dim, "hidden_size": model.dim, "dropout_prob": model.dropout, "loss_type": "BPR"}),
    "narm": ("NARM", lambda model, _: ALL_ITEMS | {
        "embedding_size": model.dim, "hidden_size": model.hidden, "dropout_probs": [model.input_dropout, model.dropout]}),
    "bert4rec": ("BERT4Rec", lambda model, _: ALL_ITEMS | {
        "hidden_size": model.dim, "inner_size": 4 * model.dim, "n_layers": model.layers, "n_heads": model.heads,
        "hidden_dropout_prob": model.dropout, "attn_dropout_prob": model.attention_dropout}),
    "hgn": ("HGN", lambda model, _: {
        "embedding_size": model.dim, "MAX_ITEM_LIST_LENGTH": model.window, "loss_type": "BPR"}),
    "transrec": ("TransRec", lambda model, _: {"embedding_size": model.dim}),
    "fpmc": ("FPMC", lambda model, _: {"embedding_size": model.dim}),
    "neumf": ("NeuMF", lambda model, recipe: {
        "mf_embedding_size": model.dim, "mlp_embedding_size": model.dim << (model.layers - 2),
        "mlp_hidden_size": [model.dim << layer for layer in reversed(range(model.layers))],
        "train_neg_sample_args": {"distribution": "uniform", "sample_num": recipe.objective.negatives},
        "train_batch_size": recipe.training.batch_size * (1 + recipe.objective.negatives)}),  # negatives are rows, too
    "lightgcn": ("LightGCN", lambda model, _: {"embedding_size": model.dim, "n_layers": model.layers}),
    "ngcf": ("NGCF", lambda model, _: {
        "embedding_size": model.dim, "hidden_size_list": [model.dim] * model.layers,
        "message_dropout": model.message_dropout}),
    "bpr-mf": ("BPR", lambda model, _: {"embedding_size": model.dim}),
    "mult-vae": ("MultiVAE", lambda model, _: {
        "mlp_hidden_size": [model.hidden], "latent_dimension": model.dim, "train_neg_sample_args": None}),
    "mult-dae": ("MultiDAE", lambda model, _: {
        "mlp_hidden_size": [], "latent_dimension": model.dim, "train_neg_sample_args": None}),
}  # fmt: skip
"""Recipe → RecBole's model, and its settings from our model's, and from the recipe."""
FIRST_EVENTS = 100_000
"""Of the log, for models of RecBole's that read an order: they make a row of every prefix, for minutes, before the first step."""


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
    """Those of models that learn and that a page trains, or those of `names`."""
    cards = declarations().models.values()
    every = [variant.name for model in cards if model.learns for variant in model.card.variants if variant.page]
    return [name for name in every if name in names] if names else every


def to_the_best(dataset: str, name: str) -> str:
    """Seconds of the recorded training to its best epoch, and where."""
    try:
        run = json.loads((Path(__file__).parent / "results" / f"{dataset}-{name}.json").read_text("utf-8"))
    except FileNotFoundError:
        return "not recorded"
    return f"{run['seconds'] * run['best_epoch'] / max(1, run['epochs']):,.0f} s, {run['device']}"


def _write_log(path: Path, header: str, dataset: Dataset, first: int | None = None) -> None:
    """User, item and time of every training event, or of the first so many, separated by tabs. The time is the event's place."""
    users = np.repeat(np.arange(len(dataset.training)), dataset.training.lengths)
    events = np.stack([users, dataset.training.values, np.arange(len(users))], 1)[:first]
    np.savetxt(path, events, fmt="%d", delimiter="\t", header=header, comments="")


def gru4rec(python: str, checkout: Path, dataset: Dataset, recipe: Recipe) -> float:
    """Targets a second of an epoch of its run.py, which prints them."""
    config, settings, training = recipe.model, recipe.objective, recipe.training
    parameters = {
        "loss": "bpr-max", "constrained_embedding": config.shared_items, "embedding": 0, "layers": config.dim,
        "n_epochs": 1, "batch_size": training.batch_size, "dropout_p_hidden": config.dropout,
        "dropout_p_embed": config.input_dropout, "learning_rate": recipe.optimiser.lr, "n_sample": settings.shared_negatives,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.tsv"
        _write_log(log, "SessionId\tItemId\tTime", dataset)
        words = [python, "run.py", str(log), "-d", compute.choose("auto").type, "-ps"]
        words.append(",".join(f"{name}={value}" for name, value in parameters.items()))
        done = subprocess.run(words, cwd=checkout, capture_output=True, text=True, check=False)
    rates = re.findall(r"\| (\d+) e/s\]", done.stdout)
    return float(rates[-1]) if rates else sys.exit(f"the peer stopped: {(done.stderr or done.stdout)[-1500:]}")


_CASER = """
import argparse, sys
from train_caser import Interactions, Recommender, set_seed
train, test, *cuda = sys.argv[1:]
model = argparse.Namespace(d=50, nv=4, nh=16, drop=.5, ac_conv="relu", ac_fc="relu", L=5)
set_seed(1234, cuda=bool(cuda))
train = Interactions(train)
train.to_sequence(5, 3)
test = Interactions(test, user_map=train.user_map, item_map=train.item_map)
Recommender(n_iter=2, batch_size=512, learning_rate=1e-3, l2=1e-6, neg_samples=3, model_args=model, use_cuda=bool(cuda)).fit(
    train, test, verbose=True
)
"""
"""Its main, with its defaults: both of its parsers read the whole command line, and each refuses the options of the other."""


def caser(python: str, checkout: Path, dataset: Dataset) -> float:
    """Targets a second of an epoch of its train_caser.py: windows times T."""
    users = np.repeat(np.arange(len(dataset.training)), dataset.training.lengths)
    with tempfile.TemporaryDirectory() as folder:
        lines = np.stack([users, dataset.training.values + 1, np.ones(len(users), int)], 1)
        for file in ("train.txt", "test.txt"):
            np.savetxt(Path(folder) / file, lines if file == "train.txt" else lines[:: len(lines) // 100], fmt="%d")
        words = [python, "-W", "ignore", "-c", _CASER, f"{folder}/train.txt", f"{folder}/test.txt"]
        words += ["cuda"] if compute.choose("auto").type == "cuda" else []
        done = subprocess.run(words, cwd=checkout, capture_output=True, text=True, check=False)
    windows = re.search(r"total training instances: (\d+)", done.stdout)
    seconds = re.findall(r"Epoch \d+ \[([\d.]+) s\]", done.stdout)
    if windows is None or not seconds:
        sys.exit(f"the peer stopped: {(done.stderr or done.stdout)[-1500:]}")
    return 3 * int(windows[1]) / float(seconds[-1])


_RECBOLE = """
import json, sys, time, torch
from recbole.config import Config
from recbole.data import create_dataset, data_preparation
from recbole.utils import get_model, init_seed
name, settings, warm, seconds = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
config = Config(model=name, dataset="log", config_dict=settings)
init_seed(1, True)
batches = data_preparation(config, create_dataset(config))[0]
model = get_model(name)(config, batches._dataset).to(config["device"])
optimiser = torch.optim.Adam(model.parameters(), lr=config["learning_rate"])
model.train()
step = targets = 0
while True:
    for batch in batches:
        if step == warm:
            targets, began = 0, time.perf_counter()
        optimiser.zero_grad()
        loss = model.calculate_loss(batch.to(config["device"]))
        (sum(loss) if isinstance(loss, tuple) else loss).backward()
        optimiser.step()
        step += 1
        if name == "BERT4Rec":
            targets += int((batch[model.MASK_INDEX] > 0).sum())
        elif name == "NeuMF":
            targets += int(batch["label"].sum())
        else:
            targets += len(batch)
        if step > warm and time.perf_counter() - began > seconds:
            sys.exit(print("targets a second:", targets / (time.perf_counter() - began)))
"""


def recbole(python: str, name: str, dataset: Dataset, recipe: Recipe, seconds: float) -> float:
    """Targets a second of RecBole's model of that name, trained as `recipe` says."""
    their_name, settings_of = RECBOLE[name]
    settings = {
        "train_batch_size": recipe.training.batch_size,
        "learning_rate": recipe.optimiser.lr, "MAX_ITEM_LIST_LENGTH": getattr(recipe.model, "max_length", 50),
        "load_col": {"inter": ["user_id", "item_id", "timestamp"]}, "use_gpu": compute.choose("auto").type == "cuda",
        "eval_args": {"split": {"LS": "valid_and_test"}, "order": "TO", "group_by": "user", "mode": "full"},
        "show_progress": False, "state": "ERROR", **settings_of(recipe.model, recipe),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log" / "log.inter"
        log.parent.mkdir()
        some = FIRST_EVENTS if MODELS[recipe.family].reads_order else None
        _write_log(log, "user_id:token\titem_id:token\ttimestamp:float", dataset, some)
        settings["data_path"] = folder
        words = [python, "-W", "ignore", "-c", _RECBOLE, their_name, json.dumps(settings), str(WARM), str(seconds)]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    rate = re.search(r"targets a second: ([\d.]+)", done.stdout)
    if rate is None:
        raise SeqscopeError(f"{their_name} stopped: {(done.stderr or done.stdout)[-500:]}")
    return float(rate[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", type=Path, default=Path("data/ml-1m"))
    parser.add_argument("--models", nargs="+", default=[], metavar="RECIPE")
    parser.add_argument("--gru4rec", type=Path)
    parser.add_argument("--caser", type=Path)
    parser.add_argument("--python", default=sys.executable, help="the peers' Python")
    parser.add_argument("--recbole", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a turn")
    args = parser.parse_args()
    dataset, device = Dataset(args.dataset), compute.choose("auto")
    trainings, left_out = {}, {}
    for name in recipes(args.models):
        try:
            recipe = load(name, dataset.info.name, None, [])
            trainings[name] = Training(recipe, dataset, device, Path("runs") / dataset.info.name)
        except SeqscopeError as error:
            left_out[name] = str(error)
    others: dict[str, Callable[[], float]] = {}
    if args.gru4rec and "gru4rec-plus" in trainings:
        others["gru4rec-plus"] = partial(
            gru4rec, args.python, args.gru4rec.resolve(), dataset, trainings["gru4rec-plus"].trainer.recipe
        )
    if args.caser and "caser" in trainings:
        others["caser"] = partial(caser, args.python, args.caser.resolve(), dataset)
    if args.recbole:
        for name in RECBOLE.keys() & trainings.keys():
            recipe = trainings[name].trainer.recipe
            others[name] = partial(recbole, args.recbole, name, dataset, recipe, args.seconds)
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in trainings}
    peers: dict[str, list[float]] = {name: [] for name in others}
    for _ in range(args.rounds):
        for name, training in trainings.items():
            rates[name].append(training.run(args.seconds))
            if name in others:
                try:
                    peers[name].append(others[name]())
                except SeqscopeError as error:
                    left_out[f"the peer of {name}"] = str(error)
    print(f"training on {compute.describe(device)}, {dataset.info.name}; median of {args.rounds} rounds")
    print("| recipe | targets/s | an epoch | to the best epoch | peer | its targets/s | ratio |")
    print("|---|---|---|---|---|---|---|")
    for name, training in trainings.items():
        rate, step = (statistics.median(values) for values in zip(*rates[name], strict=True))
        theirs = statistics.median(peers[name]) if peers.get(name) else None
        peer = PEERS.get(name, "RecBole" if name in RECBOLE else "")
        beside = (
            [peer, f"{theirs:,.0f}", f"{rate / theirs:.1f} (at least {GOAL:g})"]
            if theirs
            else [f"{peer}: not given" if peer else "", "", ""]
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
