"""Lines into fields: one set of regular expressions for Python (which guesses) and DuckDB (which reads).

They are matched against the delimiter and then the line, so that every field begins with a delimiter and no match is empty.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

BLANKS = " \t\r\n\v\f\u00a0"
"""What is taken off both ends of a field."""


@dataclass(frozen=True)
class Splitter:
    """How rows are cut into fields."""

    delimiter: str
    quote: str
    """"" where none is read as one; delimiters of several characters, and blanks, go without."""

    @property
    def quoting(self) -> bool:
        return self.quote != "" and len(self.delimiter) == 1 and self.delimiter != " "

    @property
    def whole(self) -> str:
        """Matches (in full) a line whose quotes are all in order."""
        d, q = self._signs()
        return f"(?:{d}(?:{q}(?:[^{q}]|{q}{q})*{q}|[^{q}{d}][^{d}]*)?)*"

    @property
    def unfinished(self) -> str:
        """Matches (in full) a line that ends within a quoted field."""
        d, q = self._signs()
        return f"(?:{d}(?:{q}(?:[^{q}]|{q}{q})*{q}|[^{q}{d}][^{d}]*)?)*{d}{q}(?:[^{q}]|{q}{q})*"

    @property
    def field(self) -> str:
        """Finds a field of a line that is whole, as its first group."""
        d, q = self._signs()
        return f"{d}({q}(?:[^{q}]|{q}{q})*{q}|[^{d}]*)"

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
        if len(text) > 1 and text.startswith(self.quote):
            return text[1:-1].replace(self.quote * 2, self.quote)
        return text

    def _signs(self) -> tuple[str, str]:
        return _escaped(self.delimiter), _escaped(self.quote)


def _escaped(sign: str) -> str:
    """A character for a regular expression, within [^…] as well as outside."""
    return f"\\{sign}" if sign.isascii() and not sign.isalnum() and sign not in "\t_" else sign
