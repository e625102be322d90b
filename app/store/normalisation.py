"""How texts are compared in searches: folded, taken apart into words, and numbers in every form."""

from __future__ import annotations

import re
import unicodedata

MAX_QUERY = 200  # characters of a search
MAX_TOKENS = 8
WORD = re.compile(r"[^\W_]+")
_PLAIN = str.maketrans({chr(code): "" if chr(code) in "'`" else " " for code in range(128) if not chr(code).isalnum()})
_APOSTROPHES = str.maketrans("", "", "'`")
_TO_TWENTY = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
_TENS = ("thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ROMAN = {2: "ii", 3: "iii", 4: "iv", 5: "v", 6: "vi", 7: "vii", 8: "viii", 9: "ix", 11: "xi", 12: "xii", 13: "xiii"}
"""Without i and x, which are words more often than numbers."""


def words_of(text: str) -> tuple[str, ...]:
    """The different words of a search, folded."""
    return tuple(dict.fromkeys(WORD.findall(fold(text[:MAX_QUERY]))))[:MAX_TOKENS]


def spaced(text: str) -> str:
    """The words of a text, folded, each with a blank before it: " star" is in it where a word begins so."""
    if text.isascii():  # the same, twice as fast
        return f" {' '.join(text.lower().translate(_PLAIN).split())}"
    return f" {' '.join(WORD.findall(fold(text)))}"


def title_words(title: str, year: object) -> str:
    """The words of a title as they are searched: its year is one of them, as it is shown with it."""
    words = words_and_numbers(title)
    return f"{words} {year}" if isinstance(year, int) and f" {year}" not in words else words


def words_and_numbers(text: str) -> str:
    """`spaced`, and each number once more as it is written otherwise: " oceans eleven 11 xi"."""
    words = spaced(text)
    return words + "".join([_OTHERWISE[word] for word in words.split() if word in _OTHERWISE])


def _otherwise() -> dict[str, str]:
    """A number as a word, in digits or in Roman numerals → the same in the other forms, each with a blank before it."""
    named = dict(enumerate(_TO_TWENTY)) | {10 * tens: word for tens, word in enumerate(_TENS, 3)}
    forms = [[word, str(number), *([_ROMAN[number]] if number in _ROMAN else [])] for number, word in named.items()]
    return {form: "".join(f" {other}" for other in same if other != form) for same in forms for form in same}


_OTHERWISE = _otherwise()


def fold(text: str) -> str:
    """Text as it is compared: lower case, without accents, apostrophes and double spaces, in any script."""
    if text.isascii():  # the same, many times as fast
        return " ".join(text.lower().translate(_APOSTROPHES).split())
    apart = unicodedata.normalize("NFKD", text).casefold()
    plain = "".join(c for c in apart if not unicodedata.combining(c) and c not in "'’‘`´")
    return " ".join(unicodedata.normalize("NFC", plain).split())
