"""Rebuild exports/sample: simulate the log, train, evaluate and export its models and tokenizers. `make exports` runs this.

    python -m benchmarks.build_sample [--out exports/sample] [--runs build/sample-runs] [--keep-data]

Interrupted, it goes on with the training that was under way. The new folder takes the place of the old one only when every
bundle has been checked.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

from engine.console import duration
from engine.data.dataset import Dataset
from engine.runtime import Zoo
from engine.runtime.studies import STUDIES
from engine.training.recipe import RECIPES

MODELS = ("sasrec", "bert4rec", "attrec", "recformer", "markov", "popularity")
STAGES = {"recformer": ("recformer-pretrained", "recformer-stage1"), "rqvae": ("sasrec-bce",)}
"""Runs that come before a model or tokenizer, one after the other: LETTER's teacher judges all tokenizers."""
TOKENIZERS = ("rqvae", "letter", "lc-rec-rqvae", "residual-kmeans")
"""After the models."""
GENERATORS = ("tiger", "letter-tiger", "lc-rec")
"""After the tokenizers, whose identifiers they write."""
SPACES = ("minilm",)
"""Text encoders whose vectors of the items come along."""
LIMIT = 30_000_000
"""Bytes that the committed folder may take."""


def run(*words: str) -> None:
    """One command, in a process of its own: making a map changes how many threads its process trains with."""
    code = subprocess.run([sys.executable, "-m", "engine", *words], check=False).returncode
    if code:
        sys.exit(code)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data/sample"))
    parser.add_argument("--out", type=Path, default=Path("exports/sample"))
    parser.add_argument("--runs", type=Path, default=Path("build/sample-runs"))
    parser.add_argument("--keep-data", action="store_true", help="use the log as it is instead of simulating it again")
    args = parser.parse_args()
    began = time.monotonic()
    if not args.keep_data:
        run("sample", "build", "--out", str(args.data))
    # other data or other recipes are other trainings: they get a folder of their own, and an interrupted one goes on in its own
    key = hashlib.sha256(Dataset(args.data).info.fingerprint.encode())
    for recipe in sorted((RECIPES / "sample").glob("*.toml")):
        key.update(recipe.read_bytes())
    runs = args.runs / key.hexdigest()[:12]
    staged = runs / "exports"
    shutil.rmtree(staged, ignore_errors=True)
    for name in (*MODELS, *TOKENIZERS, *GENERATORS):
        folder = str(runs / name)
        verb = "tokenize" if name in TOKENIZERS else "train"
        for stage in STAGES.get(name, ()):
            run("train", stage, "--dataset", str(args.data), "--out", str(runs / stage))
        run(verb, name, "--dataset", str(args.data), "--out", folder)
        if verb == "train":
            run("evaluate", folder, "--protocol", "u100")
        run("export", folder, "--to", str(staged))
    for encoder in SPACES:
        run("embed", "--dataset", str(args.data), "--encoder", encoder, "--to", str(staged))
    if (args.out / STUDIES).is_dir():  # `seqscope study` made them, which takes longer than all of this
        shutil.copytree(args.out / STUDIES, staged / STUDIES)
    zoo = Zoo.open(staged, warm=True)
    for refusal in zoo.studies.refused:  # of another log
        (staged / STUDIES / refusal.file).unlink()
        print(f"left out {refusal}")
    size = sum(path.stat().st_size for path in staged.rglob("*") if path.is_file())
    complete = set(zoo.bundles) == {*MODELS, *GENERATORS} and set(zoo.tokenizations) == set(TOKENIZERS)
    complete &= set(zoo.spaces) == set(SPACES)
    if zoo.refused or not complete or size > LIMIT:
        found = sorted([*zoo.bundles, *zoo.tokenizations, *zoo.spaces])
        sys.exit(f"not put in place: {zoo.refused or ''} {found} {size / 1e6:.1f} MB (at most {LIMIT / 1e6:.0f})")
    old = runs / "old"
    shutil.rmtree(old, ignore_errors=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    if args.out.exists():
        args.out.rename(old)
    staged.rename(args.out)
    what = (
        f"{len(zoo.bundles)} bundles, {len(zoo.tokenizations)} tokenizers, {len(zoo.spaces)} space, {size / 1e6:.1f} MB"
    )
    print(f"{args.out}: {what}, in {duration(time.monotonic() - began)}")


if __name__ == "__main__":
    main()
