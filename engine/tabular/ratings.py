"""Ratings among the weights of a log: below the middle of their scale they are low, and count as liked unless somebody says
otherwise."""

from __future__ import annotations

import duckdb

from engine.tabular.columns import COUNTS, plain_name

SCALES = {3.0: 5, 5.0: 10}
"""Middle of a scale of ratings → its top."""


def lowest_liked(con: duckdb.DuckDBPyConnection, column: str, weight: str, rows: str) -> float | None:
    """The middle of a scale of ratings, 3 of 5 or 5 of 10, where the weights look like ratings; None elsewhere.

    column: what the file calls it; weight: SQL, the number; rows: SQL, the table of the events, and which of them count.
    """
    lowest, highest, different = con.execute(
        f"SELECT min({weight}), max({weight}), count(DISTINCT {weight}) FROM {rows}"
    ).fetchall()[0]
    if plain_name(column) in COUNTS or lowest is None or lowest < 0 or not 3 <= different <= 21 or highest > 10:
        return None
    return 3.0 if highest <= 5 else 5.0


def scale_words(low: float) -> str:
    """low: a key of SCALES."""
    return f"Below {low:g} on a scale to {SCALES[low]}."
