"""What a word is, in any script."""

from __future__ import annotations

import re
import unicodedata

MARKS = "".join(
    c
    for c in map(chr, range(0x12000))
    if unicodedata.category(c) in ("Mn", "Mc") and not "\ufe00" <= c <= "\ufe0f"  # these choose a glyph
)
"""Accents, and vowels written around a letter, as of Hindi and Thai: they belong to the word (Unicode's UAX 29, rule WB4), though
Python's \\w is none of them."""
WORD = re.compile(rf"[^\W_]+(?:[{MARKS}]+[^\W_]*)*")
"""Letters and digits with their marks."""
