"""What becomes of items that a tokenizer gives the same codes. The choice changes the task, so every run names it.

append      a further code counts the items of a group: 0, 1, 2, … (TIGER); it says nothing of the item
needed      the same, but only items that collide get one
sinkhorn    colliding items get other last codes in rounds (LC-Rec, LETTER); what is left over goes on colliding
keep        nothing: items that share an identifier are a tie
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from engine.data.identifiers import LEVELS, NONE, Identifiers
from engine.tokenizers import sinkhorn
from engine.tokenizers.base import Codes, Material, Tokenizer, codes_of


@dataclass(frozen=True)
class CollisionsConfig:
    policy: Literal["append", "needed", "sinkhorn", "keep"] = "append"
    epsilon: float = 0.003
    """Sinkhorn's ε."""
    iterations: int = 50
    """Sinkhorn's."""
    rounds: int = 20
    """Rounds of re-assignment."""
    separate: bool = False
    """After the rounds, put what still collides on the nearest last codes that are free (the authors leave it)."""


def settle(tokenizer: Tokenizer, material: Material, config: CollisionsConfig, about: dict[str, Any]) -> Identifiers:
    """The identifiers of the catalogue that `tokenizer` was fitted to. Raises ValueError where the policy does not fit it."""
    codes, sizes, names = codes_of(tokenizer, material), tokenizer.sizes, tokenizer.names
    if config.policy in ("append", "needed"):
        codes, sizes = append(codes, sizes, shared=tokenizer.shared, always=config.policy == "append")
        names = (*names, *("number" for _ in sizes[len(names) :]))
    elif config.policy == "sinkhorn":
        codes = _reassigned(tokenizer, material, codes, config)
    return Identifiers(codes, sizes, tokenizer.shared, names, about)


def extend(tokenizer: Tokenizer, known: Identifiers, material: Material, config: CollisionsConfig) -> Codes:
    """int32 [items, levels of `known`]: identifiers of further items beside the `known` ones, in the same vocabulary.

    A number that counts a group goes on counting; where the vocabulary has no higher number, the last one is shared.
    """
    codes = codes_of(tokenizer, material)
    if config.policy in ("append", "needed"):
        base = np.array([*tokenizer.sizes, *[0] * (known.levels - len(tokenizer.sizes))])
        known_codes = np.where(known.codes >= base, NONE, known.codes)[:, : codes.shape[1]]
        both, _ = append(
            np.concatenate([known_codes, codes]),
            tokenizer.sizes,
            shared=tokenizer.shared,
            always=config.policy == "append",
        )
        codes = both[len(known_codes) :]
    wide = np.full((len(codes), known.levels), NONE, np.int32)
    width = min(codes.shape[1], known.levels)
    wide[:, :width] = codes[:, :width]
    return np.minimum(wide, np.array(known.sizes, np.int32) - 1)


def append(
    codes: Codes, sizes: tuple[int, ...], *, shared: bool = False, always: bool = True
) -> tuple[Codes, tuple[int, ...]]:
    """Codes and sizes with a further code behind each identifier that counts the items which share it, in their order.

    The number stands in the first free place: in a level of its own where all identifiers are equally long, and above the codes
    of the level there where some are shorter. always: identifiers of one item alone get the number 0 as well.
    """
    count, levels = codes.shape
    if not count:
        return np.concatenate([codes, np.zeros((0, 1), np.int32)], 1), (*sizes, sizes[0] if shared else 1)
    _, group, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    number = np.empty(count, np.int64)
    number[order] = np.arange(count) - np.repeat(np.cumsum(counts) - counts, counts)
    gets = np.ones(count, bool) if always else counts[group] > 1
    if not gets.any():
        return codes, sizes
    lengths = (codes != NONE).sum(1)
    width = max(levels, int(lengths[gets].max()) + 1)
    if width > LEVELS:
        raise ValueError(f"identifiers would have {width} codes; at most {LEVELS} are allowed")
    base = np.array([*sizes, *[sizes[0] if shared else 0] * (width - levels)], np.int64)
    wide = np.full((count, width), NONE, np.int64)
    wide[:, :levels] = codes
    wide[gets, lengths[gets]] = base[lengths[gets]] + number[gets]
    grown = np.maximum(base, wide.max(0) + 1)
    if shared:
        grown[:] = grown.max()
    return wide.astype(np.int32), tuple(int(size) for size in np.maximum(grown, 1))


def _reassigned(tokenizer: Tokenizer, material: Material, codes: Codes, config: CollisionsConfig) -> Codes:
    last = getattr(tokenizer, "last", None)
    if last is None:
        raise ValueError(f"{tokenizer.name} has no distances to re-assign codes by; take another collisions.policy")
    rows = sinkhorn.neighbourhood(codes)
    if not len(rows):
        return codes
    distances = last(material.take(rows), codes[rows])
    part = sinkhorn.reassign(codes[rows], distances, config.epsilon, config.rounds, config.iterations)
    if config.separate:
        part = sinkhorn.separate(part, distances)
    codes = codes.copy()
    codes[rows] = part
    return codes
