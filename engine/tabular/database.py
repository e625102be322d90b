"""DuckDB as the child uses it: in memory, bounded, with nothing of the machine in reach but the folder of this step."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb

from engine.errors import Refused
from engine.tabular.limits import MB, Limits

_FOR_PYTHON = 128 * MB  # of the memory that a step may take
TOO_LARGE = (
    "Reading the file takes more memory or disk than one upload may have. Upload a part of it, or leave out long texts."
)


@contextlib.contextmanager
def connect(work: Path, limits: Limits, *, readable: Sequence[Path] = ()) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database of its own; what does not fit into memory goes to files in `work`. readable: files beside it."""
    con = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{max(96, (limits.memory - _FOR_PYTHON) // MB)}MB",
            "threads": limits.threads,
            "temp_directory": str(work / "spill"),
            "max_temp_directory_size": f"{limits.disk // MB}MB",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            # A Python variable must never stand in for a table that a query names.
            "python_enable_replacements": False,
        },
    )
    try:
        con.execute("SET TimeZone = 'UTC'")  # the zone of this machine must not decide what a date means
        con.execute(f"SET allowed_directories = [{sql(f'{work}/')}]")
        con.execute(f"SET allowed_paths = [{', '.join(sql(str(path)) for path in readable)}]")
        con.execute("SET enable_external_access = false")
        con.execute("SET lock_configuration = true")
        yield con
    except duckdb.OutOfMemoryException:
        raise Refused(TOO_LARGE)
    finally:
        con.close()


def sql(text: str) -> str:
    """`text` as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def sql_path(path: Path) -> str:
    """`path` as an SQL string literal that means this file, whatever wildcards its name contains."""
    return sql(re.sub(r"[*?\[]", lambda match: f"[{match[0]}]", str(path)))


def value(con: duckdb.DuckDBPyConnection, query: str) -> int:
    """The one number that a query finds; 0 for NULL."""
    return int(con.execute(query).fetchall()[0][0] or 0)
