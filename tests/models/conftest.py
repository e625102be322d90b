import pytest

from tests.training.fixtures import one_thread

__all__ = ["one_thread"]
pytest.register_assert_rewrite("tests.models.contract")
