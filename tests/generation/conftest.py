from tests.training.fixtures import one_thread

__all__ = ["one_thread"]
