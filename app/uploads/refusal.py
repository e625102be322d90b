"""How a step says that a file cannot be read."""

from __future__ import annotations


class Refused(Exception):
    """The message says what is wrong and what to do; it is shown as it stands."""
