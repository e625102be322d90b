"""What generators are asked about their beams, asked once and kept."""

from __future__ import annotations

from app.kept import Kept
from engine.runtime import Agreement, CrossAttention, Trace, Zoo

LISTED = 20  # prefixes per step in the table that were not followed
WIDTHS = (1, 5, 10, 20, 50)
CELLS = 5_000  # items to score times histories to ask about that one page may cost without being asked for


def generators(models: Zoo) -> list[str]:
    return [name for name, bundle in models.bundles.items() if bundle.cannot("identifiers") is None]


def slow(models: Zoo, model: str, histories: int) -> bool:
    """Whether exact scores after so many histories would keep a visitor waiting: a generator must write every item's codes."""
    return models.bundles[model].manifest.generator is not None and len(models) * histories > CELLS


_TRACES: Kept[Trace] = Kept(100)
_AGREEMENTS: Kept[list[Agreement]] = Kept(200)
_CROSS: Kept[CrossAttention] = Kept(200)


def trace(models: Zoo, model: str, history: tuple[int, ...], width: int, constrained: bool) -> Trace:
    """Raises SeqscopeError where the model cannot answer."""
    bundle = models.bundles[model]
    return _TRACES.get(
        (model, bundle.digest, history, width, constrained),
        lambda: bundle.trace(history, width, constrained=constrained, dropped=LISTED),
    )


def agreement(models: Zoo, model: str, history: tuple[int, ...], widths: tuple[int, ...], k: int) -> list[Agreement]:
    bundle = models.bundles[model]
    return [
        *_AGREEMENTS.get((model, bundle.digest, history, widths, k), lambda: bundle.agreement([history], widths, k))
    ]


def cross_attention(models: Zoo, model: str, history: tuple[int, ...], item: int) -> CrossAttention:
    bundle = models.bundles[model]
    return _CROSS.get((model, bundle.digest, history, item), lambda: bundle.cross_attention(history, item))
