"""What the models recommend, before and after an edit, why, and how much they agree: asked anew, nothing kept."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from app import examples, whatif
from app.analysis.recommend import TopK, recommend
from app.looks import titled
from app.reports.document import Asked, Effect, Effects, History, Item, Listing, Moved, Moves, Overlap, Ranked, WhatIf
from engine.errors import SeqscopeError
from engine.runtime import Zoo, jaccard, movement, overlap, rbo, rbo_weight

RBO_P = 0.9
SLOW = 5_000  # items to score times histories to ask about, from which a model that writes codes takes long
Numbers = tuple[int, ...]


def number(value: float) -> float:
    """As many digits as a float32 has."""
    return float(f"{value:.7g}")


def numbers(models: Zoo, ids: Sequence[str]) -> Numbers:
    """Item numbers. Raises SeqscopeError where the catalogue lacks one."""
    found = [models.position(item_id) for item_id in ids]
    missing = [item_id for item_id, item in zip(ids, found, strict=True) if item is None]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise SeqscopeError(f"The catalogue {models.info.name} has no item “{missing[0][:80]}”{more}.")
    return tuple(item for item in found if item is not None)


def item(models: Zoo, at: int) -> Item:
    return Item(item_id=models.item_ids[at], title=titled(models, at))


def history(models: Zoo, asked: Asked, row: int | None) -> History:
    """row: of `models.users`, the person whose history it is; None: nobody's, or nobody who may be named."""
    target = None if row is None else models.next_item(row)
    edited = None if asked.edited is None else [item(models, at) for at in numbers(models, asked.edited)]
    return History(
        items=[item(models, at) for at in numbers(models, asked.history or [])],
        edited=edited,
        person=None if row is None else asked.user,
        target=None if target is None else item(models, target),
    )


def person(models: Zoo, asked: Asked) -> int | None:
    """The row of the person whose history this is, where they may be named."""
    row = examples.user_row(models, asked.user) if asked.rows else None
    if row is None:
        return None
    own = [models.item_ids[at] for at in models.users["history"][row].as_py()]
    wanted = asked.history or []
    return row if own[-len(wanted) :] == list(wanted) and wanted else None


def listing(models: Zoo, model: str, events: Numbers, k: int, target: int | None = None) -> Listing:
    bundle = models.bundles[model]
    read = len(bundle.used(events))
    try:
        found = recommend(bundle, events, k)
        rank = None if target is None or slow(models, model, 1) else float(bundle.ranks(events, (target,))[0])
    except SeqscopeError as reason:
        return Listing(model=model, cannot=str(reason), read=read)
    return Listing(model=model, read=read, items=_ranked(models, model, found), target_rank=rank)


def slow(models: Zoo, model: str, histories: int) -> bool:
    """Whether exact scores after so many histories take long: a model that writes codes must write those of every item."""
    return models.bundles[model].manifest.generator is not None and len(models) * histories > SLOW


def _ranked(models: Zoo, model: str, found: TopK) -> list[Ranked]:
    bundle = models.bundles[model]
    tied = bundle.cannot("distinct_items") is not None
    shares = [None] * len(found.items) if found.share is None else found.share.tolist()
    return [
        Ranked(
            **item(models, at).model_dump(),
            place=place,
            score=number(score),
            share=None if share is None else number(share),
            ties=[models.item_ids[other] for other in bundle.siblings(at)[-1]] if tied else [],
        )
        for place, (at, score, share) in enumerate(
            zip(found.items.tolist(), found.scores.tolist(), shares, strict=True), 1
        )
    ]


# --- what if


def what_ifs(models: Zoo, names: Sequence[str], asked: Asked, now: Sequence[Listing]) -> list[WhatIf]:
    """The edited history, where there is one, and three edits that every history can have. now: the lists as they are."""
    own = tuple(asked.history or ())
    wanted: list[tuple[str, str, tuple[str, ...]]] = []
    if asked.edited is not None:
        wanted.append(("edited", "With the edited history", tuple(asked.edited)))
    if len(own) > 1:
        wanted.append(("without-last", "Without the last item", own[:-1]))
        wanted.append(("swapped", "With the last two swapped", whatif.swapped(own, len(own) - 2, len(own) - 1)))
    if own:
        wanted.append(("nothing", "With nothing known", ()))
    before = {one.model: one for one in now}
    return [
        WhatIf(
            name=name,  # type: ignore[arg-type]
            words=words,
            history=list(ids),
            models=[moves(before[model], listing(models, model, numbers(models, ids), asked.k)) for model in names],
        )
        for name, words, ids in wanted
    ]


def moves(before: Listing, after: Listing) -> Moves:
    """What became of each item from one list to the other."""
    if after.cannot is not None:
        return Moves(model=after.model, cannot=after.cannot)
    known = {one.item_id: one for one in (*before.items, *after.items)}
    ids = list(known)
    place = {item_id: at for at, item_id in enumerate(ids)}
    was, now = {one.item_id: one.score for one in before.items}, {one.item_id: one.score for one in after.items}
    found = movement([place[one.item_id] for one in before.items], [place[one.item_id] for one in after.items])
    return Moves(
        model=after.model,
        items=[
            Moved(
                item_id=ids[move.item],
                title=known[ids[move.item]].title,
                before=move.before,
                after=move.after,
                score_before=was.get(ids[move.item]),
                score_after=now.get(ids[move.item]),
                change=move.change,
            )
            for move in found
        ],
    )


def explained(models: Zoo, asked: Asked, lists: Sequence[Listing]) -> int | None:
    """The item whose score is explained: the one that was asked for, else the first one of the first list."""
    chosen = asked.item or next((one.items[0].item_id for one in lists if one.items), None)
    return None if chosen is None else numbers(models, [chosen])[0]


def effects(models: Zoo, names: Sequence[str], asked: Asked, lists: Sequence[Listing]) -> Effects | None:
    """Leave-one-out of every model for one item; None where there is no item or no history to leave out of."""
    at, events = explained(models, asked, lists), numbers(models, asked.history or [])
    if at is None or not events:
        return None
    return Effects(
        **item(models, at).model_dump(), models=[_effect(models, name, events, at, asked.slow) for name in names]
    )


def _effect(models: Zoo, model: str, events: Numbers, at: int, patient: bool) -> Effect:
    if slow(models, model, len(events)) and not patient:
        reason = (
            "It would write every item's codes anew for each event left out, which takes long; it was not asked to."
        )
        return Effect(model=model, cannot=reason)
    try:
        found = models.bundles[model].leave_one_out(events, at)
    except SeqscopeError as reason:
        return Effect(model=model, cannot=str(reason))
    if np.isnan(found.rank_without).all():
        return Effect(model=model, cannot="It needs at least one item, so nothing can be left out of a history of one.")
    return Effect(
        model=model,
        rank=found.rank,
        effect=[None if math.isnan(value) else number(value) for value in found.effect.tolist()],
        log_probability=[
            None if math.isnan(value) else number(value) for value in found.log_probability_effect.tolist()
        ]
        if math.isfinite(found.log_probability)
        else [],
        rank_without=[None if math.isnan(value) else value for value in found.rank_without.tolist()],
    )


# --- agreement


def agreement(lists: Sequence[Listing], k: int) -> Overlap | None:
    """None where fewer than two models answered."""
    able = [one for one in lists if one.cannot is None]
    if len(able) < 2:
        return None
    place = {item_id: at for at, item_id in enumerate(dict.fromkeys(i.item_id for one in able for i in one.items))}
    rows = [[place[i.item_id] for i in one.items] for one in able]
    times = Counter(at for row in rows for at in row)
    return Overlap(
        models=[one.model for one in able],
        shared=overlap(rows, k).tolist(),
        jaccard=[[number(value) for value in row] for row in jaccard(rows, k).tolist()],
        rbo=[[number(rbo(one, other, RBO_P)) for other in rows] for one in rows],
        rbo_p=RBO_P,
        rbo_weight=number(rbo_weight(RBO_P, k)),
        different=len(times),
        by_all=sum(count == len(able) for count in times.values()),
        by_one=sum(count == 1 for count in times.values()),
    )
