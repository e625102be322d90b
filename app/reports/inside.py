"""What can be seen inside the models: attention, codes and the map, as a report holds them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.analysis import attention as views
from app.analysis import cross_attention, map_colouring, semantic_ids
from app.analysis.map_points import Points, sample
from app.looks import titled
from app.reports.document import Asked, Attention, Coded, Codes, Level, Listing, Map, Mark, Position, Written
from app.reports.lists import Numbers, item, number, numbers
from engine.errors import SeqscopeError
from engine.runtime import Zoo, last_row

SHOWN = 40  # the latest positions of an attention map
POINTS = 3_000  # of a map
COUNTS = 512  # codes of a level
CODED = 60  # items whose codes are told
_SPAN = 1_000.0  # the longer side of a map
_PREFERRED = ("categories", "category", "genres", "genre")


def attention(models: Zoo, names: Sequence[str], asked: Asked, events: Numbers) -> list[Attention]:
    """Of the models that were asked for, else of those that attend."""
    chosen = asked.attention
    if chosen is None:
        chosen = [name for name in names if models.bundles[name].cannot("attention") is None]
    explained = None if asked.item is None else models.position(asked.item)
    return [_attention(models, name, events, asked.view, explained) for name in chosen]


def _written(models: Zoo, model: str, events: Numbers, chosen: int | None) -> Written | None:
    """Of the item that is explained, else the model's first one; None where no written code looks at the history."""
    bundle = models.bundles[model]
    if bundle.cannot("cross_attention") is not None:
        return None
    first = bundle.recommend_one(events, 1).items.tolist() if chosen is None else [chosen]
    if not first:
        return None
    looked = cross_attention.by_event(bundle.cross_attention(events, first[0]))
    return Written(
        **item(models, first[0]).model_dump(),
        positions=[Position(place=place + 1, item_id=models.item_ids[events[place]]) for place in looked],
        weights=[number(weight) for weight in looked.values()],
    )


def _attention(models: Zoo, model: str, events: Numbers, view: views.View, chosen: int | None) -> Attention:
    """chosen: the item that is explained; None: the model's first one."""
    bundle = models.bundles[model]
    try:
        if not events:
            raise SeqscopeError("There is no history to look at.")
        if view == "rollout" and (reason := bundle.cannot("rollout")) is not None:
            raise SeqscopeError(reason)
        raw = bundle.attention(events)
    except SeqscopeError as reason:
        return Attention(model=model, cannot=bundle.cannot("attention") or str(reason))
    seen = views.by_item(raw)  # codes taken together by item; where positions are items, the same
    last = last_row(seen)
    if view == "rollout":
        matrix = views.matrix(raw, "rollout", 0, 0)
        matrix = views.by_item_of(raw, matrix) if raw.levels else matrix
        filled = np.nan_to_num(matrix)
        last = filled.mean(axis=0) if seen.pooled else filled[-1]
    else:
        matrix = views.matrix(seen, "mean", seen.layers - 1, 0)
    ids = models.item_ids
    return Attention(
        written=_written(models, model, events, chosen),
        model=model,
        view="rollout" if view == "rollout" else "mean",
        layers=seen.layers,
        heads=seen.heads,
        causal=seen.causal,
        pooled=seen.pooled,
        grouped=bool(raw.levels),
        positions=[
            Position(place=None if place is None else place + 1, item_id=None if at is None else ids[at])
            for place, at in zip(seen.positions, seen.items, strict=True)
        ],
        last=[number(value) for value in last.tolist()],
        matrix=[
            [None if value != value else number(value) for value in row]
            for row in matrix[-SHOWN:, -SHOWN:].astype(float).tolist()
        ],
    )


# --- codes


def codes(models: Zoo, asked: Asked, lists: Sequence[Listing]) -> list[Codes]:
    """Of the tokenizers that were asked for, else of all."""
    ids = list(dict.fromkeys([*(asked.history or []), *(one.item_id for row in lists for one in row.items)]))
    shown = numbers(models, ids[:CODED])
    chosen = asked.codes if asked.codes is not None else list(models.tokenizations)
    return [_codes(models, name, shown) for name in chosen]


def _codes(models: Zoo, name: str, shown: Numbers) -> Codes:
    one = models.tokenizations[name]
    said, table = one.about.figures, one.identifiers.codes
    levels = semantic_ids.usage(one.own, one.about.shape.own)
    return Codes(
        tokenizer=name,
        title=one.about.title,
        digest=one.digest,
        kind=one.about.tokenizer,
        levels=[
            Level(
                size=level.size,
                used=level.used,
                perplexity=number(level.perplexity),
                gini=number(level.gini),
                counts=level.ordered[:COUNTS].tolist(),
            )
            for level in levels
        ],
        excess=number(said.before.excess),
        sharing=number(said.before.sharing),
        excess_in_use=number(said.after.excess),
        sharing_in_use=number(said.after.sharing),
        reconstruction=None if said.reconstruction is None else number(said.reconstruction),
        items=[
            Coded(
                **item(models, at).model_dump(),
                codes=list(semantic_ids.path(table, at)),
                shared_with=int((table == table[at]).all(axis=1).sum()) - 1,
            )
            for at in shown
        ],
    )


# --- the map


def place(models: Zoo, names: Sequence[str], asked: Asked, events: Numbers, lists: Sequence[Listing]) -> Map | None:
    """The items as one model arranges them: all, or a sample, with the history and that model's list on top."""
    able = [name for name in names if models.bundles[name].cannot("map") is None]
    model = asked.map or (able[0] if able else None)
    if model is None:
        return None
    bundle = models.bundles[model]
    reason, table, made = bundle.cannot("map"), bundle.map_table(), bundle.manifest.projection
    if reason is not None or table is None or made is None:
        return Map(model=model, cannot=reason or "The bundle has no map.")
    points = Points.read(table, len(models))
    own = next((one for one in lists if one.model == model), None)
    following = numbers(models, [one.item_id for one in own.items]) if own is not None else ()
    colours = _colouring(models) if asked.rows else None
    group = None if colours is None else colours.group
    drawn = sample(points, group, [*events, *following], POINTS, asked.seed)
    x, y = _scaled(points)

    def marks(items: Numbers) -> list[Mark]:
        found = [(where, at) for where, at in enumerate(items, 1) if np.isfinite(points.x[at])]
        return [
            Mark(**item(models, at).model_dump(), place=where, x=number(x[at]), y=number(y[at])) for where, at in found
        ]

    return Map(
        model=model,
        latents=bundle.cannot("identifiers") is None,
        method=made.method,
        trustworthiness=number(made.trustworthiness),
        neighbours=made.neighbours,
        total=len(points),
        x=[round(float(value), 1) for value in x[drawn]],
        y=[round(float(value), 1) for value in y[drawn]],
        groups=[] if colours is None or group is None else list(colours.groups),
        group=[] if group is None else group[drawn].tolist(),
        titles=[titled(models, int(at)) for at in drawn] if asked.rows else [],
        column="" if colours is None else colours.title,
        history=marks(events),
        following=marks(following),
    )


def _scaled(points: Points) -> tuple[np.ndarray, np.ndarray]:
    """Both axes by one factor, from 0, the longer one to 1,000: places on a map have no units."""
    x, y = points.x.astype(float), points.y.astype(float)
    span = max(float(np.nanmax(x) - np.nanmin(x)), float(np.nanmax(y) - np.nanmin(y)), 1e-9)
    return (x - np.nanmin(x)) / span * _SPAN, (y - np.nanmin(y)) / span * _SPAN


def _colouring(models: Zoo) -> map_colouring.Colouring | None:
    """By the column of categories that matters most, where there is one."""
    possible, _ = map_colouring.possible(models.items)
    order = sorted(possible, key=lambda name: _PREFERRED.index(name) if name in _PREFERRED else len(_PREFERRED))
    for name in order:
        if name != "popularity":
            found = map_colouring.colouring(models.items, name)
            if found.group is not None:
                return found
    return None
