"""The form of an address: how any texts stand in one parameter. `app.state` says what the parameters are.

encode(("a b", "c~d")) == "a%20b~c%7Ed"        decode takes it apart again
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from urllib.parse import quote, unquote

from app.kept import until_deleted

VERSION = "1"
MAX_HISTORY = 200
MAX_K = 100
DEFAULT_K = 10
MAX_ID = 500  # characters of one item_id in an address

Ids = tuple[str, ...]


def encode(ids: Iterable[str]) -> str:
    """Any texts → one text that `decode` takes apart again."""
    return _encoded(tuple(ids))


@until_deleted
@functools.lru_cache(maxsize=256)  # a page writes a dozen links, each with the same history
def _encoded(ids: Ids) -> str:
    return "~".join(quoted(item_id) for item_id in ids)


def decode(text: str) -> Ids:
    return tuple(unquoted(part) for part in text.split("~")) if text else ()


def quoted(text: str) -> str:
    return quote(text, safe="").replace("~", "%7E") if text else "%"  # an empty id is no missing id


def unquoted(text: str) -> str:
    return "" if text == "%" else unquote(text, errors="replace")
