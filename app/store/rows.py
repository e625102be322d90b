"""What the tables have in common: whose row it is, until when it is kept, and how rows become records."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from app import home
from app.text import clean
from engine.errors import SeqscopeError

MAX_NAME = 100  # characters of a name or title
_OFTEN = timedelta(hours=1)  # renewing more often than this is not worth a write


class NotFound(SeqscopeError):
    """There is no such thing, or it is somebody else's: nobody is told which."""


def known(owner: str) -> str:
    """The owner, if it has the form of one."""
    if not isinstance(owner, str) or not home.OWNER.fullmatch(owner):
        raise ValueError("not an owner")
    return owner


def now() -> datetime:
    """As it is stored: UTC, without saying so."""
    return datetime.now(UTC).replace(tzinfo=None)


def keep_days() -> float:
    """How long a browser's data are kept after they were last used: SEQSCOPE_KEEP_DAYS, 7 days otherwise."""
    text = os.environ.get("SEQSCOPE_KEEP_DAYS") or "7"
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 < days < 100_000:
        raise SeqscopeError(f"SEQSCOPE_KEEP_DAYS is {text!r}; it must be a number of days above 0.")
    return days


def until(owner: str) -> datetime | None:
    """When what is used now expires: an account's data never do."""
    return now() + timedelta(days=keep_days()) if owner.startswith("b") else None


def worth_renewing(owner: str, expires: datetime | None) -> bool:
    renewed = until(owner)
    return renewed is not None and (expires is None or renewed - expires.replace(tzinfo=None) > _OFTEN)


def aware(time: datetime) -> datetime:
    """As everybody else reads it."""
    return time.replace(tzinfo=UTC)


def named(text: object, kind: str = "name") -> str:
    """A name as it is kept: one line, not empty. Raises SeqscopeError."""
    name = clean(text, MAX_NAME)
    if not name:
        raise SeqscopeError(f"Give it a {kind}: at least one letter.")
    return name


def written(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
