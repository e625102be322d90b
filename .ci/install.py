"""Fills an environment with the packages of pyproject.toml, in the versions of requirements.lock.

    python .ci/install.py .venv EXTRA …        with these extras; OPTIONAL ones are left out where they cannot be had
    python .ci/install.py .venv --lock         renews requirements.lock, for every platform

uv installs where it can be had, pip where not. uv reads no configuration of pip's, so it is handed on: indexes, find-links,
certificates, proxies. A machine without a GPU gets torch without CUDA, where the index of such builds can be reached.
Runs from the repository's root on any Python from 3.11 on; needs nothing else. An environment whose Python does not work, or
whose installation was interrupted, is made again.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

LOCK = Path("requirements.lock")
UV = "uv==0.13.9"
OPTIONAL = {"text": "The pretrained text encoder could not be installed; everything else works without it."}
"""Extras that are a help, not a need → what is said without them."""
WITHOUT_CUDA = "https://download.pytorch.org/whl/cpu"
PATIENCE = 5.0
"""Seconds for that index to answer."""
ARGUMENTS = {name: f"--{name}" for name in ("index-url", "extra-index-url", "find-links", "keyring-provider")}
ARGUMENTS |= {"trusted-host": "--allow-insecure-host", "constraint": "--constraints"}
"""Option of pip → argument of uv, given once for each value."""
VARIABLES = {
    "cert": ("SSL_CERT_FILE",),
    "client-cert": ("SSL_CLIENT_CERT",),
    "proxy": ("HTTP_PROXY", "HTTPS_PROXY"),
    "default-timeout": ("UV_HTTP_TIMEOUT",),
    "timeout": ("UV_HTTP_TIMEOUT",),
}
"""Option of pip → variables that uv reads."""


def pip_options(listed: str) -> dict[str, str]:
    """Option → value, of what `pip config list` prints: what files say of all commands, of `pip install`, then variables."""
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listed.splitlines():
        key, equals, value = line.partition("=")
        section, _, name = key.partition(".")
        if equals and section in sections:
            sections[section][name] = str(ast.literal_eval(value))
    return sections["global"] | sections["install"] | sections[":env:"]


def uv_arguments(options: Mapping[str, str]) -> list[str]:
    """What tells uv the same as `options` tell pip."""
    arguments = ["--index-strategy", "unsafe-best-match"]  # as pip: the best version of all indexes
    for name, argument in ARGUMENTS.items():
        arguments += [word for value in options.get(name, "").split() for word in (argument, value)]
    return arguments + ["--no-index"] * (options.get("no-index", "").lower() in ("1", "true", "yes", "on"))


def uv_variables(options: Mapping[str, str]) -> dict[str, str]:
    return {variable: options[name] for name, each in VARIABLES.items() if name in options for variable in each}


def without_hashes(lock: str) -> str:
    """For pip, which takes hashes of all packages or of none: torch, which has a hash for each of its builds, has none here."""
    return re.sub(r" \\\n(?: +--hash=\S+(?: \\)?\n?)+", "\n", lock)


def locked(compiled: str) -> str:
    """requirements.lock of what `uv pip compile` prints."""
    head = "# Every version that was tested, and the hashes of its files; constraints for every platform. Made by `make lock`.\n"
    head += "# torch has none: its builds with and without CUDA differ, and each names the accelerator's packages it needs.\n"
    pins = re.split(r"^(?=\w)", compiled, flags=re.MULTILINE)[1:]
    kept = [without_hashes(pin) if pin.startswith("torch==") else pin for pin in pins]
    return head + "".join(pin for pin in kept if not re.match(r"(nvidia|cuda)-|triton==", pin))


def has_gpu() -> bool:
    """Whether NVIDIA's driver is there."""
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None


def reachable(index: str) -> bool:
    try:
        with urllib.request.urlopen(f"{index}/torch/", timeout=PATIENCE):
            return True
    except (OSError, ValueError):
        return False


def run(*words: object) -> subprocess.CompletedProcess[str]:
    """The command, with what it said; code 127 where there is no such program."""
    try:
        return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    except OSError as error:
        return subprocess.CompletedProcess([], 127, "", str(error))


class Environment:
    def __init__(self, folder: Path) -> None:
        """Made where it is missing, where its Python or pip does not work, or where an installation was interrupted.
        Raises SystemExit where it cannot be made."""
        self.python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        self.unfinished = folder / ".unfinished"
        """There while packages are installed."""
        unsound = run(self.python, "-c", "import sys, pip; sys.exit(sys.version_info < (3, 11))").returncode
        if unsound or self.unfinished.exists():
            made = run(sys.executable, "-m", "venv", "--clear", folder)
            if made.returncode:
                raise SystemExit(f"{made.stdout}{made.stderr}make: {folder} could not be made; the reason stands above")
        self.pip = (self.python, "-m", "pip", "--disable-pip-version-check")
        self.options = pip_options(run(*self.pip, "config", "list").stdout)
        os.environ.update(uv_variables(self.options))

    def uv(self, *words: object) -> bool:
        """Whether uv was there, or could be had, and succeeded. Raises SystemExit where a file is not the one that was tested."""
        uv = (self.python, "-m", "uv", "pip")
        if run(*uv, "--version").returncode and run(*self.pip, "install", "--only-binary=:all:", UV).returncode:
            return False
        done = run(*uv, *words)
        if "initialize cache" in done.stderr:  # containers like to have a HOME that cannot be written
            done = run(*uv, *words, "--no-cache")
        print(done.stderr, end="", file=sys.stderr)
        if "Hash mismatch" in done.stderr:
            raise SystemExit(f"make: nothing was installed, because a file is another one than {LOCK} names")
        return done.returncode == 0

    def install(self, extras: list[str]) -> None:
        """Raises SystemExit where it cannot be done."""
        self.unfinished.touch()
        needs = [extra for extra in extras if extra not in OPTIONAL]
        if not self._install(extras):
            if needs == extras or not self._install(needs):
                where = "they come from PyPI, or from where pip's configuration says"
                raise SystemExit(f"make: the packages could not be installed; the reason stands above ({where})")
            print(*(OPTIONAL[extra] for extra in extras if extra in OPTIONAL), sep="\n")
        self.unfinished.unlink()

    def _install(self, extras: list[str]) -> bool:
        project = f".[{','.join(extras)}]" if extras else "."  # pip does not know .[]
        builds = reachable(WITHOUT_CUDA)
        words = [*uv_arguments(self.options), *(["--torch-backend=auto"] if builds else [])]
        if self.uv("install", "-q", "--python", self.python, *words, "-c", LOCK, "-e", project):
            return True
        print("pip installs in place of uv, which takes some minutes and checks no hashes ...", flush=True)
        words = ["--extra-index-url", WITHOUT_CUDA] if builds and not has_gpu() and sys.platform != "darwin" else []
        with tempfile.TemporaryDirectory() as folder:
            pins = Path(folder, "pins.txt")
            pins.write_text(without_hashes(LOCK.read_text("utf-8")), "utf-8")
            done = run(*self.pip, "install", "-q", *words, "-c", pins, "-e", project)
        print(done.stderr, end="", file=sys.stderr)
        return done.returncode == 0

    def lock(self) -> None:
        """Raises SystemExit where it cannot be done."""
        others = ("find-links", "extra-index-url")  # have files of some platforms only
        options = {name: value for name, value in self.options.items() if name not in others}
        how = (
            "--universal",
            "--python-version",
            "3.11",
            "--all-extras",
            "--upgrade",
            "--generate-hashes",
            "--no-annotate",
        )
        with tempfile.TemporaryDirectory() as folder:
            compiled = Path(folder, "compiled.txt")
            if not self.uv("compile", "-q", *how, *uv_arguments(options), "pyproject.toml", "-o", compiled):
                raise SystemExit("make: the versions could not be chosen; the reason stands above")
            LOCK.write_text(locked(compiled.read_text("utf-8")), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment", type=Path)
    parser.add_argument("extras", nargs="*")
    parser.add_argument("--lock", action="store_true")
    args = parser.parse_args()
    start = time.monotonic()
    environment = Environment(args.environment)
    if args.lock:
        environment.lock()
        return
    print(f"Installing the pinned packages into {args.environment} ...", flush=True)
    environment.install(args.extras)
    print(f"Installed in {time.monotonic() - start:.0f} s.")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("make: interrupted; the same command installs anew")
    except OSError as error:
        sys.exit(f"make: the packages could not be installed ({error})")
