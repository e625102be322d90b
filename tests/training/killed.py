"""Trains in processes of its own that are killed at random moments: python -m tests.training.killed FOLDER

One interpreter imports torch and forks the trainings, as an import takes longer than they do. Leaves, per model, a run that
nothing interrupted (whole-NAME) and one that was killed and taken up again (killed-NAME), and prints what happened as JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

from engine.data.dataset import Dataset
from engine.training import checkpoint
from engine.training.run import train
from tests.training.tiny import cycles, recipe, write_log

KILLS = {"sasrec": 2, "mult-vae": 1, "recformer": 1}
"""How often each is killed. With dropout and an average of the parameters, with a term that grows by the step, with rows encoded
anew every epoch."""
SETTINGS = {"epochs": 5, "batch_size": 8, "checkpoint_seconds": 0.0, "validate_every": 2}


def trains(name: str, data: Path, folder: Path) -> int:
    """The process that trains."""
    child = os.fork()
    if child:
        return child
    torch.set_num_threads(1)
    os.fsync = lambda file: None  # a killed process is no power cut, and disks are slow
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # progress
    try:
        train(
            recipe(name, optimiser={"average": 0.9} if name == "sasrec" else {}, training=SETTINGS),
            Dataset(data),
            folder,
            device="cpu",
        )
    except BaseException as error:
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stdout, flush=True)
        os._exit(1)
    os._exit(0)


def ended(child: int) -> bool:
    """Waits for the process; true where it came to its end by itself."""
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return False
    if os.WEXITSTATUS(status):
        sys.exit(os.WEXITSTATUS(status))
    return True


def steps(folder: Path) -> int:
    """Steps that the folder's checkpoint has behind it."""
    path = folder / "checkpoint.safetensors"
    return checkpoint.read_state(path).total_steps if path.exists() else 0


def main(base: Path) -> None:
    data = base / "data"
    torch.set_num_threads(1)
    optimiser = torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    optimiser.step()  # the first step imports half of torch: once for all processes
    if os.fork() == 0:  # pyarrow has threads, which a fork would not take along
        write_log(data, cycles(40, 30), 30)
        os._exit(0)
    os.wait()
    found = {}
    for name, kills in KILLS.items():
        ended(trains(name, data, base / f"whole-{name}"))
        folder, chance, states = base / f"killed-{name}", random.Random(name), []
        for _ in range(kills):
            before = steps(folder)
            child = trains(name, data, folder)
            # by progress, not by the clock: a busy machine must not turn kills into early or late ones
            wanted = before + chance.randint(1, 3)
            while steps(folder) < wanted and os.waitpid(child, os.WNOHANG) == (0, 0):
                time.sleep(0.002)
            time.sleep(chance.uniform(0, 0.02))
            os.kill(child, signal.SIGKILL)
            if ended(child):
                sys.exit(f"{name} ended before it was killed")
            state = checkpoint.read_state(folder / "checkpoint.safetensors")
            states.append((state.epoch, state.step))
        ended(trains(name, data, folder))
        found[name] = states
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
