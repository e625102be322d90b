"""The console command: exit codes, help, and what training may import."""

import argparse
import importlib
import io
import runpy
import subprocess
import sys
import textwrap
import types
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from engine import __version__, cli
from engine.errors import SeqscopeError, UsageError
from tests.training.tiny import write_log


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[argparse.Namespace], object]], None]:
    """stub(run) adds a command `stub` with one option --number that does what `run` does."""

    def install(run: Callable[[argparse.Namespace], object]) -> None:
        module = types.ModuleType("engine.commands.stub", "A command for this test.")
        module.configure = lambda parser: parser.add_argument("--number", type=int)  # type: ignore[attr-defined]
        module.run = run  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "engine.commands.stub", module)
        monkeypatch.setitem(cli.COMMANDS, "stub", "a command for this test")

    return install


def raising(error: BaseException) -> Callable[[argparse.Namespace], object]:
    def run(args: argparse.Namespace) -> object:
        raise error

    return run


ENDS: dict[str, tuple[Callable[[argparse.Namespace], object], int, str]] = {
    "done": (lambda args: None, 0, ""),
    "its own": (lambda args: 1, 1, ""),
    "what the user can mend": (raising(SeqscopeError("log.txt:3: two words.")), 1, "log.txt:3: two words."),
    "wrong use": (raising(UsageError("--number and --all")), 2, "--number and --all"),
    "interrupted": (raising(KeyboardInterrupt()), 130, "interrupted"),
    "no folder": (raising(NotADirectoryError(20, "Not a directory", "log.txt/run")), 1, "log.txt/run: Not a directory"),
    "a full disk": (raising(OSError(28, "No space left on device")), 1, "No space left on device"),
    "a link to itself": (
        raising(RuntimeError("Symlink loop from 'log.csv'")),
        1,
        "Symlink loop from 'log.csv': name another path.",
    ),
    "numpy": (lambda args: np.empty(1 << 50), 1, cli.BEYOND_MEMORY),
    "torch": (lambda args: torch.empty(1 << 50), 1, cli.BEYOND_MEMORY),
    "torch, more bytes than it can count": (lambda args: torch.empty(1 << 32, 1 << 30), 1, cli.BEYOND_MEMORY),
    "torch, more numbers than it can count": (lambda args: torch.empty(1 << 40, 1 << 40), 1, cli.BEYOND_MEMORY),
}
"""How a command ends → what it does, its code, and what it says."""


class TestExitCodes:
    @pytest.mark.parametrize(("run", "code", "said"), ENDS.values(), ids=ENDS)
    def test_how_it_ended_is_a_number_and_at_most_one_line(
        self,
        stub: Callable[..., None],
        capsys: pytest.CaptureFixture[str],
        run: Callable[[argparse.Namespace], object],
        code: int,
        said: str,
    ) -> None:
        stub(run)
        assert cli.main(["stub"]) == code
        assert capsys.readouterr().err == (said and f"seqscope: {said}\n")

    def test_a_terminal_that_lacks_a_sign_is_no_failure(
        self, stub: Callable[..., None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stub(lambda args: print("✓"))
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "latin-1"))
        assert cli.main(["stub"]) == 0

    def test_an_interruption_while_modules_are_read_is_one_line(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        class Interrupting:
            @staticmethod
            def find_spec(name: str, *_: object) -> None:
                if name == "engine.cli":
                    raise KeyboardInterrupt

        monkeypatch.delitem(sys.modules, "engine.cli")
        monkeypatch.setattr(sys, "meta_path", [Interrupting, *sys.meta_path])
        with pytest.raises(SystemExit, match="130"):
            runpy.run_module("engine", run_name="__main__")
        assert capsys.readouterr().err == "seqscope: interrupted\n"

    @pytest.mark.parametrize(
        ("argv", "said"),
        [
            ([], "COMMAND"),
            (["no-such-command"], "no-such-command"),
            (["stub", "--number", "three"], "invalid int value: 'three'"),
        ],
    )
    def test_wrong_use_is_2_and_shows_the_usage(
        self, stub: Callable[..., None], capsys: pytest.CaptureFixture[str], argv: list[str], said: str
    ) -> None:
        stub(lambda args: 0)
        assert cli.main(argv) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert said in captured.err
        assert "usage: seqscope" in captured.err

    def test_a_reader_that_went_away_is_1_without_a_word(self, root: Path) -> None:
        program = (
            "import sys, types; from engine import cli; stub = types.ModuleType('engine.commands.stub'); "
            "stub.configure = lambda parser: None; stub.run = lambda args: print('x' * 1_000_000); "
            "sys.modules[stub.__name__] = stub; cli.COMMANDS['stub'] = ''; sys.exit(cli.main(['stub']))"
        )
        with subprocess.Popen(
            [sys.executable, "-u", "-c", program], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout and process.stderr
            process.stdout.close()
            assert process.wait(60) == 1
            assert process.stderr.read() == b""

    def test_a_fault_of_the_program_keeps_its_traceback(self, stub: Callable[..., None]) -> None:
        stub(raising(ZeroDivisionError("a bug")))
        with pytest.raises(ZeroDivisionError):
            cli.main(["stub"])


def asked(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """What is printed where nothing is done."""
    with pytest.raises(SystemExit) as stop:
        cli.main(argv)
    assert stop.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("words", [["--to=--", "run"], ["--users=--", "run", "--to", "x"]])
def test_an_option_whose_value_is_two_dashes_is_wrong_use(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", *words]) == 2
    assert f"argument {words[0].removesuffix('=--')}: -- is no value" in capsys.readouterr().err


def test_the_manual_names_every_command_and_each_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    manual = asked(capsys, "--help")
    for name in cli.COMMANDS:
        assert f"\n    {name}" in manual
        shown = asked(capsys, name, "--help")
        description = importlib.import_module(f"engine.commands.{name.replace('-', '_')}").__doc__
        assert f"usage: seqscope {name}" in shown
        assert description and description.strip().splitlines()[0] in shown
    assert asked(capsys, "--version") == f"seqscope {__version__}\n"


# Run in a process of its own: as on a machine that has nothing but the packages in `allowed`.
ON_A_BARE_MACHINE = """
    import importlib, importlib.machinery, pkgutil, sys

    allowed = {allowed!r}

    class Bare(importlib.machinery.PathFinder):
        @classmethod
        def find_spec(cls, name, path=None, target=None):
            top = name.partition(".")[0]
            there = top in allowed or top in sys.stdlib_module_names or top.startswith("_")
            return super().find_spec(name, path, target) if there else None

    sys.meta_path[:] = [importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter, Bare]

    def everything_in(name):
        package = importlib.import_module(name)
        for inner in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{{name}}."):
            importlib.import_module(inner.name)

"""
OF_TORCH = {  # torch itself, and what it requires
    "torch", "torchgen", "functorch", "filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "networkx", "sympy",
    "setuptools", "pkg_resources", "typing_extensions",
}  # fmt: skip
FOR_TRAINING = OF_TORCH | {"numpy", "scipy", "pyarrow", "safetensors", "cython_runtime"}


def on_a_bare_machine(root: Path, allowed: set[str], program: str) -> subprocess.CompletedProcess[str]:
    start = textwrap.dedent(ON_A_BARE_MACHINE).format(allowed=allowed | {"engine"})
    command = [sys.executable, "-c", start + textwrap.dedent(program)]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


class TestImports:
    @pytest.mark.long
    def test_training_needs_torch_numpy_scipy_pyarrow_and_safetensors_alone(self, root: Path, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        write_log(tmp_path / "tiny", [rng.permutation(20)[:10].tolist() for _ in range(24)], 20)
        recipe = tmp_path / "short.toml"
        recipe.write_text('family = "sasrec"\n[training]\nepochs = 1\n')
        argv = ["train", "sasrec", "--dataset", str(tmp_path / "tiny"), "--recipe", str(recipe)]
        argv += ["--out", str(tmp_path / "run"), "--device", "cpu"]
        done = on_a_bare_machine(
            root,
            FOR_TRAINING,
            f"""
            from engine import cli
            assert cli.main({argv!r}) == 0
            for name in ("engine.cli", "engine.commands.train", "engine.training", "engine.models"):
                everything_in(name)
            foreign = {{name.partition(".")[0] for name in sys.modules}} - allowed - set(sys.stdlib_module_names)
            foreign -= {{"sitecustomize"}}  # what distributions add to their Python
            print(sorted(name for name in foreign if not name.startswith("_")))
            import duckdb  # is there, but not on this machine
            """,
        )
        assert done.stdout.splitlines()[-1] == "[]", done.stderr
        assert (tmp_path / "run" / "best.safetensors").is_file()
        assert done.returncode == 1 and "No module named 'duckdb'" in done.stderr

    def test_help_is_quick_because_nothing_heavy_is_imported(self, root: Path) -> None:
        program = """
            import engine.cli
            print(sorted({"torch", "numpy", "pyarrow", "duckdb"} & sys.modules.keys()))
        """
        done = on_a_bare_machine(root, set(), program)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "[]"
