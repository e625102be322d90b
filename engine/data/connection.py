"""DuckDB as an import uses it: bounded memory, its own scratch folder, nothing from the network."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import duckdb

from engine.errors import SeqscopeError


@contextlib.contextmanager
def connect(folder: Path, *, memory: str, threads: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in `folder`, which also takes what does not fit into `memory`; errors become messages."""
    try:
        con = duckdb.connect(
            str(folder / "import.duckdb"),
            config={
                "memory_limit": memory,
                "threads": threads,
                "temp_directory": str(folder / "spill"),
                "preserve_insertion_order": True,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "allow_community_extensions": False,
                # A Python variable must never stand in for a table that a query names.
                "python_enable_replacements": False,
            },
        )
    except duckdb.Error as error:
        raise SeqscopeError(f"DuckDB cannot start with --memory {memory} ({first_line(error)}). Write it as 4GB.")
    try:
        yield con
    except duckdb.OutOfMemoryException as error:
        raise SeqscopeError(
            f"the import needs more memory or disk than it may use ({first_line(error)}). Raise --memory from {memory}."
        )
    except duckdb.Error as error:
        raise SeqscopeError(f"DuckDB could not carry out the import: {first_line(error)}")
    finally:
        con.close()


def first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
