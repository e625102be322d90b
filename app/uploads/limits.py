"""How much an upload may ask for. The numbers are the server's: environment variables, said where they are reached.

SEQSCOPE_MAX_UPLOAD_MB     of one file, as it is uploaded (default 25)
SEQSCOPE_UPLOAD_MEMORY_MB  that reading and checking may take (default 1024)
SEQSCOPE_UPLOAD_SECONDS    by the clock, for one step (default 300)
SEQSCOPE_UPLOAD_THREADS    of one step (default 2)
SEQSCOPE_UPLOADS           steps that run at the same time on this server, beside two of a moment each (default 2); up to four
                           times as many where memory is free for them
SEQSCOPE_QUOTA_ROWS        of one file (default 5,000,000; app/store/quota.py)
"""

from __future__ import annotations

from typing import Self

from engine.machine import whole_number
from engine.tabular.reading import MB, Limits


class UploadLimits(Limits):
    """Of one step. The child that reads files is told them."""

    @classmethod
    def of_environment(cls) -> Self:
        """Raises SeqscopeError where a variable is not a number."""
        from app.store.quota import OwnerLimits as Quotas

        plain = cls()
        return cls(
            upload=whole_number("SEQSCOPE_MAX_UPLOAD_MB", plain.upload // MB, least=1, most=2_000) * MB,
            memory=whole_number("SEQSCOPE_UPLOAD_MEMORY_MB", plain.memory // MB, least=256, most=1_000_000) * MB,
            seconds=whole_number("SEQSCOPE_UPLOAD_SECONDS", plain.seconds, least=1, most=1_000_000),
            disk=whole_number("SEQSCOPE_UPLOAD_DISK_MB", plain.disk // MB, least=64, most=1_000_000) * MB,
            threads=whole_number("SEQSCOPE_UPLOAD_THREADS", plain.threads, least=1, most=64),
            rows=max(1, Quotas.of_environment().rows),
        )


def children() -> int:
    """How many steps may run at the same time, whatever memory there is."""
    return whole_number("SEQSCOPE_UPLOADS", 2, least=1, most=64)
