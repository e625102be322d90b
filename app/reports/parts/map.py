"""Where the items lie: the map of one model, with the history and its list on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from app.analysis import map_colouring
from app.analysis.map_points import Marks, Points, sample
from app.figures import map as drawing
from app.reports import charts
from app.reports.blocks import Block, Figure, Table, figures, grid, key, p, quiet
from app.reports.fields import Item, Name, ReportModel, number
from app.reports.part import Part, Source
from app.store.attributes import tidied
from app.styles import titled
from app.text import clean, short
from engine.bundle.manifest import SAMPLE

if TYPE_CHECKING:
    from app.reports.document import Model, Report

POINTS = 3_000  # of a map
_SPAN = 1_000.0  # the longer side of a map
_PLAIN = "#7d8f92"  # without groups


class Mark(Item):
    place: int
    x: float
    y: float


class Map(ReportModel):
    LATER: ClassVar[tuple[str, ...]] = ("latents",)

    model: Name
    cannot: str | None = None
    method: str = ""
    trustworthiness: float = 0.0
    neighbours: int = 0
    total: int = 0
    """Items on the map; where more than are drawn, a sample is."""
    x: list[float] = []
    y: list[float] = []
    groups: list[str] = []
    """Categories, where rows of the data were wanted; else empty."""
    group: list[int] = []
    """Per point, a place in `groups`."""
    titles: list[str] = []
    """Per point, where rows of the data were wanted."""
    column: str = ""
    """What the groups are of."""
    history: list[Mark] = []
    following: list[Mark] = []
    latents: bool = False
    """True: the model writes codes and has no vectors of items; drawn are those that its tokenizer made the codes of."""


class MapPart(Part[Map]):
    name, title, heading, busy, order = "map", "Map", "Item map (UMAP)", "Drawing the map", 90
    content = Map
    note = "On a map only what lies close together means something; far distances and the axes do not."

    def make(self, source: Source) -> Map | None:
        """All items, or a sample. None where no model has a map."""
        models = source.models
        able = [name for name in source.names if models.bundles[name].cannot("map") is None]
        model = source.asked.map or (able[0] if able else None)
        if model is None:
            return None
        bundle = models.bundles[model]
        reason, table, projection = bundle.cannot("map"), bundle.map_table(), bundle.manifest.projection
        if reason is not None or table is None or projection is None:
            return Map(model=model, cannot=reason or "The bundle has no map.")
        points = Points.read(table, len(models))
        following = next((answer.items for answer in source.answers if answer.name == model), [])
        colours = next(map_colouring.categorical(tidied(models.items)), None) if source.asked.rows else None
        group = None if colours is None else colours.group
        shown = sample(points, group, [*source.shown_history, *following], POINTS, source.asked.seed)
        x, y = _scaled(points)

        def marks(items: Sequence[int]) -> list[Mark]:
            return [
                Mark(**source.item(item).model_dump(), place=place, x=number(x[item]), y=number(y[item]))
                for place, item in enumerate(items, 1)
                if np.isfinite(points.x[item])
            ]

        return Map(
            model=model,
            latents=bundle.cannot("identifiers") is None,
            method=projection.method,
            trustworthiness=number(projection.trustworthiness),
            neighbours=projection.neighbours,
            total=len(points),
            x=[round(float(value), 1) for value in x[shown]],
            y=[round(float(value), 1) for value in y[shown]],
            groups=[] if colours is None or group is None else list(colours.groups),
            group=[] if group is None else group[shown].tolist(),
            titles=[titled(models, int(item)) for item in shown] if source.asked.rows else [],
            column="" if colours is None else colours.title,
            history=marks(source.shown_history),
            following=marks(following),
        )

    def named(self, content: Map) -> list[str]:
        return [content.model]

    def check(self, content: Map, report: Report) -> None:
        size = len(content.x)
        if len(content.y) != size or any(len(values) not in (0, size) for values in (content.group, content.titles)):
            raise ValueError("map has lists of different lengths")
        if any(not 0 <= at < len(content.groups) for at in content.group):
            raise ValueError("map has a group without a name")

    def tables(self, content: Map, report: Report) -> dict[str, Table]:
        marks = [
            (which, at.place, at.item_id, at.title, at.x, at.y)
            for which, marked in (("history", content.history), ("list", content.following))
            for at in marked
        ]
        nothing = [None] * len(content.x)
        groups = [content.groups[at] for at in content.group] or nothing
        points = list(zip(content.x, content.y, groups, content.titles or nothing, strict=True))
        return {
            "map-marks": Table("Marked on the map", ("mark", "place", "item_id", "title", "x", "y"), marks),
            "map-points": Table("Points of the map", ("x", "y", "group", "title"), points),
        }

    def blocks(self, content: Map, report: Report) -> list[Block]:
        title = report.titles[content.model]
        if content.cannot is not None:
            return [quiet(f"{title}: {clean(content.cannot)}")]
        few = len(content.x) < content.total
        drawn = f"{content.total:,} items"
        if few:
            drawn = f"{len(content.x):,} of {drawn}, drawn at random but for those that are marked"
        coloured = f", coloured by {content.column.lower()}" if content.column else ""
        some = f" of {SAMPLE:,} items" if content.total > SAMPLE else ""
        text = (
            f"{_space(content, report)}: {drawn}{coloured}. {clean(content.method, 100)}; trustworthiness "
            f"{content.trustworthiness:.3f} over {content.neighbours} neighbours{some}. Filled numbers are the history in its "
            "order, rings the list, best first."
        )
        groups = zip(content.groups, _palette(content), strict=True)
        legend = [{"sign": "●", "marker": "circle", "colour": colour, "words": clean(name)} for name, colour in groups]
        return [
            p(text),
            figures(_figure(content, report), width=92),
            *([key(legend, drawn=len(legend) <= drawing.LEGEND)] if legend else []),
            *grid(self.tables(content, report)["map-marks"]),
        ]


PART = MapPart()


def _scaled(points: Points) -> tuple[np.ndarray, np.ndarray]:
    """Both axes by one factor, from 0, the longer one to 1,000: places on a map have no units."""
    x, y = points.x.astype(float), points.y.astype(float)
    span = max(float(np.nanmax(x) - np.nanmin(x)), float(np.nanmax(y) - np.nanmin(y)), 1e-9)
    return (x - np.nanmin(x)) / span * _SPAN, (y - np.nanmin(y)) / span * _SPAN


def _groups(content: Map, group: npt.NDArray[np.int16] | None = None) -> map_colouring.Colouring:
    """As the page Map colours them. group: of each point."""
    return map_colouring.Colouring("", content.column, groups=tuple(content.groups), group=group)


def _palette(content: Map) -> list[str]:
    """A colour per group."""
    groups = _groups(content)
    return [groups.colour(place) for place in range(len(content.groups))]


def _space(content: Map, report: Report) -> str:
    """Whose map it is."""
    title = report.titles[content.model]
    return f"{title}: its tokenizer's latents" if content.latents else title


def _spot(mark: Mark, before: str) -> charts.Spot:
    return charts.Spot(mark.x, mark.y, str(mark.place), f"{before}{short(mark.title, 80)}")


def _figure(content: Map, report: Report) -> Figure:
    model = report.model(content.model)
    alt = f"Map of {content.total:,} items by {_space(content, report)}, with the history and its list"

    def draw(font: str) -> Any:
        palette = _palette(content)
        return charts.points(
            content.x,
            content.y,
            [palette[at] for at in content.group] or [_PLAIN] * len(content.x),
            alt,
            path=[_spot(at, f"{at.place} · ") for at in content.history],
            following=[_spot(at, f"list, {at.place}: ") for at in content.following],
            accent=model.colour,
            hints=content.titles,
            font=font,
        )

    return Figure("map", alt, draw, lambda: _live(content, model), wide=True)


def _by_place(marks: Sequence[Mark]) -> list[Mark | None]:
    """From the first place on; None: its item is not on the map."""
    known = {mark.place: mark for mark in marks}
    return [known.get(place) for place in range(1, max(known, default=0) + 1)]


def _live(content: Map, model: Model) -> dict[str, Any]:
    """As the page Map draws it; as SVG, since WebGL's drawing makes code at run time, which a strict page does not let it."""
    history, first = _by_place(content.history), len(content.x)
    spots = [*history, *_by_place(content.following)]
    points = Points(*(np.array([*known, *more], np.float32) for known, more in (
        (content.x, [at.x if at else np.nan for at in spots]), (content.y, [at.y if at else np.nan for at in spots])
    )))  # fmt: skip
    titles = [*(content.titles or [""] * first), *(at.title if at else "" for at in spots)]
    colours = None
    if content.groups:
        known = [*content.group, *[len(content.groups)] * len(spots)]  # marks are drawn on top alone
        colours = _groups(content, np.array(known, np.int16))
    places = range(first, first + len(spots))
    marks = Marks(history=tuple(places[: len(history)]), following=tuple(places[len(history) :]))
    look = drawing.Look.of(False, model.colour, model.marker)
    fig = drawing.figure(points, colours, marks, look, titles, [""] * len(titles), height=620)
    fig.update_xaxes(range=[-30, 1_030])
    figure: dict[str, Any] = drawing.as_svg(fig).to_plotly_json()
    for trace in figure["data"]:
        if not content.titles and not trace.get("hovertext") and trace.get("mode") == "markers":
            trace.pop("hovertemplate", None)
            trace["hoverinfo"] = "skip"
        trace.pop("customdata", None)
    return figure
