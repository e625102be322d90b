"""How many words of a catalogue a model or tokenizer knows, in a sentence: of what its manifest says, if it does."""

from __future__ import annotations

from engine.bundle.manifest import TOO_MANY

CARE = "Many words of this catalogue are unknown to it, so its answers may say little."


def sentence(unknown: object) -> str:
    """unknown: the share that it does not know, as read from a file; "" where that is no share."""
    missing = _share(unknown)
    if missing is None:
        return ""
    if not missing:
        return "It knows every word of this catalogue."
    known = 1 - missing
    share = "less than 1%" if known < 0.01 else "more than 99%" if missing < 0.01 else f"{known:.0%}"
    return (
        f"It knows {share} of the words of this catalogue; the rest is spelt letter by letter, or has no token at all."
    )


def too_few(unknown: object) -> bool:
    """Whether what it says of this catalogue is to be taken with care."""
    missing = _share(unknown)
    return missing is not None and missing >= TOO_MANY


def _share(unknown: object) -> float | None:
    if not isinstance(unknown, int | float) or isinstance(unknown, bool) or not 0 <= unknown <= 1:
        return None
    return float(unknown)
