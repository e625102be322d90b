"""Category paths (P5-SemID, Hua et al., SIGIR-AP 2023): an item's identifier is its path in the tree of categories, and a number.

A name has one code per level, wherever in the tree it stands. The number that tells items of one category apart is added by
collisions.policy = "append", as for every tokenizer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa

from engine.cards import Card
from engine.data.identifiers import NONE
from engine.tokenizers.base import Codes, Learning, Material, Tokenizer

COLUMNS = ("categories", "category", "genres", "genre", "tags")


@dataclass(frozen=True)
class CategoryConfig:
    column: str = ""
    """Column of the catalogue: a list, or a text with commas; the first of categories, category, genres, genre, tags where
    empty."""
    depth: int = 5
    """Levels that are kept."""


class CategoryPath(Tokenizer):
    """Level l has a code for each name that stands l-th in some path (0 … k − 1), and k for a name that was never seen.

    Levels at which all items are equal (the shop's root) are left out.
    """

    name = "p5-semid"
    Config = CategoryConfig
    card = Card(
        title="Category path",
        order=40,
        summary="The path of an item's categories in the catalogue, and a number for those of the same path.",
        paper="Hua et al., How to Index Item IDs for Recommendation Foundation Models, SIGIR-AP 2023",
    )

    def __init__(self, config: CategoryConfig, column: str, skip: int, levels: list[list[str]]) -> None:
        self.config, self.column, self.skip, self.levels, self.record = config, column, skip, levels, {}
        self._number = [{name: number for number, name in enumerate(level)} for level in levels]

    @classmethod
    def fit(
        cls, material: Material, config: CategoryConfig, generator: np.random.Generator, learning: Learning
    ) -> Self:
        there = material.items.column_names
        column = config.column or next((name for name in COLUMNS if name in there), "")
        if column not in there:
            raise ValueError(
                f"the catalogue has no column {column or 'of categories'!r}; it has {', '.join(there)} (tokenizer.column)"
            )
        paths = _paths(material.items, column)
        longest = max(map(len, paths), default=0)
        skip = 0
        while skip < longest - 1 and len({path[skip] if len(path) > skip else None for path in paths}) == 1:
            skip += 1
        levels = []
        for depth in range(skip, min(longest, skip + config.depth)):
            counts = Counter(path[depth] for path in paths if len(path) > depth)
            levels.append([name for name, _ in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))])
        if not levels:
            raise ValueError(f"the column {column} is empty")
        return cls(config, column, skip, levels)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(level) + 1 for level in self.levels)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"category {level}" for level in range(1, len(self.levels) + 1))

    def identify(self, material: Material) -> Codes:
        all_codes = np.full((len(material), len(self.levels)), NONE, np.int32)
        paths = (
            _paths(material.items, self.column) if self.column in material.items.column_names else [[]] * len(material)
        )
        for row, path in enumerate(paths):
            path = path[self.skip : self.skip + len(self.levels)]
            codes = [numbers.get(name, len(numbers)) for name, numbers in zip(path, self._number, strict=False)]
            all_codes[row, : max(len(codes), 1)] = codes or [
                len(self._number[0])
            ]  # no category: the code of unseen ones
        return all_codes

    def parts(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        facts = {"column": self.column, "skip": self.skip, "levels": self.levels}
        return {}, {"config": asdict(self.config), **facts}

    @classmethod
    def restore(cls, config: Any, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Self:
        return cls(config, str(facts["column"]), int(facts["skip"]), [list(level) for level in facts["levels"]])


def _paths(items: pa.Table, column: str) -> list[list[str]]:
    return [
        [str(part) for part in value if part is not None]
        if isinstance(value, list)
        else [part.strip() for part in str("" if value is None else value).split(",") if part.strip()]
        for value in items[column].to_pylist()
    ]
