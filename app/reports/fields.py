"""What report.json is made of: strict models, an item, a place in a history, and numbers with as many digits as a float32 has."""

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from pydantic import Field

from engine.bundle.manifest import Name, Sha256, Strict  # noqa: F401  (parts take them from here)

ItemId = Annotated[str, Field(max_length=10_000)]
Rank = Annotated[float, Field(ge=1)]


class ReportModel(Strict):
    """Of a report: an older one is written as it was, so that its seal still fits."""

    def unsaid(self) -> dict[str, Any]:
        """The fields that came later and say nothing here."""
        fields = type(self).model_fields
        return {name: fields[name].default for name in self.LATER if getattr(self, name) == fields[name].default}


class Item(ReportModel):
    item_id: ItemId
    title: str
    """As people see it, not escaped."""


class SummaryLine(ReportModel):
    """Of the summary."""

    about: str
    """What it tells: Compared, Best, For whom, Beware, Check; in earlier reports Held-out items, too."""
    text: str


def number(value: float) -> float:
    """As many digits as a float32 has."""
    return float(f"{value:.7g}")


def number_or_none(value: float | None) -> float | None:
    """None in place of NaN, too."""
    return None if value is None or math.isnan(value) else number(value)


def numbers(values: Iterable[float | None]) -> list[float | None]:
    return [number_or_none(value) for value in values]


def check_square(part: str, matrix: Sequence[Sequence[object]], size: int) -> None:
    """Raises ValueError where the matrix is not [size, size]."""
    if len(matrix) != size or any(len(row) != size for row in matrix):
        raise ValueError(f"{part} has a matrix that is not {size} by {size}")
