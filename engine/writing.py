"""What a word is, in any script, and how counts and shares are written."""

import re
import unicodedata

MARKS = "".join(
    c
    for c in map(chr, range(0x12000))
    if unicodedata.category(c) in ("Mn", "Mc") and not "\ufe00" <= c <= "\ufe0f"  # these choose a glyph
)
"""Accents, and vowels written around a letter, as of Hindi and Thai: they belong to the word (Unicode's UAX 29, rule WB4), though
Python's \\w is none of them."""
WORD = re.compile(rf"[^\W_]+(?:[{MARKS}]+[^\W_]*|[\u200c\u200d]+[{MARKS}]*[^\W_]+)*")
"""Letters and digits with their marks, and joiners between them, which say how letters of Persian or Sinhala are drawn (WB4)."""


def count(number: int, singular: str, plural: str | None = None) -> str:
    """1 item, 2,000 items."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def in_percent(share: float, digits: int = 0) -> str:
    """44%; <1% and >99% of what would be rounded to nothing and to all. digits: behind the point."""
    share, step = round(share, 9), 10.0**-digits  # a sum of shares misses 0 or 1 in its last bits
    few, most = share < step / 200, share >= 1 - step / 200
    return f"<{step:g}%" if few and share else f">{100 - step:g}%" if most and share < 1 else f"{share:.{digits}%}"
