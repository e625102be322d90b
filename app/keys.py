"""The key of a browser: who has it has what was uploaded with it. It lies in a cookie that no script can read.

    key = keys.make()                      # "k4t9x-…": 130 random bits and a check against misspelling
    keys.read(" K4T9X-… ")                 # the key as it was made; None for anything else
    keys.owner(key)                        # who it stands for: a hash, which the store and the file system know

The server keeps no list of keys. Whatever has the form of one stands for an owner, with or without data.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

COOKIE = "seqscope_key"
SECURE_COOKIE = f"__Host-{COOKIE}"
"""Over https: browsers take that name from this very host alone, not from a neighbour in its domain."""
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u
_RANDOM, _CHECK, _GROUP = 26, 4, 5  # characters
_TYPED = str.maketrans("ilo", "110", " -–—\t\r\n")
_FORM = re.compile(f"[{_DIGITS}]{{{_RANDOM + _CHECK}}}")


def make() -> str:
    text = "".join(secrets.choice(_DIGITS) for _ in range(_RANDOM))
    return _grouped(text + _check(text))


def read(typed: str) -> str | None:
    """The key that was typed or pasted, in the form in which it was made; None where it is none."""
    if len(typed) > 200:
        return None
    text = typed.casefold().translate(_TYPED)
    if not _FORM.fullmatch(text) or not hmac.compare_digest(_check(text[:_RANDOM]), text[_RANDOM:]):
        return None
    return _grouped(text)


def owner(key: str) -> str:
    """Whose data a key opens. The key cannot be had from it."""
    return _hashed("b", "browser", key)


def account(issuer: str, subject: str) -> str:
    """Whose data an account opens: the provider, and its own name for the person, which never changes."""
    return _hashed("a", "account", f"{len(issuer)}:{issuer}{subject}")


def _hashed(kind: str, what: str, text: str) -> str:
    return kind + hashlib.sha256(f"seqscope {what} {text}".encode()).hexdigest()[:32]


def _check(text: str) -> str:
    digest = hashlib.sha256(f"seqscope key {text}".encode()).digest()
    return "".join(_DIGITS[byte % 32] for byte in digest[:_CHECK])


def _grouped(text: str) -> str:
    return "-".join(text[start : start + _GROUP] for start in range(0, len(text), _GROUP))
