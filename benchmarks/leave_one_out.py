"""Which bars of leave-one-out say what a removal does to the rank: raw scores, log-probabilities, margins, ranks.

    python -m benchmarks.leave_one_out [--zoo exports/sample] [--models sasrec attrec] [--histories 300]

For each model, histories drawn at random (seed 0) among those with a held-out item and at least two events. What is explained
is the model's first recommendation, as on the pages, and the held-out item. Every event that the model reads is removed once.
Printed are two shares, as a Markdown table:

opposite sign   of the events whose removal moves the rank by more than a fifth, those whose bar points the other way
not the most    of the histories in which some removal costs places, those whose longest bar to the right ("does the most for
                it") is not an event that costs the most places

margin: the score minus that of the best other candidate. A generator is asked for no margin: its score is a log-probability
already, and the margin would need the whole tree of identifiers for each event. The bar of the rank, log10(rank without /
rank), is right by definition.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.bundle.index import Float32
from engine.runtime import Bundle, LeaveOneOut, Zoo

FIFTH = 0.2
Float64 = npt.NDArray[np.float64]


class Shares(NamedTuple):
    moves: int
    """Events whose removal moves the rank by more than a fifth."""
    opposite: int
    histories: int
    """In which some removal costs places."""
    other: int
    """Of those, where the longest bar to the right is not an event that costs the most places."""


def shares(answers: list[LeaveOneOut], bars: list[Float64]) -> Shares:
    """bars: per answer, a bar for each event of the history."""
    moves = opposite = histories = other = 0
    for found, bar in zip(answers, bars, strict=True):
        lost = (found.rank_without - found.rank)[found.read]
        own = bar[found.read]
        far = np.abs(lost) > FIFTH * found.rank
        moves += int(far.sum())
        opposite += int((lost * own < 0)[far].sum())
        if (lost > 0).any():
            histories += 1
            other += int(lost[np.argmax(own)] < lost.max())
    return Shares(moves, opposite, histories, other)


def margins(bundle: Bundle, history: list[int], found: LeaveOneOut) -> Float64:
    """How much of the lead over the best other candidate goes with each event."""
    others = bundle.candidates(history)
    others[found.item] = False

    def lead(scores: Float32) -> float:
        return float(scores[found.item]) - float(scores[others].max())

    places = list(found.read)
    variants = [np.array(history), *(np.delete(history, place) for place in places)]
    whole, *without = (lead(scores) for scores in bundle.scores_near(variants, np.array([found.item])))
    bars = np.zeros(len(history))
    bars[places] = whole - np.array(without)
    return bars


def drawn(models: Zoo, many: int) -> list[tuple[list[int], int]]:
    """(history, held-out item)"""
    users = models.users
    long = np.flatnonzero(np.array([len(history) > 1 for history in users["history"].to_pylist()]))
    rows = np.random.default_rng(0).permutation(long)[:many]
    return [(users["history"][int(row)].as_py(), users["target"][int(row)].as_py()) for row in rows]


def lines(bundle: Bundle, item: str, cases: list[tuple[list[int], int]]) -> list[str]:
    answers = [bundle.leave_one_out(history, item) for history, item in cases]
    bars = {
        "score": [found.effect.astype(float) for found in answers],
        "rank": [found.move for found in answers],
    }
    if bundle.cannot("probability") is None:
        bars["log-probability"] = [found.log_probability_effect.astype(float) for found in answers]
    if bundle.manifest.generator is None:
        bars["margin"] = [margins(bundle, *case) for case in ((h, f) for (h, _), f in zip(cases, answers, strict=True))]
    rows = []
    for name in ("score", "log-probability", "margin", "rank"):
        if name in bars:
            one = shares(answers, bars[name])
            opposite = f"{one.opposite / one.moves:.0%}" if one.moves else "–"
            other = f"{one.other / one.histories:.0%}" if one.histories else "–"
            rows.append(
                f"| {bundle.manifest.title} | {item} | {name} | {opposite} of {one.moves:,} | {other} of {one.histories:,} |"
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", type=Path, default=Path("exports/sample"), help="the exports of one dataset")
    parser.add_argument(
        "--models", nargs="+", help="names of bundles (default: all that read more than the last event)"
    )
    parser.add_argument("--histories", type=int, default=300)
    args = parser.parse_args()
    models = Zoo.open(args.zoo)
    cases = drawn(models, args.histories)
    if not cases:
        raise SystemExit(f"{args.zoo} has no history of two events with a held-out item.")
    print("| model | item | bar | opposite sign | not the most |\n|---|---|---|---|---|")
    names = args.models or [name for name, bundle in models.bundles.items() if bundle.manifest.encoder.max_length > 1]
    for name in names:
        bundle = models.bundles[name]
        first = [(history, int(bundle.recommend_one(history, 1).items[0])) for history, _ in cases]
        for item, chosen in (("first in its list", first), ("held-out", cases)):
            for line in lines(bundle, item, chosen):
                print(line, flush=True)


if __name__ == "__main__":
    main()
