"""What an address says: its parameters, and how any texts stand in one of them. Nothing is looked up here.

encode(("a b", "c~d")) == "a%20b~c%7Ed"        decode takes it apart again
Address.read({"ds": "films", "h": "a~b"})     Address(dataset="films", history=("a", "b"))

    v   version of this form, 1          h   history, oldest first: item_ids, each percent-encoded, with ~ between them
    ds  dataset                          b   B, the edited history of a what-if, in the same form; pages look at it then
    k   length of the lists              s   "a": pages look at A, the history, though there is B
    u   user_id whose history this is    m   models, with ~ between them; the usual ones where it is missing
        (then h is left out)             item   item_id of the item that is selected: the detail panel shows it, pages explain it
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from app.analysis.cache import cached
from app.limits import DEFAULT_K, MAX_HISTORY, MAX_ID, MAX_K

VERSION = "1"

PARAMETERS = ("v", "ds", "h", "k", "m", "b", "s", "u", "item")

Ids = tuple[str, ...]


@dataclass(frozen=True)
class Address:
    """The parameters that all pages share, decoded; None where one is missing. Whether there are such items is not known."""

    version: str = VERSION
    dataset: str | None = None
    history: Ids | None = None
    user: str | None = None
    """Only where there is no history."""
    variant: Ids | None = None
    shows_a: bool = False
    """Only where there is a variant."""
    k: str | None = None
    models: Ids | None = None
    item: str | None = None

    @classmethod
    def read(cls, parameters: Mapping[str, str]) -> Address:
        """Of an address's parameters; histories are cut to the characters that a longest one may have."""

        def ids(name: str, most: int | None = None) -> Ids | None:
            return decode(parameters[name][:most]) if name in parameters else None

        return cls(
            version=parameters.get("v", VERSION),
            dataset=parameters.get("ds"),
            history=ids("h", MAX_HISTORY * MAX_ID),
            user=unquoted(parameters["u"]) if "u" in parameters and "h" not in parameters else None,
            variant=ids("b", MAX_HISTORY * MAX_ID),
            shows_a="b" in parameters and parameters.get("s") == "a",
            k=parameters.get("k"),
            models=ids("m"),
            item=parameters.get("item"),
        )

    def write(self) -> dict[str, str]:
        """The opposite of `read`: the address's parameters."""

        def ids(chosen: Ids | None) -> str | None:
            return None if chosen is None else encode(chosen)

        texts = {"v": self.version, "ds": self.dataset}
        texts |= {"h": ids(self.history)} if self.user is None else {"u": quoted(self.user)}
        texts |= {"k": self.k, "m": ids(self.models), "b": ids(self.variant)}
        texts |= {"s": "a" if self.shows_a and self.variant is not None else None, "item": self.item}
        return {name: text for name, text in texts.items() if text is not None}

    @property
    def length(self) -> int | None:
        """k as a number; None where it is none that lists can have."""
        text = str(DEFAULT_K) if self.k is None else self.k
        possible = text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= MAX_K
        return int(text) if possible else None


def encode(ids: Iterable[str]) -> str:
    """Any texts → one text that `decode` takes apart again."""
    return _encoded(tuple(ids))


@cached(256)  # a page writes a dozen links, each with the same history
def _encoded(ids: Ids) -> str:
    return "~".join(quoted(item_id) for item_id in ids)


def decode(text: str) -> Ids:
    return tuple(unquoted(part) for part in text.split("~")) if text else ()


def encode_values(values: Mapping[str, Iterable[str]]) -> str | None:
    """Values by name → name~value~name~value … as one text; None where there are none."""
    return encode(text for name, chosen in values.items() for value in chosen for text in (name, value)) or None


def decode_values(text: str) -> dict[str, Ids]:
    """The opposite of `encode_values`, each name once, with its values in their order."""
    texts, values = decode(text), dict[str, Ids]()
    for name, value in zip(texts[::2], texts[1::2], strict=False):
        values[name] = (*values.get(name, ()), value)
    return values


def quoted(text: str) -> str:
    return quote(text, safe="").replace("~", "%7E") if text else "%"  # an empty id is no missing id


def unquoted(text: str) -> str:
    return "" if text == "%" else unquote(text, errors="replace")
