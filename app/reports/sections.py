"""The sections of a report in their order, for HTML and PDF alike."""

from collections.abc import Iterable
from typing import NamedTuple

from app.reports import provenance, summary
from app.reports.blocks import Block, Figure
from app.reports.document import Report


class Section(NamedTuple):
    name: str
    """Its anchor."""
    heading: str
    blocks: list[Block]


def sections(report: Report) -> list[Section]:
    """The summary, the parts that have something to show, then how the report was made."""
    parts = [
        Section(part.name, part.heading, part.blocks(content, report))
        for part, content in report.content()
        if content != []
    ]
    return [
        Section("summary", "Summary", summary.blocks(report)),
        *parts,
        Section("made", "Provenance", provenance.blocks(report)),
    ]


def figures(shown: Iterable[Section]) -> list[Figure]:
    blocks = (block for section in shown for block in section.blocks if block["kind"] == "figures")
    return [figure for block in blocks for figure in block["figures"]]
