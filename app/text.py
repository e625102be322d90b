"""Escaping at the door. Titles and names come from data: they must show as text wherever they are put, and do nothing else.

    md(title)       into anything that reads Markdown: st.markdown, captions, alerts, labels, tooltips
    label(title)    into Plotly: labels, hover texts, customdata; Plotly reads a kind of HTML
    cell(value)     into a CSV file: spreadsheets run cells that begin like a formula
    short(title)    cut to a length, between characters as people see them
    apart(titles)   as short, where they stay different
    slug(title)     as the name of a file or a folder
    fold(text)      as searches compare it: without case, accents and apostrophes

Plain places (st.text, table cells, st.selectbox options) take `clean(title)` as it is.
"""

import csv
import functools
import io
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from engine.writing import WORD

# What Markdown and Streamlit's directives (:red[…]) begin with; the last ones only at the start.
_MARKDOWN = re.compile(r"[\\`*_\[\]<>&$~|#]|:(?=[A-Za-z:])|^[+\-=]")
_NUMBERED = re.compile(r"^(\d+)([.)])")
_JOINER = "\u2060"  # word joiner: invisible, without width
# What Streamlit turns into something else after Markdown itself was read, so that a backslash does not help.
_AFTERWARDS = re.compile(
    r"(?<=:)(?=[\w+-]+:)"  # :emoji:, :streamlit:
    r"|(?<=:)(?=material/)"  # :material/icon:
    r"|(?<=www)(?=\.)|(?<=:)(?=//)|(?<=@)(?=\w)"  # links and addresses
    r"|(?<=[<\-])(?=[->])|(?<=[<>~])(?==)",  # arrows, dashes, ≤ ≥ ≈
    re.IGNORECASE,
)
# Directions that would reach beyond the text they stand in.
_BIDI = dict.fromkeys(map(ord, "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"))
_ISOLATE, _END = "\u2068", "\u2069"
_AGAIN = 200  # characters of what is looked up rather than escaped anew: a run of Compare asks for 400 texts, the titles of a few
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def clean(text: object, limit: int = 500) -> str:
    """One line without control characters; what runs from right to left is kept from turning its surroundings round."""
    line = str(text)
    return _clean_again(line, limit) if len(line) <= _AGAIN else _clean(line, limit)


def _clean(line: str, limit: int) -> str:
    if len(line) <= limit and line.isascii() and line.isprintable() and "  " not in line and line == line.strip(" "):
        return line  # most titles, and the same as below
    line = " ".join(line[: 4 * limit].split()).translate(_BIDI)
    line = "".join(c for c in line if unicodedata.category(c) not in ("Cc", "Cs", "Co", "Cn"))
    return _isolated(short(line, limit, isolate=False))


def editable(text: str) -> str:
    """What `clean` made, for a field: without its marks of direction, which would count among the characters that fit."""
    return text.strip(_ISOLATE + _END)


def md(text: object, limit: int = 500) -> str:
    """Text that Streamlit's Markdown shows letter by letter."""
    line = str(text)
    return _md_again(line, limit) if len(line) <= _AGAIN else _md(line, limit)


def _md(line: str, limit: int) -> str:
    joined = _AFTERWARDS.sub(_JOINER, clean(line, limit))
    return _NUMBERED.sub(r"\1\\\2", _MARKDOWN.sub(r"\\\g<0>", joined))


_clean_again = functools.lru_cache(maxsize=4_096)(_clean)
_md_again = functools.lru_cache(maxsize=4_096)(_md)


def label(text: object, limit: int = 500) -> str:
    """Text that Plotly shows letter by letter."""
    escaped = clean(text, limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("$", "&#36;")  # $…$ is a formula where MathJax is on the page


def cell(value: Any) -> Any:
    """A value for a CSV file: text that a spreadsheet would run gets an apostrophe, numbers stay numbers."""
    if not isinstance(value, str):
        return value
    begins = value.lstrip(" \u00a0\ufeff")
    return f"'{value}" if value.startswith(_FORMULA) or begins.startswith(_FORMULA) else value


def csv_bytes(columns: Iterable[Any], rows: Iterable[Iterable[Any]]) -> bytes:
    """CSV in UTF-8 with a byte-order mark (spreadsheets ask for it); texts that a spreadsheet would run are neutralised."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([cell(str(name)) for name in columns])
    for row in rows:
        writer.writerow([_field(value) for value in row])
    return text.getvalue().encode("utf-8-sig")


def _field(value: Any) -> Any:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    return cell("; ".join(map(str, value)) if isinstance(value, (list, tuple)) else value)


def slug(*words: str, default: str = "seqscope") -> str:
    """A name for a file or a folder from any words: lowercase letters of any script, digits and dashes. default: where there is
    neither letter nor digit."""
    return "-".join(WORD.findall(" ".join(words).lower()))[:80] or default


def short(text: str, limit: int = 40, *, isolate: bool = True) -> str:
    """At most `limit` characters as people see them, the last one an ellipsis where something was cut."""
    if len(text) > limit:
        clusters: list[str] = []
        for cluster in _clusters(text):
            if len(clusters) == limit:
                text = "".join(clusters[:-1]).rstrip(f" {_ISOLATE}") + "…"
                break
            clusters.append(cluster)
    if isolate:
        return _isolated(text.replace(_ISOLATE, "").replace(_END, ""))
    return text


_YEAR = re.compile(r"(?<=\S)\s+\(\d{4}\)$")


def short_title(title: str, limit: int) -> str:
    """As `short`; a year at its end goes before letters do."""
    return short(title if len(title) <= limit else _YEAR.sub("", title), limit)


def apart(texts: Sequence[str], limit: int) -> list[str]:
    """Each cut to `limit` characters; those with a long beginning in common keep its first word and go on where they differ."""
    plain = [list(_clusters(text.replace(_ISOLATE, "").replace(_END, ""))) for text in texts]
    return [short(_apart(text, [other for other in plain if other != text], limit), limit) for text in plain]


def _apart(text: list[str], others: list[list[str]], limit: int) -> str:
    same = max((_same(text, other) for other in others), default=0)
    words = [index + 1 for index, cluster in enumerate(text) if cluster == " "]
    start = max((index for index in words if index <= same), default=same)
    if len(text) <= limit or start <= limit // 2:
        return "".join(text)
    head = max((index - 1 for index in words if index - 1 <= limit // 3), default=limit // 3)
    return f"{''.join(text[:head]).rstrip()} … {''.join(text[start:])}"


def _same(first: list[str], second: list[str]) -> int:
    """How many characters they begin with alike."""
    return next(
        (index for index, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


def wide(text: str, size: float = 12) -> int:
    """Pixels that a text takes in the app's font at that size; rather a few too many."""
    ems = (1.0 if unicodedata.east_asian_width(c) in "WF" else 0.57 if c.isupper() else 0.48 for c in text)
    return math.ceil(size * sum(ems))


def grouped(number: float, digits: int) -> str:
    """A whole number in full, another with so many digits: 12,345, 0.1235."""
    return f"{number:,.0f}" if number.is_integer() and abs(number) < 1e15 else f"{number:,.{digits}g}"


def adding_up(parts: Sequence[float], digits: int) -> list[float]:
    """To so many digits behind the point, so that they sum to their rounded sum: what rounding leaves over goes to the largest
    part, where it shows least."""
    rounded = [round(part, digits) for part in parts]
    largest = max(range(len(parts)), key=lambda place: abs(parts[place]))
    rounded[largest] += round(sum(parts), digits) - sum(rounded)
    return rounded


def amount(bytes: int) -> str:
    """As in “2.5 MB”."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if bytes >= scale:
            return f"{bytes / scale:.1f} {unit}".replace(".0 ", " ")
    return f"{bytes} bytes"


def span(seconds: float, digits: Literal[0, 1] = 0) -> str:
    """A duration for people: 42 s, 3 min, 2.1 h. digits: behind the point of seconds and minutes."""
    if seconds < 90:
        return f"{seconds:.1f} s" if digits else f"{max(1, round(seconds))} s"
    if seconds < 5_400:
        return f"{seconds / 60:.{digits}f} min"
    return f"{seconds / 3_600:.1f} h"


def percent(share: float) -> str:
    """Two digits that count: 35%, 1.8%, 0.06%; as many more as it takes not to be all."""
    if share < 1e-4:
        return "<0.01%"
    return share_of_all(share) if share >= 0.0995 else f"{share:.1%}" if share >= 0.00995 else f"{share:.2%}"


def share_of_all(share: float, digits: int = 0) -> str:
    """99%, and as many digits more as it takes not to be all: 99.998%. digits: after the point at least."""
    if share < 1:
        digits = max(digits, math.ceil(-math.log10(1 - share)) - 2)
    return f"{share:.{digits}%}"


def whole_rank(rank: float) -> str:
    """1, 340, 1,712; a rank that is shared, 1.5, has its half."""
    return f"{rank:,.0f}" if rank == int(rank) else f"{rank:,.1f}"


def ordinal(rank: float) -> str:
    """1st, 22nd, 1,013th; a rank that is shared, 1.5, is "tied 1.5"."""
    if rank != int(rank):
        return f"tied {rank:,.1f}"
    last, teens = int(rank) % 10, 10 <= int(rank) % 100 < 20
    return f"{rank:,.0f}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th')}"


def listed(words: list[str], last: str = "and") -> str:
    """a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def distinct(titles: Mapping[str, str]) -> dict[str, str]:
    """Name → title, with the name behind it where another one is called the same."""
    many = Counter(titles.values())
    return {name: title if many[title] == 1 else f"{title} ({name})" for name, title in titles.items()}


def together(said: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """(title, what is said of it) → (titles of which the same is said, what), in their order."""
    titles: dict[str, list[str]] = {}
    for title, words in said:
        titles.setdefault(words, []).append(title)
    return [(listed(some), words) for words, some in titles.items()]


def _isolated(text: str) -> str:
    if any(unicodedata.bidirectional(c) in ("R", "AL") for c in text):
        return f"{_ISOLATE}{text}{_END}"
    return text


def _clusters(text: str) -> Iterator[str]:
    """Roughly the grapheme clusters of Unicode's UAX 29: marks, joiners, skin tones, flags and Hangul letters stay together."""
    cluster = ""
    for c in text:
        if cluster and _belongs(cluster, c):
            cluster += c
        else:
            if cluster:
                yield cluster
            cluster = c
    if cluster:
        yield cluster


def _belongs(cluster: str, c: str) -> bool:
    before = cluster[-1]
    if unicodedata.category(c) in ("Mn", "Me", "Mc") or c in "\u200d\ufe0f" or "\U0001f3fb" <= c <= "\U0001f3ff":
        return True
    if before == "\u200d":
        return unicodedata.category(c) == "So"
    if _is_flag(c) and _is_flag(before):
        return len(cluster) % 2 == 1
    jamo = "\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3"
    return jamo and "\u1160" <= c <= "\u11ff"


def _is_flag(c: str) -> bool:
    return "\U0001f1e6" <= c <= "\U0001f1ff"


# --- texts as searches compare them


MAX_QUERY = 200  # characters of a search
MAX_TOKENS = 8
_PLAIN = str.maketrans({chr(code): "" if chr(code) in "'`" else " " for code in range(128) if not chr(code).isalnum()})
_APOSTROPHES = str.maketrans("\u200c", " ", "'’‘`´\u200d")
"""And joiners: a non-joiner is a space, as many write Persian words apart."""
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
    apart = unicodedata.normalize("NFKD", text.translate(_APOSTROPHES)).casefold()  # of ´ it makes a blank
    plain = "".join(c for c in apart if not unicodedata.combining(c) and c != "'")
    return " ".join(unicodedata.normalize("NFC", plain).split())
