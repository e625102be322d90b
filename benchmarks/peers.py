"""The authors' or best known PyTorch code of the models of `benchmarks.zoo_speed`, each in a process of its own.

A peer trains the same dataset with the sizes, lengths, batches and negatives of our recipe, and reads the same words, tokens or
vectors of items, which are taken from our model. Its steps are its own, with the examples as it makes them.
"""

import json
import re
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.data.dataset import Dataset
from engine.errors import SeqscopeError
from engine.registry import MODELS
from engine.training import compute
from engine.training.recipe import Recipe

WARM = 3
"""Steps that are not counted."""
FIRST_EVENTS = 100_000
"""Of the log, for peers that make all their examples before the first step: a row of every prefix takes RecBole minutes."""


@dataclass(frozen=True)
class Peer:
    name: str
    flags: tuple[str, ...]
    """Of `zoo_speed`'s command line, all of which must be given."""
    run: Callable[[Namespace, Dataset, Recipe, Any], float]
    """Targets a second; arguments: what is given, and what ours is trained on and with, its model last."""


def _on_gpu() -> bool:
    return compute.choose("auto").type == "cuda"


def _printed(words: Sequence[object], folder: Path, pattern: str) -> list[str]:
    """What `pattern` matches of the output of a program that is started in `folder`."""
    done = subprocess.run(list(map(str, words)), cwd=folder, capture_output=True, text=True, check=False)
    matches: list[str] = re.findall(pattern, done.stdout)
    if not matches:
        raise SeqscopeError(f"the peer stopped: {(done.stderr or done.stdout)[-1000:]}")
    return matches


_CLOCK = """
import json, sys, time, torch
settings = json.loads(sys.argv[1])
def now():
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()
class Clock:
    def __init__(self, loader, targets_of, together=1):
        self.loader, self.targets_of, self.together = loader, targets_of, together
        self.batches = self.targets = 0
    def __len__(self):
        return len(self.loader)
    def __iter__(self):
        for batch in self.loader:
            targets = self.targets_of(batch)
            yield batch  # and its step is done
            self.batches, self.targets = self.batches + 1, self.targets + targets
            steps, rest = divmod(self.batches, self.together)
            if rest == 0 and steps == settings["warm"]:
                self.targets, self.began = 0, now()
            elif rest == 0 and steps > settings["warm"] and now() - self.began > settings["seconds"]:
                print("targets a second:", self.targets / (now() - self.began), flush=True)
                sys.exit()
"""
"""Hands on the batches of a loader. After some steps, of `together` batches each, it counts the targets of as many as end within
some seconds, and the time until the next batch is there, then it prints the rate and ends the program."""


def _timed(python: Path, script: str, settings: dict[str, Any], given: Namespace, folder: Path) -> float:
    """What the clock of `script` prints. folder: where the program is started."""
    options = json.dumps(settings | {"warm": WARM, "seconds": given.seconds})
    words = [python, "-W", "ignore", "-c", _CLOCK + script, options]
    return float(_printed(words, folder, r"targets a second: ([\d.]+)")[-1])


def _write_log(path: Path, header: str, dataset: Dataset, first: int | None = None) -> None:
    """User, item and time of every training event, or of the first so many, separated by tabs. The time is the event's place."""
    users = np.repeat(np.arange(len(dataset.training)), dataset.training.lengths)
    events = np.stack([users, dataset.training.values, np.arange(len(users))], 1)[:first]
    np.savetxt(path, events, fmt="%d", delimiter="\t", header=header, comments="")


# --- GRU4Rec+ and Caser: the authors' programs, which print what an epoch took


def gru4rec(given: Namespace, dataset: Dataset, recipe: Recipe, _: Any) -> float:
    """hidasib/GRU4Rec_PyTorch_Official: an epoch of its run.py."""
    config, settings, training = recipe.model, recipe.objective, recipe.training
    parameters = {
        "loss": "bpr-max", "constrained_embedding": config.shared_items, "embedding": 0, "layers": config.dim,
        "n_epochs": 1, "batch_size": training.batch_size, "dropout_p_hidden": config.dropout,
        "dropout_p_embed": config.input_dropout, "learning_rate": recipe.optimiser.lr, "n_sample": settings.shared_negatives,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.tsv"
        _write_log(log, "SessionId\tItemId\tTime", dataset)
        options = ",".join(f"{name}={value}" for name, value in parameters.items())
        words = [given.python, "run.py", log, "-d", compute.choose("auto").type, "-ps", options]
        return float(_printed(words, given.gru4rec, r"\| (\d+) e/s\]")[-1])


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


def caser(given: Namespace, dataset: Dataset, *_: Any) -> float:
    """graytowne/caser_pytorch: an epoch of its train_caser.py, windows times T."""
    users = np.repeat(np.arange(len(dataset.training)), dataset.training.lengths)
    with tempfile.TemporaryDirectory() as folder:
        lines = np.stack([users, dataset.training.values + 1, np.ones(len(users), int)], 1)
        for file in ("train.txt", "test.txt"):
            np.savetxt(Path(folder) / file, lines if file == "train.txt" else lines[:: len(lines) // 100], fmt="%d")
        words = [given.python, "-W", "ignore", "-c", _CASER, f"{folder}/train.txt", f"{folder}/test.txt"]
        words += ["cuda"] if _on_gpu() else []
        pattern = r"total training instances: (\d+)|Epoch \d+ \[([\d.]+) s\]"
        windows, *seconds = ("".join(match) for match in _printed(words, given.caser, pattern))
    return 3 * int(windows) / float(seconds[-1])


# --- RecBole, and UniSRec, whose authors built it upon RecBole

ALL_ITEMS = {"loss_type": "CE", "train_neg_sample_args": None}
"""RecBole's settings of a loss over the whole catalogue."""


def _blocks(model: Any) -> dict[str, Any]:
    """Of blocks as SASRec's."""
    return {
        "hidden_size": model.dim, "inner_size": model.dim, "n_layers": model.blocks, "n_heads": model.heads,
        "hidden_dropout_prob": model.dropout, "attn_dropout_prob": model.dropout,
    }  # fmt: skip


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
    "fdsa": ("FDSA", lambda model, _: ALL_ITEMS | _blocks(model)),
    "unisrec": ("UniSRec", lambda model, _: ALL_ITEMS | _blocks(model) | {
        "temperature": model.temperature, "n_exps": model.experts, "adaptor_dropout_prob": model.adaptor_dropout,
        "train_stage": "inductive_ft", "plm_suffix": "vectors"}),
}  # fmt: skip
"""Recipe → RecBole's model, and its settings from our model's, and from the recipe."""

_RECBOLE = """
from recbole.config import Config
from recbole.data import create_dataset, data_preparation
from recbole.utils import get_model, init_seed
name, options = settings["model"], settings["options"]
if settings["checkout"]:
    sys.path.insert(0, settings["checkout"])
    from data.dataset import UniSRecDataset as create_dataset
    from unisrec import UniSRec
    config = Config(model=UniSRec, dataset="log", config_file_list=[f"{sys.path[0]}/props/UniSRec.yaml"], config_dict=options)
else:
    config = Config(model=name, dataset="log", config_dict=options)
init_seed(1, True)
batches = data_preparation(config, create_dataset(config))[0]
model = (UniSRec if settings["checkout"] else get_model(name))(config, batches._dataset).to(config["device"])
optimiser = torch.optim.Adam(model.parameters(), lr=config["learning_rate"])
model.train()
def targets_of(batch):
    if name == "BERT4Rec":
        return int((batch[model.MASK_INDEX] > 0).sum())
    return int(batch["label"].sum()) if name == "NeuMF" else len(batch)
clock = Clock(batches, targets_of)
while True:
    for batch in clock:
        optimiser.zero_grad()
        loss = model.calculate_loss(batch.to(config["device"]))
        (sum(loss) if isinstance(loss, tuple) else loss).backward()
        optimiser.step()
"""


def recbole(given: Namespace, dataset: Dataset, recipe: Recipe, model: Any) -> float:
    """Its model of that name on examples as it makes them: for those that read an order, a prefix and its next item each."""
    name, settings_of = RECBOLE[recipe.name]
    load = {"inter": ["user_id", "item_id", "timestamp"]}
    options = {
        "train_batch_size": recipe.training.batch_size,
        "learning_rate": recipe.optimiser.lr, "MAX_ITEM_LIST_LENGTH": getattr(recipe.model, "max_length", 50),
        "load_col": load, "use_gpu": _on_gpu(),
        "eval_args": {"split": {"LS": "valid_and_test"}, "order": "TO", "group_by": "user", "mode": "full"},
        "show_progress": False, "state": "ERROR", **settings_of(recipe.model, recipe),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log" / "log.inter"
        log.parent.mkdir()
        some = FIRST_EVENTS if MODELS[recipe.family].reads_order else None
        _write_log(log, "user_id:token\titem_id:token\ttimestamp:float", dataset, some)
        if name == "FDSA":
            words = model.words[:-1].tolist()
            options["selected_features"] = [f"words_{field}" for field in range(len(words[0]))]
            load["item"] = ["item_id", *options["selected_features"]]
            _write_words(log.with_suffix(".item"), words, model.word_vectors.num_embeddings - 1)
        if name == "UniSRec":
            vectors = model.text[:-1].numpy()
            vectors.tofile(log.with_suffix(".vectors"))
            options |= {"plm_size": vectors.shape[1], "adaptor_layers": [vectors.shape[1], recipe.model.dim]}
        options["data_path"] = folder
        checkout = str(given.unisrec) if name == "UniSRec" else None
        settings = {"model": name, "options": options, "checkout": checkout}
        return _timed(given.recbole, _RECBOLE, settings, given, Path(folder))


def _write_words(path: Path, words: list[list[list[int]]], none: int) -> None:
    """Items as RecBole reads them, one a line: the words of every attribute, those that our FDSA reads."""
    names = "\t".join(f"words_{field}:token_seq" for field in range(len(words[0])))
    lines = [f"item_id:token\t{names}"]
    for item, fields in enumerate(words):
        cells = (" ".join(str(word) for word in field if word != none) for field in fields)
        lines.append("\t".join([str(item), *cells]))
    path.write_text("\n".join(lines) + "\n", "utf-8")


# --- eSASRec and HSTU: RecTools, whose makers wrote eSASRec

_RECTOOLS = """
import pandas as pd
from pytorch_lightning import Trainer
from rectools.dataset import Dataset
from rectools.models import HSTUModel, SASRecModel
from rectools.models.nn.transformers.ligr import LiGRLayers
from rectools.models.nn.transformers.sasrec import SASRecDataPreparator
frame = pd.read_csv("log.tsv", sep="\\t")
frame["weight"], frame["datetime"] = 1, pd.to_datetime(frame["datetime"], unit="s")
class Timed(SASRecDataPreparator):
    def get_dataloader_train(self):
        return Clock(super().get_dataloader_train(), lambda batch: int((batch["yw"] > 0).sum()))
def trainer():
    return Trainer(max_epochs=1000, logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator="auto",
                   enable_model_summary=False)
other = {"relative_time_attention": False, "similarity_module_kwargs": {"distance": "dot"}}
kind, other = (SASRecModel, {"transformer_layers_type": LiGRLayers}) if settings["ligr"] else (HSTUModel, other)
kind(**settings["options"], **other, data_preparator_type=Timed, get_trainer_func=trainer).fit(Dataset.construct(frame))
"""


def rectools(given: Namespace, dataset: Dataset, recipe: Recipe, _: Any) -> float:
    """The same windows, a target at every position; its negatives are drawn for every target."""
    model, objective = recipe.model, recipe.objective
    options = {
        "n_factors": model.dim, "n_blocks": model.blocks, "n_heads": model.heads, "dropout_rate": model.dropout,
        "session_max_len": model.max_length, "lr": recipe.optimiser.lr, "batch_size": recipe.training.batch_size,
        "loss": "sampled_softmax", "n_negatives": objective.shared_negatives or objective.negatives,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        _write_log(Path(folder) / "log.tsv", "user_id\titem_id\tdatetime", dataset)
        settings = {"options": options, "ligr": recipe.family == "esasrec"}
        return _timed(given.rectools, _RECTOOLS, settings, given, Path(folder))


# --- S3-Rec: the authors' code, of its second run

_S3REC = """
sys.path.insert(0, settings["checkout"])
from argparse import Namespace
from torch.utils.data import DataLoader
from datasets import SASRecDataset
from models import S3RecModel
from trainers import FinetuneTrainer
from utils import get_user_seqs
args = Namespace(**settings["options"], hidden_act="gelu", initializer_range=.02, weight_decay=0., adam_beta1=.9, log_freq=1,
                 log_file="log", attribute_size=1000, no_cuda=False, cuda_condition=torch.cuda.is_available())
sequences, last, *_ = get_user_seqs("log.txt")
args.item_size, args.mask_id = last + 2, last + 1
loader = DataLoader(SASRecDataset(args, sequences, data_type="train"), batch_size=settings["batch"], shuffle=True)
clock = Clock(loader, lambda batch: int((batch[2] > 0).sum()))
trainer = FinetuneTrainer(S3RecModel(args=args), clock, None, None, args)
while True:
    trainer.train(0)
"""


def s3rec(given: Namespace, dataset: Dataset, recipe: Recipe, _: Any) -> float:
    """RUCAIBox/CIKM2020-S3Rec: its run_finetune_full.py from drawn weights, on the same windows."""
    model, lr = recipe.model, recipe.optimiser.lr
    options = {
        "hidden_size": model.dim, "num_hidden_layers": model.blocks, "num_attention_heads": model.heads,
        "attention_probs_dropout_prob": model.dropout, "hidden_dropout_prob": model.dropout,
        "max_seq_length": model.max_length, "lr": lr, "adam_beta2": recipe.optimiser.beta2,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        histories = np.split(dataset.events.values + 1, np.cumsum(dataset.events.lengths)[:-1])
        lines = (f"{user} {' '.join(map(str, items))}\n" for user, items in enumerate(histories))
        (Path(folder) / "log.txt").write_text("".join(lines), "utf-8")
        settings = {"checkout": str(given.s3rec), "options": options, "batch": recipe.training.batch_size}
        return _timed(given.python, _S3REC, settings, given, Path(folder))


# --- CML: a translation of the authors' TensorFlow code

_CML = """
sys.path.insert(0, settings["checkout"])
import numpy as np
from torch.utils.data import DataLoader
from CML import CML
torch.nn.functional.relu = lambda x: x.clamp(min=0)  # the same; PyTorch refuses how it changes what relu returns
loader = DataLoader(np.load("triples.npy"), batch_size=settings["batch"], shuffle=True)
model = CML(*settings["counts"], **settings["options"])
model = model.to(model.device)
model.optimizer = torch.optim.Adam(model.parameters(), lr=settings["lr"])
clock = Clock(loader, len)
while True:
    model.fit(clock, model.loss)
"""


def cml(given: Namespace, dataset: Dataset, recipe: Recipe, _: Any) -> float:
    """MogicianXD/CML_torch: pairs and their negatives, which it reads from a file, drawn before."""
    users = np.repeat(np.arange(len(dataset.training)), dataset.training.lengths)
    events = np.random.default_rng(1).permutation(len(users))[:FIRST_EVENTS]
    negatives = np.random.default_rng(2).integers(dataset.num_items, size=(len(events), recipe.objective.negatives))
    options = {
        "embed_dim": recipe.model.dim, "margin": recipe.objective.margin, "cov_loss_weight": recipe.objective.covariance,
    }  # fmt: skip
    settings = {
        "checkout": str(given.cml), "options": options, "lr": recipe.optimiser.lr,
        "counts": [len(dataset.training), dataset.num_items], "batch": recipe.training.batch_size,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        triples = np.column_stack([users[events], dataset.training.values[events], negatives])
        np.save(Path(folder) / "triples.npy", triples.astype(np.int64))
        return _timed(given.python, _CML, settings, given, Path(folder))


# --- Recformer: the authors' code, of its fine-tuning

_RECFORMER = """
sys.path.insert(0, settings["checkout"])
from argparse import Namespace
from pathlib import Path
from torch.utils.data import DataLoader
from collator import FinetuneDataCollatorWithPadding
from dataloader import RecformerTrainDataset
from finetune import train_one_epoch
from optimization import create_optimizer_and_scheduler
from recformer import RecformerConfig, RecformerForSeqRec, RecformerTokenizer
special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]  # its first tokens; those of the items come after them
Path("vocab.json").write_text(json.dumps({token: number for number, token in enumerate(special)}))
Path("merges.txt").write_text("#version: 0.2\\n")
config = RecformerConfig(**settings["options"], pad_token_id=1, finetune_negative_sample_size=-1)
RecformerTokenizer.config = config
tokenizer = RecformerTokenizer("vocab.json", "merges.txt")
data = json.loads(Path("data.json").read_text())
items = {item: [[token + len(special) for token in tokens], kinds] for item, (tokens, kinds) in enumerate(data["items"])}
histories = RecformerTrainDataset(dict(enumerate(data["histories"])), FinetuneDataCollatorWithPadding(tokenizer, items))
args = Namespace(device=torch.device("cuda" if torch.cuda.is_available() else "cpu"), fp16=False, warmup_steps=100,
                 gradient_accumulation_steps=8, **settings["training"])
loader = DataLoader(histories, batch_size=settings["batch"] // 8, shuffle=True, collate_fn=histories.collate_fn)
model = RecformerForSeqRec(config)
model.longformer.embeddings.word_embeddings.requires_grad_(settings["words"])
model.init_item_embedding(torch.randn(config.item_num, config.hidden_size))
model.to(args.device)
optimiser, scheduler = create_optimizer_and_scheduler(model, 10_000, args)
clock = Clock(loader, lambda batch: len(batch["labels"]), together=8)
while True:
    train_one_epoch(model, clock, optimiser, scheduler, None, args)
"""


def recformer(given: Namespace, dataset: Dataset, recipe: Recipe, model: Any) -> float:
    """AaronHeee/RecFormer: its finetune.py on our tokens, eight batches to a step, as its authors have it."""
    config, optimiser = recipe.model, recipe.optimiser
    options = {
        "vocab_size": model.vocabulary + 5, "hidden_size": config.dim, "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads, "intermediate_size": config.inner * config.dim, "temp": config.temperature,
        "hidden_dropout_prob": config.dropout, "attention_probs_dropout_prob": config.dropout,
        "attention_window": config.window, "max_token_num": config.max_tokens,
        "max_position_embeddings": config.max_tokens + config.window + 2, "max_item_embeddings": config.max_length + 1,
        "item_num": dataset.num_items,
    }  # fmt: skip
    rows = zip(model.table[:-1].tolist(), model.kinds[:-1].tolist(), model.lengths[:-1].tolist(), strict=True)
    items = [(tokens[:length], kinds[:length]) for tokens, kinds, length in rows]
    histories = np.split(dataset.training.values, np.cumsum(dataset.training.lengths)[:-1])
    with tempfile.TemporaryDirectory() as folder:
        data = {"items": items, "histories": [history.tolist() for history in histories if len(history)]}
        (Path(folder) / "data.json").write_text(json.dumps(data), "utf-8")
        settings = {
            "checkout": str(given.recformer), "options": options, "batch": recipe.training.batch_size,
            "words": not config.freeze_words,
            "training": {"learning_rate": optimiser.lr, "weight_decay": optimiser.weight_decay},
        }  # fmt: skip
        return _timed(given.python, _RECFORMER, settings, given, Path(folder))


PEERS = {
    "gru4rec-plus": Peer("GRU4Rec_PyTorch_Official", ("gru4rec",), gru4rec),
    "caser": Peer("caser_pytorch", ("caser",), caser),
    "esasrec": Peer("RecTools", ("rectools",), rectools),
    "hstu": Peer("RecTools", ("rectools",), rectools),
    "s3rec": Peer("CIKM2020-S3Rec", ("s3rec",), s3rec),
    "cml": Peer("CML_torch", ("cml",), cml),
    "recformer": Peer("RecFormer", ("recformer",), recformer),
    **{name: Peer("RecBole", ("recbole",), recbole) for name in RECBOLE},
    "unisrec": Peer("UniSRec", ("unisrec", "recbole"), recbole),
}
"""Recipe → the peer that it is compared with."""
