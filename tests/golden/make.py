"""Makes golden.tar.xz, answers.npz, addresses.json and metrics.json, in minutes: python -m tests.golden.make FOLDER

FOLDER is empty, and stays to be looked into.

What is in them was made by commit 74670b5, through the commands that people use, and is there to be opened by all later ones; it
is not made again, since only files that an older version wrote can tell whether they still open. What a later version adds (a new
kind of bundle, say) gets an archive of its own beside this one. addresses.json was changed once: an item in an address was a
choice of each page before it became one that all pages share.

The archive holds one folder, from which all its commands ran, so that nothing in it names a machine:

    items.csv, log.csv, data/golden/   130 items, 80 people
    encoder/, base/                    a text encoder and a language model of next to no size
    recipes/NAME.toml                  one per model and tokenizer
    runs/NAME, runs/NAME-cut           finished; interrupted within its second epoch
    exports/golden/                    bundles, tokenizers, a space and a study
    report/                            a report of the zoo
    home/                              a store of two owners: an upload, saved things, jobs that wait, are done and failed
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from app import home, work
from app.jobs import kinds, status
from app.jobs.kinds import TrainingChoice
from app.jobs.runner import LOG, Failed, Runner
from app.reports import build, document
from app.store.server import open_store
from app.uploads import files
from app.uploads.limits import UploadLimits
from engine.cli import main
from engine.files import write_json
from engine.runtime import EMBEDDED, Zoo
from engine.tabular.reading import FileKind
from engine.training import checkpoint
from tests.app.own import own_home
from tests.golden import ARCHIVE, KEPT_ANSWERS, KEPT_METRICS, KEPT_STATES, OWNER, VISITOR
from tests.golden.addresses import ADDRESSES
from tests.golden.answers import HISTORY, answers, decoded, printed
from tests.jobs.conftest import _here
from tests.waiting import wait

ITEMS, PEOPLE = 130, 80
ODD = {3: "a~b", 4: "a b&c=d#e", 5: "ключ"}
"""Item → its id where that is no plain one."""
TRAINED = """
[training]
epochs = 3
batch_size = 32
validate_every = 1
patience = 0
precision = "float32"
checkpoint_seconds = 0.0
"""
NETWORK = """
dim = 8
layers = 1
heads = 2
inner = 16
max_length = 6
dropout = 0.1
"""
CODES = """
[tokenizer]
levels = 2
codes = 8
dim = 4
hidden = [8]
[training]
epochs = 4
batch_size = 32
checkpoint_seconds = 0.0
"""
TOKENIZERS = {
    "rqvae": 'family = "rqvae"' + CODES,
    "letter": 'family = "letter"' + CODES.replace("[training]", 'clusters = 2\nteacher = "sasrec"\n[training]'),
    "residual-kmeans": 'family = "residual-kmeans"\n[tokenizer]\nlevels = 2\ncodes = 8\n',
    "p5-tid": 'family = "p5-tid"\n[tokenizer]\nwords = 60\nlength = 4\n',
    "p5-semid": 'family = "p5-semid"\n',
    "p5-cid": 'family = "p5-cid"\n[tokenizer]\nclusters = 4\nleaf = 8\n',
    "random": 'family = "random"\n[tokenizer]\nlevels = 2\ncodes = 8\n',
}
MODELS = {
    "sasrec": 'family = "sasrec"\n[model]\ndim = 8\nblocks = 2\nmax_length = 8\ndropout = 0.1\n[optimiser]\nlr = 0.01\n',
    "bert4rec": 'family = "bert4rec"\n[model]\ndim = 8\nlayers = 1\nheads = 2\nmax_length = 8\n[optimiser]\nlr = 0.01\n',
    "attrec": 'family = "attrec"\n[model]\ndim = 8\nwindow = 3\nfold_in = 6\n[optimiser]\nname = "adagrad"\nlr = 0.1\n',
    "lightgcn": 'family = "lightgcn"\n[model]\ndim = 8\nlayers = 2\nmax_length = 20\n[optimiser]\nlr = 0.02\n',
    "ngcf": 'family = "ngcf"\n[model]\ndim = 8\nlayers = 2\nmax_length = 20\n[optimiser]\nlr = 0.02\n',
    "mult-vae": 'family = "mult-vae"\n[model]\nhidden = 12\ndim = 6\nmax_length = 20\n[optimiser]\nlr = 0.01\n',
    "recformer": 'family = "recformer"\n[model]\ndim = 8\nlayers = 1\nheads = 2\nmax_length = 5\nmax_tokens = 32\n'
    'vocabulary = 300\nattention = "full"\n[optimiser]\nname = "adamw"\nlr = 0.01\n',
    "text-neighbours": 'family = "text-neighbours"\n[model]\nencoder = "encoder"\n',
    "markov": 'family = "markov"\n',
    "popularity": 'family = "popularity"\n',
    "tiger": f'family = "encoder-decoder"\n[model]\nidentifiers = "rqvae"\ncausal = true\n{NETWORK}[optimiser]\nlr = 0.01\n',
    "p5": f'family = "encoder-decoder"\n[model]\nidentifiers = "p5-cid"\n{NETWORK}[optimiser]\nlr = 0.01\n',
    "lc-rec": f'family = "decoder-only"\n[model]\nidentifiers = "letter"\n{NETWORK}[optimiser]\nlr = 0.01\n',
    "lora": 'family = "language-model"\n[model]\nidentifiers = "rqvae"\nbase = "base"\nmax_length = 4\nbeam = 8\nrank = 2\n'
    '[objective]\ntasks = "seqrec,item2index"\nwords = 8\n[optimiser]\nname = "adamw"\nlr = 0.01\n',
}  # fmt: skip
COUNTED = ("text-neighbours", "markov", "popularity")
"""Models that no gradient trains, so that nothing interrupts them."""
MARKED = ("sasrec", "attrec", "popularity")
"""Models that are also ranked among 100 negatives."""
STUDY = """
title = "Layers of a graph"
about = "Made for tests."
runs = ["recipes/lightgcn.toml"]
seeds = [1, 2]
baseline = "two"
[set]
lightgcn = ["training.epochs=1"]
[[variants]]
name = "two"
title = "two layers"
[[variants]]
name = "one"
title = "one layer"
set.lightgcn = ["model.layers=1"]
"""


def run(*words: str, code: int = 0) -> None:
    sys.argv = ["seqscope", *words]  # which a run keeps
    assert main() == code, words


# --- the data


def csv_files() -> tuple[str, str]:
    """The catalogue and the log. People stay within one of four groups of items, mostly."""
    rng = np.random.default_rng(14)
    ids = [ODD.get(number, f"i{number}") for number in range(ITEMS)]
    colours = ("red", "blue", "은", "gold")
    items = "item_id,title,categories,year\n" + "".join(
        f"{ids[n]},The {colours[n % 4]} thing {n},Shop|{colours[n % 4]}|{colours[n // 4 % 4]},{1900 + n}\n"
        for n in range(ITEMS)
    )
    log = "user,item,time\n"
    for user in range(PEOPLE):
        own = np.arange(user % 4, ITEMS, 4)
        history = rng.choice(own, rng.integers(4, 12), replace=False).tolist() + rng.integers(0, ITEMS, 2).tolist()
        log += "".join(f"u{user},{ids[item]},{1_600_000_000 + 3600 * at}\n" for at, item in enumerate(history))
    return items, log


def text_encoder() -> None:
    from engine.text.scratch import ScratchConfig, scratch

    titles = [[("title", f"The {word} thing {n}")] for n, word in enumerate(("red", "blue", "gold", "은"))]
    scratch(titles, Path("made"), ScratchConfig(vocabulary=300, dim=8, layers=1, heads=2, steps=2))
    (folder,) = (path.parent for path in Path("made").glob("scratch-*/scratch.json"))
    shutil.move(folder, "encoder")
    shutil.rmtree("made")


def language_model() -> None:
    import tokenizers
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=260, hidden_size=8, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=512, bos_token_id=256, eos_token_id=257,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained("base")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    words = {letter: number for number, letter in enumerate(alphabet)} | {"<s>": 256, "</s>": 257}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=words, merges=[]))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>")
    fast.save_pretrained("base")


# --- runs and bundles


@contextlib.contextmanager
def interrupted() -> Iterator[None]:
    """Ends what it trains within the second epoch, a tokenizer (which is only written between two) behind it, as ^C does."""
    save = checkpoint.save

    def stop(path: Path, model: Any, optimiser: Any, state: checkpoint.State, *rest: Any) -> None:
        save(path, model, optimiser, state, *rest)
        if path.name == "checkpoint.safetensors" and (state.epoch, state.step) in ((1, 1), (2, 0)):
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "save", stop)
        yield


def command(name: str, out: str) -> list[str]:
    """What trains, or fits, the recipe of that name into runs/<out>."""
    words = [name, "--recipe", f"recipes/{name}.toml", "--dataset", "data/golden", "--out", f"runs/{out}"]
    return ["tokenize" if name in TOKENIZERS else "train", *words, "--device", "cpu"]


def trainings() -> None:
    Path("recipes").mkdir()
    for name, text in (TOKENIZERS | MODELS).items():
        if name not in COUNTED and name in MODELS:
            text += TRAINED
        if name in ("rqvae", "letter", "residual-kmeans"):
            text = text.replace("[tokenizer]", '[words]\nencoder = "encoder"\n[tokenizer]')
        Path(f"recipes/{name}.toml").write_text(text.replace('"\n[', '"\n[', 1), "utf-8")
    order = ["sasrec", *TOKENIZERS, *(name for name in MODELS if name != "sasrec")]
    for name in order:
        run(*command(name, name))
        if name in MODELS:
            run("evaluate", f"runs/{name}", *(["--protocol", "u100"] if name in MARKED else []))
        if name not in COUNTED and (name in MODELS or name in ("rqvae", "letter")):
            with interrupted():
                run(*command(name, f"{name}-cut"), code=130)
            assert not checkpoint.read_state(Path(f"runs/{name}-cut/checkpoint.safetensors")).finished
        if name != "lora":  # it has no form outside PyTorch
            run("export", f"runs/{name}", "--to", "exports/golden")
    run("embed", "--dataset", "data/golden", "--encoder", "encoder", "--to", "exports/golden", "--name", "words")
    Path("layers.toml").write_text(STUDY)
    run("study", "layers.toml", "--dataset", "data/golden", "--to", "exports/golden", "--runs", "studies")
    shutil.rmtree("studies")


# --- the store


def visitors(items: str, log: str) -> None:
    """Anna's upload, trained once, to be trained once more; what she and a visitor saved."""
    with pytest.MonkeyPatch.context() as patch, own_home(Path("home").absolute(), patch):
        patch.setattr(Runner, "_command", _here)
        patch.setenv("SEQSCOPE_KEEP_DAYS", "90000")
        store, staged, limits = open_store(), home.here().stage(), UploadLimits.of_environment()
        readings = {}
        parts: dict[FileKind, str] = {"catalogue": items, "log": log}
        for what, text in parts.items():
            files.keep(staged, what, text.encode(), limits)
            readings[what] = files.guess(staged, what, limits).reading
        checked = files.check(staged, readings, limits)
        files.accept(staged, checked, without_bad_rows=True)
        dataset = store.datasets.add(
            OWNER, "Things", staged=staged, state="checked", rows_items=checked.items, rows_events=checked.events,
            reading={what: one.model_dump(mode="json") for what, one in readings.items()}, fingerprint=checked.fingerprint,
        )  # fmt: skip
        carried_out(work.train(OWNER, dataset.id, [TrainingChoice(model="popularity")]).id, "done")
        folder = home.here().dataset(OWNER, dataset.id)
        words = ("report", "batch", "nowhere", "histories.csv", "--to", "lists.parquet")
        made = work.submit(
            OWNER, dataset.id, "batch", {"models": ["popularity"]},
            lambda id: kinds.batch(id, folder.path, home.root() / "jobs", words, title="Lists", owner=OWNER, dataset=dataset.id),
        )  # fmt: skip
        carried_out(made.id, "failed")
        store.histories.save(OWNER, dataset.id, "Odd ones", list(ODD.values()))
        store.histories.save(OWNER, "golden", "Wie früher", HISTORY)
        store.histories.save(VISITOR, "sample", "Two", ["alien-1979", "aliens-1986"])
        store.comparisons.save(OWNER, dataset.id, "Both", f"/?v=1&ds={dataset.id}&h=i1~i2&k=5")
        asked = document.Asked(history=["i1", *ODD.values()], k=5, title="Kept")
        report = build.build(Zoo.open(folder.exports), asked)
        store.reports.save(OWNER, dataset.id, "Kept", json.loads(document.write(report)))
        work.train(OWNER, dataset.id, [TrainingChoice(model="markov")])


def carried_out(job: str, state: str) -> None:
    """By a runner in this process; the store has heard of it when this returns."""
    runner = Runner(home.here().job(job))
    try:
        runner.run()
    except Failed as error:
        runner.fail(str(error))
    wait(lambda: open_store().file.ask("select state from job where id = ?", [job]) == [(state,)])


# --- the archive


LEFT_OUT = ("reserve", ".lock", "lock", "queue.lock")
"""Files of a running server or training."""


def pack(folder: Path) -> None:
    """Sorted, without times and owners: the same files give the same bytes."""
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for path in sorted(folder.rglob("*")):
            if path.name in LEFT_OUT:
                continue
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            if path.is_dir():
                entry.type, entry.mode = tarfile.DIRTYPE, 0o700
                archive.addfile(entry)
                continue
            content = path.read_bytes()
            if path.name in (LOG, status.FILE):  # an error names where it looked
                content = content.replace(str(folder).encode(), b"/srv/golden")
            assert str(folder).encode() not in content, f"{path} names this machine's folder"
            entry.size, entry.mode = len(content), 0o600
            archive.addfile(entry, io.BytesIO(content))


def make(folder: Path) -> None:
    torch.set_num_threads(1)
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "stand_in"))  # maps without UMAP
    with contextlib.chdir(folder):
        os.environ |= {"SEQSCOPE_HOME": f"{folder}/home", "SEQSCOPE_EXPORTS": f"{folder}/exports"}
        items, log = csv_files()
        Path("items.csv").write_text(items, "utf-8")
        Path("log.csv").write_text(log, "utf-8")
        named = ("--name", "golden", "--title", "Golden things", "--about", "Made for tests.", "--licence", "None")
        columns = ("--items", "items.csv", "--list-column", "categories", "--repeats", "first")
        run("data", "import", "log.csv", *columns, *named, "--out", "data/golden")
        text_encoder()
        language_model()
        trainings()
        run("report", "exports/golden", "--history", *HISTORY, "--to", "report", "--forms", "json", "--slow", "--rows")
        visitors(items, log)
        zoo = Zoo.open("exports/golden")
        np.savez_compressed(KEPT_ANSWERS, **answers(zoo))
        write_json(KEPT_STATES, [decoded(*address) for address in ADDRESSES])
    pack(folder)
    metrics()


def metrics() -> None:
    """metrics.json alone: of the exports that are committed now."""
    exports = Path(__file__).resolve().parents[2] / "exports"
    write_json(KEPT_METRICS, {dataset: printed(Zoo.open(exports / dataset)) for dataset in EMBEDDED})


if __name__ == "__main__":
    make(Path(sys.argv[1]).resolve(strict=True))
