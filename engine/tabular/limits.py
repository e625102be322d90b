"""How much the reading of a file may ask for."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

MB = 1 << 20


class Limits(BaseModel):
    """Of the reading of one file that somebody else brings. Everything beyond ends in words."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    upload: int = 25 * MB
    """Bytes of a file as it comes."""
    text: int = 512 * MB
    """Bytes of a file once it is unpacked and decoded."""
    ratio: int = 200
    """Times that a compressed file may grow; small ones may grow as they like."""
    rows: int = 5_000_000
    columns: int = 200
    cell: int = 10_000
    """Characters of an attribute that are kept."""
    memory: int = 1024 * MB
    """Bytes for DuckDB and for what Python holds, beside the programs themselves."""
    seconds: int = 300
    threads: int = 2
    disk: int = 1024 * MB
    """Bytes of all files that one step writes, those included that go when it ends."""


UNLIMITED = Limits(text=1 << 62, ratio=1 << 62, rows=1 << 58, columns=1 << 20, disk=1 << 62)
"""Of files that are one's own."""
