from tests.training.fixtures import dataset, one_thread, run_of, shared

__all__ = ["dataset", "one_thread", "run_of", "shared"]
