"""How a text holds rows: the delimiter, the quotes, whether the first row names the columns; and lines into fields.

One set of regular expressions serves Python (which guesses) and DuckDB (which reads). They are matched against the delimiter and
then the line, so that every field begins with a delimiter and no match is empty."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from engine.errors import Refused
from engine.tabular.columns import known_name
from engine.tabular.database import BLANKS
from engine.tabular.reading import DELIMITERS, QUOTES, Limits, Reading, ReadingChoice, Sure, column_names, texts

_LOOKED_AT = 300  # lines
_KEYED = re.compile(r'\{\s*"(?:[^"\\]|\\.)*"\s*:\s*[\{\[]')
_VALUE = re.compile(r"[-+]?\d+([.,]\d+)*([eE][-+]?\d+)?%?|\d{4}-\d\d-\d\d([ T]\d\d:\d\d.*)?")  # a number or a date


class _Fit(NamedTuple):
    """How well a delimiter cuts the lines."""

    share: float
    """Of the lines, those with the commonest number of fields."""
    fields: int
    broken: float
    """Share of the lines whose quotes are not in order."""

    @property
    def value(self) -> float:
        return 0.0 if self.fields < 2 else self.share * (1 - self.broken) + min(self.fields, 20) / 1_000


def parse_object(line: str) -> dict[str, Any] | None:
    """The object of a line in JSON, or in Python's own words, as Amazon's metadata of 2014 and Steam's reviews are."""
    for parse in (json.loads, ast.literal_eval):
        try:
            parsed = parse(line)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        if isinstance(parsed, dict):
            return {str(key): value for key, value in parsed.items()}
    return None


def is_json_lines(lines: Sequence[str]) -> bool:
    """Whether most lines begin like an object, and one of them is one (`parse_object`)."""
    filled = [line.strip() for line in lines if line.strip()][:_LOOKED_AT]
    begun = [line for line in filled if line.startswith("{")]
    if len(begun) * 2 < len(filled) or not begun:
        return False
    return any(parse_object(line) is not None for line in begun[:50]) or filled[0].startswith('{"')


def is_json_document(lines: Sequence[str]) -> bool:
    """Whether the file is one JSON document: a list, or an object of objects or lists."""
    filled = [line.strip() for line in lines if line.strip()]
    first = filled[0] if filled else ""
    if first.startswith("["):
        return first in ("[", "[{") or ('"' in first and _is_list(first))
    if not first.startswith("{") or (len(filled) > 1 and any(map(_is_object, filled[:50]))):
        return False
    if len(filled) == 1 and _is_object(first):
        entries = json.loads(first)
        titles = all(isinstance(value, str) for value in entries.values()) and not any(map(known_name, entries))
        return bool(entries) and (titles or all(isinstance(value, (dict, list)) for value in entries.values()))
    return _KEYED.match("\n".join(filled[:3])) is not None


def delimiter(lines: Sequence[str], signs: Iterable[str] = DELIMITERS) -> ReadingChoice:
    """The delimiter that cuts most lines into equally many fields."""
    filled = [line for line in lines if line.strip(BLANKS)][:_LOOKED_AT]
    fits = {sign: _fit(filled, Splitter(sign, '"')) for sign in signs}
    if (
        "::" in fits and fits["::"].fields > 1
    ):  # else every :: is found as two single colons, and blanks in titles count
        fits["::"] = fits["::"]._replace(share=fits["::"].share + 0.001)
    if fits.keys() >= {"\t", " "} and fits["\t"].fields > 1 and fits["\t"].share >= fits[" "].share:
        fits[" "] = fits[" "]._replace(fields=1)  # cut at blanks, lines are cut at tabs, too, and within fields
    order = sorted(fits, key=lambda sign: -fits[sign].value)
    best, others = order[0], tuple(order[1:])
    fit = fits[best]
    if fit.fields < 2:
        return ReadingChoice(
            about="delimiter", value=",", sure="unsure", why="No delimiter cuts the lines into columns.", others=others
        )
    if best == " " and not all(re.fullmatch(r"[\w.:+/@#-]+([ \t]+[\w.:+/@#-]+)*", line.strip()) for line in filled):
        # Blanks stand between words, too.
        rest = [sign for sign in others if fits[sign].fields > 1]
        why = "Only blanks cut the lines into equally many parts, and texts have blanks, too."
        if rest:
            best, others = rest[0], tuple(sign for sign in order if sign != rest[0])
            why = f"It is not clear what stands between the fields; {DELIMITERS[best]} is the likeliest."
        return ReadingChoice(about="delimiter", value=best, sure="unsure", why=why, others=others)
    named = DELIMITERS[best]
    read = _fit(filled, Splitter(best, quote(lines, best).value), cut=len(lines) > len(filled))
    whole = int(100 * read.share)  # 99.8% are not all
    but = ", but for those whose quotes are not in order" if read.broken else ""
    why = f"With it, {'all' if whole >= 100 else f'{whole}% of the'} lines looked at have {read.fields} fields{but}."
    rival = next(
        (fits[sign] for sign in others if sign != " " and fits[sign].share > 0.9 and fits[sign].fields > 1), None
    )
    sure: Sure = "certain" if fit.share > 0.98 and rival is None else "likely" if fit.share > 0.7 else "unsure"
    if rival is not None:
        why += " Another one would cut them evenly, too."
        sure = "likely" if fit.fields > rival.fields else "unsure"
    return ReadingChoice(
        about="delimiter", value=best, sure=sure, why=f"{named[:1].upper()}{named[1:]}. {why}", others=others
    )


def quote(lines: Sequence[str], sign: str) -> ReadingChoice:
    """Which character quotes, if any."""
    others = {value: tuple(other for other in QUOTES if other != value) for value in QUOTES}
    filled = [line for line in lines if line.strip(BLANKS)][: 10 * _LOOKED_AT]
    if len(sign) > 1 or sign == " ":
        why = "With this delimiter no field is quoted."
        return ReadingChoice(about="quote", value="", sure="certain", why=why)
    texts = [sign + line for line in filled]
    double = sum(bool(re.search(f'{re.escape(sign)}\\s*"', text)) for text in texts)
    single = sum(bool(re.search(f"{re.escape(sign)}'[^']*'(?={re.escape(sign)}|$)", text)) for text in texts)
    if single > max(double, len(filled) // 10):
        why = "Fields stand between single quotes."
        return ReadingChoice(about="quote", value="'", sure="likely", why=why, others=others["'"])
    if not double:
        why = "No field of the lines looked at begins with a quote."
        return ReadingChoice(about="quote", value='"', sure="certain", why=why, others=others['"'])
    quoted, bare = _fit(filled, Splitter(sign, '"')), _fit(filled, Splitter(sign, ""))
    if quoted.broken > 0.02 and bare.value > quoted.value:
        why = 'Some fields begin with " and never end with one, so it is part of the texts.'
        return ReadingChoice(about="quote", value="", sure="likely", why=why, others=others[""])
    why = 'Fields stand between ".'
    return ReadingChoice(
        about="quote", value='"', sure="certain" if not quoted.broken else "likely", why=why, others=others['"']
    )


def header(rows: Sequence[Sequence[str]]) -> ReadingChoice:
    """Whether the first row names the columns. rows: fields, the first row first."""
    yes, no = ("yes", "no"), ("no", "yes")
    sure: Sure
    if not rows:
        return _header(yes, "unsure", "There is no row.")
    first, rest = [field.strip(BLANKS) for field in rows[0]], rows[1:]
    known = sum(known_name(field) for field in first)
    numbers = sum(bool(_VALUE.fullmatch(field)) for field in first)
    repeated = len({field for field in first if field}) < len([field for field in first if field])
    if known > 1 and known > numbers:
        sure = "likely" if numbers or repeated else "certain"
        return _header(yes, sure, "The first row holds names that columns have.")
    if numbers:
        sure = "likely" if known and not repeated else "certain"
        return _header(no, sure, "The first row holds numbers, so it is data.")
    if known and not repeated:
        sure = "certain" if known == len(first) else "likely"
        return _header(yes, sure, "The first row holds names that columns have.")
    other = sum(_unlike(first[index], [row[index] for row in rest if index < len(row)]) for index in range(len(first)))
    if repeated or any(not field for field in first[1:]):
        return _header(no, "likely", "The first row has empty or repeated fields, so it names nothing.")
    if other:
        return _header(yes, "likely", "Below the first row are numbers or dates where it has words.")
    return _header(yes, "unsure", "The first row looks like the others; it may be data.")


def _header(order: tuple[str, str], sure: Sure, why: str) -> ReadingChoice:
    return ReadingChoice(about="header", value=order[0], sure=sure, why=why, others=order[1:])


def _unlike(name: str, values: Sequence[str]) -> bool:
    """Whether a column of numbers (or dates) has a word at its top."""
    filled = [value.strip(BLANKS) for value in values if value.strip(BLANKS)]
    if not name or not filled:
        return False
    plain = sum(value[:1].isdigit() or bool(_VALUE.fullmatch(value)) for value in filled)
    return plain > 0.9 * len(filled) and not name[:1].isdigit()


def _fit(lines: Sequence[str], splitter: Splitter, *, cut: bool = False) -> _Fit:
    """cut: more lines follow, and may close a quote."""
    counts: Counter[int] = Counter()
    broken = within = 0
    for line in lines:
        if within:  # the rest of a field that began some lines above
            if not splitter.is_unfinished(line, within=True):
                within = 0
            else:
                within += 1
                if within > 50:
                    broken, within = broken + within, 0
            continue
        fields = splitter.split(line)
        if fields is not None:
            counts[len(fields)] += 1
        elif splitter.is_unfinished(line):
            within = 1
        else:
            broken += 1
    broken += 0 if cut else within
    total = sum(counts.values())
    if not total:
        return _Fit(0.0, 1, 1.0)
    fields_, often = max(counts.items(), key=lambda pair: (pair[1], pair[0]))
    return _Fit(often / total, fields_, broken / (total + broken))


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _is_list(line: str) -> bool:
    try:
        return isinstance(json.loads(line), list)
    except (ValueError, RecursionError):
        return line.startswith("[{")


@dataclass(frozen=True)
class Splitter:
    """How rows are cut into fields."""

    delimiter: str
    quote: str
    """"" where none is read as one; delimiters of several characters, and blanks, go without. Blanks may stand around quotes."""

    @property
    def quoting(self) -> bool:
        return self.quote != "" and len(self.delimiter) == 1 and self.delimiter != " "

    @property
    def whole(self) -> str:
        """Matches (in full) a line whose quotes are all in order."""
        d, q = self._signs()
        return f"(?:{d} *(?:{q}(?:[^{q}]|{q}{q})*{q} *|[^{q}{d} ][^{d}]*)?)*"

    @property
    def unfinished(self) -> str:
        """Matches (in full) a line that ends within a quoted field."""
        d, q = self._signs()
        return f"{self.whole}{d} *{q}(?:[^{q}]|{q}{q})*"

    @property
    def field(self) -> str:
        """Finds a field of a line that is whole, as its first group."""
        d, q = self._signs()
        return f"{d}( *{q}(?:[^{q}]|{q}{q})*{q} *|[^{d}]*)"

    def split(self, line: str) -> list[str] | None:
        """The fields of a line; None where its quotes are not in order."""
        if self.delimiter == " ":
            return line.split()
        if not self.quoting or self.quote not in line:
            return line.split(self.delimiter)
        text = self.delimiter + line
        if not re.fullmatch(self.whole, text):
            return None
        return [self._bare(field) for field in re.findall(self.field, text)]

    def is_unfinished(self, line: str, *, within: bool = False) -> bool:
        """Whether a line ends within a quoted field. within: it also begins within one."""
        begins = self.delimiter + (self.quote if within else "")
        return re.fullmatch(self.unfinished, begins + line) is not None

    def _bare(self, text: str) -> str:
        quoted = text.strip(" ")
        if len(quoted) > 1 and quoted.startswith(self.quote):
            return quoted[1:-1].replace(self.quote * 2, self.quote)
        return text

    def _signs(self) -> tuple[str, str]:
        return _escaped(self.delimiter), _escaped(self.quote)


def _escaped(sign: str) -> str:
    """A character for a regular expression, within [^…] as well as outside."""
    return f"\\{sign}" if sign.isascii() and not sign.isalnum() and sign not in "\t_" else sign


def records(lines: Sequence[str], splitter: Splitter) -> list[list[str]]:
    """Fields of the rows that stand in one line, and of those that a quoted field spreads over several.

    Empty where the first cannot be read: it may be the header.
    """
    rows, unfinished = [], ""
    for line in lines:
        text = f"{unfinished}\n{line}" if unfinished else line
        fields = splitter.split(text)
        if fields is not None:
            rows.append(fields)
            unfinished = ""
        elif splitter.is_unfinished(text) and text.count("\n") < 50:
            unfinished = text
        elif not rows:
            return []
        else:
            unfinished = ""
    return rows


def header_names(first: Sequence[str], width: int, below: Sequence[Sequence[str]]) -> list[str]:
    """What the columns are called after the header. below: the other rows."""
    fields = list(first)
    if len(fields) == width - 1 and any(row[-1].strip(BLANKS) for row in below if len(row) == width):
        fields = ["", *fields]  # as R writes row names: they have a column and no name; else rows end with a delimiter
    return column_names(fields if len(fields) >= width else [*fields, *[""] * (width - len(fields))])


def delimited(
    lines: Sequence[str],
    reading: Reading,
    limits: Limits,
    delimiter: ReadingChoice,
    quoted: ReadingChoice | None = None,
    headed: ReadingChoice | None = None,
) -> tuple[Reading, list[ReadingChoice]]:
    """(reading with all columns as texts; what was chosen, in order). quoted, headed: None: as they are guessed.

    No columns where the quotes of the first row are not in order. Raises Refused where there are too many.
    """
    quoted = quoted or quote(lines, delimiter.value)
    reading = reading.model_copy(update={"delimiter": delimiter.value, "quote": quoted.value})
    rows = records(lines, Splitter(delimiter.value, quoted.value))
    if not rows:
        return reading, [delimiter, quoted]
    headed = headed or header(rows)
    named = headed.value == "yes"
    widths = Counter(len(row) for row in (rows[1:] if named else rows) or rows)
    width = max(widths, key=lambda width: (widths[width], width))
    if max(width, len(rows[0])) > limits.columns:
        raise Refused(f"The rows have {width:,} fields; at most {limits.columns:,} columns are taken here.")
    names = header_names(rows[0], width, rows[1:]) if named else [f"column {index + 1}" for index in range(width)]
    return reading.model_copy(update={"header": named, "columns": texts(names)}), [delimiter, quoted, headed]
