"""The contract of engine.models.base, for every registered model."""

from tests.models.contract import Contract


class TestContract(Contract):
    pass
