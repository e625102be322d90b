"""How much an upload may ask for. The numbers are the server's: environment variables, said where they are reached.

SEQSCOPE_MAX_UPLOAD_MB     of one file, as it is uploaded (default 25)
SEQSCOPE_UPLOAD_MEMORY_MB  that reading and checking may take (default 1024)
SEQSCOPE_UPLOAD_SECONDS    by the clock, for one step (default 300)
SEQSCOPE_UPLOAD_THREADS    of one step (default 2)
SEQSCOPE_UPLOADS           steps that run at the same time on this server, beside two of a moment each (default 2); up to four
                           times as many where memory is free for them
SEQSCOPE_QUOTA_ROWS        of one file (default 5,000,000; app/store/quota.py)
"""

from typing import Self

from engine.machine import settings, whole_number
from engine.tabular.reading import MB, Limits


class UploadLimits(Limits):
    """Of one step. The child that reads files is told them."""

    @classmethod
    def of_environment(cls) -> Self:
        """Raises SettingError where variables are no numbers."""
        from app.store.quota import OwnerLimits as Quotas

        plain = cls()

        def read(name: str, variable: str, least: int, most: int, unit: int = 1) -> int:
            return whole_number(variable, getattr(plain, name) // unit, least=least, most=most) * unit

        reads = {
            "upload": lambda: read("upload", "SEQSCOPE_MAX_UPLOAD_MB", 1, 2_000, MB),
            "memory": lambda: read("memory", "SEQSCOPE_UPLOAD_MEMORY_MB", 256, 1_000_000, MB),
            "seconds": lambda: read("seconds", "SEQSCOPE_UPLOAD_SECONDS", 1, 1_000_000),
            "disk": lambda: read("disk", "SEQSCOPE_UPLOAD_DISK_MB", 64, 1_000_000, MB),
            "threads": lambda: read("threads", "SEQSCOPE_UPLOAD_THREADS", 1, 64),
            "rows": lambda: max(1, Quotas.of_environment().rows),
        }
        return cls(**settings(reads))


def children() -> int:
    """How many steps may run at the same time, whatever memory there is."""
    return whole_number("SEQSCOPE_UPLOADS", 2, least=1, most=64)
