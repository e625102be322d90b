"""How much the lists of the models agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from app.analysis.recommend import MEASURES, RBO_P, Spread, spread_words
from app.figures import compare
from app.reports import charts
from app.reports.blocks import Block, Figure, Table, figures, grid, key, p, sign, table
from app.reports.fields import Name, ReportModel, check_square, number
from app.reports.part import Part, Source
from app.text import share_of_all
from engine.runtime import rbo_weight

if TYPE_CHECKING:
    from app.reports.document import Report

_PAIRS = 30  # rows of a table on paper


class Overlap(ReportModel):
    models: list[Name]
    """Those that answered; rows and columns of the matrices."""
    shared: list[list[int]]
    jaccard: list[list[float]]
    rbo: list[list[float]]
    rbo_p: float
    rbo_weight: float
    """The share of RBO's weight on the places that there are."""
    different: int
    """Items in all lists together."""
    by_all: int
    by_one: int


class OverlapPart(Part[Overlap]):
    name, title, heading, busy, order = "overlap", "Agreement", "Agreement", "Comparing the lists", 50
    content = Overlap

    def make(self, source: Source) -> Overlap | None:
        """None where fewer than two models answered."""
        able = [answer for answer in source.answers if answer.top is not None]
        if len(able) < 2:
            return None
        k, lists = source.asked.k, [answer.items for answer in able]
        jaccard, rbo = (
            [[number(value) for value in row] for row in MEASURES[measure](lists, k).tolist()]
            for measure in ("jaccard", "rbo")
        )
        return Overlap(
            models=[answer.name for answer in able],
            shared=MEASURES["shared"](lists, k).tolist(),
            jaccard=jaccard,
            rbo=rbo,
            rbo_p=RBO_P,
            rbo_weight=number(rbo_weight(RBO_P, k)),
            **Spread.of(lists)._asdict(),
        )

    def named(self, content: Overlap) -> list[str]:
        return content.models

    def check(self, content: Overlap, report: Report) -> None:
        for matrix in (content.shared, content.jaccard, content.rbo):
            check_square("overlap", matrix, len(content.models))

    def tables(self, content: Overlap, report: Report) -> dict[str, Table]:
        titles = [report.titles[name] for name in content.models]
        rows = [
            (titles[j], titles[i], content.shared[i][j], content.jaccard[i][j], content.rbo[i][j])
            for i in range(len(titles))
            for j in range(i)
        ]
        return {"overlap": Table("Agreement", ("first", "second", "shared", "Jaccard", "RBO"), rows)}

    def blocks(self, content: Overlap, report: Report) -> list[Block]:
        numbers = self.tables(content, report)["overlap"]
        rows = [[row[0], row[1], str(row[2]), f"{row[3]:.3f}", f"{row[4]:.3f}"] for row in numbers.rows]
        k = report.asked.k
        words = spread_words(Spread(content.different, content.by_all, content.by_one), len(content.models))
        text = (
            f"{words} The figure counts the items that two models share among their first {k}. RBO: rank-biased "
            f"overlap, p = {content.rbo_p:g}; the first {k} places carry {share_of_all(content.rbo_weight)} of its weight."
        )
        return [
            p(text),
            figures(_figure(content, report), width=60),
            key(sign(report, name) for name in content.models),
            *([table("Agreement", numbers.columns, rows, [2, 2, 0, 0, 0], only="pdf")] if len(rows) <= _PAIRS else []),
            *grid(numbers),
        ]


PART = OverlapPart()


def _figure(content: Overlap, report: Report) -> Figure:
    titles, k = [report.titles[name] for name in content.models], report.asked.k
    alt = f"How many of their first {k} items each pair of {len(titles)} models shares"
    rows = content.shared[1:]  # each pair once
    cells = [[value if place <= at else None for place, value in enumerate(row[:-1])] for at, row in enumerate(rows)]

    def draw(font: str) -> Any:
        signs = [report.model(name).sign for name in content.models[:-1]]
        return charts.heatmap(titles[1:], signs, cells, alt, top=float(k), form="{:.0f}", font=font)

    return Figure("overlap", alt, draw, lambda: compare.agreement(titles, np.array(content.shared), "shared", k))
