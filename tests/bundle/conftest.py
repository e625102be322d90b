from tests.runtime.conftest import path

__all__ = ["path"]
