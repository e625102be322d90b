"""What jobs of tests do: python -m tests.jobs.work ACTION …, as an engine command would, and no slower than told.

count FILE N SECONDS    writes 1 … N into FILE, a line each, and goes on where it was; tells how far it is
count FILE N SECONDS G  the same, but half of them are written only when there is a file G
alone FOLDER SECONDS    fails where another of its kind is at work in FOLDER; ends when another has failed, or after SECONDS
fill FOLDER             writes into it without an end
say TEXT                prints it
lacks TEXT              succeeds, and says what its result lacks
fail TEXT               as an engine command fails
die SIGNAL              by its own hand
environment FILE        writes the names of its environment
"""

import fcntl
import json
import os
import sys
import time
from pathlib import Path


def tell(done: int, of: int) -> None:
    path = os.environ["SEQSCOPE_PROGRESS"]
    staged = Path(f"{path}.part")
    staged.write_text(json.dumps({"words": f"line {done}", "done": done, "of": of, "left": 0.1 * (of - done)}))
    staged.replace(path)


def count(file: str, most: str, seconds: str, gate: str = "") -> int:
    path = Path(file)
    with path.with_suffix(".pid").open("a") as pids:
        pids.write(f"{os.getpid()}\n")
    done = len(path.read_text().splitlines()) if path.exists() else 0
    for number in range(done + 1, int(most) + 1):
        while gate and number > int(most) // 2 and not Path(gate).exists():
            time.sleep(0.01)
        time.sleep(float(seconds))
        with path.open("a") as out:
            out.write(f"{number}\n")
        tell(number, int(most))
    return 0


def alone(folder: str, seconds: str) -> int:
    with (Path(folder) / "alone").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("seqscope: somebody else is at work", file=sys.stderr)
            (Path(folder) / "refused").touch()
            return 1
        until = time.monotonic() + float(seconds)
        while time.monotonic() < until and not (Path(folder) / "refused").exists():
            time.sleep(0.01)
        file.write(f"{os.getpid()}\n")
    return 0


def main() -> int:
    action, *words = sys.argv[1:]
    if action == "count":
        return count(*words)
    if action == "alone":
        return alone(*words)
    if action == "fill":
        Path(words[0]).mkdir(parents=True)
        with (Path(words[0]) / "file").open("ab") as out:
            while out.write(b"x" * 50_000):
                time.sleep(0.05)
    if action == "lacks":
        Path(os.environ["SEQSCOPE_PROGRESS"]).write_text(json.dumps({"warnings": words}))
    if action == "fail":
        print("something before", file=sys.stderr)
        print(f"seqscope: {words[0]}", file=sys.stderr)
        return 1
    if action == "die":
        os.kill(os.getpid(), int(words[0]))
    if action == "environment":
        Path(words[0]).write_text("\n".join(os.environ))
    print(*words)
    return 0


if __name__ == "__main__":
    sys.exit(main())
