from __future__ import annotations

from tests.runtime.conftest import path

__all__ = ["path"]
