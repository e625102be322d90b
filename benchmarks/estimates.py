"""Are estimates of training time right? Each is compared with the real thing: trained, evaluated and exported, in processes of
their own, to the last epoch (early stopping would only make it less).

    python -m benchmarks.estimates [--dataset data/sample] [sasrec=6 bert4rec=4 …]       a model and its epochs

Passes where every real time is within a factor of 2 of its estimate. A machine that is busy with other things at one of the two
times and not at the other spoils the comparison.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DEFAULT = ("sasrec=6", "bert4rec=4", "attrec=4", "markov=0")
FACTOR = 2.0


def run(*words: str) -> tuple[float, str]:
    """Seconds and output of one command."""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "engine", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return time.monotonic() - began, done.stdout


def compare(model: str, epochs: int, dataset: str, work: Path) -> tuple[dict[str, float], dict[str, float]]:
    """(estimated, real) seconds by part."""
    folder = str(work / model)
    settings = [f"training.epochs={epochs}", "training.patience=0"] if epochs else []
    words = [word for setting in settings for word in ("--set", setting)]
    _, said = run("train", model, "--dataset", dataset, "--out", folder, *words, "--estimate")
    found = json.loads(said)
    third = found["start"] / 3
    estimated = {
        "train": third + found["train"] + found["validate"],
        "evaluate": third + found["evaluate"],
        "export": third + found["export"],
    }
    real = {
        "train": run("train", model, "--dataset", dataset, "--out", folder, *words)[0],
        "evaluate": run("evaluate", folder)[0],
        "export": run("export", folder, "--to", str(work / "exports"))[0],
    }
    return estimated, real


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=DEFAULT, metavar="MODEL=EPOCHS")
    parser.add_argument("--dataset", default="data/sample")
    args = parser.parse_args()
    fits = True
    with tempfile.TemporaryDirectory(prefix="seqscope-estimates-") as work:
        for entry in args.models:
            model, _, epochs = entry.partition("=")
            estimated, real = compare(model, int(epochs or 0), args.dataset, Path(work))
            for part in real:
                print(f"{model:<12} {part:<9} estimated {estimated[part]:7.1f} s, real {real[part]:7.1f} s")
            whole, took = sum(estimated.values()), sum(real.values())
            fits &= 1 / FACTOR <= took / whole <= FACTOR
            print(f"{model:<12} {'all':<9} estimated {whole:7.1f} s, real {took:7.1f} s, {took / whole:.2f} of it")
    sys.exit(not fits)


if __name__ == "__main__":
    main()
