"""The console command ``seqscope``: a table of sub-commands, each imported only when it is called. The app adds its own to it
through entry points (`GROUP`), so that the engine never needs to know of the app.

Exit codes: 0 done, 1 failed (one message on standard error), 2 wrong use, 130 interrupted.
"""

import argparse
import importlib
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine import __version__
from engine.errors import SeqscopeError, UsageError, of_system
from engine.plugins import points, take

# name -> one line for --help. The module in engine/commands offers `configure(parser)` and `run(args) -> int`.
COMMANDS: dict[str, str] = {
    "data": "import, fetch and describe datasets",
    "catalogue": "make a dataset of a catalogue that has no log",
    "embed": "make vectors of a catalogue's words",
    "train": "train a model on a prepared dataset; resumes where it was interrupted",
    "tokenize": "give items identifiers of codes, for models that generate them",
    "evaluate": "rank every test user's held-out item and print the metrics",
    "export": "write trained models as bundles that the app opens",
    "baselines": "fit, evaluate and export the models that need no training",
    "zero-shot": "apply a model that reads words to a catalogue it was never trained on",
    "study": "train variants that differ in one thing, and compare them over the same users",
    "cards": "print what models and tokenizers declare of themselves",
    "sample": "make the embedded datasets, or simulated ones for load tests",
    "doctor": "say what this machine has and what is missing for what",
}

BEYOND_MEMORY = (
    "This needs more memory than there is. Make the model or its batches smaller (--set model.dim=…, training.batch_size=…), or "
    "take a machine with more."
)
"""What is said where memory ran out, by numpy or by torch."""
GROUP = "seqscope.commands"
"""Entry points of other packages that add a command: its name → a module with `configure`, `run` and HELP, one line."""

MANUAL = """\
Train sequential recommenders under one frozen protocol and export each as a portable bundle.

A first session:
  seqscope doctor                                        what this machine can do
  seqscope data import ml-1m.txt --source user-item --out data/ml-1m
  seqscope data describe data/ml-1m
  seqscope train sasrec --dataset data/ml-1m             settings: engine/recipes/ml-1m/sasrec.toml
  seqscope evaluate runs/ml-1m/sasrec
  seqscope export runs/ml-1m/sasrec --to exports/ml-1m   then: make run
"""


class Parser(argparse.ArgumentParser):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.register("type", Path, _path)

    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(f"{message}\nusage: {self.format_usage().removeprefix('usage: ').strip()}")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Python 3.11 takes a value -- for the end of the options, and has a traceback where no other value is left."""
        if action.option_strings and "--" in arg_strings:
            self.error(f"argument {'/'.join(action.option_strings)}: -- is no value")
        return super()._get_values(action, arg_strings)


def _path(text: str) -> Path:
    """An empty one, such as a variable that a shell does not know, would be the working folder."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty; the working folder is called .")
    return Path(text)


def build_parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """The parser for `argv`; only the sub-command that `argv` names has its module imported and its options added."""
    parser = Parser(prog="seqscope", description=MANUAL, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"seqscope {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    named = next((word for word in argv if not word.startswith("-")), None)
    every = {**dict.fromkeys(point.name for point in points(GROUP) if named not in (None, point.name)), **COMMANDS}
    modules: dict[str, Any] = {}

    def add(name: str, module: Any) -> None:
        if name in COMMANDS:
            raise SeqscopeError("there is a command of this name")
        if missing := [entry for entry in ("HELP", "configure", "run") if not hasattr(module, entry)]:
            raise SeqscopeError(f"it has no {' and no '.join(missing)}")
        every[name], modules[name] = module.HELP, module

    take(GROUP, add, only=named)  # all of them where the list of commands is asked for
    for name, help_line in every.items():
        if name != named:
            commands.add_parser(name, help=help_line)
            continue
        command = modules.get(name) or importlib.import_module(f"engine.commands.{name.replace('-', '_')}")
        sub = commands.add_parser(
            name, help=help_line, description=command.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        command.configure(sub)
        sub.set_defaults(carry_out=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        # As standard error has it: not every terminal's encoding has a ✓
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        args = build_parser(argv).parse_args(argv)
        return int(args.carry_out(args) or 0)
    except UsageError as error:
        print(f"seqscope: {error}", file=sys.stderr)
        return 2
    except SeqscopeError as error:
        print(f"seqscope: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        print(f"seqscope: {of_system(error)}", file=sys.stderr)
        return 1
    except (MemoryError, RuntimeError) as error:
        looped = str(error).startswith("Symlink loop")  # as pathlib has it before Python 3.13
        if not (looped or _beyond_memory(error)):
            raise
        print(f"seqscope: {f'{error}: name another path.' if looped else BEYOND_MEMORY}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("seqscope: interrupted", file=sys.stderr)
        return 130


def _beyond_memory(error: Exception) -> bool:
    """Whether numpy or torch, which raises RuntimeErrors of several kinds, lacks the memory, or cannot count it."""
    return isinstance(error, MemoryError) or any(
        sign in str(error)
        for sign in ("allocate memory", "out of memory", "calculation overflow", "multiplication overflow")
    )


if __name__ == "__main__":
    sys.exit(main())
