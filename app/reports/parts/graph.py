"""The paths through people and items that lead from the history to one item, and what each layer of a graph adds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from app.analysis import graph_paths
from app.figures import graph_paths as drawing
from app.reports import charts
from app.reports.blocks import Block, Figure, Table, figures, grid, h3, p, quiet, sign, table
from app.reports.fields import Item, Name, ReportModel, number, number_or_none
from app.reports.part import Checked, OfItem, Source, same
from app.text import clean, short
from engine.errors import SeqscopeError
from engine.runtime import Zoo, judge
from engine.runtime.graph_paths import Branch, Float32, Step

if TYPE_CHECKING:
    from app.reports.document import Report


class PathEnd(Item):
    """Items that the people of a branch have, where paths history → item → people → item end."""

    people: int
    """How many have both."""
    weight: float
    """Of the walks through them."""
    adds: float | None
    """To the score of the item that is explained; None where a score is no sum over paths."""


class PathBranch(Item):
    """What comes of one item of the history. What it adds, and what its parts add, is None where a score is no sum over paths."""

    weight: float
    people: int
    """Who has it in training."""
    itself: float | None
    through_people: float | None
    """What the vectors of these people add."""
    ends: list[PathEnd]
    """The strongest ones, of the branches that matter most."""
    others: int
    """Further items that such paths reach."""
    others_add: float | None
    deeper: float | None
    """What longer paths add."""


class WithoutLayer(Item):
    ranks: list[Annotated[int, Field(ge=1)]]
    """With all layers, then without layer 0, 1, …"""


class Layers(ReportModel):
    adds: Annotated[list[Annotated[list[float], Field(min_length=1)]], Field(min_length=1)]
    """To the score of the item that is explained. Rows are layers of the history; columns layers of the item, or one column where
    each layer meets the same layer of the item alone."""
    items: list[WithoutLayer]
    """The first of the list, with all layers."""

    @property
    def by_layer(self) -> Float32:
        """float32 [layers + 1, layers + 1], or [layers + 1]; as `graph_paths.Layers.by_layer`."""
        cells = np.array(self.adds, np.float32)
        return cells[:, 0] if cells.shape[1] == 1 else cells


class Walks(ReportModel):
    LATER = ("named",)

    model: Name
    cannot: str | None = None
    branches: list[PathBranch] = []
    """Those that matter most first; empty in a report without its history."""
    named: int | None = None
    """Ends that the opened branches name, the same for all; None in an earlier report, in which each named some of its own."""
    layers: Layers | None = None
    """None where a bundle does not tell them apart."""


class Graph(Item):
    """The paths through people and items that lead from the history to one item, of models that carry such a graph."""

    models: list[Walks]


class GraphPart(OfItem[Graph]):
    name, title, heading, busy, order = "graph", "Graph", "Paths through users and items", "Following paths", 80
    content, called = Graph, "paths of"

    def possible(self, models: Zoo, names: Sequence[str]) -> bool:
        return bool(graph_paths.carriers(models, names))

    def make(self, source: Source) -> Graph | None:
        """None where there is no item to explain."""
        item = source.explained
        if item is None:
            return None
        models = graph_paths.carriers(source.models, source.names)
        return Graph(**source.item(item).model_dump(), models=[_walks(source, model, item) for model in models])

    def check(self, content: Graph, report: Report) -> None:
        for layers in (walks.layers for walks in content.models if walks.layers is not None):
            if any(len(row) not in (1, len(layers.adds)) or len(row) != len(layers.adds[0]) for row in layers.adds):
                raise ValueError("graph has layers that do not fit each other")
            if any(len(walks.ranks) != len(layers.adds) + 1 for walks in layers.items):
                raise ValueError("graph has more or fewer ranks than layers")

    def items(self, content: Graph) -> Iterable[Item]:
        listed = [item for walks in content.models if walks.layers is not None for item in walks.layers.items]
        branches = [branch for walks in content.models for branch in walks.branches]
        return [content, *listed, *branches, *(end for branch in branches for end in branch.ends)]

    def tables(self, content: Graph, report: Report) -> dict[str, Table]:
        titles = report.titles
        walked: list[tuple[Any, ...]] = []
        layers: list[tuple[Any, ...]] = []
        without: list[tuple[Any, ...]] = []
        depth = max((len(walks.layers.adds) for walks in content.models if walks.layers is not None), default=0)
        for walks in content.models:
            paths = Paths.of(content, walks)
            frame = graph_paths.table(paths.branches, paths.titles).astype(object)
            walked += [(titles[walks.model], *row) for row in frame.where(frame.notna(), None).itertuples(index=False)]
            if walks.layers is None:
                continue
            names = graph_paths.layer_names(len(walks.layers.adds) - 1)
            layers += [
                (titles[walks.model], k, names[k], k if len(row) == 1 else column, value)
                for k, row in enumerate(walks.layers.adds)
                for column, value in enumerate(row)
            ]
            without += [
                (titles[walks.model], item.item_id, item.title, *item.ranks, *[None] * (depth + 1 - len(item.ranks)))
                for item in walks.layers.items
            ]
        of_layers = ("model", "layer of the history", "ends in", "layer of the item", "adds")
        of_items = ("model", "item_id", "title", "all layers", *(f"without {k}" for k in range(depth)))
        return {
            "graph": Table(f"Paths to {content.title}", ("model", "from", "through", "to", "weight", "adds"), walked),
            "graph-layers": Table("What each layer adds", of_layers, layers),
            "graph-without": Table("The list without a layer", of_items, without),
        }

    def compare_entry(self, report: Report, subject: str, then: Walks, now: Walks) -> Checked:
        if then.named is None and then.branches:
            ends: Any = {"named": True, "branches": {"__all__": {"ends", "others", "others_add"}}}
            words = "the same but for the ends, of which each branch then named some of its own: they are not compared"
            return same(subject, then.model_dump(exclude=ends), now.model_dump(exclude=ends), words)
        return super().compare_entry(report, subject, then, now)

    def blocks(self, content: Graph, report: Report) -> list[Block]:
        return [
            *(block for walks in content.models for block in _blocks(content, walks, report)),
            *grid(self.tables(content, report)["graph"]),
        ]


PART = GraphPart()


class Paths(NamedTuple):
    """What `graph_paths` and its figures take, with numbers of the report's own for items."""

    branches: list[Branch]
    item: int
    titles: dict[int, str]

    @classmethod
    def of(cls, content: Graph, walks: Walks) -> Paths:
        numbers: dict[str, int] = {}
        titles: dict[int, str] = {}

        def numbered(path: Item) -> int:
            position = numbers.setdefault(path.item_id, len(numbers))
            titles[position] = path.title
            return position

        item = numbered(content)
        branches = [
            Branch(
                numbered(path), path.weight, path.people, path.itself, path.through_people,
                [Step(numbered(end), end.people, end.weight, end.adds) for end in path.ends],
                path.others, path.others_add, path.deeper,
            )
            for path in walks.branches
        ]  # fmt: skip
        return cls(branches, item, titles)

    @property
    def sums(self) -> bool:
        """Whether the score is a sum over these paths."""
        return None not in [branch.adds for branch in self.branches]


def _walks(source: Source, model: str, item: int) -> Walks:
    if not source.history:
        return Walks(model=model, cannot="There is no history that paths could begin at.")
    try:
        branches = graph_paths.branches(source.models, model, source.history, item)
        layers = graph_paths.layers(source.models, model, source.history, item)
    except SeqscopeError as reason:
        return Walks(model=model, cannot=str(reason))
    return Walks(
        model=model,
        branches=[_branch(source, branch) for branch in branches if source.tells_history],
        named=len({step.item for branch in branches for step in branch.steps}),
        layers=None if layers is None else _layers(source, layers),
    )


def _branch(source: Source, branch: Branch) -> PathBranch:
    return PathBranch(
        **source.item(branch.item).model_dump(),
        weight=number(branch.weight),
        people=branch.people,
        itself=number_or_none(branch.itself),
        through_people=number_or_none(branch.through_people),
        ends=[
            PathEnd(
                **source.item(step.item).model_dump(),
                people=step.people,
                weight=number(step.weight),
                adds=number_or_none(step.adds),
            )
            for step in branch.steps
        ],
        others=branch.others,
        others_add=number_or_none(branch.others_add),
        deeper=number_or_none(branch.deeper),
    )


def _layers(source: Source, layers: graph_paths.Layers) -> Layers:
    cells = layers.by_layer.reshape(len(layers.by_layer), -1).tolist()
    return Layers(
        adds=[[number(value) for value in row] for row in cells],
        items=[
            WithoutLayer(**source.item(item).model_dump(), ranks=[ranks[item] for ranks in layers.ranks.values()])
            for item in layers.items
        ],
    )


def _quoted(title: str, about: bool) -> str:
    return f"“{short(clean(title), 80)}”"


def _blocks(content: Graph, walks: Walks, report: Report) -> Iterator[Block]:
    yield h3(sign(report, walks.model))
    if walks.cannot is not None:
        yield quiet(clean(walks.cannot))
        return
    paths, title = Paths.of(content, walks), report.titles[walks.model]
    if walks.branches:
        yield p(graph_paths.sentence(*paths, title, _quoted))
        yield figures(_tree(content, walks, report)) | {"roomy": True}
        lines = [
            f"{short(clean(path.start), 60)} ← {path.people} → {short(clean(path.end), 60)}: {path.adds}"
            for path in graph_paths.strongest(paths.branches, paths.titles)
        ]
        yield {"kind": "narrow", "lines": lines, "only": "html"}
        yield quiet(graph_paths.key(paths.sums, len(drawing.opened_branches(paths.branches)), len(paths.branches)))
    else:
        yield p("The paths begin at the history, which is not in this report.")
    if walks.layers is not None:
        yield from _layer_blocks(content, walks.layers)


def _layer_blocks(content: Graph, layers: Layers) -> Iterator[Block]:
    by_layer, depth = layers.by_layer, len(layers.adds)
    meeting, left_out = graph_paths.layers_words(by_layer)
    total = judge.signed(by_layer.sum(), ".3f")
    adds = f"The score of “{short(clean(content.title), 80)}”, {total}, is the sum of these: {meeting}."
    head = ["layer of the history", *graph_paths.layer_columns(by_layer)]
    names = graph_paths.layer_names(depth - 1)
    rows = [[f"{k}: {names[k]}", *map(judge.signed, row)] for k, row in enumerate(layers.adds)]
    yield from (p(adds), table(adds, head, rows, [1, *[0] * (len(head) - 1)]))
    without = f"The list without a layer: where its first items would stand if one layer were {left_out}."
    head = ["item", "all layers", *(f"without {k}" for k in range(depth))]
    rows = [[short(clean(item.title), 60), *map(str, item.ranks)] for item in layers.items]
    yield from (p(without), table(without, head, rows, [1, *[0] * (len(head) - 1)]))


def _tree(content: Graph, walks: Walks, report: Report) -> Figure:
    paths, colour = Paths.of(content, walks), report.model(walks.model).colour
    alt = (
        f"{report.titles[walks.model]}: a tree of paths from the history through its items and their users to "
        f"{clean(content.title, 80)} and others"
    )

    def draw(font: str) -> Any:
        return charts.tree(drawing.tree_layout(*paths, colour), alt, font=font)

    return Figure(f"graph-{walks.model}", alt, draw, lambda: drawing.tree(*paths, colour, 3), wide=True)
