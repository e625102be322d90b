"""Which encoding a text is in, and how sure that is.

UTF-8 proves itself: text in another encoding is hardly ever valid UTF-8. Nothing proves the others, so the lines that it
matters for are weighed by charset-normalizer among the few encodings that catalogues come in, and shown to be looked at.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from charset_normalizer import from_bytes

from app.uploads.reading import ENCODINGS, ReadingChoice

_CANDIDATES = ("cp949", "cp932", "gb18030", "euc-jp", "big5", "cp1251", "cp1252")
_SAMPLE = 200_000  # bytes of lines with other characters than ASCII that are weighed
_SHOWN = 4  # lines for people to look at
_WIDTH = 100
_CLEAR = 0.04  # of charset-normalizer's chaos, between the best and the next
_OWN_LETTERS = {
    "cp949": ("가", "힣", 1),
    "cp932": ("ぁ", "ヿ", 5),
    "euc-jp": ("ぁ", "ヿ", 5),
}  # a fifth of them is enough
_NO_CP1252 = b"\x81\x8d\x8f\x90\x9d"


@dataclass
class Scan:
    """What one pass over the bytes has found."""

    head: bytes = b""
    """The first megabyte."""
    size: int = 0
    lines: int = 0
    utf8: bool = True
    ascii: bool = True
    sample: bytearray = field(default_factory=bytearray)
    """Lines with other bytes than ASCII."""


def scan(parts: Iterable[bytes]) -> Scan:
    scanned, decoder, rest, ended = Scan(), codecs.getincrementaldecoder("utf-8")(), b"", True
    for block in parts:
        ended = block.endswith((b"\n", b"\r"))
        if not scanned.size:
            scanned.head = block[: 1 << 20]
        scanned.size += len(block)
        scanned.lines += block.count(b"\n") or block.count(b"\r")
        if scanned.utf8:
            try:
                decoder.decode(block)
            except UnicodeDecodeError:
                scanned.utf8 = False
        if not block.isascii():
            scanned.ascii = False
            if len(scanned.sample) < _SAMPLE:
                for line in (rest + block).split(b"\n"):
                    if not line.isascii() and len(scanned.sample) < _SAMPLE:
                        scanned.sample += line[:10_000] + b"\n"
        rest = block[block.rfind(b"\n") + 1 :][-10_000:]
    if scanned.utf8:
        try:
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            scanned.utf8 = False
    scanned.lines += scanned.size > 0 and not ended
    return scanned


def guess(scanned: Scan) -> ReadingChoice:
    marked = _marked(scanned.head)
    if marked:
        return ReadingChoice(
            about="encoding", value=marked, sure="certain", why="The file begins with its byte order mark."
        )
    wide = _wide(scanned.head)
    if wide:
        why = "Every other byte is zero, as in UTF-16 without a byte order mark."
        return ReadingChoice(about="encoding", value=wide, sure="likely", why=why, others=("utf-8",))
    if scanned.utf8:
        why = "All characters are ASCII: most encodings agree." if scanned.ascii else "All of it is valid UTF-8."
        return ReadingChoice(about="encoding", value="utf-8", sure="certain", why=why)
    return _weighed(bytes(scanned.sample))


def read_as(sample: bytes, encodings: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Encoding → some of the lines that it decides on, as it reads them; those alone that tell most."""
    lines = [line.strip(b"\r") for line in sample.split(b"\n") if not line.isascii()][:_SHOWN]
    return {encoding: tuple(_around(line, encoding) for line in lines) for encoding in encodings}


def _marked(head: bytes) -> str | None:
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return None


def _wide(head: bytes) -> str | None:
    part = head[:4096]
    even, odd = part[0::2].count(0), part[1::2].count(0)
    if len(part) >= 8 and max(even, odd) > 0.3 * len(part) / 2 and min(even, odd) < 0.02 * len(part) / 2 + 1:
        return "utf-16-le" if odd > even else "utf-16-be"
    return None


def _weighed(sample: bytes) -> ReadingChoice:
    """The likeliest of the candidates for lines that are not UTF-8."""
    latin = "latin-1" if any(byte in sample for byte in _NO_CP1252) else "cp1252"
    matches = from_bytes(
        sample,
        cp_isolation=[*(name.replace("-", "_") for name in _CANDIDATES), "latin_1"],
        threshold=0.5,
        preemptive_behaviour=False,
        enable_fallback=False,
    )
    best: dict[str, float] = {}
    for match in matches:
        name = _name(match.encoding, latin)
        strange = 0.0 if name == latin else _mixed(sample, name)
        best[name] = min(best.get(name, 1.0), match.chaos + strange)
    # Of equals, the one whose script is pure; then the one that charset-normalizer puts first.
    order = sorted(best, key=lambda name: (round(best[name], 2), -_pure(sample, name)))
    ranked = list(dict.fromkeys((*order, latin, *_CANDIDATES)))
    if not order:
        why = "It is not UTF-8, and no encoding that is known here reads it well."
        return ReadingChoice(about="encoding", value=latin, sure="unsure", why=why, others=_but(ranked, latin))
    value = order[0]
    clear = len(order) == 1 or best[order[1]] - best[order[0]] > _CLEAR
    why = f"It is not UTF-8; of the other encodings {ENCODINGS[value]} reads its special characters best."
    if not clear:
        why = f"It is not UTF-8; {ENCODINGS[value]} and {ENCODINGS[order[1]]} read it about equally well."
    return ReadingChoice(
        about="encoding", value=value, sure="likely" if clear else "unsure", why=why, others=_but(ranked, value)
    )


def _name(encoding: str, latin: str) -> str:
    return latin if encoding in ("latin_1", "cp1252") else encoding.replace("_", "-")


def _mixed(sample: bytes, encoding: str) -> float:
    """Share of the words with foreign letters that have plain ones, too: many in Misérables, few in any other script."""
    words = [word for word in re.findall(r"[^\W\d_]+", sample.decode(encoding, "replace")) if not word.isascii()]
    return sum(any(c.isascii() for c in word) for word in words) / max(1, len(words))


def _pure(sample: bytes, encoding: str) -> float:
    """Share of the foreign letters that only texts in this encoding's own language have."""
    first, last, times = _OWN_LETTERS.get(encoding, ("", "", 0))
    letters = [c for c in sample.decode(encoding, "replace") if c > "\x7f"]
    return min(1.0, times * sum(first <= c <= last for c in letters) / max(1, len(letters)))


def _but(names: list[str], value: str) -> tuple[str, ...]:
    return tuple(name for name in names if name != value)


def _around(line: bytes, encoding: str) -> str:
    """The part of a line around its first special character."""
    text = line.decode(encoding, "replace")
    start = max(0, next((index for index, c in enumerate(text) if ord(c) > 127), 0) - 30)
    return ("…" if start else "") + text[start : start + _WIDTH] + ("…" if len(text) > start + _WIDTH else "")
