"""What report.json holds of metrics: means with their intervals, what is beyond accuracy, and the verdict."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from app.reports.fields import Name, ReportModel
from engine.runtime import judge

Row = tuple[str, bool]
"""A model, and whether with its vectors of training users."""


class Estimate(ReportModel):
    LATER = ("users",)
    model: Name
    users: bool = False
    """True: with the model's vectors of training users, in place of what it makes of the history alone."""
    metric: str
    mean: float
    low: float
    high: float
    people: int
    mark: Literal["best", "level", ""]
    """level: its difference to the best could be chance."""
    p: float | None
    """Of the paired bootstrap against the best, after Holm; None for the best itself."""


class Beyond(ReportModel):
    LATER = ("users", "others")
    model: Name
    users: bool = False
    """As `Estimate.users`; a row of the metrics is a model, with these vectors or without."""
    coverage: float | None
    gini: float | None
    novelty: float | None
    others: dict[str, float | None] = {}
    """Metrics that an installation adds to these three, by their names in lowercase."""
    note: str

    def value(self, field: str) -> float | None:
        """Of a metric by its name in lowercase; None where the report does not have it."""
        value: float | None = getattr(self, field) if field in type(self).model_fields else self.others.get(field)
        return value


class Slice(ReportModel):
    """A metric over some of the people."""

    words: str
    """Whose held-out item …"""
    model: Name
    users: bool
    """As `Estimate.users`."""
    metric: str
    mean: float
    low: float
    high: float
    people: int


class Metrics(ReportModel):
    LATER = ("beams", "repeats", "held_out", "verdict")

    protocol: str
    words: str
    """What the protocol does."""
    k: int
    people: int
    left_out: int
    """People that not every model was evaluated on."""
    samples: int
    seed: int
    estimates: list[Estimate]
    beyond: list[Beyond]
    absent: list[Name]
    """Models that were not evaluated so."""
    held_out: list[str] = []
    """What has to be known of the held-out items before any verdict, in sentences: ties, repeats, cancellations."""
    beams: dict[Name, Annotated[int, Field(ge=1)]] = {}
    """Models whose ranks come from a beam, and its width; such a model has no estimates where k is more than that."""
    repeats: list[Slice] = []
    """Where repeats count: apart for held-out items that repeat one of the history, and for new ones."""
    verdict: judge.Verdict | None = None
    """Of all models of the dataset, whichever the report shows: the best neural one against the best that needs no training. None
    in reports of before."""

    @property
    def rows(self) -> list[Row]:
        return [(row.model, row.users) for row in self.beyond]

    def cannot(self, model: str) -> str | None:
        """Why a row of the model is empty, such as "beam of 20"."""
        return judge.beyond_beam(self.k, self.beams.get(model))

    def of(self, row: Row) -> tuple[list[Estimate], Beyond]:
        estimates = [entry for entry in self.estimates if (entry.model, entry.users) == row]
        return estimates, next(entry for entry in self.beyond if (entry.model, entry.users) == row)
