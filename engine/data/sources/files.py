"""Find the files of a source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.errors import SeqscopeError


def only_file(paths: Sequence[Path], name: str, source: str) -> Path:
    """The file `name` where one folder was given, else the one file that was given, whatever it is called."""
    if len(paths) != 1:
        raise SeqscopeError(f"{source} reads one folder or one {name}, not {len(paths)} paths.")
    path = paths[0]
    if not path.is_dir():
        if not path.exists():
            raise SeqscopeError(f"{path} does not exist.")
        return path
    if not (path / name).is_file():
        raise SeqscopeError(f"{path} holds no {name}, which {source} needs; it holds {listing(path)}.")
    return path / name


def matching_file(folder: Path, pattern: str, source: str) -> Path:
    """The one file of `folder` that matches."""
    matches = sorted(path for path in folder.glob(pattern) if path.is_file())
    if len(matches) == 1:
        return matches[0]
    description = f"no {pattern}" if not matches else f"several {pattern} ({', '.join(path.name for path in matches)})"
    raise SeqscopeError(f"{folder} holds {description}; {source} needs one. Name the file instead of the folder.")


def beside(path: Path, *names: str) -> Path | None:
    """The first of `names` that stands in the folder of `path`."""
    return next((path.parent / name for name in names if (path.parent / name).is_file()), None)


def listing(folder: Path, limit: int = 8) -> str:
    names = sorted(path.name for path in folder.iterdir())
    return (", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")) or "nothing"
