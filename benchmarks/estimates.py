"""Are estimates of training time right? Each is compared with the real thing: trained, evaluated and exported in
processes of their own, to the last epoch (early stopping would only make it less), and evaluated and exported once more in forked
ones, as by a job.

    python -m benchmarks.estimates [--dataset data/sample] [sasrec=6 bert4rec=4 …]       a model and its epochs

Passes where both real times are within a factor of 2 of what was estimated. A machine that is busy with other things at one of
the two times and not at the other spoils the comparison.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from app.jobs.estimate import JobEstimate
from engine.fork_server import ForkServer

DEFAULT = ("sasrec=6", "bert4rec=4", "attrec=4", "markov=0")
FACTOR = 2.0


def run(*words: str) -> tuple[float, str]:
    """Seconds and output of one command."""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "engine", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return time.monotonic() - began, done.stdout


def forked(server: ForkServer, folder: Path, *words: str) -> float:
    """Seconds of one command, as a job begins its second and its third."""
    log = folder / "log.txt"
    log.touch()
    began = time.monotonic()
    if server.begin("engine", words, Path.cwd(), log, dict(os.environ)).wait():
        sys.exit(log.read_text("utf-8"))
    return time.monotonic() - began


def compare(model: str, epochs: int, dataset: str, work: Path, server: ForkServer) -> dict[str, tuple[float, float]]:
    """(estimated, real) seconds by part, and of all three together on the command line and in a job."""
    folder = str(work / model)
    settings = [f"training.epochs={epochs}", "training.patience=0"] if epochs else []
    words = [word for setting in settings for word in ("--set", setting)]
    _, output = run("train", model, "--dataset", dataset, "--out", folder, *words, "--estimate")
    estimate = JobEstimate.model_validate_json(output)
    third = estimate.start / 3
    train = run("train", model, "--dataset", dataset, "--out", folder, *words)[0]
    evaluate = run("evaluate", folder)[0]
    export = run("export", folder, "--to", str(work / "exports"))[0]
    of_job = train + forked(server, work, "evaluate", folder)
    of_job += forked(server, work, "export", folder, "--to", str(work / "of-job"))
    return {
        "train": (third + estimate.train + estimate.validation, train),
        "evaluate": (third + estimate.evaluate, evaluate),
        "export": (third + estimate.export, export),
        "all": (estimate.seconds, train + evaluate + export),
        "as a job": (estimate.of_job().seconds, of_job),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=DEFAULT, metavar="MODEL=EPOCHS")
    parser.add_argument("--dataset", default="data/sample")
    args = parser.parse_args()
    server = ForkServer(os.environ)
    while not server.is_ready():
        time.sleep(0.1)
    fits = True
    with tempfile.TemporaryDirectory(prefix="seqscope-estimates-") as work:
        for entry in args.models:
            model, _, epochs = entry.partition("=")
            for part, (estimated, real) in compare(model, int(epochs or 0), args.dataset, Path(work), server).items():
                share = real / estimated
                print(f"{model:<12} {part:<9} estimated {estimated:7.1f} s, real {real:7.1f} s, {share:.2f} of it")
                if part in ("all", "as a job"):
                    fits &= 1 / FACTOR <= share <= FACTOR
    server.close()
    sys.exit(not fits)


if __name__ == "__main__":
    main()
