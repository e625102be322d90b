"""What the detail panel of an item shows, as plain data for `widgets.item_panel`: one function per section."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app import styles
from app.analysis import beam_search, item_card, recommend, semantic_ids, tokenizers
from app.store.catalogue import Catalogue
from app.text import clean, listed, ordinal, percent, short, together, whole_rank
from engine.errors import SeqscopeError
from engine.runtime import LeaveOneOut, Neighbours, Zoo
from engine.writing import count

EVENTS = 10  # of a history that leave-one-out shows: those with the strongest effects
NEAR = 8
_SHADED = 3.0  # powers of ten of a rank, or of its move, from the palest colour to the fullest


def card(models: Zoo, catalogue: Catalogue, item: int) -> dict[str, Any]:
    """What the catalogue and the log know. "filters": whether the catalogue can be filtered by the attribute's values."""
    items, facets = catalogue.items, {facet.name: facet.kind for facet in catalogue.facets}
    standing = ""
    if models.has_log:
        place = item_card.standing(models.popularity, item)
        standing = f"{count(place.events, 'training event')} · popularity rank {place.rank:,} of {len(models):,}" + (
            f" · more popular than {percent(place.percentile / 100)}" if place.rank > 1 and place.percentile else ""
        )
    series = item_card.series_of(items, item)
    return {
        **styles.entry(models, item, 300),
        "standing": standing,
        "description": clean(item_card.description(items, item), 4_000),
        "attributes": [
            {
                "name": name,
                "title": title,
                "values": [{"text": clean(value, 80), "value": value} for value in values[:20]],
                "filters": facets.get(name) in ("tags", "category"),
            }
            for name, title, values in item_card.attributes(items, item)
        ],
        "series": None
        if series is None
        else {
            "title": clean(series.name, 80),
            "items": [{**_item(models, member), "place": place} for member, place in series.members],
        },
    }


def ranks(models: Zoo, names: Sequence[str], history: recommend.History, item: int, k: int) -> list[dict[str, Any]]:
    """A row per model."""
    rows = []
    for name in names:
        row = _model(models, name)
        try:
            rank, share = recommend.placement(models, name, history, item, k)
        except SeqscopeError as reason:
            rows.append({**row, "cannot": clean(reason)})
            continue
        if rank is None:
            rows.append({**row, "rank": f"> {k}", "shade": 0.0, "help": f"not among its first {k} items"})
            continue
        rows.append(
            {
                **row,
                "rank": whole_rank(rank),
                "share": "" if share is None else percent(share),
                "shade": round(max(0.0, 1 - float(np.log10(rank)) / _SHADED), 2),
                "help": f"ranked {ordinal(rank)}",
            }
        )
    return rows


def why(models: Zoo, names: Sequence[str], history: recommend.History, item: int, *, slow: bool) -> dict[str, Any]:
    """Leave-one-out: a row per event of the history, a cell per model. slow: models that take long for it are asked, too."""
    waiting = [] if slow else [name for name in names if beam_search.slow(models, name, len(history))]
    answers = recommend.ask(models, [name for name in names if name not in waiting], history, 1)
    reasons = recommend.why(models, answers, history, item)
    places = recommend.strongest(reasons.effects, EVENTS)
    titles = [styles.titled(models, event) for event in history]
    left_out = len(history) - len(places)
    return {
        "models": [
            {**_model(models, answer.name), "rank": whole_rank(effect.rank)}
            for answer, effect in zip(reasons.answers, reasons.effects, strict=True)
        ],
        "events": [
            {
                **_item(models, history[place]),
                "place": str(place + 1),
                "cells": [
                    _cell(answer.title, titles[place], effect, place)
                    for answer, effect in zip(reasons.answers, reasons.effects, strict=True)
                ],
            }
            for place in places
        ],
        "note": f"The {len(places)} strongest of {len(history)} events." if left_out and places else "",
        "sums": [
            recommend.sum_words(
                clean(models.bundles[name].manifest.title), sums, [clean(title, 60) for title in titles]
            )
            for name, sums in reasons.sums.items()
        ],
        "cannot": _together(reasons.cannot),
        "waiting": listed([clean(models.bundles[name].manifest.title, 40) for name in waiting]),
    }


def codes(models: Zoo, item: int) -> list[dict[str, Any]]:
    """A row per tokenizer. help: of each code, how many items have the prefix that ends there."""
    rows = []
    for name, tokenization in models.tokenizations.items():
        path = semantic_ids.path(tokenization.learned, item)
        rows.append(
            {
                "name": name,
                **styles.named(tokenization.about.title, styles.tokenizer_style(models, name)),
                "codes": [
                    {
                        "text": str(code),
                        "prefix": "-".join(map(str, path[:depth])),
                        "help": f"{count(len(semantic_ids.with_prefix(tokenization.learned, path[:depth])), 'item')} with "
                        f"semantic IDs that begin {semantic_ids.spelled(path[:depth])}",
                    }
                    for depth, code in enumerate(path, 1)
                ],
                "rest": semantic_ids.spelled(tokenizers.disambiguating(tokenization, item)),
            }
        )
    return rows


def near(models: Zoo, neighbours: Neighbours) -> list[dict[str, Any]]:
    """A row per neighbour, the nearest first."""
    return [
        {**_item(models, item), "similarity": item_card.similarity_words(value, neighbours.measure)}
        for item, value in zip(neighbours.items.tolist(), neighbours.similarity.tolist(), strict=True)
    ]


def _model(models: Zoo, name: str) -> dict[str, Any]:
    return {"name": name, **styles.named(models.bundles[name].manifest.title, styles.style(models, name))}


def _item(models: Zoo, item: int) -> dict[str, str]:
    return {"id": models.item_ids[item], "title": clean(styles.titled(models, item), 120)}


def _cell(model: str, event: str, effect: LeaveOneOut, place: int) -> dict[str, Any]:
    without, move = float(effect.rank_without[place]), float(effect.move[place])
    if place not in effect.read:
        return {"text": "·", "move": 0.0, "help": f"{clean(model)} does not read this event"}
    if np.isnan(move):
        return {"text": "–", "move": 0.0, "help": f"{clean(model)} has no answer without it"}
    change = "the same" if move == 0 else "so the event raises the item" if move > 0 else "so the event lowers the item"
    return {
        "text": whole_rank(without),
        "move": round(float(np.clip(move / _SHADED * 2, -1, 1)), 3),
        "help": f"{clean(model)}: {ordinal(effect.rank)} now, {ordinal(without)} without {short(clean(event), 40)}, {change}",
    }


def _together(refusals: Sequence[str]) -> list[str]:
    """Models with the same reason in one sentence. refusals: each "title: reason"."""
    said = (refusal.partition(": ")[::2] for refusal in refusals)
    return [clean(f"{titles}: {reason}") for titles, reason in together(said)]
