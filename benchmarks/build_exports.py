"""Rebuild exports/films or exports/sample: train, evaluate and export the models and tokenizers of an embedded dataset.

    make exports DATASET=films
    python -m benchmarks.build_exports films [--runs build/runs] [--only sasrec bert4rec]

Interrupted, it goes on with the training that was under way. A run is trained again where its recipe changed, or that of a run
which it learns from. The new folder takes the place of the old one only when every bundle has been checked.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from engine.console import duration
from engine.data.dataset import Dataset
from engine.files import write_json
from engine.registry import MODELS
from engine.runtime import Zoo
from engine.runtime.studies import STUDIES
from engine.training import recipe as recipes

SPACES = ("minilm",)
"""Text encoders whose vectors of the items come along."""
FILE_LIMIT = 20_000_000
"""Bytes that one committed file may take."""


class Plan(NamedTuple):
    """What the folder of a dataset holds, in the order in which it is made. What a recipe learns from is made before it."""

    models: tuple[str, ...]
    tokenizers: tuple[str, ...]
    """LETTER's teacher, made before the first of them, judges them all."""
    generators: tuple[str, ...]
    limit: int
    """Bytes that the folder may take."""

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.models, *self.tokenizers, *self.generators)


TOKENIZERS = ("letter", "rqvae", "lc-rec-rqvae", "residual-kmeans")
GENERATORS = ("tiger", "letter-tiger", "lc-rec")
SIMPLE = ("popularity", "markov", "counting")
SETS = ("lightgcn", "ngcf", "mult-vae", "bpr-mf")
"""Models that read a history as a set."""
SHORT = ("hgn", "caser", "fpmc", "transrec")
"""Those that read the last item, or the last few, and know the person."""
PLANS = {
    "films": Plan(
        (*SIMPLE, "item-knn", "sasrec", "sasrec-time", "sasrec-bce", "hstu", "bert4rec", "attrec", *SHORT, *SETS, "recformer"),
        TOKENIZERS, GENERATORS, 135_000_000,
    ),
    "sample": Plan((*SIMPLE, "sasrec", "bert4rec", "attrec", "recformer"), TOKENIZERS, GENERATORS, 15_000_000),
}  # fmt: skip


class Builder:
    """Makes runs of one dataset below `runs`; `built.json` there keeps what each was made from and how long it took."""

    def __init__(self, dataset: str, runs: Path) -> None:
        self.dataset, self.data, self.runs = dataset, Path("data") / dataset, runs / dataset
        info = Dataset(self.data).info
        self.fingerprint, self.people = info.fingerprint, info.counts["users"]
        self.runs.mkdir(parents=True, exist_ok=True)
        self.ledger = self.runs / "built.json"
        self.keys: dict[str, str] = {}
        self.titles: dict[str, str] = {}

    def make(self, name: str) -> str:
        """Train or fit `name` and all that it learns from, where this has not been done; returns a digest of its sources."""
        if name in self.keys:
            return self.keys[name]
        tables = recipes.read(name, self.dataset, None, [], ())
        sources = [
            tables.get(table, {}).get(key)
            for table, key in (("model", "start"), ("model", "identifiers"), ("tokenizer", "teacher"))
        ]
        self.titles[name] = tables.pop("title", "")  # a model is not trained again for what it is called
        made_from = [self.fingerprint, tables, *(self.make(source) for source in sources if source)]
        key = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
        self.keys[name] = key
        before = self._built().get(name, {})
        changed = bool(before) and before["key"] != key
        seconds = 0.0 if changed or not before else before["seconds"]
        if changed or not before.get("finished"):
            began = time.monotonic()
            if changed:
                shutil.rmtree(self.runs / name, ignore_errors=True)
            self._note(name, key, seconds, finished=False)
            trained = tables["family"] in MODELS
            run("train" if trained else "tokenize", name, "--dataset", str(self.data), "--out", str(self.runs / name))
            if trained:
                run("evaluate", str(self.runs / name), "--protocol", "u100")
            seconds += time.monotonic() - began
            self._note(name, key, seconds, finished=True)
        print(f"{self.dataset}/{name}: made in {duration(seconds)}", flush=True)
        return key

    def _built(self) -> dict[str, dict[str, Any]]:
        return json.loads(self.ledger.read_text("utf-8")) if self.ledger.is_file() else {}

    def _note(self, name: str, key: str, seconds: float, *, finished: bool) -> None:
        # read anew: another process may have made other runs (--only) meanwhile
        write_json(
            self.ledger, self._built() | {name: {"key": key, "seconds": round(seconds, 1), "finished": finished}}
        )


def run(*words: str) -> None:
    """One command, in a process of its own: making a map changes how many threads its process trains with."""
    code = subprocess.run([sys.executable, "-m", "engine", *words], check=False).returncode
    if code:
        sys.exit(code)


def put_in_place(staged: Path, out: Path, plan: Plan) -> str:
    """Check the staged folder and let it take the place of `out`; returns what it holds, in words. Exits where it is refused."""
    if (out / STUDIES).is_dir():  # `seqscope study` made them, which takes longer than all of this
        shutil.copytree(out / STUDIES, staged / STUDIES)
    zoo = Zoo.open(staged, warm=True)
    for refusal in zoo.studies.refused:  # of another log
        (staged / STUDIES / refusal.file).unlink()
        print(f"left out {refusal}")
    sizes = {path: path.stat().st_size for path in staged.rglob("*") if path.is_file()}
    held = [*zoo.bundles, *zoo.tokenizations, *zoo.spaces]
    faults = [str(refusal) for refusal in zoo.refused]
    faults += [f"no {name}" for name in (*plan.names, *SPACES) if name not in held]
    faults += [f"{path} has {size / 1e6:.1f} MB" for path, size in sizes.items() if size > FILE_LIMIT]
    total = sum(sizes.values())
    if total > plan.limit:
        faults.append(f"{total / 1e6:.1f} MB in all (at most {plan.limit / 1e6:.0f})")
    if faults:
        sys.exit(f"{staged} was not put in place: " + "; ".join(faults))
    old = staged.with_name("old")
    shutil.rmtree(old, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    if out.exists():
        out.rename(old)
    staged.rename(out)
    return f"{len(zoo.bundles)} bundles, {len(zoo.tokenizations)} tokenizers, {len(zoo.spaces)} space, {total / 1e6:.1f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", choices=PLANS)
    parser.add_argument("--out", type=Path, help="default: exports/DATASET")
    parser.add_argument("--runs", type=Path, default=Path("build/runs"))
    parser.add_argument("--only", nargs="+", metavar="NAME", help="make these runs alone, and put nothing in place")
    args = parser.parse_args()
    plan = PLANS[args.dataset]
    began = time.monotonic()
    builder = Builder(args.dataset, args.runs)
    for name in args.only or plan.names:
        builder.make(name)
    if args.only:
        return
    staged = builder.runs / "exports"
    shutil.rmtree(staged, ignore_errors=True)
    for name in plan.names:
        title = ["--title", builder.titles[name]] if builder.titles[name] else []
        run("export", str(builder.runs / name), "--to", str(staged), "--users", str(builder.people), *title)
    for encoder in SPACES:
        run("embed", "--dataset", str(builder.data), "--encoder", encoder, "--to", str(staged))
    out = args.out or Path("exports") / args.dataset
    contents = put_in_place(staged, out, plan)
    print(f"{out}: {contents}, in {duration(time.monotonic() - began)}")


if __name__ == "__main__":
    main()
